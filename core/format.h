// Numbers for people: tables of the command line and of reports.
#pragma once

#include <string>

namespace stitchwork {

/// 1234567 -> "1,234,567".
std::string with_commas(long long value);
/// 1536 -> "1.5 KiB".
std::string human_bytes(double bytes);

}  // namespace stitchwork
