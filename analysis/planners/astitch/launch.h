// Resource-aware launch configuration (AStitch section 4.5): assume, relax, apply.
#pragma once

#include <optional>
#include <vector>

#include "analysis/planners/astitch/memory.h"
#include "analysis/planners/astitch/options.h"
#include "occupancy_model/device.h"

namespace stitchwork::astitch {

/// A block of so many threads, a share of the blocks an SM holds at 32 registers a thread, blocks of a
/// cluster.
struct TunedLaunch {
  int block = 0, share = 1, cluster = 1;

  bool operator==(const TunedLaunch&) const = default;
};

/// What mappings may use, where no knob forbids it, until a kernel that does turns out not to fit.
struct WideForms {
  bool staging = true;                ///< MappingLimits::staging
  bool single_rows = true;            ///< MappingLimits::single_rows
  bool clusters = true;               ///< rows shared by the blocks of a cluster, on devices that have them
  bool column_vectors = true;         ///< MappingLimits::column_vectors
  std::optional<TunedLaunch> launch;  ///< in place of the fastest domain's
  bool waits = false;                 ///< the launch is that of a kernel with grid barriers

  bool operator==(const WideForms&) const = default;
};

/// Launches of blocks, and clusters, that wait for each other: 512 or 1,024 threads an SM in blocks of 256 or
/// more, at most `most_blocks` (0: any number) of them.
std::vector<TunedLaunch> waiting_launches(const Device& device, int most_blocks);

/// What mappings may assume before anything is planned: the largest block the device allows, and the wave it
/// has at the assumed 32 registers a thread. Without adaptive mapping, as XLA does: a block as wide as the
/// longest reduced row (256 threads where there is none), and as many blocks as there are rows unless
/// `one_wave` (grid barriers) forbids it. With mapping=tuned: the block of 128 to 1,024 threads in which the
/// largest domain takes least time, and one wave only where there are grid barriers. `accumulators`: see
/// MappingLimits.
MappingLimits mapping_limits(const Nodes& nodes, const StitchOp& op, const Device& device,
                             const Options& options, bool one_wave, int accumulators, WideForms forms);

/// Fills the kernel's memory slots and launch from its groups and finalization.
void plan_launch(const Body& body, const std::vector<OpGroup>& groups, const Finalization& finalization,
                 const Device& device, const Options& options, const MappingLimits& limits,
                 KernelPlan& kernel, Recorder& recorder);

/// Blocks an SM, blocks a wave and registers a thread, from the block and its shared memory.
void bound_launch(const Device& device, const Options& options, const MappingLimits& limits,
                  KernelLaunch& launch);

/// mapping=tuned: an SM that gets fewer blocks of the grid than it could hold gives them all its registers,
/// so that longer rows stay in them.
void settle_registers(const Device& device, const Options& options, KernelLaunch& launch);

/// Whether long rows stay in shared memory one by one, for which a block may ask for more of it.
bool stages_single_rows(const KernelPlan& kernel);

/// Whether a block's shared memory is within the device's limit and leaves the grid resident.
Verdict fits_device(const KernelPlan& kernel, const Device& device, const MappingLimits& limits);

}  // namespace stitchwork::astitch
