#include "analysis/planners/fusionstitching/ilp/options.h"

namespace stitchwork::fusionstitching {

IlpOptions read_ilp_options(const Graph& graph, const Device& device, const PlanOptions& options) {
  const auto is = [&](const char* knob, std::string_view value) { return options.knobs.at(knob) == value; };
  IlpOptions result;
  result.products = is("products", "on");
  result.optimal = is("solver", "ilp");
  result.score = is("score", "mixed")    ? ScoreKind::kMixed
                 : is("score", "volume") ? ScoreKind::kVolume
                                         : ScoreKind::kExecution;
  result.launch_us = is("launch_cost", "paper") ? kPaperLaunchUs : device.launch_gap_us;
  result.exploratory = is("exploratory", "on");
  result.packing = is("packing", "on");
  result.tuned = is("mapping", "tuned");
  result.shared_reuse = is("shared_reuse", "on");
  result.shared_limit =
      is("shared_limit", "paper") ? kPaperSharedBytes : device.shared_bytes_per_block_default;
  result.constraints = constraints(graph, device, options.edits);
  result.has_edits = !options.edits.empty();
  return result;
}

}  // namespace stitchwork::fusionstitching
