// XLA of today on this graph (docs/planners/xla-today.md): normalisations, priority fusion, multi-output
// fusion, then a kernel for every instruction that is left.
#include "analysis/planners/imported.h"
#include "analysis/planners/planner.h"
#include "analysis/planners/xla/fusion_graph.h"

namespace stitchwork {
namespace {

/// Of compute capability 8 on Triton, to which XLA gives normalisations, has code.
constexpr int kFirstOfTriton = 8;

const char* emitter(xla::InstructionKind kind) {
  switch (kind) {
    case xla::InstructionKind::kTiles:
      return "kCustom";
    case xla::InstructionKind::kInput:
      return "kInput";
    default:
      return "kLoop";
  }
}

}  // namespace

FusionPlan plan_xla_today(const Graph& graph, const Device& device, const PlanOptions& options) {
  const Computation& computation = graph.entry_computation();
  xla::Recorder recorder(options.record_decisions, computation);
  xla::FusionGraph fusion(graph, constraints(graph, device, options.edits));
  if (device.cc_major >= kFirstOfTriton) xla::fuse_normalizations(fusion, recorder);
  xla::priority_fusion(fusion, device, recorder);
  xla::multi_output_fusion_of_today(fusion, recorder);
  std::vector<ImportedKernel> fusions;
  for (int i = 0; i < fusion.size(); ++i) {
    if (!xla::becomes_kernel(fusion, i)) continue;
    const xla::Instruction& one = fusion[i];
    fusions.push_back(
        {computation.node(one.roots.back()).name, emitter(one.kind), fusion.sorted_ops(i), one.roots});
  }
  FusionPlan plan =
      plan_fusions(graph, device, {"xla-today", "XLA's rules of today"}, fusions, options.record_decisions);
  std::vector<Decision> decisions = recorder.take();
  decisions.insert(decisions.end(), plan.decisions.begin(), plan.decisions.end());
  plan.decisions = std::move(decisions);
  return plan;
}

}  // namespace stitchwork
