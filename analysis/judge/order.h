// What a form of some kernels is worth, and which of several forms is taken: one strict order, so that the
// choice depends neither on the order in which forms come nor on a margin of each comparison's own.
#pragma once

#include <compare>
#include <cstddef>
#include <cstdint>
#include <span>

namespace stitchwork {

/// What a time rests on: the estimate from the plan (analysis/judge/cost.h), counters of the simulator, a
/// GPU.
enum class Evidence : std::uint8_t { kModelled, kSimulated, kMeasured };

/// Of forms that are otherwise alike the simplest is taken: fewer barriers of the grid, fewer kinds of
/// waiting (grid, cluster, block, copies, atomics), fewer groups in turn, fewer choices beside the paper's
/// rules (rows in tiles, clusters, partials across rows, one pass, split rows).
struct Simplicity {
  int grid_barriers = 0, kinds_of_sync = 0, steps = 0, choices = 0;

  auto operator<=>(const Simplicity&) const = default;
};

/// Of one kernel or of several together. `us` adds up over kernels, each with the gap before it and the
/// memsets of its atomics; sectors are of 32 bytes.
struct Worth {
  double us = 0;            ///< microseconds
  double dram_sectors = 0;  ///< read and written
  double l2_sectors = 0;    ///< of all requests of global memory that the L1 does not answer
  Simplicity simple;
  Evidence evidence = Evidence::kModelled;
};

/// A strict weak order of forms of the same work: by the buckets of time, of DRAM sectors and of L2 sectors,
/// by simplicity, last by time. A bucket is a factor of 1 + resolution wide: what comes before all others is
/// slower than the fastest by less than that factor, in whatever order the forms are looked at. Two times
/// that hardly differ may lie on either side of an edge: then the faster one is taken, which loses nothing.
struct Order {
  double resolution = 0;  ///< > 0; by how much times have to differ to count as different

  /// Of what is below 1, 0. Not of NaN.
  std::int64_t bucket(double x) const;
  bool before(const Worth& a, const Worth& b) const;
  /// Index of the form that is taken: the first of those that none is before. `forms` is not empty.
  std::size_t best(std::span<const Worth> forms) const;
};

}  // namespace stitchwork
