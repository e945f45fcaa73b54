// XLA's fusion of 2019-2020 on this graph (docs/planners/xla.md): the passes to a fixpoint, then a kernel for
// every instruction that is left.
#include "analysis/planner.h"

#include <algorithm>
#include <map>

#include "analysis/assemble.h"
#include "analysis/facts.h"
#include "analysis/xla/fusion_graph.h"
#include "core/error.h"

namespace stitchwork {
namespace {

/// Rounds until nothing changes; each round fuses at least one pair, so this only guards against a bug.
constexpr int kMaxRounds = 100;

bool becomes_kernel(const xla::FusionGraph& graph, int i) {
  const xla::Instruction& instruction = graph[i];
  if (!instruction.alive || i == graph.result()) return false;
  if (instruction.kind != xla::InstructionKind::kPlain) return true;
  const Node& node = graph.op(i);
  return plan_role(node) == PlanRole::kMemory && node.op != Op::kCopy;
}

/// A constant that only kernels read is an immediate in each of them.
bool is_only_immediate(const xla::FusionGraph& graph, int i) {
  const Computation& computation = graph.computation();
  for (NodeId root : graph[i].roots) {
    if (!is_immediate(computation, root)) return false;
    for (int reader : graph.readers(root))
      if (!becomes_kernel(graph, reader)) return false;
  }
  return true;
}

}  // namespace

namespace xla {

void mark_recomputed(std::vector<KernelPlan>& kernels) {
  std::map<NodeId, int> computed;
  for (const KernelPlan& kernel : kernels)
    for (NodeId op : kernel.ops) ++computed[op];
  for (KernelPlan& kernel : kernels) {
    const std::vector<NodeId> made = materialised(kernel);
    for (auto& [op, scheme] : kernel.schemes)
      if (computed[op] > 1 && !std::binary_search(made.begin(), made.end(), op)) scheme = Scheme::kRecomputed;
  }
}

void run_passes(FusionGraph& fusion, Recorder& recorder) {
  for (int round = 0;; ++round) {
    SW_CHECK(round < kMaxRounds, "XLA's fusion passes do not come to an end");
    bool changed = instruction_fusion(fusion, false, recorder);
    changed = instruction_fusion(fusion, true, recorder) || changed;
    changed = fusion_merger(fusion, recorder) || changed;
    changed = multi_output_fusion(fusion, recorder) || changed;
    if (!changed) break;
  }
}

std::vector<RegionKernel> lower_all(const Graph& graph, const FusionGraph& fusion) {
  std::vector<RegionKernel> kernels;
  for (int i = 0; i < fusion.size(); ++i)
    if (becomes_kernel(fusion, i) && !is_only_immediate(fusion, i))
      kernels.push_back({fusion[i].region, lower_instruction(graph, fusion[i])});
  return kernels;
}

}  // namespace xla

FusionPlan plan_xla(const Graph& graph, const Device& device, const PlanOptions& options) {
  xla::FusionGraph fusion(graph, constraints(graph, device, options.edits));
  xla::Recorder recorder(options.record_decisions, graph.entry_computation());
  xla::run_passes(fusion, recorder);
  std::vector<KernelPlan> kernels;
  for (xla::RegionKernel& lowered : xla::lower_all(graph, fusion))
    kernels.push_back(std::move(lowered.kernel));
  xla::mark_recomputed(kernels);
  FusionPlan plan = assemble(graph, device, "xla", std::move(kernels));
  plan.decisions = recorder.take();
  return plan;
}

}  // namespace stitchwork
