#include "analysis/planners/fusionstitching/ilp/partition.h"

#include <fmt/format.h>

#include <algorithm>

namespace stitchwork::fusionstitching {
namespace {

PartitionStep step_of(const StepFacts& facts) {
  if (!facts.fusible && facts.kind != OpKind::kName) return PartitionStep::kLargeGemms;
  switch (facts.kind) {
    case OpKind::kBatchedGemm:
      return PartitionStep::kBatchedGemms;
    case OpKind::kGemm:
      return PartitionStep::kGemms;
    case OpKind::kColumnReduction:
      return PartitionStep::kColumnReductions;
    case OpKind::kScalarReduction:
      return PartitionStep::kScalarReductions;
    case OpKind::kRowReduction:
      return PartitionStep::kRowReductions;
    default:
      return PartitionStep::kNever;
  }
}

/// What an op is sorted by: stage and whether it is a partition op, of each step in turn.
using Stages = std::array<int, 2 * kPartitionSteps>;

}  // namespace

std::string_view name(PartitionStep step) {
  constexpr std::array<std::string_view, kPartitionSteps + 1> kNames = {
      "large gemms",       "batched gemms",  "gemms", "column reductions",
      "scalar reductions", "row reductions", "none"};
  return kNames[static_cast<std::size_t>(step)];
}

Partition find_partition(const Ops& ops, Recorder& recorder) {
  Partition result{std::vector<PartitionStep>(ops.size(), PartitionStep::kNever), {}};
  std::vector<Stages> stages(ops.size(), Stages{});
  std::vector<bool> carries(ops.size(), false);  // names of what kernels compute
  for (NodeId id = 0; id < static_cast<NodeId>(ops.size()); ++id) {
    const StepFacts& facts = ops[id];
    if (facts.kind == OpKind::kNone) continue;
    const auto at = static_cast<std::size_t>(id);
    result.order.push_back(id);
    PartitionStep& step = result.step[at];
    step = step_of(facts);
    if (facts.kind == OpKind::kName) {
      // A kernel's value that is read under a name (an optimization barrier) is read by another kernel.
      carries[at] = std::any_of(facts.producers.begin(), facts.producers.end(), [&](NodeId producer) {
        return ops[producer].fusible || carries[static_cast<std::size_t>(producer)];
      });
      if (carries[at] && !facts.consumers.empty()) step = PartitionStep::kLargeGemms;
    }
    for (int k = 0; k < kPartitionSteps; ++k) {
      const auto stage = static_cast<std::size_t>(2 * k);
      for (const NodeId producer : facts.producers) {
        const bool parts = static_cast<int>(result[producer]) <= k;
        stages[at][stage] =
            std::max(stages[at][stage], stages[static_cast<std::size_t>(producer)][stage] + (parts ? 1 : 0));
      }
      stages[at][stage + 1] = static_cast<int>(step) <= k ? 1 : 0;
    }
    if (step == PartitionStep::kNever) continue;
    recorder.add("partition", ops.name(id), "", [&] {
      return Verdict::yes(
          facts.large ? "fs19.large-gemm" : "fs19.partition",
          fmt::format("a {}, a partition op from the step of {} on", name(facts.kind), name(step)));
    });
  }
  std::sort(result.order.begin(), result.order.end(), [&](NodeId a, NodeId b) {
    const Stages& left = stages[static_cast<std::size_t>(a)];
    const Stages& right = stages[static_cast<std::size_t>(b)];
    return left != right ? left < right : a < b;
  });
  return result;
}

std::string to_text(const Ops& ops, const Partition& partition) {
  std::string text;
  for (const NodeId id : partition.order) {
    const PartitionStep step = partition[id];
    text += step == PartitionStep::kNever ? fmt::format("{}\n", ops.name(id))
                                          : fmt::format("{} | {}\n", ops.name(id), name(step));
  }
  return text;
}

}  // namespace stitchwork::fusionstitching
