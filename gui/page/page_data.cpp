#include "gui/page/page_data.h"

#include "analysis/explain/diff.h"
#include "analysis/json/plan_json.h"
#include "analysis/plan/control_flow.h"
#include "analysis/plan/memory_text.h"
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
ordered_json rewritings_json(const PlanExcerpt& excerpt) {
  const FusionPlan& plan = excerpt.plan;
  ordered_json list = ordered_json::array();
  if (plan.rewritten == nullptr) return list;
  const Computation& now = plan.rewritten->graph.entry_computation();
  const Computation& model = plan.rewritten->model->entry_computation();
  for (const rewriting::Rewrite& step : plan.rewritten->steps)
    for (const rewriting::Place& place : step.at) {
      NodeId op = now.find(place.front());
      if (const NodeId before = model.find(place.front()); op == kNoNode && before != kNoNode)
        op = planned_op(plan, before);
      const int row = op == kNoNode ? -1 : excerpt.parts.front().row[static_cast<std::size_t>(op)];
      if (!excerpt.summary.is_null() && row < 0) continue;
      std::string why(rewriting::rule_named(step.rule).summary);
      for (const Decision& decision : plan.decisions)
        if (decision.verdict.rule == "fission.taken" && decision.subject == place.front())
          why = decision.verdict.why;
      list.push_back({{"rule", step.rule}, {"at", place}, {"now", row}, {"why", why}});
    }
  return list;
}

/// By step of the whole plan and of what it runs, numbered through as first_step does: its number on the
/// page; -1.
std::vector<int> steps_on_page(const PlanExcerpt& excerpt) {
  std::vector<int> numbers;
  for (std::size_t p = 0; p < excerpt.parts.size(); ++p) {
    const int first = first_step(excerpt.shown, static_cast<int>(p) - 1);
    for (const int step : excerpt.parts[p].step) numbers.push_back(step < 0 ? -1 : first + step);
  }
  return numbers;
}

ordered_json metric_json(const PageMetric& metric, const std::vector<int>& on_page) {
  ordered_json values = ordered_json::array();
  for (std::size_t s = 0; s < metric.values.size(); ++s)
    if (const auto& value = metric.values[s]; on_page[s] >= 0)
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
ordered_json profile_json_of(const PagePlan& given, const std::vector<int>& on_page) {
  if (!given.profile) return nullptr;
  ordered_json launches = ordered_json::array();
  for (const PageLaunch& l : given.profile->launches) {
    ordered_json steps = ordered_json::array();
    for (const int step : l.steps)
      if (const int shown = on_page[static_cast<std::size_t>(step)]; shown >= 0) steps.push_back(shown);
    if (steps.empty() && !l.steps.empty()) continue;  // of steps that are not shown
    launches.push_back({l.kernel, l.us ? ordered_json(*l.us) : ordered_json(nullptr), l.stands_for, l.rule,
                        std::move(steps), l.why});
  }
  return {{"summary", given.profile->summary},
          {"findings", given.profile->findings},
          {"launches", std::move(launches)}};
}

/// What `stitchwork plan --json` prints, of the steps that are shown; kernels whose ops are too many have
/// none.
ordered_json plan_document_of(const Model& model, const PlanExcerpt& excerpt) {
  ordered_json document = plan_document(model.graph, excerpt.shown);
  for (ordered_json& kernel : document["kernels"]) {
    if (!excerpt.closed.contains(kernel["id"].get<std::string>())) continue;
    for (auto& [key, value] : kernel.items())
      if (value.is_structured() && value.size() > 0 && key != "time_parts" && key != "not_modelled")
        value = value.is_array() ? ordered_json::array() : ordered_json::object();
  }
  return document;
}

/// The whole plan's memory at the steps that are shown, and the buffers of ops that are.
ordered_json memory_json_of(const Graph& graph, const PlanExcerpt& excerpt) {
  PlanMemory memory = plan_memory(graph, excerpt.plan);
  if (excerpt.summary.is_null()) return memory_json(graph, excerpt.plan, memory);
  const PartExcerpt& part = excerpt.parts.front();
  std::vector<std::size_t> before{0};  // by step: those shown before it
  for (const int step : part.step) before.push_back(before.back() + (step >= 0 ? 1 : 0));
  const std::size_t peak = memory.peak_step, all = memory.steps.size();
  std::vector<bool> at_peak;
  std::erase_if(memory.buffers, [&](BufferLife& buffer) {
    const bool shown = part.row[static_cast<std::size_t>(buffer.owner)] >= 0, alive = buffer.alive_at(peak);
    const std::size_t first = before[buffer.first],
                      end = buffer.last >= all ? before[all] + 1 : before[buffer.last + 1];
    if (!shown || first >= end) return true;  // it lives between two that are shown
    std::erase_if(buffer.aliases, [&](NodeId op) { return part.row[static_cast<std::size_t>(op)] < 0; });
    buffer.first = first;
    buffer.last = end - 1;
    at_peak.push_back(alive);
    return false;
  });
  std::vector<PlanMemory::Step> steps;
  for (std::size_t s = 0; s < all; ++s)
    if (part.step[s] >= 0) steps.push_back(memory.steps[s]);
  memory.steps = std::move(steps);
  ordered_json json = memory_json(graph, excerpt.shown, memory);
  for (std::size_t b = 0; b < at_peak.size(); ++b)
    json["buffers"][b]["alive_at_peak"] = static_cast<bool>(at_peak[b]);
  json["peak_step"] = all == 0 || part.step[peak] < 0 ? ordered_json() : ordered_json(part.step[peak]);
  return json;
}

ordered_json plan_json_of(const Model& model, const PagePlan& given, const PlanExcerpt& excerpt,
                          SharedSources& sources) {
  const FusionPlan &plan = excerpt.plan, &shown = excerpt.shown;
  const Graph& graph = planned_graph(model.graph, plan);
  const Device& target = device(plan.device);
  ordered_json parts = ordered_json::array(), rows = ordered_json::array(), metrics = ordered_json::array();
  const auto part = [&](const Graph& of, const FusionPlan& planned, std::size_t p) {
    const std::set<std::string> closed = p == 0 ? excerpt.closed : std::set<std::string>();
    parts.push_back(page_part(of, planned, excerpt.parts[p], closed));
    std::size_t shown_before = 0;
    for (const std::size_t k : excerpt.parts[p].kernels) {
      const KernelPlan& kernel = planned.kernels[k];
      ordered_json& source = parts.back()["kernels"][shown_before++]["source"];
      if (closed.contains(kernel.id))
        source = {{"problem",
                   fmt::format("{} ops are more than a page has the text of; `stitchwork compile` writes it",
                               kernel.ops.size())}};
      else
        source = kernel.code ? sources.add(*plan.peer, *kernel.code) : sources.add(of, kernel);
    }
  };
  part(graph, plan, 0);
  for (std::size_t c = 0; c < plan.computations.size(); ++c)
    part(entered(graph, plan.computations[c].computation), plan.computations[c].plan, c + 1);
  std::vector<StepRow> steps = step_rows(graph, target, shown);
  double total = 0;  // the whole's, of which each is a share
  for (const PlanStep& step : plan.steps) total += step.predicted_us;
  for (StepRow& row : steps) {
    row.share = total > 0 ? std::min(1.0, row.predicted_us * row.runs / total) : 0;
    rows.push_back(row_json(row));
  }
  const std::vector<int> on_page = steps_on_page(excerpt);
  for (const PageMetric& metric : given.metrics) metrics.push_back(metric_json(metric, on_page));
  const bool whole = excerpt.summary.is_null();
  return {{"plan", plan_document_of(model, excerpt)},
          {"name", given.name.empty() ? plan.planner : given.name},
          {"excerpt", excerpt.summary},
          {"style", planner_style(plan.planner)},
          {"rows", std::move(rows)},
          {"parts", std::move(parts)},
          {"graph", page_graph(graph, excerpt, whole ? given.expanded : std::nullopt)},
          {"roofline", roofline_json(target, steps)},
          {"memory", memory_json_of(graph, excerpt)},
          {"rewritings", rewritings_json(excerpt)},
          {"metrics", std::move(metrics)},
          {"profile", profile_json_of(given, on_page)}};
}

}  // namespace

ordered_json page_document(const Model& model, const std::vector<PagePlan>& plans,
                           const std::optional<OpRange>& range) {
  const Device& target = device(plans.at(0).plan->device);
  SharedSources sources;
  ordered_json list = ordered_json::array(), diffs = ordered_json::array();
  std::vector<PlanExcerpt> excerpts;
  for (const PagePlan& plan : plans) excerpts.push_back(excerpt(model.graph, *plan.plan, range));
  for (std::size_t p = 0; p < plans.size(); ++p)
    list.push_back(plan_json_of(model, plans[p], excerpts[p], sources));
  DiffScope scope;
  if (range) scope = [&](NodeId op) { return range->first <= op && op < range->last; };
  for (std::size_t a = 0; a < plans.size(); ++a)
    for (std::size_t b = a + 1; b < plans.size(); ++b) {
      const PlanDiff changed = diff(model.graph, excerpts[a].plan, excerpts[b].plan, scope);
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
