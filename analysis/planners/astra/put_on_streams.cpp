// Steps of a plan dealt to streams, explored over the modelled schedule.
#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <map>

#include "analysis/judge/step_times.h"
#include "analysis/planners/astra/planner.h"
#include "analysis/planners/astra/space_tree.h"
#include "core/base/at.h"
#include "core/base/error.h"

namespace stitchwork::astra {
namespace {

class StreamChooser {
 public:
  StreamChooser(const Graph& graph, const Device& device, const FusionPlan& plan, int streams)
      : computation_(graph.entry_computation()),
        device_(device),
        plan_(plan),
        streams_(streams),
        space_(stream_space(graph, plan, SpaceOptions{}.super_epoch_us)),
        kernels_(step_kernels(graph, device, plan, evaluations(computation_, plan))),
        tree_(stream_tree(space_, streams)) {
    for (std::size_t p = 0; p < space_.super_epochs.size(); ++p)
      for (std::size_t e = 0; e < space_.super_epochs[p].epochs.size(); ++e) {
        const SuperEpoch& part = space_.super_epochs[p];
        const std::string name = name_of(p, e);
        for (StreamCounts& counts : stream_choices(part.epochs[e], streams, behind_barrier(part, e))) {
          std::string option = to_text(counts);
          choices_[name].emplace(std::move(option), std::move(counts));
        }
      }
  }

  /// Nothing where one stream is as fast.
  std::optional<Dealt> run() {
    minibatches_ = explore(
                       tree_, "b0", index_, [&](const Bindings& b) { return measure(b); },
                       std::numeric_limits<std::size_t>::max())
                       .size();
    SW_CHECK(next(tree_, "b0", index_, best_), "streams are not explored");
    Dealt dealt = dealt_by(best_);
    best_us_ = last_end_us(spans(dealt));
    one_us_ = last_end_us(spans(dealt_by(defaults(tree_))));
    if (best_us_ >= one_us_) return std::nullopt;
    return dealt;
  }

  void record(const Dealt* dealt, Recorder& recorder) const {
    if (!recorder.enabled()) return;
    const std::string whole = fmt::format(
        "on {} streams {:.2f} us (modelled), on one {:.2f}; {} mini-batches, {:g} trials one by one",
        streams_, best_us_, one_us_, minibatches_, trials(tree_));
    recorder.add("astra.streams", computation_.node(computation_.root).name, "", [&] {
      return dealt != nullptr ? Verdict::yes("astra.streams", whole) : Verdict::no("astra.one-stream", whole);
    });
    if (dealt == nullptr) return;
    for (std::size_t p = 0; p < space_.super_epochs.size(); ++p)
      for (std::size_t e = 0; e < space_.super_epochs[p].epochs.size(); ++e)
        for (const StepClass& of : space_.super_epochs[p].epochs[e].classes)
          for (const int s : of.steps) record_step(p, e, s, *dealt, recorder);
  }

 private:
  static std::string name_of(std::size_t p, std::size_t e) { return fmt::format("se{}/e{}", p, e); }

  void record_step(std::size_t p, std::size_t e, int s, const Dealt& dealt, Recorder& recorder) const {
    const PlanStep& step = plan_.steps[at(s)];
    const NodeId op = step.kernel >= 0 ? plan_.kernels[at(step.kernel)].outputs.front() : step.nodes.front();
    const std::string& counts = best_.at(name_of(p, e));
    recorder.add("astra.stream", computation_.node(op).name, step.id, [&] {
      const std::size_t options = choices_.at(name_of(p, e)).size();
      return Verdict::yes(
          "astra.stream",
          fmt::format("stream {} of {}: epoch {} of super-epoch {}, {} (steps of its classes on each stream) "
                      "is the best of {} choices",
                      dealt.stream[at(s)], streams_, e, p, counts, options));
    });
  }

  Dealt dealt_by(const Bindings& bindings) const {
    std::vector<StreamCounts> counts;
    for (std::size_t p = 0; p < space_.super_epochs.size(); ++p)
      for (std::size_t e = 0; e < space_.super_epochs[p].epochs.size(); ++e) {
        const std::string name = name_of(p, e);
        counts.push_back(choices_.at(name).at(bindings.at(name)));
      }
    return deal(space_, counts, streams_);
  }

  /// By step of the plan.
  std::vector<StreamSpan> spans(const Dealt& dealt) const {
    std::vector<int> place(plan_.steps.size());
    for (std::size_t i = 0; i < dealt.order.size(); ++i) place[at(dealt.order[i])] = static_cast<int>(i);
    std::vector<StreamStep> steps;
    for (const int s : dealt.order) {
      steps.push_back({kernels_[at(s)], dealt.stream[at(s)]});
      for (const int wait : dealt.waits[at(s)]) steps.back().waits.push_back(place[at(wait)]);
    }
    const std::vector<StreamSpan> in_order = run_schedule(device_, steps);
    std::vector<StreamSpan> result(plan_.steps.size());
    for (std::size_t i = 0; i < dealt.order.size(); ++i) result[at(dealt.order[i])] = in_order[i];
    return result;
  }

  /// Of an epoch: from the beginning of its super-epoch to the end of all steps up to its own (section 4.7).
  std::map<std::string, double> measure(const Bindings& bindings) const {
    const std::vector<StreamSpan> all = spans(dealt_by(bindings));
    std::map<std::string, double> us;
    double end = 0;
    for (std::size_t p = 0; p < space_.super_epochs.size(); ++p) {
      const double begin = end;
      for (std::size_t e = 0; e < space_.super_epochs[p].epochs.size(); ++e) {
        for (const StepClass& of : space_.super_epochs[p].epochs[e].classes)
          for (const int s : of.steps) end = std::max(end, all[at(s)].end_us);
        us[name_of(p, e)] = end - begin;
      }
    }
    return us;
  }

  const Computation& computation_;
  const Device& device_;
  const FusionPlan& plan_;
  int streams_;
  StreamSpace space_;
  std::vector<StreamKernel> kernels_;  ///< by step
  TreeNode tree_;
  std::map<std::string, std::map<std::string, StreamCounts>> choices_;  ///< by epoch and option
  ProfileIndex index_;
  Bindings best_;
  std::size_t minibatches_ = 0;
  double best_us_ = 0, one_us_ = 0;
};

/// The plan's steps in the order of dispatch, its kernels numbered in it.
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

}  // namespace

void put_on_streams(const Graph& graph, const Device& device, FusionPlan& plan, int streams,
                    Recorder& recorder) {
  StreamChooser chooser(graph, device, plan, streams);
  const std::optional<Dealt> dealt = chooser.run();
  chooser.record(dealt ? &*dealt : nullptr, recorder);
  if (dealt) reorder(plan, *dealt);
}

}  // namespace stitchwork::astra
