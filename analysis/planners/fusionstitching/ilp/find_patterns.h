// Which patterns come into question: what stands between partition ops, what grows from large ops, what
// others leave (F19 section 4.2).
#pragma once

#include <array>
#include <vector>

#include "analysis/planners/fusionstitching/ilp/options.h"
#include "analysis/planners/fusionstitching/ilp/partition.h"
#include "analysis/planners/fusionstitching/ilp/solver.h"

namespace stitchwork::fusionstitching {

/// With ops that wait for nothing early, and late.
using Partitions = std::array<Partition, 2>;
Partitions find_partitions(const Ops& ops, Recorder& recorder);

/// All patterns from the start, each once.
std::vector<Pattern> find_patterns(const Ops& ops, const Partitions& partitions, const IlpOptions& options,
                                   const Required& required, Recorder& recorder);

/// More patterns, of ops that the choice leaves: what stands between its kernels, by the steps of
/// substitution again, whole and in its components.
std::vector<Pattern> remainders(const Ops& ops, const Partitions& partitions, const IlpOptions& options,
                                const std::vector<Pattern>& patterns, const Choice& choice);

}  // namespace stitchwork::fusionstitching
