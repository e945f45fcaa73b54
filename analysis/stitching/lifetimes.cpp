#include "analysis/stitching/lifetimes.h"

#include "analysis/schedule/launch.h"
#include "analysis/schedule/steps.h"

namespace stitchwork::astitch {
namespace {

/// The values `reader` takes from shared memory in its phase, through what it inlines.
std::set<NodeId> regional_reads(const Body& body, const Finalization& finalization, NodeId reader) {
  const int phase = finalization.levels.at(reader);
  return shared_reads(*body.nodes->computation, body.nodes->node(reader).operands, [&](NodeId op) {
    const auto scheme = finalization.schemes.find(op);
    if (scheme == finalization.schemes.end()) return Had::kStored;
    const bool here = finalization.levels.at(op) == phase;
    const Scheme had = here ? finalization.scheme_in_phase(op) : scheme->second;
    return had == Scheme::kRegional ? Had::kShared : had == Scheme::kGlobal ? Had::kStored : Had::kComputed;
  });
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

  TaskSteps steps;
  for (const auto& [id, group] : owner)
    steps.add(id, static_cast<int>(group), regional_reads(body, finalization, id));
  const auto lifetime = [&](NodeId id) {
    const TaskSteps::Made& made = steps.at(id);
    Lifetime life;
    life.level = finalization.levels.at(id);
    life.lane = groups[owner.at(id)].lane;
    life.loop = static_cast<std::size_t>(steps.loop(made.group));
    life.first = life.last = made.step;
    return life;
  };
  SharedLifetimes result;
  for (const auto& [id, made] : steps.ops()) {
    if (!finalization.in_shared(id)) continue;
    Lifetime life = lifetime(id);
    life.last = made.last;
    life.last_reader = made.last_reader;
    result.values.emplace(id, life);
  }
  for (const auto& [id, group] : owner) {
    const Mapping& mapping = groups[group].mapping;
    // Accumulators across the rows use it behind the tasks.
    if (is_across(groups[group], id) || !reduces_domain(*nodes.computation, id, mapping)) continue;
    if (reduction_workspace_bytes(mapping, block, nodes.node(id).shape.dtype) == 0) continue;
    result.workspace.push_back(lifetime(id));
  }
  return result;
}

}  // namespace stitchwork::astitch
