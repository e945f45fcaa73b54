// The timing model of docs/timing.md: kernel time from counts alone. The planner feeds it modelled counts
// (method "modelled"), the simulator executed ones (method "simulated").
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string_view>
#include <vector>

#include "occupancy_model/device.h"

namespace stitchwork {

/// Element types of matrix instructions, as tensor cores have rates of them.
enum class TensorType : std::uint8_t { kF16, kBf16, kTf32, kF64, kInt8 };
// No quantity: the count of the types above.
inline constexpr std::size_t kTensorTypes = 5;

/// What the threads of a kernel, an SM or a block do. Instructions and accesses count once a warp.
struct ThreadWork {
  double warp_instructions = 0;
  double fp32_warp_instructions = 0;
  double fp64_warp_instructions = 0;
  double half2_warp_instructions = 0;  ///< arithmetic on two packed f16 or bf16, or on one
  double int32_warp_instructions = 0;
  double mufu_warp_instructions = 0;
  double ldst_warp_instructions = 0;
  std::array<double, kTensorTypes> tensor_multiply_adds{};  ///< of matrix instructions, by TensorType
  double l1_wavefronts = 0;        ///< 128 bytes that loads and stores of global and local memory move by L1
  double shared_wavefronts = 0;    ///< clocks of shared memory: conflicts, vectors and atomics take several
  double l2_sectors = 0;           ///< 32-byte, read + write
  double l2_atomic_sectors = 0;    ///< of these, those that L2 updates
  double l2_atomic_conflicts = 0;  ///< further updates of these sectors, as lanes of a request have one word
  double l1_hit_sectors = 0;       ///< 32-byte, read from L1 instead
  double global_accesses = 0;      ///< of ldst_warp_instructions, those a warp may have to wait for
  double remote_accesses = 0;      ///< the same to shared memory of other blocks of the cluster
  double remote_sectors = 0;       ///< 32-byte, moved by these
  double cluster_barriers = 0;     ///< once a block
  double bulk_round_trips = 0;     ///< of bulk copies, that a block waits for one after another

  ThreadWork& operator+=(const ThreadWork& other);
  ThreadWork operator+(const ThreadWork& other) const { return ThreadWork(*this) += other; }
  ThreadWork operator*(double times) const;
  bool operator==(const ThreadWork&) const = default;
  /// The larger of each.
  ThreadWork& raise_to(const ThreadWork& other);
};

/// A part of the device that works beside the others: `id` is for documents, `name` for people.
struct Unit {
  std::string_view id, name;
};
/// DRAM, L2 and the pipes of SMs.
inline constexpr std::array<Unit, 13> kUnits = {{{"dram", "DRAM"},
                                                 {"l2", "L2"},
                                                 {"issue", "instructions"},
                                                 {"fp32", "fp32"},
                                                 {"fp64", "fp64"},
                                                 {"fp16x2", "fp16x2"},
                                                 {"int32", "int32"},
                                                 {"special", "special functions"},
                                                 {"tensor", "tensor cores"},
                                                 {"ldst", "loads and stores"},
                                                 {"l1", "L1"},
                                                 {"shared", "shared memory"},
                                                 {"cluster", "shared memory of the cluster"}}};
inline constexpr std::size_t kDramUnit = 0, kL2Unit = 1, kIssueUnit = 2;  // No quantity: places in kUnits.
using UnitTimes = std::array<double, kUnits.size()>;                      ///< us of each of kUnits

/// Clocks in which an SM with enough warps issues this, and the unit that takes them.
struct IssueClocks {
  double clocks = 0;
  std::string_view pipe;  ///< kUnits::name: "instructions", "fp32", "tensor cores", ...
};
IssueClocks busiest_pipe(const Device& device, const ThreadWork& work);
inline double issue_clocks(const Device& device, const ThreadWork& work) {
  return busiest_pipe(device, work).clocks;
}

/// Blocks that run together and wait for nothing else of the launch: all full waves, the tail behind them, or
/// a phase between two grid barriers.
struct Stretch {
  double waves = 1;   ///< one after another
  double blocks = 1;  ///< resident in each wave
  double dram_sectors = 0;
  double same_address_atomics = 0;  ///< updates of the address of global memory that has most of them
  /// Sums over the waves: of all blocks, of the SM that does most, and of the blocks that follow each other
  /// in one place and take longest.
  ThreadWork all, busiest_sm, longest_block;
};

struct LaunchWork {
  int threads_per_block = 1;
  int blocks_per_sm = 1;  ///< residency (occupancy)
  std::int64_t grid_blocks = 1;
  int grid_barriers = 0;
  /// Loads a warp has in flight before the first use, in 128-byte requests: 1 for one 4-byte load a thread,
  /// 8 for two independent 16-byte loads a thread.
  double independent_loads = 1;
  std::vector<Stretch> stretches;  ///< one after another
};

/// What the threads of a kernel of blocks that are alike do together, and how it is launched.
struct KernelWork : ThreadWork {
  std::int64_t grid_blocks = 1;
  int threads_per_block = 1;
  int blocks_per_sm = 1;         ///< residency (occupancy)
  double dram_sectors = 0;       ///< 32-byte, read + write
  double independent_loads = 1;  ///< LaunchWork::independent_loads
  double busiest_sm = 1;         ///< instructions of the busiest SM over those of the average one
  int grid_barriers = 0;
  int phases = 1;  ///< grid_barriers + 1
};

/// Full waves and tail of `grid_blocks` blocks that together do `all`; the busiest SM does `busiest_sm` times
/// what it would if blocks were alike.
std::vector<Stretch> stretches(const Device& device, std::int64_t grid_blocks, int blocks_per_sm,
                               const ThreadWork& all, double dram_sectors, double busiest_sm);

/// What limits each stretch overlaps with the rest, so total is less than the sum of the parts. dram, l2,
/// issue and latency are what they would be with the work spread evenly over all SMs; tail is what uneven
/// work, a last wave that is not full and SMs without a block add.
struct KernelTime {
  double total_us = 0;
  double launch_us = 0, dram_us = 0, l2_us = 0, issue_us = 0, latency_us = 0, tail_us = 0, barrier_us = 0;
  std::string_view issue_pipe{};  ///< what limits issue_us: IssueClocks::pipe of the longest stretch
  /// What each of kUnits needs for the same work at its peak, on all SMs: never more than total_us.
  UnitTimes busy_us{};
};

/// The share of its time that the unit is busy: what the kernel does of what the unit could do meanwhile, its
/// "speed of light" (Nsight Compute's word). 0 of a time of 0.
inline double unit_share(const KernelTime& time, std::size_t unit) {
  return time.total_us > 0 ? time.busy_us[unit] / time.total_us : 0;
}

/// Time of one launch, launch overhead included, gap to the next kernel not included.
KernelTime kernel_time(const Device& device, const LaunchWork& work);
KernelTime kernel_time(const Device& device, const KernelWork& work);

/// A device-to-device copy or a memset of so many bytes read and written, in us: an empty kernel's time and
/// the bytes at the sustained bandwidth.
double transfer_us(const Device& device, double bytes);

}  // namespace stitchwork
