#include "analysis/explain/quality.h"

#include <array>

namespace stitchwork {

Quality quality(const Graph& graph, const Device& device, const PlanOptions& options) {
  Quality result;
  result.bound = kernel_bound(graph);
  for (const char* name : {"unfused", "xla"})
    result.kernels[name] = make_plan(graph, device, name).counts.memory_kernels;
  PlanOptions recorded = options;
  recorded.record_decisions = true;
  const FusionPlan plan = make_plan(graph, device, "astitch", recorded);
  const int kernels = result.kernels["astitch"] = plan.counts.memory_kernels;
  for (const Decision& decision : plan.decisions)
    if (decision.step == "scope" && !decision.verdict) ++result.refusals[decision.verdict.rule];
  if (result.bound.kernels > 0) result.ratio = static_cast<double>(kernels) / result.bound.kernels;
  if (const int xla = result.kernels["xla"]; xla > 0)
    result.reduction = 1.0 - static_cast<double>(kernels) / xla;
  return result;
}

std::span<const PaperCount> paper_counts() {
  // AStitch, Table 3.
  static constexpr std::array<PaperCount, 5> kTable3 = {{{"crnn", "CRNN", 986, 297},
                                                         {"asr", "ASR", 496, 218},
                                                         {"bert", "BERT", 64, 26},
                                                         {"transformer", "Transformer", 10132, 2578},
                                                         {"dien", "DIEN", 2579, 811}}};
  return kTable3;
}

}  // namespace stitchwork
