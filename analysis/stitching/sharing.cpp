#include "analysis/stitching/sharing.h"

#include <fmt/format.h>

#include <algorithm>

#include "analysis/judge/value.h"
#include "analysis/schedule/evaluations.h"
#include "occupancy_model/barrier.h"
#include "occupancy_model/hardware.h"

namespace stitchwork::astitch {
namespace {

/// Distinct maps of one op in one group up to which it is never stored for that reason
/// (docs/planners/astitch.md); beyond kMostMaps it always is: expressions must not grow without bound.
constexpr int kFewMaps = 4;

/// What computing one element of an op takes with all it inlines, in each lane of a warp, and the bytes that
/// an element loads.
struct Cone {
  ThreadWork warp;
  double bytes = 0;
};

Cone cone_of(const Stitched& stitched, NodeId root) {
  const Nodes& nodes = *stitched.body.nodes;
  Cone cone;
  std::set<NodeId> seen{root};
  std::vector<NodeId> stack{root};
  while (!stack.empty()) {
    const NodeId op = stack.back();
    stack.pop_back();
    cone.warp += work_of_op(*nodes.computation, nodes.node(op));
    for (const NodeId operand : nodes.node(op).operands) {
      if (nodes[operand].immediate || !seen.insert(operand).second) continue;
      if (stitched.body.contains(operand) && !stitched.candidates.stored(operand)) {
        stack.push_back(operand);
      } else if (nodes[operand].elements >= nodes[root].elements) {
        cone.bytes += byte_size(nodes.node(operand).shape.dtype);  // smaller ones stay in the caches
      }
    }
  }
  return cone;
}

double barrier_us(const Device& device, const std::vector<OpGroup>& groups) {
  std::int64_t blocks = 1;
  for (const OpGroup& group : groups) blocks = std::max(blocks, group.deal.blocks());
  return grid_barrier_us(device, blocks);
}

/// Groups that evaluate each op, by index.
std::map<NodeId, std::vector<std::size_t>> evaluating_groups(const std::vector<OpGroup>& groups) {
  std::map<NodeId, std::vector<std::size_t>> result;
  for (std::size_t g = 0; g < groups.size(); ++g) {
    for (const NodeId op : groups[g].ops) result[op].push_back(g);
  }
  return result;
}

}  // namespace

std::set<NodeId> promotions_to_try(const Stitched& stitched) {
  const Body& body = stitched.body;
  const Candidates& candidates = stitched.candidates;
  const std::vector<OpGroup>& groups = stitched.groups;
  const Finalization& finalization = stitched.finalization;
  const Nodes& nodes = *body.nodes;
  const auto evaluated_by = evaluating_groups(groups);
  std::set<NodeId> result;
  for (const auto& [op, by] : evaluated_by) {
    if (by.size() < 2 || candidates.stored(op) || nodes[op].transparent || !body.members.contains(op))
      continue;
    if (finalization.levels.at(op) == 0) continue;  // computed from no Global value
    const auto& users = body.users.at(op);
    const bool feeds_another = std::any_of(users.begin(), users.end(), [&](NodeId user) {
      const auto it = evaluated_by.find(user);
      return it != evaluated_by.end() && !candidates.stored(user) && !nodes[user].transparent &&
             it->second == by;
    });
    if (!feeds_another) result.insert(op);
  }
  return result;
}

std::set<NodeId> crowding_scalars(const Stitched& stitched, const Device& device) {
  const std::vector<OpGroup>& groups = stitched.groups;
  const Finalization& finalization = stitched.finalization;
  std::map<NodeId, std::int64_t> readers;  // groups
  for (std::size_t g = 0; g < groups.size(); ++g) {
    std::set<NodeId> read;
    for (const Read& r : finalization.reads[g].reads) {
      const bool own =
          std::binary_search(groups[g].materialised.begin(), groups[g].materialised.end(), r.value);
      const bool regional = finalization.schemes.at(r.value) == Scheme::kRegional;
      if (!own && regional && (*stitched.body.nodes)[r.value].elements == 1) read.insert(r.value);
    }
    for (const NodeId value : read) ++readers[value];
  }
  std::set<NodeId> result;
  for (const auto& [value, count] : readers) {
    const double in_turn_us = static_cast<double>(count) * device.dram_latency_ns / 1e3;
    if (in_turn_us > grid_barrier_us(device, count) + device.dram_latency_ns / 1e3) result.insert(value);
  }
  return result;
}

namespace {

/// Light cones that are Global though computing them again takes less than the barrier.
bool drop_cones(const Stitched& stitched, const Device& device, Amendments& amendments) {
  const double barrier = barrier_us(device, stitched.groups);
  bool changed = false;
  for (const auto& [id, kind] : stitched.candidates.kinds) {
    if (kind != CandidateKind::kLight || stitched.finalization.schemes.at(id) != Scheme::kGlobal) continue;
    double evaluated = 0;  // elements, if every reader computed it for itself
    for (std::size_t g = 0; g < stitched.groups.size(); ++g)
      for (const Read& read : stitched.finalization.reads[g].reads)
        if (read.value == id)
          evaluated += static_cast<double>(extents(stitched.groups[g].mapping).elements());
    const double warps = evaluated / kWarp;
    const double again =
        share_us(device, cone_of(stitched, id).warp, warps, 0) - share_us(device, work_of_access(), warps, 0);
    if (again < barrier) changed |= amendments.dropped.insert(id).second;
  }
  return changed;
}

}  // namespace

bool amend(const Stitched& stitched, const Device& device, Amendments& amendments, Recorder& recorder) {
  if (drop_cones(stitched, device, amendments)) return true;
  const Body& body = stitched.body;
  const Candidates& candidates = stitched.candidates;
  const std::vector<OpGroup>& groups = stitched.groups;
  const Finalization& finalization = stitched.finalization;
  const Nodes& nodes = *body.nodes;
  const double barrier = barrier_us(device, groups);
  bool changed = false;

  const auto evaluated_by = evaluating_groups(groups);
  std::map<NodeId, int> maps;
  for (const GroupReads& group : finalization.reads) {
    for (const auto& [op, count] : group.maps) maps[op] = std::max(maps[op], count);
  }
  for (const auto& [op, by] : evaluated_by) {
    const bool several_groups = by.size() > 1;
    if (candidates.stored(op) || nodes[op].transparent || !body.members.contains(op)) continue;
    if (amendments.inlined.contains(op)) continue;
    if (!several_groups && maps[op] <= kFewMaps) continue;
    // The value to store is the last one all these readers share: not one that only feeds such a value.
    const auto& users = body.users.at(op);
    const bool feeds_another = std::any_of(users.begin(), users.end(), [&](NodeId user) {
      if (candidates.stored(user) || nodes[user].transparent || !evaluated_by.contains(user)) return false;
      return evaluated_by.at(user) == by && maps[user] >= maps[op];
    });
    if (feeds_another) continue;
    const double uses =
        static_cast<double>(std::max<std::size_t>(by.size(), static_cast<std::size_t>(maps[op])));
    const double elements = static_cast<double>(nodes[op].elements);
    const Cone cone = cone_of(stitched, op);
    const double again = (uses - 1) * elements;
    const double recompute_us = share_us(device, cone.warp, again / kWarp, again * cone.bytes);
    const double store_us =
        share_us(device, {}, 0, (uses + 1) * elements * byte_size(nodes.node(op).shape.dtype)) + barrier;
    const bool store = recompute_us > store_us || maps[op] > kMostMaps;
    recorder.add("dominants", nodes.name(op), "", [&] {
      const std::string numbers =
          fmt::format("{} groups, {} maps: recomputing takes {:.2f} us, storing {:.2f} us", by.size(),
                      maps[op], recompute_us, store_us);
      return store ? Verdict::yes("astitch.store-shared", numbers)
                   : Verdict::no("astitch.store-shared", numbers);
    });
    if (store) changed |= amendments.promoted.insert(op).second;
  }
  return changed;
}

}  // namespace stitchwork::astitch
