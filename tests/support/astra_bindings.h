// All that an update tree could be bound to, for comparisons with trying everything.
#pragma once

#include <utility>
#include <vector>

#include "analysis/planners/astra/tree.h"

namespace stitchwork::testing {

inline std::vector<astra::Bindings> everything(const astra::TreeNode& node) {
  std::vector<astra::Bindings> result;
  if (node.mode == astra::TreeMode::kVariable || node.mode == astra::TreeMode::kFork) {
    for (std::size_t o = 0; o < node.options.size(); ++o)
      for (astra::Bindings& below : node.mode == astra::TreeMode::kFork ? everything(node.children[o])
                                                                        : std::vector<astra::Bindings>(1)) {
        below[node.name] = node.options[o];
        result.push_back(std::move(below));
      }
    return result;
  }
  result.emplace_back();
  for (const astra::TreeNode& child : node.children) {
    std::vector<astra::Bindings> longer;
    for (const astra::Bindings& a : result)
      for (const astra::Bindings& b : everything(child)) {
        longer.push_back(a);
        longer.back().insert(b.begin(), b.end());
      }
    result = std::move(longer);
  }
  return result;
}

}  // namespace stitchwork::testing
