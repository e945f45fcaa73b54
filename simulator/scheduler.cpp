#include "simulator/scheduler.h"

#include <algorithm>
#include <atomic>
#include <optional>
#include <thread>

#include "core/error.h"

namespace stitchwork::sim {

/// Doubles an access log's buffer. Handlers hold only the log, whose storage is found by its end pointers.
void grow_log(AccessLog& log) {
  const std::size_t size = static_cast<std::size_t>(log.end - log.begin);
  const std::size_t capacity = std::max<std::size_t>(size * 2, 4096);
  auto* bigger = new std::uint64_t[capacity];
  std::copy(log.begin, log.end, bigger);
  delete[] log.begin;
  log.begin = bigger;
  log.end = bigger + size;
  log.capacity = bigger + capacity;
}

namespace {

void add(HotCounters& a, const HotCounters& b) {
  a.gld_requests += b.gld_requests;
  a.gst_requests += b.gst_requests;
  a.gld_transactions += b.gld_transactions;
  a.gst_transactions += b.gst_transactions;
  a.gld_bytes += b.gld_bytes;
  a.gst_bytes += b.gst_bytes;
  a.shared_loads += b.shared_loads;
  a.shared_stores += b.shared_stores;
  a.shared_conflicts += b.shared_conflicts;
  a.atomics += b.atomics;
  a.accesses += b.accesses;
  a.block_barriers += b.block_barriers;
  a.guarded_fp32 += b.guarded_fp32;
  a.guarded_mufu += b.guarded_mufu;
}
void add(L2Counters& a, const L2Counters& b) {
  a.read_sectors += b.read_sectors;
  a.write_sectors += b.write_sectors;
  a.dram_reads += b.dram_reads;
  a.dram_writes += b.dram_writes;
  a.dirty_sectors += b.dirty_sectors;
}

/// Access logs of one unit of work, one a partition of the L2.
struct Logs {
  explicit Logs(std::size_t partitions) : logs(partitions) {}
  ~Logs() {
    for (AccessLog& l : logs) delete[] l.begin;
  }
  Logs(Logs&& o) noexcept : logs(std::move(o.logs)) { o.logs.clear(); }
  Logs(const Logs&) = delete;
  void replay(std::size_t partition, L2State& l2, L2Counters& counters) {
    AccessLog& log = logs[partition];
    for (const std::uint64_t* e = log.begin; e != log.end; ++e) l2.access(*e, counters);
    log.end = log.begin;
  }
  std::vector<AccessLog> logs;
};

std::uint64_t warp_instructions(const ptx::Program& program, const std::vector<BasicBlockCount>& counts) {
  std::uint64_t total = 0;
  for (std::size_t b = 0; b < counts.size(); ++b) total += counts[b].warps * program.weights[b].instructions;
  return total;
}

class Schedule {
 public:
  Schedule(const LaunchContext& context, const Residency& residency, L2State& l2)
      : context_(context), residency_(residency), l2_(l2), grid_(context.launch->grid.count()) {}

  ScheduleResult serial() {
    Worker worker(context_);
    Logs logs(1);
    Block block(context_);
    for (std::uint64_t wave = 0; wave < grid_; wave += residency_.blocks) {
      const std::uint64_t end = std::min(grid_, wave + residency_.blocks);
      for (std::uint64_t b = wave; b < end; ++b) {
        block.attach(worker, logs.logs);
        block.start(b);
        block.run();
        logs.replay(0, l2_, result_.l2);
      }
      account_wave(end - wave, warp_instructions(*context_.program, worker.bb_counts));
    }
    take(worker);
    return std::move(result_);
  }

  ScheduleResult parallel(int threads) {
    const std::size_t partitions = threads > 2 ? 4 : 2;
    std::vector<Worker> workers;
    std::vector<std::unique_ptr<Block>> blocks;
    for (int t = 0; t < threads; ++t) {
      workers.emplace_back(context_);
      blocks.push_back(std::make_unique<Block>(context_));
    }
    std::vector<Logs> units;
    std::vector<L2Counters> l2_counters(partitions);
    for (std::uint64_t wave = 0; wave < grid_; wave += residency_.blocks) {
      const std::uint64_t end = std::min(grid_, wave + residency_.blocks);
      const std::uint64_t unit_blocks =
          std::max<std::uint64_t>(1, (end - wave) / (static_cast<std::uint64_t>(threads) * 8));
      const std::uint64_t unit_count = (end - wave + unit_blocks - 1) / unit_blocks;
      while (units.size() < unit_count) units.emplace_back(partitions);
      std::atomic<std::uint64_t> next_unit{0}, first_bad{~std::uint64_t{0}};
      std::vector<std::optional<FindingError>> errors(static_cast<std::size_t>(threads));
      on_all(threads, [&](int t) {
        Block& block = *blocks[static_cast<std::size_t>(t)];
        for (std::uint64_t u = next_unit++; u < unit_count; u = next_unit++) {
          block.attach(workers[static_cast<std::size_t>(t)], units[u].logs);
          const std::uint64_t last = std::min(end, wave + (u + 1) * unit_blocks);
          for (std::uint64_t b = wave + u * unit_blocks; b < last && b < first_bad; ++b) {
            try {
              block.start(b);
              block.run();
            } catch (const FindingError& e) {
              auto& mine = errors[static_cast<std::size_t>(t)];
              if (!mine || e.block_index < mine->block_index) mine = e;
              std::uint64_t known = first_bad;
              while (b < known && !first_bad.compare_exchange_weak(known, b)) {
              }
            }
          }
        }
      });
      for (const auto& e : errors) {
        if (e && e->block_index == first_bad) throw *e;
      }
      on_all(std::min<int>(threads, static_cast<int>(partitions)), [&](int t) {
        for (std::size_t p = static_cast<std::size_t>(t); p < partitions;
             p += static_cast<std::size_t>(threads)) {
          for (std::uint64_t u = 0; u < unit_count; ++u) units[u].replay(p, l2_, l2_counters[p]);
        }
      });
      std::uint64_t instructions = 0;
      for (const Worker& w : workers) instructions += warp_instructions(*context_.program, w.bb_counts);
      account_wave(end - wave, instructions);
    }
    for (const Worker& w : workers) take(w);
    for (const L2Counters& c : l2_counters) add(result_.l2, c);
    return std::move(result_);
  }

  /// Blocks that wait for each other: all resident ones take turns, each running until it waits.
  ScheduleResult interleaved() {
    Worker worker(context_);
    Logs logs(1);
    const std::uint64_t resident = std::min(grid_, residency_.blocks);
    std::vector<std::unique_ptr<Block>> blocks;
    std::vector<bool> running(resident, true);
    std::uint64_t next = 0, finished = 0, most_waits = 0, all_waits = 0;
    for (; next < resident; ++next) {
      blocks.push_back(std::make_unique<Block>(context_));
      blocks.back()->attach(worker, logs.logs);
      blocks.back()->start(next);
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
        const Block::Progress p = block.step();
        logs.replay(0, l2_, result_.l2);
        progress += block.progress;
        if (p != Block::Progress::kFinished) continue;
        ++finished;
        most_waits = std::max<std::uint64_t>(most_waits, block.spin_episodes);
        all_waits += block.spin_episodes;
        if (next < grid_)
          block.start(next++);
        else
          running[r] = false;
      }
      const bool idle = finished == finished_before && progress == progress_before;
      progress_before = progress;
      idle_rounds = idle ? idle_rounds + 1 : 0;
      if (idle_rounds < kIdleRounds) continue;
      idle_rounds = 0;
      bool split = false;
      for (std::uint64_t r = 0; r < resident; ++r) split |= running[r] && blocks[r]->split_all();
      if (!split) report_standstill(blocks, running, next);
    }
    account_wave(resident, warp_instructions(*context_.program, worker.bb_counts));
    take(worker);
    // A barrier of the grid makes every block wait, but perhaps the last to arrive.
    result_.grid_barriers = grid_ == 1 ? most_waits : std::min(most_waits, all_waits / (grid_ - 1));
    return std::move(result_);
  }

 private:
  /// Rounds in which no block changed memory or passed a barrier before that counts as standing still.
  static constexpr int kIdleRounds = 64;

  [[noreturn]] void report_standstill(std::vector<std::unique_ptr<Block>>& blocks,
                                      const std::vector<bool>& running, std::uint64_t started) {
    std::size_t first = 0;
    while (!running[first]) ++first;
    if (started < grid_) {
      blocks[first]->raise_waiting(
          FindingKind::kGridDeadlock,
          fmt::format("all {} resident blocks wait for the others: the grid has {} blocks, {} ({} an SM on "
                      "{} SMs) are "
                      "resident at once, so the {} not yet started never arrive",
                      residency_.blocks, grid_, residency_.blocks, residency_.blocks_per_sm,
                      context_.device->sms, grid_ - started));
    }
    blocks[first]->raise_waiting(FindingKind::kLivelock,
                                 "all running blocks poll memory that none of them will change");
  }

  template <class F>
  void on_all(int threads, F f) {
    std::vector<std::thread> others;
    for (int t = 1; t < threads; ++t) others.emplace_back(f, t);
    f(0);
    for (std::thread& t : others) t.join();
  }

  void account_wave(std::uint64_t blocks, std::uint64_t instructions_so_far) {
    const double weight = static_cast<double>(instructions_so_far - instructions_);
    instructions_ = instructions_so_far;
    const Device& d = *context_.device;
    const std::uint64_t warps_per_block = (context_.launch->block.count() + 31) / 32;
    const double warps = static_cast<double>(warps_per_block * blocks);
    const double busy =
        static_cast<double>(std::min<std::uint64_t>(blocks, static_cast<std::uint64_t>(d.sms)));
    result_.weight += weight;
    // Over the SMs that have a block, as nvprof's achieved_occupancy (active warps per active cycle) is.
    result_.occupancy += weight * std::min(1.0, warps / (busy * d.max_warps_per_sm));
    result_.busy += weight * busy / d.sms;
  }

  void take(const Worker& w) {
    result_.bb_counts.resize(w.bb_counts.size());
    for (std::size_t b = 0; b < w.bb_counts.size(); ++b) {
      result_.bb_counts[b].warps += w.bb_counts[b].warps;
      result_.bb_counts[b].threads += w.bb_counts[b].threads;
    }
    add(result_.hot, w.hot);
  }

  const LaunchContext& context_;
  const Residency& residency_;
  L2State& l2_;
  std::uint64_t grid_;
  std::uint64_t instructions_ = 0;
  ScheduleResult result_;
};

}  // namespace

ScheduleResult schedule(const LaunchContext& context, const Residency& residency, L2State& l2,
                        int host_threads) {
  Schedule s(context, residency, l2);
  const ptx::Program& program = *context.program;
  if (program.communicates) return s.interleaved();
  // Atomics on global memory run in block order, so that sums of floats come out the same every time.
  const std::uint64_t threads = context.launch->grid.count() * context.launch->block.count();
  constexpr std::uint64_t kWorthThreads = 65536;  // starting host threads costs about as much as this many
  if (host_threads <= 1 || context.sanitizer != nullptr || program.has_global_atomics || program.prints ||
      threads < kWorthThreads)
    return s.serial();
  return s.parallel(static_cast<int>(
      std::min<std::uint64_t>(static_cast<std::uint64_t>(host_threads), context.launch->grid.count())));
}

}  // namespace stitchwork::sim
