// Reductions of a random graph, patterns that read a reduction back (normalisations), and dots.
#pragma once

#include "tests/support/random_graph_elementwise.h"

namespace stitchwork::testing {

class RandomReductions : public RandomElementwise {
 protected:
  using RandomElementwise::RandomElementwise;

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

  /// The sum of exp(x - its largest) or (x - its mean)^2 over the same dimensions, and x's terms over it.
  void normalise(const Value& from) {
    if (from.dims.empty() || (from.type != "f32" && from.type != "f64")) return;
    constexpr double kLargest = 16;  // of an exponential's rounding errors
    const Value x = tamed(from);
    const std::vector<std::size_t> reduced =
        below(2) ? std::vector{x.dims.size() - 1} : some_dimensions(x.dims.size());
    if (reduced.empty() || x.magnitude > kLargest) return;
    use(x);
    Dims kept;
    std::vector<std::size_t> kept_dimensions;
    for (std::size_t d = 0; d < x.dims.size(); ++d)
      if (std::find(reduced.begin(), reduced.end(), d) == reduced.end()) {
        kept.push_back(x.dims[d]);
        kept_dimensions.push_back(d);
      }
    const double n =
        std::max(1.0, static_cast<double>(count(x.dims)) / std::max(1.0, static_cast<double>(count(kept))));
    const bool exponentials = below(2) != 0;
    const auto line = [&](const Dims& dims, double magnitude, const std::vector<Value>& of,
                          const std::string& text) {
      for (const Value& value : of) use(value);
      return add_line(x.type, dims, false, magnitude, text);
    };
    const auto reduction = [&](const Value& of, const std::string& initial, const char* op,
                               double magnitude) {
      return line(kept, magnitude, {of},
                  fmt::format("reduce({}, {}), dimensions={{{}}}, to_apply={}", of.name, initial,
                              fmt::join(reduced, ","), reducer(op, x.type)));
    };
    const auto spread = [&](const Value& of) {
      return line(x.dims, of.magnitude, {of},
                  fmt::format("broadcast({}), dimensions={{{}}}", of.name, fmt::join(kept_dimensions, ",")));
    };
    const auto binary = [&](const char* op, const Value& a, const Value& b, double magnitude) {
      return line(a.dims, magnitude, {a, b}, fmt::format("{}({}, {})", op, a.name, b.name));
    };
    const std::string zero = constant(x.type, "0");
    Value about = exponentials ? reduction(x, constant(x.type, "-inf"), "maximum", x.magnitude)
                               : reduction(x, zero, "add", x.magnitude * n);
    if (!exponentials) {
      const Value part =
          line(kept, 1 / n, {},
               fmt::format("broadcast({}), dimensions={{}}", constant(x.type, fmt::format("{}", 1 / n))));
      about = binary("multiply", about, part, x.magnitude);
    }
    const Value further = binary("subtract", x, spread(about), 2 * x.magnitude);
    const Value terms = exponentials
                            ? line(x.dims, 1, {further}, fmt::format("exponential({})", further.name))
                            : binary("multiply", further, further, 4 * x.magnitude * x.magnitude);
    const Value sum = tamed(reduction(terms, zero, "add", terms.magnitude * n));
    if (below(3) != 0) tamed(binary("multiply", terms, spread(sum), terms.magnitude * sum.magnitude));
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
};

}  // namespace stitchwork::testing
