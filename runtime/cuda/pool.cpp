#include "runtime/cuda/pool.h"

#include <algorithm>
#include <iterator>

#include "core/base/error.h"

namespace stitchwork::cuda {

std::uint64_t Pool::rounded(std::uint64_t bytes) {
  return std::max<std::uint64_t>(1, (bytes + kAlignment - 1) / kAlignment) * kAlignment;
}

void Pool::add(std::uint64_t base, std::uint64_t bytes) {
  SW_CHECK(base % kAlignment == 0 && bytes % kAlignment == 0, "{} bytes at {}", bytes, base);
  starts_.insert(base);
  insert(base, bytes);
}

std::optional<std::uint64_t> Pool::take(std::uint64_t bytes) {
  const std::uint64_t wanted = rounded(bytes);
  auto best = free_.end();
  for (auto it = free_.begin(); it != free_.end(); ++it)
    if (it->second >= wanted && (best == free_.end() || it->second < best->second)) best = it;
  if (best == free_.end()) return std::nullopt;
  const auto [address, size] = *best;
  free_.erase(best);
  if (size > wanted) free_.emplace(address + wanted, size - wanted);
  taken_.emplace(address, wanted);
  used_ += wanted;
  most_used_ = std::max(most_used_, used_);
  return address;
}

void Pool::give_back(std::uint64_t address) {
  const auto known = taken_.find(address);
  SW_CHECK(known != taken_.end(), "{} is no buffer in use", address);
  used_ -= known->second;
  insert(address, known->second);
  taken_.erase(known);
}

void Pool::insert(std::uint64_t base, std::uint64_t bytes) {
  auto next = free_.lower_bound(base);
  if (next != free_.end() && base + bytes == next->first && !starts_.contains(next->first)) {
    bytes += next->second;
    next = free_.erase(next);
  }
  if (next != free_.begin() && !starts_.contains(base)) {
    const auto before = std::prev(next);
    if (before->first + before->second == base) {
      before->second += bytes;
      return;
    }
  }
  free_.emplace(base, bytes);
}

}  // namespace stitchwork::cuda
