#include "simulator/check/race_shadow.h"

#include <algorithm>
#include <bit>
#include <cstring>

#include "core/base/error.h"

namespace stitchwork::sim {

RaceShadow::RaceShadow(std::uint64_t bytes) : count_((bytes + kSectorBytes - 1) / kSectorBytes) {
  if (count_ > 0) sectors_ = zero_pages<ShadowSector>(count_, large());
}

void RaceShadow::clear() {
  std::fill_n(sectors_.get(), count_, ShadowSector{});
  groups_used_ = 0;
  for (auto& of_size : groups_free_) of_size.clear();
}

RaceShadow::Touched RaceShadow::touched(const ShadowSector& s) const {
  Touched found;
  if (s.cells_log2 == 0) {
    if (s.events[ShadowSector::kWrite] != 0) found.written = ~0u;
    if ((s.events[ShadowSector::kWrite] | s.events[ShadowSector::kRead] |
         s.events[ShadowSector::kOtherRead]) != 0)
      found.any = ~0u;
    return found;
  }
  const std::uint32_t width = cell_bytes(s), ones = (1u << width) - 1;
  std::uint32_t at = 0;
  for (const ShadowCell& cell : cells(s)) {
    if (cell.write) found.written |= ones << at;
    if (cell.write || cell.reads[0] || cell.reads[1]) found.any |= ones << at;
    at += width;
  }
  return found;
}

bool RaceShadow::meets(const RaceShadow& other) const {
  constexpr ShadowSector kUntouched{};
  const std::uint64_t count = std::min(count_, other.count_);
  for (std::uint64_t i = 0; i < count; ++i) {
    const ShadowSector &a = sectors_[i], &b = other.sectors_[i];
    if (std::memcmp(&a, &kUntouched, sizeof a) == 0 || std::memcmp(&b, &kUntouched, sizeof b) == 0) continue;
    const Touched x = touched(a), y = other.touched(b);
    if (((x.written & y.any) | (y.written & x.any)) != 0) return true;
  }
  return false;
}

std::uint32_t RaceShadow::take_groups(int cells_log2) {
  auto& of_size = groups_free_[static_cast<std::size_t>(cells_log2 - kCoarsestLog2)];
  if (!of_size.empty()) {
    const std::uint32_t group = of_size.back();
    of_size.pop_back();
    return group;
  }
  const std::uint32_t groups = 1u << (cells_log2 - kCoarsestLog2);
  groups_used_ = (groups_used_ + groups - 1) / groups * groups;  // those of a sector lie in one chunk
  if (groups_used_ >= most_groups_) throw Error("accesses are too fine to be looked at apart");
  const std::uint32_t first = groups_used_;
  groups_used_ += groups;
  if (first / kChunkGroups == cell_groups_.size())
    cell_groups_.push_back(zero_pages<CellGroup>(kChunkGroups, large()));
  return first;
}

void RaceShadow::join(ShadowSector& s) {
  groups_free_[static_cast<std::size_t>(s.cells_log2 - kCoarsestLog2)].push_back(s.events[0]);
  s = {};
}

void RaceShadow::divide(ShadowSector& s, int cells_log2) {
  const ShadowSector before = s;
  ShadowSector after{};
  after.cells_log2 = static_cast<std::uint8_t>(cells_log2);
  after.events[0] = take_groups(cells_log2);
  const auto fine = cells(after);
  if (before.cells_log2 != 0) {
    const auto coarse = cells(before);
    for (std::size_t k = 0; k < fine.size(); ++k) fine[k] = coarse[k >> (cells_log2 - before.cells_log2)];
    join(s);
  } else {
    const auto toucher = [&](ShadowSector::Place place, std::size_t cell) {
      const std::uint32_t byte = static_cast<std::uint32_t>(cell) << (kFinestLog2 - cells_log2);
      return before.events[place] == 0 ? Toucher{}
                                       : Toucher(before.events[place], before.lanes[place].lane_of(byte));
    };
    for (std::size_t k = 0; k < fine.size(); ++k)
      fine[k] = {.write = toucher(ShadowSector::kWrite, k),
                 .reads = {toucher(ShadowSector::kRead, k), toucher(ShadowSector::kOtherRead, k)}};
  }
  s = after;
}

void RaceShadow::divide_for(ShadowSector& s, std::uint64_t alignment) {
  int finest_log2 = std::min(2, std::countr_zero(alignment));
  if (s.cells_log2 == 0)  // what its lanes touched may be smaller than what is touched now
    for (int place = 0; place < 3; ++place)
      if (s.events[place] != 0) finest_log2 = std::min(finest_log2, s.lanes[place].bytes_log2());
  divide(s, kFinestLog2 - finest_log2);
}

}  // namespace stitchwork::sim
