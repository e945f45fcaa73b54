// Which ops stand for which (analysis/facts/link.h), in all that runs: the entries, and what loops and
// branches that stand for each other run.
//
// A loop stands for the one loop of the model that has its kind, trips and op_name; of several the one that
// starts with most of the same values, then the first. Compilers drop and add elements of a loop's state, so
// that elements are paired by the values they start with, by what the body makes of them (passed on, or by an
// op of the same name) and by the results they end as; an element that could be one of several is left
// without. Elements that are paired are the same value within the bodies, and behind the loop.
#pragma once

#include <vector>

#include "analysis/facts/link.h"

namespace stitchwork {

struct LinkedComputations {
  ComputationId model = -1, optimised = -1;
  GraphLinks links;  ///< ids are those of the two computations
};

/// Both canonical. The entries first, callers before what they run. A computation of either is in one pair at
/// most.
std::vector<LinkedComputations> link_computations(const Graph& model, const Graph& optimised);

}  // namespace stitchwork
