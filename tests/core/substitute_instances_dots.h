// Random instances of the rules of products that move values or reassociate: dots among themselves.
#pragma once

#include "tests/core/substitute_instances_moves.h"

namespace stitchwork::testing::instances {

using Dot = InstanceDot;

inline std::string operand(T& t, const std::string& type, const Dot& dot, std::size_t side) {
  return t.parameter(type, Dot::extents(dot.side(side)));
}
inline bool is_own(const Dot::Dim& d) { return d.kind == 'l' || d.kind == 'r'; }
inline std::vector<std::size_t> dims_of_kind(const std::vector<Dot::Dim>& dims, const std::string& kinds) {
  std::vector<std::size_t> result;
  for (std::size_t i = 0; i < dims.size(); ++i)
    if (kinds.find(dims[i].kind) != std::string::npos) result.push_back(i);
  return result;
}

// ---- layout-into-dot
inline std::string layout_into_dot(T& t) {
  Dot dot(t, t.below(3), 1 + t.below(2), 1 + t.below(2), t.below(3));
  const std::string type = t.float_type();
  const std::size_t side = t.below(2);
  const std::vector<Dot::Dim>& dims = dot.side(side);
  std::string x;
  if (t.once_in(2)) {  // a transpose that keeps the order of its own dimensions
    std::vector<Dot::Dim> before = dims;
    t.shuffle(before);
    std::vector<Dot::Dim> own;
    for (const Dot::Dim& d : dims)
      if (is_own(d)) own.push_back(d);
    std::size_t next = 0;
    for (Dot::Dim& d : before)
      if (is_own(d)) d = own[next++];
    x = t.transpose(t.parameter(type, Dot::extents(before)), Dot::places(dims, before));
  } else {  // own dimensions, behind the others, were split or merged otherwise
    std::vector<Dot::Dim>& side_dims = side == 0 ? dot.lhs : dot.rhs;
    std::ranges::stable_partition(side_dims, [](const Dot::Dim& d) { return !is_own(d); });
    Extents from;
    std::int64_t own = 1;
    for (Dot::Dim& d : side_dims) {
      if (is_own(d) && t.once_in(2)) d.extent = 4;
      if (is_own(d))
        own *= d.extent;
      else
        from.push_back(d.extent);
    }
    if (t.once_in(2))
      from.push_back(own);
    else if (own % 2 == 0 && own > 2)
      from.insert(from.end(), {2, own / 2});
    else if (own != 1 || t.once_in(2))
      from.insert(from.end(), {1, own});
    if (from == Dot::extents(side_dims)) from.insert(from.end() - 1, 1);
    x = t.reshape(t.parameter(type, from), Dot::extents(side_dims));
  }
  t.fan_out(x);
  return done(t, dot.write(t, side, x, operand(t, type, dot, 1 - side)));
}
inline std::string nearly_layout_into_dot(T& t) {
  Dot dot(t, t.below(2), 2, 1, 1 + t.below(2));
  const std::string type = t.float_type();
  const std::vector<Dot::Dim>& dims = dot.lhs;
  if (t.once_in(2)) {  // own dimensions change places
    std::vector<Dot::Dim> before = dims;
    const std::vector<std::size_t> own = dims_of_kind(dims, "l");
    std::swap(before[own[0]], before[own[1]]);
    return done(t,
                dot.write(t, t.transpose(t.parameter(type, Dot::extents(before)), Dot::places(dims, before)),
                          operand(t, type, dot, 1)));
  }
  std::int64_t all = 1;  // contracted and own dimensions were one
  for (const Dot::Dim& d : dims) all *= d.extent;
  return done(
      t, dot.write(t, t.reshape(t.parameter(type, {all}), Dot::extents(dims)), operand(t, type, dot, 1)));
}

// ---- transpose-of-dot
inline Extents swapped_order(const Dot& dot) {
  const std::vector<Dot::Dim> out = dot.out();
  Extents order;
  for (const char* kinds : {"b", "r", "l"})
    for (const std::size_t d : dims_of_kind(out, kinds)) order.push_back(static_cast<std::int64_t>(d));
  return order;
}
inline std::string transpose_of_dot(T& t) {
  const Dot dot = Dot::any(t);
  const std::string type = t.float_type();
  const std::string x = operand(t, type, dot, 0);
  t.fan_out(x);
  return done(t, t.transpose(dot.write(t, x, operand(t, type, dot, 1)), swapped_order(dot)));
}
inline std::string nearly_transpose_of_dot(T& t) {
  const Dot dot(t, t.below(2), 2, 1, 1);
  const std::string type = t.float_type();
  const std::string made = dot.write(t, operand(t, type, dot, 0), operand(t, type, dot, 1));
  Extents order = swapped_order(dot);
  if (t.once_in(2))
    t.result(made);
  else
    std::swap(order[order.size() - 1], order[order.size() - 2]);
  return done(t, t.transpose(made, order));
}

// ---- dot-merge-free, dot-merge-batch
inline std::string dot_merge_free(T& t) {
  Dot first = Dot::any(t);
  const std::string type = t.float_type();
  const std::size_t side = t.below(2);
  const std::string x = operand(t, type, first, side);
  const std::string place = first.write(t, side, x, operand(t, type, first, 1 - side));
  for (std::size_t n = 1 + t.below(2); n > 0; --n) {  // other own dimensions, in another order
    Dot next = first;
    std::vector<Dot::Dim>& dims = side == 0 ? next.rhs : next.lhs;
    std::erase_if(dims, is_own);
    for (std::size_t own = t.below(3); own > 0; --own)
      dims.push_back({side == 0 ? 'r' : 'l', own, t.extent()});
    t.shuffle(dims);
    const std::string made = next.write(t, side, x, operand(t, type, next, 1 - side));
    t.result(t.once_in(2) ? made : t.unary("negate", made));
  }
  t.fan_out(place);
  return done(t, place);
}
inline std::string nearly_dot_merge_free(T& t) {
  const std::string type = t.float_type();
  const std::string x = t.parameter(type, {3, 3}), y = t.parameter(type, {3, 3});
  const std::string first = t.line(
      type, {3, 3}, fmt::format("dot({}, {}), lhs_contracting_dims={{1}}, rhs_contracting_dims={{0}}", x, y));
  switch (t.below(3)) {
    case 0:  // the second waits for the first
      t.result(t.line(type, {3, 3},
                      fmt::format("dot({}, {}), lhs_contracting_dims={{1}}, rhs_contracting_dims={{0}}", x,
                                  t.unary("negate", first))));
      break;
    case 1:  // contracts another dimension
      t.result(t.line(type, {3, 3},
                      fmt::format("dot({}, {}), lhs_contracting_dims={{0}}, rhs_contracting_dims={{0}}", x,
                                  t.parameter(type, {3, 3}))));
      break;
    default:  // on the other side
      t.result(t.line(type, {3, 3},
                      fmt::format("dot({}, {}), lhs_contracting_dims={{1}}, rhs_contracting_dims={{0}}",
                                  t.parameter(type, {3, 3}), x)));
  }
  return done(t, first);
}
inline std::string dot_merge_batch(T& t) {
  const Dot dot = Dot::any(t);
  const std::string type = t.float_type();
  const std::string shared = operand(t, type, dot, 0);
  const std::string place = dot.write(t, shared, operand(t, type, dot, 1));
  for (std::size_t n = 1 + t.below(2); n > 0; --n)
    t.result(dot.write(t, t.once_in(2) ? shared : operand(t, type, dot, 0), operand(t, type, dot, 1)));
  return done(t, place);
}
inline std::string nearly_dot_merge_batch(T& t) {
  const Dot dot = Dot(t, t.below(2), 1, 1, 1);
  const std::string type = t.float_type();
  const std::string place = dot.write(t, operand(t, type, dot, 0), operand(t, type, dot, 1));
  Dot other = dot;
  for (Dot::Dim& d : other.lhs)
    if (d.kind == 'l') ++d.extent;
  t.result(other.write(t, operand(t, type, other, 0), operand(t, type, other, 1)));
  return done(t, place);
}

// ---- dot-split, dot-split-sum
inline std::string dot_split(T& t) {
  const std::size_t side = t.below(2);
  const Dot dot(t, t.below(3), 1 + t.below(2), 1 + t.below(2), t.below(3));
  const std::string type = t.float_type();
  if (t.once_in(2)) {
    const std::string made = dot.write(t, operand(t, type, dot, 0), operand(t, type, dot, 1));
    t.fan_out(made);
    const Extents out = t.dims(made);
    const std::size_t d = t.below(out.size());
    return done(t, t.slice(made, d, out[d] > 1 ? 1 : 0, out[d] > 1 ? out[d] : 0,
                           1 + static_cast<std::int64_t>(t.below(2))));
  }
  const std::vector<Dot::Dim>& dims = dot.side(side);
  const std::size_t d = t.one_of(dims_of_kind(dims, "lr"));
  Dot wider = dot;
  Extents part = Dot::extents(dims), other = part;
  other[d] = t.extent();
  (side == 0 ? wider.lhs : wider.rhs)[d].extent += other[d];
  const std::string whole = t.concatenate({t.parameter(type, part), t.parameter(type, other)}, d);
  t.fan_out(whole);
  return done(t, wider.write(t, side, whole, operand(t, type, wider, 1 - side)));
}
inline std::string joined_operand(T& t, Dot& dot, const std::string& type, std::size_t side, char kind) {
  const std::size_t d = t.one_of(dims_of_kind(dot.side(side), std::string(1, kind)));
  Extents part = Dot::extents(dot.side(side)), other = part;
  other[d] = t.extent();
  const std::size_t number = dot.side(side)[d].number;
  for (std::vector<Dot::Dim>* dims : {&dot.lhs, &dot.rhs, &dot.batch, &dot.contracted})
    for (Dot::Dim& dim : *dims)
      if (dim.kind == kind && dim.number == number) dim.extent += other[d];
  return t.concatenate({t.parameter(type, part), t.parameter(type, other)}, d);
}
inline std::string nearly_dot_split(T& t) {
  Dot dot(t, 1, 1, 1, 1);
  const std::string type = t.float_type();
  const std::string whole = joined_operand(t, dot, type, 0, t.once_in(2) ? 'b' : 'k');
  return done(t, dot.write(t, whole, operand(t, type, dot, 1)));
}
inline std::string dot_split_sum(T& t) {
  const std::size_t side = t.below(2);
  Dot dot(t, t.below(3), t.below(3), t.below(3), 1 + t.below(2));
  const std::string type = t.float_type();
  const std::string whole = joined_operand(t, dot, type, side, 'k');
  t.fan_out(whole);
  return done(t, dot.write(t, side, whole, operand(t, type, dot, 1 - side)));
}
inline std::string nearly_dot_split_sum(T& t) {
  Dot dot(t, 1, 1, 1, 1);
  const std::string type = t.float_type();
  const std::string whole = joined_operand(t, dot, type, 0, t.once_in(2) ? 'b' : 'l');
  return done(t, dot.write(t, whole, operand(t, type, dot, 1)));
}

// ---- dot-chain, dot-sum
/// (A B) C or C (A B), of any dimensions; `batches` differ in the second product if asked.
inline std::string chain(T& t, bool fan_out, bool batch_left) {
  const std::string type = t.float_type();
  Dot inner(t, t.below(3), 1 + t.below(2), 1 + t.below(2), 1 + t.below(2));
  if (batch_left) inner = Dot(t, 1, 1, 1, 1);
  const std::string made = inner.write(t, operand(t, type, inner, 0), operand(t, type, inner, 1));
  if (fan_out) t.result(made);
  const char own = t.once_in(2) ? 'l' : 'r';
  // The second product's own numbering: what it reads of the first is its side `side`.
  std::vector<Dot::Dim> read;
  std::size_t contracted = 0, kept = 0, batches = 0;
  Dot outer(t, 0, 0, 0, 0);
  for (const Dot::Dim& d : inner.out()) {
    if (d.kind == 'b' && !batch_left)
      read.push_back({'b', batches++, d.extent});
    else if (d.kind == own && (contracted == 0 || t.once_in(2)))
      read.push_back({'k', contracted++, d.extent});
    else
      read.push_back({'l', kept++, d.extent});
  }
  const std::size_t side = t.below(2);
  std::vector<Dot::Dim> other;
  for (const Dot::Dim& d : read) {
    if (d.kind == 'l') continue;
    other.push_back(d);
    (d.kind == 'b' ? outer.batch : outer.contracted).push_back(d);
  }
  t.shuffle(outer.batch);
  t.shuffle(outer.contracted);
  for (std::size_t i = t.below(3); i > 0; --i) other.push_back({'r', i, t.extent()});
  t.shuffle(other);
  outer.lhs = side == 0 ? read : other;
  outer.rhs = side == 0 ? other : read;
  return done(t, outer.write(t, side, made, t.parameter(type, Dot::extents(other))));
}
inline std::string dot_chain(T& t) { return chain(t, false, false); }
inline std::string nearly_dot_chain(T& t) {
  if (t.once_in(2)) return chain(t, true, false);
  return chain(t, false, true);
}
inline std::string nearly_dot_chain_of_both(T& t) {  // what the outer contracts is of A and of B
  const std::string type = t.float_type();
  const std::string a = t.parameter(type, {2, 3}), b = t.parameter(type, {3, 4}),
                    c = t.parameter(type, {2, 4, 5});
  const std::string made = t.line(
      type, {2, 4}, fmt::format("dot({}, {}), lhs_contracting_dims={{1}}, rhs_contracting_dims={{0}}", a, b));
  return done(t, t.line(type, {5},
                        fmt::format("dot({}, {}), lhs_contracting_dims={{0,1}}, rhs_contracting_dims={{0,1}}",
                                    made, c)));
}
inline std::string dot_sum(T& t) {
  const Dot dot = Dot(t, t.below(3), t.below(3), t.below(3), 1 + t.below(2));
  const std::string type = t.float_type();
  const std::size_t side = t.below(2);
  const std::string x = operand(t, type, dot, side);
  if (t.once_in(2)) {
    const std::string a = dot.write(t, side, x, operand(t, type, dot, 1 - side)),
                      b = dot.write(t, side, x, operand(t, type, dot, 1 - side));
    return done(t, t.binary(t.once_in(2) ? "add" : "subtract", a, b));
  }
  Dot other = dot;
  const std::size_t number = dot.contracted[0].number;
  const std::int64_t extent = t.extent();
  for (std::vector<Dot::Dim>* dims : {&other.lhs, &other.rhs, &other.contracted})
    for (Dot::Dim& d : *dims)
      if (d.kind == 'k' && d.number == number) d.extent = extent;
  return done(t, t.binary("add", dot.write(t, operand(t, type, dot, 0), operand(t, type, dot, 1)),
                          other.write(t, operand(t, type, other, 0), operand(t, type, other, 1))));
}
inline std::string nearly_dot_sum(T& t) {
  const std::string type = t.float_type();
  const auto square = [&] { return t.parameter(type, {3, 3}); };
  const auto made = [&](int lhs, int rhs) {
    return t.line(type, {3, 3},
                  fmt::format("dot({}, {}), lhs_contracting_dims={{{}}}, rhs_contracting_dims={{{}}}",
                              square(), square(), lhs, rhs));
  };
  const std::string a = made(1, 0);
  switch (t.below(3)) {
    case 0:
      return done(t, t.binary("add", a, made(0, 0)));
    case 1:
      return done(t, t.binary("subtract", a, made(1, 0)));
    default:
      t.result(a);
      return done(t, t.binary("add", a, made(1, 0)));
  }
}

inline const std::vector<InstanceRow>& dots() {
  static const std::vector<InstanceRow> rows = {
      {"layout-into-dot", layout_into_dot, {nearly_layout_into_dot}},
      {"transpose-of-dot", transpose_of_dot, {nearly_transpose_of_dot}},
      {"dot-merge-free", dot_merge_free, {nearly_dot_merge_free}},
      {"dot-merge-batch", dot_merge_batch, {nearly_dot_merge_batch}},
      {"dot-split", dot_split, {nearly_dot_split}},
      {"dot-split-sum", dot_split_sum, {nearly_dot_split_sum}},
      {"dot-chain", dot_chain, {nearly_dot_chain, nearly_dot_chain_of_both}},
      {"dot-sum", dot_sum, {nearly_dot_sum}},
  };
  return rows;
}

}  // namespace stitchwork::testing::instances
