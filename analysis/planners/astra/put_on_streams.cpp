// Steps of a plan dealt to streams, explored over the modelled schedule.
#include <fmt/format.h>

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
    Dealt dealt = trials_.dealt(best_);
    best_us_ = last_end_us(trials_.spans(dealt, kernels_));
    one_us_ = last_end_us(trials_.spans(trials_.dealt(defaults(trials_.tree())), kernels_));
    if (best_us_ >= one_us_) return std::nullopt;
    return dealt;
  }

  void record(const Dealt* dealt, Recorder& recorder) const {
    if (!recorder.enabled()) return;
    const std::string whole = fmt::format(
        "on {} streams {:.2f} us (modelled), on one {:.2f}; {} mini-batches, {:g} trials one by one",
        streams_, best_us_, one_us_, minibatches_, trials(trials_.tree()));
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
  std::size_t minibatches_ = 0;
  double best_us_ = 0, one_us_ = 0;
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
