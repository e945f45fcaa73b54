// Random graphs for property tests, as HLO text (so that a failure can be pasted): every element type, light
// and heavy element-wise ops, layout ops, gathers, reductions over any dimensions, patterns that read a
// reduction back (normalisations), dots; ranks 0 to 6, extents of 1 and 0, fan-out, several results.
//
// Values stay tame, so that results can be compared: magnitudes are bounded and scaled back by powers of two,
// and what a rounding error could turn into another value (compare, floor, conversion to integers) reads only
// values that every correct execution gives bit for bit.
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
};

/// Deterministic in (seed, options) on one standard library; values stay finite for inputs of order 1.
class RandomGraph {
 public:
  RandomGraph(std::uint32_t seed, RandomGraphOptions options) : random_(seed), options_(options) {}

  std::string text() {
    choose_weights();
    for (int e = 0; e < 4; ++e) extents_.push_back(one_of(kExtents));
    const std::size_t parameters = 2 + below(3);
    for (std::size_t p = 0; p < parameters; ++p) parameter(below(4) ? "f32" : random_type(), random_dims());
    const int end = next_ + options_.ops;
    while (next_ < end) grow();
    return finish();
  }

 private:
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
    const std::size_t rank = below(10) ? below(5) : below(7);
    for (std::size_t d = 0; d < rank; ++d) {
      const std::int64_t extent = below(120) == 0 ? 0 : extents_[below(extents_.size())];
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

  // ---- one step

  /// Each graph has its own mix: some have no layout ops, others hardly anything but reductions.
  void choose_weights() {
    static constexpr int kMixes[][kKinds] = {
        // unary, binary, choose, convert, broadcast, reduce, stitch, layout, iota, indexed, dot
        {2, 3, 1, 1, 2, 2, 2, 6, 1, 1, 1},
        {2, 4, 0, 0, 2, 2, 5, 0, 0, 0, 0},
        {2, 4, 1, 1, 2, 3, 6, 1, 0, 0, 1},
        {1, 2, 0, 0, 1, 2, 2, 5, 0, 3, 0},
    };
    const int* mix = one_of(kMixes);
    for (int kind = 0; kind < kKinds; ++kind) weights_.insert(weights_.end(), mix[kind], kind);
  }

  void grow() {
    const Value from = pick();
    switch (weights_[below(weights_.size())]) {
      case 0:
        return unary(from);
      case 1:
        return binary(from);
      case 2:
        return choose(from);
      case 3:
        return options_.types ? convert(from) : unary(from);
      case 4:
        return broadcast(from);
      case 5:
        return reduce(from);
      case 6:
        return options_.stitched ? stitch(from) : binary(from);
      case 7:
        return layout(from);
      case 8:
        return iota();
      case 9:
        return options_.gathers ? indexed(from) : pad(from);
      default:
        return options_.dots ? dot(from) : binary(from);
    }
  }

  void layout(const Value& from) {
    switch (below(6)) {
      case 0:
        return reshape(from);
      case 1:
        return transpose(from);
      case 2:
        return slice(from);
      case 3:
        return reverse(from);
      case 4:
        return pad(from);
      default:
        return join(from);
    }
  }

  void unary(const Value& from) {
    if (is_pred(from.type)) {
      add_line("pred", from.dims, from.exact, 0, fmt::format("not({})", from.name));
    } else if (is_integer(from.type)) {
      static constexpr const char* kAny[] = {"negate", "not", "popcnt", "count-leading-zeros", "copy"};
      static constexpr const char* kSigned[] = {"abs", "sign"};
      add_line(from.type, from.dims, true, 0,
               fmt::format("{}({})", is_signed(from.type) && below(2) ? one_of(kSigned) : one_of(kAny),
                           from.name));
    } else if (below(2)) {
      light(from);
    } else {
      heavy(from);
    }
  }

  void light(const Value& from) {
    static constexpr const char* kContinuous[] = {"negate", "abs", "copy"};
    static constexpr const char* kSteps[] = {"floor", "ceil", "round-nearest-afz", "round-nearest-even",
                                             "sign"};
    if (from.exact && below(2))
      add_line(from.type, from.dims, true, from.magnitude + 1,
               fmt::format("{}({})", one_of(kSteps), from.name));
    else
      add_line(from.type, from.dims, from.exact, from.magnitude,
               fmt::format("{}({})", one_of(kContinuous), from.name));
  }

  void heavy(const Value& from) {
    static constexpr const char* kBounded[] = {"tanh", "sine", "cosine", "logistic", "erf"};
    static constexpr const char* kGrowing[] = {"exponential", "exponential-minus-one"};
    static constexpr const char* kPositive[] = {"log", "log-plus-one", "sqrt", "rsqrt", "cbrt"};
    const Value x = tamed(from);
    if (below(2)) {
      add_line(x.type, x.dims, false, 1, fmt::format("{}({})", one_of(kBounded), x.name));
    } else if (below(2) && x.magnitude <= 5) {
      add_line(x.type, x.dims, false, std::exp(x.magnitude), fmt::format("{}({})", one_of(kGrowing), x.name));
    } else {
      const Value y = positive(x);
      if (below(3))
        add_line(x.type, x.dims, false, y.magnitude, fmt::format("{}({})", one_of(kPositive), y.name));
      else
        add_line(x.type, x.dims, false, y.magnitude * y.magnitude,
                 fmt::format("power({}, {})", y.name, splat(x.type, x.dims, constant(x.type, "1.5"))));
    }
  }

  /// |value| + 1.
  Value positive(const Value& value) {
    const Value absolute =
        add_line(value.type, value.dims, value.exact, value.magnitude, fmt::format("abs({})", value.name));
    const std::string one = splat(value.type, value.dims, constant(value.type, "1"));
    use(absolute);
    const Value sum = add_line(value.type, value.dims, value.exact, value.magnitude + 1,
                               fmt::format("add({}, {})", absolute.name, one));
    use(sum);
    return sum;
  }

  void binary(const Value& from) {
    if (is_float(from.type)) {
      const Value a = tamed(from);
      add_binary(a, tamed(shaped(a.type, a.dims)));
    } else {
      add_binary(from, shaped(from.type, from.dims));
    }
  }

  void add_binary(const Value& a, const Value& b) {
    use(a);
    use(b);
    if (is_pred(a.type)) {
      static constexpr const char* kOps[] = {"and", "or", "xor", "maximum", "minimum"};
      add_line(a.type, a.dims, a.exact && b.exact, 0,
               fmt::format("{}({}, {})", one_of(kOps), a.name, b.name));
      return;
    }
    if (is_integer(a.type)) {
      static constexpr const char* kOps[] = {"add",
                                             "subtract",
                                             "multiply",
                                             "maximum",
                                             "minimum",
                                             "and",
                                             "or",
                                             "xor",
                                             "divide",
                                             "remainder",
                                             "shift-left",
                                             "shift-right-logical",
                                             "shift-right-arithmetic",
                                             "power"};
      add_line(a.type, a.dims, true, 0, fmt::format("{}({}, {})", one_of(kOps), a.name, b.name));
      return;
    }
    const bool exact = a.exact && b.exact;
    switch (below(8)) {
      case 0:  // products may be contracted with a sum
      case 1:
        add_line(a.type, a.dims, false, a.magnitude * b.magnitude,
                 fmt::format("multiply({}, {})", a.name, b.name));
        return;
      case 2: {
        const Value y = positive(b);
        add_line(a.type, a.dims, false, a.magnitude, fmt::format("divide({}, {})", a.name, y.name));
        return;
      }
      case 3: {
        static constexpr const char* kOps[] = {"maximum", "minimum"};
        add_line(a.type, a.dims, exact, std::max(a.magnitude, b.magnitude),
                 fmt::format("{}({}, {})", one_of(kOps), a.name, b.name));
        return;
      }
      case 4: {
        const Value y = positive(b);
        add_line(a.type, a.dims, false, 3.2, fmt::format("atan2({}, {})", a.name, y.name));
        return;
      }
      default: {
        static constexpr const char* kOps[] = {"add", "subtract"};
        add_line(a.type, a.dims, exact, a.magnitude + b.magnitude,
                 fmt::format("{}({}, {})", one_of(kOps), a.name, b.name));
      }
    }
  }

  /// Compare, select, clamp.
  void choose(const Value& from) {
    static constexpr const char* kDirections[] = {"EQ", "NE", "LT", "LE", "GT", "GE"};
    if (is_pred(from.type)) {
      const std::string type = random_type();
      const Value a = shaped(type, from.dims), b = shaped(type, from.dims);
      add_line(type, from.dims, a.exact && b.exact && from.exact, std::max(a.magnitude, b.magnitude),
               fmt::format("select({}, {}, {})", from.name, a.name, b.name));
    } else if (from.exact && below(2)) {
      const Value other = shaped(from.type, from.dims, true);
      add_line("pred", from.dims, true, 0,
               fmt::format("compare({}, {}), direction={}", from.name, other.name, one_of(kDirections)));
    } else {
      const bool is_signed_type = is_float(from.type) || is_signed(from.type);
      add_line(from.type, from.dims, from.exact, std::min(from.magnitude, 2.0),
               fmt::format("clamp({}, {}, {})", constant(from.type, is_signed_type ? "-1" : "1"), from.name,
                           constant(from.type, "2")));
    }
  }

  void convert(const Value& from) {
    const std::string to = random_type();
    if (to == from.type) return;
    // Of a rounding error: no whole steps, nor digits that the new type would promise.
    if (!from.exact && (!is_float(to) || digits(to) > digits(from.type))) return;
    double magnitude = from.magnitude;
    Value value = from;
    if (!is_float(from.type) && is_float(to)) {
      // Any integer fits once its low bits alone are kept.
      if (is_integer(from.type))
        value = add_line(
            from.type, from.dims, true, 0,
            fmt::format("and({}, {})", from.name, splat(from.type, from.dims, constant(from.type, "7"))));
      use(value);
      magnitude = 7;
    }
    add_line(to, from.dims, value.exact, magnitude, fmt::format("convert({})", value.name));
  }

  void broadcast(const Value& from) {
    Dims dims;
    std::vector<std::size_t> kept;
    for (std::size_t d = 0; d <= from.dims.size(); ++d) {
      if (dims.size() < 5 && below(3) == 0 && count(from.dims) * count(dims) <= options_.max_elements / 64)
        dims.push_back(below(6) ? extents_[below(extents_.size())] : 1);
      if (d == from.dims.size()) break;
      kept.push_back(dims.size());
      dims.push_back(from.dims[d]);
    }
    if (dims.size() > 6 || count(dims) > options_.max_elements) return;
    add_line(from.type, dims, from.exact, from.magnitude,
             fmt::format("broadcast({}), dimensions={{{}}}", from.name, fmt::join(kept, ",")));
  }

  /// Which dimensions a reduction reduces: any, or only rows, columns or one in the middle.
  std::vector<std::size_t> some_dimensions(std::size_t rank) {
    std::vector<std::size_t> reduced;
    switch (below(5)) {
      case 0:
        return {rank - 1};
      case 1:
        return {0};
      case 2:
        return {below(rank)};
      default:
        for (std::size_t d = 0; d < rank; ++d)
          if (below(2)) reduced.push_back(d);
        return reduced;
    }
  }

  /// Of one value, over `reduced` (not sorted in the text).
  Value reduce(const Value& from, std::vector<std::size_t> reduced) {
    Dims kept;
    double n = 1;
    for (std::size_t d = 0; d < from.dims.size(); ++d)
      if (std::find(reduced.begin(), reduced.end(), d) != reduced.end())
        n *= static_cast<double>(from.dims[d]);
      else
        kept.push_back(from.dims[d]);
    std::string op = below(2) ? "add" : below(2) ? "maximum" : "minimum";
    bool exact = from.exact;
    double magnitude = from.magnitude + 2;
    if (is_pred(from.type)) {
      op = below(2) ? "and" : "or";
    } else if (is_integer(from.type)) {
      static constexpr const char* kOps[] = {"add", "maximum", "minimum", "multiply", "and", "or", "xor"};
      op = one_of(kOps);
    } else if (below(8) == 0 && n <= 12 && from.magnitude <= 8) {
      op = "multiply";
      magnitude = 2 * std::pow(from.magnitude, n);
      exact = false;
    } else if (op == "add") {
      magnitude = from.magnitude * n + 2;
      if (from.type == "f16" && magnitude > 30000) op = "maximum";
      exact = exact && op != "add";
    }
    if (is_half(from.type) && magnitude > 30000) op = "maximum", magnitude = from.magnitude + 2;
    std::string initial;
    if (below(5) == 0) {
      const Value scalar = shaped(from.type, {});
      initial = scalar.name;
      exact = exact && scalar.exact;
      magnitude = std::max(magnitude, magnitude / 2 * scalar.magnitude);
    } else if (op == "add" || below(2) == 0) {
      initial = is_pred(from.type) ? constant("pred", "false") : constant(from.type, "0");
    } else {
      initial = some_constant(from.type);
    }
    return add_line(from.type, kept, exact, magnitude,
                    fmt::format("reduce({}, {}), dimensions={{{}}}, to_apply={}", from.name, initial,
                                fmt::join(reduced, ","), reducer(op, from.type)));
  }

  void reduce(const Value& from) {
    if (from.dims.empty()) return;
    const Value x = tamed(from);
    use(x);
    std::vector<std::size_t> reduced = some_dimensions(x.dims.size());
    if (reduced.empty()) return;
    tamed(reduce(x, reduced));
  }

  /// x combined with its own reduction, maybe through an element-wise op.
  void stitch(const Value& from) {
    if (from.dims.empty() || is_pred(from.type)) return;
    const Value x = tamed(from);
    use(x);
    const std::vector<std::size_t> reduced = some_dimensions(x.dims.size());
    if (reduced.empty()) return;
    Value r = tamed(reduce(x, reduced));
    if (below(2) && is_float(r.type)) {
      use(r);
      unary(r);
      if (values_.back().type == r.type && values_.back().dims == r.dims) r = tamed(values_.back());
    }
    std::vector<std::size_t> kept;
    for (std::size_t d = 0; d < x.dims.size(); ++d)
      if (std::find(reduced.begin(), reduced.end(), d) == reduced.end()) kept.push_back(d);
    use(r);
    const Value spread =
        add_line(x.type, x.dims, r.exact, r.magnitude,
                 fmt::format("broadcast({}), dimensions={{{}}}", r.name, fmt::join(kept, ",")));
    add_binary(x, spread);
  }

  void reshape(const Value& from) {
    Dims dims;
    std::int64_t left = count(from.dims);
    while (left > 1 && dims.size() < 4) {
      std::int64_t factor = 1;
      for (std::int64_t f : {2, 3, 5, 11})
        while (left % (factor * f) == 0 && below(2)) factor *= f;
      dims.push_back(factor);
      left /= factor;
    }
    if (left != 1 || (dims.empty() && below(2))) dims.push_back(left);
    std::shuffle(dims.begin(), dims.end(), random_);
    add_line(from.type, dims, from.exact, from.magnitude, fmt::format("reshape({})", from.name));
  }

  void transpose(const Value& from) {
    const std::vector<std::size_t> order = shuffled(from.dims.size());
    Dims dims;
    for (std::size_t d : order) dims.push_back(from.dims[d]);
    add_line(from.type, dims, from.exact, from.magnitude,
             fmt::format("transpose({}), dimensions={{{}}}", from.name, fmt::join(order, ",")));
  }

  void slice(const Value& from) {
    if (from.dims.empty()) return;
    Dims dims;
    Names spec;
    for (std::int64_t extent : from.dims) {
      const std::int64_t low = between(0, std::max<std::int64_t>(0, std::min<std::int64_t>(extent - 1, 3)));
      const std::int64_t high = below(2) ? extent : between(std::min(low + 1, extent), extent);
      const std::int64_t stride = below(2) ? 1 : between(1, 3);
      spec.push_back(fmt::format("[{}:{}:{}]", low, high, stride));
      dims.push_back((high - low + stride - 1) / stride);
    }
    add_line(from.type, dims, from.exact, from.magnitude,
             fmt::format("slice({}), slice={{{}}}", from.name, fmt::join(spec, ", ")));
  }

  void reverse(const Value& from) {
    std::vector<std::size_t> dimensions;
    for (std::size_t d = 0; d < from.dims.size(); ++d)
      if (below(2)) dimensions.push_back(d);
    add_line(from.type, from.dims, from.exact, from.magnitude,
             fmt::format("reverse({}), dimensions={{{}}}", from.name, fmt::join(dimensions, ",")));
  }

  void pad(const Value& from) {
    if (from.dims.empty()) return;
    Dims dims;
    Names spec;
    for (std::int64_t extent : from.dims) {
      const std::int64_t interior = below(4) ? 0 : between(1, 2);
      const std::int64_t spread = extent + std::max<std::int64_t>(extent - 1, 0) * interior;
      const std::int64_t low = below(2) ? 0 : between(-1, 3), high = below(2) ? 0 : between(-1, 3);
      if (spread + low + high < 0) return;
      spec.push_back(fmt::format("{}_{}_{}", low, high, interior));
      dims.push_back(spread + low + high);
    }
    if (count(dims) > options_.max_elements) return;
    std::string filler = some_constant(from.type);
    bool exact = from.exact;
    if (below(4) == 0) {
      const Value scalar = shaped(from.type, {});
      filler = scalar.name;
      exact = exact && scalar.exact;
    }
    add_line(from.type, dims, exact, from.magnitude + 4,
             fmt::format("pad({}, {}), padding={}", from.name, filler, fmt::join(spec, "x")));
  }

  void iota() {
    Dims dims = random_dims();
    if (dims.empty()) dims = {between(1, 40)};
    const std::size_t d = below(dims.size());
    const std::string type = options_.types ? (below(2) ? "s32" : random_type()) : "f32";
    if (is_pred(type) || (is_half(type) && dims[d] > 200)) return;
    tamed(add_line(type, dims, true, static_cast<double>(dims[d]),
                   fmt::format("iota(), iota_dimension={}", d)));
  }

  void join(const Value& from) {
    if (from.dims.empty() || count(from.dims) * 3 > options_.max_elements) return;
    const std::size_t d = below(from.dims.size()), parts = 2 + below(2);
    Dims dims = from.dims;
    Names names{from.name};
    bool exact = from.exact;
    double magnitude = from.magnitude;
    for (std::size_t p = 1; p < parts; ++p) {
      Dims wanted = from.dims;
      if (below(2)) wanted[d] = between(1, 5);
      const Value part = shaped(from.type, wanted);
      names.push_back(part.name);
      dims[d] += wanted[d];
      exact = exact && part.exact;
      magnitude = std::max(magnitude, part.magnitude);
    }
    std::shuffle(names.begin(), names.end(), random_);
    add_line(from.type, dims, exact, magnitude,
             fmt::format("concatenate({}), dimensions={{{}}}", fmt::join(names, ", "), d));
  }

  // ---- data-dependent indices

  Value indices(const Dims& dims) { return below(2) ? shaped("s32", dims) : parameter("s32", dims); }

  Names scalars(std::size_t n) {
    Names names;
    for (std::size_t i = 0; i < n; ++i) {
      const Value index = indices({});
      use(index);
      names.push_back(index.name);
    }
    return names;
  }

  void indexed(const Value& from) {
    if (from.dims.empty() || count(from.dims) == 0) return;
    Dims sizes;
    for (std::int64_t extent : from.dims) sizes.push_back(below(3) ? between(1, extent) : extent);
    switch (below(3)) {
      case 0:
        add_line(from.type, sizes, from.exact, from.magnitude,
                 fmt::format("dynamic-slice({}, {}), dynamic_slice_sizes={{{}}}", from.name,
                             fmt::join(scalars(sizes.size()), ", "), fmt::join(sizes, ",")));
        return;
      case 1: {
        const Value update = shaped(from.type, sizes);
        add_line(from.type, from.dims, from.exact && update.exact, std::max(from.magnitude, update.magnitude),
                 fmt::format("dynamic-update-slice({}, {}, {})", from.name, update.name,
                             fmt::join(scalars(sizes.size()), ", ")));
        return;
      }
      default:
        return gather(from, sizes);
    }
  }

  void gather(const Value& from, Dims sizes) {
    const std::size_t rank = from.dims.size(), indexed = 1 + below(rank);
    std::vector<std::size_t> start_map = shuffled(rank), collapsed;
    start_map.resize(indexed);
    Dims windows;
    for (std::size_t d = 0; d < rank; ++d)
      if (below(2)) {
        collapsed.push_back(d);
        sizes[d] = 1;
      } else {
        windows.push_back(sizes[d]);
      }
    Dims batch;
    for (std::size_t b = 0, n = below(3); b < n; ++b) batch.push_back(between(1, 12));
    if (count(batch) * count(windows) > options_.max_elements) return;
    if (batch.size() + windows.size() > 6) return;
    // The index vector may be any dimension of the indices, or none where there is one index.
    Dims index_dims = batch;
    std::size_t vector_dim = below(batch.size() + 1);
    if (indexed == 1 && below(2))
      vector_dim = batch.size();
    else
      index_dims.insert(index_dims.begin() + static_cast<std::ptrdiff_t>(vector_dim),
                        static_cast<std::int64_t>(indexed));
    std::vector<std::size_t> places = shuffled(batch.size() + windows.size());
    places.resize(windows.size());
    std::sort(places.begin(), places.end());
    Dims dims;
    for (std::size_t d = 0, w = 0, b = 0; d < batch.size() + windows.size(); ++d)
      dims.push_back(w < places.size() && places[w] == d ? windows[w++] : batch[b++]);
    const Value index = indices(index_dims);
    use(index);
    add_line(from.type, dims, from.exact, from.magnitude,
             fmt::format("gather({}, {}), offset_dims={{{}}}, collapsed_slice_dims={{{}}}, "
                         "start_index_map={{{}}}, index_vector_dim={}, slice_sizes={{{}}}",
                         from.name, index.name, fmt::join(places, ","), fmt::join(collapsed, ","),
                         fmt::join(start_map, ","), vector_dim, fmt::join(sizes, ",")));
  }

  void dot(const Value& from) {
    if (from.dims.size() != 2 || from.dims[1] > 128 || !is_float(from.type)) return;
    const Value a = tamed(from);
    const Dims weights{a.dims[1], between(1, 40)};
    const Value b = tamed(shaped(a.type, weights));
    use(a);
    use(b);
    tamed(add_line(
        a.type, {a.dims[0], weights[1]}, false, a.magnitude * b.magnitude * static_cast<double>(a.dims[1]),
        fmt::format("dot({}, {}), lhs_contracting_dims={{1}}, rhs_contracting_dims={{0}}", a.name, b.name)));
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

  static constexpr int kKinds = 11;
  static constexpr std::int64_t kExtents[] = {1,  2,  3,   5,   7,   8,   16,   31,
                                              33, 64, 100, 128, 257, 300, 1030, 2100};

  std::mt19937 random_;
  RandomGraphOptions options_;
  Names lines_;
  std::vector<Value> values_;
  Dims extents_;  ///< few, so that shapes meet
  std::vector<int> weights_;
  std::map<std::string, std::string> constants_, reducers_;
  int next_ = 0, parameters_ = 0;
};

inline std::string random_hlo(std::uint32_t seed, RandomGraphOptions options = {}) {
  return RandomGraph(seed, options).text();
}

}  // namespace stitchwork::testing
