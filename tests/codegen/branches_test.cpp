// At most one argument of a choice is computed.
#include "analysis/schedule/branches.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <random>

#include "analysis/schedule/schedule.h"
#include "codegen/settle.h"
#include "tests/codegen/planned.h"

namespace stitchwork {
namespace TEST_FILE {

using testing::mapping_of;
using K = testing::MappingKind;

/// `operands` values of `width` cols each, computed, side by side; y = 2 * that.
Graph side_by_side(int operands, std::int64_t rows, std::int64_t width, const std::string& type = "f32",
                   const std::string& op = "exponential") {
  std::string text = "HloModule m\nENTRY main {\n";
  std::vector<std::string> names;
  for (int i = 0; i < operands; ++i) {
    text += fmt::format("  p{0} = {1}[{2},{3}] parameter({0})\n  e{0} = {1}[{2},{3}] {4}(p{0})\n", i, type,
                        rows, width, op);
    names.push_back(fmt::format("e{}", i));
  }
  return testing::graph_of(text + fmt::format("  c = {0}[{1},{2}] concatenate({3}), dimensions={{1}}\n"
                                              "  ROOT y = {0}[{1},{2}] add(c, c)\n}}\n",
                                              type, rows, width * operands, fmt::join(names, ", ")));
}

KernelPlan elementwise(const Graph& graph, int vector, int unroll = 1) {
  const auto& computation = graph.entry_computation();
  testing::MappingFields mapping =
      mapping_of(K::kElementwise, computation.node(computation.root).shape.elements_count(), 1, 1024);
  mapping.vector = vector;
  mapping.unroll = unroll;
  return testing::one_group(graph, {"y"}, mapping, 128);
}

std::string text_of(const Graph& graph, const KernelPlan& plan) {
  return to_cuda(graph, build_schedule(graph, testing::plan_of(graph, plan).kernels.at(0)), false);
}

std::ptrdiff_t times(const std::string& text, const std::string& what) {
  std::ptrdiff_t found = 0;
  for (std::size_t at = text.find(what); at != std::string::npos; at = text.find(what, at + 1)) ++found;
  return found;
}

TEST(Branches, AConcatenationIsSearchedByHalves) {
  const Graph graph = side_by_side(8, 64, 36);
  const std::string text = text_of(graph, elementwise(graph, 1));
  for (const int bound : {36, 72, 108, 144, 180, 216, 252})
    EXPECT_EQ(times(text, fmt::format("if (c_at < {})", bound)), 1) << text;
  EXPECT_EQ(times(text, "if (c_at <"), 7) << text;
  EXPECT_EQ(times(text, " ? "), 0) << text;  // what a branch loads is there
}

TEST(Branches, FewAndCheapArgumentsAreSelected) {
  const Graph graph = side_by_side(2, 64, 36, "f32", "negate");
  const std::string text = text_of(graph, elementwise(graph, 1));
  EXPECT_EQ(times(text, "if (c_at <"), 0) << text;
  EXPECT_GE(times(text, " ? "), 1) << text;
}

TEST(Branches, LoadsAheadOfBranchesShareRegisters) {
  const Graph graph = side_by_side(8, 64, 36);
  const std::string text = text_of(graph, elementwise(graph, 4));
  EXPECT_EQ(times(text, "_vector = {}"), 1) << text;
  EXPECT_EQ(times(text, "sw_load("), 8) << text;
}

TEST(Branches, WhatTwoArgumentsNeedIsComputedBeforeThem) {
  const Graph graph = testing::graph_of(R"(HloModule m
ENTRY main {
  x = f32[64,4] parameter(0)
  e = f32[64,4] exponential(x)
  r = f32[64,4] parameter(1)
  t = f32[64,4] tanh(r)
  u = f32[64,4] sine(r)
  v = f32[64,4] cosine(r)
  c = f32[64,16] concatenate(t, u, v, e), dimensions={1}
  zero = f32[] constant(0)
  f = f32[64,16] pad(e, zero), padding=0_0x0_12
  ROOT y = f32[64,16] add(c, f)
})");
  testing::expect_correct(graph, testing::plan_of(graph, elementwise(graph, 1)));
}

TEST(Branches, ManyComputedOperandsSpillNothing) {
  SKIP_WITHOUT_COMPILER();
  const Graph graph = side_by_side(40, 256, 36);
  const Device& target = device("v100");
  for (const char* planner : {"astitch", "xla"}) {
    const FusionPlan plan = make_plan(graph, target, planner);
    CompileOptions options;
    const Executable executable = compile(graph, target, plan, options);
    for (const CompiledKernel& kernel : executable.kernels) {
      if (!kernel.spill_bytes) GTEST_SKIP() << "no ptxas";
      EXPECT_EQ(*kernel.spill_bytes, 0) << planner;
    }
  }
}

TEST(Branches, TheEstimateHoldsForLightOperands) {
  SKIP_WITHOUT_COMPILER();
  const Device& target = device("v100");
  for (const auto& [operands, rows, width] :
       {std::tuple{40, 256, 36}, std::tuple{8, 2048, 128}, std::tuple{16, 4096, 20}}) {
    const Graph graph = side_by_side(operands, rows, width);
    const FusionPlan plan = make_plan(graph, target, "astitch");
    CompileOptions options;
    const RunResult run =
        run_simulated(graph, target, compile(graph, target, plan, options), generate_inputs(graph, 0));
    EXPECT_NEAR(plan.predicted_us / run.total_us, 1, 0.16) << operands << " of " << rows << "x" << width;
  }
}

/// Pieces that take long and have nothing in common, side by side.
Graph long_pieces(int pieces, std::int64_t rows, std::int64_t width) {
  const std::vector<std::string> ops{"tanh",  "log-plus-one", "sine",     "cosine",
                                     "rsqrt", "exponential",  "logistic", "cbrt"};
  std::string text = "HloModule m\nENTRY main {\n";
  std::vector<std::string> names;
  for (int i = 0; i < pieces; ++i) {
    const std::string shape = fmt::format("f32[{},{}]", rows, width);
    text += fmt::format(
        "  p{0} = {1} parameter({0})\n  t{0} = {1} {2}(p{0})\n  s{0} = {1} {3}(t{0})\n"
        "  e{0} = {1} power(s{0}, p{0})\n",
        i, shape, ops[static_cast<std::size_t>(i % 8)],
        ops[static_cast<std::size_t>((i / 8 + 3 * i + 1) % 8)]);
    names.push_back(fmt::format("e{}", i));
  }
  return testing::graph_of(text + fmt::format("  ROOT y = f32[{},{}] concatenate({}), dimensions={{1}}\n}}\n",
                                              rows, width * pieces, fmt::join(names, ", ")));
}

/// A warp computes every piece that one of its lanes is in: estimates know, and nobody takes vectors, with
/// which a warp has four times as many, where they take longer.
TEST(Branches, PiecesOfAWarpAreComputedOneAfterTheOther) {
  SKIP_WITHOUT_COMPILER();
  const Device& target = device("v100");
  std::mt19937 random(11);
  for (int drawn = 0; drawn < 6; ++drawn) {
    const int pieces = 2 + static_cast<int>(random() % 15);
    const std::int64_t width = drawn % 2 == 0 ? 4 * (1 + random() % 30) : 3 + random() % 120;
    const std::int64_t rows = 400000 / (pieces * width);
    const Graph graph = long_pieces(pieces, rows, width);
    CompileOptions options;
    const auto simulated = [&](const FusionPlan& plan) {
      const RunResult run =
          run_simulated(graph, target, compile(graph, target, plan, options), generate_inputs(graph, 0));
      EXPECT_NEAR(plan.predicted_us / run.total_us, 1, 0.2)
          << plan.planner << ", " << pieces << " of " << rows << "x" << width;
      return run.total_us;
    };
    const double ours = simulated(make_plan(graph, target, "astitch"));
    EXPECT_LE(ours, 1.05 * simulated(make_plan(graph, target, "xla")))
        << pieces << " of " << rows << "x" << width;
  }
}

/// Drawn concatenations of computed operands, pads and updates among them.
class Drawn {
 public:
  explicit Drawn(std::uint32_t seed) : random_(seed) {}

  std::string text() {
    type_ = std::vector<std::string>{"f32", "f16", "bf16", "s32"}[below(4)];
    const int most[] = {4, 12, 30, 100};
    const int operands = 2 + below(most[below(4)] - 1);
    const std::size_t dimension = static_cast<std::size_t>(below(2));
    dims_ = {1 + below(20), 1 + below(dimension == 1 ? 9 : 40)};
    body_ = "HloModule m\nsum { a = " + type_ + "[] parameter(0)  b = " + type_ +
            "[] parameter(1)  ROOT s = " + type_ + "[] add(a, b) }\nENTRY main {\n  zero = " + type_ +
            "[] constant(0)\n";
    shared_ = parameter(dims_);
    std::int64_t extent = 0;
    std::vector<std::string> names;
    for (int i = 0; i < operands; ++i) {
      std::vector<std::int64_t> dims = dims_;
      if (below(2) == 0) dims[dimension] = 1 + below(8);
      names.push_back(operand(dims));
      extent += dims[dimension];
    }
    std::vector<std::int64_t> all = dims_;
    all[dimension] = extent;
    const std::string joined =
        add(all, fmt::format("concatenate({}), dimensions={{{}}}", fmt::join(names, ", "), dimension));
    std::string result = add(all, fmt::format("add({0}, {1})", joined, parameter(all)));
    if (below(3) == 0) result = add(all, fmt::format("negate({})", update(result, all)));
    const std::string row = fmt::format("{}[{}]", type_, all[0]);
    body_ += fmt::format("  total = {} reduce({}, zero), dimensions={{1}}, to_apply=sum\n", row, joined);
    body_ += fmt::format("  ROOT r = ({}, {}) tuple({}, total)\n}}\n", shape(all), row, result);
    return body_;
  }

 private:
  int below(int n) { return static_cast<int>(random_() % static_cast<std::uint32_t>(n)); }
  std::string shape(const std::vector<std::int64_t>& dims) const {
    return fmt::format("{}[{}]", type_, fmt::join(dims, ","));
  }
  std::string add(const std::vector<std::int64_t>& dims, const std::string& what) {
    const std::string name = fmt::format("v{}", next_++);
    body_ += fmt::format("  {} = {} {}\n", name, shape(dims), what);
    return name;
  }
  std::string parameter(const std::vector<std::int64_t>& dims) {
    return add(dims, fmt::format("parameter({})", parameters_++));
  }
  std::string update(const std::string& into, const std::vector<std::int64_t>& dims) {
    std::vector<std::int64_t> part;
    for (const std::int64_t extent : dims) part.push_back(1 + below(static_cast<int>(extent)));
    std::vector<std::string> starts;
    for (std::size_t d = 0; d < dims.size(); ++d) {
      const std::string name = fmt::format("v{}", next_++);
      body_ += fmt::format("  {} = s32[] parameter({})\n", name, parameters_++);
      starts.push_back(name);
    }
    return add(dims,
               fmt::format("dynamic-update-slice({}, {}, {})", into, operand(part), fmt::join(starts, ", ")));
  }
  std::string computed(const std::string& from, const std::vector<std::int64_t>& dims) {
    if (type_ == "s32") return add(dims, fmt::format("{}({})", below(2) ? "negate" : "abs", from));
    const char* const ops[] = {"exponential", "tanh", "negate", "cosine", "logistic"};
    return add(dims, fmt::format("{}({})", ops[below(5)], from));
  }
  std::string operand(const std::vector<std::int64_t>& dims) {
    switch (depth_ > 1 ? below(2) : below(8)) {
      case 0:
        return parameter(dims);
      case 1:
        return computed(parameter(dims), dims);
      case 2:
        return dims == dims_ ? computed(shared_, dims) : computed(parameter(dims), dims);
      case 3: {  // padded
        std::vector<std::int64_t> inner = dims;
        const std::size_t d = static_cast<std::size_t>(below(2));
        const std::int64_t low = below(static_cast<int>(dims[d]));
        inner[d] -= low;
        const std::string from = nested(inner);
        return add(
            dims, fmt::format("pad({}, zero), padding={}x{}", from, d == 0 ? fmt::format("{}_0", low) : "0_0",
                              d == 1 ? fmt::format("{}_0", low) : "0_0"));
      }
      case 4: {  // a reduction inside a thread, of computed elements
        const std::vector<std::int64_t> wide{dims[0], 2 + below(4), dims[1]};
        const std::string from = computed(parameter(wide), wide);
        return add(dims, fmt::format("reduce({}, zero), dimensions={{1}}, to_apply=sum", from));
      }
      case 5: {
        const std::string into = nested(dims);
        ++depth_;
        const std::string result = update(into, dims);
        --depth_;
        return result;
      }
      case 6: {  // a concatenation in a concatenation
        if (dims[1] < 2) return computed(parameter(dims), dims);
        std::vector<std::int64_t> a = dims, b = dims;
        a[1] = 1 + below(static_cast<int>(dims[1]) - 1);
        b[1] -= a[1];
        const std::string left = nested(a), right = nested(b);
        return add(dims, fmt::format("concatenate({}, {}), dimensions={{1}}", left, right));
      }
      default: {  // one value a row
        const std::string row = fmt::format("v{}", next_++);
        body_ += fmt::format("  {} = {}[{}] parameter({})\n", row, type_, dims[0], parameters_++);
        const std::string all = add(dims, fmt::format("broadcast({}), dimensions={{0}}", row));
        return computed(all, dims);
      }
    }
  }
  std::string nested(const std::vector<std::int64_t>& dims) {
    ++depth_;
    std::string result = operand(dims);
    --depth_;
    return result;
  }

  std::mt19937 random_;
  std::string type_, body_, shared_;
  std::vector<std::int64_t> dims_;
  int next_ = 0, parameters_ = 0, depth_ = 0;
};

class DrawnChoices : public ::testing::TestWithParam<std::uint32_t> {};

TEST_P(DrawnChoices, AreRight) {
  SKIP_WITHOUT_COMPILER();
  const std::string text = Drawn(GetParam()).text();
  SCOPED_TRACE(text);
  const Graph graph = testing::graph_of(text);
  testing::expect_clean_and_right(graph, generate_inputs(graph, GetParam()), device("v100"),
                                  {"astitch", "xla"});
}

INSTANTIATE_TEST_SUITE_P(Seeds, DrawnChoices, ::testing::Range(0u, 8u));

}  // namespace TEST_FILE
}  // namespace stitchwork
