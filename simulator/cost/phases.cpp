#include "simulator/cost/phases.h"

#include <algorithm>

namespace stitchwork::sim {
namespace {

/// Phases told apart; what comes after belongs to the last one.
constexpr std::size_t kMostPhases = 1024;

}  // namespace

Phases::Phases(const Device& device, std::uint64_t grid, std::uint64_t resident)
    : device_(device), grid_(grid), resident_(std::min(grid, resident)), whole_(device, resident_) {}

std::size_t Phases::phase_after(std::size_t waits) { return std::min(waits, kMostPhases - 1); }

Phases::Phase& Phases::phase(std::size_t number) {
  number = phase_after(number);
  while (phases_.size() <= number) phases_.push_back({SmLoads(device_, resident_), {}});
  return phases_[number];
}

void Phases::add(std::uint64_t index, const std::vector<ThreadWork>& waits, const ThreadWork& last) {
  ThreadWork total = last;
  for (std::size_t w = 0; w < waits.size(); ++w) {
    total += waits[w];
    phase(w).loads.add(index, waits[w]);
  }
  phase(waits.size()).loads.add(index, last);
  whole_.add(index, total);
  most_waits_ = std::max(most_waits_, waits.size());
  least_waits_ = std::min(least_waits_, waits.size());
  all_waits_ += waits.size();
}

std::uint64_t Phases::grid_barriers() const {
  return grid_ == 1 ? most_waits_ : std::min<std::uint64_t>(most_waits_, all_waits_ / (grid_ - 1));
}

L2Counters Phases::l2() const {
  L2Counters sum;
  for (const Phase& p : phases_) sum += p.l2;
  return sum;
}

std::vector<TimedStretch> Phases::stretches(const UpdateTally& updates) {
  const auto blocks = static_cast<double>(resident_);
  const double waves = static_cast<double>(grid_) / blocks;
  std::vector<TimedStretch> result;
  if (most_waits_ != least_waits_ || grid_ > resident_) {
    result.push_back({whole_.close(waves, blocks), l2()});
    result[0].work.same_address_atomics = static_cast<double>(updates.most());
    return result;
  }
  for (std::size_t p = 0; p < phases_.size(); ++p) {
    result.push_back({phases_[p].loads.close(1, blocks), phases_[p].l2});
    result[p].work.same_address_atomics = static_cast<double>(updates.most(p));
  }
  return result;
}

}  // namespace stitchwork::sim
