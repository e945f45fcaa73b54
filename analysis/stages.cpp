#include "analysis/stages.h"

#include <algorithm>
#include <set>
#include <vector>

#include "core/sorted.h"

namespace stitchwork {

int Stages::of(NodeId op) {
  if (const auto known = known_.find(op); known != known_.end()) return known->second;
  int stage = 0;
  if (is_here(op))
    for (const NodeId operand : computation_.node(op).operands)
      stage = std::max(stage, of(operand) + (is_shared(operand) ? 1 : 0));
  return known_[op] = stage;
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
