// One element, odd and prime numbers of them, none, and every rank from 0 to 6, in each float type, under
// every planner.
#include <fmt/ranges.h>

#include "tests/codegen/planned.h"

namespace stitchwork {
namespace TEST_FILE {

struct Case {
  std::string dtype;
  std::vector<std::int64_t> dims;
};

std::string shape_text(const std::vector<std::int64_t>& dims) {
  return fmt::format("[{}]", fmt::join(dims, ","));
}

/// Element-wise ops, sums over the last dimension, over the first and over all, each read back by elements, a
/// transpose, a concatenation and a conversion.
std::string module_text(const Case& c) {
  const std::vector<std::int64_t>& dims = c.dims;
  const std::string type = c.dtype + shape_text(dims);
  std::string body, types, results;
  const auto line = [&](const std::string& text) { body += "  " + text + "\n"; };
  const auto result = [&](const std::string& name, const std::string& of) {
    types += (types.empty() ? "" : ", ") + of;
    results += (results.empty() ? "" : ", ") + name;
  };
  line(fmt::format("x = {} parameter(0)", type));
  line(fmt::format("y = {} parameter(1)", type));
  line(fmt::format("zero = {}[] constant(0)", c.dtype));
  line(fmt::format("low = {}[] constant(-inf)", c.dtype));
  line(fmt::format("part = {}[] constant(0.0078125)", c.dtype));  // sums of a million fit f16
  line(fmt::format("parts = {} broadcast(part), dimensions={{}}", type));
  line(fmt::format("g = {} logistic(x)", type));
  line(fmt::format("e = {} multiply(g, parts)", type));
  line(fmt::format("s = {} add(e, y)", type));
  result("s", type);
  const auto reduced = [&](const std::string& name, const std::string& of, const char* initial,
                           const char* by, std::vector<std::size_t> over) {
    std::vector<std::int64_t> left, kept;
    for (std::size_t d = 0; d < dims.size(); ++d)
      if (std::find(over.begin(), over.end(), d) == over.end()) {
        left.push_back(dims[d]);
        kept.push_back(static_cast<std::int64_t>(d));
      }
    line(fmt::format("{} = {}{} reduce({}, {}), dimensions={{{}}}, to_apply={}", name, c.dtype,
                     shape_text(left), of, initial, fmt::join(over, ","), by));
    line(fmt::format("{0}_back = {1} broadcast({0}), dimensions={{{2}}}", name, type, fmt::join(kept, ",")));
    line(fmt::format("{0}_read = {1} subtract(s, {0}_back)", name, type));
    result(name + "_read", type);
  };
  std::vector<std::size_t> all(dims.size());
  for (std::size_t d = 0; d < all.size(); ++d) all[d] = d;
  reduced("total", "e", "zero", "sum", all);
  constexpr std::int64_t kMany = 100000;  // of a million elements the above takes time enough
  if (!dims.empty() && dims[0] < kMany) {
    reduced("row", "e", "zero", "sum", {dims.size() - 1});
    reduced("col", "s", "low", "max", {0});
    std::vector<std::int64_t> turned(dims.rbegin(), dims.rend()), twice = dims;
    twice[0] *= 2;
    line(fmt::format("t = {}{} transpose(s), dimensions={{{}}}", c.dtype, shape_text(turned),
                     fmt::join(all.rbegin(), all.rend(), ",")));
    result("t", c.dtype + shape_text(turned));
    line(fmt::format("cc = {}{} concatenate(s, x), dimensions={{0}}", c.dtype, shape_text(twice)));
    result("cc", c.dtype + shape_text(twice));
  }
  const std::string other = (c.dtype == "f32" ? "bf16" : "f32") + shape_text(dims);
  line(fmt::format("as = {} convert(s)", other));
  result("as", other);
  return fmt::format(
      "HloModule shapes\n"
      "sum {{ a = {0}[] parameter(0)  b = {0}[] parameter(1)  ROOT r = {0}[] add(a, b) }}\n"
      "max {{ a = {0}[] parameter(0)  b = {0}[] parameter(1)  ROOT r = {0}[] maximum(a, b) }}\n"
      "ENTRY main {{\n{1}  ROOT all = ({2}) tuple({3})\n}}\n",
      c.dtype, body, types, results);
}

class Shapes : public ::testing::TestWithParam<Case> {};

TEST_P(Shapes, AreRightAndCleanUnderEveryPlanner) {
  SKIP_WITHOUT_COMPILER();
  const Graph graph = testing::graph_of(module_text(GetParam()));
  testing::expect_clean_and_right(graph, generate_inputs(graph, 0));
}

std::vector<Case> cases() {
  std::vector<Case> result;
  for (const char* dtype : {"f32", "f16", "bf16"})
    for (const std::vector<std::int64_t>& dims : std::vector<std::vector<std::int64_t>>{{1},
                                                                                        {3},
                                                                                        {31},
                                                                                        {33},
                                                                                        {1000003},
                                                                                        {0},
                                                                                        {3, 0},
                                                                                        {0, 33},
                                                                                        {},
                                                                                        {31, 33},
                                                                                        {3, 1, 33},
                                                                                        {3, 5, 1, 7},
                                                                                        {1, 3, 2, 5, 3},
                                                                                        {2, 3, 1, 5, 2, 3}})
      result.push_back({dtype, dims});
  return result;
}

std::string case_name(const ::testing::TestParamInfo<Case>& info) {
  const Case& c = info.param;
  return c.dims.empty() ? c.dtype + "_scalar" : fmt::format("{}_{}", c.dtype, fmt::join(c.dims, "x"));
}

INSTANTIATE_TEST_SUITE_P(Odd, Shapes, ::testing::ValuesIn(cases()), case_name);

}  // namespace TEST_FILE
}  // namespace stitchwork
