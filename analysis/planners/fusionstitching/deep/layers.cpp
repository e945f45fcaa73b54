#include "analysis/planners/fusionstitching/deep/layers.h"

#include <algorithm>
#include <limits>
#include <utility>

#include "analysis/planners/fusionstitching/alone.h"
#include "core/base/at.h"
#include "core/base/error.h"
#include "core/base/interrupt.h"
#include "core/base/sorted.h"

namespace stitchwork::fusionstitching::deep {
namespace {

bool is_batch_dot(const Node& node) {
  return is_product(node) && node.attrs.dot && !node.attrs.dot->lhs_batch.empty();
}

/// Between the levels of ops that follow each other: units move out of the way of merged ones.
/// So that a million units may come between two ops.
constexpr std::int64_t kLevelGap = std::int64_t{1} << 20;

}  // namespace

Contraction::Contraction(const astitch::Nodes& nodes, bool products)
    : nodes_(nodes),
      fusible_(nodes.facts.size(), false),
      ops_(nodes.facts.size()),
      parent_(nodes.facts.size(), kNoNode),
      readers_(nodes.facts.size()),
      producers_(nodes.facts.size()),
      to_result_(nodes.facts.size(), -1),
      level_(nodes.facts.size(), 0),
      seen_(nodes.facts.size(), 0) {
  for (const Node& node : nodes.computation->nodes) {
    const astitch::NodeFacts& facts = nodes[node.id];
    if (!astitch::is_step(facts)) continue;
    parent_[at(node.id)] = node.id;
    ops_[at(node.id)] = {node.id};
    const bool product = products && is_batch_dot(node);
    fusible_[at(node.id)] = ((facts.member && !facts.isolated) || product) && !is_empty(nodes, node.id);
    producers_[at(node.id)] = astitch::producers(nodes, node.id);
  }
  find_readers();
  // By the way to the last ops: what is packed lies in one layer, as far from them.
  for (NodeId op = static_cast<NodeId>(level_.size()) - 1; op >= 0; --op)
    for (const Reader& reader : readers(op))
      level_[at(op)] = std::min(level_[at(op)], level_[at(reader.op)] - kLevelGap);
}

/// Readers with the index maps on the way, from the operands of each step upwards.
void Contraction::find_readers() {
  const Computation& computation = *nodes_.computation;
  struct Open {
    NodeId op;
    int maps;
  };
  const auto walk = [&](NodeId from, int maps_before, auto&& found) {
    std::vector<Open> open{{from, maps_before}};
    while (!open.empty()) {
      const auto [op, maps] = open.back();
      open.pop_back();
      for (const NodeId operand : computation.node(op).operands) {
        if (unit_of(operand) != kNoNode) found(operand, maps);
        if (nodes_[operand].transparent) open.push_back({operand, maps + 1});
      }
    }
  };
  for (const Node& node : computation.nodes) {
    if (unit_of(node.id) == kNoNode) continue;
    walk(node.id, 0, [&](NodeId operand, int maps) {
      if (!contains_sorted(producers_[at(node.id)], operand)) return;
      std::vector<Reader>& readers = readers_[at(operand)];
      if (readers.empty() || readers.back().op != node.id)
        readers.push_back({node.id, maps});
      else
        readers.back().maps = std::max(readers.back().maps, maps);
    });
  }
  const NodeId root = computation.root;
  if (unit_of(root) != kNoNode)
    to_result_[at(root)] = 0;
  else
    walk(root, 1, [&](NodeId operand, int maps) {
      to_result_[at(operand)] = std::max(to_result_[at(operand)], maps);
    });
}

NodeId Contraction::unit_of(NodeId op) const {
  NodeId top = op;
  while (top != kNoNode && parent_[at(top)] != top) top = parent_[at(top)];
  while (top != kNoNode && parent_[at(op)] != top) op = std::exchange(parent_[at(op)], top);
  return top;
}

bool Contraction::is_call(NodeId unit) const {
  const PlanRole role = nodes_[ops(unit).front()].role;
  return !is_fusible(unit) && (role == PlanRole::kLibrary || role == PlanRole::kOpaque);
}

std::vector<NodeId> Contraction::units() const {
  std::vector<NodeId> result;
  for (NodeId op = 0; op < static_cast<NodeId>(parent_.size()); ++op)
    if (parent_[at(op)] == op) result.push_back(op);
  return result;
}

std::vector<NodeId> Contraction::producers(NodeId unit) const {
  std::vector<NodeId> result;
  for (const NodeId op : ops(unit))
    for (const NodeId producer : producers_[at(op)])
      if (const NodeId of = unit_of(producer); of != unit) result.push_back(of);
  sort_unique(result);
  return result;
}

std::vector<NodeId> Contraction::users(NodeId unit) const {
  std::vector<NodeId> result;
  for (const NodeId op : ops(unit))
    for (const Reader& reader : readers(op))
      if (const NodeId of = unit_of(reader.op); of != unit) result.push_back(of);
  sort_unique(result);
  return result;
}

bool Contraction::is_read_outside(NodeId op) const {
  if (maps_to_result(op) >= 0) return true;
  return std::any_of(readers(op).begin(), readers(op).end(),
                     [&](const Reader& reader) { return unit_of(reader.op) != unit_of(op); });
}

bool Contraction::reaches(NodeId from, NodeId to) const {
  ++stamp_;
  std::vector<NodeId> open;
  for (const NodeId user : users(from))
    if (user != to) open.push_back(user);
  while (!open.empty()) {
    const NodeId unit = open.back();
    open.pop_back();
    if (unit == to) return true;
    if (level_[at(unit)] >= level_[at(to)]) continue;  // no path leads down
    if (std::exchange(seen_[at(unit)], stamp_) == stamp_) continue;
    const std::vector<NodeId> next = users(unit);
    open.insert(open.end(), next.begin(), next.end());
  }
  return false;
}

void Contraction::merge(NodeId into, NodeId from) {
  SW_CHECK(into != from && is_fusible(into) && is_fusible(from));
  std::vector<NodeId> all;
  std::merge(ops(into).begin(), ops(into).end(), ops(from).begin(), ops(from).end(), std::back_inserter(all));
  ops_[at(into)] = std::move(all);
  ops_[at(from)].clear();
  parent_[at(from)] = into;
  level_[at(into)] = std::max(level_[at(into)], level_[at(from)]);
  raise_users(into);
}

/// Moves what is behind the unit above its level, as far as it is not.
void Contraction::raise_users(NodeId unit) {
  std::vector<NodeId> open{unit};
  while (!open.empty()) {
    const NodeId below = open.back();
    open.pop_back();
    for (const NodeId user : users(below)) {
      if (level_[at(user)] > level_[at(below)]) continue;
      level_[at(user)] = level_[at(below)] + 1;
      open.push_back(user);
    }
  }
}

Layers find_layers(const Contraction& graph) {
  const std::vector<NodeId> units = graph.units();
  std::size_t size = units.empty() ? 0 : at(units.back()) + 1;
  Layers result;
  result.span.assign(size, 0);
  // Units whose users all have a span, latest first.
  std::vector<int> waiting(size, 0);
  std::vector<NodeId> ready;
  for (const NodeId unit : units) {
    waiting[at(unit)] = static_cast<int>(graph.users(unit).size());
    if (waiting[at(unit)] == 0) ready.push_back(unit);
  }
  std::size_t done = 0;
  for (; !ready.empty(); ++done) {
    interruption_point();
    const NodeId unit = ready.back();
    ready.pop_back();
    int& span = result.span[at(unit)];
    for (const NodeId op : graph.ops(unit)) {
      span = std::max(span, graph.maps_to_result(op));
      for (const auto& [reader, maps] : graph.readers(op))
        if (const NodeId user = graph.unit_of(reader); user != unit)
          span = std::max(span, result.of(user) + 1 + maps);
    }
    for (const NodeId producer : graph.producers(unit))
      if (--waiting[at(producer)] == 0) ready.push_back(producer);
  }
  SW_CHECK(done == units.size(), "{} of {} units have a span: the contracted graph is cyclic", done,
           units.size());
  for (const NodeId unit : units) {
    const auto span = static_cast<std::size_t>(result.of(unit));
    if (result.layers.size() <= span) result.layers.resize(span + 1);
    result.layers[span].push_back(unit);
  }
  result.next_call.assign(result.layers.size(), std::numeric_limits<int>::max());
  for (std::size_t l = result.layers.size(); l-- > 1;) {
    const bool call = std::any_of(result.layers[l].begin(), result.layers[l].end(),
                                  [&](NodeId unit) { return graph.is_call(unit); });
    result.next_call[l - 1] = call ? static_cast<int>(l) : result.next_call[l];
  }
  return result;
}

std::string to_text(const Contraction& graph, const Layers& layers) {
  std::string text;
  for (std::size_t l = 0; l < layers.layers.size(); ++l) {
    text += std::to_string(l) + ":";
    for (const NodeId unit : layers.layers[l]) {
      text += " ";
      for (const NodeId op : graph.ops(unit))
        text += (op == graph.ops(unit).front() ? "" : "+") + graph.nodes().name(op);
    }
    text += "\n";
  }
  return text;
}

}  // namespace stitchwork::fusionstitching::deep
