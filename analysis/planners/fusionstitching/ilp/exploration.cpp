#include "analysis/planners/fusionstitching/ilp/exploration.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>

#include "analysis/judge/cost.h"
#include "analysis/schedule/plain_mapping.h"
#include "core/base/interrupt.h"
#include "core/base/sorted.h"

namespace stitchwork::fusionstitching {
namespace {

struct Seed {
  NodeId op = kNoNode;
  double bytes = 0;  ///< of its largest tensor
};

/// "(1) op must be a elementwise, batched-gemm, reduction op"
bool explorable(const StepFacts& facts) { return facts.fusible && facts.kind != OpKind::kGemm; }

std::vector<Seed> find_seeds(const Ops& ops, const ExplorationLimits& limits) {
  std::vector<Seed> seeds;
  for (NodeId id = 0; id < static_cast<NodeId>(ops.size()); ++id) {
    if (!explorable(ops[id]) || ops.nodes->node(id).operands.size() > limits.most_operands) continue;
    double bytes = static_cast<double>(ops.nodes->bytes(id));
    for (const BufferRead& read : ops[id].reads) bytes = std::max(bytes, read.bytes);
    // Of what a transfer takes the part that grows with bytes: every op has the launch.
    if (transfer_us(*ops.device, bytes) - transfer_us(*ops.device, 0) >= limits.launch_us)
      seeds.push_back({id, bytes});
  }
  std::stable_sort(seeds.begin(), seeds.end(),
                   [](const Seed& a, const Seed& b) { return a.bytes > b.bytes; });
  return seeds;
}

/// A reduction and the element-wise ops that it alone reads, directly or through each other.
std::vector<NodeId> with_its_inputs(const Ops& ops, NodeId reduction, std::size_t most_ops) {
  std::vector<NodeId> pattern{reduction}, open{reduction};
  while (!open.empty() && pattern.size() < most_ops) {
    const NodeId reader = open.back();
    open.pop_back();
    for (const NodeId id : ops[reader].producers) {
      const bool taken = ops[id].fusible && ops[id].kind == OpKind::kElementwise && !ops[id].result &&
                         pattern.size() < most_ops && !contains_sorted(pattern, id) &&
                         std::ranges::all_of(ops[id].consumers, [&](NodeId consumer) {
                           return contains_sorted(pattern, consumer);
                         });
      if (!taken) continue;
      insert_sorted(pattern, id);
      open.push_back(id);
    }
  }
  return pattern;
}

class Exploration {
 public:
  Exploration(const Ops& ops, const ExplorationLimits& limits, const Constraints& constraints)
      : ops_(ops), limits_(limits), constraints_(constraints), level_(ops.size(), 0), mark_(ops.size(), 0) {
    for (NodeId id = 0; id < static_cast<NodeId>(ops.size()); ++id)
      for (const NodeId producer : ops[id].producers)
        level_[at(id)] = std::max(level_[at(id)], level_[at(producer)] + 1);
  }

  /// False: a limit ended it.
  bool explore(NodeId seed) {
    interruption_point();
    std::vector<std::vector<NodeId>> open{{seed}};
    std::set<std::vector<NodeId>> of_seed{open.front()};
    for (std::size_t next = 0; next < open.size(); ++next) {
      const std::vector<NodeId> pattern = open[next];
      if (pattern.size() >= limits_.most_ops) continue;
      for (const NodeId candidate : candidates(pattern)) {
        std::vector<NodeId> fusion = pattern;
        insert_sorted(fusion, candidate);
        if (of_seed.contains(fusion) || holds_apart(constraints_, fusion) || detours(fusion)) continue;
        if (of_seed.size() > limits_.most_patterns_a_seed || patterns_.size() >= limits_.most_patterns)
          return false;
        of_seed.insert(fusion);
        if (seen_.insert(fusion).second) patterns_.push_back({fusion, PatternSource::kExploratory});
        open.push_back(std::move(fusion));
      }
    }
    return true;
  }

  bool full() const { return patterns_.size() >= limits_.most_patterns; }
  std::vector<Pattern> take() { return std::move(patterns_); }

 private:
  static std::size_t at(NodeId id) { return static_cast<std::size_t>(id); }

  /// Producer and consumer expansion.
  std::vector<NodeId> candidates(const std::vector<NodeId>& pattern) const {
    std::vector<NodeId> result;
    const auto add = [&](NodeId id) {
      if (explorable(ops_[id]) && !contains_sorted(pattern, id)) result.push_back(id);
    };
    for (const NodeId id : pattern) {
      for (const NodeId producer : ops_[id].producers) add(producer);
      for (const NodeId consumer : ops_[id].consumers) add(consumer);
    }
    sort_unique(result);
    return result;
  }

  /// "(2) fusion of op into seed_pattern does not introduce any cyclic data dependence": whether a path leads
  /// out of the pattern and back. Levels grow along every edge.
  bool detours(const std::vector<NodeId>& pattern) {
    const int mark = ++epoch_;
    int most = 0;
    for (const NodeId id : pattern) {
      most = std::max(most, level_[at(id)]);
      mark_[at(id)] = mark;
    }
    std::vector<NodeId> open;
    const auto visit = [&](NodeId id) {
      for (const NodeId consumer : ops_[id].consumers)
        if (level_[at(consumer)] < most && mark_[at(consumer)] != mark) {
          mark_[at(consumer)] = mark;
          open.push_back(consumer);
        }
    };
    for (const NodeId id : pattern) visit(id);
    while (!open.empty()) {
      const NodeId id = open.back();
      open.pop_back();
      const auto& consumers = ops_[id].consumers;
      if (std::any_of(consumers.begin(), consumers.end(),
                      [&](NodeId consumer) { return contains_sorted(pattern, consumer); }))
        return true;
      visit(id);
    }
    return false;
  }

  const Ops& ops_;
  const ExplorationLimits& limits_;
  const Constraints& constraints_;
  std::vector<int> level_, mark_;
  int epoch_ = 0;
  std::vector<Pattern> patterns_;
  std::set<std::vector<NodeId>> seen_;
};

}  // namespace

std::vector<Pattern> split_sums(const Ops& ops, const ExplorationLimits& limits,
                                const Constraints& constraints) {
  std::vector<Pattern> patterns;
  for (NodeId id = 0; id < static_cast<NodeId>(ops.size()); ++id) {
    if (!is_reduction(ops[id].kind) || !ops[id].fusible ||
        segments(eager_mapping(*ops.nodes->graph, *ops.device, ops.nodes->node(id)).mapping) == 1)
      continue;
    std::vector<NodeId> pattern = with_its_inputs(ops, id, limits.most_ops);
    if (pattern.size() > 1 && !holds_apart(constraints, pattern))
      patterns.push_back({std::move(pattern), PatternSource::kSplitSum});
  }
  return patterns;
}

std::vector<Pattern> exploratory_patterns(const Ops& ops, const ExplorationLimits& limits,
                                          const Constraints& constraints, Recorder& recorder) {
  const std::vector<Seed> seeds = find_seeds(ops, limits);
  ExplorationLimits fair = limits;  // all seeds have their share
  if (!seeds.empty())
    fair.most_patterns_a_seed =
        std::clamp<std::size_t>(limits.most_patterns / seeds.size(), 1, limits.most_patterns_a_seed);
  Exploration exploration(ops, fair, constraints);
  for (const Seed& seed : seeds) {
    const bool complete = exploration.explore(seed.op);
    if (!complete)
      recorder.add("patterns", ops.name(seed.op), "", [&] {
        return Verdict::no(
            "fs19.cap", exploration.full()
                            ? fmt::format("{} exploratory patterns in all", limits.most_patterns)
                            : fmt::format("{} exploratory patterns of this seed", fair.most_patterns_a_seed));
      });
    if (exploration.full()) break;
  }
  return exploration.take();
}

}  // namespace stitchwork::fusionstitching
