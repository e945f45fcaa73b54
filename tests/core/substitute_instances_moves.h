// Random instances of the rules that move values: identities, layout, broadcasts.
#pragma once

#include "tests/core/substitute_text.h"

namespace stitchwork::testing::instances {

using T = InstanceText;

inline Extents identity_order(std::size_t n) {
  Extents result;
  for (std::size_t i = 0; i < n; ++i) result.push_back(static_cast<std::int64_t>(i));
  return result;
}
inline Extents wide_extents(T& t, std::size_t rank) {
  Extents result;
  for (std::size_t i = 0; i < rank; ++i) result.push_back(2 + static_cast<std::int64_t>(t.below(3)));
  return result;
}
inline std::string done(T& t, const std::string& place) {
  t.result(place);
  return place;
}

// ---- same
inline std::string same(T& t) {
  const std::string x = t.parameter(t.any_type(), t.any_extents(1));
  t.fan_out(x);
  const Extents dims = t.dims(x);
  switch (t.below(8)) {
    case 0:
      return done(t, t.reshape(x, dims));
    case 1:
      return done(t, t.transpose(x, identity_order(dims.size())));
    case 2:
      return done(t, t.broadcast(x, dims, identity_order(dims.size())));
    case 3:
      return done(t, t.slice(x, 0, 0, dims[0]));
    case 4:
      return done(t, t.unary(t.once_in(2) ? "copy" : "convert", x));
    case 5: {
      Extents ones;
      for (std::size_t d = 0; d < dims.size(); ++d)
        if (dims[d] == 1) ones.push_back(static_cast<std::int64_t>(d));
      return done(t, t.reverse(x, ones));
    }
    case 6: {
      const std::string zero = t.constant(t.type(x), t.type(x) == "pred" ? "false" : "0");
      return done(t, t.line(t.type(x), dims,
                            fmt::format("pad({}, {}), padding={}", x, zero,
                                        fmt::join(std::vector<std::string>(dims.size(), "0_0"), "x"))));
    }
    default:
      return done(t, t.concatenate({x}, t.below(dims.size())));
  }
}
inline std::string nearly_same(T& t) {
  const std::string x = t.parameter(t.any_type(), wide_extents(t, 1 + t.below(5)));
  const Extents dims = t.dims(x);
  const std::size_t d = t.below(dims.size());
  switch (t.below(4)) {
    case 0:
      return done(t, t.slice(x, d, 1, dims[d]));
    case 1:
      return done(t, t.reverse(x, {static_cast<std::int64_t>(d)}));
    case 2:
      return done(t, t.line(t.type(x) == "f32" ? "f64" : "f32", dims, fmt::format("convert({})", x)));
    default: {
      const std::string square = t.parameter("f32", {3, 3});
      return done(t, t.transpose(square, {1, 0}));
    }
  }
}

// ---- layout-pair
inline std::string layout_pair(T& t) {
  const std::string x = t.parameter(t.any_type(), t.any_extents(1));
  const Extents dims = t.dims(x);
  std::int64_t count = 1;
  for (const std::int64_t d : dims) count *= d;
  switch (t.below(6)) {
    case 0: {
      const std::string flat = t.reshape(x, {1, count});
      t.fan_out(flat);
      return done(t, t.reshape(flat, t.once_in(2) ? dims : Extents{count}));
    }
    case 1:
      return done(t, t.transpose(t.transpose(x, t.permutation(dims.size())), t.permutation(dims.size())));
    case 2: {
      const std::size_t d = t.below(dims.size());
      return done(t, t.slice(t.slice(x, d, 0, dims[d], 1 + static_cast<std::int64_t>(t.below(2))), d, 0, 1));
    }
    case 3: {
      const Extents all = t.permutation(dims.size());
      return done(t, t.reverse(t.reverse(x, all), all));
    }
    case 4: {
      Extents more = dims, at = identity_order(dims.size());
      more.push_back(2);
      Extents most = more, at_more = identity_order(more.size());
      most.push_back(3);
      const std::string b = t.broadcast(x, more, at);
      t.fan_out(b);
      return done(t, t.broadcast(b, most, at_more));
    }
    default: {
      const std::string column = t.parameter("f32", {4});
      return done(t, t.broadcast(t.reshape(t.broadcast(t.reshape(column, {4, 1}), {4, 1}, {0, 1}), {4}),
                                 {4, 5}, {0}));
    }
  }
}
inline std::string nearly_layout_pair(T& t) {
  const Extents dims = wide_extents(t, 2);
  const std::string x = t.parameter(t.any_type(), dims);
  switch (t.below(6)) {
    case 4:
      return done(t, t.reverse(t.slice(x, 0, 0, 1), {1}));
    case 5:
      return done(t, t.broadcast(t.slice(x, 0, 0, dims[0] - 1), {dims[0] - 1, dims[1], 2}, {0, 1}));
    case 0:
      return done(t, t.slice(t.transpose(x, {1, 0}), 0, 1, dims[1]));
    case 1:
      return done(t, t.reverse(t.transpose(x, {1, 0}), {0}));
    case 2:
      return done(t, t.reshape(t.transpose(x, {1, 0}), {dims[0] * dims[1]}));
    default:
      return done(t, t.transpose(t.binary("maximum", x, x), {1, 0}));
  }
}

// ---- neutral
inline std::string neutral(T& t) {
  struct Form {
    const char *op, *value;
    bool left, ints;
  };
  const Form form = t.one_of<Form>({{"maximum", "-inf", true, false},
                                    {"minimum", "inf", true, false},
                                    {"multiply", "1", true, true},
                                    {"divide", "1", false, true},
                                    {"subtract", "0", false, true},
                                    {"add", "-0.0", true, false},
                                    {"add", "0", true, true}});
  const bool ints =
      std::string(form.op) == "add" && std::string(form.value) == "0" ? true : form.ints && t.once_in(2);
  const std::string type = ints ? t.one_of<std::string>({"s32", "u8"}) : t.float_type();
  const std::string x = t.parameter(type, t.any_extents());
  const std::string value =
      t.dims(x).empty() ? t.constant(type, form.value) : t.filled(type, form.value, t.dims(x));
  t.fan_out(x);
  return done(t, form.left && t.once_in(2) ? t.binary(form.op, value, x) : t.binary(form.op, x, value));
}
inline std::string nearly_neutral(T& t) {
  const std::string x = t.parameter(t.float_type(), t.any_extents(1));
  const auto filled = [&](const char* value) { return t.filled(t.type(x), value, t.dims(x)); };
  switch (t.below(6)) {
    case 0:
      return done(t, t.binary("add", x, filled("0")));  // -0 + 0 is 0
    case 1:
      return done(t, t.binary("maximum", x, filled("-1e4")));
    case 2:
      return done(t, t.binary("divide", filled("1"), x));
    case 3:
      return done(t, t.binary("subtract", filled("0"), x));
    case 4:
      return done(t, t.binary("subtract", x, filled("-0.0")));
    default:
      return done(t, t.binary("minimum", x, filled("-inf")));
  }
}

// ---- constant
inline std::string constant(T& t) {
  const std::string type = t.float_type();
  const std::string row = t.line(type, {4}, "constant({0.5, -1, 2, 3})");
  switch (t.below(4)) {
    case 0:
      return done(t, t.binary(t.one_of<std::string>({"add", "multiply", "maximum"}), row, row));
    case 1:
      return done(t, t.reshape(row, {2, 1, 2}));
    case 2:
      return done(t, t.reduce(row, {0}));
    default:
      return done(t, t.slice(row, 0, 1, 4, 2));
  }
}
inline std::string nearly_constant(T& t) {
  const std::string type = t.float_type();
  const std::string row = t.line(type, {4}, "constant({0.5, -1, 2, 3})");
  if (t.once_in(2)) return done(t, t.broadcast(row, {4, 3}, {0}));
  return done(t, t.binary("add", row, t.parameter(type, {4})));
}

// ---- slice-of-concat, concat-of-slices
inline std::string slice_of_concat(T& t) {
  const std::string type = t.any_type();
  const Extents dims = wide_extents(t, 1 + t.below(4));
  const std::size_t d = t.below(dims.size());
  std::vector<std::string> parts;
  for (std::size_t i = 0; i < 3; ++i) {
    Extents part = dims;
    part[d] = 2 + static_cast<std::int64_t>(t.below(4));
    parts.push_back(t.parameter(type, part));
  }
  const std::string whole = t.concatenate(parts, d);
  t.fan_out(whole);
  std::int64_t offset = 0;
  const std::size_t chosen = t.below(3);
  for (std::size_t i = 0; i < chosen; ++i) offset += t.dims(parts[i])[d];
  const std::int64_t extent = t.dims(parts[chosen])[d], start = static_cast<std::int64_t>(t.below(2));
  return done(t,
              t.slice(whole, d, offset + start, offset + extent, 1 + static_cast<std::int64_t>(t.below(2))));
}
inline std::string nearly_slice_of_concat(T& t) {
  const std::string a = t.parameter("f32", {3, 4}), b = t.parameter("f32", {3, 4});
  return done(t, t.slice(t.concatenate({a, b}, 1), 1, static_cast<std::int64_t>(t.below(4)),
                         5 + static_cast<std::int64_t>(t.below(3))));
}
inline std::string concat_of_slices(T& t) {
  Extents dims = t.extents(1 + t.below(4));
  const std::size_t d = t.below(dims.size());
  dims[d] = 6;
  const std::string x = t.parameter(t.any_type(), dims);
  const bool whole = t.once_in(2);
  std::vector<std::string> parts{t.slice(x, d, whole ? 0 : 1, 2), t.slice(x, d, 2, 5)};
  if (whole) parts.push_back(t.slice(x, d, 5, 6));
  t.fan_out(parts[0]);
  return done(t, t.concatenate(parts, d));
}
inline std::string nearly_concat_of_slices(T& t) {
  const std::string x = t.parameter("f32", {6, 6}), y = t.parameter("f32", {6, 6});
  switch (t.below(4)) {
    case 0:
      return done(t, t.concatenate({t.slice(x, 0, 3, 6), t.slice(x, 0, 0, 3)}, 0));
    case 1:
      return done(t, t.concatenate({t.slice(x, 0, 0, 2), t.slice(x, 0, 3, 6)}, 0));
    case 2:
      return done(t, t.concatenate({t.slice(x, 0, 0, 3), t.slice(y, 0, 3, 6)}, 0));
    default:
      return done(t, t.concatenate({t.slice(x, 0, 0, 3), t.slice(x, 0, 3, 6)}, 1));
  }
}

// ---- broadcast-down, through-elementwise, before-elementwise
inline std::string two_operands(T& t, const std::string& x, const std::string& y) {
  return t.type(x) == "pred"
             ? t.binary(t.one_of<std::string>({"and", "or", "maximum"}), x, y)
             : t.binary(t.one_of<std::string>({"add", "subtract", "multiply", "maximum"}), x, y);
}
inline std::string broadcast_down(T& t) {
  const std::string type = t.any_type();
  const Extents to = wide_extents(t, 1 + t.below(5));
  const Extents at = t.some_of(to.size() - 1);  // one dimension at least is new
  Extents from;
  for (const std::int64_t d : at) from.push_back(to[static_cast<std::size_t>(d)]);
  const std::string x = t.broadcast(t.parameter(type, from), to, at);
  std::string y = t.broadcast(t.parameter(type, from), to, at);
  if (t.once_in(3)) y = t.filled(type, type == "pred" ? "true" : "2", to);
  if (t.once_in(3)) {  // as JAX writes it
    Extents one = from;
    one.push_back(1);
    y = t.broadcast(t.reshape(t.reshape(t.parameter(type, from), one), from), to, at);
  }
  t.fan_out(x);
  if (t.once_in(4) && type != "pred" && type != "u8") return done(t, t.unary("abs", x));
  return done(t, two_operands(t, x, y));
}
inline std::string nearly_broadcast_down(T& t) {
  const std::string type = t.float_type();
  const std::string x = t.broadcast(t.parameter(type, {3}), {3, 3}, {0});
  if (t.once_in(2)) return done(t, t.binary("add", x, t.broadcast(t.parameter(type, {3}), {3, 3}, {1})));
  return done(t, t.binary("add", x, t.parameter(type, {3, 3})));
}
inline std::string through_elementwise(T& t) {
  const std::string type = t.any_type();
  Extents dims = t.any_extents(2);
  dims[0] = 2;
  const Extents order = t.permutation(dims.size());
  std::int64_t count = 1;
  for (const std::int64_t d : dims) count *= d;
  const std::size_t kind = t.below(4);
  const auto moved = [&] {
    const std::string x = t.parameter(type, dims);
    const std::string result = kind == 0   ? t.transpose(x, order)
                               : kind == 1 ? t.reshape(x, {count, 1})
                               : kind == 2 ? t.reverse(x, {0})
                                           : t.concatenate({x, t.parameter(type, dims)}, 1);
    t.fan_out(result);
    return result;
  };
  std::string x = moved();
  const std::string y = t.once_in(3) ? t.filled(type, type == "pred" ? "true" : "2", t.dims(x)) : moved();
  if (type != "pred" && t.once_in(3)) {
    const std::string less = t.line("pred", t.dims(x), fmt::format("compare({}, {}), direction=LT", x, y));
    return done(t, less);
  }
  return done(t, t.once_in(2) ? two_operands(t, x, y) : two_operands(t, y, x));
}
inline std::string nearly_through_elementwise(T& t) {
  const std::string x = t.parameter("f32", {3, 3}), y = t.parameter("f32", {3, 3});
  if (t.once_in(2)) return done(t, t.binary("add", t.transpose(x, {1, 0}), y));
  return done(t, t.binary("add", t.reverse(x, {1}), t.reverse(y, {0})));
}
inline std::string before_elementwise(T& t) {
  const std::string type = t.any_type();
  const Extents dims = t.any_extents(1);
  const std::string x = t.parameter(type, dims);
  const std::string y =
      t.once_in(3) ? t.filled(type, type == "pred" ? "true" : "2", dims) : t.parameter(type, dims);
  std::string f = two_operands(t, x, y);
  if (t.once_in(3) && type != "pred")  // scalar bounds stay as they are
    f = t.line(type, dims, fmt::format("clamp({}, {}, {})", t.constant(type, "0"), x, t.constant(type, "1")));
  std::int64_t count = 1;
  for (const std::int64_t d : dims) count *= d;
  switch (t.below(4)) {
    case 0:
      return done(t, t.transpose(f, t.permutation(dims.size())));
    case 1:
      return done(t, t.reshape(f, {1, count}));
    case 2:
      return done(t, t.reverse(f, {0}));
    default:
      return done(t, t.slice(f, 0, 0, 1 + dims[0] / 2));
  }
}
inline std::string nearly_before_elementwise(T& t) {
  const std::string x = t.parameter("f32", {3, 4});
  const std::string f = t.once_in(2) ? t.binary("add", x, x) : t.reduce(t.parameter("f32", {3, 4, 5}), {2});
  t.result(f);
  return done(t, t.transpose(f, {1, 0}));
}

inline const std::vector<InstanceRow>& moves() {
  static const std::vector<InstanceRow> rows = {
      {"same", same, {nearly_same}},
      {"layout-pair", layout_pair, {nearly_layout_pair}},
      {"neutral", neutral, {nearly_neutral}},
      {"constant", constant, {nearly_constant}},
      {"slice-of-concat", slice_of_concat, {nearly_slice_of_concat}},
      {"concat-of-slices", concat_of_slices, {nearly_concat_of_slices}},
      {"broadcast-down", broadcast_down, {nearly_broadcast_down}},
      {"through-elementwise", through_elementwise, {nearly_through_elementwise}},
      {"before-elementwise", before_elementwise, {nearly_before_elementwise}},
  };
  return rows;
}

}  // namespace stitchwork::testing::instances
