// Device memory dealt out of few large allocations: buffers whose lifetimes do not meet share bytes.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <set>

namespace stitchwork::cuda {

/// Best fit over free ranges, neighbours of one allocation joined. Sizes are rounded up to 256 bytes.
class Pool {
 public:
  static constexpr std::uint64_t kAlignment = 256;

  /// Memory the pool may deal out; `base` is aligned.
  void add(std::uint64_t base, std::uint64_t bytes);
  /// Nothing where no free range is large enough.
  std::optional<std::uint64_t> take(std::uint64_t bytes);
  /// `address` was taken and not given back since.
  void give_back(std::uint64_t address);

  /// Whether `address` was taken and not given back since.
  bool holds(std::uint64_t address) const { return taken_.contains(address); }

  static std::uint64_t rounded(std::uint64_t bytes);
  std::uint64_t used() const { return used_; }
  std::uint64_t most_used() const { return most_used_; }

 private:
  void insert(std::uint64_t base, std::uint64_t bytes);

  std::map<std::uint64_t, std::uint64_t> free_, taken_;  ///< bytes by address
  std::set<std::uint64_t> starts_;                       ///< of the allocations
  std::uint64_t used_ = 0, most_used_ = 0;
};

}  // namespace stitchwork::cuda
