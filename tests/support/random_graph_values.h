// The values of a random graph: their lines of text, what is known of them, and how one is chosen to be read.
#pragma once

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <map>
#include <numeric>
#include <random>
#include <string>
#include <string_view>
#include <vector>

namespace stitchwork::testing {

struct RandomGraphOptions {
  int ops = 30;
  std::int64_t max_elements = 1 << 14;
  bool dots = true;
  bool types = true;     ///< types other than f32 too
  bool gathers = true;   ///< gather, dynamic-slice, dynamic-update-slice
  bool stitched = true;  ///< reductions whose result is broadcast back and combined with what they read
  /// Two dimensions and more: those of most values, and patterns of training steps over them
  /// (random_graph_patterns.h). Empty: extents at random.
  std::vector<std::int64_t> domain = {};
};

class RandomValues {
 protected:
  RandomValues(std::uint32_t seed, RandomGraphOptions options) : random_(seed), options_(options) {}

  using Dims = std::vector<std::int64_t>;
  using Names = std::vector<std::string>;

  struct Value {
    std::string name, type;
    Dims dims;
    bool exact = true;     ///< the same bits in every correct execution
    double magnitude = 4;  ///< of floats: a bound, more or less
    bool used = false;
  };

  // ---- small things

  std::size_t below(std::size_t n) { return static_cast<std::size_t>(random_() % n); }
  std::int64_t between(std::int64_t low, std::int64_t high) {
    return low + static_cast<std::int64_t>(below(static_cast<std::size_t>(high - low + 1)));
  }
  template <typename T, std::size_t N>
  const T& one_of(const T (&list)[N]) {
    return list[below(N)];
  }
  std::vector<std::size_t> shuffled(std::size_t n) {
    std::vector<std::size_t> order(n);
    std::iota(order.begin(), order.end(), 0);
    std::shuffle(order.begin(), order.end(), random_);
    return order;
  }
  static std::int64_t count(const Dims& dims) {
    return std::accumulate(dims.begin(), dims.end(), std::int64_t{1}, std::multiplies<>());
  }
  static bool is_float(std::string_view type) { return type.find('f') != type.npos; }
  static bool is_half(std::string_view type) { return type == "f16" || type == "bf16"; }
  static int digits(std::string_view type) {
    return type == "f64" ? 53 : type == "f32" ? 24 : type == "f16" ? 11 : 8;
  }
  static bool is_pred(std::string_view type) { return type == "pred"; }
  static bool is_signed(std::string_view type) { return type[0] == 's'; }
  static bool is_integer(std::string_view type) { return !is_float(type) && !is_pred(type); }
  static std::string shape_text(std::string_view type, const Dims& dims) {
    return fmt::format("{}[{}]", type, fmt::join(dims, ","));
  }

  std::string random_type() {
    static constexpr const char* kCommon[] = {"f32", "f32", "f32", "f16", "bf16", "s32", "pred", "f64"};
    static constexpr const char* kAll[] = {"f32", "f16", "bf16", "f64", "pred", "s8", "s16",
                                           "s32", "s64", "u8",   "u16", "u32",  "u64"};
    if (!options_.types) return "f32";
    return below(3) ? one_of(kCommon) : one_of(kAll);
  }

  Dims random_dims() {
    Dims dims;
    const bool deep = below(8) == 0;  // many dimensions, which have to be small
    const std::size_t rank = deep ? 5 + below(2) : below(5);
    for (std::size_t d = 0; d < rank; ++d) {
      const std::int64_t extent = below(120) == 0 ? 0
                                  : deep          ? one_of(kSmallExtents)
                                                  : extents_[below(extents_.size())];
      if (count(dims) * extent <= options_.max_elements) dims.push_back(extent);
    }
    return dims;
  }

  // ---- adding values

  Value add_line(const std::string& type, const Dims& dims, bool exact, double magnitude,
                 const std::string& text) {
    Value value{fmt::format("v{}", next_++), type, dims, exact, magnitude, false};
    lines_.push_back(fmt::format("  {} = {} {}", value.name, shape_text(type, dims), text));
    values_.push_back(value);
    return value;
  }

  Value parameter(const std::string& type, const Dims& dims) {
    return add_line(type, dims, true, is_float(type) ? 4 : 0, fmt::format("parameter({})", parameters_++));
  }

  /// A scalar constant; the same one for the same text.
  std::string constant(const std::string& type, const std::string& text) {
    std::string& name = constants_[type + " " + text];
    if (name.empty()) {
      name = fmt::format("c{}", constants_.size());
      lines_.push_back(fmt::format("  {} = {}[] constant({})", name, type, text));
    }
    return name;
  }

  std::string some_constant(const std::string& type) {
    static constexpr const char* kFloats[] = {"0", "1", "0.5", "-2", "1.25"};
    static constexpr const char* kIntegers[] = {"0", "1", "2", "3", "7"};
    if (is_pred(type)) return constant(type, below(2) ? "true" : "false");
    return constant(type, is_float(type) ? one_of(kFloats) : one_of(kIntegers));
  }

  std::string splat(const std::string& type, const Dims& dims, const std::string& scalar) {
    if (dims.empty()) return scalar;
    return add_line(type, dims, true, 2, fmt::format("broadcast({}), dimensions={{}}", scalar)).name;
  }

  void use(const Value& value) {
    for (Value& v : values_)
      if (v.name == value.name) v.used = true;
  }

  /// A value to read; recent ones are likelier, so that chains grow.
  Value pick() {
    const std::size_t n = values_.size();
    Value& value = values_[below(2) ? n - 1 - below(std::min<std::size_t>(n, 6)) : below(n)];
    value.used = true;
    return value;
  }

  /// A value of this type and shape: an existing one, one broadcast from fewer dimensions, or a constant.
  Value shaped(const std::string& type, const Dims& dims, bool exact = false) {
    for (std::size_t tries = 0; tries < 2 * values_.size(); ++tries) {
      const Value other = values_[below(values_.size())];
      if (other.type != type || (exact && !other.exact)) continue;
      if (other.dims == dims) {
        use(other);
        return other;
      }
      if (other.dims.size() >= dims.size() || other.dims.empty()) continue;
      std::vector<std::size_t> kept;
      for (std::size_t d = 0; d < dims.size() && kept.size() < other.dims.size(); ++d)
        if (dims[d] == other.dims[kept.size()]) kept.push_back(d);
      if (kept.size() < other.dims.size()) continue;
      use(other);
      return add_line(type, dims, other.exact, other.magnitude,
                      fmt::format("broadcast({}), dimensions={{{}}}", other.name, fmt::join(kept, ",")));
    }
    return {splat(type, dims, some_constant(type)), type, dims, true, 2, true};
  }

  /// `value`, scaled back by a power of two where it may have grown large.
  Value tamed(Value value) {
    const double limit = is_half(value.type) ? 16 : 64;
    if (!is_float(value.type) || value.magnitude <= limit) return value;
    const int power = static_cast<int>(std::ceil(std::log2(value.magnitude / 4)));
    use(value);
    const std::string scale =
        splat(value.type, value.dims, constant(value.type, fmt::format("{}", std::ldexp(1.0, -power))));
    return add_line(value.type, value.dims, value.exact, std::ldexp(value.magnitude, -power),
                    fmt::format("multiply({}, {})", value.name, scale));
  }

  /// The computation of a reduction.
  std::string reducer(const std::string& op, const std::string& type) {
    return reducers_.try_emplace(op + " " + type, fmt::format("{}_{}", op, type)).first->second;
  }

  // ---- the module

  /// Everything nobody read is a result, and sometimes a value that others read.
  std::string finish() {
    Names names, shapes;
    for (const Value& value : values_)
      if (!value.used || below(12) == 0) {
        names.push_back(value.name);
        shapes.push_back(shape_text(value.type, value.dims));
      }
    if (names.empty()) {
      names.push_back(values_.back().name);
      shapes.push_back(shape_text(values_.back().type, values_.back().dims));
    }
    std::string text = "HloModule random\n";
    for (const auto& [key, name] : reducers_) {
      const std::size_t space = key.find(' ');
      text +=
          fmt::format("{0} {{ a = {2}[] parameter(0)  b = {2}[] parameter(1)  ROOT r = {2}[] {1}(a, b) }}\n",
                      name, key.substr(0, space), key.substr(space + 1));
    }
    return text + fmt::format("ENTRY main {{\n{}\n  ROOT result = ({}) tuple({})\n}}\n",
                              fmt::join(lines_, "\n"), fmt::join(shapes, ", "), fmt::join(names, ", "));
  }

  static constexpr std::int64_t kSmallExtents[] = {1, 2, 2, 3, 3, 4, 5};
  static constexpr std::int64_t kExtents[] = {1,  2,  3,   5,   7,   8,   16,   31,
                                              33, 64, 100, 128, 257, 300, 1030, 2100};

  std::mt19937 random_;
  RandomGraphOptions options_;
  Names lines_;
  std::vector<Value> values_;
  Dims extents_;  ///< few, so that shapes meet
  std::map<std::string, std::string> constants_, reducers_;
  int next_ = 0, parameters_ = 0;
};

}  // namespace stitchwork::testing
