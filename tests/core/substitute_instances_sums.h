// Random instances of the rules of scales, sums and convolutions.
#pragma once

#include "tests/core/substitute_instances_dots.h"

namespace stitchwork::testing::instances {

/// An array that varies along the named dimensions only, spelt in one of several ways, over `dims`.
inline std::string repeated(T& t, const std::string& type, const Extents& dims, const Extents& at) {
  Extents from;
  for (const std::int64_t d : at) from.push_back(dims[static_cast<std::size_t>(d)]);
  std::string x = t.parameter(type, from);
  if (t.once_in(3)) {  // as JAX writes it
    Extents one = from;
    one.push_back(1);
    x = t.reshape(t.broadcast(t.reshape(x, one), one, identity_order(one.size())), from);
  }
  if (t.once_in(3) && from.size() > 1) {
    const Extents order = t.permutation(from.size());
    Extents inverse(order.size());
    for (std::size_t i = 0; i < order.size(); ++i)
      inverse[static_cast<std::size_t>(order[i])] = static_cast<std::int64_t>(i);
    x = t.transpose(t.transpose(x, order), inverse);
  }
  return t.broadcast(x, dims, at);
}
/// The dimensions of these kinds, some of them.
inline Extents some_dims(T& t, const std::vector<Dot::Dim>& dims, const std::string& kinds) {
  Extents result;
  for (const std::size_t d : dims_of_kind(dims, kinds))
    if (t.once_in(2)) result.push_back(static_cast<std::int64_t>(d));
  return result;
}
inline std::string scale_by(T& t, const std::string& x, const std::string& s) {
  switch (t.below(3)) {
    case 0:
      return t.binary("divide", x, s);
    case 1:
      return t.binary("multiply", s, x);
    default:
      return t.binary("multiply", x, s);
  }
}
/// A dot of which something is certain to be repeated along what it contracts: extents of 2 and more there.
inline Dot wide_dot(T& t, std::size_t batches, std::size_t left, std::size_t right, std::size_t inner) {
  Dot dot(t, batches, left, right, inner);
  for (std::vector<Dot::Dim>* dims : {&dot.lhs, &dot.rhs, &dot.batch, &dot.contracted})
    for (Dot::Dim& d : *dims)
      d.extent = 2 + static_cast<std::int64_t>((d.number + static_cast<std::size_t>(d.kind)) % 3);
  return dot;
}

// ---- scale-out-of-dot, scale-into-dot, scale-across-dot
inline std::string scaled_operand(T& t, const std::string& type, const std::string& kinds, bool fan_out,
                                  const std::string& certainly = "") {
  const Dot dot = wide_dot(t, 1 + t.below(2), 1 + t.below(2), 1 + t.below(2), 1 + t.below(2));
  const std::size_t side = t.below(2);
  const std::vector<Dot::Dim>& dims = dot.side(side);
  Extents at = some_dims(t, dims, kinds);
  for (const std::size_t d : dims_of_kind(dims, certainly))
    if (std::ranges::count(at, static_cast<std::int64_t>(d)) == 0) at.push_back(static_cast<std::int64_t>(d));
  std::ranges::sort(at);
  const std::string x = operand(t, type, dot, side);
  t.fan_out(x);
  const std::string scaled = scale_by(t, x, repeated(t, type, Dot::extents(dims), at));
  if (fan_out) t.result(scaled);
  return done(t, dot.write(t, side, scaled, operand(t, type, dot, 1 - side)));
}
inline std::string scale_out_of_dot(T& t) { return scaled_operand(t, t.wide_float(), "blr", false); }
inline std::string nearly_scale_out_of_dot(T& t) {
  switch (t.below(3)) {
    case 0:
      return scaled_operand(t, "f16", "blr", false);
    case 1:
      return scaled_operand(t, t.wide_float(), "blr", true);
    default:
      return scaled_operand(t, t.wide_float(), "blr", false, "k");
  }
}
inline std::string scaled_dot(T& t, const std::string& type, bool fan_out, bool both) {
  const Dot dot = wide_dot(t, t.below(3), 1 + t.below(2), 1 + t.below(2), t.below(3));
  const std::string made = dot.write(t, operand(t, type, dot, 0), operand(t, type, dot, 1));
  if (fan_out) t.result(made);
  Extents at = some_dims(t, dot.out(), t.once_in(2) ? "bl" : "br");
  if (both) {
    at.clear();
    for (const std::size_t d : dims_of_kind(dot.out(), "lr")) at.push_back(static_cast<std::int64_t>(d));
  }
  return done(t, scale_by(t, made, repeated(t, type, t.dims(made), at)));
}
inline std::string scale_into_dot(T& t) { return scaled_dot(t, t.wide_float(), false, false); }
inline std::string nearly_scale_into_dot(T& t) {
  switch (t.below(3)) {
    case 0:
      return scaled_dot(t, "f16", false, false);
    case 1:
      return scaled_dot(t, t.wide_float(), true, false);
    default:
      return scaled_dot(t, t.wide_float(), false, true);
  }
}
inline std::string scale_across_dot(T& t) { return scaled_operand(t, t.wide_float(), "b", false, "k"); }
inline std::string nearly_scale_across_dot(T& t) {
  switch (t.below(3)) {
    case 0:
      return scaled_operand(t, "f16", "b", false, "k");
    case 1:
      return scaled_operand(t, t.wide_float(), "b", false, "l");
    default:
      return scaled_operand(t, t.wide_float(), "b", true, "k");
  }
}

// ---- reduce-as-dot, dot-as-product, reduce-of-dot
inline std::string reduce_as_dot(T& t) {
  const std::string type = t.float_type();
  if (t.once_in(2)) {  // beside a dot that contracts the same
    const Dot dot(t, t.below(3), t.below(3), t.below(3), 1 + t.below(2));
    const std::size_t side = t.below(2);
    const std::string x = operand(t, type, dot, side);
    t.result(dot.write(t, side, x, operand(t, type, dot, 1 - side)));
    Extents reduced = Dot::places(dot.contracted, dot.side(side));
    std::ranges::sort(reduced);
    return done(t, t.reduce(x, reduced));
  }
  const Extents dims = t.any_extents(1);
  const std::string x = t.parameter(type, dims);
  t.fan_out(x);
  return done(t, t.reduce(x, t.some_of(dims.size(), 1)));
}
inline std::string nearly_reduce_as_dot(T& t) {
  const Extents dims = t.any_extents(1);
  switch (t.below(3)) {
    case 0:
      return done(t, t.reduce(t.parameter("s32", dims), {0}));
    case 1:
      return done(t, t.reduce(t.parameter("f32", dims), {0}, "add", "1"));
    default:
      return done(t, t.reduce(t.parameter("f32", dims), {0}, "maximum", "0"));
  }
}
inline std::string dot_as_product(T& t) {
  const std::string type = t.float_type();
  Dot dot(t, t.below(3), t.below(3), t.below(3), t.below(3));
  const std::string ones = t.once_in(2) ? "k" : "lr";
  for (std::vector<Dot::Dim>* dims : {&dot.lhs, &dot.rhs, &dot.contracted})
    for (Dot::Dim& d : *dims)
      if (ones.find(d.kind) != std::string::npos) d.extent = 1;
  return done(t, dot.write(t, operand(t, type, dot, 0), operand(t, type, dot, 1)));
}
inline std::string nearly_dot_as_product(T& t) {
  const std::string type = t.float_type();
  const Dot dot = wide_dot(t, t.below(3), 1, t.below(2), 1);
  return done(t, dot.write(t, operand(t, type, dot, 0), operand(t, type, dot, 1)));
}
inline Extents own_places(T& t, const Dot& dot, const std::string& kind) {
  Extents reduced = some_dims(t, dot.out(), kind);
  if (reduced.empty()) reduced.push_back(static_cast<std::int64_t>(dims_of_kind(dot.out(), kind)[0]));
  return reduced;
}
inline std::string reduce_of_dot(T& t) {
  const std::string type = t.float_type();
  const Dot dot(t, t.below(3), 1 + t.below(2), 1 + t.below(2), t.below(3));
  const std::string made = dot.write(t, operand(t, type, dot, 0), operand(t, type, dot, 1));
  t.fan_out(made);
  return done(t, t.reduce(made, own_places(t, dot, t.once_in(2) ? "l" : "r")));
}
inline std::string nearly_reduce_of_dot(T& t) {
  const Dot dot(t, 1, 1, 1, 1);
  const std::string made = dot.write(t, operand(t, "f32", dot, 0), operand(t, "f32", dot, 1));
  switch (t.below(4)) {
    case 0:
      return done(t, t.reduce(made, {0}));  // a batch dimension
    case 1:
      return done(t, t.reduce(made, {1, 2}));  // of both
    case 2:
      return done(t, t.reduce(made, {1}, "add", "1"));
    default:
      return done(t, t.reduce(made, {1}, "maximum", "-inf"));
  }
}

// ---- reduce-pair, reduce-of-broadcast, reduce-through-layout
inline std::string reduce_pair(T& t) {
  const std::string type = t.float_type();
  const Extents dims = t.any_extents(2);
  const std::vector<std::pair<std::string, std::string>> forms{
      {"add", "0"}, {"maximum", "-inf"}, {"minimum", "inf"}, {"multiply", "1"}};
  const auto [op, identity] = t.one_of(forms);
  const std::string inner =
      t.reduce(t.parameter(type, dims), {static_cast<std::int64_t>(t.below(dims.size()))}, op, identity);
  return done(t, t.reduce(inner, t.some_of(dims.size() - 1, 1), op, t.once_in(2) ? "2" : identity));
}
inline std::string nearly_reduce_pair(T& t) {
  const std::string x = t.parameter("f32", {3, 4, 2});
  switch (t.below(3)) {
    case 0:
      return done(t, t.reduce(t.reduce(x, {0}, "add", "1"), {0}));
    case 1:
      return done(t, t.reduce(t.reduce(x, {0}, "maximum", "-inf"), {0}));
    default: {
      const std::string inner = t.reduce(x, {1});
      t.result(inner);
      return done(t, t.reduce(inner, {1}));
    }
  }
}
inline std::string reduce_of_broadcast(T& t) {
  const std::string type = t.float_type();
  const Extents dims = wide_extents(t, 1 + t.below(5));
  const Extents at = t.some_of(dims.size() - 1);  // the last dimension, at least, repeats
  const std::string x = repeated(t, type, dims, at);
  t.fan_out(x);
  Extents reduced = t.some_of(dims.size() - 1);
  reduced.push_back(static_cast<std::int64_t>(dims.size()) - 1);
  const std::vector<std::pair<std::string, std::string>> forms{
      {"add", "0"}, {"maximum", "-inf"}, {"minimum", "inf"}};
  const auto [op, identity] = t.one_of(forms);
  return done(t, t.reduce(x, reduced, op, identity));
}
inline std::string nearly_reduce_of_broadcast(T& t) {
  switch (t.below(4)) {
    case 0:  // 300 is none of bf16's numbers: 8 bits
      return done(t, t.reduce(t.broadcast(t.parameter("bf16", {3}), {3, 301}, {0}), {1}));
    case 1:
      return done(t, t.reduce(t.broadcast(t.parameter("f32", {3}), {3, 4}, {0}), {1}, "multiply", "1"));
    case 2:
      return done(t, t.reduce(t.broadcast(t.parameter("f32", {3}), {3, 4}, {0}), {0}));
    default:
      return done(t, t.reduce(t.broadcast(t.parameter("f32", {3}), {3, 4}, {0}), {1}, "maximum", "0"));
  }
}
inline std::string reduce_through_layout(T& t) {
  const std::string type = t.float_type();
  const std::vector<std::pair<std::string, std::string>> forms{
      {"add", "0"}, {"maximum", "-inf"}, {"multiply", "2"}};
  const auto [op, from] = t.one_of(forms);
  Extents dims = t.any_extents(1);
  dims[0] = 2 + static_cast<std::int64_t>(t.below(3));
  if (t.once_in(2)) {
    const Extents order = t.permutation(dims.size());
    const std::string x = t.transpose(t.parameter(type, dims), order);
    t.fan_out(x);
    // Ascending of what the transpose reads: one dimension, and extents of 1.
    Extents reduced;
    for (std::size_t d = 0; d < order.size(); ++d) {
      const auto i = static_cast<std::size_t>(order[d]);
      if (i == 0 || dims[i] == 1) reduced.push_back(static_cast<std::int64_t>(d));
    }
    return done(t, t.reduce(x, reduced, op, from));
  }
  Extents to{1, dims[0], 2, 1};
  dims = {2 * dims[0], 3};
  to.push_back(3);
  const std::string x = t.reshape(t.parameter(type, dims), to);
  t.fan_out(x);
  return done(t, t.reduce(x, t.once_in(2) ? Extents{1, 2} : Extents{4}, op, from));
}
inline std::string nearly_reduce_through_layout(T& t) {
  if (t.once_in(2)) return done(t, t.reduce(t.transpose(t.parameter("f32", {3, 4, 2}), {1, 0, 2}), {0, 1}));
  return done(t, t.reduce(t.reshape(t.parameter("f32", {6, 4}), {2, 3, 4}), {1}));
}

// ---- conv-as-dot, conv-merge, conv-scale
struct Convolution {
  std::string labels, window, extra;
  Extents input, kernel, output;
  std::size_t kernel_out = 0, out = 0;
};
/// A random order of dimensions; windows of 1 or more.
inline Convolution convolution(T& t, bool pointwise) {
  const std::size_t spatial = 1 + t.below(2);
  const std::int64_t batch = t.extent(), in = t.extent(), out = t.extent();
  Extents size, window, made;
  for (std::size_t s = 0; s < spatial; ++s) {
    size.push_back(3 + t.extent());
    window.push_back(pointwise ? 1 : 2);
    made.push_back(size[s] - window[s] + 1);
  }
  Convolution c;
  const auto ordered = [&](const char* own, std::int64_t first, std::int64_t second, const Extents& of,
                           Extents& dims, std::size_t* second_at) {
    std::string text;
    for (const std::int64_t d : t.permutation(spatial + 2)) {
      if (d == 1 && second_at != nullptr) *second_at = dims.size();
      text += d < 2 ? std::string(1, own[d]) : std::to_string(d - 2);
      dims.push_back(d == 0 ? first : d == 1 ? second : of[static_cast<std::size_t>(d - 2)]);
    }
    return text;
  };
  const std::string input = ordered("bf", batch, in, size, c.input, nullptr),
                    kernel = ordered("io", in, out, window, c.kernel, &c.kernel_out),
                    output = ordered("bf", batch, out, made, c.output, &c.out);
  c.labels = fmt::format("{}_{}->{}", input, kernel, output);
  c.window = fmt::format("{{size={}}}", fmt::join(window, "x"));
  return c;
}
inline std::string write(T& t, const Convolution& c, const std::string& x, const std::string& w) {
  return t.line(
      t.type(x), c.output,
      fmt::format("convolution({}, {}), window={}, dim_labels={}{}", x, w, c.window, c.labels, c.extra));
}
inline std::string conv_as_dot(T& t) {
  const std::string type = t.float_type();
  const Convolution c = convolution(t, true);
  return done(t, write(t, c, t.parameter(type, c.input), t.parameter(type, c.kernel)));
}
inline std::string nearly_conv_as_dot(T& t) {
  if (t.once_in(2)) {
    const Convolution c = convolution(t, false);
    return done(t, write(t, c, t.parameter("f32", c.input), t.parameter("f32", c.kernel)));
  }
  const std::string x = t.parameter("f32", {2, 5, 4}), w = t.parameter("f32", {1, 4, 3});
  const bool stride = t.once_in(2);
  return done(t, t.line("f32", stride ? Extents{2, 3, 3} : Extents{2, 7, 3},
                        fmt::format("convolution({}, {}), window={{size=1 {}}}, dim_labels=b0f_0io->b0f", x,
                                    w, stride ? "stride=2" : "pad=1_1")));
}
inline std::string conv_merge(T& t) {
  const std::string type = t.float_type();
  Convolution c = convolution(t, t.once_in(2));
  const std::string x = t.parameter(type, c.input);
  const std::string place = write(t, c, x, t.parameter(type, c.kernel));
  c.kernel[c.kernel_out] = c.output[c.out] = t.extent();
  t.result(write(t, c, x, t.parameter(type, c.kernel)));
  return done(t, place);
}
inline std::string nearly_conv_merge(T& t) {
  const std::string x = t.parameter("f32", {2, 5, 4});
  const std::string a = t.line("f32", {2, 5, 3},
                               fmt::format("convolution({}, {}), window={{size=1}}, dim_labels=b0f_0io->b0f",
                                           x, t.parameter("f32", {1, 4, 3})));
  t.result(t.line("f32", {2, 4, 3},
                  fmt::format("convolution({}, {}), window={{size=2}}, dim_labels=b0f_0io->b0f", x,
                              t.parameter("f32", {2, 4, 3}))));
  return done(t, a);
}
inline std::string conv_scaled(T& t, const std::string& type, bool features, bool fan_out) {
  Convolution c = convolution(t, t.once_in(2));
  c.kernel[c.kernel_out] = c.output[c.out] = 3;
  const std::string made = write(t, c, t.parameter(type, c.input), t.parameter(type, c.kernel));
  if (fan_out) t.result(made);
  std::size_t at = c.out;
  if (!features)
    for (std::size_t d = 0; d < c.output.size(); ++d)
      if (d != c.out && c.output[d] > 1) at = d;
  return done(t, scale_by(t, made, repeated(t, type, c.output, {static_cast<std::int64_t>(at)})));
}
inline std::string conv_scale(T& t) { return conv_scaled(t, t.wide_float(), true, false); }
inline std::string nearly_conv_scale(T& t) {
  switch (t.below(3)) {
    case 0:
      return conv_scaled(t, "f16", true, false);
    case 1:
      return conv_scaled(t, "f32", false, false);
    default:
      return conv_scaled(t, "f32", true, true);
  }
}

inline const std::vector<InstanceRow>& sums() {
  static const std::vector<InstanceRow> rows = {
      {"scale-out-of-dot", scale_out_of_dot, {nearly_scale_out_of_dot}},
      {"scale-into-dot", scale_into_dot, {nearly_scale_into_dot}},
      {"scale-across-dot", scale_across_dot, {nearly_scale_across_dot}},
      {"reduce-as-dot", reduce_as_dot, {nearly_reduce_as_dot}},
      {"dot-as-product", dot_as_product, {nearly_dot_as_product}},
      {"reduce-of-dot", reduce_of_dot, {nearly_reduce_of_dot}},
      {"reduce-pair", reduce_pair, {nearly_reduce_pair}},
      {"reduce-of-broadcast", reduce_of_broadcast, {nearly_reduce_of_broadcast}},
      {"reduce-through-layout", reduce_through_layout, {nearly_reduce_through_layout}},
      {"conv-as-dot", conv_as_dot, {nearly_conv_as_dot}},
      {"conv-merge", conv_merge, {nearly_conv_merge}},
      {"conv-scale", conv_scale, {nearly_conv_scale}},
  };
  return rows;
}

}  // namespace stitchwork::testing::instances
