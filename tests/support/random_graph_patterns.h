// What training steps and inference are made of, over a domain of rows and columns: softmax, norms, their
// gradients, losses, sums of columns. The decisions between forms of kernels are made on these.
#pragma once

#include <string>

#include "tests/support/random_graph_shapes.h"

namespace stitchwork::testing {

class RandomPatterns : public RandomShapes {
 protected:
  using RandomShapes::RandomShapes;

  /// The inputs of a step: values of the whole domain, of its rows and of its columns, one type for all of
  /// them.
  void domain_parameters() {
    static constexpr const char* kTypes[] = {"f32", "f32", "f32", "f16", "bf16", "f64"};
    const std::string type = options_.types ? one_of(kTypes) : "f32";
    const Dims all = options_.domain;
    for (std::size_t p = 0, n = 1 + below(3); p < n; ++p) wide(parameter(type, all));
    parameter(type, {all.back()});
    if (below(2)) parameter(type, {all.back()});
    if (below(2)) parameter(type, Dims(all.begin(), all.end() - 1));
    if (options_.types && below(3) == 0) parameter("pred", all);
    if (options_.types && below(4) == 0) parameter("s32", all);
  }

  void pattern() {
    const Value x = of_domain();
    switch (below(7)) {
      case 0:
        return narrow(softmax(x));
      case 1:
        return narrow(norm(x).first);
      case 2:
        return gradient(x);
      case 3:
        return column_sum(x);
      case 4:
        return loss(x);
      case 5:
        return transposed(x);
      default:
        return element_wise(x);
    }
  }

 private:
  /// As frameworks do under mixed precision: 16-bit inputs are computed with in f32.
  Value wide(const Value& from) {
    if (!is_half(from.type) || below(8) == 0) return from;
    use(from);
    return add_line("f32", from.dims, from.exact, from.magnitude, fmt::format("convert({})", from.name));
  }
  /// ... and results are rounded once, where the inputs were of 16 bits.
  void narrow(const Value& value) {
    const std::string& type = values_.front().type;
    if (!is_half(type) || value.type == type || below(4) == 0) return;
    use(value);
    add_line(type, value.dims, value.exact, value.magnitude, fmt::format("convert({})", value.name));
  }

  /// Such a value over the whole domain to compute with, a recent one preferred.
  Value of_domain() {
    std::vector<Value> fit;
    for (const Value& value : values_)
      if (is_float(value.type) && value.dims == options_.domain) fit.push_back(value);
    const Value chosen = wide(below(2) ? fit.back() : fit[below(fit.size())]);
    use(chosen);
    return tamed(chosen);
  }

  Value line(const Value& like, const Dims& dims, double magnitude, const std::vector<Value>& of,
             const std::string& text) {
    for (const Value& value : of) use(value);
    return add_line(like.type, dims, false, magnitude, text);
  }
  Value two(const char* op, const Value& a, const Value& b, double magnitude) {
    return line(a, a.dims, magnitude, {a, b}, fmt::format("{}({}, {})", op, a.name, b.name));
  }
  Value one(const char* op, const Value& a, double magnitude) {
    return line(a, a.dims, magnitude, {a}, fmt::format("{}({})", op, a.name));
  }
  Value filled(const Value& like, const Dims& dims, double value) {
    return {splat(like.type, dims, constant(like.type, fmt::format("{}", value))),
            like.type,
            dims,
            true,
            std::abs(value),
            true};
  }
  static Dims without(const Dims& dims, std::size_t d) {
    Dims kept = dims;
    kept.erase(kept.begin() + static_cast<std::ptrdiff_t>(d));
    return kept;
  }

  /// Over the last dimension, or all others.
  Value over_row(const Value& x, const char* op, const char* initial, double magnitude) {
    const std::string start = constant(x.type, initial);
    return line(x, without(x.dims, x.dims.size() - 1), magnitude, {x},
                fmt::format("reduce({}, {}), dimensions={{{}}}, to_apply={}", x.name, start,
                            x.dims.size() - 1, reducer(op, x.type)));
  }
  Value over_columns(const Value& x) {
    std::vector<std::size_t> dimensions(x.dims.size() - 1);
    std::iota(dimensions.begin(), dimensions.end(), 0);
    const double n = static_cast<double>(count(x.dims)) / static_cast<double>(x.dims.back());
    const std::string start = constant(x.type, "0");
    return line(x, {x.dims.back()}, x.magnitude * n, {x},
                fmt::format("reduce({}, {}), dimensions={{{}}}, to_apply={}", x.name, start,
                            fmt::join(dimensions, ","), reducer("add", x.type)));
  }
  Value row_mean(const Value& x) {
    const auto n = static_cast<double>(x.dims.back());
    const Value sum = over_row(x, "add", "0", x.magnitude * n);
    return two("multiply", sum, filled(x, sum.dims, 1 / n), x.magnitude);
  }
  Value along_row(const Value& of_rows, const Dims& dims) {
    std::vector<std::size_t> kept(dims.size() - 1);
    std::iota(kept.begin(), kept.end(), 0);
    return line(of_rows, dims, of_rows.magnitude, {of_rows},
                fmt::format("broadcast({}), dimensions={{{}}}", of_rows.name, fmt::join(kept, ",")));
  }
  /// Some values of the columns, everywhere; a constant where there are none of the type.
  Value of_columns(const Value& like) {
    for (std::size_t tries = 0; tries < 2 * values_.size(); ++tries) {
      Value other = values_[below(values_.size())];
      if (other.dims != Dims{like.dims.back()} || !is_float(other.type)) continue;
      if (is_half(other.type) && like.type == "f32") other = wide(other);
      if (other.type != like.type) continue;
      const Value small = tamed(other);
      return line(like, like.dims, small.magnitude, {small},
                  fmt::format("broadcast({}), dimensions={{{}}}", small.name, like.dims.size() - 1));
    }
    return filled(like, like.dims, 1.25);
  }

  /// exp(x - its row's largest) over its sum: a softmax, or what masks make of one.
  Value softmax(Value x) {
    if (below(3) == 0) x = masked(x);
    if (x.magnitude > 16) x = two("multiply", x, filled(x, x.dims, 0.25), x.magnitude / 4);
    const Value largest = over_row(x, "maximum", "-inf", x.magnitude);
    const Value e = one("exponential", two("subtract", x, along_row(largest, x.dims), 2 * x.magnitude), 1);
    const Value sum = over_row(e, "add", "0", static_cast<double>(x.dims.back()));
    return two("divide", e, along_row(sum, x.dims), 1);
  }

  Value masked(const Value& x) {
    const auto mask = std::find_if(values_.begin(), values_.end(),
                                   [&](const Value& v) { return v.type == "pred" && v.dims == x.dims; });
    if (mask == values_.end()) return x;
    const Value which = *mask, low = filled(x, x.dims, -16);
    return line(x, x.dims, std::max(16.0, x.magnitude), {which, x, low},
                fmt::format("select({}, {}, {})", which.name, x.name, low.name));
  }

  /// x about its row's mean in units of its deviation (a layer norm), or not about the mean (a root mean
  /// square norm); and the reciprocal deviation, of each row.
  std::pair<Value, Value> norm(const Value& x, bool scaled = true) {
    const bool centred = below(3) != 0;
    const Value about = centred ? two("subtract", x, along_row(row_mean(x), x.dims), 2 * x.magnitude) : x;
    const Value squares = two("multiply", about, about, about.magnitude * about.magnitude);
    const Value variance = row_mean(squares);
    const Value root =
        one("rsqrt", two("add", variance, filled(x, variance.dims, 0.0625), variance.magnitude), 4);
    Value result = two("multiply", about, along_row(root, x.dims), 16);
    if (scaled && below(2)) result = two("multiply", result, of_columns(result), 64);
    if (scaled && below(2)) result = two("add", result, of_columns(result), 68);
    return {tamed(result), root};
  }

  /// Of a norm or a softmax: rows are reduced twice and more, and maybe columns too.
  void gradient(const Value& x) {
    const bool of_norm = below(2) != 0;
    const Value y = of_norm ? norm(x, false).first : softmax(x);
    Value dy = of_domain();
    if (dy.type != y.type) dy = x;
    const Value g = two("multiply", dy, of_norm ? of_columns(dy) : y, 64);
    const Value mean = row_mean(two("multiply", g, y, 256));
    const Value dx = two("subtract", g, two("multiply", y, along_row(mean, y.dims), 256), 320);
    narrow(tamed(dx));
    if (below(3) != 0) tamed(over_columns(two("multiply", dy, y, 256)));
    if (below(2)) tamed(over_columns(dy));
  }

  void column_sum(const Value& x) {
    const Value sum = tamed(over_columns(below(2) ? two("multiply", x, x, x.magnitude * x.magnitude) : x));
    if (below(2)) narrow(two("subtract", x, spread_columns(sum, x.dims), x.magnitude + sum.magnitude));
  }
  Value spread_columns(const Value& of_cols, const Dims& dims) {
    return line(of_cols, dims, of_cols.magnitude, {of_cols},
                fmt::format("broadcast({}), dimensions={{{}}}", of_cols.name, dims.size() - 1));
  }

  /// A value a row, and of these one.
  void loss(Value x) {
    if (x.magnitude > 16) x = two("multiply", x, filled(x, x.dims, 0.25), x.magnitude / 4);
    const Value largest = over_row(x, "maximum", "-inf", x.magnitude);
    const Value shifted = two("subtract", x, along_row(largest, x.dims), 2 * x.magnitude);
    const Value sum =
        over_row(one("exponential", shifted, 1), "add", "0", static_cast<double>(x.dims.back()));
    const Value log = one("log", sum, 16);
    if (below(2)) narrow(two("subtract", shifted, along_row(log, x.dims), shifted.magnitude + 16));
    Value total = log;
    while (!total.dims.empty())
      total = tamed(over_row(total, "add", "0", 16.0 * static_cast<double>(total.dims.back())));
  }

  /// The last two dimensions change places, maybe of something computed, maybe for a sum of what are then
  /// columns.
  void transposed(Value x) {
    if (below(2)) x = two("multiply", x, of_columns(x), x.magnitude * 4);
    std::vector<std::size_t> order(x.dims.size());
    std::iota(order.begin(), order.end(), 0);
    std::swap(order[order.size() - 1], order[order.size() - 2]);
    Dims dims = x.dims;
    std::swap(dims[dims.size() - 1], dims[dims.size() - 2]);
    const Value turned = line(x, dims, x.magnitude, {x},
                              fmt::format("transpose({}), dimensions={{{}}}", x.name, fmt::join(order, ",")));
    if (below(2)) narrow(two("add", turned, filled(turned, dims, 1.25), x.magnitude + 1.25));
    if (below(4) == 0) tamed(over_columns(turned));
  }

  /// A short chain over the domain, as between two matrix products.
  void element_wise(Value x) {
    for (std::size_t k = 0, n = 1 + below(3); k < n && x.dims == options_.domain && is_float(x.type); ++k) {
      if (below(2))
        unary(x);
      else
        add_binary(x, tamed(of_columns(x)));
      x = tamed(values_.back());
    }
    if (x.dims == options_.domain && is_float(x.type)) narrow(x);
  }
};

}  // namespace stitchwork::testing
