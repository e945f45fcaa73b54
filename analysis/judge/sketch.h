// A kernel before there is one: its largest domain alone, under a mapping, with the arrays that its ops read
// and write there. Mappings and launches are chosen by what it takes; forms by the whole kernel.
#pragma once

#include <cstdint>

#include "analysis/plan/mapping.h"
#include "occupancy_model/device.h"
#include "occupancy_model/timing.h"

namespace stitchwork {

/// Tasks of a block whose elements stay in registers, at most: a loop over more is not unrolled, as its code
/// grows with each. A choice, not measured: the loop's code is four times as long then.
inline constexpr std::int64_t kMostUnrolledTasks = 4;

/// A domain to map: what a dominant op makes of [rows, cols] elements.
struct GroupDomain {
  std::int64_t rows = 1, cols = 1;
  int element_bytes = 4;  ///< in memory
  enum class Kind : std::uint8_t { kElements, kRows, kColumns } kind = Kind::kElements;
  /// Its elements are choices (concatenate, pad) or looked up (gather): they move one by one.
  bool guarded = false;
  int widest_bytes = 0;  ///< of the dominant's own operand, which vectors go by; 0: element_bytes
};

/// What a stitch op does with the elements of its largest reduction's rows (or largest op's elements).
struct RowWork {
  int inputs = 1;             ///< arrays of that size it reads
  int passes = 1;             ///< how often a row is gone through if its elements are not kept
  int reductions = 1;         ///< of its rows
  double instructions = 4;    ///< an element
  std::int64_t elements = 0;  ///< of such an array
  /// Of an element of the arrays that such rows read and write: those of that size, and of a value a column.
  int narrowest_bytes = 0, widest_bytes = 0;
  /// All arrays of that size are in the domain's order, and nothing else has a value a col.
  bool in_order = false;
  bool arrays_in_order = false;  ///< the first of these alone
  /// Of an element: tiles for all those arrays that are read or written, a result in the place of an input of
  /// its size.
  int staged_bytes = 0;
  int staged_input_bytes = 0;  ///< of these, tiles for what is read
  int turned_bytes = 0;  ///< of what is read, of arrays in whose memory the domain's rows lie side by side
  int staged_col_bytes = 0;  ///< of the arrays of a value a col that are read
};

struct Sketch {
  const GroupDomain& domain;
  const Mapping& mapping;
  const Deal& deal;
  const RowWork& work;
  int block = 0;                  ///< threads
  int most_blocks_per_sm = 0;     ///< 0: as many as fit
  int accumulators = 0;           ///< registers a thread takes for each of its elements of a row
  std::int64_t turned_bytes = 0;  ///< turned_tile_bytes, where such tiles are allowed
  bool waits = false;             ///< the launch has grid barriers
};

/// Modelled time of a kernel that does nothing but read the domain once and reduce it: the grid barrier
/// behind a split reduction, partials across the rows written and read once more, and what each block adds to
/// a barrier of a launch that waits included.
double sketch_us(const Device& device, const Sketch& sketch);

/// The same of counts that a planner has in closed form, where there is no mapping yet: one op's kernel.
double sketch_us(const Device& device, const KernelWork& counted);

/// Bytes of a block's tile for those arrays in whose memory the domain's rows lie side by side; 0: there are
/// none, or it does not fit.
std::int64_t turned_tile_bytes(const Device& device, const GroupDomain& domain, const Mapping& mapping,
                               const RowWork& work);

/// Blocks the busiest SM gets of a grid, at most what it can hold.
int blocks_an_sm(const Device& device, std::int64_t grid);

}  // namespace stitchwork
