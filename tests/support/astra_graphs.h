// Graphs of Astra's worked examples (docs/planners/astra.md), and random graphs of dots.
#pragma once

#include <fmt/format.h>

#include <algorithm>
#include <cstdint>
#include <random>
#include <string>
#include <vector>

#include "analysis/planners/astra/space.h"
#include "analysis/planners/planner.h"
#include "core/base/at.h"
#include "tests/support/graphs.h"

namespace stitchwork::testing {

/// A cell of an LSTM as eager code has it: one matrix a gate, x f32[4,8], h and c.
inline Graph astra_lstm_cell() {
  std::string text = "x = f32[4,8] parameter(0)\n h = f32[4,8] parameter(1)\n c = f32[4,8] parameter(2)\n";
  int number = 3;
  for (const char* gate : {"i", "f", "g", "o"}) {
    text += fmt::format(" w{0} = f32[8,8] parameter({1})\n u{0} = f32[8,8] parameter({2})\n", gate, number,
                        number + 1);
    number += 2;
  }
  for (const char* gate : {"i", "f", "g", "o"})
    text += fmt::format(
        " x{0} = f32[4,8] dot(x, w{0}), lhs_contracting_dims={{1}}, rhs_contracting_dims={{0}}\n"
        " h{0} = f32[4,8] dot(h, u{0}), lhs_contracting_dims={{1}}, rhs_contracting_dims={{0}}\n"
        " z{0} = f32[4,8] add(x{0}, h{0})\n",
        gate);
  return graph_of(text + R"(
  si = f32[4,8] logistic(zi)
  sf = f32[4,8] logistic(zf)
  tg = f32[4,8] tanh(zg)
  so = f32[4,8] logistic(zo)
  ig = f32[4,8] multiply(si, tg)
  fc = f32[4,8] multiply(sf, c)
  c2 = f32[4,8] add(ig, fc)
  tc = f32[4,8] tanh(c2)
  h2 = f32[4,8] multiply(so, tc)
  ROOT r = (f32[4,8], f32[4,8]) tuple(h2, c2))");
}

/// A weight gradient over three steps as JAX writes it; `result`: s1 is a result, too; `dependent`: d1 is
/// made of t2.
inline Graph astra_ladder(bool result = false, bool dependent = false) {
  std::string text;
  for (int t = 0; t < 3; ++t)
    text += fmt::format(" h{0} = f32[6,8] parameter({1})\n p{0} = f32[6,6] parameter({2})\n", t, 2 * t,
                        2 * t + 1);
  for (const int t : {2, 1, 0}) {
    if (dependent && t == 1)
      text += " q1 = f32[6,6] slice(t2), slice={[0:6], [0:6]}\n d1 = f32[6,6] multiply(p1, q1)\n";
    text += fmt::format(
        " g{0} = f32[6,8] dot({1}{0}, h{0}), lhs_contracting_dims={{0}}, rhs_contracting_dims={{0}}\n"
        " t{0} = f32[8,6] transpose(g{0}), dimensions={{1,0}}\n",
        t, dependent && t == 1 ? "d" : "p");
  }
  text += " s1 = f32[8,6] add(t2, t1)\n s0 = f32[8,6] add(s1, t0)\n";
  return graph_of(
      text + (result ? " ROOT r = (f32[8,6], f32[8,6]) tuple(s0, s1)" : " ROOT r = (f32[8,6]) tuple(s0)"));
}

/// Two products want q below p, a sum wants it right of p.
inline Graph astra_conflict() {
  return graph_of(R"(
  a = f32[8,8] parameter(0)
  b = f32[8,8] parameter(1)
  w = f32[8,8] parameter(2)
  u = f32[8,8] parameter(3)
  v = f32[8,8] parameter(4)
  p = f32[8,8] tanh(a)
  q = f32[8,8] tanh(b)
  pw = f32[8,8] dot(p, w), lhs_contracting_dims={1}, rhs_contracting_dims={0}
  qw = f32[8,8] dot(q, w), lhs_contracting_dims={1}, rhs_contracting_dims={0}
  pu = f32[8,8] dot(p, u), lhs_contracting_dims={1}, rhs_contracting_dims={0}
  qv = f32[8,8] dot(q, v), lhs_contracting_dims={1}, rhs_contracting_dims={0}
  z = f32[8,8] add(pu, qv)
  y = f32[8,8] dot(pw, qw), lhs_contracting_dims={1}, rhs_contracting_dims={0}
  ROOT r = (f32[8,8], f32[8,8]) tuple(z, y))");
}

/// Three sums of which b can lie beside the others of two.
inline Graph astra_one_tensor() {
  std::string text;
  int number = 0;
  for (const char* name : {"a", "b", "c", "d", "e", "w1", "w2", "w3", "w4", "w5", "w6", "w7"})
    text += fmt::format(" {} = f32[8,8] parameter({})\n", name, number++);
  int w = 1;
  for (const char* left : {"a", "b", "c", "b", "d", "b", "e"}) {
    text += fmt::format(
        " m{0} = f32[8,8] dot({1}, w{0}), lhs_contracting_dims={{1}}, rhs_contracting_dims={{0}}\n", w, left);
    ++w;
  }
  return graph_of(text + R"(
  l = f32[8,8] add(m1, m2)
  l1 = f32[8,8] add(l, m3)
  l2 = f32[8,8] add(m4, m5)
  l3 = f32[8,8] add(m6, m7)
  ROOT r = (f32[8,8], f32[8,8], f32[8,8]) tuple(l1, l2, l3))");
}

/// Two chains of three products each, p of 32 rows and q of `rows`.
inline Graph astra_chains(int rows = 48) {
  std::string text = fmt::format(" p0 = f32[32,256] parameter(0)\n q0 = f32[{},256] parameter(1)\n", rows);
  int number = 2;
  for (int i = 1; i <= 3; ++i)
    for (const char* chain : {"p", "q"}) {
      text += fmt::format(" w{0}{1} = f32[256,256] parameter({2})\n", chain, i, number++);
      text += fmt::format(
          " {0}{1} = f32[{2},256] dot({0}{3}, w{0}{1}), lhs_contracting_dims={{1}}, "
          "rhs_contracting_dims={{0}}\n",
          chain, i, *chain == 'p' ? 32 : rows, i - 1);
    }
  return graph_of(text + fmt::format(" ROOT r = (f32[32,256], f32[{},256]) tuple(p3, q3)", rows));
}

/// Dots, sums, transposes and element-wise ops of matrices of few sizes, so that many have common operands.
class RandomDots {
 public:
  explicit RandomDots(std::uint32_t seed) : random_(seed) {
    for (int p = 0; p < 7; ++p)
      add(fmt::format("p{}", p), 2 + draw(2), 2 + draw(2), fmt::format("parameter({})", p));
    text_ += " zero = f32[] constant(0)\n";
    add("none", 2, 3, "broadcast(zero), dimensions={}");
  }

  Graph make(int ops) {
    for (int made = 0; made < ops; ++made) {
      if (draw(6) == 0) add_gates(made);
      while (!add_op(fmt::format("v{}", made))) {
      }
    }
    std::string types, names;
    for (std::size_t v = 8; v < values_.size(); ++v)
      if (!values_[v].read || draw(12) == 0) {
        types += fmt::format("{}f32[{},{}]", types.empty() ? "" : ", ", values_[v].rows, values_[v].cols);
        names += (names.empty() ? "" : ", ") + values_[v].name;
      }
    return graph_of(text_ + fmt::format(" ROOT r = ({}) tuple({})", types, names));
  }

 private:
  struct Value {
    std::string name;
    int rows = 0, cols = 0;
    bool read = false;
  };

  int draw(int n) { return static_cast<int>(random_() % static_cast<unsigned>(n)); }
  void add(const std::string& name, int rows, int cols, const std::string& what) {
    text_ += fmt::format(" {} = f32[{},{}] {}\n", name, rows, cols, what);
    values_.push_back({name, rows, cols});
  }
  static std::string dot(const std::string& left, const std::string& right, int d, int e) {
    return fmt::format("dot({}, {}), lhs_contracting_dims={{{}}}, rhs_contracting_dims={{{}}}", left, right,
                       d, e);
  }
  /// One of the last few values or of the first: steps of a recurrence with its weights.
  std::size_t pick() {
    return at(draw(3) == 0 ? draw(8) : std::max(0, static_cast<int>(values_.size()) - 1 - draw(14)));
  }
  /// Of that size; nullptr: none was met.
  Value* find(int rows, int cols) {
    for (int attempt = 0; attempt < 40; ++attempt)
      if (Value& v = values_[pick()]; v.rows == rows && v.cols == cols) return &v;
    return nullptr;
  }

  bool add_op(const std::string& name) {
    const std::size_t a = pick(), b = pick();
    const Value x = values_[a], y = values_[b];
    const int kind = draw(10);
    if (kind < 5) {
      const int d = draw(2), e = draw(2);
      if ((d == 0 ? x.rows : x.cols) != (e == 0 ? y.rows : y.cols)) return false;
      add(name, d == 0 ? x.cols : x.rows, e == 0 ? y.cols : y.rows, dot(x.name, y.name, d, e));
    } else if (kind < 8) {
      if (a == b || x.rows != y.rows || x.cols != y.cols) return false;
      add(name, x.rows, x.cols, fmt::format("add({}, {})", x.name, y.name));
    } else if (kind == 8) {
      add(name, x.cols, x.rows, fmt::format("transpose({}), dimensions={{1,0}}", x.name));
    } else {
      add(name, x.rows, x.cols, fmt::format("tanh({})", x.name));
    }
    values_[a].read = true;
    if (kind < 8) values_[b].read = true;
    return true;
  }

  /// Sums of two or three products, up to three of them with common lefts.
  void add_gates(int number) {
    const int d = draw(2), e = draw(2), rows = 2 + draw(2), cols = 2 + draw(2);
    std::vector<std::string> lefts;
    std::vector<int> summed;
    for (int q = 0; q < 2 + draw(2); ++q) {
      const int k = 2 + draw(2);
      Value* left = find(d == 0 ? k : rows, d == 0 ? rows : k);
      if (left == nullptr) continue;
      left->read = true;
      lefts.push_back(left->name);
      summed.push_back(k);
    }
    const int gates = 1 + draw(3);
    for (int gate = 0; gate < gates; ++gate) {
      std::string sum;
      for (std::size_t q = 0; q < lefts.size(); ++q) {
        Value* right = find(e == 0 ? summed[q] : cols, e == 0 ? cols : summed[q]);
        if (right == nullptr) continue;
        right->read = true;
        const std::string product = fmt::format("g{}_{}_{}", number, gate, q), next = "s" + product;
        text_ += fmt::format(" {} = f32[{},{}] {}\n", product, rows, cols, dot(lefts[q], right->name, d, e));
        if (!sum.empty())
          text_ += fmt::format(" {} = f32[{},{}] add({}, {})\n", next, rows, cols, sum, product);
        sum = sum.empty() ? product : next;
      }
      if (!sum.empty()) add(fmt::format("t{}_{}", number, gate), rows, cols, fmt::format("tanh({})", sum));
    }
  }

  std::mt19937 random_;
  std::vector<Value> values_;
  std::string text_;
};

inline Graph random_dots(std::uint32_t seed, int ops) { return RandomDots(seed).make(ops); }

/// Without steps: products and strategies do not depend on a plan.
inline astra::Space space_of(const Graph& graph) { return astra::enumerate(graph, FusionPlan{}); }

inline astra::Space planned_space(const Graph& graph) {
  return astra::enumerate(graph, make_plan(graph, device("v100-sxm2"), "unfused"));
}

/// "1x4x2", most products first, groups of one product aside.
inline std::vector<std::string> group_sizes(const astra::Space& space) {
  std::vector<std::pair<int, std::string>> sizes;
  for (const astra::FusionGroup& g : space.groups)
    if (g.products() > 1) sizes.emplace_back(-g.products(), fmt::format("{}x{}x{}", g.m(), g.n(), g.k()));
  std::sort(sizes.begin(), sizes.end());
  std::vector<std::string> result;
  for (const auto& [size, text] : sizes) result.push_back(text);
  return result;
}

inline int refusals(const astra::Space& space, const std::string& rule) {
  return static_cast<int>(std::count_if(space.decisions.begin(), space.decisions.end(),
                                        [&](const Decision& d) { return d.verdict.rule == rule; }));
}

}  // namespace stitchwork::testing
