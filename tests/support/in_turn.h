// Plans whose tasks have more rows than a block's threads take at once, whether or not a planner would choose
// so.
#pragma once

#include <algorithm>
#include <cstdint>

#include "analysis/plan/mapping.h"
#include "analysis/verify/verify.h"
#include "core/base/arithmetic.h"
#include "tests/support/clustered.h"

namespace stitchwork::testing {

/// The kernel's rows in tasks of `rows`, of `threads` threads a row, which move vectors of `width`, in blocks
/// of `block`, on at most `takers` of these; false where a group shares no rows or verify says that they
/// cannot be. One thread a row where `threads` is 0.
inline bool take_in_turn(const Graph& graph, const Device& target, FusionPlan& plan, std::size_t k,
                         std::int64_t rows, int threads, int width, int block, std::int64_t takers) {
  FusionPlan changed = plan;
  KernelPlan& kernel = changed.kernels[k];
  kernel.launch.block = block;
  kernel.launch.cluster = 1;
  for (Group& group : kernel.groups) {
    if (!packs_rows(group.mapping) && !is<mapping::OneThread>(group.mapping)) return false;
    const std::int64_t before = task_rows(group.mapping);
    mapping::Rows of{extents(group.mapping).rows, extents(group.mapping).cols, mapping::OneThread{rows}};
    if (threads > 0) of.sharing = mapping::Lanes{threads, rows, {width, 1}, {}};
    group.mapping = of;
    group.deal = deal_to(group.mapping, takers);
    group.one_pass.clear();
    for (MemorySlot& slot : kernel.shared)
      if (std::find(group.ops.begin(), group.ops.end(), slot.op) != group.ops.end())
        slot.bytes = slot.bytes / before * rows;
  }
  kernel.resident.clear();
  kernel.tiles.clear();
  std::int64_t offset = 0;
  for (MemorySlot& slot : kernel.shared) {
    slot.offset = offset;
    offset += round_up(slot.bytes, std::int64_t{16});
  }
  launch_anew(graph.entry_computation(), kernel);
  if (!verify(graph, target, changed).empty()) return false;
  plan = std::move(changed);
  return true;
}

}  // namespace stitchwork::testing
