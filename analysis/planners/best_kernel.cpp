#include "analysis/planners/best_kernel.h"

#include <utility>

#include "analysis/forms/search.h"

namespace stitchwork {

BestKernel best_kernel(const astitch::Nodes& nodes, const Candidate& candidate, const Device& device,
                       const astitch::Options& options) {
  astitch::Searched searched = astitch::search(nodes, candidate, device, options);
  return {std::move(searched.attempts.at(static_cast<std::size_t>(searched.chosen)).kernels),
          std::move(searched.decisions)};
}

}  // namespace stitchwork
