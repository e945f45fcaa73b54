#include "experiments/trace.h"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "analysis/judge/step_times.h"
#include "analysis/plan/step_order.h"
#include "experiments/launch_json.h"

namespace stitchwork {
namespace {

using nlohmann::ordered_json;

constexpr int kProcess = 1;

ordered_json metadata(const char* what, int thread, const std::string& text) {
  return {{"name", what}, {"ph", "M"}, {"pid", kProcess}, {"tid", thread}, {"args", {{"name", text}}}};
}

std::string op_names(const Graph& graph, const std::vector<NodeId>& ops) {
  std::string text;
  for (const NodeId op : ops) text += (text.empty() ? "" : " ") + graph.entry_computation().node(op).name;
  return text;
}

ordered_json kernel_arguments(const Graph& graph, const KernelPlan& kernel, const KernelRun& run) {
  ordered_json arguments = {{"grid", kernel.launch.grid},
                            {"block", kernel.launch.block},
                            {"grid_barriers", kernel.launch.grid_barriers},
                            {"shared_bytes", kernel.launch.shared_bytes},
                            {"registers", run.registers},
                            {"ops", op_names(graph, kernel.ops)}};
  if (run.method == Method::kSimulated) arguments["counters"] = counters_json(run.counters);
  return arguments;
}

/// Of a plan on several streams that no GPU ran; else none.
std::vector<StreamSpan> spans_of(const Graph& graph, const FusionPlan& plan, const RunResult& run) {
  std::vector<double> us;
  for (const StepRun& step : run.steps) {
    if (step.method == Method::kMeasured) return {};
    us.push_back(step.time_us);
  }
  if (!uses_streams(plan)) return {};
  const Device& target = device(plan.device);
  return step_spans(
      target, plan,
      with_times(step_kernels(graph, target, plan, evaluations(graph.entry_computation(), plan)), us));
}

}  // namespace

ordered_json trace_json(const Model& model, const TrialSpec& spec, const TrialResult& result) {
  const FusionPlan& plan = result.executable.plan;
  const Graph& graph = planned_graph(model.graph, plan);
  ordered_json events = ordered_json::array();
  events.push_back(
      metadata("process_name", 0, model.graph.source + ", " + plan.planner + ", " + plan.device));
  const double gap_us = device(plan.device).launch_gap_us;
  const std::vector<StreamSpan> spans = spans_of(graph, plan, result.run);
  double begin_us = 0;
  int streams = 0;
  for (std::size_t s = 0; s < result.run.steps.size(); ++s) {
    const PlanStep& step = plan.steps[s];
    const StepRun& run = result.run.steps[s];
    const bool is_kernel = step.kind == StepKind::kKernel;
    const auto kernel = static_cast<std::size_t>(std::max(step.kernel, 0));
    ordered_json arguments = {{"method", name(run.method)}};
    if (is_kernel)
      arguments.update(kernel_arguments(graph, plan.kernels[kernel], result.run.kernels[kernel]));
    else
      arguments["ops"] = op_names(graph, step.nodes);
    events.push_back({{"name", is_kernel ? step.id + " " + plan.kernels[kernel].name : step.id},
                      {"cat", name(step.kind)},
                      {"ph", "X"},
                      {"ts", spans.empty() ? begin_us : spans[s].begin_us},
                      {"dur", spans.empty() ? run.time_us : spans[s].end_us - spans[s].begin_us},
                      {"pid", kProcess},
                      {"tid", step.stream},
                      {"args", std::move(arguments)}});
    begin_us += run.time_us + gap_us;
    streams = std::max(streams, step.stream + 1);
  }
  for (int stream = 0; stream < streams; ++stream)
    events.push_back(metadata("thread_name", stream, fmt::format("stream {}", stream)));
  return {{"traceEvents", std::move(events)},
          {"displayTimeUnit", "ns"},
          {"otherData", {{"backend", spec.backend}, {"seed", spec.seed}, {"total_us", result.run.total_us}}}};
}

}  // namespace stitchwork
