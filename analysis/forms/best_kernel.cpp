#include "analysis/forms/best_kernel.h"

#include <optional>
#include <unordered_map>
#include <utility>

#include "analysis/forms/alike.h"
#include "analysis/forms/search.h"
#include "core/base/parallel.h"

namespace stitchwork {

BestKernel best_kernel(const astitch::Nodes& nodes, const Candidate& candidate, const Device& device,
                       const astitch::Options& options) {
  astitch::KnownKernels known;
  astitch::Options with = options;
  with.known = &known;
  astitch::Searched searched = astitch::search(nodes, candidate, device, with);
  return {std::move(searched.attempts.at(static_cast<std::size_t>(searched.chosen)).kernels),
          std::move(searched.decisions)};
}

std::vector<BestKernel> best_kernels(const astitch::Nodes& nodes, std::span<const Candidate> candidates,
                                     const Device& device, const astitch::Options& options) {
  std::vector<std::optional<astitch::Likeness>> likes(candidates.size());
  if (candidates.size() > 1 && !records_all(options))
    parallel_for(likes.size(),
                 [&](std::size_t i) { likes[i] = likeness(nodes, candidates[i], options.constraints); });
  std::unordered_map<std::string, std::size_t> known;
  std::vector<std::size_t> first(candidates.size()), distinct;  // by candidate: the first that is alike
  for (std::size_t i = 0; i < candidates.size(); ++i) {
    const bool shared = likes[i] && !records(options, likes[i]->ops);  // decisions name ops
    first[i] = shared ? known.emplace(likes[i]->key, i).first->second : i;
    if (first[i] == i) distinct.push_back(i);
  }
  const astitch::Options of_shared = silent(options);
  std::vector<BestKernel> result(candidates.size());
  parallel_for(distinct.size(), [&](std::size_t d) {
    const std::size_t i = distinct[d];
    const bool shared = likes[i] && !records(options, likes[i]->ops);
    result[i] = best_kernel(nodes, candidates[i], device, shared ? of_shared : options);
  });
  for (std::size_t i = 0; i < candidates.size(); ++i) {
    if (first[i] == i) continue;
    for (const KernelPlan& kernel : result[first[i]].kernels)
      result[i].kernels.push_back(renamed(kernel, likes[first[i]]->ops, likes[i]->ops));
  }
  return result;
}

}  // namespace stitchwork
