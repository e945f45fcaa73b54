// From an instruction of XLA's graph to a kernel of a plan: XLA's launch dimensions.
#include <algorithm>

#include "analysis/assemble.h"
#include "analysis/evaluations.h"
#include "analysis/facts.h"
#include "analysis/plain_mapping.h"
#include "analysis/xla/fusion_graph.h"
#include "analysis/xla/rules.h"

namespace stitchwork::xla {
namespace {

/// Threads of a loop kernel's block: XLA's thread limit of element-wise kernels.
constexpr int kLoopBlock = 256;
/// Columns of a tile a thread of a column reduction walks down before the partial result is added atomically.
constexpr std::int64_t kColumnTileHeight = 128;

/// Reductions whose partial results atomics can add up: sums from zero of types with an atomic add.
bool adds_atomically(const Graph& graph, const Node& node) {
  const Computation& computation = graph.entry_computation();
  if (node.operands.size() != 2 || node.attrs.computations.empty()) return false;
  if (simple_reducer(graph, applied(node)) != Op::kAdd) return false;
  switch (node.shape.dtype) {
    case DType::kF32:
    case DType::kF64:
    case DType::kS32:
    case DType::kU32:
    case DType::kU64:
      break;
    default:
      return false;
  }
  const Node& init = computation.node(node.operands[1]);
  return is_scalar_constant(init) && init.attrs.literal && init.attrs.literal->get_double(0) == 0;
}

ThreadMapping tiled_mapping(const Graph& graph, NodeId dominant, const std::vector<NodeId>& roots) {
  const Computation& computation = graph.entry_computation();
  const TiledReduction tile = *tiled_reduction(computation, computation.node(dominant));
  const ReductionShape shape = reduction_shape(computation, dominant);
  if (tile.row) return block_a_row_mapping(shape.rows, shape.cols, tile.width);
  const bool atomic = std::all_of(roots.begin(), roots.end(), [&](NodeId root) {
    const Node& node = computation.node(root);
    return def(node.op).cls != OpClass::kReduce || adds_atomically(graph, node);
  });
  const std::int64_t split = atomic ? (shape.cols + kColumnTileHeight - 1) / kColumnTileHeight : 1;
  return column_tile_mapping(shape.rows, shape.cols, static_cast<int>(split));
}

/// Aliases of the kernel's own values that its ops read belong to it; they cost nothing.
std::vector<NodeId> with_aliases(const Computation& computation, std::vector<NodeId> ops) {
  std::vector<NodeId> open = ops;
  while (!open.empty()) {
    const Node& node = computation.node(open.back());
    open.pop_back();
    for (NodeId operand : node.operands) {
      std::vector<NodeId> chain;
      NodeId at = operand;
      while (!std::binary_search(ops.begin(), ops.end(), at) &&
             plan_role(computation.node(at)) == PlanRole::kAlias && buffer_of(computation, at) != at) {
        chain.push_back(at);
        at = computation.node(at).operands[0];
      }
      if (!std::binary_search(ops.begin(), ops.end(), at)) continue;
      for (NodeId alias : chain) ops.insert(std::lower_bound(ops.begin(), ops.end(), alias), alias);
    }
  }
  return ops;
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
  Group group;
  group.ops = with_aliases(computation, instruction.ops);
  group.dominant = leading_root(computation, instruction.roots);
  const Node& dominant = computation.node(group.dominant);
  if (tiled_reduction(computation, dominant)) {
    group.mapping = tiled_mapping(graph, group.dominant, instruction.roots);
  } else if (def(dominant.op).cls == OpClass::kReduce) {
    const ReductionShape shape = reduction_shape(computation, group.dominant);
    group.mapping = thread_a_row_mapping(shape.rows, shape.cols, kLoopBlock);
  } else {
    group.mapping = element_mapping(dominant.shape.elements_count(), kLoopBlock);
  }
  for (NodeId root : instruction.roots)
    if (root != group.dominant) group.sub_dominants.push_back(root);

  KernelPlan kernel;
  kernel.ops = group.ops;
  for (NodeId op : kernel.ops) {
    kernel.levels[op] = 0;
    kernel.schemes[op] = Scheme::kLocal;
  }
  for (NodeId root : instruction.roots) kernel.schemes[root] = Scheme::kIndependent;
  for (NodeId op : kernel.ops)
    for (NodeId operand : computation.node(op).operands)
      if (const auto read = kernel.schemes.find(operand); read != kernel.schemes.end())
        read->second = Scheme::kLocal;
  kernel.groups.push_back(std::move(group));

  // What is needed at several indices is computed several times.
  std::map<NodeId, int> maps;
  for (const Evaluation& e : evaluations(computation, kernel, kernel.groups[0]).values)
    if (!e.load && ++maps[e.op] == 2 &&
        !std::binary_search(instruction.roots.begin(), instruction.roots.end(), e.op))
      kernel.schemes[e.op] = Scheme::kRecomputed;
  finish_plain_launch(computation, kernel);
  return kernel;
}

}  // namespace stitchwork::xla
