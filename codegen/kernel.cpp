#include "codegen/kernel.h"

#include <algorithm>

#include "codegen/table.h"
#include "core/error.h"

namespace stitchwork {
namespace {

/// Throws Error naming the op where the planner may fuse what no kernel can compute.
void require_generated(const Graph& graph, const Node& node) {
  const auto refuse = [&](const std::string& why) {
    throw Error(graph.source, node.line, 0,
                fmt::format("{} ({}) cannot be executed: {}", node.name, def(node.op).name, why),
                "it can be planned and explained; remove it or replace it to run the model");
  };
  if (!is_executable(node.shape.dtype))
    refuse(fmt::format("{} has no generated code", name(node.shape.dtype)));
  for (NodeId operand : node.operands)
    if (const Shape& shape = graph.entry_computation().node(operand).shape;
        !shape.is_tuple && !is_executable(shape.dtype))
      refuse(fmt::format("{} has no generated code", name(shape.dtype)));
  if ((node.op == Op::kReduce || node.op == Op::kReduceWindow) && !simple_reducer(graph, applied(node)))
    refuse(fmt::format("'{}' is not one commutative operation", graph.computation(applied(node)).name));
}

}  // namespace

Schedule lower(const Graph& graph, const KernelPlan& plan) {
  for (NodeId op : plan.ops) require_generated(graph, graph.entry_computation().node(op));
  return build_schedule(graph, plan);
}

std::vector<KernelArgument> kernel_arguments(const Schedule& kernel) {
  std::vector<KernelArgument> arguments;
  const KernelTable table = kernel_table(kernel);
  for (const MemorySpace space : {MemorySpace::kGlobalInput, MemorySpace::kGlobalOutput}) {
    const std::size_t first = arguments.size();
    for (std::size_t b = 0; b < kernel.buffers.size(); ++b) {
      const Buffer& buffer = kernel.buffers[b];
      if (buffer.space != space || table.holds[b]) continue;
      arguments.push_back(
          {space == MemorySpace::kGlobalInput ? KernelArgument::Kind::kInput : KernelArgument::Kind::kOutput,
           buffer.op});
    }
    std::sort(arguments.begin() + static_cast<std::ptrdiff_t>(first), arguments.end(),
              [](const KernelArgument& a, const KernelArgument& b) { return a.op < b.op; });
  }
  if (kernel.launch.scratch_bytes > 0) arguments.push_back({KernelArgument::Kind::kScratch, kNoNode});
  if (kernel.launch.grid_barriers > 0) arguments.push_back({KernelArgument::Kind::kBarrier, kNoNode});
  if (!table.bytes.empty()) arguments.push_back({KernelArgument::Kind::kTable, kNoNode});
  return arguments;
}

}  // namespace stitchwork
