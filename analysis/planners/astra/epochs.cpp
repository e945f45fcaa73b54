#include "analysis/planners/astra/epochs.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <map>
#include <numeric>
#include <set>
#include <tuple>

#include "analysis/plan/step_order.h"
#include "analysis/planners/astra/group_classes.h"
#include "core/base/arithmetic.h"
#include "core/base/at.h"

namespace stitchwork::astra {
namespace {

std::string signature(const Computation& computation, const FusionPlan& plan, const PlanStep& step) {
  std::string text = fmt::format("{} ", static_cast<int>(step.kind));
  const auto add_op = [&](NodeId id) {
    const Node& node = computation.node(id);
    text += fmt::format("{} {} ", def(node.op).name, to_text(node.shape));
    for (const NodeId read : node.operands) text += to_text(computation.node(read).shape) + " ";
    if (node.attrs.dot)
      text += fmt::format("{} {} {} {} ", node.attrs.dot->lhs_batch, node.attrs.dot->rhs_batch,
                          node.attrs.dot->lhs_contracting, node.attrs.dot->rhs_contracting);
  };
  for (const NodeId id : step.nodes) add_op(id);
  if (step.kernel >= 0 && at(step.kernel) < plan.kernels.size()) {
    const KernelPlan& kernel = plan.kernels[at(step.kernel)];
    text += fmt::format("{} {} {} ", kernel.launch.grid, kernel.launch.block, kernel.launch.shared_bytes);
    for (const NodeId id : kernel.ops) add_op(id);
    for (const Group& group : kernel.groups) text += to_text(group.mapping, group.deal) + " ";
  }
  return text;
}

std::string scope_of(const Computation& computation, const FusionPlan& plan, const PlanStep& step) {
  NodeId op = kNoNode;
  if (!step.nodes.empty()) op = step.nodes.back();
  if (step.kernel >= 0 && at(step.kernel) < plan.kernels.size() && !plan.kernels[at(step.kernel)].ops.empty())
    op = plan.kernels[at(step.kernel)].ops.back();
  return op == kNoNode ? "" : scope_without_numbers(computation.node(op).metadata.op_name);
}

/// By step a number of its class.
std::vector<int> classes_of(const Graph& graph, const FusionPlan& plan,
                            const std::vector<std::vector<int>>& before) {
  const Computation& computation = graph.entry_computation();
  std::map<std::string, int> signatures;
  std::vector<int> of;
  for (const PlanStep& step : plan.steps)
    of.push_back(
        signatures.try_emplace(signature(computation, plan, step), static_cast<int>(signatures.size()))
            .first->second);
  std::vector<std::vector<int>> comes_before(of.size()), comes_behind(of.size());
  for (std::size_t s = 0; s < of.size(); ++s)
    for (const int p : before[s]) {
      comes_before[s].push_back(of[at(p)]);
      comes_behind[at(p)].push_back(of[s]);
    }
  std::map<std::tuple<int, std::vector<int>, std::vector<int>, std::string>, int> classes;
  std::vector<int> result;
  for (std::size_t s = 0; s < of.size(); ++s) {
    std::sort(comes_before[s].begin(), comes_before[s].end());
    std::sort(comes_behind[s].begin(), comes_behind[s].end());
    result.push_back(classes
                         .try_emplace({of[s], comes_before[s], comes_behind[s],
                                       scope_of(computation, plan, plan.steps[s])},
                                      static_cast<int>(classes.size()))
                         .first->second);
  }
  return result;
}

bool runs_alone(const FusionPlan& plan, const PlanStep& step) {
  if (step.kind == StepKind::kControl) return true;
  return step.kernel >= 0 && at(step.kernel) < plan.kernels.size() &&
         plan.kernels[at(step.kernel)].launch.grid_barriers > 0;
}

Epoch epoch_of(const FusionPlan& plan, const std::vector<int>& steps, const std::vector<int>& classes) {
  Epoch epoch;
  std::map<int, StepClass> found;
  for (const int s : steps) {
    StepClass& of = found[classes[at(s)]];
    of.steps.push_back(s);
    of.us = plan.steps[at(s)].predicted_us;
    epoch.us += of.us;
  }
  for (auto& [number, of] : found) epoch.classes.push_back(std::move(of));
  std::sort(epoch.classes.begin(), epoch.classes.end(), [](const StepClass& a, const StepClass& b) {
    return std::pair(-a.us, a.steps[0]) < std::pair(-b.us, b.steps[0]);
  });
  return epoch;
}

/// Of more than two streams and many steps, counts are multiples, the rest is on stream 0.
std::vector<std::vector<int>> counts_of(int steps, int streams, bool descending) {
  // A choice, not measured: 16 pieces on four streams are 969 choices, of which 64 are kept.
  constexpr int kPieces = 16;
  const int unit = streams > 2 ? static_cast<int>(ceil_div(steps, kPieces)) : 1;
  std::vector<std::vector<int>> result;
  std::vector<int> counts(at(streams), 0);
  const auto fill = [&](auto&& self, int stream, int left) -> void {
    const int most = descending && stream > 0 ? std::min(left, counts[at(stream - 1)] / unit) : left;
    if (stream + 1 == streams) {
      if (left > most) return;
      counts[at(stream)] = left * unit;
      result.push_back(counts);
      result.back()[0] += steps % unit;
      return;
    }
    for (int n = most; n >= 0; --n) {
      counts[at(stream)] = n * unit;
      self(self, stream + 1, left - n);
    }
  };
  fill(fill, 0, steps / unit);
  return result;
}

/// Counts of a class behind those of the classes before it.
struct Partial {
  std::vector<double> load;  ///< by stream, us
  double spread = 0;         ///< us from the least loaded stream to the most
  int before = 0;            ///< place in the list of the class before
  int counts = 0;            ///< place in the class's own list of counts
  bool all_on_first = true;
};

Partial longer_by(const Partial& before, int place, const std::vector<int>& counts, int number, double us) {
  Partial result{before.load, 0, place, number, before.all_on_first};
  int steps = 0;
  for (std::size_t s = 0; s < counts.size(); ++s) {
    result.load[s] += counts[s] * us;
    steps += counts[s];
  }
  result.all_on_first = before.all_on_first && counts[0] == steps;
  const auto [least, most] = std::minmax_element(result.load.begin(), result.load.end());
  result.spread = *most - *least;
  return result;
}

void keep_most_even(std::vector<Partial>& choices, std::size_t most) {
  std::stable_sort(choices.begin(), choices.end(),
                   [](const Partial& a, const Partial& b) { return a.spread < b.spread; });
  if (choices.size() > most) choices.resize(most);
}

}  // namespace

StreamSpace stream_space(const Graph& model, const FusionPlan& plan, double super_epoch_us) {
  const Graph& graph = planned_graph(model, plan);
  StreamSpace space{step_dependences(graph, plan), {}, {}};
  const std::vector<int> classes = classes_of(graph, plan, space.before);
  std::vector<std::vector<int>> levels;
  std::vector<int> level(plan.steps.size(), 0);
  for (std::size_t s = 0; s < plan.steps.size(); ++s) {
    for (const int p : space.before[s]) level[s] = std::max(level[s], level[at(p)] + 1);
    if (at(level[s]) >= levels.size()) levels.resize(at(level[s]) + 1);
    levels[at(level[s])].push_back(static_cast<int>(s));
  }
  bool open = false;
  std::vector<std::size_t> part_of(plan.steps.size());
  for (const std::vector<int>& steps : levels) {
    if (!open) space.super_epochs.emplace_back();
    SuperEpoch& current = space.super_epochs.back();
    std::vector<int> beside, alone;
    for (const int s : steps) (runs_alone(plan, plan.steps[at(s)]) ? alone : beside).push_back(s);
    if (!beside.empty()) current.epochs.push_back(epoch_of(plan, beside, classes));
    for (const int s : alone) {
      current.epochs.push_back(epoch_of(plan, {s}, classes));
      current.epochs.back().alone = true;
    }
    for (const int s : steps) {
      current.us += plan.steps[at(s)].predicted_us;
      part_of[at(s)] = space.super_epochs.size();
    }
    open = current.us < super_epoch_us;
  }
  space.way_us.resize(plan.steps.size());
  for (std::size_t s = plan.steps.size(); s-- > 0;) {
    space.way_us[s] += plan.steps[s].predicted_us;
    for (const int p : space.before[s])
      if (part_of[at(p)] == part_of[s]) space.way_us[at(p)] = std::max(space.way_us[at(p)], space.way_us[s]);
  }
  return space;
}

std::vector<StreamCounts> stream_choices(const Epoch& epoch, int streams, bool behind_barrier) {
  // Beyond so many partial choices the most even go on. A choice, not measured: 64 are kept in the end.
  constexpr std::size_t kMostPartial = 1024;
  StreamCounts all_on_first;
  for (const StepClass& of : epoch.classes) {
    all_on_first.emplace_back(at(streams), 0);
    all_on_first.back()[0] = static_cast<int>(of.steps.size());
  }
  if (epoch.alone || streams == 1) return {all_on_first};
  std::vector<std::vector<Partial>> choices{{Partial{std::vector<double>(at(streams), 0)}}};
  std::vector<std::vector<std::vector<int>>> counts;
  for (std::size_t c = 0; c < epoch.classes.size(); ++c) {
    const StepClass& of = epoch.classes[c];
    counts.push_back(counts_of(static_cast<int>(of.steps.size()), streams, behind_barrier && c == 0));
    std::vector<Partial> longer;
    for (std::size_t n = 0; n < counts[c].size(); ++n)
      for (std::size_t p = 0; p < choices[c].size(); ++p)
        longer.push_back(
            longer_by(choices[c][p], static_cast<int>(p), counts[c][n], static_cast<int>(n), of.us));
    if (longer.size() > kMostPartial) keep_most_even(longer, kMostPartial);
    choices.push_back(std::move(longer));
  }
  std::erase_if(choices.back(), [](const Partial& choice) { return choice.all_on_first; });
  keep_most_even(choices.back(), kMostCounts - 1);
  std::vector<StreamCounts> result{all_on_first};
  for (const Partial& last : choices.back()) {
    StreamCounts found(epoch.classes.size());
    const Partial* choice = &last;
    for (std::size_t c = epoch.classes.size(); c-- > 0; choice = &choices[c][at(choice->before)])
      found[c] = counts[c][at(choice->counts)];
    result.push_back(std::move(found));
  }
  return result;
}

bool behind_barrier(const SuperEpoch& part, std::size_t e) { return e == 0 || part.epochs[e - 1].alone; }

std::string to_text(const StreamCounts& counts) {
  std::string text;
  for (const auto& of : counts) text += fmt::format("{}{}", text.empty() ? "" : " ", fmt::join(of, "+"));
  return text;
}

}  // namespace stitchwork::astra
