// Partition ops of substitution fusion (F19 section 4.2.1), and one order of all steps in which the ops
// between two partition ops stand together, for ever more partition ops.
#pragma once

#include <array>
#include <string>
#include <vector>

#include "analysis/plan/recorder.h"
#include "analysis/planners/fusionstitching/ilp/ops.h"

namespace stitchwork::fusionstitching {

/// "First, we add all large gemm ops into partition_ops ... Next, we extend partition_ops to further include
/// batched-gemm ... column reductions, scalar reductions, etc." Ours: what no kernel computes is there from
/// the first step on, other gemms follow the batched ones, row reductions are the end.
enum class PartitionStep : std::uint8_t {
  kLargeGemms,
  kBatchedGemms,
  kGemms,
  kColumnReductions,
  kScalarReductions,
  kRowReductions,
  kNever,  ///< an op that is never a partition op
};
/// A count, derived from the enumerators before kNever.
constexpr int kPartitionSteps = 6;
std::string_view name(PartitionStep step);  ///< "large gemms", ...

struct Partition {
  std::vector<PartitionStep> step;  ///< by node: the first step that has it among its partition ops
  /// All steps of the computation. With stage_k(op) = most partition ops of step k on a path to it, sorted by
  /// (stage_1, is partition op of step 1, stage_2, is partition op of step 2, ...), chains of ops that are
  /// equal in these behind each other: topological, and
  /// as intervals of one order disjoint patterns never depend on each other in a cycle.
  std::vector<NodeId> order;

  PartitionStep operator[](NodeId id) const { return step[static_cast<std::size_t>(id)]; }
};

/// Where ops stand that wait for no partition op: in the first stage of all, or in the first that reads them,
/// before which their values would have to be stored.
enum class Standing : std::uint8_t { kEarly, kLate };

Partition find_partition(const Ops& ops, Standing standing, Recorder& recorder);

/// The partition where some patterns are kernels already (disjoint, making no cycle): their ops are partition
/// ops of all steps, and the most of these patterns on a path to an op is its first stage.
Partition between(const Ops& ops, const Partition& partition,
                  const std::vector<std::vector<NodeId>>& kernels);

std::string to_text(const Ops& ops, const Partition& partition);

}  // namespace stitchwork::fusionstitching
