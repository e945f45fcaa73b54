#include "analysis/planners/fusionstitching/ilp/partition.h"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <ranges>
#include <utility>

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

/// Among ops of equal stages what reads the last one comes next, behind what else that reads, so that a
/// segment that has to be cut is cut between chains rather than through all of them.
void keep_chains_together(const Ops& ops, const std::vector<Stages>& stages, std::vector<NodeId>& order) {
  std::vector<bool> placed(ops.size(), false);
  std::vector<NodeId> result;
  result.reserve(order.size());
  for (const NodeId first : order) {
    std::vector<NodeId> open{first};  // each behind all that it reads, the last one next
    while (!open.empty()) {
      const NodeId id = open.back();
      const auto is_open = [&](NodeId other) {
        return !placed[static_cast<std::size_t>(other)] &&
               stages[static_cast<std::size_t>(other)] == stages[static_cast<std::size_t>(id)];
      };
      const auto& producers = ops[id].producers;
      if (const auto missing = std::ranges::find_if(producers, is_open);
          is_open(id) && missing != producers.end()) {
        open.push_back(*missing);
        continue;
      }
      open.pop_back();
      if (!is_open(id)) continue;
      placed[static_cast<std::size_t>(id)] = true;
      result.push_back(id);
      const auto& consumers = ops[id].consumers;
      std::ranges::copy_if(consumers.rbegin(), consumers.rend(), std::back_inserter(open), is_open);
    }
  }
  order = std::move(result);
}

/// What waits for no partition op stands in the first stage that reads it instead of in the first of all,
/// from where its value would have to be stored.
void stand_by_readers(const Ops& ops, const Partition& partition, std::vector<Stages>& stages) {
  std::vector<bool> waits(ops.size(), false);
  for (const NodeId id : partition.order) {
    const auto& producers = ops[id].producers;
    waits[static_cast<std::size_t>(id)] =
        partition[id] != PartitionStep::kNever || !ops[id].fusible ||
        std::ranges::any_of(producers, [&](NodeId from) { return waits[static_cast<std::size_t>(from)]; });
  }
  for (const NodeId id : partition.order | std::views::reverse) {
    const auto& consumers = ops[id].consumers;
    if (waits[static_cast<std::size_t>(id)] || consumers.empty()) continue;
    const auto stages_of = [&](NodeId of) -> const Stages& { return stages[static_cast<std::size_t>(of)]; };
    Stages first = stages_of(*std::ranges::min_element(consumers, {}, stages_of));
    for (std::size_t flag = 1; flag < first.size(); flag += 2) first[flag] = 0;
    stages[static_cast<std::size_t>(id)] = first;
  }
}

}  // namespace

std::string_view name(PartitionStep step) {
  constexpr std::array<std::string_view, kPartitionSteps + 1> kNames = {
      "large gemms",       "batched gemms",  "gemms", "column reductions",
      "scalar reductions", "row reductions", "none"};
  return kNames[static_cast<std::size_t>(step)];
}

Partition find_partition(const Ops& ops, Standing standing, Recorder& recorder) {
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
  if (standing == Standing::kLate) stand_by_readers(ops, result, stages);
  std::sort(result.order.begin(), result.order.end(), [&](NodeId a, NodeId b) {
    const Stages& left = stages[static_cast<std::size_t>(a)];
    const Stages& right = stages[static_cast<std::size_t>(b)];
    return left != right ? left < right : a < b;
  });
  keep_chains_together(ops, stages, result.order);
  return result;
}

Partition between(const Ops& ops, const Partition& partition,
                  const std::vector<std::vector<NodeId>>& kernels) {
  const auto at = [](NodeId id) { return static_cast<std::size_t>(id); };
  Partition result = partition;
  // Kernels, then ops that are in none of them.
  std::vector<std::size_t> unit(ops.size());
  for (std::size_t id = 0; id < unit.size(); ++id) unit[id] = kernels.size() + id;
  for (std::size_t k = 0; k < kernels.size(); ++k)
    for (const NodeId id : kernels[k]) {
      unit[at(id)] = k;
      result.step[at(id)] = PartitionStep::kLargeGemms;
    }
  std::vector<int> missing(kernels.size() + ops.size(), 0), stage(missing.size(), 0);
  std::vector<std::vector<NodeId>> members(missing.size());
  for (const NodeId id : partition.order) {
    members[unit[at(id)]].push_back(id);
    for (const NodeId producer : ops[id].producers)
      missing[unit[at(id)]] += unit[at(producer)] != unit[at(id)] ? 1 : 0;
  }
  std::vector<std::size_t> open;
  for (std::size_t u = 0; u < members.size(); ++u)
    if (!members[u].empty() && missing[u] == 0) open.push_back(u);
  while (!open.empty()) {
    const std::size_t u = open.back();
    open.pop_back();
    for (const NodeId id : members[u])
      for (const NodeId consumer : ops[id].consumers) {
        const std::size_t reader = unit[at(consumer)];
        if (reader == u) continue;
        stage[reader] = std::max(stage[reader], stage[u] + (u < kernels.size() ? 1 : 0));
        if (--missing[reader] == 0) open.push_back(reader);
      }
  }
  // What a kernel reads has the kernel's stage at most: a kernel stands behind the ops of its stage.
  std::ranges::stable_sort(result.order, {}, [&](NodeId id) {
    const std::size_t u = unit[at(id)];
    return std::pair(stage[u], u < kernels.size());
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
