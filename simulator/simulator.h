// The PTX simulator: executes PTX as a real compiler emitted it, knows nothing of planners, and can run
// anybody's PTX. Answers three questions: is the kernel right, what are its counters, how long would it take.
//
//   ptx::Module module = ptx::parse(text, "softmax.ptx");
//   DeviceMemory memory;
//   DeviceAddress x = memory.allocate(bytes, "x");
//   Launch launch{.kernel = "softmax", .grid = {160, 1, 1}, .block = {1024, 1, 1}, .arguments = {...}};
//   LaunchResult result = run(module, launch, memory, device("v100"), {});
//
// Deterministic: the same results and counters whatever the number of host threads.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "core/base/error.h"
#include "occupancy_model/device.h"
#include "occupancy_model/not_modelled.h"
#include "simulator/ptx.h"

namespace stitchwork::sim {

using DeviceAddress = std::uint64_t;

/// Simulated global memory: allocations placed far apart, so that an overrun cannot land in a neighbour.
class DeviceMemory {
 public:
  DeviceMemory();
  /// With `track_initialised`, keeps which bytes were written, for Sanitizers::init.
  explicit DeviceMemory(bool track_initialised);
  ~DeviceMemory();
  DeviceMemory(DeviceMemory&&) noexcept;
  DeviceMemory& operator=(DeviceMemory&&) noexcept;

  /// 256-byte aligned, contents poisoned (0xA5) and marked uninitialised. `name` appears in findings.
  DeviceAddress allocate(std::size_t bytes, std::string name);
  /// An allocation with these contents, which are not copied; take() gives them back and releases it.
  DeviceAddress adopt(std::vector<std::byte> contents, std::string name);
  std::vector<std::byte> take(DeviceAddress base);
  void release(DeviceAddress base);
  void write(DeviceAddress address, std::span<const std::byte> data);
  void read(DeviceAddress address, std::span<std::byte> data) const;
  void fill(DeviceAddress address, std::size_t bytes, std::byte value);
  /// The host bytes behind an allocation, for library calls that work in place (marks nothing).
  std::span<std::byte> bytes(DeviceAddress base);
  std::span<const std::byte> bytes(DeviceAddress base) const;

  struct Impl;
  Impl& impl() { return *impl_; }

 private:
  std::unique_ptr<Impl> impl_;
};

struct Dim3 {
  std::uint32_t x = 1, y = 1, z = 1;
  std::uint64_t count() const { return std::uint64_t{x} * y * z; }
};

/// One kernel argument: its bytes, as the PTX parameter declares them.
struct Argument {
  std::vector<std::byte> bytes;
  static Argument pointer(DeviceAddress a);
  static Argument i32(std::int32_t v);
  static Argument i64(std::int64_t v);
  static Argument f32(float v);
};

struct Launch {
  std::string kernel;  ///< entry name
  Dim3 grid, block;
  /// Blocks of a cluster, as cudaLaunchAttributeClusterDimension gives them; without: the kernel's own
  /// (.reqnctapercluster), or none.
  std::optional<Dim3> cluster;
  bool non_portable_cluster = false;  ///< more than 8 blocks, where the device has such clusters
  std::uint32_t dynamic_shared_bytes = 0;
  std::vector<Argument> arguments;
};

enum class CacheMode { kCold, kWarm };

/// L2 contents carried from kernel to kernel under CacheMode::kWarm.
class L2State;
struct L2StateDeleter {
  void operator()(L2State*) const;
};
using L2StatePtr = std::unique_ptr<L2State, L2StateDeleter>;
L2StatePtr make_l2_state(const Device& device);

/// Checks that are made only when asked for: they keep memory of every access, and run on two host threads at
/// most. Bounds, alignment and barriers are always checked.
struct Sanitizers {
  bool race = false;  ///< accesses that nothing orders, in shared and global memory; stale .nc reads
  bool init = false;  ///< reads of memory and registers never set; needs a DeviceMemory that tracks
  bool sync = false;  ///< lanes that exchanges within a warp name or read, and that are not there
  bool any() const { return race || init || sync; }
};

/// "mem,race,sync,init" in any choice; mem names what is always checked. Throws Error.
Sanitizers parse_sanitizers(std::string_view text);

/// A launch that only Options::sampled refuses.
class CannotSample : public Error {
 public:
  using Error::Error;
};

/// How far a launch is.
struct Progress {
  std::uint64_t blocks_done = 0, blocks = 0;
  std::uint64_t warp_instructions = 0;
};

struct Options {
  Sanitizers sanitize;
  /// Runs a few waves of blocks in place of all and multiplies their counters: for large grids of blocks that
  /// are alike. Outputs are then incomplete. Kernels whose blocks wait for each other, sanitizers and a warm
  /// cache are refused.
  bool sampled = false;
  CacheMode cache = CacheMode::kCold;
  L2State* l2 = nullptr;  ///< required under kWarm
  int host_threads = 0;   ///< 0: one per core
  /// Registers a thread as ptxas reported; 0: unknown, estimated from the PTX's liveness (for residency).
  int registers_per_thread = 0;
  /// Report a livelock after this many warp instructions of one launch without a block finishing.
  std::uint64_t max_warp_instructions = 0;  ///< 0: no bound but the built-in one
  bool lines = false;                       ///< LaunchResult::lines
  /// Called between waves of blocks, on the thread that called run().
  std::function<void(const Progress&)> progress;
};

enum class FindingKind {
  kOutOfBounds,
  kMisaligned,
  kNullPointer,
  kDivergentBarrier,
  kBarrierMismatch,
  kGridDeadlock,
  kLivelock,
  kTrap,
  kSharedRace,
  kGlobalRace,
  kNonCoherentRead,
  kUninitialisedRead,
  kUnsetRegister,
  kBlockLifetime,
  kMbarrier,
  kMembermask,
};
std::string_view name(FindingKind kind);

/// Something wrong in the simulated program. Findings end the launch (outputs are then undefined).
struct Finding {
  FindingKind kind = FindingKind::kOutOfBounds;
  std::string kernel;
  int ptx_line = 0;
  std::string cuda_location;  ///< "file:line" from .loc, or empty
  Dim3 block{0, 0, 0}, thread{0, 0, 0};
  std::string message;  ///< with the arithmetic: "reads 4 bytes at x+4096, past its 4096 bytes"
};

/// Per kernel counters, names as nvprof of the paper's time has them (docs/simulator.md defines each
/// exactly).
struct Counters {
  std::uint64_t inst_executed = 0;  ///< warp instructions of the original PTX
  std::uint64_t thread_inst_executed = 0;
  std::uint64_t issue_slots = 0;  ///< machine instructions these are estimated to become, per warp
  std::uint64_t inst_fp_32 = 0;   ///< thread-level fp32 instructions
  std::uint64_t inst_fp_64 = 0, inst_fp_16 = 0, inst_integer = 0;  ///< thread-level; packed halves count once
  std::uint64_t tensor_multiply_adds = 0;                          ///< of matrix instructions
  std::uint64_t inst_mufu =
      0;  ///< thread-level approximate special functions (ex2, lg2, rcp, rsqrt, sin, cos, tanh)
  std::uint64_t inst_ldst = 0;                               ///< warp-level loads, stores, atomics
  std::uint64_t gld_requests = 0, gst_requests = 0;          ///< warp-level
  std::uint64_t gld_transactions = 0, gst_transactions = 0;  ///< 32-byte sectors asked of L1/L2
  std::uint64_t l1_hit_sectors = 0;                          ///< of loads: sectors that L1 held
  std::uint64_t gld_bytes = 0, gst_bytes = 0;                ///< bytes the program asked for
  std::uint64_t l1_wavefronts = 0;  ///< 128 bytes that global and local accesses move by L1
  std::uint64_t local_load_requests = 0, local_store_requests = 0;          ///< warp-level
  std::uint64_t local_load_transactions = 0, local_store_transactions = 0;  ///< 32-byte sectors asked of L1
  std::uint64_t local_l2_sectors = 0;  ///< of local memory, that L1 has no room for
  std::uint64_t l2_read_sectors = 0, l2_write_sectors = 0;
  std::uint64_t l2_atomic_sectors = 0;  ///< of these, those that atomics update
  std::uint64_t dram_read_transactions = 0, dram_write_transactions = 0;  ///< 32-byte sectors
  std::uint64_t shared_load_requests = 0, shared_store_requests = 0;
  std::uint64_t shared_wavefronts = 0;       ///< clocks of shared memory; atomics and bulk copies too
  std::uint64_t shared_bank_conflicts = 0;   ///< of these, those that conflicts of loads and stores add
  std::uint64_t block_barriers = 0;          ///< bar.sync executed, counted once a block
  std::uint64_t grid_barriers = 0;           ///< times the whole grid waited on a spin barrier
  std::uint64_t cluster_barriers = 0;        ///< completed, counted once a block
  std::uint64_t remote_shared_requests = 0;  ///< warp-level, to shared memory of other blocks of the cluster
  std::uint64_t remote_shared_sectors = 0;   ///< 32-byte ones of these
  std::uint64_t bulk_copies = 0;             ///< cp.async.bulk, each of global memory a request, too
  std::uint64_t bulk_sectors = 0;  ///< of gld_transactions and gst_transactions, those of bulk copies
  std::uint64_t atomics = 0;       ///< thread-level
  /// Of these, on the word of global memory that has most of them; words that blocks await left out.
  std::uint64_t same_address_atomics = 0;
  std::uint64_t atomic_conflicts = 0;  ///< further updates of l2_atomic_sectors, as lanes have one word
  double achieved_occupancy = 0;  ///< resident warps / maximum, averaged over waves by instructions issued
  double sm_efficiency = 0;       ///< SMs with a block / SMs, averaged likewise
  std::int64_t static_shared_bytes = 0, dynamic_shared_bytes = 0;
  int registers = 0;
  bool registers_estimated = true;
  std::int64_t accesses_checked = 0;
};

/// (name, value) in documented order; what JSON, SQLite and the tables print.
std::vector<std::pair<std::string_view, double>> counter_list(const Counters& counters);

/// What each sanitizer looked at: accesses of threads, and barriers; 0 for those not asked for.
struct SanitizerCounts {
  std::int64_t mem_accesses = 0, race_accesses = 0, init_accesses = 0, sync_barriers = 0;
  SanitizerCounts& operator+=(const SanitizerCounts& other);
};

/// What the instructions of a line of the PTX did; the lines' sums are those of Counters.
struct LineCounters {
  int line = 0;             ///< of the PTX
  std::string source_file;  ///< that the line is of, by its line information (.loc); "" without
  int source_line = 0;
  std::uint64_t inst_executed = 0, thread_inst_executed = 0, issue_slots = 0, inst_ldst = 0;
  // As Counters has them.
  std::uint64_t gld_transactions = 0, gst_transactions = 0, l2_atomic_sectors = 0;
  std::uint64_t shared_wavefronts = 0, shared_bank_conflicts = 0;
};

struct LaunchResult {
  Counters counters;
  std::vector<LineCounters> lines;  ///< of lines that were executed, ascending, where asked for
  SanitizerCounts sanitized;
  std::vector<Finding> findings;       ///< empty: clean
  Dim3 cluster;                        ///< it ran in: the launch's or the kernel's; 1, 1, 1: none
  std::string printed;                 ///< what the kernel printed, in order of blocks
  std::uint64_t blocks_simulated = 0;  ///< of the grid's; fewer in a sample
  bool sampled = false;                ///< counters stand for blocks that were not run
  int host_threads = 1;                ///< that ran the blocks; nothing else depends on it
  double time_us = 0;                  ///< by the timing model from these counters; method "simulated"
  KernelTime time;                     ///< what time_us is made of
  TimedKernel timed;                   ///< the same, and what tells what it leaves out (not_modelled)
  /// An SM's warps have so many bytes of loads under way before they wait for the first: resident warps x
  /// loads before their first use x 128 bytes, of asynchronous copies (cp.async) what a warp has asked for
  /// when it waits for them (docs/simulator.md, "Loads in flight").
  double bytes_in_flight = 0;
  /// Of the blocks that are resident on the whole device at most, those of this grid that are: 1 for a full
  /// wave.
  double resident_share = 0;
};

/// Runs one launch. Throws Error for a wrong launch (unknown kernel, argument count or size,
/// block too large, grid that needs a grid barrier and cannot be resident is a kGridDeadlock finding).
LaunchResult run(const ptx::Module& module, const Launch& launch, DeviceMemory& memory, const Device& device,
                 const Options& options);

}  // namespace stitchwork::sim
