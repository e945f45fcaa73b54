// What a fusion pattern is worth in microseconds (F19 section 4.3).
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <unordered_map>
#include <vector>

#include "analysis/planners/fusionstitching/ilp/pattern.h"

namespace stitchwork::fusionstitching {

/// kMixed: "we use model based approaches for most memory intensive patterns, but enable the execution based
/// approach for complex ones". Ours: patterns that compete with complex ones are worth the lesser of both, as
/// optimistic volumes would win over honest executions.
enum class ScoreKind : std::uint8_t { kMixed, kVolume, kExecution };

/// F19 section 4.3: "phi is the average launch latency (between 6us and 10us)"; the middle.
constexpr double kPaperLaunchUs = 8;

/// phi, what one launch less saves. The time of a kernel has the fixed cost of its launch in it, a volume
/// does not: ours, so that both kinds of scores are of one scale.
struct LaunchCost {
  double gap_us = 0;     ///< by execution: between kernels
  double volume_us = 0;  ///< by volume: that and the time of an empty kernel
};

/// The kernel of a pattern, as far as scores ask for it.
struct KernelEstimate {
  Verdict made;            ///< or why no template of the pattern is a kernel
  double us = 0;           ///< of the fastest template; of any where it is not to be timed
  bool one_block = false;  ///< some part of it fits together in one block only
};

/// How a pattern came to its score.
struct PatternScore {
  double us = 0;                      ///< < 0: the pattern is ignored
  double volume = 0;                  ///< V: bytes of off-chip accesses saved
  int launches = 0;                   ///< N: ops that would be kernels or calls of their own
  bool executed = false;              ///< by execution; else by volume
  double alone_us = 0, fused_us = 0;  ///< executed: the sum of K(op), and K(P)
  Verdict made;
};
std::string to_text(const PatternScore& score);

/// "Combinations of column/scalar and row reductions, gemm/batched-gemms and reductions, etc." Ours: a
/// product with any other op is one, as bytes saved say nothing of how a kernel multiplies.
bool is_complex(const Ops& ops, const std::vector<NodeId>& pattern);

/// Bytes of inputs and outputs of its ops one by one less those of the pattern, inputs once each.
double saved_volume(const Ops& ops, const std::vector<NodeId>& pattern);

/// Bytes that its kernel has to read and write.
double kept_volume(const Ops& ops, const std::vector<NodeId>& pattern);

class Scorer {
 public:
  /// `timed`: its time counts, whatever blocks it has.
  using Estimate = std::function<KernelEstimate(const std::vector<NodeId>& pattern, bool timed)>;

  /// `patterns`: all that are to be chosen from. `estimate` is called by several threads at once, once for
  /// all patterns that are alike and that `constraints` are not about.
  Scorer(const Ops& ops, const std::vector<Pattern>& patterns, ScoreKind kind, LaunchCost launch,
         const Constraints& constraints, Estimate estimate);

  /// At least the score of the pattern, without its kernel.
  double upper_bound(const std::vector<NodeId>& pattern);
  std::vector<PatternScore> exact(const std::vector<const Pattern*>& patterns);

 private:
  double sum_alone(const std::vector<NodeId>& pattern);
  bool executes(const std::vector<NodeId>& pattern) const;
  bool competes(const std::vector<NodeId>& pattern) const;
  bool is_timed(const std::vector<NodeId>& pattern) const;
  PatternScore score(const std::vector<NodeId>& pattern, const KernelEstimate& estimate);
  std::string key(const std::vector<NodeId>& pattern) const;

  const Ops& ops_;
  const ScoreKind kind_;
  const LaunchCost launch_;
  const Constraints& constraints_;
  Estimate estimate_;
  std::vector<bool> in_complex_;                      ///< by node: it is of a complex candidate
  std::vector<double> alone_;                         ///< by node; NaN: not yet known
  std::unordered_map<std::string, double> alone_of_;  ///< by signature
  std::unordered_map<std::string, KernelEstimate> known_;
};

}  // namespace stitchwork::fusionstitching
