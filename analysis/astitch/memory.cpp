#include "analysis/astitch/memory.h"

#include <algorithm>
#include <utility>

#include "analysis/launch.h"

namespace stitchwork::astitch {
namespace {

/// Slots start on these boundaries: the widest vector access in shared memory, a DRAM burst in scratch.
constexpr std::int64_t kSharedAlignment = 16, kScratchAlignment = 256;

std::int64_t round_up(std::int64_t value, std::int64_t step) { return (value + step - 1) / step * step; }

std::int64_t shared_bytes_of(const Body& body, const std::vector<OpGroup>& groups, NodeId id) {
  const OpGroup& group = groups[static_cast<std::size_t>(group_of(groups, id))];
  return elements_per_task(group, id) * byte_size(body.nodes->node(id).shape.dtype);
}

}  // namespace

MemoryPlan plan_memory(const Body& body, const std::vector<OpGroup>& groups, const Finalization& finalization,
                       std::int64_t workspace_bytes, bool reuse) {
  MemoryPlan plan;
  const auto append = [](std::vector<MemorySlot>& slots, std::int64_t& total, NodeId op, std::int64_t bytes,
                         std::int64_t alignment) {
    total = round_up(total, alignment);
    slots.push_back({op, total, bytes});
    total += bytes;
  };
  // A Regional value dies at the next grid barrier: phases use the same bytes again, and so do lanes, which
  // are on other blocks.
  std::map<std::pair<int, int>, std::int64_t> used;  // by level and lane
  for (const auto& [id, scheme] : finalization.schemes) {
    if (finalization.in_shared(id)) {
      const int lane = groups[static_cast<std::size_t>(group_of(groups, id))].lane;
      std::int64_t& total = used[reuse ? std::pair(finalization.levels.at(id), lane) : std::pair(0, 0)];
      append(plan.shared, total, id, shared_bytes_of(body, groups, id), kSharedAlignment);
      plan.shared_bytes = std::max(plan.shared_bytes, total);
    }
    if (scheme != Scheme::kGlobal) continue;
    const OpGroup& group = groups[static_cast<std::size_t>(group_of(groups, id))];
    const DType dtype = body.nodes->node(id).shape.dtype;
    if (group.mapping.split > 1 && (*body.nodes)[id].reduction.has_value()) {
      append(plan.scratch, plan.scratch_bytes, id, partials_bytes(group.mapping, dtype), kScratchAlignment);
    } else if (!body.outputs.contains(id)) {
      append(plan.scratch, plan.scratch_bytes, id, body.nodes->bytes(id), kScratchAlignment);
    }
  }
  if (workspace_bytes > 0) {
    append(plan.shared, plan.shared_bytes, kNoNode, workspace_bytes, kSharedAlignment);
  }
  return plan;
}

std::optional<NodeId> cheapest_demotion(const Body& body, const std::vector<OpGroup>& groups,
                                        const Finalization& finalization, const std::set<NodeId>& kept) {
  std::map<NodeId, std::int64_t> readers;
  for (const GroupReads& group : finalization.reads) {
    std::map<NodeId, bool> once;  // a group reads a value once, into registers
    for (const Read& read : group.reads) once[read.value] = true;
    for (const auto& [id, read] : once) ++readers[id];
  }
  std::optional<NodeId> best;
  std::pair<double, std::int64_t> best_key;  // added traffic per byte freed; at equal ratio, most bytes freed
  for (const auto& [id, scheme] : finalization.schemes) {
    if (!finalization.in_shared(id) || kept.contains(id)) continue;
    // An output, or what later phases read, is written to global memory anyway.
    const std::int64_t writes = body.outputs.contains(id) || scheme == Scheme::kGlobal ? 0 : 1;
    const double traffic = static_cast<double>(body.nodes->bytes(id) * (writes + readers[id]));
    const std::int64_t freed = shared_bytes_of(body, groups, id);
    const std::pair key{traffic / static_cast<double>(std::max<std::int64_t>(1, freed)), -freed};
    if (best && key >= best_key) continue;
    best = id;
    best_key = key;
  }
  return best;
}

}  // namespace stitchwork::astitch
