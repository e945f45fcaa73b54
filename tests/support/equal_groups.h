// Graphs of equal groups: one update of many tensors that differ in their sizes, as HLO text.
#pragma once

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <cstdint>
#include <random>
#include <string>
#include <vector>

namespace stitchwork::testing {

/// Momentum and its step for each of the tensors of `dims`, under a rate that the kernel computes, so that
/// every update waits for a scalar: what an optimiser does. Parameters: step, then p, g, m of each tensor.
inline std::string optimiser_hlo(const std::vector<std::vector<std::int64_t>>& dims) {
  std::string text =
      "HloModule optimiser\nENTRY main {\n  step = f32[] parameter(0)\n  decay = f32[] constant(0.875)\n"
      "  used = f32[] power(decay, step)\n  one = f32[] constant(1)\n  left = f32[] subtract(one, used)\n";
  std::string types, names;
  int parameter = 1;
  for (std::size_t i = 0; i < dims.size(); ++i) {
    const std::string type = fmt::format("f32[{}]", fmt::join(dims[i], ","));
    for (const char* name : {"p", "g", "m"})
      text += fmt::format("  {}{} = {} parameter({})\n", name, i, type, parameter++);
    text += fmt::format(
        "  decay{0} = {1} broadcast(decay), dimensions={{}}\n  left{0} = {1} broadcast(left), "
        "dimensions={{}}\n"
        "  old{0} = {1} multiply(m{0}, decay{0})\n  new_m{0} = {1} add(old{0}, g{0})\n"
        "  scaled{0} = {1} divide(new_m{0}, left{0})\n  new_p{0} = {1} subtract(p{0}, scaled{0})\n",
        i, type);
    types += fmt::format("{0}{1}, {1}", i ? ", " : "", type);
    names += fmt::format("{0}new_p{1}, new_m{1}", i ? ", " : "", i);
  }
  return text + fmt::format("  ROOT t = ({}) tuple({})\n}}\n", types, names);
}

/// The softmax of each row of each tensor of [rows, cols].
inline std::string softmaxes_hlo(const std::vector<std::int64_t>& rows, std::int64_t cols) {
  std::string text =
      "HloModule softmaxes\nsum { a = f32[] parameter(0)  b = f32[] parameter(1)  ROOT s = f32[] add(a, b) "
      "}\n"
      "ENTRY main {\n  zero = f32[] constant(0)\n";
  std::string types, names;
  for (std::size_t i = 0; i < rows.size(); ++i) {
    const std::string type = fmt::format("f32[{},{}]", rows[i], cols);
    text += fmt::format(
        "  x{0} = {1} parameter({0})\n  e{0} = {1} exponential(x{0})\n"
        "  s{0} = f32[{2}] reduce(e{0}, zero), dimensions={{1}}, to_apply=sum\n"
        "  w{0} = {1} broadcast(s{0}), dimensions={{0}}\n  y{0} = {1} divide(e{0}, w{0})\n",
        i, type, rows[i]);
    types += fmt::format("{}{}", i ? ", " : "", type);
    names += fmt::format("{}y{}", i ? ", " : "", i);
  }
  return text + fmt::format("  ROOT t = ({}) tuple({})\n}}\n", types, names);
}

/// One random body on tensors of random extents, some of odd sizes: element-wise ops on two inputs and on a
/// scalar that the kernel computes, and, for some seeds, a sum over the rows' elements read back by all of
/// them. Deterministic in the seed.
inline std::string random_equal_groups_hlo(std::uint32_t seed) {
  std::mt19937 random(seed);
  const auto below = [&](std::size_t n) { return static_cast<std::size_t>(random() % n); };
  static constexpr std::int64_t kExtents[] = {1, 3, 31, 33, 1024, 4097};
  static constexpr const char* kUnary[] = {"negate", "abs", "tanh", "logistic"};
  static constexpr const char* kBinary[] = {"add", "subtract", "multiply", "maximum"};
  const bool rows = below(3) == 0, several_results = below(2) == 0;
  const std::int64_t cols = rows ? kExtents[1 + below(4)] : 1;
  const std::size_t tensors = 4 + below(12), ops = 2 + below(6);
  struct OpText {
    std::string name;
    std::size_t a, b;
  };
  std::vector<OpText> body;  // operands: x, y, the scalar, then earlier ops
  for (std::size_t i = 0; i < ops; ++i) {
    const bool unary = below(3) == 0;
    body.push_back(
        {unary ? kUnary[below(4)] : kBinary[below(4)], i == 0 ? below(3) : 2 + i, unary ? 99 : below(3 + i)});
  }
  std::string text =
      "HloModule equal\nsum { a = f32[] parameter(0)  b = f32[] parameter(1)  ROOT s = f32[] add(a, b) }\n"
      "ENTRY main {\n  zero = f32[] constant(0)\n  step = f32[] parameter(0)\n  rate = f32[] "
      "exponential(step)\n";
  std::string types, names;
  const auto result = [&](const std::string& type, const std::string& name) {
    types += fmt::format("{}{}", types.empty() ? "" : ", ", type);
    names += fmt::format("{}{}", names.empty() ? "" : ", ", name);
  };
  for (std::size_t t = 0; t < tensors; ++t) {
    const std::int64_t extent = kExtents[below(rows ? 4 : 6)];
    const std::string type = rows                          ? fmt::format("f32[{},{}]", extent, cols)
                             : below(3) == 0 && extent > 1 ? fmt::format("f32[{},{}]", extent, 1 + below(3))
                                                           : fmt::format("f32[{}]", extent);
    text += fmt::format(
        "  x{0} = {1} parameter({2})\n  y{0} = {1} parameter({3})\n  r{0} = {1} broadcast(rate), "
        "dimensions={{}}\n",
        t, type, 1 + 2 * t, 2 + 2 * t);
    std::vector<std::string> values{fmt::format("x{}", t), fmt::format("y{}", t), fmt::format("r{}", t)};
    for (std::size_t i = 0; i < body.size(); ++i) {
      const OpText& op = body[i];
      values.push_back(fmt::format("v{}_{}", t, i));
      text += op.b == 99 ? fmt::format("  {} = {} {}({})\n", values.back(), type, op.name, values[op.a])
                         : fmt::format("  {} = {} {}({}, {})\n", values.back(), type, op.name, values[op.a],
                                       values[op.b]);
    }
    if (rows) {
      text += fmt::format(
          "  s{0} = f32[{2}] reduce({3}, zero), dimensions={{1}}, to_apply=sum\n  w{0} = {1} "
          "broadcast(s{0}), dimensions={{0}}\n"
          "  n{0} = {1} subtract({3}, w{0})\n",
          t, type, extent, values.back());
      values.push_back(fmt::format("n{}", t));
    }
    result(type, values.back());
    if (several_results) result(type, values[3]);
  }
  return text + fmt::format("  ROOT t = ({}) tuple({})\n}}\n", types, names);
}

}  // namespace stitchwork::testing
