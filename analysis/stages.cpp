#include "analysis/stages.h"

#include <algorithm>
#include <set>
#include <vector>

#include "core/sorted.h"

namespace stitchwork {

int Stages::of(NodeId op) {
  std::vector<NodeId> open{op};  // chains are as long as the kernel
  while (!open.empty()) {
    const NodeId id = open.back();
    if (known_.contains(id)) {
      open.pop_back();
      continue;
    }
    int stage = 0;
    if (is_here(id))
      for (const NodeId operand : computation_.node(id).operands) {
        if (const auto known = known_.find(operand); known == known_.end())
          open.push_back(operand);
        else
          stage = std::max(stage, known->second + (is_shared(operand) ? 1 : 0));
      }
    if (open.back() != id) continue;  // its operands first
    known_[id] = stage;
    open.pop_back();
  }
  return known_.at(op);
}

bool Stages::reads(NodeId op, NodeId on) const {
  std::set<NodeId> seen{op};
  std::vector<NodeId> open{op};
  while (!open.empty()) {
    const NodeId id = open.back();
    open.pop_back();
    if (id == on) return true;
    if (!is_here(id) || (id != op && is_shared(id))) continue;
    for (const NodeId operand : computation_.node(id).operands)
      if (seen.insert(operand).second) open.push_back(operand);
  }
  return false;
}

bool Stages::is_here(NodeId op) const {
  const auto level = kernel_.levels.find(op);
  return contains_sorted(kernel_.ops, op) && level != kernel_.levels.end() && level->second == level_ &&
         kernel_.schemes.contains(op);
}

bool Stages::is_shared(NodeId op) const {
  return is_here(op) && scheme_in_phase(kernel_, op) == Scheme::kRegional;
}

}  // namespace stitchwork
