// The values of one run of a computation: where they are, and who frees them.
#pragma once

#include <memory>
#include <span>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "core/evaluate/inputs.h"
#include "runtime/device_buffer.h"

namespace stitchwork {

/// A value that steps of a run hand on: an array, on the host or on the device, or a tuple of such. What a
/// loop's trip leaves on the device its next one finds there.
struct RunValue {
  Shape shape;
  std::shared_ptr<const Literal> host;
  std::shared_ptr<DeviceBuffer> device;
  std::vector<RunValue> elements;  ///< of a tuple
  /// Where it lies in the matrix on the device, if it is a block of one.
  std::shared_ptr<const PlacedArray> placed;

  /// Without a copy of its bytes.
  static RunValue of(Literal literal);
  /// `literal` outlives it.
  static RunValue borrowed(const Literal& literal);
};

/// Arrays lie in device buffers, by the op that owns them, freed after the last step that touches them or
/// what it was handed on to. Tuples are lists of such: what made them is a library step of its own, a loop or
/// branch, or a tuple of other values.
class RunValues {
 public:
  RunValues(const Computation& computation, Backend& backend);

  /// `inputs` are the parameters'.
  void start(std::vector<RunValue> inputs) { inputs_ = std::move(inputs); }

  /// The buffer in which `op` lies (aliases resolved; of a block that of the matrix); allocated on first use.
  /// After its last use it must not be asked for: it would be another one.
  DeviceAddress address(NodeId op);

  /// Fills the buffer of a parameter, a constant or an element of a tuple before it is read for the first
  /// time. An array that is updated in place is the run's own then: a copy, where others hold it.
  void upload_source(NodeId owner);

  /// On the host.
  Literal value(NodeId id);
  Literal literal(const RunValue& value);

  /// Where it is.
  RunValue held(NodeId id);

  /// What `loop` starts from; the buffers of `last` are its own then, as nothing touches them any more.
  /// Arrays that its trips write from end to end have bytes of their own, whose contents are undefined.
  RunValue start_of_loop(const Graph& graph, const Node& loop, std::span<const NodeId> last);

  /// What the host, a loop or a branch has made for `node`.
  void keep(const Node& node, RunValue result);

  /// What `owner` is filled with is written once: repeated steps find it there.
  void stays(NodeId owner) { staying_.insert(owner); }

  /// Nothing touches the buffer of `owner` any more.
  void end(NodeId owner);

 private:
  /// Whether it is written once, before the first step that reads it: by the host, or by a step done once.
  bool is_written_once(const Node& owner) const;
  void upload(NodeId op, const Literal& value);
  /// Puts it into the buffer of `owner`: its own, where it is on the device.
  void place(NodeId owner, RunValue value);
  std::size_t bytes_of(const Node& owner) const;
  /// The tuple as it was handed on: a parameter's, a constant's, that of a library call, loop or branch, or
  /// an element of one. Null of one that is put together from other values.
  RunValue* held_tuple(const Node& node);
  /// Of an alias that is not another name of its operand's buffer: an element of a tuple, or a tuple passed
  /// on.
  RunValue element(const Node& node);
  RunValue tuple(const Node& node);
  RunValue& source(const Node& node);

  const Computation& computation_;
  Backend& backend_;
  std::vector<RunValue> inputs_;
  std::unordered_map<NodeId, std::shared_ptr<DeviceBuffer>> buffers_;
  std::unordered_set<NodeId> ended_, staying_;
  std::unordered_set<NodeId> uploaded_;
  std::unordered_set<NodeId> updated_;  ///< owners of arrays that are updated in place
  std::unordered_set<NodeId> alone_;    ///< elements of a parameter that nothing else names
  /// By the op that made them: tuples until the run ends, and constants as they are asked for.
  std::unordered_map<NodeId, RunValue> made_;
};

}  // namespace stitchwork
