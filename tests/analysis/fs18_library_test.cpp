// The performance library of FusionStitching 2018, section 4.4: keys, the kernels that they stand for, and
// what a planner makes of stored times.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <nlohmann/json.hpp>
#include <random>
#include <set>
#include <thread>

#include "analysis/json/plan_json.h"
#include "analysis/planners/fusionstitching/kernel.h"
#include "analysis/planners/fusionstitching/library.h"
#include "analysis/planners/fusionstitching/one_op.h"
#include "analysis/planners/planner.h"
#include "analysis/verify/verify.h"
#include "core/base/error.h"
#include "tests/support/graphs.h"

namespace stitchwork::fusionstitching {
namespace TEST_FILE {

using ::testing::Contains;
using testing::graph_of;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;
using testing::op;

/// Of an op of a graph under a schedule, as the planner looks it up.
std::optional<LibraryKey> key_of(const Graph& graph, NodeId id, const Schedule& schedule, int threads,
                                 int warps) {
  const Computation& computation = graph.entry_computation();
  const auto named = key_schedule(computation.node(id).shape.dims, schedule);
  const auto own = key_op(graph, computation, computation.node(id));
  if (!named || !own) return std::nullopt;
  return LibraryKey{*own, *named, threads, warps};
}

std::string key_text(const Graph& graph, const std::string& name, const Schedule& schedule, int threads,
                     int warps = 1) {
  const auto key = key_of(graph, op(graph, name), schedule, threads, warps);
  return key ? to_text(*key) : "none";
}

TEST(FsLibraryKey, NamesOpShapeScheduleAndThreads) {
  const Graph graph = testing::dataset("fs18_fig3");
  EXPECT_EQ(key_text(graph, "reduce.2", {1, 8, ScheduleType::kRow}, 256, 4),
            "reduce.add f32[2,8,64,64]{3} row 1/8 t256 w4");
  EXPECT_EQ(key_text(graph, "divide.1", {1, 8, ScheduleType::kRow}, 64), "divide f32[2,8,64,64] row 1/8 t64");
  EXPECT_EQ(key_text(graph, "dot.1", {0, 16, ScheduleType::kRow}, 64),
            "dot f32[16,64,32]{0|0|2|1} f32[16,64,64] f32[16,64,32] row 0/16 t64");
}

TEST(FsLibraryKey, OneForAllSchedulesOfTheSameChunks) {
  const Graph graph = graph_of("p = f32[64,256] parameter(0)\n ROOT t = f32[64,256] tanh(p)");
  const std::string elements = "tanh f32[64,256] row 1/256 t32";
  EXPECT_EQ(key_text(graph, "t", {1, 256, ScheduleType::kRow}, 32), elements);
  EXPECT_EQ(key_text(graph, "t", {0, 64, ScheduleType::kColumn}, 32), elements);
  EXPECT_EQ(key_text(graph, "t", {1, 1, ScheduleType::kRow}, 32), "tanh f32[64,256] row 0/64 t32");
  EXPECT_EQ(key_text(graph, "t", {1, 4, ScheduleType::kColumn}, 32), "none");  // columns of all rows
}

TEST(FsLibraryKey, NamesOperandsOfOtherShapes) {
  const Graph graph = graph_of(
      "p = f32[8,4] parameter(0)\n q = f32[8,4] parameter(1)\n c = pred[8,4] compare(p, q), direction=LE\n"
      "s = f32[8,4] select(c, p, q)\n h = f16[8,4] convert(s)\n"
      "ROOT t = f16[4,8] transpose(h), dimensions={1,0}");
  EXPECT_EQ(key_text(graph, "c", {}, 32), "compare.LE pred[8,4] f32[8,4] f32[8,4] row 0/1 t32");
  EXPECT_EQ(key_text(graph, "s", {}, 32), "select f32[8,4] pred[8,4] f32[8,4] f32[8,4] row 0/1 t32");
  EXPECT_EQ(key_text(graph, "h", {}, 32), "convert f16[8,4] f32[8,4] row 0/1 t32");
  EXPECT_EQ(key_text(graph, "t", {}, 32), "transpose f16[4,8]{1,0} row 0/1 t32");
}

TEST(FsLibraryKey, NoneOfOpsThatItCannotTellInFull) {
  const Graph graph = graph_of(
      "p = f32[8,4] parameter(0)\n z = f32[] constant(0)\n"
      "r = f32[8,4] reduce-precision(p), exponent_bits=5, mantissa_bits=10\n"
      "b = f32[8,4] broadcast(z), dimensions={}\n a = f32[8,4] add(r, b)\n"
      "ROOT w = f32[8,4] reduce-window(a, z), window={size=3x3 pad=1_1x1_1}, to_apply=sum");
  EXPECT_EQ(key_text(graph, "r", {}, 32), "none");
  EXPECT_EQ(key_text(graph, "w", {}, 32), "none");
  EXPECT_EQ(key_text(graph, "a", {}, 32), "add f32[8,4] row 0/1 t32");
}

TEST(FsLibraryKey, BadOnesSayWhatIsWrong) {
  const std::pair<const char*, const char*> bad[] = {
      {"", "ends early"},
      {"tanh", "ends early"},
      {"tanhh f32[4] row 0/1 t32", "no op 'tanhh'"},
      {"tanh f32 row 0/1 t32", "'f32' is no shape"},
      {"tanh g32[4] row 0/1 t32", "no kernels of 'g32[4]'"},
      {"tanh c64[4] row 0/1 t32", "no kernels of 'c64[4]'"},
      {"tanh f32[0] row 0/1 t32", "no kernel has the elements"},
      {"tanh f32[99999999999,99999999999] row 0/1 t32", "no kernel has the elements"},
      {"tanh f32[-4] row 0/1 t32", "'-4' is no number"},
      {"tanh f32[4]{ row 0/1 t32", "no shape"},
      {"tanh f32[4] row 0/3 t32", "(0,3,Row) cuts no array"},
      {"tanh f32[4] row 1/1 t32", "(1,1,Row) cuts no array"},
      {"tanh f32[4,4] row 1/1 t32", "(1,1,Row) cuts no array"},  // named by split_dim 0
      {"tanh f32[4,4] column 0/1 t32", "(0,1,Column) cuts no array"},
      {"tanh f32[4] row 0 t32", "split_dim/sword"},
      {"tanh f32[4] row 0/1 t48", "no 48 threads"},
      {"tanh f32[4] row 0/1 t2048", "no 2048 threads"},
      {"tanh f32[4] row 0/1 x32", "does not begin with t"},
      {"tanh f32[4] row 0/1 t32 w2", "no 2 warps"},
      {"reduce.add f32[4,64]{1} row 0/1 t128 w3", "no 3 warps"},
      {"reduce.add f32[4,64]{2} row 0/1 t128 w1", "no dim 2"},
      {"tanh f32[4] row 0/1 t32 w1 more", "'more' is left over"},
  };
  for (const auto& [text, why] : bad) try {
      parse_library_key(text);
      ADD_FAILURE() << text;
    } catch (const Error& error) {
      EXPECT_THAT(error.what(), HasSubstr(why)) << text;
    }
  try {
    one_op(device("v100"), parse_library_key("tanh s32[4] row 0/1 t32"));
    FAIL();
  } catch (const Error& error) {
    EXPECT_THAT(error.what(), HasSubstr("'tanh s32[4] row 0/1 t32' is no op of its operands"));
  }
}

/// The key's kernel is of its launch and verifies; its op has the same key again.
void expect_kernel(const LibraryKey& key) {
  const std::string text = to_text(key);
  SCOPED_TRACE(text);
  EXPECT_EQ(parse_library_key(text), key);
  const Device& v100 = device("v100");
  const OneOp one = one_op(v100, key);
  ASSERT_EQ(one.plan.kernels.size(), 1u);
  EXPECT_EQ(one.plan.counts.library_calls, 0);
  EXPECT_THAT(verify(one.graph, v100, one.plan), IsEmpty());
  EXPECT_EQ(one.plan.kernels[0].launch.grid, blocks_of(key.schedule, result_dims(key.op)));
  EXPECT_EQ(one.plan.kernels[0].launch.block, key.threads);
  EXPECT_GT(one.plan.kernels[0].predicted_us, 0);
  EXPECT_EQ(
      key_of(one.graph, one.graph.entry_computation().root, key.schedule, key.threads, key.warps).value(),
      key);
}

TEST(FsOneOp, EveryElementwiseOpOfEveryTypeThatItTakes) {
  int kernels = 0;
  for (const OpDef& row : op_table()) {
    if (!is_elementwise(row.op) || row.execution != Execution::kGenerated || row.op == Op::kReducePrecision)
      continue;
    int of_this = 0;
    for (const DType type : {DType::kPred, DType::kS8, DType::kU32, DType::kS64, DType::kF16, DType::kBF16,
                             DType::kF32, DType::kF64}) {
      const Shape shape = Shape::array(type, {6, 10}), pred = Shape::array(DType::kPred, {6, 10});
      LibraryKey key{{row.op, "", shape, {}, {}, {}}, {0, 3, ScheduleType::kRow}, 64, 1};
      if (row.op == Op::kSelect) key.op.operands = {pred, shape, shape};
      if (row.op == Op::kIsFinite || row.op == Op::kCompare) {
        key.op.operands.assign(static_cast<std::size_t>(row.min_operands), shape);
        key.op.shape = pred;
      }
      if (row.op == Op::kCompare) key.op.kind = "GT";
      if (!key.op.operands.empty() && type == DType::kPred) key.op.operands.clear();  // all alike
      try {
        one_op(device("v100"), key);
      } catch (const Error&) {
        continue;  // the op does not take the type
      }
      ++of_this;
      expect_kernel(key);
    }
    EXPECT_GT(of_this, 0) << row.name;
    kernels += of_this;
  }
  EXPECT_GT(kernels, 100);
}

/// A drawn op of drawn extents, of the classes that keys tell apart.
KeyOp drawn_op(std::mt19937& random) {
  const auto below = [&](std::size_t n) { return static_cast<std::size_t>(random() % n); };
  constexpr std::array<std::int64_t, 10> kExtents = {1, 2, 3, 5, 8, 13, 32, 48, 97, 128};
  Dims dims(below(4));
  for (std::int64_t& dim : dims) dim = kExtents[below(kExtents.size())];
  constexpr std::array kTypes = {DType::kF32, DType::kF16, DType::kBF16, DType::kF64, DType::kS32};
  const Shape shape = Shape::array(kTypes[below(kTypes.size())], dims);
  switch (below(5)) {
    case 0:
      return {Op::kAdd, "", shape, {}, {}, {}};
    case 1: {
      KeyOp op{Op::kTranspose, "", shape, {}, {}, {}};
      for (std::size_t d = 0; d < dims.size(); ++d) op.dims.push_back(static_cast<std::int64_t>(d));
      std::shuffle(op.dims.begin(), op.dims.end(), random);
      Shape operand = shape;
      for (std::size_t d = 0; d < dims.size(); ++d)
        operand.dims[static_cast<std::size_t>(op.dims[d])] = dims[d];
      return op;
    }
    case 2: {
      const std::int64_t batch = 1 + static_cast<std::int64_t>(below(8)), m = kExtents[below(8)],
                         n = kExtents[below(8)], k = kExtents[below(kExtents.size())];
      const auto array = [&](Dims of) { return Shape::array(shape.dtype, std::move(of)); };
      return {Op::kDot,
              "",
              array({batch, m, n}),
              {},
              {{0}, {0}, {2}, {1}},
              {array({batch, m, k}), array({batch, k, n})}};
    }
    default: {
      constexpr std::array kReducers = {"add", "maximum", "minimum", "multiply"};
      KeyOp op{Op::kReduce, kReducers[below(kReducers.size())], shape, {}, {}, {}};
      for (std::size_t d = 0; d < dims.size(); ++d)
        if (below(2) == 0) op.dims.push_back(static_cast<std::int64_t>(d));
      return op;
    }
  }
}

TEST(FsOneOp, DrawnKeysHaveKernelsThatVerify) {
  std::set<Op> ops;
  for (std::uint32_t seed = 0; seed < 300; ++seed) {
    SCOPED_TRACE(seed);
    std::mt19937 random(seed);
    KeyOp op = drawn_op(random);
    // Where all operands are of the result's shape the key does not name them.
    if (std::all_of(op.operands.begin(), op.operands.end(), [&](const Shape& s) { return s == op.shape; }))
      op.operands.clear();
    const Dims dims = result_dims(op);
    const std::vector<Schedule> all = distinct_candidates(dims);
    const auto schedule = key_schedule(dims, all[random() % all.size()]);
    if (!schedule) continue;
    const int threads = kBlockSizes[random() % kBlockSizes.size()];
    LibraryKey key{op, *schedule, threads, 1};
    const OneOp one = one_op(device("v100"), key);
    const Computation& computation = one.graph.entry_computation();
    const std::vector<int> warps = row_warps(computation, computation.node(computation.root), threads);
    key.warps = warps[random() % warps.size()];
    expect_kernel(key);
    ops.insert(op.op);
  }
  EXPECT_EQ(ops.size(), 4u);
}

/// Of every small dataset, with and without products, what planning asks a library for.
TEST(FsOneOp, WhatPlanningAsksForHasKernels) {
  std::set<std::string> keys;
  const PerformanceLibrary library{"v100-sxm2", {}, ""};
  int graphs = 0;
  for (const auto& file :
       std::filesystem::directory_iterator(std::string(STITCHWORK_SOURCE_DIR) + "/datasets")) {
    const std::string name = file.path().filename().string();
    const std::size_t end = name.find("_tiny.hlo");
    if (end == std::string::npos) continue;
    ++graphs;
    for (const char* products : {"off", "on"}) {
      PlanOptions options{{{"products", products}}, {}, false};
      options.library = &library;
      const FusionPlan plan = make_plan(testing::dataset(name.substr(0, end) + "_tiny"), device("v100"),
                                        "fusionstitching-2018", options);
      keys.insert(plan.library_misses.begin(), plan.library_misses.end());
    }
  }
  EXPECT_GT(graphs, 10);
  EXPECT_GT(keys.size(), 1000u);
  std::set<Op> ops;
  std::size_t number = 0;
  for (const std::string& text : keys) {
    const LibraryKey key = parse_library_key(text);
    EXPECT_EQ(to_text(key), text);
    // Keys of one op lie side by side: one of each op, and one in so many of all.
    if (!ops.insert(key.op.op).second && number++ % 61 != 0) continue;
    SCOPED_TRACE(text);
    one_op(device("v100"), key);  // verifies
  }
  EXPECT_GT(ops.size(), 15u);
}

PlanOptions with(const PerformanceLibrary& library, bool record = false) {
  PlanOptions options{{{"mapping", "paper"}}, {}, record};
  options.library = &library;
  return options;
}

FusionPlan plan_with(const Graph& graph, const PerformanceLibrary& library, bool record = false) {
  return make_plan(graph, device("p100"), "fusionstitching-2018", with(library, record));
}

TEST(FsLibrary, WhatItDoesNotHaveIsListedUntilItHasIt) {
  const Graph graph = testing::dataset("softmax_tiny");
  PerformanceLibrary library{"p100-sxm2", {}, "0123"};
  FusionPlan plan = plan_with(graph, library);
  ASSERT_FALSE(plan.library_misses.empty());
  EXPECT_TRUE(std::is_sorted(plan.library_misses.begin(), plan.library_misses.end()));
  for (const std::string& key : plan.library_misses) {
    one_op(device("p100"), parse_library_key(key));
    library.entries[key] = {2.0, "simulated"};
  }
  const FusionPlan again = plan_with(graph, library);
  for (const std::string& key : plan.library_misses) EXPECT_THAT(again.library_misses, Not(Contains(key)));
  EXPECT_THAT(make_plan(graph, device("p100"), "fusionstitching-2018").library_misses, IsEmpty());
}

TEST(FsLibrary, SchedulesSayWhereTheirTimesAreFrom) {
  const Graph graph = graph_of("p = f32[64,256] parameter(0)\n ROOT t = f32[64,256] tanh(p)");
  const auto why = [&](const PerformanceLibrary& library) {
    for (const Decision& d : plan_with(graph, library, true).decisions)
      if (d.verdict.rule == "fs18.schedule") return d.verdict.why;
    return std::string();
  };
  PerformanceLibrary library{"p100-sxm2", {}, "0123"};
  EXPECT_THAT(why(library), HasSubstr("us, the sum over its ops (modelled)"));
  library.entries["tanh f32[64,256] row 0/4 t128"] = {0.25, "simulated"};
  EXPECT_THAT(why(library), HasSubstr("(0,4,Row) of 4 blocks, 0.25 us simulated, 128 threads: 0.25 us, the "
                                      "sum over its ops (simulated)"));
  library.entries["tanh f32[64,256] row 0/8 t64"] = {0.125, "measured"};
  EXPECT_THAT(why(library), HasSubstr("the sum over its ops (measured)"));
}

TEST(FsLibrary, SumsOfSeveralMethodsSayHowManyOpsHaveWhich) {
  const Graph graph = testing::dataset("softmax_tiny");
  PerformanceLibrary library{"p100-sxm2", {}, "0123"};
  for (const std::string& key : plan_with(graph, library).library_misses)
    if (key.starts_with("exponential") || key.starts_with("divide")) library.entries[key] = {1, "simulated"};
  std::string sum;
  for (const Decision& d : plan_with(graph, library, true).decisions)
    if (d.verdict.rule == "fs18.schedule" && d.verdict.why.find("the sum") != std::string::npos)
      sum = d.verdict.why;
  EXPECT_THAT(sum, ::testing::ContainsRegex("the sum over its ops \\([0-9]+ modelled, [0-9]+ simulated\\)"));
}

TEST(FsLibrary, ThePlanCarriesTheFilesSha256) {
  const Graph graph = testing::dataset("softmax_tiny");
  const PerformanceLibrary library{"p100-sxm2", {}, "0123abcd"};
  const FusionPlan plan = plan_with(graph, library);
  EXPECT_EQ(plan.library, "0123abcd");
  const auto document = plan_to_json(graph, plan);
  EXPECT_EQ(document["options"]["library"], "0123abcd");
  EXPECT_EQ(plan_from_json(graph, document.dump(), "plan.json").library, "0123abcd");
  EXPECT_FALSE(
      plan_to_json(graph, make_plan(graph, device("p100"), "fusionstitching-2018"))["options"].contains(
          "library"));
}

TEST(FsLibrary, OfAnotherDeviceOrForAnotherPlannerIsRefused) {
  const Graph graph = testing::dataset("softmax_tiny");
  const PerformanceLibrary library{"p100-sxm2", {}, "0123"};
  const auto message = [&](const char* device_id, const char* planner) -> std::string {
    try {
      make_plan(graph, device(device_id), planner, with(library));
    } catch (const Error& error) {
      return error.what();
    }
    return "";
  };
  EXPECT_THAT(message("v100", "fusionstitching-2018"), HasSubstr("is of p100-sxm2, the plan for v100-sxm2"));
  PlanOptions plain;
  plain.library = &library;
  EXPECT_THROW(make_plan(graph, device("p100"), "xla", plain), Error);
  EXPECT_THAT(message("p100", "fusionstitching"), HasSubstr("takes no performance library"));
}

TEST(FsLibrary, ManyThreadsPlanTheSameBytesTwice) {
  const Graph graph = testing::dataset("bert_layer");
  PerformanceLibrary library{"p100-sxm2", {}, "0123"};
  std::mt19937 random(7);
  for (const std::string& key : plan_with(graph, library).library_misses)
    library.entries[key] = {0.5 + static_cast<double>(random() % 1024) / 256, "simulated"};
  const std::string modelled = plan_to_json(graph, plan_with(graph, {"p100-sxm2", {}, "0123"}, true)).dump();
  const std::string once = plan_to_json(graph, plan_with(graph, library, true)).dump();
  EXPECT_NE(once, modelled);  // the times decide
  for (int round = 0; round < 2; ++round) {
    std::vector<std::string> plans(16);
    std::vector<std::thread> threads;
    for (std::string& plan : plans)
      threads.emplace_back([&] { plan = plan_to_json(graph, plan_with(graph, library, true)).dump(); });
    for (std::thread& thread : threads) thread.join();
    for (const std::string& plan : plans) EXPECT_EQ(plan, once);
  }
}

}  // namespace TEST_FILE
}  // namespace stitchwork::fusionstitching
