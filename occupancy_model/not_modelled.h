// What the timing model leaves out of a kernel's time: those of a table of effects that this kernel has.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "occupancy_model/timing.h"

namespace stitchwork {

/// What tells which effects a kernel has: counts from its plan (modelled) or of its execution (simulated).
struct TimedKernel {
  KernelTime time;
  int blocks_per_sm = 1;            ///< resident at once
  bool counted = false;             ///< simulated; else from the plan
  bool has_block_barriers = false;  ///< within blocks
  bool moves_indices = false;       ///< gathers, reshapes or transposes; known of a plan alone
  double grid_barriers = 0;
  double l2_hit_sectors = 0;        ///< 32-byte ones that loads ask of the L2 though it has them
  double same_address_atomics = 0;  ///< updates of the address of global memory that has most of them
  double atomic_conflicts = 0;      ///< ThreadWork::l2_atomic_conflicts
  double local_requests = 0;        ///< of warps
  double cluster_requests = 0;      ///< accesses to shared memory of other blocks, and cluster barriers
  double bulk_copies = 0;
  double spill_bytes = 0;  ///< of a thread, that the compiler spilled
};

/// An effect that docs/timing.md names: `id` is for documents, `why` says what the time lacks.
struct NotModelled {
  std::string_view id, why;
};

/// All effects of the table.
std::span<const NotModelled> timing_omissions();

/// Those that this kernel has on the device, in the table's order.
std::vector<NotModelled> not_modelled(const Device& device, const TimedKernel& kernel);

/// One line each: "not modelled: spills: ..."
std::string to_text(const std::vector<NotModelled>& left_out);

}  // namespace stitchwork
