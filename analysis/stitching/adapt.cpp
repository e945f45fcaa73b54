#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <numeric>
#include <set>
#include <unordered_map>
#include <utility>

#include "analysis/stitching/finalize.h"
#include "core/base/error.h"

namespace stitchwork::astitch {
namespace {

/// Sweeps over all groups; two settle all but contrived graphs.
/// A choice, not measured: it guards against groups that follow each other in a circle.
constexpr int kMaxSweeps = 8;
/// A mapping that leaves a group less than this share of its blocks costs more than traffic: a tensor that
/// reads a scalar made in the kernel must not follow it into one block.
/// A choice, not measured: an eighth of the blocks rarely fills a device.
constexpr std::int64_t kFewerBlocks = 8;
/// The same of the blocks that have an SM each.
/// A choice: `rotary` on an A100, simulated, takes 7.8 us where 48 blocks become 8, and 5.4 us with its own.
constexpr std::int64_t kFewerSms = 4;

/// A group with what it reads; `version` tells states of the groups apart.
struct Slot {
  OpGroup group;
  GroupReads reads;
  std::vector<std::size_t> by_value;  ///< indices of reads.reads, by the value read
  int version = 0;
  bool alive = true;

  bool makes(NodeId id) const {
    return std::binary_search(group.materialised.begin(), group.materialised.end(), id);
  }
  /// Calls `visit` with the reads of `value`.
  template <typename Visit>
  void each_read(NodeId value, const Visit& visit) const {
    const auto of = [&](std::size_t i) { return reads.reads[i].value; };
    auto at = std::lower_bound(by_value.begin(), by_value.end(), value,
                               [&](std::size_t i, NodeId id) { return of(i) < id; });
    for (; at != by_value.end() && of(*at) == value; ++at) visit(reads.reads[*at]);
  }
};

/// A mapping a group may take over.
struct Option {
  std::int64_t bytes = 0;  ///< stay in the block
  std::size_t with = 0;
  bool found = false, dissolve = false;
  Slot slot;    ///< dissolve: the other group with this one in it
  Dealt dealt;  ///< else: this group's from now on
};

class Adaptation {
 public:
  Adaptation(const Body& body, const Candidates& candidates, std::vector<OpGroup> groups, bool merge,
             std::int64_t sms)
      : body_(body), nodes_(*body.nodes), candidates_(candidates), merge_(merge), sms_(sms) {
    for (OpGroup& group : groups) {
      slots_.push_back(make_slot(std::move(group)));
      enlist(slots_.size() - 1);
    }
  }

  std::vector<OpGroup> run(Recorder& recorder) {
    // A group that grew may fit others better than before.
    bool changed = true;
    for (int sweep = 0; changed && sweep < kMaxSweeps; ++sweep) {
      changed = false;
      for (std::size_t g = 0; g < slots_.size(); ++g) {
        if (!slots_[g].alive) continue;
        Option best = find_option(g);
        if (!best.found) continue;
        changed = true;
        recorder.add("locality", nodes_.name(slots_[g].group.dominant),
                     nodes_.name(slots_[best.with].group.dominant), [&] {
                       return Verdict::yes(
                           "astitch.proactive-locality",
                           fmt::format("takes over its mapping: {} bytes stay in the block", best.bytes));
                     });
        if (best.dissolve) {
          strike(g);
          strike(best.with);
          slots_[g] = {};
          slots_[g].alive = false;
          slots_[best.with] = std::move(best.slot);
          enlist(best.with);
        } else {
          slots_[g].group.mapping = best.dealt.mapping;
          slots_[g].group.deal = best.dealt.deal;
          slots_[g].version = ++versions_;
        }
      }
    }
    std::vector<OpGroup> groups;
    for (Slot& slot : slots_)
      if (slot.alive) groups.push_back(std::move(slot.group));
    std::sort(groups.begin(), groups.end(), [](const OpGroup& a, const OpGroup& b) {
      return a.materialised.front() < b.materialised.front();
    });
    return groups;
  }

 private:
  Slot make_slot(OpGroup group) {
    GroupReads reads = group_reads(body_, candidates_, group);
    return make_slot(std::move(group), std::move(reads));
  }

  Slot make_slot(OpGroup group, GroupReads reads) {
    Slot slot{std::move(group), std::move(reads), {}, ++versions_};
    slot.by_value.resize(slot.reads.reads.size());
    std::iota(slot.by_value.begin(), slot.by_value.end(), std::size_t{0});
    std::stable_sort(slot.by_value.begin(), slot.by_value.end(), [&](std::size_t a, std::size_t b) {
      return slot.reads.reads[a].value < slot.reads.reads[b].value;
    });
    return slot;
  }

  /// `into` with the ops of `added`: what it read before it still reads, where they left its placements
  /// alone.
  Slot grown(const Slot& into, OpGroup group, const OpGroup& added) {
    const bool same = std::all_of(
        into.group.materialised.begin(), into.group.materialised.end(),
        [&](NodeId id) { return group.placements->at(id).map == into.group.placements->at(id).map; });
    if (!same) return make_slot(std::move(group));
    GroupReads reads = group_reads(body_, candidates_, group, added.materialised);
    reads.reads.insert(reads.reads.end(), into.reads.reads.begin(), into.reads.reads.end());
    return make_slot(std::move(group), std::move(reads));
  }

  /// Enters a slot into the tables of who makes and who reads a value.
  void enlist(std::size_t s) {
    for (const NodeId id : slots_[s].group.materialised) makers_[id] = s;
    for (const std::size_t i : slots_[s].by_value) {
      std::vector<std::size_t>& readers = readers_[slots_[s].reads.reads[i].value];
      const auto at = std::lower_bound(readers.begin(), readers.end(), s);
      if (at == readers.end() || *at != s) readers.insert(at, s);
    }
  }

  void strike(std::size_t s) {
    for (const NodeId id : slots_[s].group.materialised) makers_.erase(id);
    for (const Read& read : slots_[s].reads.reads) std::erase(readers_[read.value], s);
  }

  /// The values a group makes or reads: no others change sides with it. Ascending.
  static std::vector<NodeId> exchanged(const Slot& slot) {
    std::vector<NodeId> values = slot.group.materialised;
    for (const Read& read : slot.reads.reads) values.push_back(read.value);
    std::sort(values.begin(), values.end());
    values.erase(std::unique(values.begin(), values.end()), values.end());
    return values;
  }

  /// The slots that make what `g` reads or read what it makes, ascending.
  std::vector<std::size_t> neighbours(std::size_t g) const {
    std::vector<std::size_t> result;
    for (const Read& read : slots_[g].reads.reads) {
      if (const auto maker = makers_.find(read.value); maker != makers_.end())
        result.push_back(maker->second);
    }
    for (const NodeId id : slots_[g].group.materialised) {
      if (const auto readers = readers_.find(id); readers != readers_.end())
        result.insert(result.end(), readers->second.begin(), readers->second.end());
    }
    std::sort(result.begin(), result.end());
    result.erase(std::unique(result.begin(), result.end()), result.end());
    std::erase(result, g);
    return result;
  }

  Option find_option(std::size_t g) {
    Option best;
    const Slot& slot = slots_[g];
    if (!slot.group.elementwise) return best;
    std::vector<NodeId> values;
    for (const std::size_t with : neighbours(g)) {
      const OpGroup& other = slots_[with].group;
      if (segments(other.mapping) > 1 || extents(other.mapping).rows <= 0) continue;
      const std::int64_t own_blocks = slot.group.deal.blocks(), blocks = other.deal.blocks();
      if (blocks * kFewerBlocks < own_blocks || blocks * kFewerSms < std::min(own_blocks, sms_)) continue;
      if (!tried_.insert({slot.version, slots_[with].version}).second) continue;
      if (values.empty()) {
        values = exchanged(slot);
        best.bytes = local_bytes(slot, {g}, values);
      }
      try_dissolving(g, with, values, best);
      if (other.deal.cluster == 1) try_alongside(g, with, values, best);
    }
    return best;
  }

  /// Whether each of the group's values may lie in the other's domain one to one, or one a row, by its size.
  bool may_lie_in(const OpGroup& group, const Extents& domain) const {
    return std::all_of(group.materialised.begin(), group.materialised.end(), [&](NodeId id) {
      const std::int64_t elements = nodes_[id].elements;
      return elements == domain.elements() || elements == domain.rows;
    });
  }

  /// Where the other group's mapping propagates to all of this one: one group is better than two, values of
  /// one mapping stay in registers; so it wins at equal bytes.
  void try_dissolving(std::size_t g, std::size_t with, const std::vector<NodeId>& values, Option& best) {
    const OpGroup& other = slots_[with].group;
    if (!merge_ || !may_lie_in(slots_[g].group, extents(other.mapping))) return;
    std::vector<NodeId> together;
    std::merge(slots_[g].group.materialised.begin(), slots_[g].group.materialised.end(),
               other.materialised.begin(), other.materialised.end(), std::back_inserter(together));
    OpGroup changed;
    if (!make_group(body_, candidates_, other.dominant, std::move(together), {other.mapping, other.deal},
                    changed))
      return;
    Slot slot = grown(slots_[with], std::move(changed), slots_[g].group);
    const std::int64_t bytes =
        local_bytes(slot, {g, with}, values) - local_bytes(slots_[with], {with}, values);
    if (bytes <= 0 || bytes < best.bytes || (bytes == best.bytes && best.dissolve)) return;
    best = {bytes, with, true, true, std::move(slot), {}};
  }

  void try_alongside(std::size_t g, std::size_t with, const std::vector<NodeId>& values, Option& best) {
    OpGroup& group = slots_[g].group;
    const OpGroup& other = slots_[with].group;
    const std::int64_t elements = nodes_[group.dominant].elements;
    if (elements % extents(other.mapping).rows != 0) return;
    Dealt dealt = map_alongside(elements, other.mapping, other.deal);
    // The same domain, only dealt out otherwise: its ops lie in it, and read, as before.
    SW_CHECK(is<mapping::Elements>(group.mapping) && extents(group.mapping).rows == elements);
    const auto swap = [&] {
      std::swap(group.mapping, dealt.mapping);
      std::swap(group.deal, dealt.deal);
    };
    swap();
    const std::int64_t bytes = local_bytes(slots_[g], {g}, values);
    swap();
    if (bytes > best.bytes) best = {bytes, with, true, false, {}, dealt};
  }

  /// Bytes of those `values` that `slot` makes or reads and that no reader needs from another block, if it
  /// stands in place of the slots `replaced`.
  std::int64_t local_bytes(const Slot& slot, const std::vector<std::size_t>& replaced,
                           const std::vector<NodeId>& values) const {
    const auto is_local = [&](NodeId value) {
      bool read = false, local = true;
      const auto weigh = [&](const Slot& reader, const Slot& producer, const Read& r) {
        read = true;
        local = local && block_local(nodes_, producer.group, reader.group, r);
      };
      const bool own = slot.makes(value);
      const auto maker = makers_.find(value);
      slot.each_read(value, [&](const Read& r) {
        if (own)
          weigh(slot, slot, r);
        else if (maker != makers_.end())
          weigh(slot, slots_[maker->second], r);
      });
      if (const auto readers = readers_.find(value); own && readers != readers_.end()) {
        for (const std::size_t other : readers->second) {
          if (!local) break;
          if (std::find(replaced.begin(), replaced.end(), other) != replaced.end()) continue;
          slots_[other].each_read(value, [&](const Read& r) { weigh(slots_[other], slot, r); });
        }
      }
      return read && local;
    };
    std::int64_t bytes = 0;
    for (const NodeId id : values) {
      if (is_local(id)) bytes += nodes_.bytes(id);
    }
    return bytes;
  }

  const Body& body_;
  const Nodes& nodes_;
  const Candidates& candidates_;
  bool merge_;
  std::int64_t sms_;
  std::vector<Slot> slots_;
  std::unordered_map<NodeId, std::size_t> makers_;                ///< of each value, by slot
  std::unordered_map<NodeId, std::vector<std::size_t>> readers_;  ///< of each value, ascending
  std::set<std::pair<int, int>> tried_;  ///< versions of a group and of the one it could follow
  int versions_ = 0;
};

}  // namespace

std::vector<OpGroup> adapt_groups(const Body& body, const Candidates& candidates, std::vector<OpGroup> groups,
                                  bool merge, int sms, Recorder& recorder) {
  return Adaptation(body, candidates, std::move(groups), merge, sms).run(recorder);
}

}  // namespace stitchwork::astitch
