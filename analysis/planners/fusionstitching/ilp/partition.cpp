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

/// Among ops of equal stages whatever was just made possible comes next, so that a segment that has to be cut
/// is cut between chains rather than through all of them.
void keep_chains_together(const Ops& ops, const std::vector<Stages>& stages, std::vector<NodeId>& order) {
  std::vector<int> missing(ops.size(), 0);
  for (auto begin = order.begin(); begin != order.end();) {
    const Stages& key = stages[static_cast<std::size_t>(*begin)];
    const auto is_alike = [&](NodeId id) { return stages[static_cast<std::size_t>(id)] == key; };
    const auto end = std::find_if_not(begin, order.end(), is_alike);
    std::vector<NodeId> open;
    for (auto op = begin; op != end; ++op) {
      const auto& producers = ops[*op].producers;
      missing[static_cast<std::size_t>(*op)] =
          static_cast<int>(std::count_if(producers.begin(), producers.end(), is_alike));
      if (missing[static_cast<std::size_t>(*op)] == 0) open.push_back(*op);
    }
    std::reverse(open.begin(), open.end());
    for (; begin != end; ++begin) {
      const NodeId next = open.back();
      open.pop_back();
      *begin = next;
      const auto& consumers = ops[next].consumers;
      for (auto consumer = consumers.rbegin(); consumer != consumers.rend(); ++consumer)
        if (is_alike(*consumer) && --missing[static_cast<std::size_t>(*consumer)] == 0)
          open.push_back(*consumer);
    }
  }
}

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
  keep_chains_together(ops, stages, result.order);
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
