#include "simulator/launch/scheduler.h"

#include <algorithm>
#include <atomic>
#include <exception>
#include <optional>

#include "core/base/error.h"
#include "simulator/check/apart.h"
#include "simulator/launch/waves.h"
#include "simulator/machine/cluster.h"

namespace stitchwork::sim {

namespace {

/// Each has shadow memory of its own.
constexpr int kMostCheckingThreads = 2;

class Schedule : public Waves {
 public:
  Schedule(const LaunchContext& context, const Residency& residency, L2State& l2)
      : Waves(context, residency, l2), cluster_blocks_(context.cluster.count()) {}

  ScheduleResult serial() {
    workers_.emplace_back(context_);
    units_.emplace_back();
    Cluster cluster(context_);
    for_waves([&](std::uint64_t begin, std::uint64_t end) {
      for (std::uint64_t b = begin; b < end; b += cluster_blocks_) {
        cluster.attach(workers_[0], units_[0].logs);
        run_cluster(cluster, b, &work_[b - begin]);
        units_[0].end_piece();
        if (units_[0].entries() > kMostEntries) replay(1);
      }
      replay(1);
    });
    return finish();
  }

  /// The blocks of a wave run on all threads and log what they access; then the logs are replayed into the L2
  /// side by side, each thread taking sets of its own. `contexts`: of each thread.
  ScheduleResult parallel(const std::vector<const LaunchContext*>& contexts) {
    const int threads = result_.host_threads = static_cast<int>(contexts.size());
    const auto crew_size = static_cast<std::uint64_t>(threads);
    std::vector<std::unique_ptr<Cluster>> clusters;
    for (const LaunchContext* context : contexts) {
      workers_.emplace_back(*context);
      clusters.push_back(std::make_unique<Cluster>(*context));
    }
    std::uint64_t entries_a_block = kMostEntries;
    Crew crew(threads);
    for_waves([&](std::uint64_t wave, std::uint64_t wave_end) {
      std::uint64_t units = 0, entries = 0;  // of what is not replayed yet
      for (std::uint64_t begin = wave; begin < wave_end;) {
        const std::uint64_t room = (kMostEntries - std::min(entries, kMostEntries)) / entries_a_block;
        const std::uint64_t end =
            std::min(wave_end, begin + whole_clusters(std::max(room, crew_size * kUnitsPerThread)));
        const std::uint64_t unit_blocks =
            whole_clusters(std::max<std::uint64_t>(1, (end - begin) / (crew_size * kUnitsPerThread)));
        const std::uint64_t unit_count = (end - begin + unit_blocks - 1) / unit_blocks;
        while (units_.size() < units + unit_count) units_.emplace_back();
        std::atomic<std::uint64_t> next_unit{0}, first_bad{~std::uint64_t{0}};
        std::vector<std::optional<FindingError>> errors(crew_size);
        std::vector<std::exception_ptr> failures(crew_size);
        crew.run([&](int t) {
          Cluster& cluster = *clusters[static_cast<std::size_t>(t)];
          try {
            for (std::uint64_t u = next_unit++; u < unit_count; u = next_unit++) {
              Logs& logs = units_[units + u];
              cluster.attach(workers_[static_cast<std::size_t>(t)], logs.logs);
              const std::uint64_t last = std::min(end, begin + (u + 1) * unit_blocks);
              for (std::uint64_t b = begin + u * unit_blocks; b < last && b < first_bad;
                   b += cluster_blocks_) {
                run_cluster(cluster, b, &work_[b - wave], first_bad, errors[static_cast<std::size_t>(t)]);
                logs.end_piece();
              }
            }
          } catch (...) {  // of the sanitizers: more than they can tell apart
            failures[static_cast<std::size_t>(t)] = std::current_exception();
            first_bad = 0;
          }
        });
        for (const std::exception_ptr& failure : failures)
          if (failure) std::rethrow_exception(failure);
        for (const auto& e : errors) {
          if (e && e->block_index == first_bad) throw *e;
        }
        std::uint64_t logged = 0;
        for (std::uint64_t u = units; u < units + unit_count; ++u) logged += units_[u].entries();
        entries_a_block = std::max<std::uint64_t>(1, logged / (end - begin));
        units += unit_count;
        entries += logged;
        begin = end;
        if (begin < wave_end && entries < kMostEntries) continue;
        replay(units, &crew, crew_size);
        units = entries = 0;
      }
    });
    return finish();
  }

  /// Blocks that wait for each other: all resident ones take turns, each running until it waits.
  ScheduleResult interleaved() {
    Worker& worker = workers_.emplace_back(context_);
    Logs logs;
    std::vector<L2Counters*> counters;  // of the pieces of `logs`: those of their phases
    const auto replay_round = [&] {
      std::vector<LogPiece> pieces;
      for (std::size_t p = 0; p < L2State::kPartitions && !counters.empty(); ++p) {
        logs.add_pieces(p, counters, pieces);
        replay_side_by_side(l2_, pieces);
      }
      logs.clear();
      counters.clear();
    };
    const std::uint64_t resident = std::min(grid_, residency_.blocks);
    std::vector<std::unique_ptr<Cluster>> clusters;
    std::vector<Block*> blocks;
    std::vector<std::uint64_t> position(resident);
    std::vector<bool> running(resident, true);
    std::uint64_t next = 0, finished = 0;
    Phases phases(*context_.device, grid_, residency_.blocks);
    const auto start_next = [&](Cluster& cluster, std::uint64_t first) {
      cluster.attach(worker, logs.logs);
      cluster.start(next / cluster_blocks_);
      for (std::uint64_t r = first; r < first + cluster_blocks_; ++r) {
        position[r] = next++;
        running[r] = true;
      }
    };
    while (next < resident) {
      Cluster& cluster = *clusters.emplace_back(std::make_unique<Cluster>(context_));
      for (std::size_t rank = 0; rank < cluster.size(); ++rank) blocks.push_back(&cluster.block(rank));
      start_next(cluster, next);
    }
    int idle_rounds = 0;
    std::uint64_t progress_before = 0;
    while (finished < grid_) {
      const std::uint64_t finished_before = finished;
      std::uint64_t progress = 0;
      for (std::uint64_t r = 0; r < resident; ++r) {
        if (!running[r]) continue;
        Block& block = *blocks[r];
        block.attach(worker, logs.logs);
        const std::size_t waits = block.waits.size();
        worker.updates.begin(Phases::phase_after(waits));
        const Block::Progress p = block.step();
        logs.end_piece();
        counters.push_back(&phases.l2_after(waits));
        if (logs.entries() > kMostEntries) replay_round();
        progress += block.progress;
        if (p != Block::Progress::kFinished) continue;
        phases.add(position[r], block.waits, block.take_work());
        ++finished;
        report(finished, warp_instructions(*context_.program, worker.bb_counts));
        running[r] = false;
        const std::uint64_t first = r / cluster_blocks_ * cluster_blocks_;
        const bool cluster_done =
            std::none_of(running.begin() + static_cast<std::ptrdiff_t>(first),
                         running.begin() + static_cast<std::ptrdiff_t>(first + cluster_blocks_),
                         [](bool runs) { return runs; });
        if (next < grid_ && cluster_done) start_next(*clusters[r / cluster_blocks_], first);
      }
      replay_round();
      const bool idle = finished == finished_before && progress == progress_before;
      progress_before = progress;
      idle_rounds = idle ? idle_rounds + 1 : 0;
      if (idle_rounds < kIdleRounds) continue;
      idle_rounds = 0;
      bool parted = false;
      for (std::uint64_t r = 0; r < resident; ++r) parted |= running[r] && blocks[r]->part(progress);
      if (parted) continue;
      for (auto& cluster : clusters) cluster->report_standstill();
      report_standstill(blocks, running, next);
    }
    account_wave(resident, warp_instructions(*context_.program, worker.bb_counts), 1);
    result_.grid_barriers = phases.grid_barriers();
    result_.stretches = phases.stretches(worker.updates);
    l2_counters_[0] = phases.l2();
    result_.blocks_simulated = grid_;
    return finish();
  }

 private:
  /// Pieces of a batch that a thread takes one after another, so that all end at about the same time.
  static constexpr std::uint64_t kUnitsPerThread = 8;
  /// Accesses logged before they are replayed: 128 MB, of a wave or of a round of blocks that wait for each
  /// other. Of a wave with more, those blocks go side by side whose logs fit: what they touch is 2 GB or more
  /// where accesses are coalesced, and no L2 holds a part of that which matters.
  static constexpr std::uint64_t kMostEntries = std::uint64_t{1} << 24;
  /// Rounds in which no block changed memory or passed a barrier before that counts as standing still.
  static constexpr int kIdleRounds = 64;

  [[noreturn]] void report_standstill(const std::vector<Block*>& blocks, const std::vector<bool>& running,
                                      std::uint64_t started) {
    std::size_t first = 0;
    while (!running[first]) ++first;
    if (started < grid_) {
      blocks[first]->raise_waiting(
          FindingKind::kGridDeadlock,
          fmt::format(
              "all {} resident blocks wait for the others: the grid has {} blocks, {} ({} an SM on "
              "{} SMs) are "
              "resident at once{}, so the {} not yet started never arrive",
              residency_.blocks, grid_, residency_.blocks, residency_.blocks_per_sm, context_.device->sms,
              cluster_blocks_ > 1 ? fmt::format(", in clusters of {} within a GPC", cluster_blocks_) : "",
              grid_ - started));
    }
    blocks[first]->raise_waiting(FindingKind::kLivelock,
                                 "all running blocks poll memory that none of them will change");
  }

  /// `blocks`, rounded up to whole clusters.
  std::uint64_t whole_clusters(std::uint64_t blocks) const {
    return (blocks + cluster_blocks_ - 1) / cluster_blocks_ * cluster_blocks_;
  }

  /// Runs the cluster that begins with block `b`, in the order of clusters.
  static void run_cluster(Cluster& cluster, std::uint64_t b, ThreadWork* work) {
    cluster.start(b / cluster.size());
    cluster.run();
    for (std::size_t rank = 0; rank < cluster.size(); ++rank) work[rank] = cluster.block(rank).total_work();
  }
  /// The same; a finding goes to `error`, and first_bad becomes the lowest such block with one.
  static void run_cluster(Cluster& cluster, std::uint64_t b, ThreadWork* work,
                          std::atomic<std::uint64_t>& first_bad, std::optional<FindingError>& error) {
    try {
      run_cluster(cluster, b, work);
    } catch (FindingError& e) {
      e.block_index = b;
      if (!error || e.block_index < error->block_index) error = e;
      std::uint64_t known = first_bad;
      while (b < known && !first_bad.compare_exchange_weak(known, b)) {
      }
    }
  }

  std::uint64_t cluster_blocks_;  ///< of which residency and grid are multiples
};

}  // namespace

ScheduleResult schedule(const LaunchContext& context, const Residency& residency, L2State& l2,
                        Sanitizer* sanitizer, int host_threads, bool sampled) {
  Schedule s(context, residency, l2);
  const ptx::Program& program = *context.program;
  if (sampled) {
    if (program.communicates)
      throw CannotSample(fmt::format("kernel '{}' cannot be sampled: its blocks wait for each other",
                                     context.launch->kernel),
                         "simulate all of them: --mode exact");
    if (Schedule::worth_sampling(context.launch->grid.count(), residency)) s.sample();
  }
  if (program.communicates) return s.interleaved();
  // Atomics on global memory run in block order, so that sums of floats come out the same every time.
  const std::uint64_t threads = context.launch->grid.count() * context.launch->block.count();
  constexpr std::uint64_t kWorthThreads = 65536;  // starting host threads costs about as much as this many
  host_threads = static_cast<int>(
      std::min<std::uint64_t>(static_cast<std::uint64_t>(host_threads), context.launch->grid.count()));
  if (host_threads <= 1 || program.has_global_atomics || program.prints || threads < kWorthThreads)
    return s.serial();
  if (sanitizer == nullptr)
    return s.parallel(std::vector<const LaunchContext*>(static_cast<std::size_t>(host_threads), &context));
  // Only the race check tells what blocks have in common.
  if (!sanitizer->what.race || context.warm_l2) return s.serial();
  ApartChecks apart(context, *sanitizer, std::min(host_threads, kMostCheckingThreads));
  try {
    Schedule beside(context, residency, l2);
    ScheduleResult result = beside.parallel(apart.contexts());
    if (apart.nothing_left()) {
      sanitizer->counts += apart.counts();
      return result;
    }
  } catch (const FindingError&) {
  } catch (const Error&) {
  }
  apart.undo();
  l2.clear();
  return s.serial();
}

}  // namespace stitchwork::sim
