// Launches that a kernel may have, and what its mappings may assume of them.
#pragma once

#include <optional>
#include <vector>

#include "analysis/stitching/mapping.h"
#include "analysis/stitching/options.h"
#include "analysis/stitching/scope.h"

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
  int vector_bytes = kVectorBytes;    ///< MappingLimits::vector_bytes
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
/// `forms.waits` (grid barriers) forbids it. With mapping=tuned: the block of 128 to 1,024 threads in which
/// the largest domain takes least time, and one wave only where there are grid barriers. `accumulators`: see
/// MappingLimits.
MappingLimits mapping_limits(const Nodes& nodes, const StitchOp& op, const Device& device,
                             const Options& options, int accumulators, const WideForms& forms);

}  // namespace stitchwork::astitch
