// One flag a byte of memory, for ranges of bytes; of bytes whose flag is off, the bits of which it is on.
#pragma once

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <unordered_map>
#include <vector>

namespace stitchwork::sim {

class ByteFlags {
 public:
  ByteFlags() = default;
  ByteFlags(std::size_t bytes, bool value) { assign(bytes, value); }

  /// Flags of a word in memory.
  static constexpr std::size_t kWordBytes = 64;

  bool empty() const { return bytes_ == 0; }
  /// Whether several threads set flags, and look at them, at once.
  void share(bool on) { shared_ = on; }
  /// As if new.
  void assign(std::size_t bytes, bool value) {
    bytes_ = bytes;
    words_.assign((bytes + 63) / 64, value ? ~kNone : kNone);
    some_.clear();
  }

  void set(std::size_t first, std::size_t count, bool value) {
    if (!value && !some_.empty())
      for (std::size_t k = 0; k < count; ++k) some_.erase(first + k);
    for_words(first, count, [&](std::size_t word, std::uint64_t bits) {
      const std::uint64_t now = at(word), wanted = value ? now | bits : now & ~bits;
      if (!shared_)
        words_[word] = wanted;
      else if (now != wanted)
        value ? std::atomic_ref(words_[word]).fetch_or(bits, std::memory_order_relaxed)
              : std::atomic_ref(words_[word]).fetch_and(~bits, std::memory_order_relaxed);
      return true;
    });
  }
  /// Of one byte, of memory that no other thread looks at.
  void set_bits(std::size_t byte, std::uint8_t bits) {
    set(byte, 1, bits == 0xff);
    if (bits != 0 && bits != 0xff) some_[byte] = bits;
  }
  std::uint8_t bits(std::size_t byte) const {
    if (all(byte, 1)) return 0xff;
    const auto some = some_.find(byte);
    return some == some_.end() ? 0 : some->second;
  }
  bool all(std::size_t first, std::size_t count) const {
    return for_words(first, count,
                     [&](std::size_t word, std::uint64_t bits) { return (at(word) & bits) == bits; });
  }
  bool any(std::size_t first, std::size_t count) const {
    return !for_words(first, count,
                      [&](std::size_t word, std::uint64_t bits) { return (at(word) & bits) == 0; });
  }
  /// How many from `first` on are set before one is not, at most `count`.
  std::size_t leading(std::size_t first, std::size_t count) const {
    std::size_t n = 0;
    while (n < count && (at((first + n) / 64) >> (first + n) % 64 & 1)) ++n;
    return n;
  }

  /// [first, first + count) of the words, as far as there are.
  void copy_words(std::size_t first, std::size_t count, std::uint64_t* to) const {
    for (std::size_t w = first; w < std::min(first + count, words_.size()); ++w) *to++ = at(w);
  }
  void set_words(std::size_t first, std::size_t count, const std::uint64_t* from) {
    for (std::size_t w = first; w < std::min(first + count, words_.size()); ++w) words_[w] = *from++;
  }

 private:
  static constexpr std::uint64_t kNone = 0;

  std::uint64_t at(std::size_t word) const { return __atomic_load_n(&words_[word], __ATOMIC_RELAXED); }

  /// f(word, bits of it) until it says false, which is then the result.
  template <class F>
  static bool for_words(std::size_t first, std::size_t count, F f) {
    while (count > 0) {
      const std::size_t bit = first % 64, here = std::min<std::size_t>(count, 64 - bit);
      const std::uint64_t bits = (here == 64 ? ~kNone : (std::uint64_t{1} << here) - 1) << bit;
      if (!f(first / 64, bits)) return false;
      first += here;
      count -= here;
    }
    return true;
  }

  std::size_t bytes_ = 0;
  bool shared_ = false;
  std::vector<std::uint64_t> words_;
  std::unordered_map<std::size_t, std::uint8_t> some_;  ///< by byte; of no meaning where the flag is on
};

}  // namespace stitchwork::sim
