#include "analysis/planners/fusionstitching/deep/options.h"

namespace stitchwork::fusionstitching::deep {
namespace {

/// FusionStitching 2018, section 5.1.2: "20KB".
constexpr std::int64_t kPaperBytes = 20 * 1024;

}  // namespace

Options read_options(const Graph& graph, const Device& device, const PlanOptions& options) {
  Options result{fusionstitching::read_options(graph, device, options)};
  result.roof = options.knobs.at("roof") == "layer" ? Roof::kLayer : Roof::kPath;
  result.elementwise_fusion = options.knobs.at("elementwise_fusion") == "on";
  result.size_shrinking = options.knobs.at("size_shrinking") == "on";
  result.shared_bytes = shared_limit(result, device, kPaperBytes);
  return result;
}

}  // namespace stitchwork::fusionstitching::deep
