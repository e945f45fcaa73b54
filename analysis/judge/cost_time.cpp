#include <algorithm>
#include <cmath>
#include <iterator>
#include <set>
#include <span>

#include "analysis/judge/cost_access.h"
#include "analysis/judge/cost_internal.h"
#include "analysis/plan/mapping.h"

namespace stitchwork::costs {

namespace {

/// What the blocks of a phase do: all of them alike, some of them beside, and those that have a task of a
/// loop more than others then.
struct BlockWorks {
  struct Uneven {
    Deal deal;
    ThreadWork fewer, more;  ///< less and more than a block's share
  };
  ThreadWork alike;
  std::map<std::int64_t, ThreadWork> begins, ends;  ///< of ranges of blocks
  std::vector<Uneven> uneven;

  /// `loops`: what each does, all of its blocks together; without a deal, all blocks of the `grid`. `all`:
  /// their sum.
  BlockWorks(std::span<const std::pair<std::optional<Deal>, ThreadWork>> loops, const ThreadWork& all,
             std::int64_t grid) {
    const double every = 1.0 / static_cast<double>(grid);
    alike = all * every;
    for (const auto& [of, work] : loops) {
      if (!of) continue;
      const Deal& deal = *of;
      const ThreadWork each = work * (1.0 / static_cast<double>(deal.blocks()));
      if (deal.tasks % deal.takers != 0) {
        const double share = static_cast<double>(deal.tasks) / static_cast<double>(deal.takers);
        const double least = std::floor(share);
        uneven.push_back({deal, each * (least / share - 1), each * ((least + 1) / share - 1)});
      }
      if (deal.blocks() == grid) continue;
      begins[deal.first_block] += each;
      ends[deal.end_block()] += each;
      alike += work * -every;
    }
  }

  bool all_alike() const { return begins.empty() && uneven.empty(); }
  /// Of what the block before `b` does, were tasks dealt evenly, makes what block `b` does.
  void step_to(std::int64_t b, ThreadWork& block) const {
    if (const auto ending = ends.find(b); ending != ends.end()) block += ending->second * -1;
    if (const auto beginning = begins.find(b); beginning != begins.end()) block += beginning->second;
  }
};

}  // namespace

Stretch KernelCounter::at_once(const Phase& phase, const ThreadWork& all) const {
  const std::int64_t grid = kernel_.launch.grid;
  const BlockWorks works(phase.work, all, grid);
  Stretch s{.waves = 1, .blocks = static_cast<double>(grid), .all = all};
  if (works.all_alike()) {
    s.longest_block = works.alike;
    s.busiest_sm = works.alike * std::ceil(s.blocks / device_.sms);
    return s;
  }
  const auto sms = static_cast<std::size_t>(std::min<std::int64_t>(grid, device_.sms));
  std::vector<ThreadWork> of_sm(sms);
  ThreadWork block = works.alike;
  for (std::int64_t b = 0; b < grid; ++b) {
    works.step_to(b, block);
    ThreadWork of_block = block;
    for (const BlockWorks::Uneven& loop : works.uneven) {
      const Deal& deal = loop.deal;
      if (b < deal.first_block || b >= deal.end_block()) continue;
      const std::int64_t taker = (b - deal.first_block) / deal.cluster;
      const std::int64_t tasks = (taker + 1) * deal.tasks / deal.takers - taker * deal.tasks / deal.takers;
      of_block += tasks == deal.tasks / deal.takers ? loop.fewer : loop.more;
    }
    of_sm[static_cast<std::size_t>(b) % sms] += of_block;
    s.longest_block.raise_to(of_block);
  }
  for (const ThreadWork& sm : of_sm) s.busiest_sm.raise_to(sm);
  return s;
}

std::vector<Stretch> KernelCounter::in_waves(const Phase& phase, const ThreadWork& all,
                                             double dram_sectors) const {
  const std::int64_t grid = kernel_.launch.grid;
  std::vector<Stretch> waves = stretches(device_, grid, work_.blocks_per_sm, all, dram_sectors, 1);
  const BlockWorks works(phase.work, all, grid);
  if (works.all_alike()) return waves;
  Stretch& full = waves[0];
  const auto resident = static_cast<std::int64_t>(full.blocks);
  const double in_tail = 1 - full.waves * full.blocks / static_cast<double>(grid);
  const ThreadWork mean = all * (1.0 / static_cast<double>(grid));
  std::set<std::int64_t> bounds{0, grid};  // Blocks between two of them are alike.
  for (const auto& [b, work] : works.begins) bounds.insert(b);
  for (const auto& [b, work] : works.ends) bounds.insert(b);
  ThreadWork before, block = works.alike;
  for (auto b = bounds.begin(); *b < grid; ++b) {
    works.step_to(*b, block);
    const std::int64_t last = *std::next(b) - 1;
    ThreadWork longest = block;
    for (const BlockWorks::Uneven& loop : works.uneven)
      if (*b >= loop.deal.first_block && *b < loop.deal.end_block()) longest += loop.more;
    before += block * static_cast<double>(last - *b);
    ThreadWork of_sm = longest, of_place = longest;
    if (last >= resident) {
      // It begins when the blocks before it have been dealt, in place of one like the others.
      of_sm += before * (1.0 / device_.sms) + mean * -1;
      of_place += before * (1.0 / full.blocks) + mean * -1;
    }
    full.busiest_sm.raise_to(of_sm + all * (-in_tail / device_.sms));
    full.longest_block.raise_to(of_place + all * (-in_tail / full.blocks));
    before += block;
  }
  return waves;
}

double KernelCounter::fullest_tile() const {
  if (kernel_.groups.size() != 1 || kernel_.launch.grid > device_.sms) return 1;
  const Mapping& m = kernel_.groups[0].mapping;
  return is<mapping::Columns>(m) ? whole_tile_share(extents(m).rows, task_rows(m)) : 1;
}

double KernelCounter::least_us() const {
  // No quantity: more than what sums of as many terms in another order differ by.
  constexpr double kRounding = 1e-9;
  ThreadWork all;
  for (const auto& [level, phase] : phases_)
    for (const auto& [deal, work] : phase.work) all += work;
  // Waiting for memory depends on how much of it there is in the end.
  all.l2_sectors = all.l2_atomic_sectors = all.l2_atomic_conflicts = all.l1_hit_sectors = 0;
  all.global_accesses = all.remote_accesses = all.cluster_barriers = all.bulk_round_trips = 0;
  const auto grid = static_cast<double>(kernel_.launch.grid);
  LaunchWork launch{.threads_per_block = kernel_.launch.block,
                    .blocks_per_sm = std::max(1, blocks_per_sm()),
                    .grid_blocks = kernel_.launch.grid};
  const double resident = std::min(grid, static_cast<double>(device_.sms) * launch.blocks_per_sm);
  Stretch s{.blocks = resident, .all = all};
  s.busiest_sm = all * (1 / std::min(grid, static_cast<double>(device_.sms)));
  s.longest_block = all * (1 / resident);
  launch.stretches.push_back(s);
  return kernel_time(device_, launch).total_us * (1 - kRounding);
}

void KernelCounter::finish() {
  const KernelLaunch& launch = kernel_.launch;
  count_blocks();
  work_.grid_blocks = launch.grid;
  work_.threads_per_block = launch.block;
  work_.blocks_per_sm = std::max(1, blocks_per_sm());
  if (loads_made_ > 0) work_.independent_loads = loads_in_flight_ / loads_made_;
  work_.grid_barriers = launch.grid_barriers;
  work_.phases = launch.grid_barriers + 1;
  LaunchWork timed{.threads_per_block = work_.threads_per_block,
                   .blocks_per_sm = work_.blocks_per_sm,
                   .grid_blocks = work_.grid_blocks,
                   .grid_barriers = work_.grid_barriers,
                   .independent_loads = work_.independent_loads};
  double of_busiest = 0;
  for (auto& [level, phase] : phases_) of_busiest += add_phase(phase, timed);
  if (work_.warp_instructions > 0) work_.busiest_sm = of_busiest / work_.warp_instructions;
  // Barriers within a phase: behind each, partial results come from the L2.
  for (int p = static_cast<int>(phases_.size()); p < work_.phases; ++p) {
    const ThreadWork fetch{.l2_sectors = static_cast<double>(launch.grid)};
    for (const Stretch& s : stretches(device_, launch.grid, work_.blocks_per_sm, fetch, 0, 1))
      timed.stretches.push_back(s);
  }
  cost_.work = work_;
  describe(kernel_time(device_, timed));
  cost_.predicted_us = cost_.timed.time.total_us;
}

void KernelCounter::describe(const KernelTime& time) {
  TimedKernel& k = cost_.timed;
  k.time = time;
  k.blocks_per_sm = work_.blocks_per_sm;
  k.has_block_barriers = !kernel_.shared.empty();
  k.moves_indices = std::ranges::any_of(kernel_.ops, [&](NodeId id) {
    const Op op = computation_.node(id).op;
    return op == Op::kGather || op == Op::kReshape || op == Op::kTranspose;
  });
  k.grid_barriers = work_.grid_barriers;
  k.l2_hit_sectors = std::max(0.0, work_.l2_sectors - work_.dram_sectors);
  for (const auto& [level, phase] : phases_)
    k.same_address_atomics = std::max(k.same_address_atomics, phase.same_address_atomics);
  k.cluster_requests = work_.remote_accesses + work_.cluster_barriers;
  k.bulk_copies = work_.bulk_round_trips;
}

double KernelCounter::add_phase(Phase& phase, LaunchWork& timed) {
  ThreadWork w;
  for (const auto& [deal, work] : phase.work) w += work;
  const double dram_sectors = phase.dram_bytes / kSectorBytes;
  w.l2_sectors = std::max(w.l2_sectors, dram_sectors);
  work_.dram_sectors += dram_sectors;
  static_cast<ThreadWork&>(work_) += w;
  if (work_.grid_blocks > static_cast<std::int64_t>(device_.sms) * work_.blocks_per_sm) {
    for (const Stretch& s : in_waves(phase, w, dram_sectors)) {
      timed.stretches.push_back(s);
      timed.stretches.back().same_address_atomics =
          phase.same_address_atomics * s.waves * s.blocks / static_cast<double>(work_.grid_blocks);
    }
    return w.warp_instructions;
  }
  Stretch& s = timed.stretches.emplace_back(at_once(phase, w));
  const double fullest = fullest_tile();
  s.longest_block = s.longest_block * fullest;
  s.busiest_sm = s.busiest_sm * fullest;
  s.dram_sectors = dram_sectors;
  s.same_address_atomics = phase.same_address_atomics;
  // An SM has as many blocks as any, or one less.
  return s.busiest_sm.warp_instructions * s.blocks / std::ceil(s.blocks / device_.sms);
}

}  // namespace stitchwork::costs
