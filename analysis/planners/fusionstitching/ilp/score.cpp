#include "analysis/planners/fusionstitching/ilp/score.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <utility>

#include "analysis/judge/cost.h"
#include "analysis/judge/library_cost.h"
#include "analysis/planners/fusionstitching/alone.h"
#include "analysis/planners/fusionstitching/ilp/alike.h"
#include "analysis/planners/fusionstitching/ilp/tuned.h"
#include "core/base/format.h"
#include "core/base/parallel.h"
#include "core/base/sorted.h"

namespace stitchwork::fusionstitching {
namespace {

/// Predicted microseconds of the kernel, copy or library call that the op is alone: K(op).
double alone_us(const Ops& ops, NodeId op) {
  const astitch::Nodes& nodes = *ops.nodes;
  const Node& node = nodes.node(op);
  if (node.op == Op::kCopy) return transfer_us(*ops.device, call_bytes(*nodes.computation, node, true));
  if (const auto product = matrix_product(*nodes.computation, node))
    return library_time(*ops.device, *product).total_us - ops.device->launch_us;
  return modelled_us(ops, kernel_alone(nodes, *ops.device, op));
}

double bytes_of(const Ops& ops, NodeId id) { return static_cast<double>(ops.nodes->bytes(id)); }

double transferred_us(const Ops& ops, double bytes) {
  return bytes <= 0 ? 0 : transfer_us(*ops.device, bytes);
}

}  // namespace

std::string to_text(const PatternScore& score) {
  if (!score.made) return score.made.why;
  if (score.executed)
    return fmt::format("{:.3f} us by execution: {:.3f} us alone, {:.3f} us fused, {} saved", score.us,
                       score.alone_us, score.fused_us, counted(score.launches - 1, "launch"));
  return fmt::format("{:.3f} us by volume: {:.0f} bytes and {} saved", score.us, score.volume,
                     counted(score.launches - 1, "launch"));
}

bool is_complex(const Ops& ops, const std::vector<NodeId>& pattern) {
  bool row = false, other = false, product = false;
  for (const NodeId id : pattern) {
    row = row || ops[id].kind == OpKind::kRowReduction;
    other = other || ops[id].kind == OpKind::kColumnReduction || ops[id].kind == OpKind::kScalarReduction;
    product = product || is_product(ops[id].kind);
  }
  return (row && other) || (product && pattern.size() > 1);
}

double kept_volume(const Ops& ops, const std::vector<NodeId>& pattern) {
  std::map<NodeId, double> inputs;
  double bytes = 0;
  for (const NodeId id : pattern)
    for (const BufferRead& read : ops[id].reads)
      if (!contains_sorted(pattern, read.buffer)) {
        double& most = inputs[read.buffer];
        most = std::max(most, read.bytes);
      }
  for (const auto& [buffer, read] : inputs) bytes += read;
  for (const NodeId id : outputs_of(ops, pattern)) bytes += bytes_of(ops, id);
  return bytes;
}

double saved_volume(const Ops& ops, const std::vector<NodeId>& pattern) {
  double bytes = 0;
  for (const NodeId id : pattern) {
    bytes += bytes_of(ops, id);
    for (const BufferRead& read : ops[id].reads) bytes += read.bytes;
  }
  return bytes - kept_volume(ops, pattern);
}

Scorer::Scorer(const Ops& ops, const std::vector<Pattern>& patterns, ScoreKind kind, LaunchCost launch,
               const Constraints& constraints, Estimate estimate)
    : ops_(ops),
      kind_(kind),
      launch_(launch),
      constraints_(constraints),
      estimate_(std::move(estimate)),
      in_complex_(ops.size(), false),
      alone_(ops.size(), std::numeric_limits<double>::quiet_NaN()) {
  for (const Pattern& pattern : patterns)
    if (is_complex(ops, pattern.ops))
      for (const NodeId id : pattern.ops) in_complex_[static_cast<std::size_t>(id)] = true;
}

std::string Scorer::key(const std::vector<NodeId>& pattern) const {
  return pattern_key(*ops_.nodes, evaluated_ops(*ops_.nodes, pattern), outputs_of(ops_, pattern));
}

double Scorer::sum_alone(const std::vector<NodeId>& pattern) {
  double sum = 0;
  for (const NodeId id : pattern) {
    double& us = alone_[static_cast<std::size_t>(id)];
    if (std::isnan(us)) {
      const auto [known, fresh] = alone_of_.try_emplace(key({id}), 0.0);
      if (fresh) known->second = alone_us(ops_, id);
      us = known->second;
    }
    sum += us;
  }
  return sum;
}

bool Scorer::executes(const std::vector<NodeId>& pattern) const {
  return kind_ == ScoreKind::kExecution || (kind_ == ScoreKind::kMixed && is_complex(ops_, pattern));
}

bool Scorer::competes(const std::vector<NodeId>& pattern) const {
  return std::any_of(pattern.begin(), pattern.end(),
                     [&](NodeId id) { return in_complex_[static_cast<std::size_t>(id)]; });
}

bool Scorer::is_timed(const std::vector<NodeId>& pattern) const {
  return executes(pattern) || (kind_ == ScoreKind::kMixed && competes(pattern));
}

double Scorer::upper_bound(const std::vector<NodeId>& pattern) {
  const double saved = static_cast<double>(pattern.size() - 1);
  if (!executes(pattern))
    return transferred_us(ops_, saved_volume(ops_, pattern)) + saved * launch_.volume_us;
  return sum_alone(pattern) + saved * launch_.gap_us - ops_.device->launch_us;
}

PatternScore Scorer::score(const std::vector<NodeId>& pattern, const KernelEstimate& estimate) {
  PatternScore result;
  result.made = estimate.made;
  result.volume = saved_volume(ops_, pattern);
  result.launches = static_cast<int>(pattern.size());
  if (!estimate.made) {
    result.us = -1;
    return result;
  }
  const double saved = result.launches - 1;
  const double by_volume = transferred_us(ops_, result.volume) + saved * launch_.volume_us;
  result.us = by_volume;
  // What fits together in one block only would pass by its volume, however slow: its time counts if that is
  // less. So it does beside patterns whose time counts.
  const bool bounded = kind_ == ScoreKind::kMixed && estimate.one_block;
  if (!is_timed(pattern) && !bounded) return result;
  result.alone_us = sum_alone(pattern);
  result.fused_us = estimate.us;
  const double by_time = result.alone_us + saved * launch_.gap_us - estimate.us;
  result.executed = executes(pattern) || by_time < by_volume;
  if (result.executed) result.us = by_time;
  return result;
}

std::vector<PatternScore> Scorer::exact(const std::vector<const Pattern*>& patterns) {
  std::vector<std::string> keys(patterns.size());
  std::vector<std::size_t> fresh;  // one of each key that is not known yet
  for (std::size_t i = 0; i < patterns.size(); ++i) {
    keys[i] = key(patterns[i]->ops);
    if (constraints_.are_about(evaluated_ops(*ops_.nodes, patterns[i]->ops)))
      keys[i] = to_text(ops_, {*patterns[i]});
    if (is_timed(patterns[i]->ops)) keys[i] += " timed";
    if (known_.try_emplace(keys[i]).second) fresh.push_back(i);
  }
  std::vector<KernelEstimate> found(fresh.size());
  parallel_for(fresh.size(), [&](std::size_t f) {
    const std::vector<NodeId>& pattern = patterns[fresh[f]]->ops;
    found[f] = estimate_(pattern, is_timed(pattern));
  });
  for (std::size_t f = 0; f < fresh.size(); ++f) known_[keys[fresh[f]]] = std::move(found[f]);
  std::vector<PatternScore> scores;
  for (std::size_t i = 0; i < patterns.size(); ++i)
    scores.push_back(score(patterns[i]->ops, known_.at(keys[i])));
  return scores;
}

}  // namespace stitchwork::fusionstitching
