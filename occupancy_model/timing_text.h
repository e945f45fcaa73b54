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

/// One line a part in microseconds, the limiter marked.
std::string to_text(const KernelTime& time);

}  // namespace stitchwork
