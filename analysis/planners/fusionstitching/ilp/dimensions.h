// The dimensions that a template has attributes of, and between loops and attributes.
#pragma once

#include <cstdint>
#include <vector>

#include "core/graph/graph.h"

namespace stitchwork::fusionstitching {

struct ScheduledDims {
  std::vector<std::int64_t> extents;
  std::vector<bool> reduced;  ///< by dimension: whether it is reduced or contracted

  std::int64_t kept() const;     ///< elements of those that are not
  std::int64_t reduces() const;  ///< elements of those that are
};

/// Of a reduction's input; of a dot's result and contracted dimensions; else of the output. With fewer
/// attributes than dimensions: one of all elements, or one of the kept and one of the reduced.
ScheduledDims scheduled_dims(const Computation& computation, const Node& node, std::size_t attributes);

}  // namespace stitchwork::fusionstitching
