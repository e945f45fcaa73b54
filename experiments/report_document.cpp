// The report of a store on paper: the page's numbers (experiments/report_quantities.h) as text, tables and
// figures.
#include <algorithm>

#include "core/base/error.h"
#include "core/base/format.h"
#include "experiments/limits.h"
#include "experiments/report.h"
#include "experiments/report_data.h"
#include "experiments/report_kernels.h"
#include "experiments/report_quantities.h"
#include "experiments/roofline.h"

namespace stitchwork {
namespace {

using Kind = DocumentBlock::Kind;

constexpr const char* kReportMethods =
    "How numbers were obtained. modelled: from the plan alone. simulated: the compiled PTX was executed in "
    "the "
    "simulator; counters are counted, times follow from them by the timing model. sampled: likewise, a few "
    "waves of a kernel's blocks standing for all. measured: by a clock, on the host or a GPU. imported: "
    "another tool's.";

/// A column of numbers: the method stands in its head where all share it, else beside each number.
void add_numbers(DocumentTable& table, const std::string& head,
                 const std::vector<std::optional<ReportValue>>& values,
                 const std::vector<std::string>& texts) {
  std::string shared;
  bool one = true;
  for (const auto& value : values) {
    if (!value || value->method.empty()) continue;
    one = one && (shared.empty() || shared == value->method);
    shared = value->method;
  }
  table.heads.push_back(one && !shared.empty() ? fmt::format("{} ({})", head, shared) : head);
  table.right.push_back(true);
  for (std::size_t r = 0; r < values.size(); ++r)
    table.rows[r].push_back(one || !values[r] || values[r]->method.empty()
                                ? texts[r]
                                : fmt::format("{} ({})", texts[r], values[r]->method));
}

/// Twelve columns are too many for a page: what the plan and the clock say, and what was counted.
DocumentTable planner_table(const ReportSection& section, bool counters) {
  const ReportTrial* base = base_trial(section);
  DocumentTable table{{"planner"}, {false}, {}};
  for (const ReportTrial& t : section.trials) table.rows.push_back({t.label});
  if (!counters) {
    table.heads.push_back("check");
    table.right.push_back(false);
    for (std::size_t r = 0; r < section.trials.size(); ++r) {
      const ReportTrial& t = section.trials[r];
      const ReportValue* error = t.sample("check_max_rel_error");
      table.rows[r].push_back(!t.ok    ? "failed"
                              : !error ? "not checked"
                                       : fmt::format("ok, rel. error {:.1e}", error->value));
    }
  }
  for (const Quantity& q : quantities()) {
    if (q.counter.empty() == counters) continue;
    std::vector<std::optional<ReportValue>> values;
    std::vector<std::string> texts;
    for (const ReportTrial& t : section.trials) {
      values.push_back(q.of(t));
      texts.push_back(values.back() ? q.text(values.back()->value) : "-");
      if (!values.back() || !q.relative || base == nullptr || &t == base) continue;
      if (const auto reference = q.of(*base); reference && reference->value > 0)
        texts.back() += ", " + ratio_text(values.back()->value / reference->value);
    }
    add_numbers(table, q.title, values, texts);
  }
  return table;
}

/// The ops with their schemes, the first of many.
std::string ops_text(const ReportKernel& kernel) {
  constexpr std::size_t kMost = 12;
  std::string text;
  for (std::size_t i = 0; i < std::min(kMost, kernel.ops.size()); ++i)
    text += fmt::format("{}{} {}", i == 0 ? "" : ", ", kernel.ops[i].first, kernel.ops[i].second);
  if (kernel.ops.size() > kMost) text += fmt::format(" and {} more", kernel.ops.size() - kMost);
  return text;
}

DocumentTable kernels_table(const ReportTrial& trial) {
  const std::vector<const ReportKernel*> order = slowest_first(trial);
  DocumentTable table{{"kernel"}, {false}, {}};
  for (const ReportKernel* k : order) table.rows.push_back({k->name});
  const auto add = [&](const std::string& head, const auto& value, const auto& text) {
    std::vector<std::optional<ReportValue>> values;
    std::vector<std::string> texts;
    for (const ReportKernel* k : order) {
      values.push_back(value(*k));
      texts.push_back(values.back() ? text(values.back()->value) : "-");
    }
    add_numbers(table, head, values, texts);
  };
  const auto counter = [](const char* name) {
    return [name](const ReportKernel& k) {
      const auto found = k.counters.find(name);
      return found == k.counters.end() ? std::nullopt : std::optional(found->second);
    };
  };
  const auto planned = [](auto member) {
    return [member](const ReportKernel& k) {
      return std::optional(ReportValue{static_cast<double>(k.*member), "modelled"});
    };
  };
  const auto whole = [](double v) { return with_commas(static_cast<long long>(v)); };
  const auto sectors = [](double v) { return human_bytes(32 * v); };
  add(
      "time (us)", [](const ReportKernel& k) { return std::optional(k.time_us); },
      [](double v) { return fmt::format("{:.2f}", v); });
  std::vector<std::optional<ReportValue>> shares;
  std::vector<std::string> limits;
  for (const ReportKernel* k : order) {
    const std::vector<TimePart> parts = time_parts(*k);
    const std::vector<UnitUse> uses = unit_uses(*k);
    shares.push_back(uses.empty() ? std::nullopt : std::optional(ReportValue{uses[0].share, uses[0].method}));
    limits.push_back(parts.empty() ? "-" : fmt::format("{} {:.2f} us", parts[0].name, parts[0].us));
    if (const std::string busy = busiest_text(uses, 1); !busy.empty()) limits.back() += "; " + busy;
  }
  add_numbers(table, "limited by; busiest unit", shares, limits);
  table.heads.push_back("blocks x threads");
  table.right.push_back(true);
  for (std::size_t r = 0; r < order.size(); ++r)
    table.rows[r].push_back(
        fmt::format("{} x {}", with_commas(order[r]->grid), with_commas(order[r]->block)));
  add("grid barriers", planned(&ReportKernel::barriers), whole);
  add("shared memory", planned(&ReportKernel::shared_bytes), [](double v) { return human_bytes(v); });
  add("inst_executed", counter("inst_executed"), whole);
  add("DRAM read", counter("dram_read_transactions"), sectors);
  add("DRAM written", counter("dram_write_transactions"), sectors);
  table.heads.push_back("ops, with their schemes");
  table.right.push_back(false);
  for (std::size_t r = 0; r < order.size(); ++r) table.rows[r].push_back(ops_text(*order[r]));
  return table;
}

void add_section(Document& document, const ReportSection& section, std::size_t index) {
  document.add(Kind::kHeading, fmt::format("{} on {}", section.workload, section.device));
  document.add(Kind::kParagraph, fmt::format("Model sha256 {}.", section.model_sha256.substr(0, 16)));
  document.add(planner_table(section, false));
  document.add(planner_table(section, true));
  if (const ReportTrial* base = base_trial(section); base != nullptr && section.trials.size() > 1)
    document.add(Kind::kParagraph, fmt::format("Ratios (0.50x) are to {}; less is better.", base->label));
  for (const ReportTrial& t : section.trials)
    if (!t.ok) document.add(Kind::kItem, fmt::format("{} failed: {}", t.label, t.reason));
  for (const ReportChart& chart : report_charts()) {
    if (std::optional<Figure> figure = chart_figure(section, chart)) {
      figure->id = fmt::format("s{}-{}", index + 1, chart.id);
      document.add(std::move(*figure),
                   fmt::format("{}, {} on {}.", chart.title, section.workload, section.device));
    }
  }
  if (std::optional<Figure> roofline = section_roofline(section)) {
    roofline->id = fmt::format("s{}-roofline", index + 1);
    document.add(std::move(*roofline), std::string(kRooflineCaption));
  }
  for (const ReportTrial& t : section.trials)
    if (!t.kernels.empty()) {
      document.add(kernels_table(t), fmt::format("Kernels of {}, slowest first", t.label));
      if (const std::string left = left_out(t); !left.empty()) document.add(Kind::kParagraph, left + ".");
    }
}

}  // namespace

Document report_document(const Store& store, const ReportOptions& options) {
  const ReportData data = read_report(store, options.experiment, options.kernels);
  Document document;
  document.title = "Stitchwork report";
  document.add(Kind::kTitle, document.title);
  document.add(Kind::kParagraph, "How models are fused by each planner, and what their kernels do.");
  for (const auto& [what, value] : provenance_lines(store, data))
    document.add(Kind::kItem, fmt::format("{}: {}", what, value));
  document.add(Kind::kParagraph, kReportMethods);
  if (data.sections.empty())
    document.add(Kind::kParagraph,
                 "No finished attempts are stored yet: stitchwork run MODEL --db FILE records one.");
  for (std::size_t i = 0; i < data.sections.size(); ++i) add_section(document, data.sections[i], i);
  if (!options.pages.empty()) document.add(Kind::kHeading, "Plans to look at");
  for (const ReportSection& section : data.sections)
    for (const ReportTrial& trial : section.trials)
      if (const auto page = options.pages.find(trial.id); page != options.pages.end())
        document.add_link(fmt::format("{} on {}: {}", section.workload, section.device, trial.label),
                          page->second.address);
  return document;
}

}  // namespace stitchwork
