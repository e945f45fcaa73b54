// Random graphs for property tests: element-wise ops, broadcast, reduce over any axes, reshape, transpose,
// slice, pad, concatenate and dot over ranks 0 to 4, as HLO text (so that a failure can be pasted).
#pragma once

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cstdint>
#include <random>
#include <string>
#include <vector>

namespace stitchwork::testing {

struct RandomGraphOptions {
  int ops = 30;
  std::int64_t max_elements = 1 << 14;
  bool dots = true;
};

/// Deterministic in (seed, options) on one standard library; values stay finite for inputs of order 1.
class RandomGraph {
 public:
  RandomGraph(std::uint32_t seed, RandomGraphOptions options) : random_(seed), options_(options) {}

  std::string text() {
    for (int p = 0; p < 3; ++p) add(random_dims(), "parameter({})", p);
    add({}, "constant(0)");
    add({}, "constant(0.5)");
    while (next_ < options_.ops + 5) grow();
    return finish();
  }

 private:
  using Dims = std::vector<std::int64_t>;

  struct Value {
    std::string name;
    Dims dims;
    bool used = false;
  };

  std::size_t below(std::size_t n) { return static_cast<std::size_t>(random_() % n); }

  static std::int64_t count(const Dims& dims) {
    std::int64_t n = 1;
    for (std::int64_t d : dims) n *= d;
    return n;
  }

  Dims random_dims() {
    static constexpr std::int64_t kExtents[] = {1, 2, 3, 5, 8, 16, 33, 64, 128, 300};
    Dims dims;
    const std::size_t rank = below(5);
    for (std::size_t d = 0; d < rank; ++d) {
      const std::int64_t extent = kExtents[below(std::size(kExtents))];
      if (count(dims) * extent <= options_.max_elements) dims.push_back(extent);
    }
    return dims;
  }

  template <typename... Args>
  const Value& add(const Dims& dims, fmt::format_string<Args...> format, Args&&... args) {
    Value value{fmt::format("v{}", next_++), dims};
    lines_.push_back(fmt::format("  {} = f32[{}] {}", value.name, fmt::join(dims, ","),
                                 fmt::format(format, std::forward<Args>(args)...)));
    values_.push_back(value);
    return values_.back();
  }

  /// A value to read; recent ones are likelier, so that chains grow.
  Value& pick() {
    const std::size_t n = values_.size();
    Value& value = values_[below(2) ? n - 1 - below(std::min<std::size_t>(n, 6)) : below(n)];
    value.used = true;
    return value;
  }

  /// `value` made to have `dims`, through a scalar.
  std::string shaped(const Dims& dims) {
    for (std::size_t tries = 0; tries < values_.size(); ++tries) {
      Value& other = values_[below(values_.size())];
      if (other.dims == dims) {
        other.used = true;
        return other.name;
      }
    }
    return add(dims, "broadcast(v4), dimensions={{}}").name;
  }

  void grow() {
    const Value from = pick();
    switch (below(10)) {
      case 0:
      case 1: {
        static constexpr const char* kUnary[] = {"negate",  "tanh", "abs", "cosine", "exponential-minus-one",
                                                 "logistic"};
        add(from.dims, "{}({})", kUnary[below(std::size(kUnary))], from.name);
        return;
      }
      case 2:
      case 3: {
        static constexpr const char* kBinary[] = {"add", "subtract", "multiply", "maximum", "minimum"};
        const std::string other = shaped(from.dims);
        add(from.dims, "{}({}, {})", kBinary[below(std::size(kBinary))], from.name, other);
        return;
      }
      case 4:
        return broadcast(from);
      case 5:
        return reduce(from);
      case 6:
        return reshape(from);
      case 7:
        return transpose(from);
      case 8:
        return cut(from);
      default:
        return below(2) && options_.dots ? dot(from) : join(from);
    }
  }

  void broadcast(const Value& from) {
    Dims dims;
    std::vector<std::size_t> kept;
    for (std::size_t d = 0; d <= from.dims.size(); ++d) {
      if (dims.size() < 4 && below(3) == 0 && count(from.dims) * count(dims) <= options_.max_elements / 64)
        dims.push_back(2 + static_cast<std::int64_t>(below(40)));
      if (d == from.dims.size()) break;
      kept.push_back(dims.size());
      dims.push_back(from.dims[d]);
    }
    if (dims.size() > 5) return;
    add(dims, "broadcast({}), dimensions={{{}}}", from.name, fmt::join(kept, ","));
  }

  void reduce(const Value& from) {
    if (from.dims.empty()) return;
    Dims kept;
    std::vector<std::size_t> reduced;
    for (std::size_t d = 0; d < from.dims.size(); ++d)
      if (below(2))
        reduced.push_back(d);
      else
        kept.push_back(from.dims[d]);
    if (reduced.empty()) return;
    add(kept, "reduce({}, v3), dimensions={{{}}}, to_apply={}", from.name, fmt::join(reduced, ","),
        below(3) ? "sum" : "max");
  }

  void reshape(const Value& from) {
    Dims dims;
    std::int64_t left = count(from.dims);
    while (left > 1 && dims.size() < 3) {
      std::int64_t factor = 1;
      for (std::int64_t f : {2, 3, 5, 11})
        while (left % (factor * f) == 0 && below(2)) factor *= f;
      dims.push_back(factor);
      left /= factor;
    }
    if (left > 1 || dims.empty()) dims.push_back(left);
    std::shuffle(dims.begin(), dims.end(), random_);
    add(dims, "reshape({})", from.name);
  }

  void transpose(const Value& from) {
    std::vector<std::size_t> order(from.dims.size());
    for (std::size_t d = 0; d < order.size(); ++d) order[d] = d;
    std::shuffle(order.begin(), order.end(), random_);
    Dims dims;
    for (std::size_t d : order) dims.push_back(from.dims[d]);
    add(dims, "transpose({}), dimensions={{{}}}", from.name, fmt::join(order, ","));
  }

  /// Slice or pad.
  void cut(const Value& from) {
    Dims dims;
    std::vector<std::string> spec;
    const bool pad = below(2) && count(from.dims) * 4 < options_.max_elements;
    for (std::int64_t extent : from.dims) {
      const auto lo =
          static_cast<std::int64_t>(below(static_cast<std::size_t>(std::min<std::int64_t>(extent, 3))));
      if (pad) {
        const auto hi = static_cast<std::int64_t>(below(2));
        spec.push_back(fmt::format("{}_{}", lo, hi));
        dims.push_back(lo + extent + hi);
      } else {
        const std::int64_t stride = 1 + static_cast<std::int64_t>(below(2));
        spec.push_back(fmt::format("[{}:{}:{}]", lo, extent, stride));
        dims.push_back((extent - lo + stride - 1) / stride);
      }
    }
    if (from.dims.empty()) return;
    if (pad)
      add(dims, "pad({}, v4), padding={}", from.name, fmt::join(spec, "x"));
    else
      add(dims, "slice({}), slice={{{}}}", from.name, fmt::join(spec, ", "));
  }

  void join(const Value& from) {
    if (from.dims.empty() || count(from.dims) * 2 > options_.max_elements) return;
    const std::string other = shaped(from.dims);
    const std::size_t d = below(from.dims.size());
    Dims dims = from.dims;
    dims[d] *= 2;
    add(dims, "concatenate({}, {}), dimensions={{{}}}", from.name, other, d);
  }

  void dot(const Value& from) {
    if (from.dims.size() != 2 || from.dims[1] > 128) return;
    const Dims weights{from.dims[1], 1 + static_cast<std::int64_t>(below(40))};
    const std::string rhs = shaped(weights);
    add({from.dims[0], weights[1]}, "dot({}, {}), lhs_contracting_dims={{1}}, rhs_contracting_dims={{0}}",
        from.name, rhs);
  }

  std::string finish() {
    std::vector<std::string> names, shapes;
    for (const Value& value : values_)
      if (!value.used) {
        names.push_back(value.name);
        shapes.push_back(fmt::format("f32[{}]", fmt::join(value.dims, ",")));
      }
    if (names.empty()) {
      names.push_back(values_.back().name);
      shapes.push_back(fmt::format("f32[{}]", fmt::join(values_.back().dims, ",")));
    }
    return fmt::format(
        "HloModule random\n"
        "sum {{\n  a = f32[] parameter(0)\n  b = f32[] parameter(1)\n  ROOT s = f32[] add(a, b)\n}}\n"
        "max {{\n  a = f32[] parameter(0)\n  b = f32[] parameter(1)\n  ROOT s = f32[] maximum(a, b)\n}}\n"
        "ENTRY main {{\n{}\n  ROOT result = ({}) tuple({})\n}}\n",
        fmt::join(lines_, "\n"), fmt::join(shapes, ", "), fmt::join(names, ", "));
  }

  std::mt19937 random_;
  RandomGraphOptions options_;
  std::vector<std::string> lines_;
  std::vector<Value> values_;
  int next_ = 0;
};

inline std::string random_hlo(std::uint32_t seed, RandomGraphOptions options = {}) {
  return RandomGraph(seed, options).text();
}

}  // namespace stitchwork::testing
