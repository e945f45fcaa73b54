// What differs between two plans, as text and as documents.
#include <fmt/ranges.h>

#include <algorithm>
#include <map>
#include <nlohmann/json.hpp>

#include "analysis/explain/diff.h"
#include "core/base/format.h"

namespace stitchwork {
namespace {

/// Long lists are cut in text; documents have all.
/// A choice, not measured: a reader takes in about so many lines.
constexpr std::size_t kShown = 8;

std::string shortened(const std::vector<std::string>& names) {
  const std::size_t shown = std::min(names.size(), kShown);
  std::string text =
      fmt::format("{}", fmt::join(names.begin(), names.begin() + static_cast<long>(shown), ", "));
  if (shown < names.size()) text += fmt::format(" and {} more", names.size() - shown);
  return text;
}

std::string change_text(std::int64_t a, std::int64_t b) {
  return a == b ? fmt::format("{}", a) : fmt::format("{} -> {} ({:+})", a, b, b - a);
}

/// "17.1 us (simulated)"
std::string time_text(const PlanTotals& totals) {
  return totals.method.empty() ? "not run" : fmt::format("{:.1f} ({})", totals.predicted_us, totals.method);
}

/// DRAM bytes and times, of which each side's may be had otherwise.
std::string amounts_text(const PlanTotals& a, const PlanTotals& b) {
  if (a.method == b.method && !a.method.empty())
    return fmt::format("DRAM bytes     {}\npredicted us   {:.1f} -> {:.1f} ({:+.1f}), {}\n",
                       change_text(a.dram_bytes, b.dram_bytes), a.predicted_us, b.predicted_us,
                       b.predicted_us - a.predicted_us, a.method);
  const auto bytes = [](const PlanTotals& of) {
    return of.method.empty() ? "not run" : fmt::format("{} ({})", of.dram_bytes, of.method);
  };
  return fmt::format("DRAM bytes     {} -> {}\nus             {} -> {}\n", bytes(a), bytes(b), time_text(a),
                     time_text(b));
}

std::string verdict_text(const std::optional<Decision>& decision) {
  if (!decision) return "no decision about it is recorded";
  const Verdict& v = decision->verdict;
  return fmt::format("[{}]{}{}", v.rule, v.why.empty() ? "" : " ", v.why);
}

}  // namespace

std::string to_text(const PlanDiff& diff) {
  std::string text;
  text += fmt::format("memory kernels {}\n", change_text(diff.a.memory_kernels, diff.b.memory_kernels));
  text += fmt::format("grid barriers  {}\n", change_text(diff.a.grid_barriers, diff.b.grid_barriers));
  if (diff.a.product_kernels > 0 || diff.b.product_kernels > 0)
    text += fmt::format("with products  {}\n", change_text(diff.a.product_kernels, diff.b.product_kernels));
  if (diff.a.product_kernels > 0 || diff.b.product_kernels > 0 ||
      diff.a.library_calls != diff.b.library_calls)
    text += fmt::format("library calls  {}\n", change_text(diff.a.library_calls, diff.b.library_calls));
  text += amounts_text(diff.a, diff.b);
  text += fmt::format("{} kernels are the same\n", diff.same_kernels);
  for (const DiffKernel& k : diff.removed)
    text += fmt::format("- {} {}: {}\n", k.id, k.name, shortened(k.ops));
  for (const DiffKernel& k : diff.added) text += fmt::format("+ {} {}: {}\n", k.id, k.name, shortened(k.ops));
  for (const KernelChange& c : diff.changed) {
    const auto us = [](double time, const PlanTotals& of) {
      return of.method.empty() ? std::string("not run") : fmt::format("{:.1f}", time);
    };
    text += fmt::format("~ {} {} -> {} {}: {} -> {} us\n", c.a.id, c.a.name, c.b.id, c.b.name,
                        us(c.us_a, diff.a), us(c.us_b, diff.b));
    if (c.gained.empty() && c.lost.empty()) text += "    the same ops\n";
    if (!c.gained.empty()) text += fmt::format("    gains {}\n", shortened(c.gained));
    if (!c.lost.empty()) text += fmt::format("    loses {}\n", shortened(c.lost));
    if (!c.schemes.empty()) text += fmt::format("    {}\n", shortened(c.schemes));
    if (c.launch_a != c.launch_b) text += fmt::format("    {} -> {}\n", c.launch_a, c.launch_b);
  }
  if (!diff.moved.empty()) text += "moved\n";
  for (const MovedOp& m : diff.moved)
    text += fmt::format("  {}: {} -> {}\n", m.op, shortened(m.from), shortened(m.to));
  std::map<std::pair<std::string, std::string>, std::vector<std::string>> products;
  for (const ProductChange& p : diff.products) products[{p.from, p.to}].push_back(p.op);
  const auto made_by = [](const std::string& kernel) { return kernel.empty() ? "the library" : kernel; };
  for (const auto& [by, ops] : products)
    text += fmt::format("products by {} -> {}: {}\n", made_by(by.first), made_by(by.second), shortened(ops));
  if (!diff.boundaries.empty()) text += "why\n";
  for (const Boundary& b : diff.boundaries) {
    text += fmt::format("  {} -> {}: apart in {} {}\n", b.producer, b.consumer, b.apart_in_b ? "B" : "A",
                        verdict_text(b.apart));
    if (b.together)
      text += fmt::format("    together in {} {}\n", b.apart_in_b ? "A" : "B", verdict_text(b.together));
  }
  return text;
}

namespace {

nlohmann::ordered_json diff_part(const DiffKernel& k) {
  return {{"id", k.id}, {"name", k.name}, {"ops", k.ops}};
}

nlohmann::ordered_json diff_part(const KernelChange& c) {
  return {{"a", diff_part(c.a)},
          {"b", diff_part(c.b)},
          {"gained", c.gained},
          {"lost", c.lost},
          {"schemes", c.schemes},
          {"launch", {{"a", c.launch_a}, {"b", c.launch_b}}},
          {"predicted_us", {{"a", c.us_a}, {"b", c.us_b}}}};
}

nlohmann::ordered_json diff_part(const std::optional<Decision>& d) {
  if (!d) return nullptr;
  return {{"step", d->step},     {"subject", d->subject},   {"object", d->object},
          {"ok", d->verdict.ok}, {"rule", d->verdict.rule}, {"why", d->verdict.why}};
}

nlohmann::ordered_json diff_part(const Boundary& b) {
  return {{"producer", b.producer},
          {"consumer", b.consumer},
          {"apart_in", b.apart_in_b ? "b" : "a"},
          {"apart", diff_part(b.apart)},
          {"together", diff_part(b.together)}};
}

template <typename T>
nlohmann::ordered_json diff_list(const std::vector<T>& values) {
  nlohmann::ordered_json result = nlohmann::ordered_json::array();
  for (const T& value : values) result.push_back(diff_part(value));
  return result;
}

}  // namespace

nlohmann::ordered_json totals_to_json(const PlanTotals& t) {
  return {
      {"memory_kernels", t.memory_kernels},
      {"library_calls", t.library_calls},
      {"copies", t.copies},
      {"memsets", t.memsets},
      {"grid_barriers", t.grid_barriers},
      {"product_kernels", t.product_kernels},
      {"dram_bytes", t.method.empty() ? nlohmann::ordered_json() : nlohmann::ordered_json(t.dram_bytes)},
      {"predicted_us", t.method.empty() ? nlohmann::ordered_json() : nlohmann::ordered_json(t.predicted_us)},
      {"method", t.method.empty() ? nlohmann::ordered_json() : nlohmann::ordered_json(t.method)}};
}

nlohmann::ordered_json changes_to_json(const PlanDiff& diff) {
  nlohmann::ordered_json moved = nlohmann::ordered_json::array();
  for (const MovedOp& m : diff.moved) moved.push_back({{"op", m.op}, {"from", m.from}, {"to", m.to}});
  nlohmann::ordered_json products = nlohmann::ordered_json::array();
  const auto made_by = [](const std::string& kernel) {
    return kernel.empty() ? nlohmann::ordered_json() : nlohmann::ordered_json(kernel);
  };
  for (const ProductChange& p : diff.products)
    products.push_back({{"op", p.op}, {"from", made_by(p.from)}, {"to", made_by(p.to)}});
  return {{"same_kernels", diff.same_kernels},
          {"removed", diff_list(diff.removed)},
          {"added", diff_list(diff.added)},
          {"changed", diff_list(diff.changed)},
          {"moved", moved},
          {"products", products},
          {"boundaries", diff_list(diff.boundaries)}};
}

}  // namespace stitchwork
