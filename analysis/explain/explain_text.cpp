// What explain tells, as text.
#include <fmt/ranges.h>

#include <algorithm>

#include "analysis/explain/explain.h"
#include "core/base/format.h"
#include "occupancy_model/timing_text.h"

namespace stitchwork {
namespace {

/// A list that may be long.
std::string shown(const std::vector<std::string>& names) {
  constexpr std::size_t kNames = 12;  // A choice, not measured: two lines; --json has all
  const std::size_t some = std::min(kNames, names.size());
  std::string text =
      fmt::format("{}", fmt::join(names.begin(), names.begin() + static_cast<long>(some), ", "));
  if (some < names.size()) text += fmt::format(" and {} more", names.size() - some);
  return text;
}

/// Of a compiler's kernel.
std::string code_text(const OpPlacement& at) {
  std::string text = fmt::format("kernel {} {}: {}{}\n", at.kernel_id, at.kernel_name, at.code,
                                 at.output ? ", an output" : "");
  if (!at.beside.empty()) text += fmt::format("  together with {}\n", shown(at.beside));
  return text;
}

/// "12.00 us (simulated), limited by DRAM bandwidth"
std::string time_text(const OpPlacement& at) {
  if (!at.code.empty() && at.time.total_us <= 0) return "not run: no time";
  return fmt::format("{:.2f} us ({}), limited by {}", at.time.total_us,
                     at.code.empty() ? "modelled" : "simulated", limited_by(at.time));
}

}  // namespace

std::string to_text(const Explanation& explanation) {
  std::string text;
  for (const std::string& step : explanation.became) text += step + "\n";
  if (explanation.opcode.empty()) return text;
  text += fmt::format("{} = {} {}\n", explanation.op, explanation.shape, explanation.opcode);
  if (!explanation.updates.empty())
    text += fmt::format("a slice of {}, an array of the loop's state, written where that lies\n",
                        explanation.updates);
  if (!explanation.place.empty()) text += "lies in " + explanation.place + "\n";
  if (!explanation.step.empty()) text += explanation.step + "\n";
  if (!explanation.library_time.empty()) text += explanation.library_time + "\n";
  if (explanation.placements.size() > 1)
    text += fmt::format("computed in {} kernels\n", explanation.placements.size());
  for (const OpPlacement& at : explanation.placements) {
    if (!at.code.empty())
      text += code_text(at);
    else
      text += fmt::format("kernel {} {}: {}, {}{}, level {}{}\n", at.kernel_id, at.kernel_name, at.role,
                          name(at.scheme),
                          at.in_phase ? fmt::format(" ({} in its phase)", name(*at.in_phase)) : "", at.level,
                          at.output ? ", an output" : "");
    if (at.role != "dominant" && !at.dominant.empty()) text += fmt::format("  group of {}\n", at.dominant);
    if (!at.mapping.empty()) text += fmt::format("  {}\n", at.mapping);
    if (!at.producers.empty()) text += fmt::format("  reads {}\n", fmt::join(at.producers, ", "));
    if (!at.consumers.empty()) text += fmt::format("  read by {}\n", fmt::join(at.consumers, ", "));
    text += fmt::format("  {}\n", time_text(at));
    // A choice, not measured: of those beyond, a reader learns little; --json has all.
    constexpr std::size_t kBusiest = 4;
    if (const std::string units = busiest_units(at.time, kBusiest); !units.empty())
      text +=
          fmt::format("  of each unit's peak ({}): {}\n", at.code.empty() ? "modelled" : "simulated", units);
    for (const NotModelled& effect : at.not_modelled)
      text += fmt::format("  not modelled: {}: {}\n", effect.id, effect.why);
    if (!at.forms.empty()) text += "  forms tried (modelled)\n";
    for (const Decision& form : at.forms)
      text += fmt::format("    {}: {} [{}] {}\n", form.object, form.verdict.ok ? "yes" : "no",
                          form.verdict.rule, form.verdict.why);
  }
  if (!explanation.neighbours.empty()) text += "neighbours\n";
  for (const Neighbour& n : explanation.neighbours) {
    text += fmt::format("  {} {}: {}", n.relation, n.where, n.producer);
    if (!n.consumer.empty()) text += fmt::format(" -> {}", n.consumer);
    if (n.refusal) text += fmt::format(": no [{}] {}", n.refusal->verdict.rule, n.refusal->verdict.why);
    text += "\n";
    if (!n.needs.empty()) text += fmt::format("    to change it: {}\n", n.needs);
  }
  if (!explanation.refusals.empty()) text += "other refusals\n";
  for (const Refusal& r : explanation.refusals) {
    text += fmt::format("  {}{}{}: [{}] {}\n", r.decision.subject, r.decision.object.empty() ? "" : " -> ",
                        r.decision.object, r.decision.verdict.rule, r.decision.verdict.why);
    if (!r.needs.empty()) text += fmt::format("    to change it: {}\n", r.needs);
  }
  if (!explanation.decisions.empty()) text += "decisions\n";
  for (const Decision& d : explanation.decisions) {
    text += fmt::format("  {}: {}", d.step, d.subject);
    if (!d.object.empty()) text += fmt::format(" -> {}", d.object);
    text += fmt::format(": {} [{}]", d.verdict.ok ? "yes" : "no", d.verdict.rule);
    if (!d.verdict.why.empty()) text += " " + d.verdict.why;
    text += "\n";
  }
  return text;
}

}  // namespace stitchwork
