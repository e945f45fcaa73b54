// What an optimal packing never takes and never runs into: the program without it.
#pragma once

#include <vector>

#include "analysis/planners/fusionstitching/ilp/set_packing.h"

namespace stitchwork::fusionstitching {

/// A program whose columns are some of another's.
struct PackingPart {
  SetPacking program;
  std::vector<int> columns;  ///< of the other program, ascending
};

/// Without the columns b for which there is an a of more weight, or of as much and before it, that runs into
/// nothing that b does not run into: a packing with b gains by a in its place. Without rows whose columns
/// another row holds that admits no more. Then in parts that no row connects. Every optimum of the parts
/// together is one of the program; where its optimum is unique they have no other. Weights are not negative.
std::vector<PackingPart> without_dominated(const SetPacking& program);

}  // namespace stitchwork::fusionstitching
