// The parts of verify: each appends what is wrong.
#pragma once

#include <fmt/format.h>

#include <string>
#include <vector>

#include "analysis/verify/verify.h"

namespace stitchwork::verification {

/// Collects problems; rules are named "verify.<rule>".
class Report {
 public:
  template <typename... Args>
  void add(std::string_view rule, fmt::format_string<Args...> format, Args&&... args) {
    problems.push_back(
        Verdict::no(fmt::format("verify.{}", rule), fmt::format(format, std::forward<Args>(args)...)));
  }
  std::vector<Verdict> problems;
};

/// Ops, groups, schemes and levels name each other consistently. The later parts rely on it.
void check_structure(const Computation& computation, const KernelPlan& kernel, Report& report);
/// Thread mappings: domain, tasks, threads, splits.
/// `vector_bytes`: what a thread moves of global memory at a time, at most.
void check_mappings(const Computation& computation, int vector_bytes, const KernelPlan& kernel,
                    Report& report);
/// Launch: device limits, grid, barriers and residency, memory slots inside what is asked for.
void check_launch(const Computation& computation, const Device& device, const KernelPlan& kernel,
                  Report& report);
/// Clusters: of a size and a device that launches them, of whole rows, without grid barriers.
void check_clusters(const Computation& computation, const Device& device, const KernelPlan& kernel,
                    Report& report);
/// Values: placements, schemes against levels, block locality.
void check_values(const Computation& computation, const KernelPlan& kernel,
                  const KernelEvaluations& evaluated, Report& report);
/// Slots of shared memory and scratch: large enough, and shared only by values that are not needed at once.
void check_memory(const Computation& computation, const KernelPlan& kernel,
                  const KernelEvaluations& evaluated, Report& report);
/// Values kept across grid barriers: by a group that has its own elements of them in that phase, within the
/// registers or the shared memory they take.
void check_residents(const Computation& computation, const KernelPlan& kernel,
                     const KernelEvaluations& evaluated, Report& report);
/// Tiles: of tile mappings, large enough, of values that the group reads or stores in that phase from and to
/// global memory.
void check_tiles(const Computation& computation, const Device& device, const KernelPlan& kernel,
                 const KernelEvaluations& evaluated, Report& report);
/// Reductions without a pass of their own: sums that can be gathered in an earlier one's.
void check_one_pass(const Graph& graph, const KernelPlan& kernel, Report& report);
/// The schedule that follows from the plan (analysis/schedule/check.h). For kernels with no other problem.
void check_schedule(const Graph& graph, const KernelPlan& kernel, Report& report);
/// Arrays that share a matrix: inside it, apart from each other, operands of concatenations in place where
/// these have them (core/passes/lay_beside.h).
void check_places(const Computation& computation, Report& report);
/// Every op computed, every value materialised once and before it is read, no cycle.
void check_coverage(const Graph& graph, const FusionPlan& plan, Report& report);
void check_order(const Graph& graph, const FusionPlan& plan, Report& report);

}  // namespace stitchwork::verification
