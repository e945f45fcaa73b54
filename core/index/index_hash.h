// Looking up maps among many.
#pragma once

#include <cstdint>

#include "core/index/index_map.h"

namespace stitchwork {

/// Equal maps have equal ones. What tells apart the thousands of maps by which slices read one array, the
/// constants and factors of results and constraints, tells their hashes apart.
std::uint64_t hash_of(const IndexMap& map);

}  // namespace stitchwork
