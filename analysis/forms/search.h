// The search for a stitch op's kernel: of its forms, with or without rows in shared memory and sums across
// rows, the fastest by the estimate.
#pragma once

#include <vector>

#include "analysis/forms/form.h"

namespace stitchwork::astitch {

/// All forms that were tried, each once, in that order.
struct Searched {
  StitchOp candidate;
  std::vector<Attempt> attempts;
  int chosen = -1;
  std::vector<int> offered;  ///< attempts of which one was chosen: completed, each once
  /// Of the chosen attempt, and of the search: which forms were refused on the way to it, how it compares.
  std::vector<Decision> decisions;

  const Attempt& best() const { return attempts.at(static_cast<std::size_t>(chosen)); }
};

Searched search(const Nodes& nodes, const StitchOp& op, const Device& device, const Options& options);

}  // namespace stitchwork::astitch
