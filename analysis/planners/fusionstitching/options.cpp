#include "analysis/planners/fusionstitching/options.h"

#include <algorithm>

#include "analysis/schedule/launch.h"

namespace stitchwork::fusionstitching {
namespace {

// CUDA Programming Guide: threads a block, on every device.
constexpr int kMaxBlock = 1024;

}  // namespace

Options read_options(const Graph& graph, const Device& device, const PlanOptions& options) {
  Options result;
  const auto is = [&](const char* knob, std::string_view value) { return options.knobs.at(knob) == value; };
  result.products = is("products", "on");
  result.device_shared_limit = is("shared_limit", "device");
  result.shared_reuse = is("shared_reuse", "on");
  result.tuned = is("mapping", "tuned");
  result.record_decisions = options.record_decisions;
  result.constraints = constraints(graph, device, options.edits);
  return result;
}

std::int64_t shared_limit(const Options& options, const Device& device, std::int64_t paper_bytes) {
  // The largest workspace: an accumulator a thread of the widest type (launch.h reduction_workspace_bytes).
  const std::int64_t workspace = std::int64_t{kMaxBlock} * accumulator_bytes(DType::kF64);
  const std::int64_t most = device.shared_bytes_per_block_default - workspace;
  return options.device_shared_limit ? most : std::min(paper_bytes, most);
}

}  // namespace stitchwork::fusionstitching
