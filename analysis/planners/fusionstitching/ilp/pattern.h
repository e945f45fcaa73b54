// Fusion patterns (F19 section 4.1): sets of ops that one kernel might compute.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "analysis/plan/constraints.h"
#include "analysis/planners/fusionstitching/ilp/ops.h"

namespace stitchwork::fusionstitching {

enum class PatternSource : std::uint8_t { kSubstitution, kExploratory, kSplitSum, kRemainder, kOverride };
std::string_view name(PatternSource source);

struct Pattern {
  std::vector<NodeId> ops;  ///< fusible, ascending
  PatternSource source = PatternSource::kSubstitution;

  bool operator==(const Pattern&) const = default;
};

/// Members of which something outside the pattern is a reader, or that results need.
std::vector<NodeId> outputs_of(const Ops& ops, const std::vector<NodeId>& pattern);

/// Whether a kernel with all of `pattern` (ascending) would hold two ops that an override keeps apart.
bool holds_apart(const Constraints& constraints, const std::vector<NodeId>& pattern);

/// The weakly connected parts of a pattern, by first op.
std::vector<std::vector<NodeId>> components(const Ops& ops, const std::vector<NodeId>& pattern);

/// One pattern a set of ops: of several the one that came first. The order is kept.
void remove_doubles(std::vector<Pattern>& patterns);

std::string to_text(const Ops& ops, const std::vector<Pattern>& patterns);

}  // namespace stitchwork::fusionstitching
