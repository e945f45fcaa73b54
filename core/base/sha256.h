// SHA-256, for naming inputs; not for secrets.
#pragma once

#include <string>
#include <string_view>

namespace stitchwork {

/// 64 hexadecimal digits (FIPS 180-4).
std::string sha256_hex(std::string_view data);

}  // namespace stitchwork
