// Random instances of rules, as HLO text: what the generators of substitute_instances_*.h are made of.
#pragma once

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cstdint>
#include <map>
#include <random>
#include <string>
#include <vector>

namespace stitchwork::testing {

using Extents = std::vector<std::int64_t>;

/// A module being written. Every reducer of every type is there; unused ones do not matter.
class InstanceText {
 public:
  explicit InstanceText(std::uint32_t seed) : random_(seed) {}

  std::size_t below(std::size_t n) { return static_cast<std::size_t>(random_() % n); }
  bool once_in(std::size_t n) { return below(n) == 0; }
  template <typename T>
  const T& one_of(const std::vector<T>& list) {
    return list[below(list.size())];
  }
  template <typename T>
  void shuffle(std::vector<T>& list) {
    for (std::size_t i = list.size(); i > 1; --i) std::swap(list[i - 1], list[below(i)]);
  }
  std::string float_type() { return one_of<std::string>({"f16", "bf16", "f32", "f64"}); }
  std::string wide_float() { return one_of<std::string>({"bf16", "f32", "f64"}); }
  std::string any_type() { return one_of<std::string>({"f16", "bf16", "f32", "f64", "s32", "u8", "pred"}); }
  std::int64_t extent() { return one_of<std::int64_t>({1, 2, 3, 4, 5}); }
  Extents extents(std::size_t rank) {
    Extents result;
    for (std::size_t i = 0; i < rank; ++i) result.push_back(rank > 4 ? 1 + extent() / 2 : extent());
    return result;
  }
  Extents any_extents(std::size_t least = 0) { return extents(least + below(7 - least)); }
  /// A random order of 0 ... n - 1.
  Extents permutation(std::size_t n) {
    Extents result;
    for (std::size_t i = 0; i < n; ++i) result.push_back(static_cast<std::int64_t>(i));
    shuffle(result);
    return result;
  }
  /// Some of 0 ... n - 1, ascending, at least so many.
  Extents some_of(std::size_t n, std::size_t least = 0) {
    Extents result = permutation(n);
    result.resize(least + (n > least ? below(n - least + 1) : 0));
    std::ranges::sort(result);
    return result;
  }

  std::string line(const std::string& type, const Extents& dims, const std::string& op) {
    const std::string name = fmt::format("v{}", lines_.size());
    lines_.push_back(fmt::format("  {} = {} {}\n", name, shape(type, dims), op));
    known_[name] = {type, dims};
    return name;
  }
  std::string parameter(const std::string& type, const Extents& dims) {
    return line(type, dims, fmt::format("parameter({})", parameters_++));
  }
  std::string constant(const std::string& type, const std::string& value) {
    return line(type, {}, fmt::format("constant({})", value));
  }
  std::string filled(const std::string& type, const std::string& value, const Extents& dims) {
    return broadcast(constant(type, value), dims, {});
  }
  std::string broadcast(const std::string& x, const Extents& to, const Extents& at) {
    return line(type(x), to, fmt::format("broadcast({}), dimensions={{{}}}", x, fmt::join(at, ",")));
  }
  std::string reshape(const std::string& x, const Extents& to) {
    return line(type(x), to, fmt::format("reshape({})", x));
  }
  std::string transpose(const std::string& x, const Extents& order) {
    Extents to;
    for (const std::int64_t d : order) to.push_back(dims(x)[static_cast<std::size_t>(d)]);
    return line(type(x), to, fmt::format("transpose({}), dimensions={{{}}}", x, fmt::join(order, ",")));
  }
  std::string reverse(const std::string& x, const Extents& at) {
    return line(type(x), dims(x), fmt::format("reverse({}), dimensions={{{}}}", x, fmt::join(at, ",")));
  }
  /// Of one dimension.
  std::string slice(const std::string& x, std::size_t d, std::int64_t start, std::int64_t limit,
                    std::int64_t stride = 1) {
    Extents to = dims(x);
    std::string ranges;
    for (std::size_t i = 0; i < to.size(); ++i)
      ranges += fmt::format("{}[{}:{}:{}]", i == 0 ? "" : ", ", i == d ? start : 0, i == d ? limit : to[i],
                            i == d ? stride : 1);
    to[d] = (limit - start + stride - 1) / stride;
    return line(type(x), to, fmt::format("slice({}), slice={{{}}}", x, ranges));
  }
  std::string concatenate(const std::vector<std::string>& parts, std::size_t d) {
    Extents to = dims(parts[0]);
    to[d] = 0;
    for (const std::string& part : parts) to[d] += dims(part)[d];
    return line(type(parts[0]), to,
                fmt::format("concatenate({}), dimensions={{{}}}", fmt::join(parts, ", "), d));
  }
  std::string unary(const std::string& op, const std::string& x) {
    return line(type(x), dims(x), fmt::format("{}({})", op, x));
  }
  std::string binary(const std::string& op, const std::string& x, const std::string& y) {
    return line(type(x), dims(x), fmt::format("{}({}, {})", op, x, y));
  }
  std::string reduce(const std::string& x, const Extents& reduced, const std::string& op = "add",
                     const std::string& from = "0") {
    Extents to;
    for (std::size_t d = 0; d < dims(x).size(); ++d)
      if (std::ranges::count(reduced, static_cast<std::int64_t>(d)) == 0) to.push_back(dims(x)[d]);
    const std::string init = constant(type(x), from), t = type(x);
    return line(t, to,
                fmt::format("reduce({}, {}), dimensions={{{}}}, to_apply={}_{}", x, init,
                            fmt::join(reduced, ","), op, t));
  }

  const std::string& type(const std::string& name) const { return known_.at(name).first; }
  const Extents& dims(const std::string& name) const { return known_.at(name).second; }

  void result(const std::string& name) {
    if (std::ranges::find(results_, name) == results_.end()) results_.push_back(name);
  }
  /// Now and then another reader.
  void fan_out(const std::string& name) {
    if (once_in(3)) result(once_in(2) ? name : binary("add", name, name));
  }

  std::string module() const {
    std::string text = "HloModule instance\n";
    for (const char* type : {"f16", "bf16", "f32", "f64", "s32", "u8", "pred"})
      for (const char* op : {"add", "maximum", "minimum", "multiply"})
        text += fmt::format(
            "{0}_{1} {{ a = {1}[] parameter(0)  b = {1}[] parameter(1)  ROOT r = {1}[] {0}(a, b) }}\n", op,
            type);
    std::string body;
    for (const std::string& line : lines_) body += line;
    std::vector<std::string> shapes;
    for (const std::string& name : results_) shapes.push_back(shape(type(name), dims(name)));
    return text + fmt::format("ENTRY main {{\n{}  ROOT result = ({}) tuple({})\n}}\n", body,
                              fmt::join(shapes, ", "), fmt::join(results_, ", "));
  }

  static std::string shape(const std::string& type, const Extents& dims) {
    return fmt::format("{}[{}]", type, fmt::join(dims, ","));
  }

 private:
  std::mt19937 random_;
  std::vector<std::string> lines_, results_;
  std::map<std::string, std::pair<std::string, Extents>> known_;
  int parameters_ = 0;
};

/// A product: extents of its batch, own and contracted dimensions, and their order in each operand.
class InstanceDot {
 public:
  struct Dim {
    char kind;  ///< b, l, r, k
    std::size_t number;
    std::int64_t extent;
    bool operator==(const Dim&) const = default;
  };
  std::vector<Dim> lhs, rhs;
  std::vector<Dim> batch, contracted;  ///< in the order of the attributes

  /// So many of each at most, at least; shuffled in both operands.
  InstanceDot(InstanceText& text, std::size_t batches, std::size_t left, std::size_t right, std::size_t inner,
              bool shuffled = true) {
    const auto make = [&](char kind, std::size_t count) {
      std::vector<Dim> dims;
      for (std::size_t i = 0; i < count; ++i) dims.push_back({kind, i, text.extent()});
      return dims;
    };
    batch = make('b', batches);
    contracted = make('k', inner);
    lhs = batch;
    rhs = batch;
    const std::vector<Dim> l = make('l', left), r = make('r', right);
    lhs.insert(lhs.end(), l.begin(), l.end());
    lhs.insert(lhs.end(), contracted.begin(), contracted.end());
    rhs.insert(rhs.end(), contracted.begin(), contracted.end());
    rhs.insert(rhs.end(), r.begin(), r.end());
    if (shuffled) {
      text.shuffle(lhs);
      text.shuffle(rhs);
      text.shuffle(batch);
      text.shuffle(contracted);
    }
  }
  static InstanceDot any(InstanceText& text) {
    return {text, text.below(3), text.below(3), text.below(3), text.below(3)};
  }

  static Extents extents(const std::vector<Dim>& dims) {
    Extents result;
    for (const Dim& dim : dims) result.push_back(dim.extent);
    return result;
  }
  std::vector<Dim> out() const {
    std::vector<Dim> result = batch;
    for (const auto* side : {&lhs, &rhs})
      for (const Dim& dim : *side)
        if (dim.kind == 'l' || dim.kind == 'r') result.push_back(dim);
    return result;
  }
  static Extents places(const std::vector<Dim>& of, const std::vector<Dim>& in) {
    Extents result;
    for (const Dim& dim : of) {
      const auto at = std::ranges::find_if(
          in, [&](const Dim& d) { return d.kind == dim.kind && d.number == dim.number; });
      result.push_back(at - in.begin());
    }
    return result;
  }
  std::string write(InstanceText& text, const std::string& x, const std::string& y) const {
    return text.line(
        text.type(x), extents(out()),
        fmt::format("dot({}, {}), lhs_batch_dims={{{}}}, lhs_contracting_dims={{{}}}, "
                    "rhs_batch_dims={{{}}}, rhs_contracting_dims={{{}}}",
                    x, y, fmt::join(places(batch, lhs), ","), fmt::join(places(contracted, lhs), ","),
                    fmt::join(places(batch, rhs), ","), fmt::join(places(contracted, rhs), ",")));
  }
  Extents lhs_extents() const { return extents(lhs); }
  Extents rhs_extents() const { return extents(rhs); }

  const std::vector<Dim>& side(std::size_t s) const { return s == 0 ? lhs : rhs; }
  /// Two operands, `x` the one of side `s`.
  std::string write(InstanceText& text, std::size_t s, const std::string& x, const std::string& other) const {
    return s == 0 ? write(text, x, other) : write(text, other, x);
  }
};

/// How an instance of a rule is written: returns the op at which it holds, or nearly.
struct InstanceRow {
  std::string_view rule;
  std::string (*holds)(InstanceText&);
  std::vector<std::string (*)(InstanceText&)> nearly;  ///< a precondition fails
};

}  // namespace stitchwork::testing
