#include "analysis/planners/fusionstitching/ilp/find_patterns.h"

#include <fmt/format.h>

#include <iterator>
#include <utility>

#include "analysis/planners/fusionstitching/ilp/exploration.h"
#include "analysis/planners/fusionstitching/ilp/maps.h"
#include "analysis/planners/fusionstitching/ilp/required.h"
#include "analysis/planners/fusionstitching/ilp/substitution.h"
#include "analysis/schedule/evaluations.h"
#include "core/base/at.h"

namespace stitchwork::fusionstitching {
namespace {

/// Segments of which a loop would compute an op under too many index maps are cut.
std::vector<Pattern> cut_within_maps(const Ops& ops, const IlpOptions& options,
                                     const std::vector<Pattern>& segments, Recorder& recorder) {
  std::vector<Pattern> patterns;
  for (const Pattern& segment : segments) {
    std::vector<std::vector<NodeId>> pieces = cut_within_maps(ops, segment.ops, options);
    for (std::vector<NodeId>& piece : pieces) {
      if (piece.front() != segment.ops.front())
        recorder.add("patterns", ops.name(piece.front()), "", [&] {
          return Verdict::no("fs19.maps",
                             fmt::format("the segment from {} is cut before it: with it a loop would compute "
                                         "an op at more than {} indices",
                                         ops.name(segment.ops.front()), kMostMaps));
        });
      if (piece.size() > 1) patterns.push_back({std::move(piece), segment.source});
    }
  }
  return patterns;
}

/// What stands between some kernels, in either order.
std::vector<Pattern> segments_between(const Ops& ops, const Partitions& partitions, const IlpOptions& options,
                                      const std::vector<std::vector<NodeId>>& kernels, Recorder& recorder) {
  std::vector<Pattern> segments;
  for (const Partition& partition : partitions)
    std::ranges::move(substitution_patterns(ops, between(ops, partition, kernels),
                                            {.packing = options.packing}, options.constraints, recorder),
                      std::back_inserter(segments));
  remove_doubles(segments);
  return cut_within_maps(ops, options, segments, recorder);
}

}  // namespace

Partitions find_partitions(const Ops& ops, Recorder& recorder) {
  Recorder quiet(false);
  return {find_partition(ops, Standing::kEarly, recorder), find_partition(ops, Standing::kLate, quiet)};
}

std::vector<Pattern> find_patterns(const Ops& ops, const Partitions& partitions, const IlpOptions& options,
                                   const Required& required, Recorder& recorder) {
  std::vector<Pattern> patterns = segments_between(ops, partitions, options, {}, recorder);
  if (options.exploratory) {
    ExplorationLimits limits;
    limits.launch_us = options.launch.gap_us;
    const std::vector<Pattern> sums =
        options.tuned ? split_sums(ops, limits, options.constraints) : std::vector<Pattern>{};
    if (!sums.empty()) {
      std::vector<std::vector<NodeId>> kernels;
      for (const Pattern& sum : sums) kernels.push_back(sum.ops);
      Recorder quiet(false);
      std::ranges::move(segments_between(ops, partitions, options, kernels, quiet),
                        std::back_inserter(patterns));
      patterns.insert(patterns.end(), sums.begin(), sums.end());
    }
    std::ranges::move(exploratory_patterns(ops, limits, options.constraints, recorder),
                      std::back_inserter(patterns));
  }
  extend_to(required, ops, options.constraints, patterns);
  remove_doubles(patterns);
  return patterns;
}

std::vector<Pattern> remainders(const Ops& ops, const Partitions& partitions, const IlpOptions& options,
                                const std::vector<Pattern>& patterns, const Choice& choice) {
  std::vector<std::vector<NodeId>> kernels;
  for (const int p : choice.patterns) kernels.push_back(patterns[at(p)].ops);
  Recorder quiet(false);
  std::vector<Pattern> found = segments_between(ops, partitions, options, kernels, quiet);
  // What fits together in no kernel may do so apart.
  for (std::size_t i = 0, count = found.size(); i < count; ++i)
    for (std::vector<NodeId>& part : components(ops, found[i].ops))
      if (part.size() > 1) found.push_back({std::move(part)});
  remove_doubles(found);
  for (Pattern& pattern : found) pattern.source = PatternSource::kRemainder;
  return found;
}

}  // namespace stitchwork::fusionstitching
