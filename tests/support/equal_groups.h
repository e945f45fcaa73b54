// Graphs of equal groups: one update of many tensors that differ in their sizes, as HLO text.
#pragma once

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <cstdint>
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

}  // namespace stitchwork::testing
