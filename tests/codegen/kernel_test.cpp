// The shape of lowered and printed kernels.
#include <fmt/format.h>

#include "core/base/error.h"
#include "core/base/file.h"
#include "tests/codegen/harness.h"
#include "tests/codegen/workloads.h"
#include "tests/support/golden.h"
#include "tests/support/paper.h"

namespace stitchwork {
namespace TEST_FILE {

Graph dataset(const std::string& name) {
  return canonicalize(read_graph(STITCHWORK_SOURCE_DIR "/datasets/" + name + ".hlo"));
}

std::string cuda(const Graph& graph, const FusionPlan& plan, bool canonical = false) {
  std::string text;
  for (const KernelPlan& kernel : plan.kernels)
    text += to_cuda(graph, build_schedule(graph, kernel), canonical);
  return text;
}

std::size_t count(const std::string& text, const std::string& what) {
  std::size_t n = 0;
  for (std::size_t at = text.find(what); at != std::string::npos; at = text.find(what, at + 1)) ++n;
  return n;
}

TEST(Kernel, SoftmaxReadsItsInputOnceAndWritesItsOutputOnce) {
  const Graph graph = dataset("softmax");
  const std::string text =
      cuda(graph, make_plan(graph, device("v100"), "astitch", testing::paper("astitch")));
  EXPECT_EQ(count(text, "= x["), 1u) << text;
  EXPECT_EQ(count(text, "expf("), 1u) << text;
  EXPECT_EQ(count(text, "] = divide_27"), 1u) << text;
}

TEST(Kernel, SimulatedSoftmaxAsksForExactlyItsInputsSectors) {
  SKIP_WITHOUT_COMPILER();
  const Graph graph = dataset("softmax_tiny");
  const sim::Counters counters = testing::expect_correct(graph, make_plan(graph, device("v100"), "astitch"));
  const Computation& computation = graph.entry_computation();
  const auto bytes =
      static_cast<std::uint64_t>(computation.node(computation.parameters[0]).shape.byte_size());
  EXPECT_EQ(counters.gld_bytes, bytes);
  EXPECT_EQ(counters.gst_bytes, bytes);
}

TEST(Kernel, Fig7KeepsValuesWithTheThreadAcrossTheSecondBarrier) {
  const Graph graph = dataset("fig7");
  const FusionPlan plan = make_plan(graph, device("v100"), "astitch", testing::paper("astitch"));
  ASSERT_EQ(plan.kernels.size(), 1u);
  const std::string text = cuda(graph, plan);
  EXPECT_EQ(count(text, "sw_grid_barrier(barrier);"), 2u) << text;
  EXPECT_EQ(count(text, "= power_1_scratch["), 1u) << text;
  EXPECT_EQ(count(text, "= parameter_3["), 1u) << text;
}

TEST(Kernel, ArgumentsAreInputsOutputsScratchBarrier) {
  const Graph graph = dataset("fig7");
  const Schedule kernel = build_schedule(graph, make_plan(graph, device("v100"), "astitch").kernels.at(0));
  std::string order;
  for (const KernelArgument& argument : kernel_arguments(kernel))
    order += "iosb"[static_cast<int>(argument.kind)];
  EXPECT_EQ(order, "iiiiosb");
}

TEST(Kernel, EqualKernelsHaveEqualCanonicalText) {
  const Graph graph = testing::graph_of(R"(HloModule two
ENTRY main {
  first = f32[100] parameter(0)
  second = f32[100] parameter(1)
  one = f32[100] exponential(first)
  other = f32[100] exponential(second)
  ROOT t = (f32[100], f32[100]) tuple(one, other)
}
)");
  const FusionPlan plan = make_plan(graph, device("v100"), "unfused");
  ASSERT_EQ(plan.kernels.size(), 2u);
  const Schedule a = build_schedule(graph, plan.kernels[0]), b = build_schedule(graph, plan.kernels[1]);
  EXPECT_EQ(to_cuda(graph, a, true), to_cuda(graph, b, true));
  EXPECT_NE(to_cuda(graph, a, false), to_cuda(graph, b, false));
}

TEST(Kernel, WhatNoKernelComputesIsRefusedByName) {
  const auto message = [](const std::string& body) -> std::string {
    const Graph graph = testing::graph_of(
        "HloModule m\nodd { a = f32[] parameter(0)  b = f32[] parameter(1)  m = f32[] multiply(a, b)  ROOT s "
        "= "
        "f32[] add(m, b) }\nENTRY e {\n  x = f32[4,8] parameter(0)\n  z = f32[] constant(0)\n" +
        body + "}\n");
    try {
      cuda(graph, make_plan(graph, device("v100"), "astitch"));
    } catch (const Error& error) {
      return error.what();
    }
    return "";
  };
  EXPECT_NE(message("  ROOT r = f32[4] reduce(x, z), dimensions={1}, to_apply=odd\n")
                .find(":6: r (reduce) cannot be executed: 'odd' is not one commutative operation; "),
            std::string::npos);
  EXPECT_NE(message("  c = c64[4,8] convert(x)\n  ROOT f = c64[4,8] cholesky(c)\n")
                .find("(bitcast-convert) cannot be executed: c64 has no"),
            std::string::npos);
  EXPECT_EQ(message("  ROOT n = f32[4,8] negate(x)\n"), "");
}

TEST(Kernel, NamesOfOpsNeverCollideWithTheCode) {
  SKIP_WITHOUT_COMPILER();
  const Graph graph = testing::graph_of(R"(HloModule names
ENTRY main {
  row = f32[40] parameter(0)
  float = f32[40] parameter(1)
  thread = f32[40] exponential(row)
  expf = f32[40] add(thread, float)
  task.1 = f32[40] exponential(expf)
  task_1 = f32[40] multiply(task.1, thread)
  ROOT sw_max = f32[40] maximum(task_1, expf)
}
)");
  for (const std::string& compiler : testing::installed_compilers()) {
    const PtxCompiler found = find_compiler(compiler);
    const FusionPlan plan = make_plan(graph, device("v100"), "xla");
    const std::string text = cuda(graph, plan);
    EXPECT_NO_THROW(compile_ptx(found, cuda_prelude(text) + text, 75));
  }
}

TEST(Kernel, IndicesAreWideWhereTensorsAre) {
  const Graph graph = testing::graph_of(R"(HloModule wide
ENTRY main {
  x = f32[65536,65536] parameter(0)
  ROOT y = f32[65536,65536] negate(x)
}
)");
  const FusionPlan plan = make_plan(graph, device("v100"), "unfused");
  EXPECT_TRUE(build_schedule(graph, plan.kernels.at(0)).wide_indices);
  EXPECT_NE(cuda(graph, plan).find("const long long row"), std::string::npos);
}

struct Printed {
  std::string dataset, planner;
  bool tuned = false;
};

class GoldenCuda : public ::testing::TestWithParam<Printed> {};

TEST_P(GoldenCuda, SourceIsAsApproved) {
  const Printed& c = GetParam();
  const Graph graph = testing::dataset(c.dataset);
  const PlanOptions options = c.tuned ? PlanOptions{} : testing::paper(c.planner);
  expect_golden(fmt::format("cuda_{}_{}{}.cu", c.planner, c.tuned ? "tuned_" : "", c.dataset),
                cuda(graph, make_plan(graph, device("v100"), c.planner, options)));
}

/// Rows of 33 columns: copied in bulk, two tasks at a time, and their results likewise.
TEST(GoldenCudaOfBulkCopies, SourceIsAsApproved) {
  const Graph graph = testing::graph_of(testing::workload("softmax").hlo({1000003, 33, "f32"}));
  expect_golden("cuda_astitch_bulk_softmax.cu", cuda(graph, make_plan(graph, device("h200"), "astitch")));
}

INSTANTIATE_TEST_SUITE_P(
    Kernels, GoldenCuda,
    ::testing::Values(Printed{"softmax", "astitch"}, Printed{"softmax", "xla"}, Printed{"fig7", "astitch"},
                      Printed{"layer_norm", "astitch"}, Printed{"row_64x30000", "astitch"},
                      Printed{"column_sum", "astitch"}, Printed{"gelu", "unfused"},
                      Printed{"softmax", "astitch", true}, Printed{"layer_norm_grad", "astitch", true},
                      Printed{"adam_tiny", "astitch", true}),
    [](const auto& info) {
      return fmt::format("{}_{}{}", info.param.planner, info.param.tuned ? "tuned_" : "", info.param.dataset);
    });

}  // namespace TEST_FILE
}  // namespace stitchwork
