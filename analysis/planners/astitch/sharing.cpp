#include "analysis/planners/astitch/sharing.h"

#include <fmt/format.h>

#include <algorithm>

namespace stitchwork::astitch {
namespace {

/// Distinct maps of one op in one group up to which it is never stored for that reason
/// (docs/planners/astitch.md), and beyond which it always is: expressions must not grow without bound.
constexpr int kFewMaps = 4, kTooManyMaps = 24;
/// Reading back what is stored: the load and its index. A parameter converted again for every row it scales
/// takes no more.
/// Derived from the code printed: a load and the multiply-add of its address.
constexpr double kReadInstructions = 2;

/// What computing one element of an op costs with all it inlines: instructions, and bytes loaded.
struct ConeCost {
  double instructions = 0, bytes = 0;
};

ConeCost cone_cost(const Body& body, const Candidates& candidates, NodeId root) {
  const Nodes& nodes = *body.nodes;
  ConeCost cost;
  std::set<NodeId> seen{root};
  std::vector<NodeId> stack{root};
  while (!stack.empty()) {
    const NodeId op = stack.back();
    stack.pop_back();
    cost.instructions += static_cast<double>(instructions(nodes, op));
    for (const NodeId operand : nodes.node(op).operands) {
      if (nodes[operand].immediate || !seen.insert(operand).second) continue;
      if (body.contains(operand) && !candidates.stored(operand)) {
        stack.push_back(operand);
      } else if (nodes[operand].elements >= nodes[root].elements) {
        cost.bytes += byte_size(nodes.node(operand).shape.dtype);  // smaller ones stay in the caches
      }
    }
  }
  return cost;
}

double barrier_us(const Device& device, const std::vector<OpGroup>& groups) {
  std::int64_t blocks = 1;
  for (const OpGroup& group : groups) blocks = std::max(blocks, group.deal.blocks());
  return device.grid_barrier_us + device.grid_barrier_us_per_block * static_cast<double>(blocks);
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

double instructions_per_us(const Device& device) {
  return device.sms * static_cast<double>(device.fp32_lanes_per_sm) * device.clock_ghz * 1e3;
}
double bytes_per_us(const Device& device) { return device.dram_gb_s * device.dram_efficiency * 1e3; }

double scheme_cost_us(const Body& body, const std::vector<OpGroup>& groups, const Finalization& finalization,
                      const Device& device) {
  double bytes = 0;
  std::set<NodeId> read;
  for (const GroupReads& group : finalization.reads) {
    for (const Read& r : group.reads) {
      if (finalization.schemes.at(r.value) == Scheme::kGlobal) read.insert(r.value);
    }
  }
  for (const NodeId id : read) {
    bytes += static_cast<double>(body.nodes->bytes(id) * (body.outputs.contains(id) ? 1 : 2));
  }
  return finalization.grid_barriers * barrier_us(device, groups) + bytes / bytes_per_us(device);
}

std::set<NodeId> promotions_to_try(const Body& body, const Candidates& candidates,
                                   const std::vector<OpGroup>& groups, const Finalization& finalization) {
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

std::set<NodeId> crowding_scalars(const Body& body, const std::vector<OpGroup>& groups,
                                  const Finalization& finalization, const Device& device) {
  std::map<NodeId, std::int64_t> readers;  // groups
  for (std::size_t g = 0; g < groups.size(); ++g) {
    std::set<NodeId> read;
    for (const Read& r : finalization.reads[g].reads) {
      const bool own =
          std::binary_search(groups[g].materialised.begin(), groups[g].materialised.end(), r.value);
      const bool regional = finalization.schemes.at(r.value) == Scheme::kRegional;
      if (!own && regional && (*body.nodes)[r.value].elements == 1) read.insert(r.value);
    }
    for (const NodeId value : read) ++readers[value];
  }
  std::set<NodeId> result;
  for (const auto& [value, count] : readers) {
    const double in_turn_us = static_cast<double>(count) * device.dram_latency_ns / 1e3;
    const double barrier =
        device.grid_barrier_us + device.grid_barrier_us_per_block * static_cast<double>(count);
    if (in_turn_us > barrier + device.dram_latency_ns / 1e3) result.insert(value);
  }
  return result;
}

bool amend(const Body& body, const Candidates& candidates, const std::vector<OpGroup>& groups,
           const Finalization& finalization, const Device& device, Amendments& amendments,
           Recorder& recorder) {
  const Nodes& nodes = *body.nodes;
  const double barrier = barrier_us(device, groups);
  bool changed = false;

  for (const auto& [id, kind] : candidates.kinds) {
    if (kind != CandidateKind::kLight || finalization.schemes.at(id) != Scheme::kGlobal) continue;
    std::int64_t evaluated = 0;  // elements, if every reader computed it for itself
    for (std::size_t g = 0; g < groups.size(); ++g) {
      for (const Read& read : finalization.reads[g].reads) {
        if (read.value == id) evaluated += extents(groups[g].mapping).elements();
      }
    }
    const ConeCost cost = cone_cost(body, candidates, id);
    const double saved = std::max(0.0, cost.instructions - kReadInstructions);
    const double recompute_us = saved * static_cast<double>(evaluated) / instructions_per_us(device);
    if (recompute_us >= barrier) continue;
    changed |= amendments.dropped.insert(id).second;
  }
  if (changed) return true;

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
    const ConeCost cost = cone_cost(body, candidates, op);
    const double recompute_us =
        (uses - 1) * elements *
        std::max(cost.instructions / instructions_per_us(device), cost.bytes / bytes_per_us(device));
    const double store_us =
        (uses + 1) * elements * byte_size(nodes.node(op).shape.dtype) / bytes_per_us(device) + barrier;
    const bool store = recompute_us > store_us || maps[op] > kTooManyMaps;
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
