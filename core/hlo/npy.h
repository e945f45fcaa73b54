// NumPy .npy files (format 1.0 and 2.0, C order, little-endian).
#pragma once

#include <string>

#include "core/graph/literal.h"

namespace stitchwork {

/// Throws Error naming the file and what does not fit. bf16 is read from '<V2' or '|V2' as NumPy stores it.
Literal read_npy(const std::string& path);
/// Writes through a temporary file and rename: nothing half-written stays behind.
void write_npy(const std::string& path, const Literal& literal);

}  // namespace stitchwork
