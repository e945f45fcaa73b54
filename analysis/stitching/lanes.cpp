#include "analysis/stitching/lanes.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <iterator>
#include <limits>
#include <optional>

#include "analysis/stitching/mapping_tuned.h"
#include "core/base/arithmetic.h"
#include "core/base/disjoint_sets.h"

namespace stitchwork::astitch {
namespace {

/// Halvings of the interval in which the busiest block's time is searched.
/// Derived from the precision wanted: 2^-40 of the interval is below a nanosecond of any time.
constexpr int kSearchSteps = 40;

/// Tied groups: one range of blocks.
struct Set {
  std::vector<std::size_t> groups;
  std::set<int> phases;
  std::int64_t tasks = 1, tasks_per_block = 1, blocks = 1;
  int cluster = 1;
  double us_a_task = 0;  ///< of all its groups; 0: not asked for yet
  std::int64_t first_block = 0;
  std::size_t host = 0;  ///< the set in whose one block it runs in turn; else itself

  double block_us() const { return static_cast<double>(tasks_per_block) * us_a_task; }
};

/// Which blocks run the sets of a phase.
struct Dealing {
  struct Share {
    std::int64_t blocks = 1, tasks_per_block = 1;
    std::size_t host = 0;
  };
  std::vector<Share> shares;  ///< by active set
  std::int64_t blocks = 0;    ///< of all
  double busiest_us = 0;
};

class LaneAssignment {
 public:
  LaneAssignment(const Body& body, const std::vector<OpGroup>& groups, const Finalization& finalization,
                 const MappingLimits& limits, const WaveUs& wave_us)
      : body_(body),
        nodes_(*body.nodes),
        groups_(groups),
        finalization_(finalization),
        limits_(limits),
        wave_us_(wave_us) {}

  std::vector<Set> run(Recorder& recorder) {
    std::vector<Set> sets = tied_sets();
    const std::vector<Set> as_they_are = sets;
    const bool fit = deal(sets, recorder) && place(sets);
    return fit ? sets : as_they_are;
  }

 private:
  /// Blocks that may be alive at once; more than there can be where nobody waits for the others.
  std::int64_t room() const {
    const bool bounded = limits_.one_wave || finalization_.grid_barriers > 0;
    return bounded ? limits_.blocks_per_wave : std::numeric_limits<std::int32_t>::max();
  }

  std::vector<Set> tied_sets() const {
    DisjointSets<std::size_t> tied;
    for (std::size_t g = 0; g < groups_.size(); ++g) {
      for (const NodeId value : finalization_.near[g])
        tied.join(static_cast<std::size_t>(group_of(groups_, value)), g);
    }
    // Groups of one mapping that may keep a value in registers from one to the other.
    std::map<NodeId, std::vector<std::size_t>> holders;
    for (std::size_t g = 0; g < groups_.size(); ++g)
      for (const NodeId value : resident_values(groups_[g])) holders[value].push_back(g);
    for (const auto& [value, by] : holders) {
      for (std::size_t a = 0; a < by.size(); ++a) {
        for (std::size_t b = a + 1; b < by.size(); ++b) {
          if (tied.find(by[a]) != tied.find(by[b]) && groups_[by[a]].mapping == groups_[by[b]].mapping &&
              groups_[by[a]].deal == groups_[by[b]].deal)
            tied.join(by[a], by[b]);
        }
      }
    }
    std::map<std::size_t, Set> sets;
    for (std::size_t g = 0; g < groups_.size(); ++g) {
      const OpGroup& group = groups_[g];
      Set& set = sets[tied.find(g)];
      set.groups.push_back(g);
      set.tasks = group.deal.tasks;
      set.tasks_per_block = group.deal.most_tasks();
      set.blocks = group.deal.blocks();
      set.cluster = group.deal.cluster;
      for (const NodeId id : group.materialised) {
        const int level = finalization_.levels.at(id);
        set.phases.insert(level);
        // The fold of partials whose result is an output.
        const bool partials = is_across(group, id) || (segments(group.mapping) > 1 && nodes_[id].reduction);
        if (partials && body_.outputs.contains(id)) {
          set.phases.insert(level + 1);
        }
      }
    }
    std::vector<Set> result;
    for (auto& [root, set] : sets) {
      set.host = result.size();
      result.push_back(std::move(set));
    }
    return result;
  }

  /// What may stay in registers from one group to another of the same mapping: a block has one task. Of a
  /// value that is spread, turned or cut that is what it is made of: a scalar that all read ties none.
  std::vector<NodeId> resident_values(const OpGroup& group) const {
    if (group.deal.most_tasks() > 1) return {};
    std::set<NodeId> values;
    for (const NodeId op : group.ops) {
      if (nodes_[op].elements > kTyingElements && !nodes_[op].transparent) values.insert(op);
      for (NodeId operand : nodes_.node(op).operands) {
        while (nodes_[operand].transparent && !nodes_.node(operand).operands.empty())
          operand = nodes_.node(operand).operands[0];
        if (nodes_[operand].elements > kTyingElements && !nodes_[operand].immediate) values.insert(operand);
      }
    }
    return {values.begin(), values.end()};
  }

  /// Of one task of each of the sets, asked for where it decides anything.
  void time_tasks(std::vector<Set>& sets, const std::vector<std::size_t>& active) const {
    for (const std::size_t s : active) {
      Set& set = sets[s];
      if (set.us_a_task > 0) continue;
      for (const std::size_t g : set.groups) set.us_a_task += wave_us_(g);
    }
  }

  /// Tasks a block so that every phase fits; false if one after the other is no slower.
  bool deal(std::vector<Set>& sets, Recorder& recorder) const {
    std::set<int> phases;
    for (const Set& set : sets) phases.insert(set.phases.begin(), set.phases.end());
    std::vector<bool> settled(sets.size(), false);
    for (const int phase : phases) {
      std::vector<std::size_t> active;
      std::int64_t needed = 0;
      for (std::size_t s = 0; s < sets.size(); ++s) {
        if (!sets[s].phases.contains(phase)) continue;
        active.push_back(s);
        if (!sets[sets[s].host].phases.contains(phase) || sets[s].host == s) needed += sets[s].blocks;
      }
      if (active.size() > 1 && needed > room()) {
        time_tasks(sets, active);
        double in_turn = 0, longest = 0;  // us of block 0 if all ran there; of the busiest block side by side
        for (const std::size_t s : active) {
          in_turn += sets[s].block_us();
          longest = std::max(longest, sets[s].block_us());
        }
        const double side_by_side = fit(sets, active, settled, longest, in_turn);
        const std::string name = nodes_.name(groups_[sets[active.front()].groups.front()].dominant);
        const bool better = side_by_side < in_turn;
        recorder.add("launch", name, "", [&] {
          const std::string why =
              fmt::format("{} lanes in phase {}: {:.2f} us side by side, {:.2f} us in turn", active.size(),
                          phase, side_by_side, in_turn);
          return better ? Verdict::yes("astitch.lanes", why) : Verdict::no("astitch.lanes", why);
        });
        if (!better) return false;
      }
      for (const std::size_t s : active) settled[s] = true;
    }
    return true;
  }

  /// Deals the tasks of the sets not settled so that the busiest block ends soonest; returns when, or
  /// `in_turn` where they do not fit in that time.
  double fit(std::vector<Set>& sets, const std::vector<std::size_t>& active, const std::vector<bool>& settled,
             double longest, double in_turn) const {
    std::optional<Dealing> best = soonest(sets, active, settled, longest, in_turn, false);
    std::optional<Dealing> packed = soonest(sets, active, settled, longest, in_turn, true);
    if (packed && (!best || packed->busiest_us < best->busiest_us * (1 - kIndifference))) best = packed;
    if (!best) return in_turn;
    for (std::size_t a = 0; a < active.size(); ++a) {
      Set& set = sets[active[a]];
      set.blocks = best->shares[a].blocks;
      set.tasks_per_block = best->shares[a].tasks_per_block;
      set.host = best->shares[a].host;
    }
    return best->busiest_us;
  }

  std::optional<Dealing> soonest(const std::vector<Set>& sets, const std::vector<std::size_t>& active,
                                 const std::vector<bool>& settled, double longest, double in_turn,
                                 bool pack) const {
    const auto dealt = [&](double us) { return deal_within(sets, active, settled, us, pack); };
    Dealing best = dealt(in_turn);
    if (best.blocks > room()) return std::nullopt;
    if (Dealing first = dealt(longest); first.blocks <= room()) return first;
    double low = longest, high = in_turn;
    for (int step = 0; step < kSearchSteps && low < high; ++step) {
      const double middle = (low + high) / 2;
      Dealing tried = dealt(middle);
      if (tried.blocks > room()) {
        low = middle;
      } else {
        high = middle;
        best = std::move(tried);
      }
    }
    return best;
  }

  /// As few blocks as end within `us` each. With `pack`, sets of one block share blocks: the longest go
  /// first, each into the first block that has room (first fit decreasing).
  Dealing deal_within(const std::vector<Set>& sets, const std::vector<std::size_t>& active,
                      const std::vector<bool>& settled, double us, bool pack) const {
    Dealing result;
    std::vector<std::size_t> small;  // of one block, by place in `active`
    for (std::size_t a = 0; a < active.size(); ++a) {
      const Set& set = sets[active[a]];
      Dealing::Share share{set.blocks, set.tasks_per_block, set.host};
      if (!settled[active[a]] && set.cluster == 1) {
        const auto each = static_cast<std::int64_t>(std::floor(us / set.us_a_task * (1 + 1e-9)));
        share.blocks = ceil_div(set.tasks, std::clamp<std::int64_t>(each, set.tasks_per_block, set.tasks));
        share.tasks_per_block = ceil_div(set.tasks, share.blocks);
        if (pack && share.blocks == 1) small.push_back(a);
      }
      const bool host_elsewhere = !std::binary_search(active.begin(), active.end(), share.host);
      if (share.host == active[a] || host_elsewhere) result.blocks += share.blocks;
      result.busiest_us =
          std::max(result.busiest_us, static_cast<double>(share.tasks_per_block) * set.us_a_task);
      result.shares.push_back(share);
    }
    const auto time = [&](std::size_t a) {
      return static_cast<double>(result.shares[a].tasks_per_block) * sets[active[a]].us_a_task;
    };
    std::stable_sort(small.begin(), small.end(),
                     [&](std::size_t a, std::size_t b) { return time(a) > time(b); });
    std::vector<std::pair<double, std::size_t>> shared;  // blocks: time taken, the set that came first
    result.blocks -= static_cast<std::int64_t>(small.size());
    for (const std::size_t a : small) {
      const auto block = std::find_if(shared.begin(), shared.end(), [&](const auto& candidate) {
        return candidate.first + time(a) <= us * (1 + 1e-9);
      });
      if (block == shared.end()) {
        shared.emplace_back(time(a), active[a]);
      } else {
        block->first += time(a);
        result.shares[a].host = block->second;
        result.busiest_us = std::max(result.busiest_us, block->first);
      }
      if (static_cast<std::int64_t>(shared.size()) > room()) break;
    }
    result.blocks += static_cast<std::int64_t>(shared.size());
    return result;
  }

  /// First fit: each set at the first block from which on its range is free in all its phases, and those of
  /// the sets that share its block.
  bool place(std::vector<Set>& sets) const {
    std::vector<std::set<int>> phases;
    for (const Set& set : sets) phases.push_back(set.phases);
    for (std::size_t s = 0; s < sets.size(); ++s)
      if (sets[s].host != s) phases[sets[s].host].insert(sets[s].phases.begin(), sets[s].phases.end());
    std::map<int, std::vector<std::pair<std::int64_t, std::int64_t>>> taken;  // by phase, ascending
    for (std::size_t s = 0; s < sets.size(); ++s) {
      Set& set = sets[s];
      if (set.host != s) continue;
      // A range taken in any of its phases moves the set behind it, which may move it into another.
      set.first_block = 0;
      for (bool moved = true; moved;) {
        moved = false;
        for (const int phase : phases[s]) {
          for (const auto& [first, end] : taken[phase]) {
            if (first >= set.first_block + set.blocks) break;
            if (end <= set.first_block) continue;
            set.first_block = round_up(end, set.cluster);
            moved = phases[s].size() > 1;
          }
        }
      }
      if (set.first_block + set.blocks > room()) return false;
      for (const int phase : phases[s]) {
        const std::pair range(set.first_block, set.first_block + set.blocks);
        auto& ranges = taken[phase];
        ranges.insert(std::lower_bound(ranges.begin(), ranges.end(), range), range);
      }
    }
    for (Set& set : sets) set.first_block = sets[set.host].first_block;
    return true;
  }

  const Body& body_;
  const Nodes& nodes_;
  const std::vector<OpGroup>& groups_;
  const Finalization& finalization_;
  const MappingLimits& limits_;
  const WaveUs& wave_us_;
};

}  // namespace

std::vector<OpGroup> assign_lanes(const Body& body, std::vector<OpGroup> groups,
                                  const Finalization& finalization, const MappingLimits& limits,
                                  const WaveUs& wave_us, Recorder& recorder) {
  if (groups.size() < 2) return groups;
  const std::vector<Set> sets = LaneAssignment(body, groups, finalization, limits, wave_us).run(recorder);
  std::set<std::int64_t> starts;
  for (const Set& set : sets) starts.insert(set.first_block);
  for (const Set& set : sets) {
    for (const std::size_t g : set.groups) {
      OpGroup& group = groups[g];
      group.lane = static_cast<int>(std::distance(starts.begin(), starts.find(set.first_block)));
      group.deal.first_block = set.first_block;
      group.deal.takers = set.blocks / set.cluster;
    }
  }
  return groups;
}

}  // namespace stitchwork::astitch
