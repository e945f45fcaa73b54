// XLA's fusion of 2019-2020 on this graph (docs/planners/xla.md): the passes to a fixpoint, then a kernel for
// every instruction that is left.
#include "analysis/planners/planner.h"

#include "analysis/facts/facts.h"
#include "analysis/plan/assemble.h"
#include "analysis/planners/xla/fusion_graph.h"
#include "analysis/schedule/inlined_kernel.h"
#include "core/base/error.h"

namespace stitchwork {
namespace xla {
namespace {

/// Rounds until nothing changes; each round fuses at least one pair, so this only guards against a bug.
/// A choice, not measured: far more rounds than graphs are deep in fusions.
constexpr int kMaxRounds = 100;

bool is_kernel(const FusionGraph& graph, int i) {
  const Instruction& instruction = graph[i];
  if (!instruction.alive || i == graph.result()) return false;
  if (instruction.kind != InstructionKind::kPlain) return true;
  const Node& node = graph.op(i);
  return plan_role(node) == PlanRole::kMemory && node.op != Op::kCopy;
}

/// A constant that only kernels read is an immediate in each of them.
bool is_only_immediate(const FusionGraph& graph, int i) {
  const Computation& computation = graph.computation();
  for (NodeId root : graph[i].roots) {
    if (!is_immediate(computation, root)) return false;
    for (int reader : graph.readers(root))
      if (!is_kernel(graph, reader)) return false;
  }
  return true;
}

}  // namespace

bool becomes_kernel(const FusionGraph& graph, int i) {
  return is_kernel(graph, i) && !is_only_immediate(graph, i);
}

std::vector<Instruction> fused_kernels(const Graph& graph, const Constraints& constraints, Recorder& recorder,
                                       const std::vector<int>& regions) {
  FusionGraph fusion(graph, constraints, regions);
  for (int round = 0;; ++round) {
    SW_CHECK(round < kMaxRounds, "XLA's fusion passes do not come to an end");
    bool changed = instruction_fusion(fusion, false, recorder);
    changed = instruction_fusion(fusion, true, recorder) || changed;
    changed = fusion_merger(fusion, recorder) || changed;
    changed = multi_output_fusion(fusion, recorder) || changed;
    if (!changed) break;
  }
  std::vector<Instruction> kernels;
  for (int i = 0; i < fusion.size(); ++i)
    if (becomes_kernel(fusion, i)) {
      kernels.push_back(fusion[i]);
      kernels.back().ops = fusion.sorted_ops(i);
    }
  return kernels;
}

}  // namespace xla

FusionPlan plan_xla(const Graph& graph, const Device& device, const PlanOptions& options) {
  xla::Recorder recorder(options.record_decisions, graph.entry_computation());
  std::vector<KernelPlan> kernels;
  for (const xla::Instruction& fused :
       xla::fused_kernels(graph, constraints(graph, device, options.edits), recorder))
    kernels.push_back(xla::lower_instruction(graph, fused));
  mark_recomputed(kernels);
  FusionPlan plan = assemble(graph, device, "xla", std::move(kernels));
  plan.decisions = recorder.take();
  return plan;
}

}  // namespace stitchwork
