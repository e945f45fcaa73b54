#include "analysis/stitching/memory.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>
#include <utility>

#include "analysis/schedule/launch.h"
#include "analysis/stitching/lifetimes.h"
#include "core/base/arithmetic.h"
#include "occupancy_model/hardware.h"

namespace stitchwork::astitch {
namespace {

std::int64_t shared_bytes_of(const Body& body, const std::vector<OpGroup>& groups, NodeId id) {
  const OpGroup& group = groups[static_cast<std::size_t>(group_of(groups, id))];
  return elements_per_task(group, id) * byte_size(body.nodes->node(id).shape.dtype);
}

/// A piece of shared memory to place, and when it is needed.
struct Request {
  MemorySlot slot;
  std::vector<Lifetime> lives;     ///< of the workspace: one a reduction
  const OpGroup* group = nullptr;  ///< the value's
};

bool meet(const Request& a, const Request& b) {
  return std::any_of(a.lives.begin(), a.lives.end(), [&](const Lifetime& x) {
    return std::any_of(b.lives.begin(), b.lives.end(), [&](const Lifetime& y) { return x.meets(y); });
  });
}

bool rows_within_warps(const Request& request) {
  return request.group != nullptr && packs_rows(request.group->mapping) &&
         threads_a_row(request.group->mapping) <= kWarp;
}

/// Where rows take a warp or less, only the warp's threads wait for each other between steps: one value may
/// take over another's bytes only row for row.
bool may_overlap(const Request& placed, const Request& wanted, std::int64_t offset) {
  if (meet(placed, wanted)) return false;
  const auto same_loop = [](const Lifetime& a, const Lifetime& b) {
    return a.level == b.level && a.lane == b.lane && a.loop == b.loop;
  };
  if (!rows_within_warps(placed) || !rows_within_warps(wanted)) return true;
  if (!same_loop(placed.lives.front(), wanted.lives.front())) return true;
  return placed.slot.offset == offset && placed.slot.bytes == wanted.slot.bytes &&
         placed.group->mapping == wanted.group->mapping && placed.group->deal == wanted.group->deal;
}

bool apart(const MemorySlot& a, const MemorySlot& b) {
  return a.offset + a.bytes <= b.offset || b.offset + b.bytes <= a.offset;
}

/// First fit on multiples of `alignment`, one after the other; returns the bytes they take together.
std::int64_t place(const std::vector<Request*>& order, std::int64_t alignment) {
  std::int64_t total = 0;
  std::vector<const Request*> placed;
  for (Request* request : order) {
    std::set<std::int64_t> offsets{0};
    for (const Request* other : placed) {
      offsets.insert(other->slot.offset);
      offsets.insert(round_up(other->slot.offset + other->slot.bytes, alignment));
    }
    for (const std::int64_t offset : offsets) {
      request->slot.offset = offset;
      if (std::all_of(placed.begin(), placed.end(), [&](const Request* other) {
            return apart(other->slot, request->slot) || may_overlap(*other, *request, offset);
          }))
        break;
    }
    placed.push_back(request);
    total = std::max(total, request->slot.offset + request->slot.bytes);
  }
  return total;
}

/// In topological order, as FusionStitching's algorithm 4 has it; the largest first where that takes less.
std::int64_t place_best(std::vector<Request>& requests, std::int64_t alignment) {
  std::vector<Request*> order;
  for (Request& request : requests) order.push_back(&request);
  const std::int64_t in_order = place(order, alignment);
  std::vector<Request*> by_size = order;
  std::stable_sort(by_size.begin(), by_size.end(),
                   [](const Request* a, const Request* b) { return a->slot.bytes > b->slot.bytes; });
  const std::int64_t largest_first = place(by_size, alignment);
  const auto granted = [&](std::int64_t bytes) { return round_up(bytes, alignment); };
  return granted(largest_first) < granted(in_order) ? largest_first : place(order, alignment);
}

/// Which values took over bytes within their task loop, and what reuse saves in all.
void record_reuse(const Nodes& nodes, const std::vector<Request>& requests, std::int64_t bytes,
                  std::int64_t without, Recorder& recorder) {
  if (!recorder.enabled() || bytes >= without) return;
  const auto named = [&](const MemorySlot& slot) {
    return slot.op == kNoNode ? std::string("the workspace") : nodes.name(slot.op);
  };
  for (const Request& later : requests)
    for (const Request& earlier : requests) {
      if (&later == &earlier || apart(later.slot, earlier.slot)) continue;
      for (const Lifetime& end : earlier.lives)
        for (const Lifetime& start : later.lives) {
          if (end.level != start.level || end.lane != start.lane || end.loop != start.loop) continue;
          if (end.last >= start.first) continue;
          recorder.add("memory", named(later.slot), named(earlier.slot), [&] {
            return Verdict::yes(
                "astitch.shared-reuse",
                fmt::format("takes over bytes of {}, last read in step {} of its task, in step {}",
                            named(earlier.slot), end.last, start.first));
          });
        }
    }
  recorder.add("memory", named(requests.front().slot), "", [&] {
    return Verdict::yes("astitch.shared-reuse",
                        fmt::format("{} bytes of shared memory a block, {} without reuse: {} saved", bytes,
                                    without, without - bytes));
  });
}

/// Values in scratch share bytes where a grid barrier stands between the last reader of one and the other.
void reuse_scratch(const Body& body, const Finalization& finalization, MemoryPlan& plan, Recorder& recorder) {
  std::vector<Request> requests;
  for (const MemorySlot& slot : plan.scratch) {
    Lifetime life;  // in levels
    life.first = finalization.levels.at(slot.op);
    const auto read = finalization.last_read.find(slot.op);
    life.last = std::max(life.first, read == finalization.last_read.end() ? 0 : read->second);
    Request& request = requests.emplace_back();
    request.slot = slot;
    request.lives = {life};
  }
  const std::int64_t without = plan.scratch_bytes;
  plan.scratch_bytes = place_best(requests, kDeviceAlignment);
  for (std::size_t i = 0; i < requests.size(); ++i) plan.scratch[i] = requests[i].slot;
  if (plan.scratch_bytes >= without) return;
  recorder.add("memory", body.nodes->name(plan.scratch.front().op), "", [&] {
    return Verdict::yes("astitch.scratch-reuse",
                        fmt::format("{} bytes of scratch, {} without reuse: {} saved", plan.scratch_bytes,
                                    without, without - plan.scratch_bytes));
  });
}

}  // namespace

MemoryPlan plan_memory(const Body& body, const std::vector<OpGroup>& groups, const Finalization& finalization,
                       const Workspace& workspace, bool reuse, Recorder& recorder) {
  MemoryPlan plan;
  const auto append = [](std::vector<MemorySlot>& slots, std::int64_t& total, NodeId op, std::int64_t bytes,
                         std::int64_t alignment) {
    total = round_up(total, alignment);
    slots.push_back({op, total, bytes});
    total += bytes;
  };
  for (const auto& [id, scheme] : finalization.schemes) {
    if (finalization.in_shared(id))
      append(plan.shared, plan.shared_bytes, id, shared_bytes_of(body, groups, id), kSharedAlignment);
    if (scheme != Scheme::kGlobal) continue;
    const OpGroup& group = groups[static_cast<std::size_t>(group_of(groups, id))];
    const DType dtype = body.nodes->node(id).shape.dtype;
    if (is_across(group, id)) {
      append(plan.scratch, plan.scratch_bytes, id, across_bytes(group.mapping, group.deal, dtype),
             kDeviceAlignment);
    } else if (segments(group.mapping) > 1 && (*body.nodes)[id].reduction.has_value()) {
      append(plan.scratch, plan.scratch_bytes, id, partials_bytes(group.mapping, dtype), kDeviceAlignment);
    } else if (!body.outputs.contains(id)) {
      append(plan.scratch, plan.scratch_bytes, id, body.nodes->bytes(id), kDeviceAlignment);
    }
  }
  if (workspace.bytes > 0) append(plan.shared, plan.shared_bytes, kNoNode, workspace.bytes, kSharedAlignment);
  if (reuse && plan.scratch.size() > 1) reuse_scratch(body, finalization, plan, recorder);
  if (!reuse || plan.shared.size() < 2) return plan;

  const SharedLifetimes lifetimes = shared_lifetimes(body, groups, finalization, workspace.block);
  // Other blocks of a cluster write to the workspace at any time: it shares bytes with no value.
  std::optional<MemorySlot> apart;
  if (std::any_of(groups.begin(), groups.end(), [](const OpGroup& g) { return g.deal.cluster > 1; }) &&
      plan.shared.back().op == kNoNode) {
    apart = plan.shared.back();
    plan.shared.pop_back();
  }
  std::vector<Request> requests;
  for (const MemorySlot& slot : plan.shared) {
    Request& request = requests.emplace_back();
    request.slot = slot;
    if (slot.op == kNoNode) {
      request.lives = lifetimes.workspace;
      continue;
    }
    request.lives = {lifetimes.values.at(slot.op)};
    request.group = &groups[static_cast<std::size_t>(group_of(groups, slot.op))];
  }
  const std::int64_t without = plan.shared_bytes;
  plan.shared_bytes = place_best(requests, kSharedAlignment);
  for (std::size_t i = 0; i < requests.size(); ++i) plan.shared[i] = requests[i].slot;
  if (apart) {
    apart->offset = round_up(plan.shared_bytes, kSharedAlignment);
    plan.shared_bytes = apart->offset + apart->bytes;
    plan.shared.push_back(*apart);
  }
  record_reuse(*body.nodes, requests, plan.shared_bytes, without, recorder);
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
