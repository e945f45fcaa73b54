#include "analysis/stitching/dominants.h"

#include <fmt/format.h>

#include <algorithm>

namespace stitchwork::astitch {
namespace {

/// A light cone counts as heavy above this many instructions an element (docs/planners/astitch.md): about two
/// heavy ops.
constexpr std::int64_t kHeavyConeInstructions = 64;

/// A ceiling on products of replication factors along chains of broadcasts.
/// So that a product with a size of a tensor stays within 64 bits.
constexpr std::int64_t kManyTimes = std::int64_t{1} << 40;

std::int64_t edge_replication(const Nodes& nodes, NodeId reader, NodeId operand) {
  std::int64_t result = 1;
  const auto& operands = nodes.node(reader).operands;
  for (std::size_t i = 0; i < operands.size(); ++i) {
    if (operands[i] == operand && i < nodes[reader].edges.size()) {
      result = std::max(result, nodes[reader].edges[i].replication);
    }
  }
  return result;
}

}  // namespace

std::string_view name(CandidateKind kind) {
  switch (kind) {
    case CandidateKind::kReduce:
      return "reduce";
    case CandidateKind::kHeavy:
      return "heavy";
    case CandidateKind::kLight:
      return "light";
    case CandidateKind::kShared:
      return "shared";
    case CandidateKind::kOutput:
      return "output";
  }
  return "";
}

Body make_body(const Nodes& nodes, const StitchOp& op) {
  Body body;
  body.nodes = &nodes;
  body.members.insert(op.members.begin(), op.members.end());
  body.outputs.insert(op.outputs.begin(), op.outputs.end());
  std::set<NodeId> inside = body.members;
  std::vector<NodeId> stack(op.members);
  while (!stack.empty()) {
    const NodeId reader = stack.back();
    stack.pop_back();
    for (const NodeId operand : nodes.node(reader).operands) {
      const NodeFacts& facts = nodes[operand];
      if (facts.transparent && !facts.immediate && inside.insert(operand).second) stack.push_back(operand);
    }
  }
  body.ops.assign(inside.begin(), inside.end());
  for (const NodeId id : body.ops) {
    std::vector<NodeId>& users = body.users[id];
    for (const NodeId user : nodes[id].users) {
      if (inside.contains(user)) users.push_back(user);
    }
  }
  return body;
}

Candidates find_candidates(const Body& body, const Amendments& amendments, Recorder& recorder) {
  const Nodes& nodes = *body.nodes;
  Candidates result;
  // How often an element is evaluated if nothing on the way to its stored readers is stored (evaluations),
  // and how often the broadcasts right behind it repeat it (repeats).
  std::map<NodeId, std::int64_t> evaluations, repeats;

  for (auto it = body.ops.rbegin(); it != body.ops.rend(); ++it) {
    const NodeId id = *it;
    std::int64_t evaluated = 1, repeated = 1;
    for (const NodeId user : body.users.at(id)) {
      const std::int64_t edge = edge_replication(nodes, user, id);
      const std::int64_t inner = result.contains(user) ? 1 : evaluations[user];
      evaluated = std::max(evaluated, std::min(kManyTimes, edge * inner));
      const bool map_only = nodes[user].transparent && !result.contains(user);
      repeated = std::max(repeated, std::min(kManyTimes, edge * (map_only ? repeats[user] : 1)));
    }
    evaluations[id] = evaluated;
    repeats[id] = repeated;

    const OpClass cls = def(nodes.node(id).op).cls;
    const bool loops = cls == OpClass::kWindow || is_product(nodes.node(id));  // over what an element reads
    const bool read_inside = !body.users.at(id).empty();
    if (nodes[id].reduction) {
      result.kinds[id] = CandidateKind::kReduce;
    } else if (amendments.inlined.contains(id)) {
      continue;
    } else if ((cls == OpClass::kHeavyElementwise && evaluated > 1) ||
               ((loops || nodes[id].isolated) && read_inside)) {
      result.kinds[id] = CandidateKind::kHeavy;
    } else if (amendments.promoted.contains(id)) {
      result.kinds[id] = CandidateKind::kShared;
    }
  }

  std::map<NodeId, std::int64_t> cone;  // instructions of one element and all it inlines
  for (const NodeId id : body.ops) {
    std::int64_t cost = instructions(nodes, id);
    for (const NodeId operand : nodes.node(id).operands) {
      if (body.contains(operand) && !result.stored(operand)) cost += cone[operand];
    }
    cone[id] = std::min(cost, kManyTimes);
    const bool light = def(nodes.node(id).op).cls == OpClass::kLightElementwise;
    if (!light || result.contains(id) || amendments.inlined.contains(id) || repeats[id] <= 1) continue;
    const std::int64_t per_element = std::min(kManyTimes, cone[id] * repeats[id]);
    if (per_element <= kHeavyConeInstructions) continue;
    if (amendments.dropped.contains(id)) {
      recorder.add("dominants", nodes.name(id), "", [&] {
        return Verdict::no("astitch.light-cone",
                           "storing it would cost a grid barrier, more than computing it again");
      });
      continue;
    }
    result.kinds[id] = CandidateKind::kLight;
  }
  for (const NodeId id : body.outputs) result.kinds.try_emplace(id, CandidateKind::kOutput);

  for (const NodeId id : body.ops) {
    recorder.add("dominants", nodes.name(id), "", [&] {
      const auto it = result.kinds.find(id);
      const std::string numbers =
          fmt::format("{} instructions an element, evaluated up to {} times", cone[id], evaluations[id]);
      if (it == result.kinds.end())
        return Verdict::yes("astitch.local", numbers);  // what it is, not a refusal
      return Verdict::yes(fmt::format("astitch.candidate-{}", name(it->second)), numbers);
    });
  }
  return result;
}

std::string to_text(const Nodes& nodes, const Candidates& candidates) {
  std::string text;
  for (const auto& [id, kind] : candidates.kinds) {
    text += fmt::format("{}: {}\n", nodes.name(id), name(kind));
  }
  return text;
}

}  // namespace stitchwork::astitch
