#include "analysis/planners/fusionstitching/ilp/options.h"

namespace stitchwork::fusionstitching {

IlpOptions read_ilp_options(const Graph& graph, const Device& device, const PlanOptions& options) {
  const auto is = [&](const char* knob, std::string_view value) { return options.knobs.at(knob) == value; };
  IlpOptions result{read_options(graph, device, options)};
  result.optimal = is("solver", "ilp");
  result.score = is("score", "mixed")    ? ScoreKind::kMixed
                 : is("score", "volume") ? ScoreKind::kVolume
                                         : ScoreKind::kExecution;
  result.launch = is("launch_cost", "paper")
                      ? LaunchCost{kPaperLaunchUs, kPaperLaunchUs}
                      : LaunchCost{device.launch_gap_us, device.launch_gap_us + device.launch_us};
  result.exploratory = is("exploratory", "on");
  result.remainders = is("remainders", "on");
  result.packing = is("packing", "on");
  result.shared_bytes = shared_limit(result, device, kPaperSharedBytes);
  return result;
}

}  // namespace stitchwork::fusionstitching
