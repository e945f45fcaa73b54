// What lowering knows of a kernel before it builds values: which ops are materialised where.
#pragma once

#include <map>
#include <tuple>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "analysis/schedule/propagation.h"
#include "analysis/schedule/schedule.h"
#include "core/base/arithmetic.h"

namespace stitchwork {

/// A materialised op of the kernel and its places.
struct Material {
  NodeId op = kNoNode;
  int group = 0;
  int level = 0;
  Placement placement;
  IndexMap across;  ///< a reduction across the group's rows: where its operand lies in the domain
  int shared = -1, global = -1, partials = -1;  ///< buffers; global: output or scratch
  bool output = false;
};

/// How a value of an op is had in a phase.
enum class Reach : std::uint8_t {
  kCompute,   ///< from its operands
  kInput,     ///< from a buffer the kernel does not write
  kGlobal,    ///< written by an earlier phase
  kPartials,  ///< of a split reduction, written by an earlier phase
  kShared,    ///< written by the same task in an earlier stage
};

class BuildContext {
 public:
  BuildContext(const Graph& graph, const KernelPlan& plan);

  const Graph& graph;
  const Computation& computation;
  const KernelPlan& plan;
  std::vector<Buffer> buffers;
  std::map<NodeId, Material> materials;
  std::vector<std::shared_ptr<const Placements>> placements;  ///< by group of the plan

  /// The tile through which a group of the plan reads or stores `op` in a phase: its buffer, or -1.
  int tile(NodeId op, int group, int phase) const;
  /// The element (row, col) of the tile; in a step that `moves` a staged task, its element number row.
  IndexExpr tile_offset(NodeId op, int group, bool moves) const;

  bool inside(NodeId op) const { return inside_.contains(op); }
  const Node& node(NodeId op) const { return computation.node(op); }
  Reach reach(NodeId op, int phase) const;
  /// The buffer of an input, made on first use.
  int input_buffer(NodeId op);
  /// Of the elements of `op` under `map` in that buffer of global memory.
  IndexExpr offset_in(int buffer, NodeId op, const IndexMap& map) const;

 private:
  void add_material(NodeId op, int group, const Placements& places);
  int add_buffer(Buffer buffer);

  std::unordered_set<NodeId> inside_;
  std::unordered_map<NodeId, int> inputs_;
  std::map<std::tuple<NodeId, int, int>, int> tiles_;  ///< by op, group, phase
};

}  // namespace stitchwork
