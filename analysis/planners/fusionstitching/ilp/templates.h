// Implementation templates of a pattern's components (F19 sections 5.1 to 5.3): how each op that writes
// shared or global memory is dealt to the grid, warps and threads; all else is its closure, inlined.
#pragma once

#include <array>
#include <string_view>
#include <vector>

#include "analysis/planners/fusionstitching/ilp/options.h"
#include "analysis/planners/fusionstitching/kernel.h"

namespace stitchwork::fusionstitching {

/// How values travel from op to op.
enum class Composition : std::uint8_t {
  kThread,  ///< in registers of one thread: loops of outputs, everything else inlined
  kWarp,    ///< in registers of the threads that share a row: one loop over rows
  kBlock,   ///< through shared memory: a loop an op, each over the block's chunk
};
std::string_view name(Composition composition);  ///< "thread", "warp", "block"

/// Loops, slots and launch of one component, from block 0 of lane 0 on.
struct Template {
  Composition composition = Composition::kThread;
  Stitched stitched;
};

/// Threads of a block that are tried (cta_size). A choice, not measured: the paper names none.
constexpr std::array<int, 4> kCtaSizes = {128, 256, 512, 1024};
/// Of one component and cta_size. A choice, not measured: with kCtaSizes 24 a component.
constexpr std::size_t kMostTemplates = 6;

struct Templates {
  std::vector<Template> all;
  Verdict made;  ///< why there is none: "fs19.layout", "fs19.volume", "fs19.maps"
};

/// That a loop would compute the op under more than kMostMaps index maps ("fs19.maps").
Verdict too_many_maps(const Ops& ops, NodeId op);

/// A component as fusions have it: what it evaluates, index maps included, and its outputs.
Fusion fusion_of(const Ops& ops, const std::vector<NodeId>& component);

/// Slots of what the loops of `kernel` share (F19 section 5.3, Algorithm 4): in place where each thread of
/// the reader's loop overwrites the element it reads, as long as the schedule of steps allows it.
Slots shared_slots(const Ops& ops, Stitched kernel, const std::vector<Request>& asked,
                   const IlpOptions& options);

/// Those of fewest bytes of shared memory first.
Templates find_templates(const Ops& ops, const Fusion& component, int cta_size, const IlpOptions& options);

}  // namespace stitchwork::fusionstitching
