// The kernel of a pattern (F19 section 5.1): a template of each component, and all of them packed into one
// launch.
#pragma once

#include <map>
#include <mutex>
#include <optional>
#include <string>

#include "analysis/plan/plan.h"
#include "analysis/planners/fusionstitching/ilp/templates.h"

namespace stitchwork::fusionstitching {

struct PackedKernel {
  Verdict made;                   ///< or why there is none
  std::optional<Stitched> whole;  ///< what stitched_kernel makes a kernel of
  double us = 0;
  /// Some loop has one block, and more elements than that has threads.
  bool one_block = false;
};

/// Makes kernels of patterns of one computation; threads may share it.
class Packer {
 public:
  Packer(const Ops& ops, const IlpOptions& options);

  /// The fastest kernel of the pattern by the estimate; where that has several blocks and is not to be
  /// `timed`, some kernel of it. Components have disjoint blocks; loops over as many elements of different
  /// components are one loop.
  PackedKernel pack(const std::vector<NodeId>& pattern, bool timed = true);

 private:
  struct Chosen {
    int index = -1;  ///< into the component's templates; -1: none is a kernel, or none so fast
    double us = 0;
    Verdict refused;     ///< why the last one that is none is none
    double most_us = 0;  ///< index is -1: none takes so long or less
  };

  /// The fastest that takes at most `most_us`.
  Chosen choose(const Fusion& component, const Templates& templates, int cta_size, double most_us);
  Chosen find_fastest(const Templates& templates, double most_us) const;
  /// Of one part a kernel only if it takes at most `most_us`.
  PackedKernel pack(const std::vector<Fusion>& parts, int cta_size, double most_us);
  bool may_have_one_block(const std::vector<Fusion>& parts, const std::vector<int>& sizes) const;

  const Ops& ops_;
  const IlpOptions& options_;
  std::mutex mutex_;
  std::map<std::string, Chosen> known_;           ///< by signature and cta_size
  std::map<std::vector<NodeId>, int> best_size_;  ///< threads of the fastest kernel, by pattern
};

}  // namespace stitchwork::fusionstitching
