// One flag a byte of memory, for ranges of bytes.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <vector>

namespace stitchwork::sim {

class ByteFlags {
 public:
  ByteFlags() = default;
  ByteFlags(std::size_t bytes, bool value) { assign(bytes, value); }

  bool empty() const { return bytes_ == 0; }
  /// As if new.
  void assign(std::size_t bytes, bool value) {
    bytes_ = bytes;
    words_.assign((bytes + 63) / 64, value ? ~kNone : kNone);
  }

  void set(std::size_t first, std::size_t count, bool value) {
    for_words(first, count, [&](std::size_t word, std::uint64_t bits) {
      words_[word] = value ? words_[word] | bits : words_[word] & ~bits;
      return true;
    });
  }
  bool all(std::size_t first, std::size_t count) const {
    return for_words(first, count,
                     [&](std::size_t word, std::uint64_t bits) { return (words_[word] & bits) == bits; });
  }
  bool any(std::size_t first, std::size_t count) const {
    return !for_words(first, count,
                      [&](std::size_t word, std::uint64_t bits) { return (words_[word] & bits) == 0; });
  }
  /// How many from `first` on are set before one is not, at most `count`.
  std::size_t leading(std::size_t first, std::size_t count) const {
    std::size_t n = 0;
    while (n < count && (words_[(first + n) / 64] >> (first + n) % 64 & 1)) ++n;
    return n;
  }

 private:
  static constexpr std::uint64_t kNone = 0;

  /// f(word, bits of it) until it says false, which is then the result.
  template <class F>
  static bool for_words(std::size_t first, std::size_t count, F f) {
    while (count > 0) {
      const std::size_t at = first % 64, here = std::min<std::size_t>(count, 64 - at);
      const std::uint64_t bits = (here == 64 ? ~kNone : (std::uint64_t{1} << here) - 1) << at;
      if (!f(first / 64, bits)) return false;
      first += here;
      count -= here;
    }
    return true;
  }

  std::size_t bytes_ = 0;
  std::vector<std::uint64_t> words_;
};

}  // namespace stitchwork::sim
