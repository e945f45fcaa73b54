#include "occupancy_model/timing.h"

#include <algorithm>
#include <array>
#include <cmath>

#include "core/base/error.h"
#include "occupancy_model/barrier.h"
#include "occupancy_model/hardware.h"
#include "occupancy_model/library.h"
#include "occupancy_model/units.h"

namespace stitchwork {
namespace {

/// A warp's request for one 4-byte word a lane.
/// Derived from 32 lanes of 4 bytes.
constexpr double kRequestBytes = 128;
/// Limits that are near each other add up a little: the second counts this much (chosen, not fitted: kernels
/// near two limits at once are few among those measured).
constexpr double kOverlapLoss = 0.05;
/// Clocks of an access to shared memory of another SM of the cluster, and those in which an SM moves one
/// 32-byte sector of it: about 3.3 TB/s over all SMs of an H100 PCIe at 1.755 GHz (Luo et al., Benchmarking
/// and Dissecting the Nvidia Hopper GPU Architecture via Microbenchmarking, arXiv 2402.13499).
constexpr double kSmToSmClocks = 180, kClocksPerRemoteSector = 2;
/// A cluster barrier is an arrival and its answer over that network; no measurement of one was found.
constexpr double kClusterBarrierClocks = kSmToSmClocks;

/// What one clock of L1 or shared memory moves in the counts.
/// Derived from 32 banks of 4 bytes (CUDA Programming Guide).
constexpr double kWavefrontBytes = 128;

// SI prefix.
constexpr double kGigaPerTera = 1e3;

struct Parts {
  double dram_us = 0, l2_us = 0, issue_us = 0, latency_us = 0;
  double combined_us() const {
    std::array<double, 4> parts{dram_us, l2_us, issue_us, latency_us};
    std::sort(parts.begin(), parts.end(), std::greater<>());
    return parts[0] + kOverlapLoss * parts[1];
  }
};

/// The fields of two works side by side.
template <class F>
void for_fields(ThreadWork& a, const ThreadWork& b, F f) {
  f(a.warp_instructions, b.warp_instructions);
  f(a.fp32_warp_instructions, b.fp32_warp_instructions);
  f(a.fp64_warp_instructions, b.fp64_warp_instructions);
  f(a.half2_warp_instructions, b.half2_warp_instructions);
  f(a.int32_warp_instructions, b.int32_warp_instructions);
  f(a.mufu_warp_instructions, b.mufu_warp_instructions);
  for (std::size_t t = 0; t < kTensorTypes; ++t) f(a.tensor_multiply_adds[t], b.tensor_multiply_adds[t]);
  f(a.ldst_warp_instructions, b.ldst_warp_instructions);
  f(a.l1_wavefronts, b.l1_wavefronts);
  f(a.shared_wavefronts, b.shared_wavefronts);
  f(a.l2_sectors, b.l2_sectors);
  f(a.l2_atomic_sectors, b.l2_atomic_sectors);
  f(a.l2_atomic_conflicts, b.l2_atomic_conflicts);
  f(a.l1_hit_sectors, b.l1_hit_sectors);
  f(a.global_accesses, b.global_accesses);
  f(a.remote_accesses, b.remote_accesses);
  f(a.remote_sectors, b.remote_sectors);
  f(a.cluster_barriers, b.cluster_barriers);
  f(a.bulk_round_trips, b.bulk_round_trips);
}

/// GB/s that `active_sms` reach with `warps` resident on each.
double dram_bandwidth(const Device& device, double active_sms, double warps, double independent_loads) {
  const double in_flight = active_sms * std::min(warps * independent_loads * kRequestBytes,
                                                 static_cast<double>(device.max_inflight_bytes_per_sm));
  const std::array limits{device.dram_efficiency * device.dram_gb_s,
                          active_sms * device.sm.dram_bytes_per_clock * device.clock_ghz,
                          in_flight / device.dram_latency_ns};  // Little's law
  // They take turns as sharply as a 4-norm says (std::pow is slow, and this is asked for millions of times).
  double sum = 0;
  for (const double limit : limits) sum += 1 / (limit * limit * limit * limit);
  return 1 / std::sqrt(std::sqrt(sum));
}

/// An atomic's sectors are among the others, and keep L2 longer; each lane of a request that has another's
/// word takes the sector again.
double l2_sectors_served(const Device& device, const ThreadWork& work) {
  return work.l2_sectors + (device.sm.l2_atomic_factor - 1) * work.l2_atomic_sectors +
         device.sm.l2_atomic_factor * work.l2_atomic_conflicts;
}

Parts parts_of(const Device& device, const LaunchWork& launch, const Stretch& s) {
  const auto whole_warps = (launch.threads_per_block + kWarp - 1) / kWarp;
  const double warps_per_block = whole_warps;
  const double most_blocks = std::ceil(s.blocks / device.sms);
  Parts parts;

  // As many SMs as would take as long as the busiest one if all did as much.
  const double sms = s.busiest_sm.l2_sectors > 0 ? s.all.l2_sectors / s.busiest_sm.l2_sectors
                                                 : std::min<double>(s.blocks, device.sms);
  const double resident_warps = most_blocks * warps_per_block;
  parts.dram_us = kSectorBytes * s.dram_sectors /
                  dram_bandwidth(device, sms, resident_warps, launch.independent_loads) /
                  kNanosecondsPerMicrosecond;
  const double l2_gb_s = std::min(device.l2_gb_s, sms * device.sm.l2_bytes_per_clock * device.clock_ghz);
  const double sectors = l2_sectors_served(device, s.all);  // atomics to one address follow each other
  const double one_address_ns =
      s.same_address_atomics * device.sm.same_address_atomic_clocks / device.clock_ghz;
  parts.l2_us = std::max(kSectorBytes * sectors / l2_gb_s, one_address_ns) / kNanosecondsPerMicrosecond;

  // A block's warps alone issue one instruction in a few clocks each.
  const double warps_to_hide_issue = device.sm.schedulers * device.sm.dependent_issue_clocks;
  const double alone = std::max(1.0, warps_to_hide_issue / warps_per_block);
  const double clocks =
      std::max(issue_clocks(device, s.busiest_sm), alone * issue_clocks(device, s.longest_block));
  parts.issue_us = clocks / device.clock_ghz / kNanosecondsPerMicrosecond;

  // What a warp waits for, one request after another, in every wave.
  if (s.all.l2_sectors > 0 || s.dram_sectors > 0) {
    const double requests = s.longest_block.global_accesses / warps_per_block;
    const double round_trips = std::max(
        s.waves, requests / std::max(1.0, launch.independent_loads) + s.longest_block.bulk_round_trips);
    const double from_dram = s.all.l2_sectors > 0 ? std::min(1.0, s.dram_sectors / s.all.l2_sectors) : 1.0;
    const double from_l1 = s.all.l1_hit_sectors / std::max(1.0, s.all.l1_hit_sectors + s.all.l2_sectors);
    const Architecture& sm = device.sm;
    const double beyond_l1 = from_dram * sm.dram_latency_clocks + (1 - from_dram) * sm.l2_latency_clocks;
    const double clocks_each = from_l1 * sm.l1_latency_clocks + (1 - from_l1) * beyond_l1;
    parts.latency_us = round_trips * clocks_each / device.clock_ghz / kNanosecondsPerMicrosecond;
  }
  const double remote =
      s.longest_block.remote_accesses / warps_per_block / std::max(1.0, launch.independent_loads);
  const double sm_to_sm = remote * kSmToSmClocks + s.longest_block.cluster_barriers * kClusterBarrierClocks;
  parts.latency_us += sm_to_sm / device.clock_ghz / kNanosecondsPerMicrosecond;
  return parts;
}

/// Clocks of an SM's tensor cores, as the peaks of the device's products say; types that it has no tensor
/// cores for run as fp32 multiply-adds.
double tensor_clocks(const Device& device, const ThreadWork& work) {
  if (std::ranges::all_of(work.tensor_multiply_adds, [](double n) { return n == 0; })) return 0;
  const ProductUnits units = product_units(device);
  const std::array<double, kTensorTypes> peaks{units.tensor_fp16_tflops, units.tensor_bf16_tflops,
                                               units.tensor_tf32_tflops, units.tensor_fp64_tflops,
                                               units.int8_tops};
  double clocks = 0;
  for (std::size_t t = 0; t < kTensorTypes; ++t) {
    const double tflops = peaks[t] > 0 ? peaks[t] : device.fp32_tflops;
    const double per_clock = tflops * kGigaPerTera / 2 / device.sms / device.clock_ghz;  // multiply-adds
    clocks += work.tensor_multiply_adds[t] / per_clock;
  }
  return clocks;
}

/// Clocks that each pipe of an SM takes: of kUnits those from kIssueUnit on.
using PipeClocks = std::array<double, kUnits.size() - kIssueUnit>;
PipeClocks pipe_clocks(const Device& device, const ThreadWork& work) {
  const Architecture& sm = device.sm;
  return {work.warp_instructions / sm.schedulers,
          work.fp32_warp_instructions * kWarp / device.fp32_lanes_per_sm,
          work.fp64_warp_instructions * kWarp / sm.fp64_lanes,
          work.half2_warp_instructions * kWarp / sm.half2_lanes,
          work.int32_warp_instructions * kWarp / sm.int32_lanes,
          work.mufu_warp_instructions * kWarp / sm.mufu_lanes,
          tensor_clocks(device, work),
          work.ldst_warp_instructions * kWarp / sm.ldst_lanes,
          work.l1_wavefronts * kWavefrontBytes / sm.l1_bytes_per_clock,
          work.shared_wavefronts * kWavefrontBytes / sm.shared_bytes_per_clock,
          work.remote_sectors * kClocksPerRemoteSector};
}

IssueClocks busiest(const PipeClocks& clocks) {
  const auto* most = std::ranges::max_element(clocks);
  return {*most, kUnits[kIssueUnit + static_cast<std::size_t>(most - clocks.begin())].name};
}

/// Adds what each unit needs for the stretch at its peak.
void add_busy(UnitTimes& busy_us, const Device& device, const Stretch& s, const PipeClocks& of_all) {
  busy_us[kDramUnit] += kSectorBytes * s.dram_sectors / device.dram_gb_s / kNanosecondsPerMicrosecond;
  busy_us[kL2Unit] +=
      kSectorBytes * l2_sectors_served(device, s.all) / device.l2_gb_s / kNanosecondsPerMicrosecond;
  for (std::size_t p = 0; p < of_all.size(); ++p)
    busy_us[kIssueUnit + p] += of_all[p] / device.sms / device.clock_ghz / kNanosecondsPerMicrosecond;
}

/// The same work if it could be dealt evenly to all SMs, waves of it in part: what is more is the tail.
Stretch evenly(const Device& device, const LaunchWork& launch, const Stretch& s, bool behind_full_waves) {
  Stretch even = s;
  even.blocks = static_cast<double>(device.sms) * launch.blocks_per_sm;
  const double blocks = s.waves * s.blocks;
  even.waves = blocks / even.blocks;
  if (!behind_full_waves) even.waves = std::max(1.0, even.waves);
  even.busiest_sm = s.all * (1.0 / device.sms);
  even.longest_block = s.all * (even.waves / std::max<double>(blocks, device.sms));
  even.longest_block.global_accesses = s.all.global_accesses * (even.waves / blocks);
  even.longest_block.remote_accesses = s.all.remote_accesses * (even.waves / blocks);
  even.longest_block.cluster_barriers = s.all.cluster_barriers * (even.waves / blocks);
  even.longest_block.bulk_round_trips = s.all.bulk_round_trips * (even.waves / blocks);
  return even;
}

}  // namespace

ThreadWork& ThreadWork::operator+=(const ThreadWork& other) {
  for_fields(*this, other, [](double& a, double b) { a += b; });
  return *this;
}

ThreadWork ThreadWork::operator*(double times) const {
  ThreadWork product;
  for_fields(product, *this, [times](double& a, double b) { a = times * b; });
  return product;
}

ThreadWork& ThreadWork::raise_to(const ThreadWork& other) {
  for_fields(*this, other, [](double& a, double b) { a = std::max(a, b); });
  return *this;
}

IssueClocks busiest_pipe(const Device& device, const ThreadWork& work) {
  return busiest(pipe_clocks(device, work));
}

std::vector<Stretch> stretches(const Device& device, std::int64_t grid_blocks, int blocks_per_sm,
                               const ThreadWork& all, double dram_sectors, double busiest_sm) {
  const std::int64_t resident =
      std::min<std::int64_t>(grid_blocks, static_cast<std::int64_t>(device.sms) * blocks_per_sm);
  std::vector<Stretch> result;
  const auto add = [&](double waves, double blocks) {
    Stretch s{.waves = waves, .blocks = blocks};
    const double share = waves * blocks / static_cast<double>(grid_blocks);
    s.dram_sectors = dram_sectors * share;
    s.all = all * share;
    s.longest_block = s.all * (busiest_sm / blocks);
    s.busiest_sm = s.longest_block * std::ceil(blocks / device.sms);
    result.push_back(s);
  };
  const auto full_waves = grid_blocks / resident;
  add(static_cast<double>(full_waves), static_cast<double>(resident));
  if (grid_blocks % resident != 0) add(1, static_cast<double>(grid_blocks % resident));
  return result;
}

double grid_barrier_us(const Device& device, std::int64_t blocks) {
  return device.grid_barrier_us + device.grid_barrier_us_per_block * static_cast<double>(blocks);
}

KernelTime kernel_time(const Device& device, const LaunchWork& work) {
  SW_CHECK(work.grid_blocks > 0 && work.threads_per_block > 0 && work.blocks_per_sm > 0,
           "{} blocks of {} threads, {} an SM", work.grid_blocks, work.threads_per_block, work.blocks_per_sm);
  KernelTime time;
  time.launch_us = device.launch_us;
  time.barrier_us = work.grid_barriers * grid_barrier_us(device, work.grid_blocks);
  time.total_us = time.launch_us + time.barrier_us;
  const double resident = static_cast<double>(device.sms) * work.blocks_per_sm;
  const bool several_waves = static_cast<double>(work.grid_blocks) > resident;
  double longest_us = 0;
  for (const Stretch& s : work.stretches) {
    const double taken_us = parts_of(device, work, s).combined_us();
    const Parts even = parts_of(device, work, evenly(device, work, s, several_waves));
    time.dram_us += even.dram_us;
    time.l2_us += even.l2_us;
    time.issue_us += even.issue_us;
    const PipeClocks clocks = pipe_clocks(device, s.all);
    add_busy(time.busy_us, device, s, clocks);
    if (even.issue_us > longest_us) {
      longest_us = even.issue_us;
      time.issue_pipe = busiest(clocks).pipe;
    }
    time.latency_us += even.latency_us;
    time.tail_us += std::max(0.0, taken_us - even.combined_us());
    time.total_us += taken_us;
  }
  return time;
}

KernelTime kernel_time(const Device& device, const KernelWork& work) {
  SW_CHECK(work.grid_blocks > 0 && work.blocks_per_sm > 0, "{} blocks, {} an SM", work.grid_blocks,
           work.blocks_per_sm);
  LaunchWork launch{.threads_per_block = work.threads_per_block,
                    .blocks_per_sm = work.blocks_per_sm,
                    .grid_blocks = work.grid_blocks,
                    .grid_barriers = work.grid_barriers,
                    .independent_loads = work.independent_loads};
  const ThreadWork& all = work;
  const double share = 1.0 / std::max(work.phases, 1);
  const std::vector<Stretch> phase = stretches(device, work.grid_blocks, work.blocks_per_sm, all * share,
                                               work.dram_sectors * share, work.busiest_sm);
  for (int p = 0; p < std::max(work.phases, 1); ++p)
    launch.stretches.insert(launch.stretches.end(), phase.begin(), phase.end());
  return kernel_time(device, launch);
}

double transfer_us(const Device& device, double bytes) {
  return device.launch_us + bytes / (device.dram_gb_s * device.dram_efficiency * 1e3);
}

}  // namespace stitchwork
