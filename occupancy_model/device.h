// Device descriptions: one JSON a device in occupancy_model/devices/, every value with its source.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "occupancy_model/hardware.h"

namespace stitchwork {

/// Blocks of a cluster that every device with clusters runs (CUDA C++ Programming Guide); larger ones are not
/// portable.
inline constexpr int kPortableClusterBlocks = 8;

/// What one SM of an architecture does a clock and how long its accesses take: a table each in
/// occupancy_model/devices/architectures/, every value with its source. Lanes are results of threads a clock.
struct Architecture {
  std::string name;                   ///< "Volta"
  int cc_major = 0, cc_minor = 0;     ///< the first compute capability that has it
  double schedulers = 4;              ///< warp instructions an SM starts a clock
  double dependent_issue_clocks = 4;  ///< from an instruction of arithmetic to one that needs its result
  double fp64_lanes = 32;
  double half2_lanes = 64;  ///< each of two packed f16; bf16 takes as long
  double int32_lanes = 64;
  double mufu_lanes = 16;  ///< special functions
  double ldst_lanes = 32;  ///< threads of loads and stores to any space
  double l1_bytes_per_clock = 128, shared_bytes_per_clock = 128;
  double l2_bytes_per_clock = 64, dram_bytes_per_clock = 32;  ///< what one SM can take in
  double l2_atomic_factor = 2;            ///< time of a sector that L2 updates over that of one it reads
  double same_address_atomic_clocks = 1;  ///< between two updates of one address in L2
  // Latencies of a load on an idle device.
  double l1_latency_clocks = 33, l2_latency_clocks = 220, dram_latency_clocks = 470;
};

/// What the planner, the simulator and the timing model know of a GPU. Units are in the names.
struct Device {
  std::string id;                    ///< "v100-sxm2"
  std::vector<std::string> aliases;  ///< "v100"
  std::string name;                  ///< "Tesla V100-SXM2-16GB"
  int cc_major = 0, cc_minor = 0;    ///< compute capability
  int sms = 0;
  int gpcs = 0;                ///< groups of SMs, one of which holds a whole cluster of blocks
  int max_cluster_blocks = 0;  ///< 0: no clusters (below cc 9.0); more than 8 have to be asked for
  double clock_ghz = 0;
  std::int64_t shared_bytes_per_sm = 0;
  std::int64_t shared_bytes_per_block_default = 0;  ///< without opt-in: 49,152
  std::int64_t shared_bytes_per_block_optin = 0;
  std::int64_t shared_bytes_reserved_per_block = 0;  ///< 1,024 from cc 8.0
  int shared_allocation_bytes = 0;                   ///< granularity: 256 up to cc 7.x, 128 from cc 8.0
  int max_warps_per_sm = 0;
  int max_blocks_per_sm = 0;
  int max_threads_per_block = 1024;
  std::int64_t registers_per_sm = 65536;
  int register_allocation = 256;  ///< granularity a warp
  int max_registers_per_thread = 255;
  int sm_partitions = 4;  ///< register files of an SM; a warp's registers live in one
  int fp32_lanes_per_sm = 0;
  Architecture sm;  ///< of the newest table that is no newer than the compute capability
  std::int64_t l2_bytes = 0;
  double dram_gb_s = 0;    ///< peak, decimal GB/s
  double l2_gb_s = 0;      ///< measured or scaled; see the device file
  double fp32_tflops = 0;  ///< peak of multiply-adds
  // Timing model constants (occupancy_model/timing.h), each with its origin in the device file.
  double dram_efficiency = 0.9;                    ///< eta
  double dram_latency_ns = 450;                    ///< under load: bytes in flight over bandwidth
  std::int64_t max_inflight_bytes_per_sm = 32768;  ///< of loads
  double launch_us = 2.0;                          ///< T_null: an empty kernel
  double launch_gap_us = 1.0;                      ///< between dependent kernels
  double grid_barrier_us = 0;                      ///< constant part of one in-kernel grid barrier
  double grid_barrier_us_per_block = 0;

  int max_threads_per_sm() const { return max_warps_per_sm * 32; }
  /// Of global memory, the widest load or store of a thread; of shared memory it is kVectorBytes. PTX ISA,
  /// ld: vectors of 256 bits from sm_100 on.
  int vector_bytes() const { return cc_major >= 10 ? 2 * kVectorBytes : kVectorBytes; }
};

/// All devices found, in id order. The folder is compiled in; the *.json files of the folder that the
/// environment variable STITCHWORK_DEVICES names are added to it, replacing those of the same id. Read once.
const std::vector<Device>& devices();

/// By id or alias, case-insensitively. Throws Error naming the known ids.
const Device& device(std::string_view id);

/// Reads one description; throws Error with file and key.
Device read_device(const std::string& path);

/// The same from text; `origin` is the file name errors give.
Device parse_device(std::string_view json, const std::string& origin);

/// The tables of architectures compiled in, oldest first.
const std::vector<Architecture>& architectures();

/// One table from text; throws Error with file and key.
Architecture parse_architecture(std::string_view json, const std::string& origin);

}  // namespace stitchwork
