#include "experiments/report_kernels.h"

#include <algorithm>
#include <array>
#include <cmath>

#include "core/base/error.h"
#include "core/base/format.h"
#include "experiments/html.h"
#include "experiments/limits.h"

namespace stitchwork {
namespace {

using html::escaped;

struct SchemeBadge {
  std::string_view scheme, letter, meaning;
};

constexpr std::array<SchemeBadge, 6> kBadges = {{
    {"independent", "I", "not read by other ops of the kernel"},
    {"local", "L", "handed on in a register of the same thread"},
    {"regional", "R", "through shared memory, within a block"},
    {"resident", "S", "kept by its threads across grid barriers, in registers or shared memory"},
    {"global", "G", "through device memory, across a grid barrier"},
    {"recomputed", "C", "computed again by each reader"},
}};

std::string badge(std::string_view scheme) {
  for (const SchemeBadge& b : kBadges)
    if (b.scheme == scheme.substr(0, scheme.find(' ')))  // "global (regional in its phase)"
      return fmt::format("<span class=\"badge {}\" title=\"{}: {}\">{}</span>", b.scheme, scheme, b.meaning,
                         b.letter);
  return "";
}

/// Ops shown before the rest folds away: two to three lines of a wide window.
constexpr std::size_t kOpsShown = 24;
/// Ops of a kernel on the page at all. A choice, not measured: nobody reads on, and a sweep's kernels of
/// thousands would be hundreds of megabytes; the store and run --json have all.
constexpr std::size_t kOpsListed = 200;

std::string op_chips(const ReportKernel& k) {
  std::string shown, folded;
  const std::size_t listed = std::min(k.ops.size(), kOpsListed);
  for (std::size_t i = 0; i < listed; ++i)
    (i < kOpsShown ? shown : folded) +=
        fmt::format("<span class=\"op\">{}{}</span>", badge(k.ops[i].second), escaped(k.ops[i].first));
  if (listed < k.ops.size())
    folded += fmt::format("<span class=\"op\">and {} more</span>", k.ops.size() - listed);
  if (!folded.empty())
    shown +=
        fmt::format("<details><summary>{} more ops</summary>{}</details> ", k.ops.size() - kOpsShown, folded);
  return shown;
}

std::string counter_text(double value) {
  return value == std::floor(value) ? with_commas(static_cast<long long>(value))
                                    : fmt::format("{:.3f}", value);
}

std::string all_units(const std::vector<UnitUse>& uses) {
  if (uses.empty()) return "";
  std::string list;
  for (const UnitUse& use : uses)
    list +=
        fmt::format("<div><span>{}</span><span>{} {:.1f} % <span class=\"quiet\">{}</span></span></div>",
                    kUnits[use.unit].name, html::share_bar(use.share), 100 * use.share, escaped(use.method));
  return fmt::format("<details><summary>speed of light</summary><div class=\"counters\">{}</div></details>",
                     list);
}

std::string all_counters(const ReportKernel& k) {
  if (k.counters.empty()) return "";
  std::string list;
  for (const auto& [name, counter] : k.counters)
    list += fmt::format("<div><span>{}</span><span>{} <span class=\"quiet\">{}</span></span></div>",
                        escaped(name), counter_text(counter.value), escaped(counter.method));
  return fmt::format("<details><summary>all counters</summary><div class=\"counters\">{}</div></details>",
                     list);
}

const std::vector<html::Column>& kernel_columns() {
  static const std::vector<html::Column> columns = {
      {"kernel", "", false},
      {"share of time", "bar: relative to the slowest kernel", false},
      {"time (us)", ""},
      {"limited by", "the largest part of its time (docs/timing.md)", false},
      {"of each peak", "share of its time that the busiest units of the device need at their peak", false},
      {"grid x block", "blocks x threads a block"},
      {"grid barriers", "of the plan"},
      {"shared memory", "bytes a block"},
      {"registers", "a thread; ~ where estimated from liveness, without ptxas"},
      {"spills", "bytes a thread; - where there was no ptxas to tell"},
      {"inst_executed", "warp instructions"},
      {"inst_fp_32", "fp32 instructions of all threads"},
      {"DRAM read", ""},
      {"DRAM written", ""},
      {"achieved occupancy", "resident warps / maximum"},
      {"SM efficiency", "SMs with a block / SMs"},
  };
  return columns;
}

html::Cell counter_cell(const ReportKernel& k, const std::string& counter, std::string (*text)(double)) {
  const auto found = k.counters.find(counter);
  if (found == k.counters.end()) return {"-"};
  return {text(found->second.value), found->second.method};
}

/// The name, as a link where the kernel has a page.
std::string name_html(const ReportKernel& k, const ReportPage* page) {
  const std::string name = fmt::format("<code>{}</code>", escaped(k.name));
  if (page == nullptr || !page->kernels.contains(k.name)) return name;
  return fmt::format("<a href=\"{}\">{}</a>", escaped(page->kernels.at(k.name)), name);
}

html::Row kernel_row(const ReportKernel& k, double slowest_us, double total_us, const ReportPage* page) {
  constexpr char kPlan[] = "modelled";
  const bool guess = !k.spill_bytes;  // ptxas tells registers and spills, or neither
  auto whole = [](double v) { return with_commas(static_cast<long long>(v)); };
  auto sectors = [](double v) { return human_bytes(32 * v); };
  auto ratio = [](double v) { return fmt::format("{:.2f}", v); };
  const std::vector<TimePart> parts = time_parts(k);
  const std::vector<UnitUse> uses = unit_uses(k);
  const std::string busy = busiest_text(uses, 2);
  html::Row row;
  row.cells = {
      {name_html(k, page)},
      {fmt::format("<span class=\"share\">{}{:.1f}%</span>",
                   html::share_bar(slowest_us > 0 ? k.time_us.value / slowest_us : 0),
                   total_us > 0 ? 100 * k.time_us.value / total_us : 0),
       k.time_us.method},
      {fmt::format("{:.2f}", k.time_us.value), k.time_us.method},
      {parts.empty() ? "-" : fmt::format("{} {:.2f}", parts[0].name, parts[0].us),
       parts.empty() ? "" : parts[0].method},
      {uses.empty()   ? "-"
       : busy.empty() ? "all below 1 %"
                      : busy,
       uses.empty() ? "" : uses[0].method},
      {fmt::format("{} &#215; {}", with_commas(k.grid), with_commas(k.block)), kPlan},
      {fmt::to_string(k.barriers), kPlan},
      {k.shared_bytes == 0 ? "0" : human_bytes(static_cast<double>(k.shared_bytes)), kPlan},
      {k.registers == 0 ? "-" : fmt::format("{}{}", guess ? "~" : "", k.registers)},
      {k.spill_bytes ? human_bytes(static_cast<double>(*k.spill_bytes)) : "-"},
      counter_cell(k, "inst_executed", whole),
      counter_cell(k, "inst_fp_32", whole),
      counter_cell(k, "dram_read_transactions", sectors),
      counter_cell(k, "dram_write_transactions", sectors),
      counter_cell(k, "achieved_occupancy", ratio),
      counter_cell(k, "sm_efficiency", ratio),
  };
  row.cells[8].method = k.registers == 0 ? "" : guess ? "estimated" : "ptxas";
  row.cells[9].method = k.spill_bytes ? "ptxas" : "";
  row.below = op_chips(k) + all_units(uses) + all_counters(k);
  return row;
}

}  // namespace

std::string scheme_legend() {
  std::string items;
  for (const SchemeBadge& b : kBadges)
    items += fmt::format("<span class=\"item\">{} {}: {}</span>", badge(b.scheme), b.scheme, b.meaning);
  return fmt::format("<p class=\"legend\">{}</p>", items);
}

std::vector<const ReportKernel*> slowest_first(const ReportTrial& trial) {
  std::vector<const ReportKernel*> order;
  for (const ReportKernel& k : trial.kernels) order.push_back(&k);
  std::stable_sort(order.begin(), order.end(), [](const ReportKernel* a, const ReportKernel* b) {
    return a->time_us.value > b->time_us.value;
  });
  return order;
}

std::string left_out(const ReportTrial& trial) {
  if (trial.kernels.size() >= trial.kernel_count) return "";
  double us = 0;
  for (const ReportKernel& k : trial.kernels) us += k.time_us.value;
  return fmt::format("The {} slowest of {} kernels, {:.0f} % of their time; report --kernels N lists more",
                     trial.kernels.size(), with_commas(static_cast<long long>(trial.kernel_count)),
                     trial.kernels_us > 0 ? 100 * us / trial.kernels_us : 0);
}

std::string kernel_table(const ReportTrial& trial, const ReportPage* page) {
  const std::vector<const ReportKernel*> order = slowest_first(trial);
  const double slowest = order.empty() ? 0 : order.front()->time_us.value, total = trial.kernels_us;
  std::vector<html::Row> rows;
  for (const ReportKernel* k : order) rows.push_back(kernel_row(*k, slowest, total, page));
  return html::table(kernel_columns(), rows, "kernels");
}

std::string microseconds(double us) {
  return us < 1000 ? fmt::format("{:.1f}", us) : with_commas(std::llround(us));
}

}  // namespace stitchwork
