#include "gui/page/page_data.h"

#include "analysis/explain/diff.h"
#include "analysis/plan/control_flow.h"
#include "analysis/plan/memory_text.h"
#include "analysis/plan/plan_json.h"
#include "core/base/version.h"
#include "core/substitute/rule.h"
#include "experiments/experiment_figure.h"
#include "experiments/roofline.h"
#include "gui/model/steps.h"
#include "occupancy_model/timing_text.h"

namespace stitchwork::gui {
namespace {

using nlohmann::ordered_json;

ordered_json schemes_json() {
  ordered_json list = ordered_json::array();
  for (const Scheme s : {Scheme::kIndependent, Scheme::kLocal, Scheme::kRegional, Scheme::kResident,
                         Scheme::kGlobal, Scheme::kRecomputed})
    list.push_back({{"name", name(s)}, {"badge", std::string(1, badge(s))}, {"meaning", meaning(s)}});
  return list;
}

ordered_json units_json() {
  ordered_json units = ordered_json::object();
  for (const auto& unit : kUnits) units[std::string(unit.id)] = unit.name;
  return units;
}

ordered_json row_json(const StepRow& row) {
  ordered_json json{{"step", row.step},
                    {"body", row.body},
                    {"kernel", row.kernel},
                    {"kind", name(row.kind)},
                    {"id", row.id},
                    {"name", row.name},
                    {"within", row.within},
                    {"runs", row.runs},
                    {"share", row.share},
                    {"ops", row.ops},
                    {"groups", row.groups},
                    {"schemes", row.schemes},
                    {"dram_bytes", row.dram_bytes},
                    {"predicted_us", row.predicted_us}};
  if (row.kernel < 0) return json;
  json["limited_by"] = limited_by(row.time);
  json["busiest"] = busiest_units(row.time, 2);
  return json;
}

/// Steps of the plan's rewriting, each where it stood, with the op that is there now.
ordered_json rewritings_json(const FusionPlan& plan) {
  ordered_json list = ordered_json::array();
  if (plan.rewritten == nullptr) return list;
  const Computation& now = plan.rewritten->graph.entry_computation();
  const Computation& model = plan.rewritten->model->entry_computation();
  for (const rewriting::Rewrite& step : plan.rewritten->steps)
    for (const rewriting::Place& place : step.at) {
      NodeId op = now.find(place.front());
      if (const NodeId before = model.find(place.front()); op == kNoNode && before != kNoNode)
        op = planned_op(plan, before);
      std::string why(rewriting::rule_named(step.rule).summary);
      for (const Decision& decision : plan.decisions)
        if (decision.verdict.rule == "fission.taken" && decision.subject == place.front())
          why = decision.verdict.why;
      list.push_back({{"rule", step.rule}, {"at", place}, {"now", op}, {"why", why}});
    }
  return list;
}

ordered_json metric_json(const PageMetric& metric) {
  ordered_json values = ordered_json::array();
  for (const auto& value : metric.values)
    values.push_back(value ? ordered_json{value->first, value->second} : ordered_json(nullptr));
  return {{"title", metric.title},
          {"method", metric.method},
          {"least", metric.least},
          {"most", metric.most},
          {"values", std::move(values)}};
}

/// What the instruction roofline shows of the rows that are on it: place, and the step.
ordered_json roofline_json(const Device& device, const std::vector<StepRow>& rows) {
  std::vector<const StepRow*> on_it;
  RooflineSeries series{"", -1, "modelled", {}};
  for (const StepRow& row : rows) {
    const RooflineKernel kernel = roofline_kernel(row.time);
    if (row.kernel < 0 || !(kernel.dram_us > 0 && kernel.issue_us > 0 && kernel.time_us > 0)) continue;
    on_it.push_back(&row);
    series.kernels.push_back(kernel);
  }
  const std::optional<Figure> figure = roofline_figure(device, {series});
  if (!figure) return nullptr;
  const FigureSeries &roof = figure->series.at(0), &points = figure->series.at(1);
  ordered_json marks = ordered_json::array();
  for (std::size_t i = 0; i < on_it.size(); ++i)
    marks.push_back({points.x[i], points.y[i].value_or(0), on_it[i]->step});
  return {{"x", figure->x.label},
          {"y", figure->y.label},
          {"peaks", roof.name},
          {"corner", {roof.x[1], *roof.y[1]}},
          {"marks", std::move(marks)}};
}

/// Another tool's launches: kernel, time (null: none), what it stands for, by which rule, steps, and why
/// there is nothing.
ordered_json profile_json_of(const PagePlan& given) {
  if (!given.profile) return nullptr;
  ordered_json launches = ordered_json::array();
  for (const PageLaunch& l : given.profile->launches)
    launches.push_back(
        {l.kernel, l.us ? ordered_json(*l.us) : ordered_json(nullptr), l.stands_for, l.rule, l.steps, l.why});
  return {{"summary", given.profile->summary},
          {"findings", given.profile->findings},
          {"launches", std::move(launches)}};
}

ordered_json plan_json_of(const Model& model, const PagePlan& given, SharedSources& sources) {
  const FusionPlan& plan = *given.plan;
  const Graph& graph = planned_graph(model.graph, plan);
  const Device& target = device(plan.device);
  FusionPlan bare = plan;
  bare.decisions.clear();  // as `stitchwork plan --json` prints it
  ordered_json parts = ordered_json::array(), rows = ordered_json::array(), metrics = ordered_json::array();
  const auto part = [&](const Graph& of, const FusionPlan& planned) {
    parts.push_back(page_part(of, planned));
    for (std::size_t k = 0; k < planned.kernels.size(); ++k) {
      const KernelPlan& kernel = planned.kernels[k];
      parts.back()["kernels"][k]["source"] =
          kernel.code ? sources.add(*plan.peer, *kernel.code) : sources.add(of, kernel);
    }
  };
  part(graph, plan);
  for (const ComputationPlan& body : plan.computations) part(entered(graph, body.computation), body.plan);
  const std::vector<StepRow> steps = step_rows(graph, target, plan);
  for (const StepRow& row : steps) rows.push_back(row_json(row));
  for (const PageMetric& metric : given.metrics) metrics.push_back(metric_json(metric));
  return {{"plan", plan_document(model.graph, bare)},
          {"name", given.name.empty() ? plan.planner : given.name},
          {"style", planner_style(plan.planner)},
          {"rows", std::move(rows)},
          {"parts", std::move(parts)},
          {"graph", page_graph(graph, plan, given.expanded)},
          {"roofline", roofline_json(target, steps)},
          {"memory", memory_json(graph, plan, plan_memory(graph, plan))},
          {"rewritings", rewritings_json(plan)},
          {"metrics", std::move(metrics)},
          {"profile", profile_json_of(given)}};
}

}  // namespace

ordered_json page_document(const Model& model, const std::vector<PagePlan>& plans) {
  const Device& target = device(plans.at(0).plan->device);
  SharedSources sources;
  ordered_json list = ordered_json::array(), diffs = ordered_json::array();
  for (const PagePlan& plan : plans) list.push_back(plan_json_of(model, plan, sources));
  for (std::size_t a = 0; a < plans.size(); ++a)
    for (std::size_t b = a + 1; b < plans.size(); ++b) {
      const PlanDiff changed = diff(model.graph, *plans[a].plan, *plans[b].plan);
      ordered_json one{{"plans", {a, b}}, {"a", totals_to_json(changed.a)}, {"b", totals_to_json(changed.b)}};
      one.update(changes_to_json(changed));
      diffs.push_back(std::move(one));
    }
  return {{"schema", "stitchwork.page/1"},
          {"stitchwork", version().version},
          {"model",
           {{"path", model.graph.source}, {"sha256", model.graph.source_sha256}, {"name", model.graph.name}}},
          {"device", {{"id", target.id}, {"name", target.name}, {"launch_gap_us", target.launch_gap_us}}},
          {"schemes", schemes_json()},
          {"units", units_json()},
          {"captions", {{"roofline", kRooflineCaption}}},
          {"plans", std::move(list)},
          {"diffs", std::move(diffs)},
          {"sources", sources.texts()}};
}

}  // namespace stitchwork::gui
