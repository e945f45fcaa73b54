// What a block asks of the L2, written down as it runs and replayed later (l2_replay.h).
#pragma once

#include <cstdint>

namespace stitchwork::sim {

/// Entries: line number (address / 128) << 5 | sector mask << 1 | write.
struct AccessLog {
  std::uint64_t* begin = nullptr;
  std::uint64_t* end = nullptr;
  std::uint64_t* capacity = nullptr;
};

/// Doubles its buffer. Handlers hold only the log, whose storage is found by its end pointers.
void grow_log(AccessLog& log);

}  // namespace stitchwork::sim
