// From an instruction of XLA's graph to a kernel of a plan: XLA's launch dimensions.
#include <algorithm>

#include "analysis/facts/facts.h"
#include "analysis/planners/xla/fusion_graph.h"
#include "analysis/planners/xla/rules.h"
#include "analysis/schedule/inlined_kernel.h"
#include "analysis/schedule/plain_mapping.h"
#include "core/base/arithmetic.h"

namespace stitchwork::xla {
namespace {

/// Threads of a loop kernel's block: XLA's thread limit of element-wise kernels.
constexpr int kLoopBlock = 256;
/// Columns of a tile a thread of a column reduction walks down before the partial result is added atomically.
/// XLA's column reduction has such tiles (docs/planners/xla.md).
constexpr std::int64_t kColumnTileHeight = 128;
/// Elements a thread of a reduction to a scalar has: XLA's tile of [1, 1, 16] for rows where there is one.
constexpr std::int64_t kScalarTile = 16;

/// A reduction of all elements to one: blocks of tiles, each added atomically; what has no atomic is one
/// block's.
Dealt scalar_mapping(std::int64_t elements, bool atomic) {
  const std::int64_t lanes = ceil_div(elements, kScalarTile);
  const Dealt one_block = block_a_row_mapping(1, elements, atomic ? lanes : elements);
  const int threads = block_threads(one_block.mapping);
  const std::int64_t blocks = ceil_div(lanes, std::int64_t{threads});
  if (!atomic || blocks == 1) return one_block;
  const Mapping mapping = mapping::Rows{
      1, elements,
      mapping::Segments{
          .threads = threads, .vectors = {}, .count = static_cast<int>(blocks), .atomic = true}};
  return {mapping, deal_to(mapping, task_count(mapping))};
}

Dealt tiled_mapping(const Graph& graph, NodeId dominant, const std::vector<NodeId>& roots) {
  const Computation& computation = graph.entry_computation();
  const TiledReduction tile = *tiled_reduction(computation, computation.node(dominant));
  const ReductionSize shape = reduction_size(computation, dominant);
  const bool atomic = std::all_of(roots.begin(), roots.end(), [&](NodeId root) {
    const Node& node = computation.node(root);
    return def(node.op).cls != OpClass::kReduce || adds_atomically(graph, node);
  });
  if (tile.row && shape.rows == 1) return scalar_mapping(shape.cols, atomic);
  if (tile.row) return block_a_row_mapping(shape.rows, shape.cols, tile.width);
  const std::int64_t split = atomic ? ceil_div(shape.cols, kColumnTileHeight) : 1;
  return column_tile_mapping(shape.rows, shape.cols, static_cast<int>(split));
}

}  // namespace

NodeId leading_root(const Computation& computation, const std::vector<NodeId>& roots) {
  const auto first = [&](auto test) {
    const auto found =
        std::find_if(roots.begin(), roots.end(), [&](NodeId root) { return test(computation.node(root)); });
    return found == roots.end() ? kNoNode : *found;
  };
  const NodeId tiled = first([&](const Node& n) { return tiled_reduction(computation, n).has_value(); });
  if (tiled != kNoNode) return tiled;
  const NodeId untiled = first([&](const Node& n) { return def(n.op).cls == OpClass::kReduce; });
  return untiled != kNoNode ? untiled : roots.front();
}

KernelPlan lower_instruction(const Graph& graph, const Instruction& instruction) {
  const Computation& computation = graph.entry_computation();
  const NodeId leader = leading_root(computation, instruction.roots);
  const Node& node = computation.node(leader);
  Dealt dealt;
  if (tiled_reduction(computation, node)) {
    dealt = tiled_mapping(graph, leader, instruction.roots);
  } else if (def(node.op).cls == OpClass::kReduce) {
    const ReductionSize shape = reduction_size(computation, leader);
    dealt = thread_a_row_mapping(shape.rows, shape.cols, kLoopBlock);
  } else {
    dealt = element_mapping(node.shape.elements_count(), kLoopBlock);
  }
  return inlined_kernel(computation, instruction.ops, instruction.roots, leader, dealt);
}

}  // namespace stitchwork::xla
