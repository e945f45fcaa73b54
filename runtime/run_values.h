// The values of one run of a computation: where they are, and who frees them.
#pragma once

#include <span>
#include <unordered_map>
#include <unordered_set>

#include "core/evaluate/inputs.h"
#include "runtime/device_buffer.h"

namespace stitchwork {

/// Arrays lie in device buffers, by the op that owns them, freed after the last step that touches them.
/// Tuples live on the host: what made them is a library step of its own, a loop or branch, or a tuple of
/// other values.
class RunValues {
 public:
  RunValues(const Computation& computation, Backend& backend)
      : computation_(computation), backend_(backend) {}

  /// `inputs` are the parameters' and outlive it.
  void start(std::span<const Literal> inputs) { inputs_ = inputs; }

  /// The buffer of `op` (aliases resolved); allocated on first use. After its last use it must not be asked
  /// for: it would be another one.
  DeviceAddress address(NodeId op);

  /// Fills the buffer of a parameter, a constant or an element of a tuple before it is read for the first
  /// time.
  void upload_source(NodeId owner);

  Literal value(NodeId id);

  /// What the host has computed for `node`.
  void keep(const Node& node, Literal result);

  /// What `owner` is filled with is written once: repeated steps find it there.
  void stays(NodeId owner) { staying_.insert(owner); }

  /// Nothing touches the buffer of `owner` any more.
  void end(NodeId owner);

 private:
  /// Whether it is written once, before the first step that reads it: by the host, or by a step done once.
  bool is_written_once(const Node& owner) const;
  void upload(NodeId op, const Literal& value) { backend_.write(address(op), value.bytes); }
  /// The values of `op` under its own shape (an alias may have another shape than its owner).
  Literal download(NodeId op);
  /// The tuple that the host holds as it is: a parameter's, a constant's, that of a library call, loop or
  /// branch, or an element of one. Null of one that is put together from other values.
  const Literal* held_tuple(const Node& node) const;
  /// Of an alias that is not another name of its operand's buffer: an element of a tuple, or a tuple passed
  /// on.
  Literal element_value(const Node& node);
  Literal tuple_value(const Node& node);
  const Literal& source_value(const Node& node) const;

  const Computation& computation_;
  Backend& backend_;
  std::span<const Literal> inputs_;
  std::unordered_map<NodeId, DeviceBuffer> buffers_;
  std::unordered_set<NodeId> ended_, staying_;
  std::unordered_set<NodeId> uploaded_;
  std::unordered_map<NodeId, Literal> tuples_;  ///< by the op that made them, until the run ends
};

}  // namespace stitchwork
