#include "core/passes/op_trace.h"

#include <fmt/ranges.h>

#include <algorithm>

namespace stitchwork {

void OpTrace::add(OpChange change, OpName op, std::vector<OpName> into) {
  steps_.push_back({change, std::move(op), std::move(into)});
}

void OpTrace::add_rewritten(OpChange change, const Computation& computation,
                            std::span<const NodeId> replacement, const std::vector<bool>& keep) {
  for (const Node& node : computation.nodes) {
    const auto i = static_cast<std::size_t>(node.id);
    if (keep[i]) continue;
    std::vector<OpName> into;
    if (replacement[i] != node.id) into.push_back({computation.name, computation.node(replacement[i]).name});
    add(change, {computation.name, node.name}, std::move(into));
  }
}

std::optional<OpName> OpTrace::find(std::string_view op, std::string_view entry) const {
  std::optional<OpName> found;
  for (const Step& step : steps_) {
    if (step.op.op != op) continue;
    if (step.op.computation == entry) return step.op;
    if (!found) found = step.op;
  }
  return found;
}

std::vector<OpName> OpTrace::now(const Graph& graph, const OpName& op, std::vector<Step>* steps) const {
  std::vector<OpName> current{op};
  for (const Step& step : steps_) {
    const auto at = std::find(current.begin(), current.end(), step.op);
    if (at == current.end()) continue;
    // Of a callee that was inlined everywhere its callers' copies remain: nothing to tell.
    const bool told = step.change != OpChange::kUncalled || current.size() == 1;
    if (steps != nullptr && told) steps->push_back(step);
    // A callee's own op stays until nothing calls it; what the callers have comes behind.
    const auto place = step.change == OpChange::kCopied ? current.end() : current.erase(at);
    std::vector<OpName> fresh;
    for (const OpName& name : step.into)
      if (std::find(current.begin(), current.end(), name) == current.end()) fresh.push_back(name);
    current.insert(place, fresh.begin(), fresh.end());
  }
  std::erase_if(current, [&](const OpName& name) {
    return std::none_of(graph.computations.begin(), graph.computations.end(), [&](const Computation& c) {
      return c.name == name.computation && c.find(name.op) != kNoNode;
    });
  });
  return current;
}

std::string to_text(const OpTrace::Step& step) {
  constexpr std::size_t kMost = 8;  // A choice, not measured: what a line holds.
  std::vector<std::string_view> names;
  for (const OpName& name : step.into)
    if (names.size() < kMost) names.push_back(name.op);
  std::string into = fmt::format("{}", fmt::join(names, ", "));
  if (step.into.size() > kMost) into += fmt::format(" and {} more", step.into.size() - kMost);
  const std::string& op = step.op.op;
  switch (step.change) {
    case OpChange::kJoined:
      return fmt::format("{} is one with {}, which it waits for", op, into);
    case OpChange::kInlined:
      return step.into.empty() ? fmt::format("{} was inlined", op)
                               : fmt::format("{} was inlined: its value is {}", op, into);
    case OpChange::kCopied:
      return fmt::format("{} of {} was inlined as {}", op, step.op.computation, into);
    case OpChange::kRewritten:
      return fmt::format("{} was rewritten as {}", op, into);
    case OpChange::kFolded:
      return step.into.empty() ? fmt::format("{} was taken apart: what reads it reads its elements", op)
                               : fmt::format("{} was folded: it is {}", op, into);
    case OpChange::kMerged:
      return fmt::format("{} was merged with {}, which computes the same", op, into);
    case OpChange::kUncalled:
      return fmt::format("{} was left out: nothing calls {}", op, step.op.computation);
    case OpChange::kLeftOut:
      break;
  }
  return fmt::format("{} was left out: no output depends on it", op);
}

}  // namespace stitchwork
