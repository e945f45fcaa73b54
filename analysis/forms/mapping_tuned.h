// mapping=tuned: thread mappings chosen by the time they are modelled to take (docs/planners/astitch.md).
#pragma once

#include "analysis/planners/astitch/mapping.h"
#include "occupancy_model/errors.h"

namespace stitchwork::astitch {

/// A domain to map: what a dominant op makes of [rows, cols] elements.
struct Domain {
  std::int64_t rows = 1, cols = 1;
  int element_bytes = 4;  ///< in memory
  enum class Kind : std::uint8_t { kElements, kRows, kColumns } kind = Kind::kElements;
  /// Its elements are choices (concatenate, pad) or looked up (gather): they move one by one.
  bool guarded = false;
  int widest_bytes = 0;  ///< of the dominant's own operand, which vectors go by; 0: element_bytes
};

Domain domain_of(const Nodes& nodes, NodeId dominant);

/// The fastest mapping of a domain within the limits; `split`: blocks a row by override, 0 leaves it to the
/// model.
Dealt map_tuned(const Domain& domain, const MappingLimits& limits, int split = 0);

/// Bytes of a block's tile for those arrays of RowWork in whose memory the domain's rows lie side by side; 0:
/// there are none, or it does not fit.
std::int64_t turned_tile_bytes(const Domain& domain, const Mapping& mapping, const MappingLimits& limits);

/// Blocks the busiest SM gets of a grid, at most what it can hold.
int blocks_an_sm(const Device& device, std::int64_t grid);

/// Modelled time of a kernel that does nothing but read the domain once and reduce it, the grid barrier
/// behind a split reduction included.
double domain_us(const Domain& domain, const Dealt& dealt, const MappingLimits& limits);

}  // namespace stitchwork::astitch
