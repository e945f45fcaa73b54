// Inclusive scans as JAX lowers them. jax.lax.associative_scan (Blelloch 1990) is unrolled: neighbours are
// combined, the half as many results scanned, and both put in turn. cumsum and its like reduce windows.
#pragma once

#include <fmt/format.h>

#include <array>
#include <cstdint>
#include <random>
#include <string>
#include <string_view>
#include <vector>

namespace stitchwork::testing {

/// What an associative scan combines: a sum, the steps of a linear recurrence y = a x + b, or a sum that
/// begins anew where a second value is positive.
enum class ScanStep : std::uint8_t { kSum, kRecurrence, kSegments };

/// Text of the scan of [rows, cols] along `axis`.
class ScanText {
 public:
  ScanText(std::int64_t rows, std::int64_t cols, int axis, ScanStep step, std::string dtype = "f32")
      : extents_{rows, cols}, axis_(axis), step_(step), dtype_(std::move(dtype)) {}

  std::string text() {
    const std::int64_t n = extents_.at(static_cast<std::size_t>(axis_));
    text_ = fmt::format("  zero = {}[] constant(0)\n", dtype_);
    std::vector<std::string> in{add(n, "parameter(0)")};
    if (step_ != ScanStep::kSum) in.push_back(add(n, "parameter(1)"));
    const std::vector<std::string> out = scan(in, n);
    return text_ + fmt::format("  ROOT result = {} negate({})\n", shape(n), out.back());
  }

 private:
  std::string shape(std::int64_t n) const {
    return axis_ == 0 ? fmt::format("{}[{},{}]", dtype_, n, extents_[1])
                      : fmt::format("{}[{},{}]", dtype_, extents_[0], n);
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
    if (step_ == ScanStep::kSegments) {
      const std::string flag = add(n, fmt::format("maximum({}, {})", x[0], y[0]));
      const std::string sum = add(n, fmt::format("add({}, {})", x[1], y[1]));
      const std::string zeros = add(n, "broadcast(zero), dimensions={}");
      const std::string begins = fmt::format("v{}", next_++), pred = shape(n).substr(dtype_.size());
      text_ += fmt::format("  {} = pred{} compare({}, {}), direction=GT\n", begins, pred, y[0], zeros);
      return {flag, add(n, fmt::format("select({}, {}, {})", begins, y[1], sum))};
    }
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
  std::string dtype_, text_;
  int next_ = 0;
};

/// Reducers of scans by windows: what is above the last instruction, and that.
inline constexpr std::array kScanReducers = {
    "  ROOT s = {0}[] add(a, b)",
    "  ROOT s = {0}[] maximum(a, b)",
    // logaddexp, as jax.lax.cumlogsumexp has it
    "  d = {0}[] subtract(a, b)\n  m = {0}[] maximum(a, b)\n  n = {0}[] abs(d)\n  o = {0}[] negate(n)\n"
    "  e = {0}[] exponential(o)\n  l = {0}[] log-plus-one(e)\n  ROOT s = {0}[] add(m, l)",
};

/// A module that scans [rows, cols] along `dim` by windows.
inline std::string window_scan(std::int64_t rows, std::int64_t cols, int dim, const char* reducer,
                               std::string_view dtype = "f32") {
  const std::int64_t n = dim == 0 ? rows : cols;
  const std::string size = dim == 0 ? fmt::format("{}x1", n) : fmt::format("1x{}", n);
  const std::string pad = dim == 0 ? fmt::format("{}_0x0_0", n - 1) : fmt::format("0_0x{}_0", n - 1);
  return fmt::format(R"(HloModule scan
combine {{
  a = {0}[] parameter(0)
  b = {0}[] parameter(1)
{1}
}}
ENTRY main {{
  x = {0}[{2},{3}] parameter(0)
  zero = {0}[] constant(0)
  ROOT y = {0}[{2},{3}] reduce-window(x, zero), window={{size={4} pad={5}}}, to_apply=combine
}})",
                     dtype, fmt::format(fmt::runtime(reducer), dtype), rows, cols, size, pad);
}

/// A module that scans a matrix of 2^16 to 2^20 elements, drawn by seed.
inline std::string drawn_scan(std::uint32_t seed) {
  std::mt19937 draw(seed);
  const auto one_of = [&](std::int64_t first, std::int64_t last) {
    return first + static_cast<std::int64_t>(draw() % static_cast<std::uint64_t>(last - first + 1));
  };
  constexpr std::array kTypes = {"f32", "bf16", "f16", "s32"};
  const int axis = static_cast<int>(one_of(0, 1));
  const std::int64_t along = one_of(9, 200), across = std::int64_t{1} << one_of(9, 12);
  const std::int64_t rows = axis == 0 ? along : across, cols = axis == 0 ? across : along;
  const std::int64_t form = one_of(0, 5);
  const std::int64_t reals = form == 5 ? 2 : 3;
  const std::string dtype = kTypes.at(static_cast<std::size_t>(one_of(0, reals)));
  if (form > 2)
    return window_scan(rows, cols, axis, kScanReducers.at(static_cast<std::size_t>(form - 3)), dtype);
  return fmt::format("HloModule scan\nENTRY main {{\n{}}}",
                     ScanText(rows, cols, axis, static_cast<ScanStep>(form), dtype).text());
}

}  // namespace stitchwork::testing
