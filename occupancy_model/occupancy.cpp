#include "occupancy_model/occupancy.h"

#include <algorithm>
#include <numeric>

#include "core/base/error.h"
#include "occupancy_model/hardware.h"
#include "occupancy_model/occupancy_limits.h"

namespace stitchwork {
namespace {

constexpr std::int64_t kUnlimited = OccupancyLimit::kUnlimited;
// NVIDIA's whitepapers of V100, A100 and H100: as many as a texture processing cluster has, since Volta at
// least.
constexpr std::int64_t kSmsPerTpc = 2;

constexpr std::int64_t divide_up(std::int64_t a, std::int64_t b) { return (a + b - 1) / b; }
constexpr std::int64_t round_up(std::int64_t a, std::int64_t b) { return divide_up(a, b) * b; }

/// Blocks an SM's registers hold where its register file is in `partitions`: a warp's registers lie in one
/// partition, and the launch check assumes a block's warps spread over all of them.
std::int64_t register_limit(const Device& device, std::int64_t warps, int registers, int partitions) {
  if (registers == 0) return kUnlimited;
  const std::int64_t per_warp = round_up(registers * kWarp, device.register_allocation);
  if (registers > device.max_registers_per_thread ||
      per_warp * round_up(warps, partitions) > device.registers_per_sm)
    return 0;
  return device.registers_per_sm / partitions / per_warp * partitions / warps;
}

}  // namespace

std::array<OccupancyLimit, 4> occupancy_limits(const Device& device, int threads_per_block,
                                               int registers_per_thread,
                                               std::int64_t shared_bytes_per_block) {
  SW_CHECK(threads_per_block > 0 && registers_per_thread >= 0 && shared_bytes_per_block >= 0,
           "{} threads, {} registers, {} bytes", threads_per_block, registers_per_thread,
           shared_bytes_per_block);
  const std::int64_t warps = divide_up(threads_per_block, kWarp);
  const std::int64_t by_threads =
      threads_per_block > device.max_threads_per_block ? 0 : device.max_warps_per_sm / warps;

  std::int64_t by_registers = register_limit(device, warps, registers_per_thread, device.sm_partitions);
  // The driver launches on a part with two partitions only what the rest of its family, with four, could run.
  // Derived from the four warp schedulers that other SMs of compute capability 5.0 and later have.
  constexpr int kFamilyPartitions = 4;
  if (device.sm_partitions < kFamilyPartitions &&
      register_limit(device, warps, registers_per_thread, kFamilyPartitions) == 0)
    by_registers = 0;

  const std::int64_t shared = round_up(shared_bytes_per_block + device.shared_bytes_reserved_per_block,
                                       device.shared_allocation_bytes);
  std::int64_t by_shared = kUnlimited;
  if (shared > device.shared_bytes_per_block_optin + device.shared_bytes_reserved_per_block)
    by_shared = 0;
  else if (shared > 0)
    by_shared = device.shared_bytes_per_sm / shared;
  const std::int64_t registers = round_up(registers_per_thread * kWarp, device.register_allocation) * warps;
  return {{{"threads", "warps", warps, device.max_warps_per_sm, by_threads},
           {"registers", "registers", registers, device.registers_per_sm, by_registers},
           {"shared memory", "bytes", shared, device.shared_bytes_per_sm, by_shared},
           {"blocks", "blocks", 1, device.max_blocks_per_sm, device.max_blocks_per_sm}}};
}

Occupancy occupancy(const Device& device, int threads_per_block, int registers_per_thread,
                    std::int64_t shared_bytes_per_block) {
  const auto limits =
      occupancy_limits(device, threads_per_block, registers_per_thread, shared_bytes_per_block);
  Occupancy result;
  std::int64_t blocks = limits.back().blocks;
  result.limiter = limits.back().resource;
  for (const OccupancyLimit& limit : limits)
    if (limit.blocks < blocks) {
      blocks = limit.blocks;
      result.limiter = limit.resource;
    }
  result.blocks_per_sm = static_cast<int>(blocks);
  result.blocks_per_wave = blocks * device.sms;
  result.warps_ratio =
      static_cast<double>(blocks * divide_up(threads_per_block, kWarp)) / device.max_warps_per_sm;
  return result;
}

std::int64_t clusters_per_wave(const Device& device, int blocks_per_sm, int cluster_blocks) {
  SW_CHECK(device.gpcs > 0 && blocks_per_sm >= 0 && cluster_blocks > 0,
           "{} GPCs, {} blocks an SM, {} a cluster", device.gpcs, blocks_per_sm, cluster_blocks);
  const std::int64_t tpcs = divide_up(device.sms, kSmsPerTpc), gpcs = device.gpcs;
  std::int64_t clusters = 0, sms_left = device.sms;
  for (std::int64_t g = 0; g < gpcs; ++g) {
    const std::int64_t sms = std::min(sms_left, kSmsPerTpc * (tpcs / gpcs + (g < tpcs % gpcs ? 1 : 0)));
    sms_left -= sms;
    clusters += sms * blocks_per_sm / cluster_blocks;
  }
  return clusters;
}

std::int64_t clusters_held_anyway(const Device& device, int blocks_per_sm, int cluster_blocks) {
  SW_CHECK(blocks_per_sm >= 0 && cluster_blocks > 0, "{} blocks an SM, {} a cluster", blocks_per_sm,
           cluster_blocks);
  if (cluster_blocks == 1) return std::int64_t{blocks_per_sm} * device.sms;
  SW_CHECK(device.gpcs > 0, "{} has no number of GPCs", device.id);
  const std::int64_t of_tpc = kSmsPerTpc * blocks_per_sm, places = device.sms / kSmsPerTpc * of_tpc;
  // A GPC's places are a multiple of its TPCs', and what clusters leave of them a multiple of what both
  // share.
  const std::int64_t unused = device.gpcs * (cluster_blocks - std::gcd(of_tpc, std::int64_t{cluster_blocks}));
  return std::max<std::int64_t>(0, places - unused) / cluster_blocks;
}

int launch_bound_registers(const Device& device, int threads_per_block, int blocks_per_sm) {
  SW_CHECK(threads_per_block > 0 && blocks_per_sm > 0, "{} blocks of {} threads", blocks_per_sm,
           threads_per_block);
  // CUDA Programming Guide, compute capabilities: registers are given to warps by 256.
  constexpr std::int64_t kStep = 8;  // a warp's 256 registers: the granularity a thread sees
  const std::int64_t threads = round_up(threads_per_block, kWarp);
  std::int64_t bound = device.registers_per_sm / (blocks_per_sm * threads) / kStep * kStep;
  const auto most = [&] {
    return static_cast<int>(std::min<std::int64_t>(bound, device.max_registers_per_thread));
  };
  const auto held = [&] { return occupancy_limits(device, threads_per_block, most(), 0)[1].blocks; };
  while (bound > kStep && held() < blocks_per_sm) bound -= kStep;
  return most();
}

LaunchBound assume_relax_apply(const Device& device, int threads_per_block,
                               std::int64_t shared_bytes_per_block, int max_blocks) {
  Occupancy assumed = occupancy(device, threads_per_block, kAssumedRegisters, shared_bytes_per_block);
  if (assumed.blocks_per_sm == 0) return {};
  if (max_blocks > 0 && assumed.blocks_per_sm > max_blocks) {
    assumed.blocks_per_sm = max_blocks;
    assumed.blocks_per_wave = std::int64_t{max_blocks} * device.sms;
  }
  return {assumed.blocks_per_sm, assumed.blocks_per_wave,
          launch_bound_registers(device, threads_per_block, assumed.blocks_per_sm)};
}

}  // namespace stitchwork
