#include "simulator/machine/block.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cstring>

#include "core/base/error.h"
#include "occupancy_model/hardware.h"
#include "simulator/cache/l1_cache.h"
#include "simulator/cache/l2_replay.h"
#include "simulator/machine/cluster.h"

namespace stitchwork::sim {
namespace {

std::uint32_t lanes_of_warp(std::uint32_t threads, std::uint32_t warp) {
  const std::uint32_t first = warp * 32;
  if (first >= threads) return 0;
  return threads - first >= 32 ? ~0u : (1u << (threads - first)) - 1;
}

}  // namespace

Worker::Worker(const LaunchContext& context)
    : bb_counts(context.program->weights.size()),
      caches(context.program->positions.size()),
      memory(context.lines ? context.program->positions.size() : 0) {}

void MemoryCounts::add(const MemoryCounts& other, std::uint64_t times) {
  gld_transactions += times * other.gld_transactions;
  gst_transactions += times * other.gst_transactions;
  atomic_sectors += times * other.atomic_sectors;
  shared_wavefronts += times * other.shared_wavefronts;
  shared_conflicts += times * other.shared_conflicts;
}

void add(std::vector<MemoryCounts>& a, const std::vector<MemoryCounts>& b, std::uint64_t times) {
  a.resize(std::max(a.size(), b.size()));
  for (std::size_t i = 0; i < b.size(); ++i) a[i].add(b[i], times);
}

MemoryCounts memory_counts(const HotCounters& hot) {
  return {.gld_transactions = hot.gld_transactions,
          .gst_transactions = hot.gst_transactions,
          .atomic_sectors = hot.atomic_sectors,
          .shared_wavefronts = hot.shared_wavefronts,
          .shared_conflicts = hot.shared_conflicts};
}

void add(HotCounters& a, const HotCounters& b, std::uint64_t times) {
  a.gld_requests += times * b.gld_requests;
  a.gst_requests += times * b.gst_requests;
  a.gld_transactions += times * b.gld_transactions;
  a.gst_transactions += times * b.gst_transactions;
  a.gld_bytes += times * b.gld_bytes;
  a.gst_bytes += times * b.gst_bytes;
  a.l1_hit_sectors += times * b.l1_hit_sectors;
  a.shared_loads += times * b.shared_loads;
  a.shared_stores += times * b.shared_stores;
  a.shared_conflicts += times * b.shared_conflicts;
  a.shared_wavefronts += times * b.shared_wavefronts;
  a.l1_wavefronts += times * b.l1_wavefronts;
  a.local_loads += times * b.local_loads;
  a.local_stores += times * b.local_stores;
  a.local_load_sectors += times * b.local_load_sectors;
  a.local_store_sectors += times * b.local_store_sectors;
  a.local_l2_sectors += times * b.local_l2_sectors;
  a.atomics += times * b.atomics;
  a.atomic_sectors += times * b.atomic_sectors;
  a.atomic_conflicts += times * b.atomic_conflicts;
  a.atomic_results += times * b.atomic_results;
  a.accesses += times * b.accesses;
  a.block_barriers += times * b.block_barriers;
  a.cluster_barriers += times * b.cluster_barriers;
  a.remote_requests += times * b.remote_requests;
  a.remote_sectors += times * b.remote_sectors;
  a.bulk_copies += times * b.bulk_copies;
  a.bulk_loads += times * b.bulk_loads;
  a.bulk_sectors += times * b.bulk_sectors;
  a.bulk_shared_loads += times * b.bulk_shared_loads;
  a.bulk_shared_stores += times * b.bulk_shared_stores;
  a.bulk_waits += times * b.bulk_waits;
  a.bulk_bytes_in_flight += times * b.bulk_bytes_in_flight;
  a.bulk_trips += times * b.bulk_trips;
  a.async_copies += times * b.async_copies;
  for (int p = 0; p < kPipes; ++p) a.guarded[p] += times * b.guarded[p];
}

Block::Block(const LaunchContext& context, std::uint32_t rank) : context_(context) {
  const std::uint32_t count = static_cast<std::uint32_t>(context.launch->block.count());
  const int warps = static_cast<int>((count + 31) / 32);
  gangs_ = (warps + kGangWarps - 1) / kGangWarps;
  const std::size_t bytes = std::size_t{context.program->register_bytes} * static_cast<std::size_t>(gangs_);
  registers_ = acquire_registers(bytes + 64);
  shared_storage_.resize(context.reachable_shared_bytes + 64);
  local_storage_.resize(static_cast<std::size_t>(context.program->info.local_bytes) *
                        static_cast<std::size_t>(gangs_ * kGangWarps * 32));
  stacks_ =
      std::make_unique_for_overwrite<StackEntry[]>(static_cast<std::size_t>(gangs_ * kGangWarps) * kMaxDepth);
  strands.reserve(static_cast<std::size_t>(gangs_ * kGangWarps));  // references to strands stay valid

  block_start = context.block_start.data();
  launch = &context;
  cluster_rank = rank;
  shared = shared_storage_.data();
  shared_base = std::uint64_t{rank} << kClusterRankShift;
  shared_bytes = context.reachable_shared_bytes;
  local = local_storage_.data();
  l1.sets = static_cast<std::uint32_t>(context.l1_bytes / (kL1LineBytes * L1Share::kWays));
  l1.only_non_coherent = l1_only_non_coherent(*context.device);
  l1_lines_.resize(std::size_t{l1.sets} * L1Share::kWays);
  l1.lines = l1_lines_.data();
  local_bytes = static_cast<std::uint64_t>(context.program->info.local_bytes);
  async_.resize(static_cast<std::size_t>(gangs_ * kGangWarps));
  cluster_arrived.resize(async_.size());
  cluster_passing.resize(async_.size());
  waiting_.resize(async_.size());
  async = async_.data();
  mbarriers = &mbarriers_;
  bulk = &bulk_;
  params = const_cast<std::byte*>(context.parameters.data());
  param_bytes = context.parameters.size();
  threads = count;
  communicates = context.program->communicates;
  counts_.resize(context.program->weights.size());
  bb_counts = counts_.data();
  hot = &hot_;
  fill_slots();
}

Block::~Block() = default;

ThreadWork Block::take_work() {
  std::uint64_t issue = 0, ldst = 0;
  std::array<std::uint64_t, kPipes> of_pipe{};
  ThreadWork work;
  for (std::size_t b = 0; b < counts_.size(); ++b) {
    const std::uint64_t warps = counts_[b].warps;
    if (warps == 0 && counts_[b].waits == 0) continue;
    const ptx::BlockWeights& w = context_.program->weights[b];
    issue += warps * w.issue;
    ldst += warps * w.ldst;
    for (std::size_t p = 0; p < kPipes; ++p) of_pipe[p] += warps * w.issue_unguarded[p];
    for (std::size_t t = 0; t < kTensorTypes; ++t)
      work.tensor_multiply_adds[t] += static_cast<double>(warps * w.multiply_adds[t]);
    worker_->bb_counts[b].add(counts_[b]);
    counts_[b] = {};
  }
  const auto d = [](std::uint64_t v) { return static_cast<double>(v); };
  const auto warps_on = [&](Pipe pipe) {
    const auto p = static_cast<std::size_t>(pipe);
    return d(of_pipe[p]) + d(hot_.guarded[p]) / kWarp;
  };
  work.warp_instructions = d(issue);
  work.fp32_warp_instructions = warps_on(Pipe::kFp32);
  work.fp64_warp_instructions = warps_on(Pipe::kFp64);
  work.half2_warp_instructions = warps_on(Pipe::kHalf2);
  work.int32_warp_instructions = warps_on(Pipe::kInt32);
  work.mufu_warp_instructions = warps_on(Pipe::kMufu);
  work.ldst_warp_instructions = d(ldst);
  work.l1_wavefronts = d(hot_.l1_wavefronts);
  work.shared_wavefronts = d(hot_.shared_wavefronts + hot_.bulk_shared_loads + hot_.bulk_shared_stores);
  work.l2_atomic_sectors = d(hot_.atomic_sectors);
  work.l2_atomic_conflicts = d(hot_.atomic_conflicts);
  // An atomic reads its sectors and writes them.
  work.l2_sectors = d(hot_.gld_transactions - hot_.l1_hit_sectors + hot_.gst_transactions +
                      hot_.local_l2_sectors + 2 * hot_.atomic_sectors);
  work.l1_hit_sectors = d(hot_.l1_hit_sectors);
  work.global_accesses = d(hot_.gld_requests - hot_.bulk_loads + hot_.atomic_results);
  work.remote_accesses = d(hot_.remote_requests);
  work.remote_sectors = d(hot_.remote_sectors);
  work.cluster_barriers = d(hot_.cluster_barriers);
  work.bulk_round_trips = d(hot_.bulk_trips) / kBulkTripParts;
  add(worker_->hot, hot_);
  if (context_.lines) taken_.add(memory_counts(hot_));
  hot_ = {};
  return work;
}

ThreadWork Block::total_work() {
  ThreadWork total = take_work();
  for (const ThreadWork& before : waits) total += before;
  return total;
}

void Block::begin_waiting() { waits.push_back(take_work()); }

void Block::attach(Worker& worker, std::vector<AccessLog>& access_logs) {
  worker_ = &worker;
  caches = worker.caches.data();
  updates = &worker.updates;
  logs = access_logs.data();
  partitions = static_cast<std::uint32_t>(access_logs.size());
  log_ends_.resize(partitions);
}

Strand& Block::add_strand(int gang, int first_warp, int last_warp) {
  Strand& s = strands.emplace_back();
  s.regs = registers_.get() + std::size_t{context_.program->register_bytes} * static_cast<std::size_t>(gang);
  s.gang = gang;
  s.first_warp = first_warp;
  s.last_warp = last_warp;
  s.block = this;
  s.stack = stacks_.get() + (strands.size() - 1) * kMaxDepth;
  return s;
}

void Block::start(std::uint64_t position) {
  turns_ = 0;
  index = block_at(context_, position);
  // Blocks that follow each other in one place have the same local memory, as on hardware.
  const std::uint64_t lines_a_warp = (local_bytes + 3) / 4;
  local_line = (kLocalWindow << kLineOfWindowShift) +
               position % context_.resident_blocks * lines_a_warp * ((threads + 31) / 32);
  strands.clear();
  alive_threads = threads;
  waits.clear();
  std::fill(counts_.begin(), counts_.end(), BasicBlockCount{});
  hot_ = {};
  budget = static_cast<std::int64_t>(context_.max_warp_instructions);
  std::fill(std::begin(barriers), std::end(barriers), BarrierSlot{});
  // What a block reads before writing it must not depend on the block that was here before.
  std::fill(shared_storage_.begin(), shared_storage_.end(), std::byte{0xA5});
  // Cooperative groups take theirs as zero.
  if (context_.program->uses_reserved_shared)
    std::fill_n(shared_storage_.begin() + static_cast<std::ptrdiff_t>(context_.reserved_shared_offset),
                kReservedSharedBytes, std::byte{0});
  std::fill(local_storage_.begin(), local_storage_.end(), std::byte{0xA5});
  std::fill(l1_lines_.begin(), l1_lines_.end(), 0);
  for (AsyncCopies& copies : async_) copies.clear();
  for (auto& lanes : waiting_) lanes.clear();
  has_mbarriers = false;
  mbarriers_.live.clear();
  bulk_.loads.clear();
  bulk_.reads_under_way = 0;
  bulk_.stores.clear();
  bulk_.committed.clear();
  bulk_.products.clear();
  std::fill(cluster_arrived.begin(), cluster_arrived.end(), 0);
  std::fill(cluster_passing.begin(), cluster_passing.end(), 0);
  fill_block_slots();
  if (context_.checks != nullptr) {
    if (checks_)
      checks_->start();
    else
      checks_ = context_.checks->of_block(*this);
    checks = checks_.get();
  }
  const int warps = static_cast<int>((threads + 31) / 32);
  for (int gang = 0; gang < gangs_; ++gang) {
    Strand& s = add_strand(gang, 0, std::min(kGangWarps, warps - gang * kGangWarps));
    s.depth = 1;
    s.stack[0] = {.pc = 0, .rpc = -1, .at = nullptr, .mask = {}};
    for (int w = 0; w < s.last_warp; ++w) {
      s.alive[w] = s.stack[0].mask[w] =
          lanes_of_warp(threads, static_cast<std::uint32_t>(gang * kGangWarps + w));
    }
    s.resume = &context_.program->code[static_cast<std::size_t>(context_.program->resume_inst)];
  }
}

void Block::execute(Strand& s) {
  const Inst* i = s.resume;
  while (i != nullptr) i = i->fn[s.masked](s, i);
}

void Block::execute_by_line(Strand& s) {
  // An instruction may hand over what was counted, and begin at zero (take_work).
  const auto counted = [this] {
    MemoryCounts all = taken_;
    all.add(memory_counts(hot_));
    return all;
  };
  constexpr auto kMinus = static_cast<std::uint64_t>(-1);
  const Inst* i = s.resume;
  while (i != nullptr) {
    MemoryCounts& own = worker_->memory[i->id];
    own.add(counted(), kMinus);
    i = i->fn[s.masked](s, i);
    own.add(counted());
  }
}

Block::Progress Block::step() {
  for (bool again = true; again;) {
    again = false;
    bool done = true, waiting_only = true;
    if (cluster != nullptr) {
      for (Strand& s : strands)
        if (s.state == StrandState::kClusterBarrier && may_pass_cluster_barrier(s))
          s.state = StrandState::kRunnable;
    }
    const bool several = strands.size() > 1;
    if (several) {
      for (auto& ends : log_ends_) ends.clear();
      note_log_ends();
    }
    // By index: splitting appends strands.
    for (std::size_t k = 0; k < strands.size(); ++k) {
      Strand& s = strands[k];
      if (s.state == StrandState::kRunnable) {
        context_.lines ? execute_by_line(s) : execute(s);
        if (several) note_log_ends();
        again |= s.state == StrandState::kRunnable;
      }
      done &= s.state == StrandState::kDone;
      waiting_only &= s.state == StrandState::kDone || s.state == StrandState::kBarrier;
    }
    // Strands that ran one after another here run side by side.
    if (several)
      for (std::size_t p = 0; p < partitions; ++p) mix_parts(logs[p], log_ends_[p]);
    if (done) {
      check_bulk_copies_ended(*this);
      if (cluster != nullptr && checks != nullptr) checks->end_of_block();
      return Progress::kFinished;
    }
    // Threads that ended no longer count at barriers.
    if (release_barriers()) again = true;
    if (waiting_only && !again) {
      raise_waiting(FindingKind::kBarrierMismatch, "");
    }
    for (const Strand& s : strands) again |= s.state == StrandState::kRunnable;
  }
  for (Strand& s : strands) {
    if (s.state == StrandState::kYielded) s.state = StrandState::kRunnable;
  }
  return Progress::kWaiting;
}

void Block::run() {
  constexpr int kIdleRounds = 64;
  int idle = 0;
  std::uint64_t before = progress;
  while (step() != Progress::kFinished) {
    idle = progress == before ? idle + 1 : 0;
    before = progress;
    if (idle == kIdleRounds && !part(progress)) {
      report_mbarrier_wait();
      raise_waiting(FindingKind::kLivelock, "polls memory that no running thread will change");
    }
    if (idle == kIdleRounds) idle = 0;
  }
}

void Block::note_log_ends() {
  for (std::size_t p = 0; p < partitions; ++p)
    log_ends_[p].push_back(static_cast<std::size_t>(logs[p].end - logs[p].begin));
}

bool Block::split_all() {
  bool any = false;
  for (std::size_t k = 0; k < strands.size(); ++k) {
    if (strands[k].state != StrandState::kDone && strands[k].last_warp - strands[k].first_warp > 1) {
      split_strand(strands[k], strands[k].resume);
      any = true;
    }
  }
  return any;
}

/// Releases every barrier whose arrivals are complete.
bool Block::release_barriers() {
  bool any = false;
  for (int id = 0; id < 16; ++id) {
    std::uint64_t waiting = 0, waiting_warps = 0;
    std::uint32_t wanted = 0;
    for (const Strand& s : strands) {
      if (s.state != StrandState::kBarrier || s.barrier_id != id) continue;
      for (int w = s.first_warp; w < s.last_warp; ++w) {
        waiting += static_cast<std::uint64_t>(std::popcount(s.alive[w]));
        waiting_warps += s.alive[w] != 0;
      }
      wanted = s.barrier_threads;
    }
    if (waiting == 0) continue;
    BarrierSlot& slot = barriers[id];
    const bool complete =
        wanted == 0 ? waiting == alive_threads : waiting_warps * 32 + slot.arrived_only >= wanted;
    if (!complete) continue;
    slot.result_true = slot.count_true;
    slot.result_all = slot.count_all;
    slot.count_true = slot.count_all = 0;
    slot.arrived_only = 0;
    if (checks != nullptr) checks->barrier_complete(strands, id, nullptr);
    for (Strand& s : strands) {
      if (s.state == StrandState::kBarrier && s.barrier_id == id) s.state = StrandState::kRunnable;
    }
    ++hot->block_barriers;
    ++progress;
    any = true;
  }
  return any;
}

bool arrive_at_barrier(Strand& s, const Inst* i, int id, std::uint32_t threads, bool blocks) {
  Block& b = static_cast<Block&>(*s.block);
  BarrierSlot& slot = b.barriers[id];
  if (threads % 32 != 0) {
    raise_finding(
        s, i, FindingKind::kBarrierMismatch,
        fmt::format("barrier {} is given {} threads, which is no multiple of 32", id, threads).c_str(),
        s.first_warp, 0);
  }
  std::uint64_t here = 0, warps = 0;
  for (int w = s.first_warp; w < s.last_warp; ++w) {
    here += static_cast<std::uint64_t>(std::popcount(s.alive[w]));
    warps += s.alive[w] != 0;
  }
  if (b.checks != nullptr) b.checks->barrier_arrive(s, id);
  if (!blocks) {
    slot.arrived_only += warps * 32;
    return true;
  }
  s.barrier_id = id;
  s.barrier_threads = threads;
  s.barrier_line_id = i->id;
  if (here == b.alive_threads && (threads == 0 || warps * 32 == threads)) {  // alone: nothing to wait for
    slot.result_true = slot.count_true;
    slot.result_all = slot.count_all;
    slot.count_true = slot.count_all = 0;
    ++b.hot->block_barriers;
    ++b.progress;
    if (b.checks != nullptr) b.checks->barrier_complete(b.strands, id, &s);
    return true;
  }
  return false;
}

const Inst* yield_after_poll(Strand& s, const Inst* i, std::uint64_t address) {
  Block& b = static_cast<Block&>(*s.block);
  // Warps that wait together wait once.
  if (std::all_of(b.strands.begin(), b.strands.end(),
                  [](const Strand& t) { return t.poll == nullptr || t.state == StrandState::kDone; }))
    b.begin_waiting();
  s.poll = i;
  s.poll_address = address;
  s.awaited = 0;
  s.state = StrandState::kYielded;
  s.resume = i + 1;
  return nullptr;
}

}  // namespace stitchwork::sim
