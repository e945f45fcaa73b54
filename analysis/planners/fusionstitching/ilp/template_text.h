// The notation of templates (F19 section 5.2): `template = schedule+`, `schedule = op '[' attr (',' attr)*
// ']' 'S'? ';'`, `attr = A | A_int ('-' A_int)*`, `A = GRID | WARP | CTA | THREAD`.
//
// One attribute a dimension: of a reduction those of its input, of a dot the result's and the contracted
// ones, of other ops the output's. GRID are blocks, WARP warps, CTA the threads left over (lanes of a warp
// where the schedule has WARP, else all of the block), THREAD one thread in turn. Integers are tile counts,
// whose product covers the extent. Ours: of an array of several dimensions one attribute alone is of its
// elements as one range; of a reduction two are of the kept and the reduced ones so.
//
//   max[GRID,CTA]S; exp[GRID,CTA]; ...       blocks over rows, all of a block's threads along a row
//   sum[WARP,GRID_32-CTA_32];                tiles of 32 columns, warps along them
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "analysis/planners/fusionstitching/kernel.h"

namespace stitchwork::fusionstitching {

enum class Level : std::uint8_t { kGrid, kWarp, kCta, kThread };
std::string_view name(Level level);  ///< "GRID", ...

struct Tiles {
  Level level = Level::kGrid;
  std::int64_t count = 0;  ///< 0: the whole dimension
  bool operator==(const Tiles&) const = default;
};
using Attribute = std::vector<Tiles>;

struct OpSchedule {
  NodeId op = kNoNode;
  std::vector<Attribute> dims;
  bool shared = false;
  int line = 0, column = 0;  ///< where the text has it; 0: nowhere
};

std::string to_text(const Computation& computation, const std::vector<OpSchedule>& schedules);

/// Throws Error with line and column of the text: unknown op or level, an attribute too few or too many,
/// tiles that do not cover their dimension.
std::vector<OpSchedule> parse_template(const Computation& computation, std::string_view text);

/// How a kernel deals with what it stores, one op after the other; vectors and tiles of shared memory are not
/// part of the notation.
std::vector<OpSchedule> schedules_of(const Computation& computation, const KernelPlan& kernel);

/// The mapping that a schedule is, in blocks of `cta_size` threads. Throws Error where no loop of ours is so.
Dealt dealt_of(const Computation& computation, const OpSchedule& schedule, int cta_size);

}  // namespace stitchwork::fusionstitching
