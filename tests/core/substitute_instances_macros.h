// Random instances of the macros.
#pragma once

#include "tests/core/substitute_instances_sums.h"

namespace stitchwork::testing::instances {

// ---- softmax-dot, linear-attention
/// value / sum(value) over what the dot contracts of it, as an operand of the dot.
inline std::string normalised(T& t, const Dot& dot, std::size_t side, const std::string& value,
                              const Extents& summed) {
  const std::string sum = t.reduce(value, summed);
  Extents at;
  for (std::size_t d = 0; d < dot.side(side).size(); ++d)
    if (std::ranges::count(summed, static_cast<std::int64_t>(d)) == 0)
      at.push_back(static_cast<std::int64_t>(d));
  const std::string divide = t.binary("divide", value, t.broadcast(sum, t.dims(value), at));
  return done(t, dot.write(t, side, divide, operand(t, t.type(value), dot, 1 - side)));
}
inline Extents summed_places(const Dot& dot, std::size_t side) {
  Extents result = Dot::places(dot.contracted, dot.side(side));
  std::ranges::sort(result);
  return result;
}
inline std::string softmax_dot(T& t) {
  const Dot dot = wide_dot(t, t.below(3), t.below(3), t.below(3), 1 + t.below(2));
  const std::size_t side = t.below(2);
  const std::string e = t.unary("exponential", operand(t, t.wide_float(), dot, side));
  return normalised(t, dot, side, e, summed_places(dot, side));
}
inline std::string nearly_softmax_dot(T& t) {
  const Dot dot = wide_dot(t, 1, 1, 1, 1);
  const std::size_t side = t.below(2);
  switch (t.below(3)) {
    case 0:  // no exponential
      return normalised(t, dot, side, t.unary("abs", operand(t, "f32", dot, side)), summed_places(dot, side));
    case 1:  // f16
      return normalised(t, dot, side, t.unary("exponential", operand(t, "f16", dot, side)),
                        summed_places(dot, side));
    default: {  // the sum is over other dimensions
      const Extents other{static_cast<std::int64_t>(dims_of_kind(dot.side(side), "b")[0])};
      return normalised(t, dot, side, t.unary("exponential", operand(t, "f32", dot, side)), other);
    }
  }
}
inline std::string linear(T& t, const std::string& type, bool fan_out) {
  // q [b, m, d], k [b, n, d], v [b, n, e]; the scores in either order.
  const std::int64_t b = 1 + t.extent(), m = 1 + t.extent(), n = 1 + t.extent(), d = t.extent(),
                     e = t.extent();
  const bool batched = t.once_in(2), swapped = t.once_in(2);
  const auto dims = [&](std::int64_t x, std::int64_t y) {
    return batched ? Extents{b, x, y} : Extents{x, y};
  };
  const std::string q = t.parameter(type, dims(m, d)), k = t.parameter(type, dims(n, d)),
                    v = t.parameter(type, dims(n, e));
  const auto dot = [&](const std::string& x, const std::string& y, const Extents& out, int l, int r) {
    const int shift = batched ? 1 : 0;
    const char* batch = batched ? "lhs_batch_dims={0}, rhs_batch_dims={0}, " : "";
    return t.line(type, out,
                  fmt::format("dot({}, {}), {}lhs_contracting_dims={{{}}}, rhs_contracting_dims={{{}}}", x, y,
                              batch, l + shift, r + shift));
  };
  const std::string a = swapped ? dot(k, q, dims(n, m), 1, 1) : dot(q, k, dims(m, n), 1, 1);
  if (fan_out) t.result(a);
  const std::int64_t over = (batched ? 1 : 0) + (swapped ? 0 : 1),
                     kept = (batched ? 1 : 0) + (swapped ? 1 : 0);
  const std::string sum = t.reduce(a, {over});
  const std::string p =
      t.binary("divide", a, t.broadcast(sum, t.dims(a), batched ? Extents{0, kept} : Extents{kept}));
  const int inner = static_cast<int>(over) - (batched ? 1 : 0);
  if (t.once_in(2)) return done(t, dot(p, v, dims(m, e), inner, 0));
  return done(t, dot(v, p, dims(e, m), 0, inner));
}
inline std::string linear_attention(T& t) { return linear(t, t.wide_float(), false); }
inline std::string nearly_linear_attention(T& t) {
  if (t.once_in(2)) return linear(t, "f16", false);
  return linear(t, "f32", true);
}

inline const std::vector<InstanceRow>& macros() {
  static const std::vector<InstanceRow> rows = {
      {"softmax-dot", softmax_dot, {nearly_softmax_dot}},
      {"linear-attention", linear_attention, {nearly_linear_attention}},
  };
  return rows;
}

}  // namespace stitchwork::testing::instances
