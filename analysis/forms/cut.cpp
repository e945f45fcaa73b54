#include "analysis/forms/cut.h"

#include <algorithm>
#include <iterator>
#include <optional>
#include <set>
#include <utility>

#include "analysis/forms/alike.h"
#include "analysis/forms/search.h"

namespace stitchwork::astitch {

std::vector<NodeId> first_part(const Stitched& stitched, const Options& options) {
  const auto& levels = stitched.finalization.levels;
  if (stitched.finalization.grid_barriers < options.max_phases) {
    // Too many groups: half of the candidates each.
    auto middle = stitched.candidates.kinds.begin();
    std::advance(middle, static_cast<std::ptrdiff_t>(stitched.candidates.kinds.size() / 2));
    std::vector<NodeId> part;
    for (const NodeId id : stitched.body.members) {
      if (id < middle->first) part.push_back(id);
    }
    return part;
  }
  // Too many phases: the first ones, with what they inline. Where many such cuts will follow, half of them
  // are in each part, so that not every one looks at all the phases behind it.
  const int step = options.max_phases - 1, cuts = step > 0 ? stitched.finalization.grid_barriers / step : 0;
  // A choice, not measured: few cuts cost little, and leave the parts' amendments where they were.
  constexpr int kManyCuts = 8;
  const int behind = (cuts >= kManyCuts ? cuts / 2 : 1) * step;
  std::set<NodeId> part;
  for (const OpGroup& group : stitched.groups) {
    std::vector<NodeId> stack;
    for (const NodeId id : group.materialised) {
      if (levels.at(id) < behind) stack.push_back(id);
    }
    while (!stack.empty()) {
      const NodeId id = stack.back();
      stack.pop_back();
      if (!stitched.body.contains(id) || !part.insert(id).second) continue;
      const auto& operands = stitched.body.nodes->node(id).operands;
      stack.insert(stack.end(), operands.begin(), operands.end());
    }
  }
  std::vector<NodeId> result;
  for (const NodeId id : part) {
    if (stitched.body.members.contains(id)) result.push_back(id);
  }
  return result;
}

bool separates(const Constraints& constraints, const StitchOp& op, const std::vector<NodeId>& part) {
  return std::any_of(constraints.together.begin(), constraints.together.end(), [&](const auto& pair) {
    const auto in = [](const std::vector<NodeId>& ids, NodeId id) {
      return std::binary_search(ids.begin(), ids.end(), id);
    };
    return in(op.members, pair.first) && in(op.members, pair.second) &&
           in(part, pair.first) != in(part, pair.second);
  });
}

void cut(const Nodes& nodes, const StitchOp& op, const Device& device, const Options& options,
         const std::vector<NodeId>& part, Attempt& attempt) {
  std::vector<NodeId> rest;
  std::set_difference(op.members.begin(), op.members.end(), part.begin(), part.end(),
                      std::back_inserter(rest));
  for (const auto& members : {part, rest})
    for (const StitchOp& smaller : connected_parts(nodes, members)) {
      std::optional<Likeness> like;
      if (options.known != nullptr && !records_all(options))
        like = likeness(nodes, smaller, options.constraints);
      if (like && records(options, like->ops)) like.reset();  // decisions name ops
      std::optional<std::vector<KernelPlan>> kernels;
      if (like) kernels = options.known->find(*like);
      if (!kernels) {
        Searched& searched =
            attempt.parts.emplace_back(search(nodes, smaller, device, like ? silent(options) : options));
        kernels = searched.best().kernels;
        std::move(searched.decisions.begin(), searched.decisions.end(),
                  std::back_inserter(attempt.decisions));
        if (like) options.known->add(std::move(*like), *kernels);
      }
      std::move(kernels->begin(), kernels->end(), std::back_inserter(attempt.kernels));
    }
}

}  // namespace stitchwork::astitch
