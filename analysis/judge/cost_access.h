// What one access of a warp moves: the sectors it touches, and how many accesses a value takes.
#pragma once

#include <algorithm>
#include <cstdint>
#include <vector>

#include "analysis/plan/plan.h"
#include "analysis/schedule/layout.h"
#include "core/base/arithmetic.h"
#include "core/index/index_map.h"
#include "occupancy_model/hardware.h"

namespace stitchwork::costs {

/// More requests of a thread are not counted, though generated code often has them: counted up to 16,
/// planners take rows in registers for rows in tiles, and the L1 does not hold what these read twice (cross
/// entropy of 512x50257 bf16 on an H200: estimated 28.5 us, simulated 43.0; in tiles 28.3 and 28.3).
inline constexpr double kMaxLoadsInFlight = 8;

/// Of 128 bytes, which L1 moves in one wavefront.
/// Derived from sectors of 32 bytes.
inline constexpr double kSectorsPerWavefront = 4;

/// Results of a whole tile over those of the average one: the last may have few.
inline double whole_tile_share(std::int64_t results, std::int64_t tile) {
  const std::int64_t of = std::max<std::int64_t>(1, results);
  return static_cast<double>(ceil_div(of, tile) * tile) / static_cast<double>(of);
}

/// Does an access under `map` vary with that dimension?
bool uses(const IndexMap& map, int dim);

/// Sectors one warp's access of global memory touches.
double sectors(const IndexMap& map, const std::vector<std::int64_t>& extents, const Mapping& mapping,
               const Layout& layout, int bytes, bool through_tile, int at_once);

/// So many bytes at a time, what a warp's access of global memory touches whose lanes' places lie a vector
/// apart, as where they load its elements one at a time: sectors, or the lines of a wavefront each.
double touched_apart(const IndexMap& map, const std::vector<std::int64_t>& extents, const Layout& layout,
                     int bytes, int at_a_time);

/// Wavefronts of one warp's access of shared memory: the most words that its lanes ask of a bank. `place`, in
/// elements, is a function of the dims of `map`; lanes are taken to be on neighbouring ones.
double wavefronts_a_warp(const IndexExpr& place, const IndexMap& map, const Layout& layout, int bytes);

/// Warps that issue one access each for a value under `map`. A value that does not vary along the lanes is
/// still loaded by every warp that works on it.
double warp_accesses(const IndexMap& map, const Mapping& mapping, const Layout& layout);

/// Warps that have an element under `map` of a task, over those that these would fill: 2 where half of the
/// lanes of the only one have a vector. 1 where the element does not vary along the lanes.
double unfilled_warps(const IndexMap& map, const Mapping& mapping, const Layout& layout);

/// Elements that one access of a thread moves.
int moved_at_once(const IndexMap& map, const Node& node, const Mapping& mapping, const Layout& layout,
                  bool through_tile);

/// Of a value that only some lanes of a warp compute (a piece of a concatenation, the inside of a pad): how
/// many warps execute it, in those that its elements would fill. A run of R neighbours that begins anywhere
/// is met by 1 + (R - 1) / W of the ranges of W elements that a warp's lanes have vectors of, on the average;
/// 1 where all of a warp's lanes compute it or none does.
double divergence(const IndexMap& map, const Layout& layout);

}  // namespace stitchwork::costs
