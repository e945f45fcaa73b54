// Step 2 of AStitch section 4.3: adaptive thread mapping (sections 3.3 and 4.3) of a dominant op.
#pragma once

#include <cstdint>
#include <map>
#include <vector>

#include "analysis/judge/sketch.h"
#include "analysis/plan/plan.h"
#include "analysis/stitching/nodes.h"
#include "occupancy_model/hardware.h"

namespace stitchwork::astitch {

/// What a mapping may use.
struct MappingLimits {
  int block = 1024;                  ///< threads a block (T)
  std::int64_t blocks_per_wave = 0;  ///< BPW
  bool one_wave = true;              ///< pack tasks vertically so that the grid fits one wave
  bool adaptive = true;              ///< off: one row a block, never split (as XLA maps row reductions)
  int max_blocks_per_sm = 0;         ///< by override; 0: as many as fit
  int accumulators = 0;  ///< registers a thread takes for each of its elements of a row (across.h)
  const std::map<NodeId, int>* wanted_splits = nullptr;  ///< overrides: blocks a row of these reductions
  const std::vector<NodeId>* members = nullptr;          ///< of the stitch op, ascending; null: not known
  const Device* tuned_for = nullptr;  ///< mapping=tuned: the device whose modelled times decide
  RowWork row_work;
  bool tiles = false;         ///< what lies against the rows' order may go through tiles (transposes.h)
  bool staging = false;       ///< rows may move through tiles (staging.h)
  bool single_rows = false;   ///< and long ones one by one, in all the shared memory a block may ask for
  bool async_copies = false;  ///< tiles of several rows may be filled by asynchronous copies
  bool bulk_copies = false;   ///< these are bulk copies
  /// Sums over columns may move in vectors: their block then has as many accumulators in shared memory.
  bool column_vectors = true;
  int vector_bytes = kVectorBytes;  ///< of global memory that a thread moves at a time, at most
  int cluster = 1;                  ///< blocks of a cluster that may share a row
};

/// How many blocks an override wants each row of `reduction` split over; 0: none does.
int wanted_split(const MappingLimits& limits, NodeId reduction);

/// Mapping of a group dominated by `dominant`: its reduction's if it is one, else element-wise.
Dealt map_dominant(const Nodes& nodes, NodeId dominant, const MappingLimits& limits);

/// `split`: blocks a row by override; 0 leaves it to the rules.
Dealt map_row_reduction(std::int64_t rows, std::int64_t cols, const MappingLimits& limits, int split = 0);
Dealt map_column_reduction(std::int64_t rows, std::int64_t cols, const MappingLimits& limits, int split = 0);
Dealt map_elementwise(std::int64_t elements, const MappingLimits& limits);

/// An element-wise mapping of `elements` elements that gives each task exactly the share of `elements` which
/// corresponds to the rows a task of `other` covers, to the same blocks; elements must be a multiple of the
/// other's rows, which must not be split.
Dealt map_alongside(std::int64_t elements, const Mapping& other, const Deal& deal);

}  // namespace stitchwork::astitch
