// Element-wise steps of a random graph.
#pragma once

#include "tests/support/random_graph_values.h"

namespace stitchwork::testing {

class RandomElementwise : public RandomValues {
 protected:
  using RandomValues::RandomValues;

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
      const Value which =
          add_line("pred", from.dims, true, 0,
                   fmt::format("compare({}, {}), direction={}", from.name, other.name, one_of(kDirections)));
      use(which);
      if (below(2)) choose(which);
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
};

}  // namespace stitchwork::testing
