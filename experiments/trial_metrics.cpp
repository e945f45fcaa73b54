#include "experiments/trial_metrics.h"

#include <algorithm>
#include <set>

#include "analysis/judge/step_times.h"
#include "analysis/planners/astra/minibatches.h"
#include "analysis/planners/astra/planner.h"
#include "core/base/error.h"
#include "experiments/dynamic_metrics.h"
#include "experiments/plan_metrics.h"

namespace stitchwork {
namespace {

/// The method that kernels were asked to run by.
Method method_of(const TrialSpec& spec) {
  if (spec.sampled) return Method::kSampled;
  if (spec.backend == "sim") return Method::kSimulated;
  return spec.backend == "model" ? Method::kModelled : Method::kMeasured;
}

/// "simulated + modelled": the methods closest to the hardware come first.
std::string text_of(const std::set<Method>& methods) {
  std::string text;
  for (const Method method :
       {Method::kMeasured, Method::kImported, Method::kSimulated, Method::kSampled, Method::kModelled})
    if (methods.contains(method)) text += fmt::format("{}{}", text.empty() ? "" : " + ", name(method));
  return text;
}

/// A sum of times, and the methods of what was added.
struct Sum {
  double us = 0;
  std::set<Method> methods;

  void add(double more_us, Method method) {
    us += more_us;
    methods.insert(method);
  }
  std::string text(Method where_nothing_was_added) const {
    return methods.empty() ? std::string(name(where_nothing_was_added)) : text_of(methods);
  }
};

struct Times {
  Sum kernels, library, control, overhead;
};

Times times_of(const TrialSpec& spec, const TrialResult& result) {
  const Method executed = method_of(spec);
  Times times;
  const std::vector<bool> once = once_kernels(result.executable.plan);
  for (std::size_t k = 0; k < once.size(); ++k)
    if (const KernelRun& run = result.run.kernels[k]; !once[k]) times.kernels.add(run.time_us, run.method);
  // A sample may have kernels that are too small for it and are run whole: the sum is a sample all the same.
  if (times.kernels.methods.contains(Method::kSampled)) times.kernels.methods.erase(Method::kSimulated);
  for (std::size_t i = 0; i < result.run.steps.size(); ++i) {
    const StepRun& step = result.run.steps[i];
    const StepKind kind = result.executable.plan.steps[i].kind;
    if (result.executable.plan.steps[i].once) continue;
    if (kind == StepKind::kLibrary) times.library.add(step.time_us, step.method);
    if (kind != StepKind::kControl) continue;
    times.control.add(step.time_us, executed);
    times.control.add(0, Method::kModelled);  // the gaps between a body's launches
  }
  // Launch gaps, copies and memsets follow from the device's description on every backend. Of a plan on
  // several streams less what runs beside, which may be more.
  const double rest = result.run.total_us - times.kernels.us - times.library.us - times.control.us;
  times.overhead.add(rest, Method::kModelled);
  return times;
}

std::string method_of_total(const Times& times, Method executed) {
  Sum total;
  for (const Sum* part : {&times.kernels, &times.library, &times.control, &times.overhead})
    if (part->us != 0)
      for (const Method method : part->methods) total.add(0, method);
  return total.text(executed);
}

/// By index of kLimits: time of the kernels that each part takes most of, in us.
std::array<double, kLimits.size()> limit_times(const TrialResult& result) {
  std::array<double, kLimits.size()> times{};
  for (const KernelRun& run : result.run.kernels) {
    const auto larger = [&](const Limit& a, const Limit& b) { return run.parts.*a.part < run.parts.*b.part; };
    const auto most = std::max_element(kLimits.begin(), kLimits.end(), larger);
    // A measured kernel has the parts of its model; where they are of no kernel at all, nothing is said.
    if (run.parts.total_us > 0)
      times[static_cast<std::size_t>(most - kLimits.begin())] +=
          run.method == Method::kMeasured ? run.parts.total_us : run.time_us;
  }
  return times;
}

/// The end of the plan's schedule where the host takes kDispatchUs to launch each step.
double eager_us(const Model& model, const FusionPlan& plan, const RunResult& run) {
  // Astra, section 2.3: "about 5-10 usec" a launch.
  constexpr double kDispatchUs = 5;
  const Graph& graph = planned_graph(model.graph, plan);
  const Device& target = device(plan.device);
  std::vector<double> us;
  for (const StepRun& step : run.steps) us.push_back(step.time_us);
  const auto kernels =
      with_times(step_kernels(graph, target, plan, evaluations(graph.entry_computation(), plan)), us);
  return last_end_us(step_spans(target, plan, kernels, kDispatchUs));
}

}  // namespace

std::string busy_metric(std::size_t unit) { return fmt::format("busy_{}_us", kUnits.at(unit).id); }

std::vector<TrialMetric> trial_metrics(const Model& model, const TrialSpec& spec, const TrialResult& result) {
  const FusionPlan& plan = result.executable.plan;
  const Method executed = method_of(spec);
  const std::string modelled(name(Method::kModelled)), measured(name(Method::kMeasured)),
      of_kernels(name(executed));
  std::vector<TrialMetric> all;
  const auto add = [&](std::string_view metric, double value, const std::string& method) {
    all.push_back({metric, value, method});
  };
  int barriers = 0;
  for (const KernelPlan& k : plan.kernels) barriers += k.launch.grid_barriers;
  add("memory_kernels", plan.counts.memory_kernels, modelled);
  add("library_calls", plan.counts.library_calls, modelled);
  add("copies", plan.counts.copies, modelled);
  add("memsets", plan.counts.memsets, modelled);
  add("grid_barriers_planned", barriers, modelled);
  for (const PlanMetric& metric : plan_metrics(model.graph, plan)) add(metric.name, metric.value, modelled);
  std::size_t ops = 0;
  for (const Computation& computation : model.graph.computations) ops += computation.nodes.size();
  add("graph_ops", static_cast<double>(ops), modelled);
  // A compiler's plan has no estimate of its own: its times are the run's.
  add("predicted_us", plan.predicted_us, plan.peer == nullptr ? modelled : "simulated + modelled");

  const Times times = times_of(spec, result);
  const Method of_calls = spec.backend == "cuda" ? Method::kMeasured : Method::kModelled;
  add("kernel_us", times.kernels.us, times.kernels.text(executed));
  add("library_us", times.library.us, times.library.text(of_calls));
  add("control_us", times.control.us, times.control.text(executed));
  add("overhead_us", times.overhead.us, modelled);
  add("total_us", result.run.total_us, method_of_total(times, executed));
  if (plan.computations.empty() && result.run.steps.size() == plan.steps.size() && result.run.once_us == 0)
    add("eager_us", eager_us(model, plan, result.run), method_of_total(times, executed));
  const auto row = std::ranges::find_if(planners(), [&](const Planner& p) { return p.name == plan.planner; });
  if (row != planners().end() && astra::explores(*row))
    add("astra_trials", astra::trials_of_plan(model.graph, device(plan.device), plan), modelled);
  if (result.run.repeated) {
    add("stream_us", result.run.repeated->stream_us, measured);
    if (result.run.repeated->graph_us) add("graph_us", *result.run.repeated->graph_us, measured);
  }
  const auto limits = limit_times(result);
  for (std::size_t i = 0; i < kLimits.size(); ++i)
    add(kLimits[i].metric, limits[i], executed == Method::kMeasured ? modelled : of_kernels);

  const std::vector<TrialMetric> dynamic = dynamic_metrics(model, result);
  all.insert(all.end(), dynamic.begin(), dynamic.end());

  add("plan_ms", result.plan_ms, measured);
  add("compile_ms", result.compile_ms, measured);
  add("run_ms", result.run_ms, measured);
  if (result.check) {
    add("check_max_abs_error", result.check->max_abs_error, of_kernels);
    add("check_max_rel_error", result.check->max_rel_error, of_kernels);
  }
  return all;
}

}  // namespace stitchwork
