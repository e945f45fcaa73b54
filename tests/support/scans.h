// Inclusive associative scans (Blelloch 1990) as jax.lax.associative_scan unrolls them: neighbours are
// combined, the half as many results scanned, and both put in turn.
#pragma once

#include <fmt/format.h>

#include <array>
#include <cstdint>
#include <string>
#include <vector>

namespace stitchwork::testing {

/// What an associative scan combines: a sum, or the steps of a linear recurrence y = a x + b.
enum class ScanStep : std::uint8_t { kSum, kRecurrence };

/// Text of the scan of f32[rows, cols] along `axis`.
class ScanText {
 public:
  ScanText(std::int64_t rows, std::int64_t cols, int axis, ScanStep step)
      : extents_{rows, cols}, axis_(axis), step_(step) {}

  std::string text() {
    const std::int64_t n = extents_.at(static_cast<std::size_t>(axis_));
    text_ = "  zero = f32[] constant(0)\n";
    std::vector<std::string> in{add(n, "parameter(0)")};
    if (step_ == ScanStep::kRecurrence) in.push_back(add(n, "parameter(1)"));
    const std::vector<std::string> out = scan(in, n);
    return text_ + fmt::format("  ROOT result = {} negate({})\n", shape(n), out.back());
  }

 private:
  std::string shape(std::int64_t n) const {
    return axis_ == 0 ? fmt::format("f32[{},{}]", n, extents_[1]) : fmt::format("f32[{},{}]", extents_[0], n);
  }

  /// Of n along the axis.
  std::string add(std::int64_t n, const std::string& value) {
    const std::string name = fmt::format("v{}", next_++);
    text_ += fmt::format("  {} = {} {}\n", name, shape(n), value);
    return name;
  }

  std::string slice(const std::string& of, std::int64_t from, std::int64_t to, std::int64_t stride) {
    const std::string along = fmt::format("[{}:{}:{}]", from, to, stride);
    const std::string across = fmt::format("[0:{}]", (axis_ == 0 ? extents_[1] : extents_[0]));
    return add((to - from + stride - 1) / stride,
               fmt::format("slice({}), slice={{{}, {}}}", of, axis_ == 0 ? along : across,
                           axis_ == 0 ? across : along));
  }

  /// Every second of `n`.
  std::string pad(const std::string& of, std::int64_t n, std::int64_t low, std::int64_t high) {
    const std::string along = fmt::format("{}_{}_1", low, high);
    return add(n, fmt::format("pad({}, zero), padding={}", of, axis_ == 0 ? along + "x0_0" : "0_0x" + along));
  }

  std::vector<std::string> combine(const std::vector<std::string>& x, const std::vector<std::string>& y,
                                   std::int64_t n) {
    if (step_ == ScanStep::kSum) return {add(n, fmt::format("add({}, {})", x[0], y[0]))};
    const std::string factor = add(n, fmt::format("multiply({}, {})", x[0], y[0]));
    const std::string moved = add(n, fmt::format("multiply({}, {})", y[0], x[1]));
    return {factor, add(n, fmt::format("add({}, {})", moved, y[1]))};
  }

  std::vector<std::string> scan(const std::vector<std::string>& in, std::int64_t n) {
    if (n < 2) return in;
    const std::int64_t odds = n / 2, evens = n - odds;
    std::vector<std::string> left, right, shorter, later;
    for (const std::string& v : in) {
      left.push_back(slice(v, 0, 2 * odds - 1, 2));
      right.push_back(slice(v, 1, n, 2));
    }
    const std::vector<std::string> odd = scan(combine(left, right, odds), odds);
    if (evens > 1) {
      for (const std::string& v : odd) shorter.push_back(evens == odds ? slice(v, 0, odds - 1, 1) : v);
      for (const std::string& v : in) later.push_back(slice(v, 2, n, 2));
      later = combine(shorter, later, evens - 1);
    }
    std::vector<std::string> result;
    for (std::size_t i = 0; i < in.size(); ++i) {
      std::string even = slice(in[i], 0, 1, 1);
      if (evens > 1)
        even = add(evens, fmt::format("concatenate({}, {}), dimensions={{{}}}", even, later[i], axis_));
      const std::string in_even = pad(even, n, 0, n - (2 * evens - 1));
      const std::string in_odd = pad(odd[i], n, 1, n - 2 * odds);
      result.push_back(add(n, fmt::format("add({}, {})", in_even, in_odd)));
    }
    return result;
  }

  std::array<std::int64_t, 2> extents_;
  int axis_;
  ScanStep step_;
  std::string text_;
  int next_ = 0;
};

}  // namespace stitchwork::testing
