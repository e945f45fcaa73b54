#include "core/substitute/derivation.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <unordered_map>
#include <unordered_set>

#include "core/base/at.h"
#include "core/base/error.h"
#include "core/base/interrupt.h"
#include "core/substitute/editor.h"
#include "core/substitute/tidy.h"
#include "core/substitute/view.h"

namespace stitchwork::rewriting {
namespace {

Place op_names(const View& view, const Match& match) {
  Place names;
  for (const NodeId id : match.at) names.push_back(view.node(id).name);
  return names;
}

/// Where the rule holds, of these ops in order. A place that has an op of one before is left out.
std::vector<Match> disjoint_matches(const Rule& rule, const View& view, const std::vector<std::string>& ops) {
  std::unordered_map<std::string_view, NodeId> ids;
  for (const Node& node : view.computation().nodes) ids.emplace(node.name, node.id);
  std::vector<bool> taken(view.computation().nodes.size(), false);
  std::vector<Match> result;
  for (const std::string& op : ops) {
    interruption_point();
    const auto found = ids.find(op);
    if (found == ids.end()) continue;
    std::optional<Match> match = rule.find(view, found->second);
    if (!match || std::ranges::any_of(match->at, [&](NodeId id) { return taken[at(id)]; })) continue;
    for (const NodeId id : match->at) taken[at(id)] = true;
    result.push_back(std::move(*match));
  }
  return result;
}

}  // namespace

/// False, and nothing changed, where the places written at once would wait for each other.
bool Derivation::write(const Rule& rule, const View& view, const std::vector<Match>& matches) {
  Rewrite step{std::string(rule.name), view.computation().name, {}};
  Editor editor(now_, view.id());
  for (const Match& match : matches) {
    step.at.push_back(op_names(view, match));
    editor.begin(match);
    rule.apply(editor, match);
  }
  if (!editor.has_order()) return false;
  RewrittenGraph next = std::move(editor).finish();
  next.steps.push_back(std::move(step));
  now_ = std::move(next);
  return true;
}

int Derivation::take_macro(const Rule& rule, const std::string& computation, const std::vector<Place>& at) {
  const RewrittenGraph before = now_;
  const int all = static_cast<int>(at.size());
  if (rule.steps(*this, computation, at) == all) return all;
  SW_CHECK(all > 1 || !forbidden_.empty(), "a step of {} does not hold at '{}'", rule.name, at[0][0]);
  now_ = before;  // some stand in each other's way, or a step is forbidden
  if (all == 1) return 0;
  int taken = 0;
  for (const Place& place : at) taken += apply(rule, computation, place[0]) ? 1 : 0;
  return taken;
}

int Derivation::take(const Rule& rule, const View& view, const std::vector<Match>& matches) {
  const std::string computation = view.computation().name;
  std::vector<Place> at;
  for (const Match& match : matches) at.push_back(op_names(view, match));
  if (rule.steps != nullptr) return take_macro(rule, computation, at);
  if (write(rule, view, matches)) return static_cast<int>(at.size());
  SW_CHECK(at.size() > 1, "{} at '{}' would compute an op from itself", rule.name, at[0][0]);
  int taken = 0;
  for (const Place& place : at) taken += apply(rule, computation, place[0]) ? 1 : 0;
  return taken;
}

bool Derivation::apply(const Rule& rule, const std::string& computation, const std::string& op) {
  const ComputationId id = computation_named(now_.graph, computation);
  if (id < 0) return false;
  const View view(now_.graph, id);
  const NodeId node = view.computation().find(op);
  if (node == kNoNode || forbids(rule, op)) return false;
  const std::optional<Match> match = rule.find(view, node);
  return match && take(rule, view, {*match}) == 1;
}

int Derivation::apply(const Rule& rule, const std::string& computation, std::vector<std::string> ops) {
  std::erase_if(ops, [&](const std::string& op) { return forbids(rule, op); });
  int places = 0;
  while (true) {
    const ComputationId id = computation_named(now_.graph, computation);
    if (id < 0) return places;
    const View view(now_.graph, id);
    const std::vector<Match> matches = disjoint_matches(rule, view, ops);
    if (matches.empty()) return places;
    std::unordered_set<std::string> asked;
    for (const Match& match : matches) asked.insert(view.node(match.at.front()).name);
    places += take(rule, view, matches);
    std::erase_if(ops, [&](const std::string& op) { return asked.contains(op); });
  }
}

int Derivation::apply_everywhere(const Rule& rule) {
  std::vector<std::pair<std::string, std::vector<std::string>>> ops;
  for (const ComputationId id : running_computations(now_.graph)) {
    ops.emplace_back(now_.graph.computation(id).name, std::vector<std::string>{});
    for (const Node& node : now_.graph.computation(id).nodes) ops.back().second.push_back(node.name);
  }
  int places = 0;
  for (auto& [computation, names] : ops) places += apply(rule, computation, std::move(names));
  return places;
}

int Derivation::tidy() {
  int places = 0;
  RewrittenGraph next = tidied(now_, &places);
  if (places == 0) return 0;
  next.steps.push_back({"tidy", "", {}});
  now_ = std::move(next);
  return places;
}

void Derivation::repeat(const Rewrite& step) {
  if (step.rule == "tidy") {
    tidy();
    return;
  }
  const Rule& rule = rule_named(step.rule);
  const auto misfit = [&](const Place& place, const std::string& why) {
    return Error(
        fmt::format("step {} at {} does not fit the model: {}", step.rule, fmt::join(place, ", "), why),
        "made of another model or by other rules: rewrite the model again");
  };
  const ComputationId id = computation_named(now_.graph, step.computation);
  if (id < 0)
    throw misfit(step.at.empty() ? Place{} : step.at.front(),
                 fmt::format("there is no computation '{}'", step.computation));
  const View view(now_.graph, id);
  std::unordered_map<std::string_view, NodeId> ids;
  for (const Node& node : view.computation().nodes) ids.emplace(node.name, node.id);
  std::vector<Match> matches;
  for (const Place& place : step.at) {
    std::vector<NodeId> ops;
    for (const std::string& name : place) {
      if (!ops.empty() && rule.find_all == nullptr) break;  // it finds the others
      const auto found = ids.find(name);
      if (found == ids.end()) throw misfit(place, fmt::format("there is no op '{}'", name));
      ops.push_back(found->second);
    }
    if (ops.empty()) throw misfit(place, "there is no op ''");
    std::optional<Match> match =
        rule.find_all != nullptr ? rule.find_all(view, ops) : rule.find(view, ops.front());
    if (!match) throw misfit(place, "it does not hold there");
    if (op_names(view, *match) != place)
      throw misfit(place, fmt::format("it holds at {}", fmt::join(op_names(view, *match), ", ")));
    matches.push_back(std::move(*match));
  }
  if (rule.steps != nullptr || matches.empty()) throw misfit({}, "it is no step of one rule at places");
  if (!write(rule, view, matches)) throw misfit(step.at.front(), "its places wait for each other");
}

RewrittenGraph replay(const Graph& model, std::span<const Rewrite> steps) {
  Derivation derivation(model);
  for (const Rewrite& step : steps) derivation.repeat(step);
  return derivation.result();
}

std::string to_text(std::span<const Rewrite> steps) {
  std::string text;
  for (const Rewrite& step : steps) {
    if (step.at.empty()) text += step.rule + "\n";
    for (const Place& place : step.at) text += fmt::format("{} at {}\n", step.rule, fmt::join(place, ", "));
  }
  return text;
}

}  // namespace stitchwork::rewriting
