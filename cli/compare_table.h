// The table of `compare`, which the demo prints too.
#pragma once

#include <string>
#include <vector>

#include "analysis/explain/compare.h"

namespace stitchwork {

std::string compare_table(const std::vector<CompareRow>& rows);

}  // namespace stitchwork
