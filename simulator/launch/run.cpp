// One launch: checks it, finds its residency, schedules its blocks, adds up its counters.
#include <algorithm>
#include <array>
#include <cmath>
#include <thread>

#include "core/base/error.h"
#include "occupancy_model/l2.h"
#include "occupancy_model/occupancy.h"
#include "occupancy_model/timing.h"
#include "simulator/cache/l1_cache.h"
#include "simulator/check/sanitizer.h"
#include "simulator/cost/line_counters.h"
#include "simulator/launch/scheduler.h"
#include "simulator/machine/cluster.h"

namespace stitchwork::sim {
namespace {

constexpr double kWarpLanes = 32;
constexpr double kRequestBytes = 128;  // of a warp's load of 4 bytes a lane, the timing model's unit

/// As many loads as bulk copies stand for, of 16 bytes a lane, when loads are averaged.
constexpr double kRequestsPerVectorLoad = 4;

/// A block that runs this many warp instructions is taken to be looping for ever (seconds of simulation).
constexpr std::uint64_t kDefaultLivelockBound = std::uint64_t{1} << 32;

/// Local memory of a thread (CUDA C++ Programming Guide, technical specifications per compute capability).
constexpr std::int64_t kMaxLocalBytes = 512 << 10;

const ptx::Program& find_program(const ptx::ModuleImpl& module, const std::string& kernel) {
  std::string known;
  for (const ptx::Program& p : module.programs) {
    if (p.info.name == kernel) return p;
    known += (known.empty() ? "" : ", ") + p.info.name;
  }
  throw Error(module.file, 0, 0, fmt::format("no kernel '{}'", kernel),
              known.empty() ? "the file has no .entry" : "kernels of this file: " + known);
}

/// What the driver gives a cooperative launch for its grid barrier, zero before each launch.
DeviceAddress grid_workspace(DeviceMemory& memory) {
  constexpr std::size_t kBytes = 4096;
  DeviceAddress& address = memory.impl().grid_workspace;
  if (address == 0) address = memory.allocate(kBytes, "the grid's workspace");
  memory.fill(address, kBytes, std::byte{0});
  return address;
}

LaunchContext prepare(const ptx::Module& module, const Launch& launch, DeviceMemory& memory,
                      const Device& device, const Options& options) {
  LaunchContext c;
  c.module = &module.impl();
  c.program = &find_program(module.impl(), launch.kernel);
  c.launch = &launch;
  c.device = &device;
  c.memory = &memory;
  c.warm_l2 = options.cache == CacheMode::kWarm;
  c.lines = options.lines;
  c.max_warp_instructions =
      options.max_warp_instructions ? options.max_warp_instructions : kDefaultLivelockBound;
  const ptx::KernelInfo& k = c.program->info;
  if (launch.arguments.size() != k.parameters.size()) {
    throw Error(c.module->file, k.line, 0,
                fmt::format("kernel '{}' takes {} arguments, {} given", k.name, k.parameters.size(),
                            launch.arguments.size()));
  }
  c.parameters.resize(c.program->parameter_bytes + 8);
  for (std::size_t p = 0; p < k.parameters.size(); ++p) {
    const auto& bytes = launch.arguments[p].bytes;
    if (bytes.size() != k.parameters[p].bytes) {
      throw Error(c.module->file, k.line, 0,
                  fmt::format("argument {} of kernel '{}' has {} bytes, its parameter {} ({})", p, k.name,
                              bytes.size(), k.parameters[p].bytes, k.parameters[p].type));
    }
    std::copy(bytes.begin(), bytes.end(), c.parameters.begin() + k.parameters[p].offset);
  }
  c.parameters.resize(c.program->parameter_bytes);
  const std::uint64_t threads = launch.block.count();
  if (threads == 0 || launch.grid.count() == 0)
    throw Error(fmt::format("kernel '{}': empty grid or block", k.name));
  choose_cluster(c);
  if (const int sm = device.cc_major * 10 + device.cc_minor; sm < k.needs_sm)
    throw Error(c.module->file, k.line, 0,
                fmt::format("kernel '{}' uses {}, which {} (sm_{}) does not have", k.name, k.needs_sm_for,
                            device.id, sm),
                fmt::format("they need sm_{} or later: --device h100", k.needs_sm));
  if (!c.program->product_names.empty() && (device.cc_major != 9 || device.cc_minor != 0))
    throw Error(c.module->file, k.line, 0,
                fmt::format("kernel '{}' uses wgmma, which {} (sm_{}{}) does not have", k.name, device.id,
                            device.cc_major, device.cc_minor),
                "it is of sm_90a alone: --device h100");
  const int limit =
      k.max_threads ? std::min(k.max_threads, device.max_threads_per_block) : device.max_threads_per_block;
  if (threads > static_cast<std::uint64_t>(limit)) {
    throw Error(
        c.module->file, k.line, 0,
        fmt::format("kernel '{}' may have at most {} threads a block, {} given", k.name, limit, threads));
  }
  c.shared_bytes = static_cast<std::uint64_t>(c.program->dynamic_shared_offset) + launch.dynamic_shared_bytes;
  c.reachable_shared_bytes = c.shared_bytes;
  if (c.program->uses_reserved_shared) {
    c.reserved_shared_offset = (c.shared_bytes + 15) / 16 * 16;
    c.reachable_shared_bytes = c.reserved_shared_offset + kReservedSharedBytes;
  }
  if (static_cast<std::int64_t>(c.shared_bytes) > device.shared_bytes_per_block_optin) {
    throw Error(c.module->file, k.line, 0,
                fmt::format("kernel '{}' wants {} bytes of shared memory a block; {} allows {}", k.name,
                            c.shared_bytes, device.id, device.shared_bytes_per_block_optin));
  }
  if (k.local_bytes > kMaxLocalBytes) {
    throw Error(c.module->file, k.line, 0,
                fmt::format("kernel '{}' wants {} bytes of local memory a thread; devices allow {}", k.name,
                            k.local_bytes, kMaxLocalBytes));
  }
  c.variable_addresses.resize(c.module->globals.size());
  for (const ptx::SlotInit& init : c.program->inits) {
    if (init.kind == ptx::SlotInit::Kind::kVariable)
      c.variable_addresses[init.index] = variable_address(memory, *c.module, init.index);
    if (init.kind == ptx::SlotInit::Kind::kSpecial &&
        (init.index == static_cast<std::uint32_t>(ptx::Special::kGridWorkspaceHigh) ||
         init.index == static_cast<std::uint32_t>(ptx::Special::kGridWorkspaceLow)))
      c.grid_workspace = grid_workspace(memory);
  }
  return c;
}

void fill_counters(Counters& c, const LaunchContext& context, const ScheduleResult& r) {
  std::array<std::uint64_t, kPipes> of_pipe{};
  for (std::size_t b = 0; b < r.bb_counts.size(); ++b) {
    const ptx::BlockWeights& w = context.program->weights[b];
    c.inst_executed += r.bb_counts[b].warps * w.instructions;
    c.thread_inst_executed += r.bb_counts[b].threads * w.instructions;
    c.issue_slots += r.bb_counts[b].warps * w.issue;
    c.inst_ldst += r.bb_counts[b].warps * w.ldst;
    for (std::size_t p = 0; p < kPipes; ++p) of_pipe[p] += r.bb_counts[b].threads * w.unguarded[p];
    for (const std::uint32_t multiply_adds : w.multiply_adds)
      c.tensor_multiply_adds += r.bb_counts[b].warps * multiply_adds;
  }
  for (std::size_t p = 0; p < kPipes; ++p) of_pipe[p] += r.hot.guarded[p];
  const auto on = [&](Pipe pipe) { return of_pipe[static_cast<std::size_t>(pipe)]; };
  c.inst_fp_32 = on(Pipe::kFp32);
  c.inst_mufu = on(Pipe::kMufu);
  c.inst_fp_64 = on(Pipe::kFp64);
  c.inst_fp_16 = on(Pipe::kHalf2);
  c.inst_integer = on(Pipe::kInt32);
  c.gld_requests = r.hot.gld_requests;
  c.gst_requests = r.hot.gst_requests;
  c.gld_transactions = r.hot.gld_transactions;
  c.gst_transactions = r.hot.gst_transactions;
  c.gld_bytes = r.hot.gld_bytes;
  c.gst_bytes = r.hot.gst_bytes;
  c.bulk_copies = r.hot.bulk_copies;
  c.bulk_sectors = r.hot.bulk_sectors;
  c.l1_hit_sectors = r.hot.l1_hit_sectors;
  c.l1_wavefronts = r.hot.l1_wavefronts;
  c.local_load_requests = r.hot.local_loads;
  c.local_store_requests = r.hot.local_stores;
  c.local_load_transactions = r.hot.local_load_sectors;
  c.local_store_transactions = r.hot.local_store_sectors;
  c.local_l2_sectors = r.hot.local_l2_sectors;
  c.l2_atomic_sectors = r.hot.atomic_sectors;
  c.l2_read_sectors = r.l2.read_sectors;
  c.l2_write_sectors = r.l2.write_sectors;
  c.dram_read_transactions = r.l2.dram_reads;
  c.dram_write_transactions = r.l2.dram_writes;
  c.shared_load_requests = r.hot.shared_loads + r.hot.bulk_shared_loads;
  c.shared_store_requests = r.hot.shared_stores + r.hot.bulk_shared_stores;
  c.shared_wavefronts = r.hot.shared_wavefronts + r.hot.bulk_shared_loads + r.hot.bulk_shared_stores;
  c.shared_bank_conflicts = r.hot.shared_conflicts;
  c.block_barriers = r.hot.block_barriers;
  c.grid_barriers = r.grid_barriers;
  c.atomics = r.hot.atomics;
  c.same_address_atomics = r.same_address_atomics;
  c.atomic_conflicts = r.hot.atomic_conflicts;
  c.cluster_barriers = r.hot.cluster_barriers;
  c.remote_shared_requests = r.hot.remote_requests;
  c.remote_shared_sectors = r.hot.remote_sectors;
  c.accesses_checked = static_cast<std::int64_t>(r.hot.accesses);
  if (r.weight > 0) {
    c.achieved_occupancy = r.occupancy / r.weight;
    c.sm_efficiency = r.busy / r.weight;
  }
}

/// Loads a warp has in flight before the first use, averaged over where loads are executed; of asynchronous
/// copies what it had asked for when it waited for them, of bulk copies its share of what its block had.
double independent_loads(const LaunchContext& context, const ScheduleResult& r) {
  double loads = 0, weight = 0;
  const auto add = [&](double accesses, double in_flight) {
    loads += accesses * in_flight;
    weight += accesses;
  };
  for (std::size_t b = 0; b < r.bb_counts.size(); ++b) {
    const ptx::BlockWeights& bb = context.program->weights[b];
    const BasicBlockCount& count = r.bb_counts[b];
    if (bb.loads_in_flight > 0)
      add(static_cast<double>(count.warps) * (bb.ldst - bb.async_copies), bb.loads_in_flight);
    if (count.ended > 0)
      add(static_cast<double>(count.ended) / kWarpLanes,
          static_cast<double>(count.outstanding) / static_cast<double>(count.waits) / kRequestBytes);
  }
  if (r.hot.bulk_waits > 0)
    add(static_cast<double>(r.hot.bulk_shared_stores) / kRequestsPerVectorLoad,
        static_cast<double>(r.hot.bulk_bytes_in_flight) / static_cast<double>(r.hot.bulk_waits) /
            kRequestBytes / std::ceil(static_cast<double>(context.launch->block.count()) / kWarpLanes));
  return weight > 0 ? loads / weight : 1.0;
}

/// Sectors are written to DRAM some time after they were made, or when the launch ends: they count where they
/// were made.
KernelTime time_of(const LaunchContext& context, const ScheduleResult& r, const Counters& c,
                   int blocks_per_sm) {
  LaunchWork w{.threads_per_block = static_cast<int>(context.launch->block.count()),
               .blocks_per_sm = blocks_per_sm,
               .grid_blocks = static_cast<std::int64_t>(context.launch->grid.count()),
               .grid_barriers = static_cast<int>(c.grid_barriers)};
  const double written_back = static_cast<double>(c.dram_write_transactions) /
                              static_cast<double>(std::max<std::uint64_t>(c.l2_write_sectors, 1));
  for (const TimedStretch& timed : r.stretches) {
    Stretch& s = w.stretches.emplace_back(timed.work);
    s.dram_sectors = static_cast<double>(timed.l2.dram_reads);
    // A warm launch that writes nothing may still push out what others wrote.
    s.dram_sectors += c.l2_write_sectors > 0 ? written_back * static_cast<double>(timed.l2.write_sectors)
                                             : static_cast<double>(timed.l2.dram_writes);
    // Atomics ask for sectors too: each SM for its share.
    const auto sectors = static_cast<double>(timed.l2.read_sectors + timed.l2.write_sectors);
    const double of_busiest = s.all.l2_sectors > 0 ? s.busiest_sm.l2_sectors / s.all.l2_sectors
                              : s.all.ldst_warp_instructions > 0
                                  ? s.busiest_sm.ldst_warp_instructions / s.all.ldst_warp_instructions
                                  : 0;
    s.all.l2_sectors = sectors;
    s.busiest_sm.l2_sectors = sectors * of_busiest;
  }
  w.independent_loads = independent_loads(context, r);
  return kernel_time(*context.device, w);
}

/// What tells what a launch's time leaves out. Of a warm L2 nobody knows who asked for a sector before.
TimedKernel describe(const KernelTime& time, const Counters& c, int blocks_per_sm) {
  const std::uint64_t atomics = std::min(c.l2_atomic_sectors, c.l2_read_sectors);
  const std::uint64_t loaded = c.l2_read_sectors - atomics;
  return {.time = time,
          .blocks_per_sm = blocks_per_sm,
          .counted = true,
          .has_block_barriers = c.block_barriers > 0,
          .grid_barriers = static_cast<double>(c.grid_barriers),
          .l2_hit_sectors = static_cast<double>(loaded - std::min(loaded, c.dram_read_transactions)),
          .same_address_atomics = static_cast<double>(c.same_address_atomics),
          .atomic_conflicts = static_cast<double>(c.atomic_conflicts),
          .local_requests = static_cast<double>(c.local_load_requests + c.local_store_requests),
          .cluster_requests = static_cast<double>(c.remote_shared_requests + c.cluster_barriers),
          .bulk_copies = static_cast<double>(c.bulk_copies)};
}

/// An empty L2 for cold launches, kept by each thread: emptying one is cheap, making one is not.
L2State& cold_l2(const Device& device) {
  thread_local std::int64_t bytes = 0;
  thread_local L2StatePtr l2;
  if (!l2 || bytes != l2_distinct_bytes(device)) {
    l2 = make_l2_state(device);
    bytes = l2_distinct_bytes(device);
  }
  l2->clear();
  return *l2;
}

}  // namespace

void use_program(LaunchContext& context, const ptx::Program& program) {
  context.program = &program;
  context.block_start.clear();
  for (const std::int32_t at : program.block_start)
    context.block_start.push_back(&program.code[static_cast<std::size_t>(at)]);
}

LaunchResult run(const ptx::Module& module, const Launch& launch, DeviceMemory& memory, const Device& device,
                 const Options& options) {
  LaunchContext context = prepare(module, launch, memory, device, options);
  if (options.sampled && (options.sanitize.any() || options.cache == CacheMode::kWarm))
    throw Error(
        fmt::format("kernel '{}': a sample of its blocks says nothing of {}", launch.kernel,
                    options.sanitize.any() ? "races and uninitialised memory" : "what a warm cache holds"),
        "simulate all of them: --mode exact");
  std::unique_ptr<Sanitizer> sanitizer;
  if (options.sanitize.any()) {
    sanitizer = std::make_unique<Sanitizer>(context, options.sanitize);
    use_sanitizer(context, *sanitizer);
  } else {
    use_program(context, *context.program);
  }
  LaunchResult result;
  result.cluster = context.cluster;
  context.printed = &result.printed;
  if (options.progress) context.progress = &options.progress;
  Counters& c = result.counters;
  c.static_shared_bytes = context.program->info.static_shared_bytes;
  c.dynamic_shared_bytes = launch.dynamic_shared_bytes;
  c.registers_estimated = options.registers_per_thread == 0;
  c.registers =
      c.registers_estimated ? context.program->info.estimated_registers : options.registers_per_thread;
  const int threads = static_cast<int>(launch.block.count());
  int registers = c.registers;
  if (c.registers_estimated && context.program->info.max_threads > 0) {
    // What the compiler was told to keep: __launch_bounds__ bounds the registers of the blocks it names.
    const int blocks = std::max(context.program->info.min_blocks_per_sm, 1);
    const int bound = launch_bound_registers(device, context.program->info.max_threads, blocks);
    registers = std::clamp(bound, 16, registers);
  }
  const Occupancy o = occupancy(device, threads, registers, static_cast<std::int64_t>(context.shared_bytes));
  if (o.blocks_per_sm == 0) {
    throw Error(
        context.module->file, context.program->info.line, 0,
        fmt::format("a block of kernel '{}' does not fit {}: {} threads of {} registers, {} bytes of shared "
                    "memory ({})",
                    launch.kernel, device.id, threads, registers, context.shared_bytes, o.limiter));
  }
  c.registers = registers;
  Residency residency{static_cast<std::uint64_t>(o.blocks_per_wave), o.blocks_per_sm};
  if (const auto size = static_cast<int>(context.cluster.count()); size > 1) {
    const std::int64_t clusters = clusters_per_wave(device, o.blocks_per_sm, size);
    if (clusters == 0)
      throw Error(
          context.module->file, context.program->info.line, 0,
          fmt::format("a cluster of {} blocks of kernel '{}' does not fit {}: its GPCs hold {} blocks an SM",
                      size, launch.kernel, device.id, o.blocks_per_sm),
          "use smaller clusters or blocks");
    residency.blocks = static_cast<std::uint64_t>(clusters * size);
  }

  context.resident_blocks = residency.blocks;
  // Blocks that share an SM: as many as fit, fewer of a small grid.
  const auto sharing = static_cast<int>(
      std::min<std::uint64_t>(static_cast<std::uint64_t>(o.blocks_per_sm),
                              (launch.grid.count() + static_cast<std::uint64_t>(device.sms) - 1) /
                                  static_cast<std::uint64_t>(device.sms)));
  context.l1_bytes = l1_bytes_a_block(device, static_cast<std::int64_t>(context.shared_bytes), sharing);
  L2State* l2 = options.l2;
  if (options.cache == CacheMode::kWarm) {
    SW_CHECK(l2 != nullptr, "CacheMode::kWarm needs Options::l2");
  } else if (l2 == nullptr) {
    l2 = &cold_l2(device);
  } else {
    l2->clear();
  }
  int host_threads = options.host_threads;
  if (host_threads <= 0) host_threads = static_cast<int>(std::max(1u, std::thread::hardware_concurrency()));
  try {
    const ScheduleResult r =
        schedule(context, residency, *l2, sanitizer.get(), host_threads, options.sampled);
    result.blocks_simulated = r.blocks_simulated;
    result.host_threads = r.host_threads;
    result.sampled = r.blocks_simulated < launch.grid.count();
    fill_counters(c, context, r);
    if (options.lines) result.lines = line_counters(context, r.bb_counts, r.memory);
    l2->dirty_sectors += r.l2.dirty_sectors;
    const std::int64_t flushed = options.cache == CacheMode::kCold ? l2->dirty_sectors : 0;
    if (options.cache == CacheMode::kCold) l2->clear();
    c.dram_write_transactions += static_cast<std::uint64_t>(flushed);
    result.time = time_of(context, r, c, o.blocks_per_sm);
    result.time_us = result.time.total_us;
    const std::uint64_t grid = launch.grid.count(), sms = static_cast<std::uint64_t>(device.sms);
    const std::uint64_t blocks =
        std::min<std::uint64_t>(static_cast<std::uint64_t>(o.blocks_per_sm), (grid + sms - 1) / sms);
    result.resident_share = std::min(1.0, static_cast<double>(grid) / static_cast<double>(residency.blocks));
    result.bytes_in_flight = static_cast<double>(blocks) * std::ceil(threads / kWarpLanes) *
                             independent_loads(context, r) * kRequestBytes;
    result.timed = describe(result.time, c, static_cast<int>(blocks));
  } catch (const FindingError& e) {
    result.findings.push_back(e.finding);
  }
  if (sanitizer) result.sanitized = sanitizer->counts;
  result.sanitized.mem_accesses = c.accesses_checked;
  result.sanitized.sync_barriers =
      static_cast<std::int64_t>(c.block_barriers + c.cluster_barriers + c.grid_barriers);
  return result;
}

std::vector<std::pair<std::string_view, double>> counter_list(const Counters& c) {
  auto d = [](auto v) { return static_cast<double>(v); };
  const double load_efficiency = c.gld_transactions ? d(c.gld_bytes) / (32.0 * d(c.gld_transactions)) : 1.0;
  const double store_efficiency = c.gst_transactions ? d(c.gst_bytes) / (32.0 * d(c.gst_transactions)) : 1.0;
  return {{"inst_executed", d(c.inst_executed)},
          {"thread_inst_executed", d(c.thread_inst_executed)},
          {"issue_slots", d(c.issue_slots)},
          {"inst_fp_32", d(c.inst_fp_32)},
          {"inst_fp_64", d(c.inst_fp_64)},
          {"inst_fp_16", d(c.inst_fp_16)},
          {"inst_integer", d(c.inst_integer)},
          {"inst_mufu", d(c.inst_mufu)},
          {"tensor_multiply_adds", d(c.tensor_multiply_adds)},
          {"inst_ldst", d(c.inst_ldst)},
          {"gld_requests", d(c.gld_requests)},
          {"gst_requests", d(c.gst_requests)},
          {"gld_transactions", d(c.gld_transactions)},
          {"gst_transactions", d(c.gst_transactions)},
          {"gld_bytes", d(c.gld_bytes)},
          {"gst_bytes", d(c.gst_bytes)},
          {"gld_efficiency", load_efficiency},
          {"gst_efficiency", store_efficiency},
          {"l1_hit_sectors", d(c.l1_hit_sectors)},
          {"l1_wavefronts", d(c.l1_wavefronts)},
          {"local_load_requests", d(c.local_load_requests)},
          {"local_store_requests", d(c.local_store_requests)},
          {"local_load_transactions", d(c.local_load_transactions)},
          {"local_store_transactions", d(c.local_store_transactions)},
          {"local_l2_sectors", d(c.local_l2_sectors)},
          {"l2_read_sectors", d(c.l2_read_sectors)},
          {"l2_write_sectors", d(c.l2_write_sectors)},
          {"l2_atomic_sectors", d(c.l2_atomic_sectors)},
          {"dram_read_transactions", d(c.dram_read_transactions)},
          {"dram_write_transactions", d(c.dram_write_transactions)},
          {"shared_load_requests", d(c.shared_load_requests)},
          {"shared_store_requests", d(c.shared_store_requests)},
          {"shared_wavefronts", d(c.shared_wavefronts)},
          {"shared_bank_conflicts", d(c.shared_bank_conflicts)},
          {"block_barriers", d(c.block_barriers)},
          {"grid_barriers", d(c.grid_barriers)},
          {"cluster_barriers", d(c.cluster_barriers)},
          {"remote_shared_requests", d(c.remote_shared_requests)},
          {"remote_shared_sectors", d(c.remote_shared_sectors)},
          {"bulk_copies", d(c.bulk_copies)},
          {"bulk_sectors", d(c.bulk_sectors)},
          {"atomics", d(c.atomics)},
          {"same_address_atomics", d(c.same_address_atomics)},
          {"atomic_conflicts", d(c.atomic_conflicts)},
          {"achieved_occupancy", c.achieved_occupancy},
          {"sm_efficiency", c.sm_efficiency},
          {"static_shared_bytes", d(c.static_shared_bytes)},
          {"dynamic_shared_bytes", d(c.dynamic_shared_bytes)},
          {"registers", d(c.registers)},
          {"accesses_checked", d(c.accesses_checked)}};
}

}  // namespace stitchwork::sim
