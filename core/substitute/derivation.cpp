#include "core/substitute/derivation.h"

#include <fmt/ranges.h>

#include <unordered_map>

#include "core/base/error.h"
#include "core/base/interrupt.h"
#include "core/substitute/editor.h"
#include "core/substitute/tidy.h"
#include "core/substitute/view.h"

namespace stitchwork::rewriting {
namespace {

std::vector<std::string> op_names(const View& view, const Match& match) {
  std::vector<std::string> names;
  for (const NodeId id : match.at) names.push_back(view.node(id).name);
  return names;
}

}  // namespace

bool Derivation::apply_match(const Rule& rule, const View& view, const Match& match) {
  const std::string computation = view.computation().name;
  std::vector<std::string> at = op_names(view, match);
  if (rule.steps != nullptr) {
    rule.steps(*this, computation, at);
    return true;
  }
  Editor editor(now_, view.id());
  editor.begin(match);
  rule.apply(editor, match);
  RewrittenGraph next = std::move(editor).finish();
  next.steps.push_back({std::string(rule.name), computation, std::move(at)});
  now_ = std::move(next);
  return true;
}

bool Derivation::apply(const Rule& rule, const std::string& computation, const std::string& op) {
  const ComputationId id = computation_named(now_.graph, computation);
  if (id < 0) return false;
  const View view(now_.graph, id);
  const NodeId node = view.computation().find(op);
  if (node == kNoNode) return false;
  const std::optional<Match> match = rule.find(view, node);
  return match && apply_match(rule, view, *match);
}

int Derivation::apply_everywhere(const Rule& rule) {
  int places = 0;
  std::vector<std::pair<std::string, std::string>> ops;
  for (const ComputationId id : running_computations(now_.graph))
    for (const Node& node : now_.graph.computation(id).nodes)
      ops.emplace_back(now_.graph.computation(id).name, node.name);
  for (std::size_t first = 0; first < ops.size();) {
    const ComputationId id = computation_named(now_.graph, ops[first].first);
    if (id < 0) {
      ++first;
      continue;
    }
    const View view(now_.graph, id);
    std::unordered_map<std::string_view, NodeId> ids;
    for (const Node& node : view.computation().nodes) ids.emplace(node.name, node.id);
    for (bool same = true; same && first < ops.size() && ops[first].first == view.computation().name;
         ++first) {
      interruption_point();
      const auto node = ids.find(ops[first].second);
      if (node == ids.end()) continue;
      if (const std::optional<Match> match = rule.find(view, node->second)) {
        apply_match(rule, view, *match);
        ++places;
        same = false;  // the view is of the graph before
      }
    }
  }
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
  const auto misfit = [&](const std::string& why) {
    return Error(
        fmt::format("step {} at {} does not fit the model: {}", step.rule, fmt::join(step.at, ", "), why),
        "made of another model or by other rules: rewrite the model again");
  };
  const ComputationId id = computation_named(now_.graph, step.computation);
  if (id < 0 || step.at.empty()) throw misfit(fmt::format("there is no computation '{}'", step.computation));
  const View view(now_.graph, id);
  const NodeId node = view.computation().find(step.at.front());
  if (node == kNoNode) throw misfit(fmt::format("there is no op '{}'", step.at.front()));
  const std::optional<Match> match = rule.find(view, node);
  if (!match) throw misfit("it does not hold there");
  if (op_names(view, *match) != step.at)
    throw misfit(fmt::format("it holds at {}", fmt::join(op_names(view, *match), ", ")));
  apply_match(rule, view, *match);
}

RewrittenGraph replay(const Graph& model, std::span<const Rewrite> steps) {
  Derivation derivation(model);
  for (const Rewrite& step : steps) derivation.repeat(step);
  return derivation.result();
}

std::string to_text(std::span<const Rewrite> steps) {
  std::string text;
  for (const Rewrite& step : steps)
    text +=
        step.at.empty() ? step.rule + "\n" : fmt::format("{} at {}\n", step.rule, fmt::join(step.at, ", "));
  return text;
}

}  // namespace stitchwork::rewriting
