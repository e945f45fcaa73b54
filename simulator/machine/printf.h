// What a kernel says: its printf, and its assertions.
#pragma once

#include <cstdint>

#include "simulator/machine/strand.h"

namespace stitchwork::sim {

[[noreturn]] void raise_assertion(Strand& s, const Inst* i, std::uint64_t message, std::uint64_t file,
                                  std::uint32_t line, int warp, int lane);
/// vprintf of one lane into the launch's text; returns the number of values printed.
std::uint32_t print_formatted(Strand& s, const Inst* i, std::uint64_t format, std::uint64_t values, int warp,
                              int lane);

}  // namespace stitchwork::sim
