#include "analysis/stitching/merging.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <tuple>

namespace stitchwork::astitch {
namespace {

/// Values this small are read everywhere (biases, scalars): sharing one says nothing about locality.
/// A choice, not measured: 4 KB stay in an SM's L1.
constexpr std::int64_t kJoiningElements = 1024;

/// A scalar in every element: who reads it shares the scalar with others, and no more.
bool repeats_a_scalar(const Nodes& nodes, NodeId id) {
  const Node& node = nodes.node(id);
  return nodes[id].transparent && nodes[id].elements > 1 && !node.operands.empty() &&
         nodes[node.operands[0]].elements == 1;
}

/// Whether reading `operand` makes `reader` part of its group. A small value still joins a reader of the same
/// size that the kernel computes from it (the update of a bias): they are one loop, not a value read
/// everywhere.
bool joins(const Body& body, const Candidates& candidates, NodeId reader, NodeId operand) {
  const Nodes& nodes = *body.nodes;
  if (candidates.stored(operand) || nodes[operand].immediate) return false;
  if (repeats_a_scalar(nodes, operand)) return false;
  if (nodes[operand].elements > kJoiningElements) return true;
  return body.contains(operand) && nodes[reader].elements == nodes[operand].elements;
}

/// What the materialised ops of a group evaluate: everything above them up to stored values.
std::vector<NodeId> evaluated_ops(const Body& body, const Candidates& candidates,
                                  const std::vector<NodeId>& materialised) {
  std::set<NodeId> seen(materialised.begin(), materialised.end());
  std::vector<NodeId> stack(materialised);
  while (!stack.empty()) {
    const NodeId reader = stack.back();
    stack.pop_back();
    for (const NodeId operand : body.nodes->node(reader).operands) {
      if (!body.contains(operand) || candidates.stored(operand)) continue;
      if (body.nodes->facts[static_cast<std::size_t>(operand)].immediate) continue;
      if (seen.insert(operand).second) stack.push_back(operand);
    }
  }
  return {seen.begin(), seen.end()};
}

/// Whether the cols of the domain are what the reduction `id` sums over: its operand lies in the domain one
/// to one, and where it does its kept dimensions are those of the result. Operands of products are read
/// wherever they lie.
bool reduces_along_rows(const Nodes& nodes, NodeId id, const OpGroup& group) {
  const Node& node = nodes.node(id);
  if (is_product(node)) return true;
  const auto operand = group.placements->find(node.operands[0]);
  if (operand == group.placements->end() || operand->second.coverage != Coverage::kFull) return false;
  const IndexMap& read = operand->second.map;
  std::vector<bool> reduced(read.results.size(), false);
  for (const std::int64_t d : node.attrs.dimensions) reduced[static_cast<std::size_t>(d)] = true;
  const IndexMap& result = group.placements->at(id).map;
  std::size_t kept = 0;
  for (std::size_t d = 0; d < reduced.size(); ++d) {
    if (reduced[d]) continue;
    if (kept >= result.results.size() || read.results[d] != result.results[kept++]) return false;
  }
  return true;
}

/// Whether `id` may be materialised under the mapping: each element (or row) exactly once.
Verdict covered(const Nodes& nodes, const Candidates& candidates, NodeId id, const OpGroup& group) {
  const auto it = group.placements->find(id);
  if (it == group.placements->end() || it->second.coverage == Coverage::kPartial) {
    return Verdict::no("astitch.propagation",
                       fmt::format("the mapping of {} does not propagate to it", nodes.name(group.dominant)));
  }
  if (it->second.coverage == Coverage::kCols && candidates.across.contains(id)) return Verdict::yes();
  const auto [rows, cols] = extents(group.mapping);
  if (nodes[id].reduction) {
    const ReductionShape& shape = *nodes[id].reduction;
    if (it->second.coverage != Coverage::kRows || shape.rows != rows || shape.cols != cols) {
      return Verdict::no("astitch.reduction-domain",
                         fmt::format("it reduces [{}, {}], {} [{}, {}]", shape.rows, shape.cols,
                                     nodes.name(group.dominant), rows, cols));
    }
    if (!reduces_along_rows(nodes, id, group)) {
      return Verdict::no("astitch.reduction-domain",
                         fmt::format("it reduces other dimensions than {}", nodes.name(group.dominant)));
    }
    return Verdict::yes();
  }
  if (it->second.coverage == Coverage::kRows && segments(group.mapping) > 1) {
    return Verdict::no("astitch.split-rows",
                       fmt::format("the rows of {} are split over {} blocks", nodes.name(group.dominant),
                                   segments(group.mapping)));
  }
  return Verdict::yes();
}

OpGroup propagated(const Body& body, const Candidates& candidates, NodeId dominant,
                   std::vector<NodeId> materialised, const Dealt& dealt) {
  OpGroup group;
  group.dominant = dominant;
  group.materialised = std::move(materialised);
  group.mapping = dealt.mapping;
  group.deal = dealt.deal;
  group.ops = evaluated_ops(body, candidates, group.materialised);
  group.placements = propagate(*body.nodes->computation, dominant, group.mapping, group.ops);
  group.elementwise = std::none_of(group.materialised.begin(), group.materialised.end(),
                                   [&](NodeId id) { return (*body.nodes)[id].reduction.has_value(); });
  return group;
}

/// Preference as final dominant: reduce over heavy over output, then the larger input, then the latest.
/// Before all, a reduction whose split an override sets: the group has its dominant's mapping. A reduction
/// that may leave partials across another's rows lets that one dominate.
std::tuple<int, std::int64_t, NodeId> rank(const Nodes& nodes, const Candidates& candidates,
                                           const MappingLimits& limits, NodeId id) {
  const CandidateKind kind = candidates.kinds.at(id);
  const int order = wanted_split(limits, id) > 0     ? 4
                    : candidates.across.contains(id) ? 2
                    : kind == CandidateKind::kReduce ? 3
                    : kind == CandidateKind::kOutput ? 0
                                                     : 1;
  std::int64_t input = nodes[id].elements;
  for (const NodeId operand : nodes.node(id).operands) input = std::max(input, nodes[operand].elements);
  return {order, input, id};
}

}  // namespace

bool is_across(const OpGroup& group, NodeId id) {
  const auto placed = group.placements->find(id);
  return placed != group.placements->end() && placed->second.coverage == Coverage::kCols;
}

Verdict make_group(const Body& body, const Candidates& candidates, NodeId dominant,
                   std::vector<NodeId> materialised, const Dealt& dealt, OpGroup& group) {
  group = propagated(body, candidates, dominant, std::move(materialised), dealt);
  for (const NodeId id : group.materialised) {
    if (id == dominant) continue;
    if (Verdict verdict = covered(*body.nodes, candidates, id, group); !verdict) return verdict;
  }
  return Verdict::yes();
}

std::vector<std::vector<NodeId>> connected_candidates(const Body& body, const Candidates& candidates) {
  std::map<NodeId, NodeId> parent;
  const auto find = [&](NodeId id) {
    parent.try_emplace(id, id);
    while (parent[id] != id) id = parent[id] = parent[parent[id]];
    return id;
  };
  for (const NodeId id : body.ops) {
    for (const NodeId operand : body.nodes->node(id).operands) {
      if (!joins(body, candidates, id, operand)) continue;
      const NodeId a = find(id), b = find(operand);
      parent[b] = a;
    }
  }
  std::map<NodeId, std::vector<NodeId>> components;
  for (const auto& [id, kind] : candidates.kinds) components[find(id)].push_back(id);
  std::vector<std::vector<NodeId>> result;
  for (auto& [root, component] : components) result.push_back(std::move(component));
  std::sort(result.begin(), result.end());
  return result;
}

std::vector<OpGroup> form_groups(const Body& body, const Candidates& candidates, const MappingLimits& limits,
                                 bool merge, Recorder& recorder) {
  const Nodes& nodes = *body.nodes;
  std::vector<OpGroup> groups;
  for (std::vector<NodeId> left : connected_candidates(body, candidates)) {
    while (!left.empty()) {
      const NodeId dominant = *std::max_element(left.begin(), left.end(), [&](NodeId a, NodeId b) {
        return rank(nodes, candidates, limits, a) < rank(nodes, candidates, limits, b);
      });
      const Dealt dealt = map_dominant(nodes, dominant, limits);
      std::vector<NodeId> members = merge ? left : std::vector<NodeId>{dominant};
      // Leaving a member out also leaves out what only it evaluates, and so may cut others off: repeat.
      OpGroup group;
      for (bool stable = false; !stable;) {
        group = propagated(body, candidates, dominant, members, dealt);
        stable = true;
        for (const NodeId id : group.materialised) {
          if (id == dominant) continue;
          const Verdict verdict = covered(nodes, candidates, id, group);
          if (verdict) continue;
          recorder.add("merging", nodes.name(id), nodes.name(dominant), [&] { return verdict; });
          std::erase(members, id);
          stable = false;
        }
      }
      recorder.add("merging", nodes.name(dominant), "", [&] {
        return Verdict::yes("astitch.dominant",
                            fmt::format("{} of {} connected candidates in its group; {}", members.size(),
                                        left.size(), to_text(dealt.mapping, dealt.deal)));
      });
      for (const NodeId id : members) {
        std::erase(left, id);
        if (id == dominant) continue;
        recorder.add("merging", nodes.name(id), nodes.name(dominant), [] {
          return Verdict::yes("astitch.sub-dominant", "connected through Local ops, and the mapping fits");
        });
      }
      groups.push_back(std::move(group));
    }
  }
  std::sort(groups.begin(), groups.end(), [](const OpGroup& a, const OpGroup& b) {
    return a.materialised.front() < b.materialised.front();
  });
  return groups;
}

std::string to_text(const Nodes& nodes, const std::vector<OpGroup>& groups) {
  const auto names = [&](const std::vector<NodeId>& ids) {
    std::vector<std::string> result;
    for (const NodeId id : ids) result.push_back(nodes.name(id));
    return fmt::format("{}", fmt::join(result, ", "));
  };
  std::string text;
  for (const OpGroup& group : groups) {
    text += fmt::format("group {}: materialised {}; ops {}; {}\n", nodes.name(group.dominant),
                        names(group.materialised), names(group.ops), to_text(group.mapping, group.deal));
  }
  return text;
}

}  // namespace stitchwork::astitch
