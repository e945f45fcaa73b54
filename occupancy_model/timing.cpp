#include "occupancy_model/timing.h"

#include <algorithm>
#include <array>
#include <cmath>

#include "core/error.h"

namespace stitchwork {
namespace {

constexpr double kSectorBytes = 32;
/// Bytes a clock an SM can take in: 32 from DRAM's side (one sector), 64 from L2.
constexpr double kDramBytesPerSmClock = 32, kL2BytesPerSmClock = 64;
/// A warp's request for one 4-byte word a lane.
constexpr double kRequestBytes = 128;
/// Warps that hide the latency of arithmetic: 4 schedulers, 4 clocks from an instruction to its dependent
/// one.
constexpr double kWarpsToHideIssue = 16;
/// Warp-instructions an SM starts a clock: 4 schedulers; special functions have 16 lanes.
constexpr double kIssueWidth = 4, kMufuRate = 0.5;
/// Limits that are near each other add up a little: the second counts this much.
constexpr double kOverlapLoss = 0.05;
/// How sharply the bandwidth limits take turns.
constexpr double kNorm = 4;
/// An L2 hit against a loaded DRAM access, about.
constexpr double kL2LatencyShare = 0.5;

constexpr double kNanosecondsPerMicrosecond = 1e3;

/// Waves of equal width: `waves` times `blocks` resident at once.
struct WaveGroup {
  double waves = 0, blocks = 0;
};

struct Parts {
  double dram_us = 0, l2_us = 0, issue_us = 0, latency_us = 0;
  double combined_us() const {
    std::array<double, 4> parts{dram_us, l2_us, issue_us, latency_us};
    std::sort(parts.begin(), parts.end(), std::greater<>());
    return parts[0] + kOverlapLoss * parts[1];
  }
};

/// GB/s that `active_sms` reach with `warps` resident on each.
double dram_bandwidth(const Device& device, double active_sms, double warps, double independent_loads) {
  const double in_flight = active_sms * std::min(warps * independent_loads * kRequestBytes,
                                                 static_cast<double>(device.max_inflight_bytes_per_sm));
  const std::array limits{device.dram_efficiency * device.dram_gb_s,
                          active_sms * kDramBytesPerSmClock * device.clock_ghz,
                          in_flight / device.dram_latency_ns};  // Little's law
  double sum = 0;
  for (const double limit : limits) sum += std::pow(limit, -kNorm);
  return std::pow(sum, -1 / kNorm);
}

Parts group_time(const Device& device, const KernelWork& work, const WaveGroup& group) {
  const int whole_warps = (work.threads_per_block + 31) / 32;
  const double warps_per_block = whole_warps;
  const double active_sms = std::min<double>(group.blocks, device.sms);
  const double share = group.waves * group.blocks / static_cast<double>(work.grid_blocks);
  Parts parts;

  const double average_warps = warps_per_block * group.blocks / active_sms;
  parts.dram_us = kSectorBytes * work.dram_sectors * share /
                  dram_bandwidth(device, active_sms, average_warps, work.independent_loads) /
                  kNanosecondsPerMicrosecond;
  const double l2_gb_s = std::min(device.l2_gb_s, active_sms * kL2BytesPerSmClock * device.clock_ghz);
  parts.l2_us = kSectorBytes * work.l2_sectors * share / l2_gb_s / kNanosecondsPerMicrosecond;

  // Issue slots of the SM that holds the most blocks.
  const double most_blocks = std::ceil(group.blocks / device.sms);
  const double of_that_sm = group.waves * most_blocks / static_cast<double>(work.grid_blocks);
  const double clocks =
      std::max(
          {work.warp_instructions / kIssueWidth, work.fp32_warp_instructions * 32 / device.fp32_lanes_per_sm,
           work.mufu_warp_instructions / kMufuRate, work.ldst_warp_instructions, work.shared_wavefronts}) *
      of_that_sm * work.busiest_sm;
  const double use = std::min(1.0, most_blocks * warps_per_block / kWarpsToHideIssue);
  parts.issue_us = clocks / (device.clock_ghz * use) / kNanosecondsPerMicrosecond;

  // What one warp waits for, one request after another, in every wave.
  if (work.l2_sectors > 0 || work.dram_sectors > 0) {
    const double warps = warps_per_block * static_cast<double>(work.grid_blocks);
    const double requests = std::max(0.0, work.ldst_warp_instructions - work.shared_wavefronts) / warps;
    const double round_trips =
        std::max<double>(work.phases, requests / std::max(1.0, work.independent_loads));
    const double from_dram = work.l2_sectors > 0 ? std::min(1.0, work.dram_sectors / work.l2_sectors) : 1.0;
    const double latency_ns = device.dram_latency_ns * (from_dram + (1 - from_dram) * kL2LatencyShare);
    parts.latency_us = group.waves * round_trips * latency_ns / kNanosecondsPerMicrosecond;
  }
  return parts;
}

}  // namespace

KernelTime kernel_time(const Device& device, const KernelWork& work) {
  SW_CHECK(work.grid_blocks > 0 && work.threads_per_block > 0 && work.blocks_per_sm > 0,
           "{} blocks of {} threads, {} an SM", work.grid_blocks, work.threads_per_block, work.blocks_per_sm);
  const std::int64_t resident =
      std::min<std::int64_t>(work.grid_blocks, static_cast<std::int64_t>(device.sms) * work.blocks_per_sm);
  const std::int64_t full_waves = work.grid_blocks / resident;
  const WaveGroup full{static_cast<double>(full_waves), static_cast<double>(resident)};
  const WaveGroup tail{1, static_cast<double>(work.grid_blocks % resident)};

  KernelTime time;
  time.launch_us = device.launch_us;
  time.barrier_us = work.grid_barriers * (device.grid_barrier_us + device.grid_barrier_us_per_block *
                                                                       static_cast<double>(work.grid_blocks));
  time.total_us = time.launch_us + time.barrier_us;
  for (const WaveGroup& group : {full, tail}) {
    if (group.blocks == 0) continue;
    const Parts parts = group_time(device, work, group);
    time.dram_us += parts.dram_us;
    time.l2_us += parts.l2_us;
    time.issue_us += parts.issue_us;
    time.latency_us += parts.latency_us;
    time.total_us += parts.combined_us();
  }
  return time;
}

double library_time_us(const Device& device, double flops, double bytes) {
  const double compute_us = flops / (device.fp32_tflops * 1e6);
  const double memory_us = bytes / (device.dram_efficiency * device.dram_gb_s) / kNanosecondsPerMicrosecond;
  return std::max(compute_us, memory_us) + device.launch_us;
}

}  // namespace stitchwork
