// Simulated times of tiled products.
#include "runtime/tiled_products.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "analysis/json/plan_json.h"
#include "core/base/error.h"
#include "occupancy_model/library.h"
#include "runtime/run.h"
#include "tests/codegen/harness.h"
#include "tests/runtime/fake_cublas.h"
#include "tests/runtime/on_fake_gpu.h"
#include "tests/support/astra_graphs.h"

namespace stitchwork {
namespace TEST_FILE {

TypedGemm plain(std::int64_t m, std::int64_t n, std::int64_t k, DType type = DType::kF32) {
  TypedGemm product{{}, type, type};
  product.gemm.m = m;
  product.gemm.n = n;
  product.gemm.k = k;
  product.gemm.a_row = k;
  product.gemm.b_row = n;
  product.gemm.c_row = n;
  product.gemm.a_col = product.gemm.b_col = 1;
  return product;
}

const TiledProduct& by(const char* name) {
  for (const TiledProduct& product : tiled_products())
    if (stitchwork::name(product) == name) return product;
  throw Error(std::string("no product ") + name);
}

TEST(SimulatedProducts, AreSimulatedOnce) {
  SKIP_WITHOUT_COMPILER();
  SimulatedProducts products(device("v100"), false);
  const double us = products.us(plain(60, 70, 80), by("tiled-32x32"));
  EXPECT_EQ(products.us(plain(60, 70, 80), by("tiled-32x32")), us);
  EXPECT_EQ(products.simulated(), 1u);
  products.us(plain(60, 70, 80, DType::kF16), by("tiled-32x32"));
  products.us(plain(60, 70, 80), by("tiled-32x32/2"));
  TypedGemm transposed = plain(60, 70, 80);
  transposed.gemm.a_row = 1;
  transposed.gemm.a_col = 60;
  products.us(transposed, by("tiled-32x32"));
  EXPECT_EQ(products.simulated(), 4u);
}

TEST(SimulatedProducts, ASplitPaysForItsFoldAndTheGapBeforeIt) {
  SKIP_WITHOUT_COMPILER();
  const Device& target = device("v100");
  SimulatedProducts products(target, false);
  const double whole = products.us(plain(32, 32, 8), by("tiled-32x32"));
  const double split = products.us(plain(32, 32, 8), by("tiled-32x32/2"));
  EXPECT_GT(split, whole + target.launch_us + target.launch_gap_us);
  // A tile alone on the device is another matter: eight blocks have an eighth of its steps each.
  EXPECT_LT(products.us(plain(32, 32, 2048), by("tiled-32x32/8")),
            products.us(plain(32, 32, 2048), by("tiled-32x32")) / 3);
}

TEST(SimulatedProducts, OfTypesThatHaveNoneAreRefused) {
  SimulatedProducts products(device("v100"), true);
  EXPECT_THROW(products.us(plain(8, 8, 8, DType::kF64), by("tiled-32x32")), Error);
}

/// Where the tiles of an SM have warps enough to keep it busy: the multiply-adds of the SM that has most
/// tiles, at its peak. Libraries are modelled alike, at the share of the peak that they sustain
/// (docs/timing.md).
TEST(SimulatedProducts, OfManyTilesTakeTheRoundsOfTheBusiestSmAtItsPeak) {
  SKIP_WITHOUT_COMPILER();
  const Device& target = device("v100");
  SimulatedProducts products(target, true);
  const TypedGemm product = plain(512, 1024, 1024);
  MatrixProduct modelled;
  modelled.m = 512;
  modelled.n = modelled.k = 1024;
  for (const LibraryKernel& kernel : library_kernels()) {
    const LibraryTime library = library_time(target, modelled, kernel);
    const double at_peak_us =
        library.launch_us + library.latency_us + library.compute_us * library.efficiency;
    const double us = products.us(product, by(("tiled-" + std::string(kernel.name)).c_str()));
    EXPECT_NEAR(us / at_peak_us, 1, 0.05) << kernel.name << " " << us << " " << at_peak_us;
  }
}

TEST(SimulatedProducts, AreCheckedWhereAsked) {
  SKIP_WITHOUT_COMPILER();
  SimulatedProducts checked(device("v100"), true, true), sampled(device("v100"), true);
  EXPECT_EQ(checked.us(plain(33, 65, 17), by("tiled-32x32/2")),
            sampled.us(plain(33, 65, 17), by("tiled-32x32/2")));
}

/// A run's products by our kernel: their results are the model's, and sanitizers and times are of the
/// simulator.
TEST(RunsOfTiledProducts, AreSimulatedWholeAndSaySo) {
  SKIP_WITHOUT_COMPILER();
  const Device& target = device("v100");
  const Graph graph = testing::astra_lstm_cell();
  const FusionPlan plan = make_plan(graph, target, "astra+astitch");
  ASSERT_EQ(plan.counts.library_calls, 1);
  const Executable executable = compile(graph, target, plan, {});
  const std::vector<Literal> inputs = generate_inputs(graph, 3);
  Judge judge(graph, inputs);
  RunOptions options;
  options.sanitize = sim::parse_sanitizers("mem,race,sync,init");
  const RunResult library = run_simulated(graph, target, executable, inputs, options);
  options.products = by("tiled-32x32/2");
  const RunResult tiled = run_simulated(graph, target, executable, inputs, options);
  EXPECT_TRUE(judge.check(tiled.outputs).ok) << judge.check(tiled.outputs).message;
  EXPECT_TRUE(tiled.host_calls.empty());
  ASSERT_EQ(tiled.library_calls.size(), 1u);
  EXPECT_EQ(tiled.library_calls.begin()->second, "tiled-32x32/2");
  EXPECT_GT(tiled.sanitized.race_accesses, library.sanitized.race_accesses);
  for (std::size_t i = 0; i < plan.steps.size(); ++i) {
    const bool call = plan.steps[i].kind == StepKind::kLibrary;
    EXPECT_EQ(tiled.steps[i].method, Method::kSimulated);
    EXPECT_EQ(library.steps[i].method, call ? Method::kModelled : Method::kSimulated);
    EXPECT_EQ(tiled.steps[i].time_us != library.steps[i].time_us, call) << i;
  }
}

TEST(RunsOfTiledProducts, AreSampledWhereKernelsAre) {
  SKIP_WITHOUT_COMPILER();
  const Device& target = device("v100");
  const Graph graph = testing::graph_of(
      "  %x = f32[1000,64]{1,0} parameter(0)\n  %w = f32[64,1000]{1,0} parameter(1)\n"
      "  ROOT %y = f32[1000,1000]{1,0} dot(%x, %w), lhs_contracting_dims={1}, rhs_contracting_dims={0}\n");
  const FusionPlan plan = make_plan(graph, target, "xla");
  RunOptions options;
  options.sampled = true;
  options.products = by("tiled-32x32");
  const RunResult run =
      run_simulated(graph, target, compile(graph, target, plan, {}), generate_inputs(graph, 0), options);
  ASSERT_EQ(run.steps.size(), 1u);
  SimulatedProducts products(target, true);
  EXPECT_DOUBLE_EQ(run.steps[0].time_us, products.us(plain(1000, 1000, 64), by("tiled-32x32")));
  EXPECT_TRUE(run.outputs.empty());
}

/// Whole and split k, one launch and several, repeated steps: as the backend of a GPU launches them, whose
/// driver runs kernels in the simulator.
TEST(RunsOfTiledProducts, AreLaunchedOnAGpuInPlaceOfCublas) {
  SKIP_WITHOUT_COMPILER();
  for (const char* kernel : {"tiled-64x64", "tiled-32x32/4"})
    for (const char* model : {"scrnn_tiny", "bert_tiny", "bert_fp16_tiny"}) {
      SCOPED_TRACE(std::string(kernel) + " " + model);
      testing::FakeGpu gpu{device("v100")};
      cuda::CudaOptions options{.repeats = 2};
      options.products = by(kernel);
      const testing::Ran ran = testing::run_on_fake_gpu(gpu, testing::dataset(model), options,
                                                        {.blas = testing::fake_blas, .dnn = {}}, "xla");
      testing::expect_right(ran);
      ASSERT_FALSE(ran.result.library_calls.empty());
      for (const auto& [op, made] : ran.result.library_calls) EXPECT_EQ(made, kernel) << op;
      for (const StepRun& step : ran.result.steps) EXPECT_EQ(step.method, Method::kMeasured);
    }
}

/// A plan says for each product which kernel makes it, whatever makes the others.
TEST(RunsOfTiledProducts, AreThoseThatThePlanNames) {
  SKIP_WITHOUT_COMPILER();
  const Device& target = device("v100");
  const Graph graph = testing::dataset("scrnn_tiny");
  FusionPlan plan = make_plan(graph, target, "xla");
  std::vector<std::string> expected;
  for (PlanStep& step : plan.steps)
    if (step.kind == StepKind::kLibrary && expected.size() < 2)
      expected.push_back(step.variant = expected.empty() ? "tiled-32x32/2" : "tiled-128x64");
  plan = plan_from_json(graph, plan_document(graph, plan).dump(), "plan.json");
  const std::vector<Literal> inputs = generate_inputs(graph, 0);
  const auto check = [&](const RunResult& run, const char* others) {
    EXPECT_TRUE(Judge(graph, inputs).check(run.outputs).ok);
    std::vector<std::string> made;
    for (const PlanStep& step : plan.steps) {
      if (step.kind != StepKind::kLibrary) continue;
      const std::string& op = graph.entry_computation().node(step.nodes.front()).name;
      const auto by = run.library_calls.find(op);
      if (made.size() < 2) {
        made.push_back(by == run.library_calls.end() ? "" : by->second);
      } else {
        EXPECT_EQ(by == run.library_calls.end() ? "" : by->second, others) << op;
      }
    }
    EXPECT_EQ(made, expected);
  };
  const Executable executable = compile(graph, target, plan, {});
  check(run_simulated(graph, target, executable, inputs), "");
  RunOptions options;
  options.products = by("tiled-64x64");
  check(run_simulated(graph, target, executable, inputs, options), "tiled-64x64");
  testing::FakeGpu gpu{target};
  cuda::CudaBackend backend(testing::fake_driver(gpu), target, {.repeats = 1}, {testing::fake_blas, {}});
  check(run_on(backend, graph, target, executable, inputs), "cuBLAS");
}

TEST(RunsOfTiledProducts, ThatCannotBeMadeAreOneLine) {
  SKIP_WITHOUT_COMPILER();
  const Device& target = device("v100");
  const Graph graph = testing::graph_of(
      "  %x = f64[9,9]{1,0} parameter(0)\n"
      "  ROOT %y = f64[9,9]{1,0} dot(%x, %x), lhs_contracting_dims={1}, rhs_contracting_dims={0}\n");
  FusionPlan plan = make_plan(graph, target, "xla");
  const auto refusal = [&](const char* variant) {
    plan.steps[0].variant = variant;
    return testing::refusal(
        [&] { run_simulated(graph, target, compile(graph, target, plan, {}), generate_inputs(graph, 0)); });
  };
  EXPECT_THAT(refusal("tiled-64x64"), ::testing::HasSubstr("tiled-64x64 does not make this product"));
  EXPECT_THAT(refusal("tiled-9x9"),
              ::testing::AllOf(::testing::HasSubstr("there is no tiled product tiled-9x9"),
                               ::testing::HasSubstr("known: tiled-128x128")));
}

/// What no tiled kernel makes the CPU reference does, and its time is modelled as ever.
TEST(RunsOfTiledProducts, LeaveOtherCallsToTheHost) {
  SKIP_WITHOUT_COMPILER();
  const Device& target = device("v100");
  const Graph graph = testing::graph_of(
      "  %x = f64[9,9]{1,0} parameter(0)\n"
      "  ROOT %y = f64[9,9]{1,0} dot(%x, %x), lhs_contracting_dims={1}, rhs_contracting_dims={0}\n");
  const FusionPlan plan = make_plan(graph, target, "xla");
  RunOptions options;
  options.products = by("tiled-32x32");
  const RunResult run =
      run_simulated(graph, target, compile(graph, target, plan, {}), generate_inputs(graph, 0), options);
  EXPECT_EQ(run.host_calls, std::vector<std::string>{"y"});
  EXPECT_EQ(run.steps.at(0).method, Method::kModelled);
}

}  // namespace TEST_FILE
}  // namespace stitchwork
