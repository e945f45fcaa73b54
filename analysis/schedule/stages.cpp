#include "analysis/schedule/stages.h"

#include <algorithm>
#include <set>
#include <unordered_set>
#include <utility>

#include "analysis/plan/assemble.h"
#include "core/base/sorted.h"

namespace stitchwork {

Stages::Stages(const Computation& computation, const KernelPlan& kernel, int level)
    : computation_(computation), kernel_(kernel), level_(level), made_(materialised(kernel)) {}

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

std::unordered_map<NodeId, int> Stages::first_reads(const std::vector<NodeId>& ops) {
  std::vector<std::pair<int, NodeId>> by_stage;
  for (const NodeId op : ops) by_stage.emplace_back(of(op), op);
  std::sort(by_stage.begin(), by_stage.end());
  std::unordered_map<NodeId, int> first;
  std::unordered_set<NodeId> followed;
  for (const auto& [stage, op] : by_stage) {
    std::vector<NodeId> open{op};
    while (!open.empty()) {
      const NodeId id = open.back();
      open.pop_back();
      first.try_emplace(id, stage);
      if (!is_here(id) || (id != op && is_shared(id)) || !followed.insert(id).second) continue;
      const std::vector<NodeId>& operands = computation_.node(id).operands;
      open.insert(open.end(), operands.begin(), operands.end());
    }
  }
  return first;
}

std::vector<NodeId> Stages::shared_reads(NodeId op) const {
  std::vector<NodeId> found, open{op};
  std::set<NodeId> seen;
  while (!open.empty()) {
    const NodeId id = open.back();
    open.pop_back();
    if (!is_here(id) || !seen.insert(id).second) continue;
    if (is_shared(id)) {
      insert_sorted(found, id);
      continue;
    }
    const std::vector<NodeId>& operands = computation_.node(id).operands;
    open.insert(open.end(), operands.begin(), operands.end());
  }
  return found;
}

bool Stages::is_here(NodeId op) const {
  const auto level = kernel_.levels.find(op);
  if (!contains_sorted(kernel_.ops, op) || level == kernel_.levels.end()) return false;
  return level->second >= level_ || !contains_sorted(made_, op);
}

bool Stages::is_shared(NodeId op) const {
  const auto level = kernel_.levels.find(op);
  return level != kernel_.levels.end() && level->second == level_ && contains_sorted(made_, op) &&
         kernel_.schemes.contains(op) && scheme_in_phase(kernel_, op) == Scheme::kRegional;
}

}  // namespace stitchwork
