#include "gui/view/plans_page.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>
#include <unordered_map>

#include "core/base/format.h"
#include "experiments/document.h"
#include "experiments/experiment_figure.h"
#include "experiments/html.h"
#include "experiments/roofline.h"
#include "gui/view/export.h"
#include "gui/view/memory_figure.h"
#include "occupancy_model/timing_text.h"

namespace stitchwork::gui {
namespace {

using html::escaped;

/// Decisions listed with a kernel; a kernel of thousands of ops has thousands.
constexpr std::size_t kMostDecisions = 60;

/// The decisions that name an op of each kernel of the part, by kernel.
std::vector<std::vector<const Decision*>> decisions_by_kernel(const PlannedModel& part) {
  std::vector<std::vector<const Decision*>> result(part.plan->kernels.size());
  std::unordered_map<std::string, std::vector<std::size_t>> kernels_of;  ///< by the op's name
  for (std::size_t k = 0; k < part.plan->kernels.size(); ++k)
    for (const NodeId op : part.plan->kernels[k].ops) kernels_of[part.entry().node(op).name].push_back(k);
  for (const Decision& decision : part.plan->decisions) {
    std::set<std::size_t> about;
    for (const std::string* name : {&decision.subject, &decision.object})
      if (const auto found = kernels_of.find(*name); found != kernels_of.end())
        about.insert(found->second.begin(), found->second.end());
    for (const std::size_t k : about) result[k].push_back(&decision);
  }
  return result;
}

std::string why(const std::vector<const Decision*>& decisions) {
  if (decisions.empty()) return "";
  std::string items;
  for (std::size_t i = 0; i < std::min(decisions.size(), kMostDecisions); ++i) {
    const Decision& d = *decisions[i];
    items +=
        fmt::format("<li>{}: {}{} <b>{} {}</b> {}</li>\n", escaped(d.step), escaped(d.subject),
                    d.object.empty() ? "" : " → " + escaped(d.object), d.verdict.ok ? "✓ taken" : "✗ refused",
                    escaped(d.verdict.rule), escaped(d.verdict.why));
  }
  if (decisions.size() > kMostDecisions)
    items += fmt::format("<li>and {} more (stitchwork plan --dump=decisions)</li>\n",
                         decisions.size() - kMostDecisions);
  return fmt::format("<details><summary>why: {} decision{}</summary><ul>\n{}</ul></details>",
                     decisions.size(), decisions.size() == 1 ? "" : "s", items);
}

html::Row row_of(const StepRow& step, std::string below) {
  std::string schemes;
  for (std::size_t s = 0; s < step.schemes.size(); ++s)
    if (step.schemes[s] > 0)
      schemes += fmt::format("<span class=\"badge {0}\" title=\"{0}\">{1}</span>",
                             name(static_cast<Scheme>(s)), badge(static_cast<Scheme>(s)));
  const auto cell = [](std::string text) { return html::Cell{std::move(text), "", ""}; };
  const auto number = [&](auto value) { return cell(value != 0 ? fmt::to_string(value) : std::string()); };
  std::string named = escaped(step.name);
  if (step.body >= 0) named += " in " + escaped(step.within);
  if (step.runs != 1) named += fmt::format(" × {:.0f}", step.runs);
  return {{cell(escaped(step.id)),
           cell(named),
           {fmt::format("{:.2f}", step.predicted_us), "modelled", ""},
           step.kernel < 0 ? cell("") : html::Cell{limited_by(step.time), "modelled", ""},
           step.kernel < 0 ? cell("") : html::Cell{busiest_units(step.time, 2), "modelled", ""},
           cell(html::share_bar(step.share)),
           cell(schemes),
           number(step.ops),
           number(step.grid),
           number(step.block),
           number(step.barriers)},
          std::move(below)};
}

std::string kernels_table(const PlannedModel& planned) {
  std::vector<StepRow> steps = planned.steps;
  std::stable_sort(steps.begin(), steps.end(), [](const StepRow& a, const StepRow& b) {
    return a.predicted_us * a.runs > b.predicted_us * b.runs;
  });
  std::vector<std::vector<std::vector<const Decision*>>> decisions = {decisions_by_kernel(planned)};
  for (const auto& body : planned.bodies) decisions.push_back(decisions_by_kernel(*body));
  std::vector<html::Row> rows;
  for (const StepRow& step : steps)
    rows.push_back(row_of(step, step.kernel < 0 ? ""
                                                : why(decisions[static_cast<std::size_t>(step.body + 1)]
                                                               [static_cast<std::size_t>(step.kernel)])));
  return html::table({{"kernel", "", false},
                      {"name", "", false},
                      {"µs"},
                      {"limited by", "The longest part of its time", false},
                      {"of each peak", "Share of its time that the busiest units need at their peak", false},
                      {"share", "Of the time of all steps, with all its runs", false},
                      {"schemes", "How values travel between ops", false},
                      {"ops"},
                      {"grid"},
                      {"block"},
                      {"grid barriers"}},
                     rows, "kernels");
}

/// The kernels of all plans under the peaks of the device; "" where none moves a byte.
std::string roofline(const std::vector<GraphPicture>& pictures) {
  std::vector<RooflineSeries> series;
  for (const GraphPicture& picture : pictures) {
    const std::string& planner = picture.planned->plan->planner;
    RooflineSeries& one =
        series.emplace_back(RooflineSeries{planner, planner_style(planner), "modelled", {}});
    for (const StepRow& step : picture.planned->steps)
      if (step.kernel >= 0) one.kernels.push_back(roofline_kernel(step.time));
  }
  const auto figure = roofline_figure(*pictures.at(0).planned->device, series);
  return figure ? fmt::format("<h2>Roofline</h2>\n{}", figure_html(*figure, std::string(kRooflineCaption)))
                : "";
}

/// Device memory over the steps of all plans; "" where there are none.
std::string memory(const std::vector<GraphPicture>& pictures) {
  std::vector<MemorySeries> plans;
  for (const GraphPicture& picture : pictures) {
    const FusionPlan& plan = *picture.planned->plan;
    plans.push_back({plan.planner, planner_style(plan.planner), plan_memory(picture.planned->graph(), plan)});
  }
  const auto figure = memory_figure(plans);
  if (!figure) return "";
  std::string peaks;
  for (const MemorySeries& plan : plans)
    peaks += fmt::format("<li>{}: peak {} (modelled) at step {}</li>\n", escaped(plan.name),
                         human_bytes(static_cast<double>(plan.memory.peak_bytes)), plan.memory.peak_step);
  return fmt::format("<h2>Memory</h2>\n<ul>\n{}</ul>\n{}", peaks,
                     figure_html(*figure, std::string(kMemoryCaption)));
}

/// A choice that needs no script: the plan's section follows its radio button.
constexpr std::string_view kStyle =
    "<style>main{max-width:none}.plan{display:none}.choice{position:absolute;opacity:0}"
    ".choice+label{display:inline-block;padding:6px 12px;margin:4px 6px 4px 0;border:1px solid #8a939e;"
    "border-radius:6px;cursor:pointer}.choice:checked+label{background:#1a66c9;border-color:#1a66c9;color:#"
    "fff}"
    ".choice:focus-visible+label{outline:2px solid #1a66c9;outline-offset:2px}"
    ".graph{overflow:auto;max-height:80vh;border:1px solid #c3c9d1;background:#fbfbfc}"
    ".graph svg{max-width:none;height:auto}.kernels li{white-space:normal}</style>\n";

}  // namespace

std::string plans_page(const std::vector<GraphPicture>& pictures) {
  const PlannedModel& first = *pictures.at(0).planned;
  const std::string title = fmt::format("{} on {}", first.graph().source, first.device->name);
  std::string choices, sections, rules;
  for (std::size_t i = 0; i < pictures.size(); ++i) {
    const PlannedModel& p = *pictures[i].planned;
    const PlanCounts& c = p.plan->counts;
    choices += fmt::format(
        "<input class=\"choice\" type=\"radio\" name=\"plan\" id=\"p{0}\"{1}><label for=\"p{0}\"><b>{2}</b> "
        "· {3} kernels, {4} library calls · {5:.1f} µs</label>\n",
        i, i == 0 ? " checked" : "", escaped(p.plan->planner), c.memory_kernels, c.library_calls,
        p.plan->predicted_us);
    rules += fmt::format("#p{0}:checked~.p{0}{{display:block}}", i);
    std::string drawing = graph_svg(pictures[i]).toStdString();
    if (const std::size_t begin = drawing.find("<svg"); begin != std::string::npos) drawing.erase(0, begin);
    sections += fmt::format(
        "<section class=\"plan p{}\">\n<h2>{}</h2>\n<div class=\"graph\">{}</div>\n{}</section>\n", i,
        escaped(p.plan->planner), drawing, kernels_table(p));
  }
  return html::page(
      title,
      fmt::format("{}<style>{}</style>\n<h1>{}</h1>\n<p>Plans made by Stitchwork; every time "
                  "is modelled from the plan.</p>\n{}{}{}{}",
                  kStyle, rules, escaped(title), choices, sections, roofline(pictures), memory(pictures)));
}

}  // namespace stitchwork::gui
