// The L2 cache: sectored, 16-way, least recently used, write-back. Lines of 128 bytes hold four 32-byte
// sectors that are filled and written back one by one. A write allocates without a fill: a sector written in
// part is written to DRAM once, and the bytes it lacks are merged there.
#pragma once

#include <cstdint>
#include <memory>

#include "simulator/simulator.h"

namespace stitchwork::sim {

struct L2Counters {
  std::uint64_t read_sectors = 0, write_sectors = 0, dram_reads = 0, dram_writes = 0;
  std::int64_t dirty_sectors = 0;  ///< change in the number of dirty sectors held
  /// Adds `times` of the other; times may be negative.
  void add(const L2Counters& other, std::int64_t times);
  L2Counters& operator+=(const L2Counters& other) {
    add(other, 1);
    return *this;
  }
};

class L2State {
 public:
  explicit L2State(std::int64_t bytes);

  /// Sets of line l are those congruent to l modulo kPartitions: partitions can be replayed side by side.
  static constexpr std::uint32_t kPartitions = 4;

  /// Applies the entries of an access log (l2_log.h) in order.
  void replay(const std::uint64_t* begin, const std::uint64_t* end, L2Counters& counters);
  /// Forgets everything without writing back.
  void clear();
  std::int64_t dirty_sectors = 0;

 private:
  static constexpr int kWays = 16;
  /// Two cache lines of the host. The line of a way is told by 48 bits of it, which are all that addresses of
  /// fewer than 2^17 allocations have (address.h, kAllocationShift): 32 that are compared at once, 16 beside.
  struct alignas(64) Set {
    std::uint32_t epoch, recent;
    std::uint64_t order;  ///< ways from the most to the least recently used, four bits each, lowest first
    std::uint64_t valid, dirty;  ///< sectors of each way, four bits each
    std::uint16_t line_high[kWays];
    std::uint32_t line_low[kWays];
    bool holds(std::uint64_t way, std::uint64_t tag) const {
      return line_low[way] == static_cast<std::uint32_t>(tag) &&
             line_high[way] == static_cast<std::uint16_t>(tag >> 32);
    }
    std::uint64_t way_of(std::uint64_t tag) const;  ///< kWays where no way holds it
  };
  Set& set_of(std::uint64_t line) const;
  void access(Set& set, std::uint64_t entry, L2Counters& counters);

  struct Free {
    void operator()(void* p) const;
  };
  /// Zero pages until touched: a large cache costs a small kernel nothing. Epoch 0 marks a set never used.
  std::unique_ptr<void, Free> memory_;
  Set* sets_;             ///< in the memory, from its first multiple of a set's alignment on
  std::uint32_t groups_;  ///< sets a partition
  std::uint32_t epoch_ = 1;
};

}  // namespace stitchwork::sim
