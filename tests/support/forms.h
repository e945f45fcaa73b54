// The forms that kernels take, as their plans say, and how often each occurred: what a random test never met,
// it says nothing of.
#pragma once

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <map>
#include <set>
#include <string>

#include "analysis/plan/plan.h"
#include "tests/support/mapping_fields.h"

namespace stitchwork::testing {

/// Of one kernel. Mappings by their names; "staged" rows move through registers, those of "cp_async" and
/// "bulk" are copied ahead.
inline std::set<std::string> forms(const KernelPlan& kernel) {
  std::set<std::string> result;
  const auto add = [&](bool has, const char* form) {
    if (has) result.insert(form);
  };
  for (const Group& group : kernel.groups) {
    const MappingFields m = group;
    result.insert(std::string(name(group.mapping)));
    add(m.staged && m.stages == 0, "staged");
    add(m.stages > 0 && !m.bulk, "cp_async");
    add(m.bulk, "bulk");
    add(m.stages > 1, "ahead");
    add(m.cluster > 1, "cluster");
    add(m.combine == Combine::kPartials, "partials");
    add(m.combine == Combine::kAtomic, "atomic");
    add(m.split > 1 && m.kind == MappingKind::kColumn, "column split");
    add(m.tasks_per_block > 1, "several tasks");
    add(m.kind == MappingKind::kRowPack && m.rows_per_block > 1, "several rows");
    add(m.vector > 1, "vectors");
    add(m.unroll > 1, "unrolled");
    add(group.lane > 0, "lanes");
    add(!group.across.empty(), "across");
    add(!group.one_pass.empty(), "one pass");
  }
  for (const Residence& residence : kernel.resident)
    add(true, residence.shared ? "resident in shared memory" : "resident in registers");
  for (const auto& [op, scheme] : kernel.schemes) {
    add(scheme == Scheme::kRegional, "regional");
    add(scheme == Scheme::kGlobal, "global");
    add(scheme == Scheme::kRecomputed, "recomputed");
  }
  for (const Tile& tile : kernel.tiles)
    for (const Group& group : kernel.groups)
      add(group.dominant == tile.group && !is_staged(group.mapping), "tiles");
  add(!kernel.in_phase.empty(), "global, had in its phase");
  add(kernel.launch.grid_barriers > 0, "grid barriers");
  add(kernel.launch.cluster > 1 && kernel.launch.grid_barriers > 0, "cluster and grid barriers");
  add(kernel.outputs.size() > 1, "several outputs");
  return result;
}

/// Kernels by form and device.
class FormCounts {
 public:
  void add(const std::string& device, const FusionPlan& plan) {
    for (const KernelPlan& kernel : plan.kernels) {
      ++kernels_[device];
      for (const std::string& form : forms(kernel)) ++counts_[form][device];
    }
    for (const ComputationPlan& part : plan.computations) add(device, part.plan);
  }
  std::int64_t of(const std::string& form) const {
    std::int64_t sum = 0;
    const auto found = counts_.find(form);
    if (found == counts_.end()) return 0;
    for (const auto& [device, count] : found->second) sum += count;
    return sum;
  }
  /// A line a form, a column a device.
  std::string text() const {
    std::string result = fmt::format("{:26}", "");
    for (const auto& [device, kernels] : kernels_) result += fmt::format(" {:>14}", device);
    result += line("kernels", kernels_);
    for (const auto& [form, counts] : counts_) result += line(form, counts);
    return result + "\n";
  }

 private:
  using Counts = std::map<std::string, std::int64_t>;
  std::string line(const std::string& head, const Counts& counts) const {
    std::string result = fmt::format("\n{:26}", head);
    for (const auto& [device, kernels] : kernels_) {
      const auto found = counts.find(device);
      result += fmt::format(" {:>14}", found == counts.end() ? 0 : found->second);
    }
    return result;
  }

  Counts kernels_;
  std::map<std::string, Counts> counts_;
};

/// So many kernels of each form at least: well below what the default seeds give, since estimates that are
/// mended shift choices a little.
using FormFloors = std::map<std::string, std::int64_t>;
inline void expect_floors(const FormCounts& counts, const FormFloors& floors) {
  for (const auto& [form, floor] : floors) EXPECT_GE(counts.of(form), floor) << form;
}

}  // namespace stitchwork::testing
