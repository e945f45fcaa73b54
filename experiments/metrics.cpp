#include "experiments/metrics.h"

#include <algorithm>
#include <array>

#include "core/base/error.h"
#include "experiments/sqlite.h"

namespace stitchwork {
namespace {

constexpr std::array kMetrics = std::to_array<Metric>({
    {"memory_kernels", "kernels", -1, "kernels of memory-intensive ops (AStitch Table 3, MEM)"},
    {"library_calls", "calls", 0, "matrix products and convolutions left to libraries"},
    {"copies", "calls", -1, "device copies (AStitch Table 3, CPY)"},
    {"memsets", "calls", -1, "device memsets (AStitch Table 3, CPY)"},
    {"grid_barriers_planned", "barriers", -1, "in-kernel grid barriers of the plan"},
    {"dynamic_kernels", "launches", -1,
     "memory kernels and library calls, as often as they run: those of loops by their trips"},
    {"shared_kernels", "kernels", 0, "memory kernels that keep values in shared memory"},
    {"shared_kernel_us", "us", 0, "time of these kernels predicted from the plan alone"},
    {"shared_bytes_average", "bytes", 0,
     "shared memory of a block over all memory kernels, values and what reductions combine through"},
    {"shared_bytes_max", "bytes", 0, "the same of the kernel that has most"},
    {"shared_requested_bytes", "bytes", -1,
     "shared memory of a block's values if none shared bytes, all kernels"},
    {"shared_allocated_bytes", "bytes", -1, "the same as values lie, bytes of several counted once"},
    {"shrunk_kernels", "kernels", -1, "memory kernels in which values gave up shared memory"},
    {"peak_device_bytes", "bytes", -1,
     "device memory at the step that takes most: buffers that are alive, scratch, what loops run (plan "
     "--dump=memory)"},
    {"predicted_us", "us", -1, "time of all steps predicted from the plan alone"},
    {"kernel_us", "us", -1, "time of the memory-intensive kernels"},
    {"total_us", "us", -1,
     "time of all steps and launch gaps: kernel_us, library_us, control_us and overhead_us"},
    {"eager_us", "us", -1,
     "total_us where the host takes 5 us to launch each step, as eager frameworks do; of plans without "
     "loops"},
    {"astra_trials", "mini-batches", 0,
     "what exploring option by option takes, of plans of Astra's rows (Table 7)"},
    {"library_us", "us", -1, "time of matrix products and convolutions"},
    {"control_us", "us", -1, "time of loops and branches, all that ran in them"},
    {"stream_us", "us", -1,
     "the whole program on a GPU, steps launched one by one: median of its repetitions"},
    {"graph_us", "us", -1, "likewise, launched as one CUDA graph"},
    {"overhead_us", "us", -1, "time outside kernels: launch gaps, copies, memsets (AStitch Figure 13)"},
    {"dynamic_memory_kernels", "launches", -1,
     "launches of memory-intensive kernels, those of loops and branches included"},
    {"dynamic_kernel_us", "us", -1, "time of all these launches"},
    {"dynamic_shared_kernel_us", "us", 0, "of those of kernels that keep values in shared memory"},
    {"dynamic_library_us", "us", -1, "time of library calls, those of loops and branches included"},
    {"dram_bytes", "bytes", -1,
     "bytes from and to DRAM of all kernels, library calls, copies and memsets, as often as they run, by the "
     "plan"},
    {"elementwise_kernels", "kernels", 0, "memory-intensive kernels without a reduction or matrix product"},
    {"elementwise_us", "us", -1, "time of all their launches"},
    {"reduction_kernels", "kernels", 0,
     "memory-intensive kernels with a reduction, without a matrix product"},
    {"reduction_us", "us", -1, "time of all their launches"},
    {"product_kernels", "kernels", 0, "generated kernels with a matrix product"},
    {"product_us", "us", -1, "time of all their launches"},
    {"graph_ops", "ops", 0, "ops of the graph that was planned, over all its computations"},
    {"limit_dram_us", "us", -1, "time of the kernels that DRAM bandwidth limits, by the timing model"},
    {"limit_l2_us", "us", -1, "time of the kernels that the L2 limits"},
    {"limit_issue_us", "us", -1, "time of the kernels that issuing instructions limits"},
    {"limit_latency_us", "us", -1, "time of the kernels that memory latency limits"},
    {"limit_barrier_us", "us", -1, "time of the kernels that grid barriers limit"},
    {"limit_tail_us", "us", -1, "time of the kernels that uneven work and idle SMs limit"},
    {"limit_launch_us", "us", -1, "time of the kernels that their launch limits"},
    {"time_dram_us", "us", -1, "part of a kernel's time: DRAM (docs/timing.md; parts overlap)"},
    {"time_l2_us", "us", -1, "part of a kernel's time: the L2"},
    {"time_issue_us", "us", -1, "part of a kernel's time: issuing instructions"},
    {"time_latency_us", "us", -1, "part of a kernel's time: waiting for memory"},
    {"time_tail_us", "us", -1,
     "part of a kernel's time: uneven work, a last wave that is not full, idle SMs"},
    {"time_barrier_us", "us", -1, "part of a kernel's time: grid barriers"},
    {"time_launch_us", "us", -1, "part of a kernel's time: its launch"},
    {"busy_dram_us", "us", -1, "what a kernel needs of DRAM at its peak; over time_us: its speed of light"},
    {"busy_l2_us", "us", -1, "what a kernel needs of the L2 at its peak"},
    {"busy_issue_us", "us", -1, "what a kernel needs of the schedulers at its peak"},
    {"busy_fp32_us", "us", -1, "what a kernel needs of fp32 lanes at its peak"},
    {"busy_fp64_us", "us", -1, "what a kernel needs of fp64 lanes at its peak"},
    {"busy_fp16x2_us", "us", -1, "what a kernel needs of lanes of fp16 pairs at its peak"},
    {"busy_int32_us", "us", -1, "what a kernel needs of int32 lanes at its peak"},
    {"busy_special_us", "us", -1, "what a kernel needs of lanes of special functions at its peak"},
    {"busy_tensor_us", "us", -1, "what a kernel needs of tensor cores at its peak"},
    {"busy_ldst_us", "us", -1, "what a kernel needs of load/store lanes at its peak"},
    {"busy_l1_us", "us", -1, "what a kernel needs of L1 at its peak"},
    {"busy_shared_us", "us", -1, "what a kernel needs of shared memory at its peak"},
    {"busy_cluster_us", "us", -1,
     "what a kernel needs of shared memory of the cluster's other SMs at its peak"},
    {"plan_ms", "ms", -1, "wall time of planning, on the host"},
    {"compile_ms", "ms", -1, "wall time of code generation and compilation, on the host"},
    {"run_ms", "ms", -1, "wall time of execution, on the host (of the simulator in simulated runs)"},
    {"check_max_abs_error", "1", -1, "largest absolute difference from the reference"},
    {"check_max_rel_error", "1", -1, "largest |a-r| / (|r| + rms(r))"},
    {"inst_executed", "warp instructions", -1, "instructions executed, per warp"},
    {"thread_inst_executed", "instructions", -1, "instructions executed, per thread"},
    {"issue_slots", "machine instructions", -1,
     "machine instructions the executed PTX is estimated to become, per warp"},
    {"inst_fp_32", "instructions", -1, "fp32 instructions, per thread (AStitch Table 5)"},
    {"inst_fp_64", "instructions", -1, "fp64 instructions, per thread"},
    {"inst_fp_16", "instructions", -1, "instructions on f16 and bf16, per thread; pairs count once"},
    {"inst_integer", "instructions", -1, "integer instructions, per thread"},
    {"inst_mufu", "instructions", -1, "approximate special functions, per thread"},
    {"tensor_multiply_adds", "multiply-adds", -1, "multiply-adds of matrix instructions"},
    {"inst_ldst", "warp instructions", -1, "loads, stores and atomics, per warp"},
    {"gld_requests", "warp instructions", -1, "global loads, per warp"},
    {"gst_requests", "warp instructions", -1, "global stores, per warp"},
    {"gld_transactions", "sectors", -1, "32-byte sectors of global loads"},
    {"gst_transactions", "sectors", -1, "32-byte sectors of global stores"},
    {"gld_bytes", "bytes", -1, "bytes the program asked to load"},
    {"gst_bytes", "bytes", -1, "bytes the program asked to store"},
    {"gld_efficiency", "1", 1, "bytes asked for / bytes of the sectors loaded"},
    {"gst_efficiency", "1", 1, "bytes asked for / bytes of the sectors stored"},
    {"l1_hit_sectors", "sectors", -1, "32-byte sectors of global loads that L1 held"},
    {"l1_wavefronts", "wavefronts", -1, "128 bytes that global and local accesses move by L1"},
    {"local_load_requests", "warp instructions", -1, "loads of local memory, per warp"},
    {"local_store_requests", "warp instructions", -1, "stores to local memory, per warp"},
    {"local_load_transactions", "sectors", -1, "32-byte sectors of local loads"},
    {"local_store_transactions", "sectors", -1, "32-byte sectors of local stores"},
    {"local_l2_sectors", "sectors", -1, "32-byte sectors of local memory between L1 and L2"},
    {"l2_read_sectors", "sectors", -1, "32-byte sectors read from L2"},
    {"l2_write_sectors", "sectors", -1, "32-byte sectors written to L2"},
    {"l2_atomic_sectors", "sectors", -1, "32-byte sectors that atomics update in L2"},
    {"dram_read_transactions", "sectors", -1, "32-byte sectors read from DRAM (AStitch Table 5)"},
    {"dram_write_transactions", "sectors", -1, "32-byte sectors written to DRAM (AStitch Table 5)"},
    {"shared_load_requests", "warp instructions", -1, "shared-memory loads, per warp"},
    {"shared_store_requests", "warp instructions", -1, "shared-memory stores, per warp"},
    {"shared_wavefronts", "wavefronts", -1, "clocks in which shared memory serves accesses"},
    {"shared_bank_conflicts", "wavefronts", -1, "extra shared-memory wavefronts from bank conflicts"},
    {"block_barriers", "barriers", -1, "block barriers, once a block"},
    {"grid_barriers", "barriers", -1, "times the whole grid waited"},
    {"cluster_barriers", "barriers", -1, "barriers of thread block clusters, once a block"},
    {"remote_shared_requests", "warp instructions", -1,
     "accesses to shared memory of other blocks of the cluster, per warp"},
    {"remote_shared_sectors", "sectors", -1, "32-byte sectors of these"},
    {"bulk_copies", "requests", -1,
     "bulk asynchronous copies; each is one of gld_requests or gst_requests, too, but between shared "
     "memories"},
    {"bulk_sectors", "sectors", -1, "32-byte sectors of these in global memory"},
    {"atomics", "operations", -1, "atomic operations, per thread"},
    {"same_address_atomics", "operations", -1,
     "of atomics, those on the word of global memory that has most of them"},
    {"atomic_conflicts", "updates", -1, "further updates of l2_atomic_sectors, as lanes have one word"},
    {"achieved_occupancy", "1", 1, "resident warps / maximum (AStitch Figure 14)"},
    {"sm_efficiency", "1", 1, "SMs with a block / SMs (AStitch Figure 14)"},
    {"static_shared_bytes", "bytes", 0, "static shared memory a block"},
    {"dynamic_shared_bytes", "bytes", 0, "dynamic shared memory a block"},
    {"registers", "registers", 0,
     "registers a thread; estimated from liveness where the kernel has no spill_bytes"},
    {"duration_us", "us", -1, "a kernel's time as Nsight Compute measures it"},
    {"accesses_checked", "accesses", 0, "memory accesses that were checked and clean"},
});

}  // namespace

std::span<const Metric> metrics() { return kMetrics; }

std::int64_t metric_id(sqlite3* db, std::string_view name) {
  Statement query(db, "SELECT id FROM metric_def WHERE name = ?");
  if (query.bind(name).step()) return query.integer(0);
  const auto known =
      std::find_if(kMetrics.begin(), kMetrics.end(), [&](const Metric& m) { return m.name == name; });
  SW_CHECK(known != kMetrics.end(), "no metric {}", name);
  Statement(db, "INSERT INTO metric_def(name,unit,direction,description) VALUES(?,?,?,?)")
      .bind(known->name)
      .bind(known->unit)
      .bind(known->direction)
      .bind(known->description)
      .run();
  return sqlite3_last_insert_rowid(db);
}

}  // namespace stitchwork
