// What the candidates of mapping=tuned have in common, and those that stage rows.
#pragma once

#include "analysis/stitching/mapping_tuned.h"
#include "occupancy_model/hardware.h"

namespace stitchwork::astitch {

/// Rows up to this long take a warp or less: shuffles end their reductions, no block barrier.
/// Derived from 32 lanes of two vectors of 16 bytes each.
constexpr std::int64_t kShortRowBytes = 1024;

/// Whether what the domain's rows take is known of all of it.
bool is_measured(const GroupDomain& domain, const RowWork& work);

/// To as many blocks as there are slots or tasks.
Dealt deal(const Mapping& mapping, const MappingLimits& limits);

/// Registers of a thread for accumulators of sums across the rows.
std::int64_t accumulator_room(const MappingLimits& limits);

/// The fastest of the mappings so far; of those that the model hardly tells apart the first.
class Fastest {
 public:
  Fastest(const GroupDomain& domain, const MappingLimits& limits) : domain_(domain), limits_(limits) {}

  void offer(const Dealt& dealt) {
    const double us = sketch_us(*limits_.tuned_for, sketch_of(domain_, dealt, limits_));
    if (found_ && us >= us_ * (1 - kIndifference)) return;
    found_ = true;
    us_ = us;
    best_ = dealt;
  }
  bool found() const { return found_; }
  const Dealt& best() const { return best_; }

 private:
  const GroupDomain& domain_;
  const MappingLimits& limits_;
  bool found_ = false;
  double us_ = 0;
  Dealt best_;
};

/// Offers rows that move through tiles, where they begin within sectors: as many lanes a row as leave tasks
/// of whole sectors.
void offer_staged(const GroupDomain& domain, const MappingLimits& limits, Fastest& fastest);

/// Offers long rows one a task, by all threads of a block or of a cluster's, in as much shared memory as a
/// block may ask for: each is read once, in whole sectors wherever it begins, and values a column are read
/// beside it in theirs.
void offer_single_rows(const GroupDomain& domain, const MappingLimits& limits, int cluster, Fastest& fastest);

}  // namespace stitchwork::astitch
