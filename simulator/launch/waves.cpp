#include "simulator/launch/waves.h"

#include <algorithm>
#include <cmath>

#include "core/base/error.h"

namespace stitchwork::sim {
namespace {

/// How far the waves of a sample may differ.
constexpr double kAlike = 0.01;

void add(std::vector<BasicBlockCount>& a, const std::vector<BasicBlockCount>& b, std::uint64_t times = 1) {
  a.resize(b.size());
  for (std::size_t k = 0; k < b.size(); ++k) a[k].add(b[k], times);
}

}  // namespace

std::uint64_t warp_instructions(const ptx::Program& program, const std::vector<BasicBlockCount>& counts) {
  std::uint64_t total = 0;
  for (std::size_t b = 0; b < counts.size(); ++b) total += counts[b].warps * program.weights[b].instructions;
  return total;
}

Waves::Waves(const LaunchContext& context, const Residency& residency, L2State& l2)
    : context_(context),
      residency_(residency),
      l2_(l2),
      grid_(context.launch->grid.count()),
      loads_(*context.device, residency.blocks) {}

void Waves::replay(std::uint64_t units, Crew* crew, std::size_t threads) {
  const auto job = [&](int t) {
    std::vector<LogPiece> pieces;
    for (auto p = static_cast<std::size_t>(t); p < L2State::kPartitions; p += threads) {
      for (std::uint64_t u = 0; u < units; ++u) units_[u].add_pieces(p, l2_counters_[p], pieces);
      replay_side_by_side(l2_, pieces);
    }
  };
  if (crew != nullptr)
    crew->run(job);
  else
    job(0);
  for (std::uint64_t u = 0; u < units; ++u) units_[u].clear();
}

void Waves::report(std::uint64_t blocks_done, std::uint64_t instructions) const {
  if (context_.progress != nullptr) (*context_.progress)({blocks_done, grid_, instructions});
}

void Waves::account_wave(std::uint64_t blocks, std::uint64_t instructions_so_far, std::uint64_t times) {
  const double weight = static_cast<double>((instructions_so_far - instructions_) * times);
  instructions_ = instructions_so_far;
  const Device& d = *context_.device;
  const std::uint64_t warps_per_block = (context_.launch->block.count() + 31) / 32;
  const double warps = static_cast<double>(warps_per_block * blocks);
  const double busy = static_cast<double>(std::min<std::uint64_t>(blocks, static_cast<std::uint64_t>(d.sms)));
  result_.weight += weight;
  // Over the SMs that have a block, as nvprof's achieved_occupancy (active warps per active cycle) is.
  result_.occupancy += weight * std::min(1.0, warps / (busy * d.max_warps_per_sm));
  result_.busy += weight * busy / d.sms;
}

Waves::Totals Waves::totals() const {
  Totals t;
  for (const Worker& w : workers_) {
    add(t.bb_counts, w.bb_counts);
    add(t.hot, w.hot);
    add(t.memory, w.memory);
  }
  for (const L2Counters& c : l2_counters_) t.l2 += c;
  return t;
}

void Waves::for_waves(const std::function<void(std::uint64_t, std::uint64_t)>& run) {
  const std::uint64_t full = grid_ / residency_.blocks, waves = full + (grid_ % residency_.blocks != 0);
  std::uint64_t usual = 0;  // instructions of the representative wave
  for (std::uint64_t wave = 0; wave < waves; ++wave) {
    const bool represents = sampled_ && wave == kRepresentative;
    const std::uint64_t times = represents ? full - kSampledWaves + 1 : 1;
    const std::uint64_t begin = wave * residency_.blocks, end = std::min(grid_, begin + residency_.blocks);
    const Totals before = represents ? totals() : Totals{};
    work_.resize(end - begin);
    run(begin, end);
    loads_.add(begin, work_, times);
    std::uint64_t instructions = 0;
    for (const Worker& w : workers_) instructions += warp_instructions(*context_.program, w.bb_counts);
    const std::uint64_t of_wave = instructions - instructions_;
    if (sampled_ && wave < full) {
      if (wave == 0) first_updates_ = workers_[0].updates.most(0);
      if (wave == kRepresentative) usual = of_wave;
      if (wave > kRepresentative) check_alike(usual, of_wave);
    }
    account_wave(end - begin, instructions, times);
    report(end, instructions);
    result_.blocks_simulated += end - begin;
    if (represents) {
      const Totals after = totals();
      add(result_.bb_counts, after.bb_counts, times - 1);
      add(result_.bb_counts, before.bb_counts, 1 - times);
      add(result_.hot, after.hot, times - 1);
      add(result_.hot, before.hot, 1 - times);
      add(result_.memory, after.memory, times - 1);
      add(result_.memory, before.memory, 1 - times);
      result_.l2.add(after.l2, static_cast<std::int64_t>(times) - 1);
      result_.l2.add(before.l2, 1 - static_cast<std::int64_t>(times));
      wave = full - 2;  // on with the last full one
    }
    if (wave + 1 == full || wave + 1 == waves)
      close_stretch(static_cast<double>(wave < full ? full : 1), static_cast<double>(end - begin));
  }
}

void Waves::close_stretch(double waves, double blocks) {
  L2Counters l2 = totals().l2;
  l2 += result_.l2;
  TimedStretch s{loads_.close(waves, blocks), l2};
  s.l2.add(timed_, -1);
  timed_ = l2;
  UpdateTally& updates = workers_[0].updates;  // only one thread runs blocks with atomics
  const std::size_t stretch = result_.stretches.size();
  s.work.same_address_atomics = updates_of(static_cast<double>(updates.most(stretch)), waves);
  updates.begin(stretch + 1);
  result_.stretches.push_back(s);
}

double Waves::updates_of(double found, double waves) const {
  if (!sampled_ || waves <= static_cast<double>(kSampledWaves)) return found;
  const auto first = static_cast<double>(first_updates_);
  return first + (found - first) * (waves - 1) / static_cast<double>(kSampledWaves - 1);
}

void Waves::check_alike(std::uint64_t usual, std::uint64_t last) const {
  const auto a = static_cast<double>(usual), b = static_cast<double>(last);
  if (std::abs(a - b) <= kAlike * a) return;
  throw CannotSample(
      fmt::format(
          "kernel '{}': its blocks are not alike: one wave of {} executes {} warp instructions, another {}",
          context_.launch->kernel, residency_.blocks, usual, last),
      "simulate all of them: --mode exact");
}

ScheduleResult Waves::finish() {
  const Totals t = totals();
  add(result_.bb_counts, t.bb_counts);
  add(result_.hot, t.hot);
  add(result_.memory, t.memory);
  result_.l2 += t.l2;
  // Of a sample the full waves say how many more there are than were run.
  double sampled = 0;
  if (sampled_)
    for (const TimedStretch& s : result_.stretches) sampled = std::max(sampled, s.work.same_address_atomics);
  result_.same_address_atomics =
      std::max(workers_[0].updates.most(), static_cast<std::uint64_t>(std::llround(sampled)));
  return std::move(result_);
}

}  // namespace stitchwork::sim
