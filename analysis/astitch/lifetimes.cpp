#include "analysis/astitch/lifetimes.h"

#include <algorithm>
#include <numeric>

#include "analysis/launch.h"

namespace stitchwork::astitch {
namespace {

/// The values `reader` takes from shared memory in its phase, through what it inlines.
std::set<NodeId> regional_reads(const Body& body, const Finalization& finalization, NodeId reader) {
  std::set<NodeId> reads, seen;
  std::vector<NodeId> stack{reader};
  while (!stack.empty()) {
    const NodeId op = stack.back();
    stack.pop_back();
    for (const NodeId operand : body.nodes->node(op).operands) {
      const auto scheme = finalization.schemes.find(operand);
      if (scheme == finalization.schemes.end() || !seen.insert(operand).second) continue;
      const bool here = finalization.levels.at(operand) == finalization.levels.at(reader);
      const Scheme had = here ? finalization.scheme_in_phase(operand) : scheme->second;
      if (had == Scheme::kRegional)
        reads.insert(operand);
      else if (had != Scheme::kGlobal)
        stack.push_back(operand);
    }
  }
  return reads;
}

}  // namespace

bool Lifetime::meets(const Lifetime& other) const {
  return level == other.level && lane == other.lane && loop == other.loop && first <= other.last &&
         other.first <= last;
}

SharedLifetimes shared_lifetimes(const Body& body, const std::vector<OpGroup>& groups,
                                 const Finalization& finalization, int block) {
  const Nodes& nodes = *body.nodes;
  std::map<NodeId, std::size_t> owner;  // ascending: operands first
  for (std::size_t g = 0; g < groups.size(); ++g)
    for (const NodeId id : groups[g].materialised) owner[id] = g;

  std::vector<std::size_t> parent(groups.size());
  std::iota(parent.begin(), parent.end(), 0);
  const auto find = [&](std::size_t g) {
    while (parent[g] != g) g = parent[g];
    return g;
  };
  std::map<NodeId, int> steps;
  SharedLifetimes result;
  for (const auto& [id, group] : owner) {
    int step = 0;
    const std::set<NodeId> reads = regional_reads(body, finalization, id);
    for (const NodeId value : reads) {
      step = std::max(step, steps.at(value) + 1);
      const std::size_t a = find(group), b = find(owner.at(value));
      parent[std::max(a, b)] = std::min(a, b);
    }
    steps[id] = step;
    for (const NodeId value : reads) {
      Lifetime& life = result.values.at(value);
      if (life.last_reader != kNoNode && life.last >= step) continue;
      life.last = step;
      life.last_reader = id;
    }
    if (!finalization.in_shared(id)) continue;
    Lifetime& life = result.values[id];
    life.first = life.last = step;
  }
  const auto place = [&](NodeId id, Lifetime& life) {
    life.level = finalization.levels.at(id);
    life.lane = groups[owner.at(id)].lane;
    life.loop = find(owner.at(id));
  };
  for (auto& [id, life] : result.values) place(id, life);
  for (const auto& [id, group] : owner) {
    const ThreadMapping& mapping = groups[group].mapping;
    // Accumulators across the rows use it behind the tasks.
    if (is_across(groups[group], id) || !reduces_domain(*nodes.computation, id, mapping)) continue;
    if (reduction_workspace_bytes(mapping, block, nodes.node(id).shape.dtype) == 0) continue;
    Lifetime life;
    place(id, life);
    life.first = life.last = steps.at(id);
    result.workspace.push_back(life);
  }
  return result;
}

}  // namespace stitchwork::astitch
