#include "experiments/report.h"

#include <algorithm>
#include <filesystem>

#include "core/base/error.h"
#include "core/base/format.h"
#include "experiments/document.h"
#include "experiments/html.h"
#include "experiments/report_data.h"
#include "experiments/report_kernels.h"
#include "experiments/report_quantities.h"
#include "experiments/roofline.h"

namespace stitchwork {
namespace {

using html::escaped;

const ReportPage* page_of(const ReportOptions& options, const ReportTrial& trial) {
  const auto found = options.pages.find(trial.id);
  return found == options.pages.end() ? nullptr : &found->second;
}

html::Cell check_cell(const ReportTrial& t) {
  if (!t.ok)
    return {fmt::format("<span class=\"bad\">&#10007; failed</span><div class=\"reason\">{}</div>",
                        escaped(t.reason))};
  const ReportValue* error = t.sample("check_max_rel_error");
  if (!error) return {"<span class=\"quiet\">not checked</span>"};
  return {"&#10003; ok", "", fmt::format("max rel error {:.1e}, {}", error->value, error->method)};
}

std::string planner_table(const ReportSection& section, const ReportOptions& options) {
  const ReportTrial* base = base_trial(section);
  std::vector<html::Column> columns = {{"planner", "", false},
                                       {"check", "of all outputs, against the reference evaluator", false}};
  for (const Quantity& q : quantities()) columns.push_back({q.title, q.tip});
  std::vector<html::Row> rows;
  for (const ReportTrial& t : section.trials) {
    html::Row row;
    row.failed = !t.ok;
    std::string label = fmt::format("<b>{}</b>", escaped(t.label));
    if (const ReportPage* page = page_of(options, t); page != nullptr)
      label = fmt::format("<a href=\"{}\" title=\"its plan: graph, CUDA and why\">{}</a>",
                          escaped(page->address), label);
    row.cells.push_back({std::move(label), "", t.attempt > 1 ? fmt::format("attempt {}", t.attempt) : ""});
    row.cells.push_back(check_cell(t));
    for (const Quantity& q : quantities()) {
      const std::optional<ReportValue> value = q.of(t);
      html::Cell cell{value ? q.text(value->value) : "-", value ? value->method : ""};
      if (value && q.relative && base && &t != base)
        if (const auto reference = q.of(*base); reference && reference->value > 0)
          cell.note = ratio_text(value->value / reference->value);
      row.cells.push_back(std::move(cell));
    }
    rows.push_back(std::move(row));
  }
  std::string text = html::table(columns, rows, "planners");
  if (base && section.trials.size() > 1)
    text += fmt::format("<p class=\"quiet\">Ratios (0.50x) are to {}; less is better.</p>\n",
                        escaped(base->label));
  return text;
}

/// One bar a trial and quantity, labelled with its value, what it is and its method; "" where no trial has
/// one.
std::string chart(const ReportSection& section, const ReportChart& wanted) {
  std::vector<html::BarGroup> groups;
  for (const ReportTrial& t : section.trials) {
    html::BarGroup group{t.ok ? t.label : t.label + " (failed)", {}};
    for (const auto& [title, unit] : wanted.quantities)
      if (const auto value = quantity(title).of(t))
        group.bars.push_back(
            {fmt::format("{} {} ({})", quantity(title).text(value->value), unit, value->method),
             value->value});
    groups.push_back(std::move(group));
  }
  if (std::ranges::all_of(groups, [](const html::BarGroup& group) { return group.bars.empty(); })) return "";
  return html::bar_chart(wanted.title, groups);
}

std::string kernel_details(const ReportTrial& t, const ReportPage* page) {
  std::string host;
  for (const auto& [metric, what] :
       {std::pair{"plan_ms", "planning"}, {"compile_ms", "compilation"}, {"run_ms", "execution"}})
    if (const ReportValue* v = t.sample(metric))
      host += fmt::format("{}{} {:.1f} ms ({})", host.empty() ? "" : ", ", what, v->value, v->method);
  const std::string left =
      left_out(t).empty() ? "" : fmt::format("<p class=\"quiet\">{}.</p>\n", escaped(left_out(t)));
  return fmt::format(
      "<details class=\"planner\"><summary><b>{}</b> &#8211; {} kernel{}, {} us ({})</summary>\n<p "
      "class=\"quiet\">On "
      "the host: {}.</p>\n{}{}</details>\n",
      escaped(t.label), t.kernel_count, t.kernel_count == 1 ? "" : "s", microseconds(t.kernels_us),
      t.kernels.empty() ? "no kernels" : escaped(t.kernels[0].time_us.method), host, kernel_table(t, page),
      left);
}

std::string anchor(std::size_t index) { return fmt::format("s{}", index + 1); }

std::string section_html(const ReportSection& section, std::size_t index, const ReportOptions& options) {
  std::string text = fmt::format(
      "<section id=\"{}\">\n<h2>{} on {}</h2>\n<p class=\"quiet\">model sha256 <code>{}</code></p>\n",
      anchor(index), escaped(section.workload), escaped(section.device),
      escaped(section.model_sha256.substr(0, 16)));
  text += "<h3>Planners side by side</h3>\n" + planner_table(section, options);
  text += "<div class=\"charts\">\n";
  for (const ReportChart& wanted : report_charts()) text += chart(section, wanted);
  text += "</div>\n";
  if (const std::optional<Figure> roofline = section_roofline(section))
    text += fmt::format("<h3>Roofline</h3>\n{}", figure_html(*roofline, std::string(kRooflineCaption)));
  text += "<h3>Kernels</h3>\n";
  for (const ReportTrial& t : section.trials)
    if (t.ok || !t.kernels.empty()) text += kernel_details(t, page_of(options, t));
  return text + "</section>\n";
}

std::string provenance(const Store& store, const ReportData& data) {
  std::string rows;
  for (const auto& [what, value] : provenance_lines(store, data))
    rows += fmt::format("<dt>{}</dt><dd>{}</dd>\n", what, escaped(value));
  return fmt::format("<div class=\"panel\"><dl>\n{}</dl></div>\n", rows);
}

constexpr std::string_view kMethodsHtml =
    "<div class=\"panel\"><p><b>How numbers were obtained.</b> <i>modelled</i>: from the plan alone. "
    "<i>simulated</i>: the compiled PTX was executed in the simulator; counters are counted, times follow "
    "from them by "
    "the timing model. <i>sampled</i>: likewise, a few waves of a kernel's blocks standing for all. "
    "<i>measured</i>: by a clock, on the host or a GPU. <i>imported</i>: another "
    "tool's.</p>\n"
    "<p><b>Schemes.</b> The letter before an op says where its value lives between the ops of one "
    "kernel.</p>\n";

}  // namespace

std::string report_bytes(const Store& store, const ReportOptions& options, const std::string& file) {
  require_document_form(file);
  if (std::filesystem::path(file).extension() == ".html") return report_html(store, options);
  return document_bytes(report_document(store, options), file);
}

std::string report_html(const Store& store, const ReportOptions& options) {
  const ReportData data = read_report(store, options.experiment, options.kernels);
  std::string body = "<h1>Stitchwork report</h1>\n";
  body += "<p class=\"quiet\">How models are fused by each planner, and what their kernels do.</p>\n";
  body += provenance(store, data);
  body += fmt::format("{}{}</div>\n", kMethodsHtml, scheme_legend());
  if (data.sections.empty())
    body +=
        "<p>No finished attempts are stored yet: <code>stitchwork run MODEL --db FILE</code> records "
        "one.</p>\n";
  if (data.sections.size() > 1) {
    std::string links;
    for (std::size_t i = 0; i < data.sections.size(); ++i)
      links += fmt::format("<li><a href=\"#{}\">{} on {}</a></li>\n", anchor(i),
                           escaped(data.sections[i].workload), escaped(data.sections[i].device));
    body += fmt::format("<nav><ul>\n{}</ul></nav>\n", links);
  }
  for (std::size_t i = 0; i < data.sections.size(); ++i) body += section_html(data.sections[i], i, options);
  return html::page("Stitchwork report", body);
}

}  // namespace stitchwork
