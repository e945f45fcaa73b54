// What a kernel's time is made of.
#pragma once

#include <string>
#include <string_view>

#include "occupancy_model/timing.h"

namespace stitchwork {

/// The part that takes longest: "DRAM bandwidth", "L2 bandwidth", "instruction issue", "memory latency",
/// "uneven work, tail", "grid barriers" or "launch".
std::string_view limiter(const KernelTime& time);

/// The limiter, and of instruction issue the pipe: "instruction issue (fp32)".
std::string limited_by(const KernelTime& time);

/// "DRAM 83 %, L2 31 %, loads and stores 12 %": the busiest units, at most `most` and those of a percent and
/// more; "" where there are none.
std::string busiest_units(const KernelTime& time, std::size_t most = kUnits.size());

/// One line a part in microseconds, the limiter marked, and one of the units.
std::string to_text(const KernelTime& time);

}  // namespace stitchwork
