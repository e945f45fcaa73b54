#include "analysis/planners/astra/stream_trials.h"

#include <fmt/format.h>

#include <algorithm>

#include "core/base/at.h"

namespace stitchwork::astra {

StreamTrials::StreamTrials(const Graph& graph, const Device& device, const FusionPlan& plan, int streams)
    : device_(device),
      streams_(streams),
      space_(stream_space(graph, plan, SpaceOptions{}.super_epoch_us)),
      tree_(stream_tree(space_, streams)) {
  for (std::size_t p = 0; p < space_.super_epochs.size(); ++p) {
    const SuperEpoch& part = space_.super_epochs[p];
    first_.push_back(names_.size());
    for (std::size_t e = 0; e < part.epochs.size(); ++e) {
      names_.push_back(epoch_name(p, e));
      std::map<std::string, StreamCounts>& options = choices_.emplace_back();
      for (StreamCounts& counts : stream_choices(part.epochs[e], streams, behind_barrier(part, e))) {
        std::string option = to_text(counts);
        options.emplace(std::move(option), std::move(counts));
      }
    }
  }
}

std::string StreamTrials::epoch_name(std::size_t super_epoch, std::size_t epoch) {
  return fmt::format("se{}/e{}", super_epoch, epoch);
}

Dealt StreamTrials::dealt(const Bindings& bindings) const {
  std::vector<StreamCounts> counts;
  for (std::size_t e = 0; e < names_.size(); ++e) counts.push_back(choices_[e].at(bindings.at(names_[e])));
  return deal(space_, counts, streams_);
}

std::vector<StreamSpan> StreamTrials::spans(const Dealt& dealt,
                                            const std::vector<StreamKernel>& kernels) const {
  std::vector<int> place(kernels.size());
  for (std::size_t i = 0; i < dealt.order.size(); ++i) place[at(dealt.order[i])] = static_cast<int>(i);
  std::vector<StreamStep> steps;
  for (const int s : dealt.order) {
    steps.push_back({kernels[at(s)], dealt.stream[at(s)]});
    for (const int wait : dealt.waits[at(s)]) steps.back().waits.push_back(place[at(wait)]);
  }
  const std::vector<StreamSpan> in_order = run_schedule(device_, steps);
  std::vector<StreamSpan> result(kernels.size());
  for (std::size_t i = 0; i < dealt.order.size(); ++i) result[at(dealt.order[i])] = in_order[i];
  return result;
}

std::map<std::string, double> StreamTrials::epoch_us(const std::vector<StreamSpan>& spans) const {
  std::map<std::string, double> us;
  double end = 0;
  for (std::size_t p = 0; p < space_.super_epochs.size(); ++p) {
    const double begin = end;
    for (std::size_t e = 0; e < space_.super_epochs[p].epochs.size(); ++e) {
      for (const StepClass& of : space_.super_epochs[p].epochs[e].classes)
        for (const int s : of.steps) end = std::max(end, spans[at(s)].end_us);
      us[names_[first_[p] + e]] = end - begin;
    }
  }
  return us;
}

void reorder(FusionPlan& plan, const Dealt& dealt) {
  std::vector<int> place(plan.steps.size());
  for (std::size_t i = 0; i < dealt.order.size(); ++i) place[at(dealt.order[i])] = static_cast<int>(i);
  std::vector<PlanStep> steps;
  std::vector<KernelPlan> kernels;
  for (const int s : dealt.order) {
    PlanStep step = std::move(plan.steps[at(s)]);
    step.stream = dealt.stream[at(s)];
    for (const int wait : dealt.waits[at(s)]) step.waits.push_back(place[at(wait)]);
    std::sort(step.waits.begin(), step.waits.end());
    if (step.kind == StepKind::kKernel) {
      KernelPlan kernel = std::move(plan.kernels[at(step.kernel)]);
      step.kernel = static_cast<int>(kernels.size());
      kernel.id = step.id = fmt::format("k{}", step.kernel);
      kernels.push_back(std::move(kernel));
    }
    steps.push_back(std::move(step));
  }
  plan.steps = std::move(steps);
  plan.kernels = std::move(kernels);
}

}  // namespace stitchwork::astra
