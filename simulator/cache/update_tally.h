// How often the atomics of a launch updated each word of global memory: the L2 makes updates of one word one
// after another.
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <unordered_map>
#include <unordered_set>
#include <vector>

namespace stitchwork::sim {

/// Thread-level updates, by 32-bit word and by stretch: what runs together of a launch (timing.h). Nothing of
/// it is inline: handlers that use it are compiled for several instruction sets.
class UpdateTally {
 public:
  UpdateTally() = default;
  UpdateTally(UpdateTally&&) noexcept = default;
  UpdateTally(const UpdateTally&) = delete;
  UpdateTally& operator=(const UpdateTally&) = delete;
  /// Updates from now on are of this stretch.
  void begin(std::size_t stretch);
  /// `times` more of the word, whose address is word x 4.
  void add(std::uint64_t word, std::uint64_t times);
  /// Blocks wait for each other by loads of this word: what they wait is counted apart.
  void add_awaited(std::uint64_t word);

  /// Updates of the word that has most of them, in a stretch or in all of them; those of awaited words do not
  /// count.
  std::uint64_t most(std::size_t stretch) const;
  std::uint64_t most() const;

 private:
  static constexpr std::uint64_t kPageWords = 4096;
  static constexpr std::size_t kRecent = 256;  ///< pages found without a look into the map
  static constexpr std::uint64_t kNone = ~std::uint64_t{0};
  using Counts = std::array<std::uint64_t, kPageWords>;
  using Pages = std::unordered_map<std::uint64_t, std::unique_ptr<Counts>>;
  struct Recent {
    std::uint64_t page = kNone;
    Counts* counts = nullptr;
  };

  Counts* find(std::uint64_t page);
  std::uint64_t most(const Counts& counts, std::uint64_t page) const;

  std::vector<Pages> stretches_;
  std::size_t now_ = 0;
  std::array<Recent, kRecent> recent_{};
  std::unordered_set<std::uint64_t> awaited_;
  std::uint64_t last_awaited_ = kNone;
};

}  // namespace stitchwork::sim
