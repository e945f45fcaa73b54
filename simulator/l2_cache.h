// The L2 cache: sectored, 16-way, least recently used, write-back. Lines of 128 bytes hold four 32-byte
// sectors that are filled and written back one by one. A write allocates without a fill: a sector written in
// part is written to DRAM once, and the bytes it lacks are merged there.
#pragma once

#include <cstdint>
#include <vector>

#include "simulator/simulator.h"

namespace stitchwork::sim {

struct L2Counters {
  std::uint64_t read_sectors = 0, write_sectors = 0, dram_reads = 0, dram_writes = 0;
  std::int64_t dirty_sectors = 0;  ///< change in the number of dirty sectors held
};

class L2State {
 public:
  explicit L2State(std::int64_t bytes);

  /// Sets of line l are those congruent to l modulo kPartitions: partitions can be replayed side by side.
  static constexpr std::uint32_t kPartitions = 4;

  /// Applies one access-log entry (machine.h).
  void access(std::uint64_t entry, L2Counters& counters);
  /// Forgets everything without writing back.
  void clear();
  std::int64_t dirty_sectors = 0;

 private:
  static constexpr int kWays = 16;
  struct Set {
    std::uint32_t epoch = 0, clock = 0, recent = 0;
    std::uint64_t line[kWays];
    std::uint32_t stamp[kWays];
    std::uint8_t valid[kWays], dirty[kWays];
  };
  /// The way that holds `line`, or -1.
  static int find_way(const Set& set, std::uint64_t line);

  std::vector<Set> sets_;
  std::uint32_t groups_;  ///< sets a partition
  std::uint32_t epoch_ = 1;
};

}  // namespace stitchwork::sim
