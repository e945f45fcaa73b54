// Steps of a plan dealt to streams, explored over the modelled schedule.
#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <optional>

#include "analysis/planners/astra/planner.h"
#include "analysis/planners/astra/stream_trials.h"
#include "core/base/at.h"
#include "core/base/error.h"

namespace stitchwork::astra {
namespace {

class StreamChooser {
 public:
  StreamChooser(const Graph& graph, const Device& device, const FusionPlan& plan, int streams)
      : computation_(graph.entry_computation()),
        plan_(plan),
        streams_(streams),
        trials_(graph, device, plan, streams),
        kernels_(step_kernels(graph, device, plan, evaluations(computation_, plan))) {}

  /// Nothing where one stream is as fast.
  std::optional<Dealt> run() {
    const auto measure = [&](const Bindings& bindings) {
      return trials_.epoch_us(trials_.spans(trials_.dealt(bindings), kernels_));
    };
    minibatches_ =
        run_minibatches(trials_.tree(), "b0", index_, measure, std::numeric_limits<std::size_t>::max());
    SW_CHECK(next(trials_.tree(), "b0", index_, best_), "streams are not explored");
    explored_us_ = whole_us(best_);
    try_small_parts_whole();
    go_round();
    Dealt dealt = trials_.dealt(best_);
    best_us_ = whole_us(best_);
    one_us_ = last_end_us(trials_.spans(trials_.dealt(defaults(trials_.tree())), kernels_));
    if (best_us_ >= one_us_) return std::nullopt;
    return dealt;
  }

  void record(const Dealt* dealt, Recorder& recorder) const {
    if (!recorder.enabled()) return;
    const std::string whole = fmt::format(
        "on {} streams {:.2f} us (modelled), on one {:.2f}; explored {:.2f} in {} mini-batches, {:g} trials "
        "one by one, then {} schedules more, modelled",
        streams_, best_us_, one_us_, explored_us_, minibatches_, trials(trials_.tree()), more_);
    recorder.add("astra.streams", computation_.node(computation_.root).name, "", [&] {
      return dealt != nullptr ? Verdict::yes("astra.streams", whole) : Verdict::no("astra.one-stream", whole);
    });
    if (dealt == nullptr) return;
    const std::vector<SuperEpoch>& parts = trials_.space().super_epochs;
    for (std::size_t p = 0; p < parts.size(); ++p)
      for (std::size_t e = 0; e < parts[p].epochs.size(); ++e)
        for (const StepClass& of : parts[p].epochs[e].classes)
          for (const int s : of.steps) record_step(p, e, s, *dealt, recorder);
  }

 private:
  /// Steps in all schedules that are tried whole: 4,096 of 64 steps.
  /// A choice, not measured: some tenths of a second.
  static constexpr double kMostStepsTried = 4096.0 * 64;
  /// A choice, not measured: of four training steps the third round gained less than 0.1 %.
  static constexpr int kMostRounds = 3;

  double whole_us(const Bindings& bindings) const {
    return last_end_us(trials_.spans(trials_.dealt(bindings), kernels_));
  }

  /// Of each super-epoch to its end, by number.
  std::vector<double> part_us(const Bindings& bindings) {
    ++more_;
    const std::map<std::string, double> us =
        trials_.epoch_us(trials_.spans(trials_.dealt(bindings), kernels_));
    std::vector<double> parts;
    for (std::size_t p = 0; p < trials_.space().super_epochs.size(); ++p)
      parts.push_back(us.at(StreamTrials::epoch_name(p, epochs(p).size() - 1)));
    return parts;
  }

  /// A modelled schedule costs no mini-batch: super-epochs of few configurations try all of them, all parts
  /// at once, as barriers keep them apart.
  void try_small_parts_whole() {
    const double most = kMostStepsTried / static_cast<double>(std::max<std::size_t>(1, plan_.steps.size()));
    std::vector<double> sizes;
    for (const TreeNode& part : trials_.tree().children) {
      sizes.push_back(configurations(part));
      if (sizes.back() > most) sizes.back() = 0;
    }
    if (sizes.empty()) return;
    const double longest = *std::max_element(sizes.begin(), sizes.end());
    std::vector<double> least = part_us(best_);
    Bindings best = best_;
    for (double i = 0; i < longest; ++i) {
      Bindings bindings = best_;
      for (std::size_t p = 0; p < sizes.size(); ++p)
        if (i < sizes[p]) bind(p, static_cast<std::size_t>(i), bindings);
      const std::vector<double> us = part_us(bindings);
      for (std::size_t p = 0; p < sizes.size(); ++p)
        if (i < sizes[p] && us[p] < least[p]) {
          least[p] = us[p];
          bind(p, static_cast<std::size_t>(i), best);
        }
    }
    best_ = std::move(best);
  }

  /// The epochs of a super-epoch as its configuration of that number has them.
  void bind(std::size_t part, std::size_t number, Bindings& bindings) const {
    for (const TreeNode& epoch : epochs(part)) {
      bindings[epoch.name] = epoch.options[number % epoch.options.size()];
      number /= epoch.options.size();
    }
  }

  /// The prefix has each epoch chosen by its own end, with those behind it unknown: each is chosen again by
  /// the super-epoch's end, all others at their best, until that gains nothing.
  void go_round() {
    double last = whole_us(best_);
    for (int round = 0; round < kMostRounds; ++round) {
      TreeNode tree = trials_.tree();
      for (TreeNode& part : tree.children)
        for (TreeNode& epoch : part.children) {
          const auto now = std::find(epoch.options.begin(), epoch.options.end(), best_.at(epoch.name));
          std::rotate(epoch.options.begin(), now, now + 1);  // the default
        }
      ProfileIndex index;
      const auto measure = [&](const Bindings& bindings) {
        const std::vector<double> parts = part_us(bindings);
        std::map<std::string, double> us;
        for (std::size_t p = 0; p < parts.size(); ++p)
          for (const TreeNode& epoch : epochs(p)) us[epoch.name] = parts[p];
        return us;
      };
      run_minibatches(tree, "b0", index, measure, std::numeric_limits<std::size_t>::max());
      Bindings best;
      SW_CHECK(next(tree, "b0", index, best), "streams are not explored");
      const double now = whole_us(best);
      if (now >= last) return;
      best_ = std::move(best);
      last = now;
    }
  }

  const std::vector<TreeNode>& epochs(std::size_t part) const {
    return trials_.tree().children[part].children;
  }

  /// Of a kernel its first output; of a call each op that it makes.
  void record_step(std::size_t p, std::size_t e, int s, const Dealt& dealt, Recorder& recorder) const {
    const PlanStep& step = plan_.steps[at(s)];
    std::vector<NodeId> ops = step.nodes;
    if (step.kernel >= 0) ops = {plan_.kernels[at(step.kernel)].outputs.front()};
    const std::string name = StreamTrials::epoch_name(p, e);
    const std::string& counts = best_.at(name);
    for (const NodeId op : ops)
      recorder.add("astra.stream", computation_.node(op).name, step.id, [&] {
        return Verdict::yes(
            "astra.stream",
            fmt::format(
                "stream {} of {}: epoch {} of super-epoch {}, {} (steps of its classes on each stream) "
                "is the best of {} choices",
                dealt.stream[at(s)], streams_, e, p, counts, trials_.choices(p, e)));
      });
  }

  const Computation& computation_;
  const FusionPlan& plan_;
  int streams_;
  StreamTrials trials_;
  std::vector<StreamKernel> kernels_;  ///< by step
  ProfileIndex index_;
  Bindings best_;
  std::size_t minibatches_ = 0, more_ = 0;
  double explored_us_ = 0, best_us_ = 0, one_us_ = 0;
};

}  // namespace

void put_on_streams(const Graph& graph, const Device& device, FusionPlan& plan, int streams,
                    Recorder& recorder) {
  StreamChooser chooser(graph, device, plan, streams);
  const std::optional<Dealt> dealt = chooser.run();
  chooser.record(dealt ? &*dealt : nullptr, recorder);
  if (dealt) reorder(plan, *dealt);
}

}  // namespace stitchwork::astra
