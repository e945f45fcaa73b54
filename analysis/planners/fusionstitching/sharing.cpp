#include "analysis/planners/fusionstitching/sharing.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <set>
#include <utility>

#include "analysis/facts/post_dominators.h"
#include "analysis/schedule/steps.h"
#include "core/base/arithmetic.h"
#include "core/base/sorted.h"
#include "occupancy_model/hardware.h"

namespace stitchwork::fusionstitching {
namespace {

/// By place in `ops`, ascending, the places of those that read it.
std::vector<std::vector<int>> readers(const Computation& computation, const std::vector<NodeId>& ops) {
  std::vector<std::vector<int>> result(ops.size());
  for (std::size_t i = 0; i < ops.size(); ++i)
    for (const NodeId operand : computation.node(ops[i]).operands) {
      const auto at = std::lower_bound(ops.begin(), ops.end(), operand);
      if (at != ops.end() && *at == operand)
        result[static_cast<std::size_t>(at - ops.begin())].push_back(static_cast<int>(i));
    }
  return result;
}

class Sharing {
 public:
  Sharing(const Computation& computation, const Fusion& fusion, const std::vector<Request>& requests,
          const InPlace& in_place, bool reuse)
      : computation_(computation),
        fusion_(fusion),
        in_place_(in_place),
        reuse_(reuse),
        dominators_(readers(computation, fusion.ops)) {
    for (const Request& request : requests) wanted_[request.op] = request.bytes;
    for (const NodeId op : fusion.ops)
      if (wanted_.contains(op) || contains_sorted(fusion.roots, op)) {
        const std::set<NodeId> reads = reads_of(op);
        for (const NodeId value : reads) loops_that_read_[value].push_back(op);
        steps_.add(op, place(op), reads);
      }
  }

  Slots run() {
    std::vector<std::vector<NodeId>> allocs(fusion_.ops.size());  // live into what is behind each op
    for (std::size_t i = 0; i < fusion_.ops.size(); ++i) {
      const NodeId op = fusion_.ops[i];
      std::vector<NodeId>& live = allocs[i];
      for (const NodeId operand : computation_.node(op).operands)
        if (contains_sorted(fusion_.ops, operand)) {
          const auto& before = allocs[static_cast<std::size_t>(place(operand))];
          live.insert(live.end(), before.begin(), before.end());
        }
      sort_unique(live);
      if (wanted_.contains(op)) allocate(op, live);
    }
    Slots result;
    for (const Region& region : regions_) result.bytes = std::max(result.bytes, region.offset + region.bytes);
    for (const auto& [op, slot] : slots_) result.slots.push_back(slot);
    return result;
  }

 private:
  struct Region {
    std::int64_t offset = 0, bytes = 0;
    std::vector<NodeId> owners;  ///< the last one has it
  };
  struct Free {
    std::size_t region = 0;
    NodeId behind = kNoNode;  ///< usable by ops that read what this op makes
  };

  int place(NodeId op) const {
    const auto at = std::lower_bound(fusion_.ops.begin(), fusion_.ops.end(), op);
    return static_cast<int>(at - fusion_.ops.begin());
  }

  std::set<NodeId> reads_of(NodeId root) const {
    return shared_reads(computation_, computation_.node(root).operands, [&](NodeId op) {
      if (wanted_.contains(op)) return Had::kShared;
      return contains_sorted(fusion_.ops, op) ? Had::kComputed : Had::kStored;
    });
  }

  bool is_behind(NodeId op, NodeId first) const {
    std::vector<NodeId> open{op};
    std::set<NodeId> seen;
    while (!open.empty()) {
      const NodeId at = open.back();
      open.pop_back();
      if (at == first) return true;
      if (at < first || !seen.insert(at).second || !contains_sorted(fusion_.ops, at)) continue;
      const std::vector<NodeId>& operands = computation_.node(at).operands;
      open.insert(open.end(), operands.begin(), operands.end());
    }
    return false;
  }

  /// No step reads what was there when `op`'s begins; the one it takes in place may be read in it.
  bool is_past(const Region& region, NodeId op, NodeId in_place) const {
    const TaskSteps::Made& made = steps_.at(op);
    return std::all_of(region.owners.begin(), region.owners.end(), [&](NodeId owner) {
      const TaskSteps::Made& of = steps_.at(owner);
      if (steps_.loop(of.group) != steps_.loop(made.group) || of.last < made.step) return true;
      if (owner != in_place || of.last != made.step) return false;
      const std::vector<NodeId>& loops = loops_that_read_.at(owner);
      return std::all_of(loops.begin(), loops.end(),
                         [&](NodeId reader) { return reader == op || steps_.at(reader).step < made.step; });
    });
  }

  /// `live`: what is live into `op`; becomes what is live behind it.
  void allocate(NodeId op, std::vector<NodeId>& live) {
    const std::vector<Free> free_before = free_;
    const std::int64_t bytes = wanted_.at(op);
    std::vector<NodeId> dead;
    for (const NodeId value : live) {
      if (!reuse_ || !dominators_.meets_at(place(value), place(op))) continue;
      dead.push_back(value);
      const std::size_t region = region_of_.at(value);
      if (regions_[region].owners.back() != value) continue;  // taken by another path's op
      if (!slots_.contains(op) && regions_[region].bytes >= bytes && is_past(regions_[region], op, value) &&
          in_place_(op, value, [this](NodeId id) { return wanted_.contains(id); }))
        take(op, region, value, true);
      else
        free_.push_back({region, op});
    }
    for (std::size_t f = 0; f < free_before.size() && !slots_.contains(op); ++f) {
      const Free& free = free_before[f];
      const Region& region = regions_[free.region];
      if (region.bytes < bytes || !is_past(region, op, kNoNode) || !is_behind(op, free.behind)) continue;
      const std::size_t taken = free.region;
      std::erase_if(free_, [taken](const Free& entry) { return entry.region == taken; });
      take(op, taken, region.owners.back(), false);
    }
    if (!slots_.contains(op)) {
      const std::int64_t end = regions_.empty() ? 0 : regions_.back().offset + regions_.back().bytes;
      regions_.push_back({round_up(end, kSharedAlignment), bytes, {}});
      take(op, regions_.size() - 1, kNoNode, false);
    }
    std::erase_if(live, [&](NodeId value) { return contains_sorted(dead, value); });
    insert_sorted(live, op);
  }

  void take(NodeId op, std::size_t region, NodeId from, bool in_place) {
    regions_[region].owners.push_back(op);
    region_of_[op] = region;
    slots_[op] = {op, regions_[region].offset, wanted_.at(op), from, in_place};
  }

  const Computation& computation_;
  const Fusion& fusion_;
  const InPlace& in_place_;
  const bool reuse_;
  const PostDominators dominators_;
  std::map<NodeId, std::int64_t> wanted_;
  TaskSteps steps_;
  std::map<NodeId, std::vector<NodeId>> loops_that_read_;  ///< the ops whose loops read a value
  std::vector<Region> regions_;
  std::vector<Free> free_;
  std::map<NodeId, std::size_t> region_of_;
  std::map<NodeId, Slot> slots_;
};

}  // namespace

bool is_elementwise_in_place(const Computation& computation, NodeId op, NodeId read,
                             const IsShared& is_shared) {
  const Node& from = computation.node(read);
  if (!is_elementwise(computation.node(op).op)) return false;
  if (byte_size(from.shape.dtype) != byte_size(computation.node(op).shape.dtype)) return false;
  // Ops on the way, and whether all up to them are element-wise of one shape.
  std::vector<std::pair<NodeId, bool>> open{{op, true}};
  std::set<std::pair<NodeId, bool>> seen;
  while (!open.empty()) {
    auto [id, alike] = open.back();
    open.pop_back();
    if (id == read && !alike) return false;
    if (id <= read || (id != op && is_shared(id)) || !seen.insert({id, alike}).second) continue;
    const Node& node = computation.node(id);
    alike = alike && is_elementwise(node.op) && node.shape.dims == from.shape.dims;
    for (const NodeId operand : node.operands)
      open.push_back({operand, alike && computation.node(operand).shape.dims == from.shape.dims});
  }
  return true;
}

LeastBytes::LeastBytes(const Computation& computation, const Fusion& fusion,
                       const std::vector<Request>& requests)
    : alive_(fusion.ops.size(), 0) {
  std::unordered_map<NodeId, std::int64_t> wanted;
  for (const Request& request : requests) wanted[request.op] = request.bytes;
  const PostDominators dominators(readers(computation, fusion.ops));
  const auto place = [&](NodeId op) {
    return std::lower_bound(fusion.ops.begin(), fusion.ops.end(), op) - fusion.ops.begin();
  };
  std::vector<std::vector<NodeId>> behind(fusion.ops.size());  // alive behind each op
  for (std::size_t i = 0; i < fusion.ops.size(); ++i) {
    const NodeId op = fusion.ops[i];
    std::vector<NodeId>& alive = behind[i];
    for (const NodeId operand : computation.node(op).operands)
      if (contains_sorted(fusion.ops, operand)) {
        const std::vector<NodeId>& before = behind[static_cast<std::size_t>(place(operand))];
        alive.insert(alive.end(), before.begin(), before.end());
      }
    sort_unique(alive);
    // Where fewer requests are left, fewer ops end the life of what they read: values live as long or longer.
    if (wanted.contains(op)) {
      std::erase_if(alive, [&](NodeId value) {
        return dominators.meets_at(static_cast<int>(place(value)), static_cast<int>(i));
      });
      insert_sorted(alive, op);
    }
    for (const NodeId value : alive) {
      alive_[i] += wanted.at(value);
      at_[value].push_back(i);
    }
  }
}

std::int64_t LeastBytes::bytes() const {
  return alive_.empty() ? 0 : *std::max_element(alive_.begin(), alive_.end());
}

void LeastBytes::take_back(const Request& request) {
  const auto found = at_.find(request.op);
  if (found == at_.end()) return;
  for (const std::size_t i : found->second) alive_[i] -= request.bytes;
}

Slots share(const Computation& computation, const Fusion& fusion, const std::vector<Request>& requests,
            const InPlace& in_place, bool reuse) {
  return Sharing(computation, fusion, requests, in_place, reuse).run();
}

std::string to_text(const Computation& computation, const Slots& slots) {
  std::string text;
  for (const Slot& slot : slots.slots) {
    text += fmt::format("{}@{}+{}", computation.node(slot.op).name, slot.offset, slot.bytes);
    if (slot.taken_from != kNoNode)
      text +=
          fmt::format(" of {}{}", computation.node(slot.taken_from).name, slot.in_place ? " in place" : "");
    text += "\n";
  }
  return text + fmt::format("{} bytes\n", slots.bytes);
}

}  // namespace stitchwork::fusionstitching
