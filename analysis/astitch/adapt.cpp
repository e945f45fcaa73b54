#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <utility>

#include "analysis/astitch/finalize.h"

namespace stitchwork::astitch {
namespace {

/// Sweeps over all groups; two settle all but contrived graphs.
constexpr int kMaxSweeps = 8;
/// A mapping that leaves a group less than this share of its blocks costs more than traffic: a tensor that
/// reads a scalar made in the kernel must not follow it into one block.
constexpr std::int64_t kFewerBlocks = 8;

/// A group with what it reads; `version` tells states of the groups apart.
struct Slot {
  OpGroup group;
  GroupReads reads;
  int version = 0;
};

/// A mapping a group may take over.
struct Option {
  std::int64_t bytes = 0;  ///< stay in the block
  std::size_t with = 0;
  bool found = false, dissolve = false;
  OpGroup group;
};

class Adaptation {
 public:
  Adaptation(const Body& body, const Candidates& candidates, std::vector<OpGroup> groups, bool merge)
      : body_(body), nodes_(*body.nodes), candidates_(candidates), merge_(merge) {
    for (OpGroup& group : groups) slots_.push_back(make_slot(std::move(group)));
  }

  std::vector<OpGroup> run(Recorder& recorder) {
    // A group that grew may fit others better than before.
    bool changed = true;
    for (int sweep = 0; changed && sweep < kMaxSweeps; ++sweep) {
      changed = false;
      for (std::size_t g = 0; g < slots_.size();) {
        Option best = find_option(g);
        if (!best.found) {
          ++g;
          continue;
        }
        changed = true;
        recorder.add("locality", nodes_.name(slots_[g].group.dominant),
                     nodes_.name(slots_[best.with].group.dominant), [&] {
                       return Verdict::yes(
                           "astitch.proactive-locality",
                           fmt::format("takes over its mapping: {} bytes stay in the block", best.bytes));
                     });
        if (best.dissolve) {
          slots_[best.with] = grown(slots_[best.with], std::move(best.group), slots_[g].group);
          slots_.erase(slots_.begin() + static_cast<std::ptrdiff_t>(g));
        } else {
          slots_[g++] = make_slot(std::move(best.group));
        }
      }
    }
    std::vector<OpGroup> groups;
    for (Slot& slot : slots_) groups.push_back(std::move(slot.group));
    std::sort(groups.begin(), groups.end(), [](const OpGroup& a, const OpGroup& b) {
      return a.materialised.front() < b.materialised.front();
    });
    return groups;
  }

 private:
  Slot make_slot(OpGroup group) {
    GroupReads reads = group_reads(body_, candidates_, group);
    return {std::move(group), std::move(reads), ++versions_};
  }

  /// `into` with the ops of `added`: what it read before it still reads, where they left its placements
  /// alone.
  Slot grown(const Slot& into, OpGroup group, const OpGroup& added) {
    const bool same = std::all_of(
        into.group.materialised.begin(), into.group.materialised.end(),
        [&](NodeId id) { return group.placements.at(id).map == into.group.placements.at(id).map; });
    if (!same) return make_slot(std::move(group));
    GroupReads reads = group_reads(body_, candidates_, group, added.materialised);
    reads.reads.insert(reads.reads.end(), into.reads.reads.begin(), into.reads.reads.end());
    return {std::move(group), std::move(reads), ++versions_};
  }

  /// The values a group makes or reads: no others change sides with it.
  static std::set<NodeId> exchanged(const Slot& slot) {
    std::set<NodeId> values(slot.group.materialised.begin(), slot.group.materialised.end());
    for (const Read& read : slot.reads.reads) values.insert(read.value);
    return values;
  }

  Option find_option(std::size_t g) {
    Option best;
    const Slot& slot = slots_[g];
    if (!slot.group.elementwise) return best;
    bool measured = false;
    for (std::size_t with = 0; with < slots_.size(); ++with) {
      const OpGroup& other = slots_[with].group;
      if (with == g || other.mapping.split > 1 || other.mapping.rows <= 0) continue;
      if (other.mapping.blocks * kFewerBlocks < slot.group.mapping.blocks) continue;
      if (!reads_from(slot, slots_[with]) && !reads_from(slots_[with], slot)) continue;
      if (!tried_.insert({slot.version, slots_[with].version}).second) continue;
      if (!measured) best.bytes = local_bytes(slot, {g}, exchanged(slot));
      measured = true;
      try_dissolving(g, with, best);
      try_alongside(g, with, best);
    }
    return best;
  }

  static bool reads_from(const Slot& reader, const Slot& producer) {
    const auto& values = producer.group.materialised;
    return std::any_of(reader.reads.reads.begin(), reader.reads.reads.end(), [&](const Read& read) {
      return std::binary_search(values.begin(), values.end(), read.value);
    });
  }

  /// Where the other group's mapping propagates to all of this one: one group is better than two, values of
  /// one mapping stay in registers; so it wins at equal bytes.
  void try_dissolving(std::size_t g, std::size_t with, Option& best) {
    if (!merge_) return;
    const OpGroup& other = slots_[with].group;
    std::vector<NodeId> together;
    std::merge(slots_[g].group.materialised.begin(), slots_[g].group.materialised.end(),
               other.materialised.begin(), other.materialised.end(), std::back_inserter(together));
    OpGroup changed;
    if (!make_group(body_, candidates_, other.dominant, std::move(together), other.mapping, changed)) return;
    const std::set<NodeId> values = exchanged(slots_[g]);
    const std::int64_t bytes = local_bytes(grown(slots_[with], changed, slots_[g].group), {g, with}, values) -
                               local_bytes(slots_[with], {with}, values);
    if (bytes <= 0 || bytes < best.bytes || (bytes == best.bytes && best.dissolve)) return;
    best = {bytes, with, true, true, std::move(changed)};
  }

  void try_alongside(std::size_t g, std::size_t with, Option& best) {
    const OpGroup& group = slots_[g].group;
    const ThreadMapping& other = slots_[with].group.mapping;
    const std::int64_t elements = nodes_[group.dominant].elements;
    if (elements % other.rows != 0) return;
    const ThreadMapping mapping = map_alongside(elements, other);
    OpGroup changed;
    if (!make_group(body_, candidates_, group.dominant, group.materialised, mapping, changed)) return;
    const std::int64_t bytes = local_bytes(make_slot(changed), {g}, exchanged(slots_[g]));
    if (bytes > best.bytes) best = {bytes, with, true, false, std::move(changed)};
  }

  /// Bytes of those `values` that `slot` makes or reads and that no reader needs from another block, if it
  /// stands in place of the slots `replaced`.
  std::int64_t local_bytes(const Slot& slot, const std::vector<std::size_t>& replaced,
                           const std::set<NodeId>& values) const {
    std::set<NodeId> local, elsewhere;
    const auto weigh = [&](const Slot& reader, const Slot& producer, const Read& read) {
      (block_local(nodes_, producer.group, reader.group, read) ? local : elsewhere).insert(read.value);
    };
    const auto makes = [](const Slot& s, NodeId id) {
      return std::binary_search(s.group.materialised.begin(), s.group.materialised.end(), id);
    };
    for (const Read& read : slot.reads.reads) {
      if (!values.contains(read.value)) continue;
      if (makes(slot, read.value)) {
        weigh(slot, slot, read);
        continue;
      }
      for (const Slot& producer : slots_) {
        if (makes(producer, read.value)) weigh(slot, producer, read);
      }
    }
    for (std::size_t other = 0; other < slots_.size(); ++other) {
      if (std::find(replaced.begin(), replaced.end(), other) != replaced.end()) continue;
      for (const Read& read : slots_[other].reads.reads) {
        if (values.contains(read.value) && makes(slot, read.value)) weigh(slots_[other], slot, read);
      }
    }
    std::int64_t bytes = 0;
    for (const NodeId id : local) {
      if (!elsewhere.contains(id)) bytes += nodes_.bytes(id);
    }
    return bytes;
  }

  const Body& body_;
  const Nodes& nodes_;
  const Candidates& candidates_;
  bool merge_;
  std::vector<Slot> slots_;
  std::set<std::pair<int, int>> tried_;  ///< versions of a group and of the one it could follow
  int versions_ = 0;
};

}  // namespace

std::vector<OpGroup> adapt_groups(const Body& body, const Candidates& candidates, std::vector<OpGroup> groups,
                                  bool merge, Recorder& recorder) {
  return Adaptation(body, candidates, std::move(groups), merge).run(recorder);
}

}  // namespace stitchwork::astitch
