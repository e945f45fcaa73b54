#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>

#include "analysis/plan/assemble.h"
#include "analysis/planners/astitch/step_graph.h"
#include "analysis/planners/planner.h"
#include "tests/support/astitch_passes.h"
#include "tests/support/random_graph.h"

namespace stitchwork::astitch {
namespace TEST_FILE {

using ::testing::HasSubstr;

FusionPlan plan(const Graph& graph, const char* planner = "astitch", bool remote = true) {
  PlanOptions options;
  options.record_decisions = true;
  if (!remote) options.knobs["remote_stitching"] = "off";
  return make_plan(graph, device("v100"), planner, options);
}

int kernels(const Graph& graph, const char* planner = "astitch", bool remote = true) {
  return plan(graph, planner, remote).counts.memory_kernels;
}

/// The first decision under a rule.
const Decision* decision(const FusionPlan& plan, std::string_view rule) {
  const auto found = std::find_if(plan.decisions.begin(), plan.decisions.end(),
                                  [&](const Decision& d) { return d.verdict.rule == rule; });
  return found == plan.decisions.end() ? nullptr : &*found;
}

/// Most bytes alive, values from the step that makes them to the last that reads them, results to the end.
std::int64_t peak_bytes(const Graph& graph, const FusionPlan& plan) {
  const Computation& computation = graph.entry_computation();
  std::map<NodeId, std::size_t> made, read;
  for (std::size_t s = 0; s < plan.steps.size(); ++s) {
    const PlanStep& step = plan.steps[s];
    std::vector<NodeId> reads;
    if (step.kind == StepKind::kKernel) {
      const KernelPlan& kernel = plan.kernels[static_cast<std::size_t>(step.kernel)];
      reads = kernel_reads(graph, kernel);
      for (const NodeId op : kernel.outputs) made[op] = s;
    } else {
      for (const NodeId op : step.nodes) {
        made[op] = s;
        for (const NodeId input : library_inputs(computation, computation.node(op))) reads.push_back(input);
      }
    }
    for (const NodeId op : reads) read[op] = s;
  }
  for (const NodeId op : values_read(computation, computation.root)) read[op] = plan.steps.size();
  std::vector<std::int64_t> alive(plan.steps.size() + 1, 0);
  for (const auto& [op, from] : made) {
    const std::size_t to = read.contains(op) ? read.at(op) : from;
    for (std::size_t s = from; s <= to; ++s) alive[s] += computation.node(op).shape.byte_size();
  }
  return *std::max_element(alive.begin(), alive.end());
}

/// a -> call -> b and d -> call -> c.
Graph two_chains() {
  return parse(R"(ENTRY e {
    x = f32[64,64] parameter(0)
    y = f32[64,64] parameter(1)
    a = f32[64,64] exponential(x)
    d = f32[64,64] tanh(y)
    ad = f32[64,64] dot(a, x), lhs_contracting_dims={1}, rhs_contracting_dims={0}
    dd = f32[64,64] dot(d, y), lhs_contracting_dims={1}, rhs_contracting_dims={0}
    b = f32[64,64] negate(ad)
    c = f32[64,64] negate(dd)
    ROOT t = (f32[64,64], f32[64,64]) tuple(b, c)
  })");
}

TEST(AstitchRemote, ReachabilityIsThatOfTheContractedGraph) {
  const Graph graph = two_chains();
  const Nodes nodes = node_facts(graph);
  Recorder recorder(false);
  const Scope scope = find_scope(nodes, 512, recorder);
  ASSERT_EQ(to_text(nodes, scope), "stitch a -> a\nstitch d -> d\nstitch b -> b\nstitch c -> c\n");
  const int a = 0, d = 1, b = 2, c = 3;
  StepGraph steps(nodes, scope.stitch_ops);
  EXPECT_TRUE(steps.reaches(a, b));
  EXPECT_FALSE(steps.reaches(d, b));
  EXPECT_FALSE(steps.reaches(a, c));
  // With a and c one step, d leads to b: a table made before would still call them independent.
  const int joined = steps.join(a, c);
  EXPECT_EQ(steps.find(a), joined);
  EXPECT_EQ(steps.find(c), joined);
  EXPECT_TRUE(steps.reaches(d, b));
  EXPECT_FALSE(steps.reaches(b, d));
  EXPECT_GT(steps.level(b), steps.level(joined));
  EXPECT_GT(steps.level(joined), steps.level(d));
}

TEST(AstitchRemote, StepsOfOneLevelShareKernels) {
  const Graph graph = two_chains();
  EXPECT_EQ(kernels(graph, "astitch", false), 4);
  EXPECT_EQ(kernels(graph), 2);
}

TEST(AstitchRemote, APathThroughACallForbids) {
  const Graph graph = parse(R"(ENTRY e {
    x = f32[64,64] parameter(0)
    a = f32[64,64] exponential(x)
    d = f32[64,64] dot(a, x), lhs_contracting_dims={1}, rhs_contracting_dims={0}
    b = f32[64,64] multiply(d, x)
    ROOT t = (f32[64,64], f32[64,64]) tuple(a, b)
  })");
  const FusionPlan made = plan(graph);
  EXPECT_EQ(made.counts.memory_kernels, 2);
  ASSERT_NE(decision(made, "astitch.remote-cycle"), nullptr);
}

TEST(AstitchRemote, DistantLevelsStayApart) {
  std::string chain = " v0 = f32[64,64] exponential(x)\n";
  for (int i = 1; i <= 3; ++i) {
    chain += fmt::format(
        " d{0} = f32[64,64] dot(v{1}, x), lhs_contracting_dims={{1}}, rhs_contracting_dims={{0}}\n"
        " v{0} = f32[64,64] negate(d{0})\n",
        i, i - 1);
  }
  const Graph graph = parse("ENTRY e {\n x = f32[64,64] parameter(0)\n y = f32[8,8] parameter(1)\n" + chain +
                            " z = f32[8,8] negate(y)\n"
                            " q = f32[8,8] dot(z, y), lhs_contracting_dims={1}, rhs_contracting_dims={0}\n"
                            " ROOT t = (f32[64,64], f32[8,8]) tuple(v3, q)\n}");
  const Nodes nodes = node_facts(graph);
  Recorder recorder(false);
  const Scope scope = find_scope(nodes, 512, recorder);
  StepGraph steps(nodes, scope.stitch_ops);
  EXPECT_EQ(steps.level(static_cast<int>(scope.stitch_ops.size()) - 2), 6) << to_text(nodes, scope);
  const FusionPlan made = plan(graph);
  EXPECT_EQ(made.counts.memory_kernels, 4);  // z with v0
}

TEST(AstitchRemote, PeakMemoryGrowsByNoMoreThanAllowed) {
  // Two dozen calls, each read once: all their readers in one kernel would keep all their results alive.
  const int n = 24;
  std::string entry = "ENTRY e {\n x = f32[1024,1024] parameter(0)\n zero = f32[] constant(0)\n", sums, names;
  for (int i = 0; i < n; ++i) {
    entry += fmt::format(
        " p{0} = f32[1024,1024] parameter({1})\n"
        " d{0} = f32[1024,1024] dot(x, p{0}), lhs_contracting_dims={{1}}, rhs_contracting_dims={{0}}\n"
        " r{0} = f32[1024] reduce(d{0}, zero), dimensions={{1}}, to_apply=sum\n",
        i, i + 1);
    sums += fmt::format("{}f32[1024]", i ? ", " : "");
    names += fmt::format("{}r{}", i ? ", " : "", i);
  }
  const Graph graph = parse(entry + fmt::format(" ROOT t = ({}) tuple({})\n}}", sums, names));
  const FusionPlan apart = plan(graph, "astitch", false), together = plan(graph);
  EXPECT_EQ(apart.counts.memory_kernels, n);
  const Decision* refused = decision(together, "astitch.remote-memory");
  ASSERT_NE(refused, nullptr);
  EXPECT_THAT(refused->verdict.why, HasSubstr("bytes alive at most"));
  EXPECT_LE(peak_bytes(graph, together), peak_bytes(graph, apart) + (20 << 20));
}

TEST(AstitchRemote, PeakMemoryOfDatasetsStays) {
  for (const char* name : {"bert_base", "bert_layer", "bert_tiny", "fig5", "layer_norm"}) {
    const Graph graph = dataset(name);
    const std::int64_t apart = peak_bytes(graph, plan(graph, "astitch", false));
    EXPECT_LE(peak_bytes(graph, plan(graph)),
              std::max(apart + (20 << 20), static_cast<std::int64_t>(1.05 * static_cast<double>(apart))))
        << name;
  }
}

/// Operations on small integers, each a result of its own.
Graph integer_ops() {
  const std::vector<std::string> ops{"add", "subtract", "multiply", "and",        "or",
                                     "xor", "maximum",  "minimum",  "shift-left", "shift-right-logical"};
  std::string entry = "ENTRY e {\n x = s32[7] parameter(0)\n y = s32[7] parameter(1)\n", types, names;
  for (const std::string& name : ops) {
    const std::string id = "r" + std::to_string(names.size());
    entry += fmt::format(" {} = s32[7] {}(x, y)\n", id, name);
    types += (types.empty() ? "" : ", ") + std::string("s32[7]");
    names += (names.empty() ? "" : ", ") + id;
  }
  return parse(entry + fmt::format(" n = s32[7] not(x)\n z = s32[7] count-leading-zeros(y)\n"
                                   " ROOT t = ({}, s32[7], s32[7]) tuple({}, n, z)\n}}",
                                   types, names));
}

/// Pads, reversals and rolls of one array.
Graph layouts() {
  return parse(R"(ENTRY e {
    x = f32[30,20] parameter(0)
    c = f32[] constant(0)
    padded = f32[40,22] pad(x, c), padding=5_5x1_1
    spread = f32[59,20] pad(x, c), padding=0_0_1x0_0
    turned = f32[30,20] reverse(x), dimensions={1}
    around = f32[30,20] reverse(x), dimensions={0,1}
    right = f32[30,5] slice(x), slice={[0:30],[15:20]}
    left = f32[30,15] slice(x), slice={[0:30],[0:15]}
    rolled = f32[30,20] concatenate(right, left), dimensions={1}
    last = f32[1,20] slice(x), slice={[29:30],[0:20]}
    others = f32[29,20] slice(x), slice={[0:29],[0:20]}
    shifted = f32[30,20] concatenate(last, others), dimensions={0}
    flipped = f32[20,30] transpose(x), dimensions={1,0}
    ROOT t = (f32[40,22], f32[59,20], f32[30,20], f32[30,20], f32[30,20], f32[30,20], f32[20,30]) tuple(padded, spread, turned, around, rolled, shifted, flipped)
  })");
}

/// Random bits, a mask, a call, and sums beside it.
Graph dropout() {
  return parse(R"(ENTRY e {
    x = f32[32,64] parameter(0)
    w = f32[64,16] parameter(1)
    key = u32[] parameter(2)
    zero = f32[] constant(0)
    zeros = f32[32,64] broadcast(zero), dimensions={}
    counter = u32[2048] iota(), iota_dimension=0
    keys = u32[2048] broadcast(key), dimensions={}
    mixed = u32[2048] add(counter, keys)
    twice = u32[2048] multiply(mixed, mixed)
    bits = u32[2048] xor(twice, keys)
    shaped = u32[32,64] reshape(bits)
    limit = u32[] constant(3865470566)
    limits = u32[32,64] broadcast(limit), dimensions={}
    keep = pred[32,64] compare(shaped, limits), direction=LT
    kept = f32[32,64] select(keep, x, zeros)
    y = f32[32,16] dot(kept, w), lhs_contracting_dims={1}, rhs_contracting_dims={0}
    out = f32[32,16] tanh(y)
    rows = f32[32] reduce(out, zero), dimensions={1}, to_apply=sum
    mean = f32[64] reduce(x, zero), dimensions={0}, to_apply=sum
    size = f32[64,16] abs(w)
    norm = f32[16] reduce(size, zero), dimensions={0}, to_apply=sum
    ROOT t = (f32[32,16], f32[32], f32[64], f32[16], pred[32,64]) tuple(out, rows, mean, norm, keep)
  })");
}

TEST(AstitchRemote, SiblingsAreFewerKernelsThanXlaMakes) {
  EXPECT_EQ(kernels(integer_ops()), 1);
  EXPECT_EQ(kernels(layouts()), 1);
  EXPECT_EQ(kernels(dropout()), 2);
  for (const Graph& graph : {integer_ops(), layouts(), dropout()}) {
    EXPECT_LE(kernels(graph), kernels(graph, "xla"));
    EXPECT_GT(kernels(graph, "astitch", false), kernels(graph));
  }
}

TEST(AstitchRemote, DatasetsTakeNoMoreKernelsThanXla) {
  constexpr std::uintmax_t kLarge = 1 << 20;  // bytes of text
  int seen = 0;
  for (const auto& entry : std::filesystem::directory_iterator(STITCHWORK_SOURCE_DIR "/datasets")) {
    if (entry.path().extension() != ".hlo" || entry.file_size() > kLarge) continue;
    const Graph graph = dataset(entry.path().stem().string());
    EXPECT_LE(kernels(graph), kernels(graph, "xla")) << entry.path();
    ++seen;
  }
  EXPECT_GE(seen, 18);
}

/// Index maps that library calls read, in stitch ops that the limits cut.
TEST(AstitchRemote, LargeRandomGraphsPlanValidly) {
  for (std::uint32_t seed : {0u, 14u}) {
    const std::string text = stitchwork::testing::random_hlo(seed, {.ops = 400, .max_elements = 1 << 13});
    const Graph graph = canonicalize(parse_hlo(text, "random.hlo"));
    EXPECT_LT(kernels(graph), 20) << "seed " << seed;
  }
}

TEST(AstitchRemote, RandomGraphsTakeNoMoreKernelsAndNoMoreTimeThanWithout) {
  for (std::uint32_t seed = 0; seed < 40; ++seed) {
    const std::string text = stitchwork::testing::random_hlo(seed, {.ops = 60});
    SCOPED_TRACE(text);
    const Graph graph = canonicalize(parse_hlo(text, "random.hlo"));
    const FusionPlan apart = plan(graph, "astitch", false), together = plan(graph);
    EXPECT_LE(together.counts.memory_kernels, apart.counts.memory_kernels);
    EXPECT_LE(together.predicted_us, apart.predicted_us);
    if (::testing::Test::HasFailure()) break;
  }
}

TEST(AstitchRemote, ManySmallKernelsFillKernelsToTheirLimits) {
  const int n = 130;
  std::string entry = "ENTRY e {\n", types, names;
  for (int i = 0; i < n; ++i) {
    const int size = 3 + 7 * i;
    // A constant each: no two are equal in code.
    entry += fmt::format(
        " p{0} = f32[{1}] parameter({0})\n c{0} = f32[] constant({0})\n b{0} = f32[{1}] broadcast(c{0}), "
        "dimensions={{}}\n n{0} = f32[{1}] add(p{0}, b{0})\n",
        i, size);
    types += fmt::format("{}f32[{}]", i ? ", " : "", size);
    names += fmt::format("{}n{}", i ? ", " : "", i);
  }
  const Graph graph = parse(entry + fmt::format(" ROOT t = ({}) tuple({})\n}}", types, names));
  const FusionPlan made = plan(graph);
  EXPECT_EQ(made.counts.memory_kernels, 3);  // ceil(130 / 48)
  const Decision* limit = decision(made, "astitch.kernel-limits");
  ASSERT_NE(limit, nullptr);
  EXPECT_EQ(limit->verdict.why, "49 groups together, 48 allowed");
}

TEST(AstitchRemote, KernelsEqualInCodeCountAsOneAgainstTheLimits) {
  std::string entry = "ENTRY e {\n", types, names;
  for (int i = 0; i < 130; ++i) {
    const int size = 3 + 7 * i;
    entry += fmt::format(" p{0} = f32[{1}] parameter({0})\n n{0} = f32[{1}] negate(p{0})\n", i, size);
    types += fmt::format("{}f32[{}]", i ? ", " : "", size);
    names += fmt::format("{}n{}", i ? ", " : "", i);
  }
  EXPECT_EQ(kernels(parse(entry + fmt::format(" ROOT t = ({}) tuple({})\n}}", types, names))), 1u);
}

TEST(AstitchRemote, ATensorDoesNotFollowAScalarIntoOneBlock) {
  const Graph graph = parse(R"(ENTRY e {
    x = f32[1024,1024] parameter(0)
    s = f32[] parameter(1)
    e = f32[] exponential(s)
    w = f32[1024,1024] broadcast(e), dimensions={}
    ROOT m = f32[1024,1024] multiply(x, w)
  })");
  const FusionPlan made = plan(graph);
  ASSERT_EQ(made.kernels.size(), 1u);
  EXPECT_GE(made.kernels[0].launch.grid, device("v100").sms);
}

}  // namespace TEST_FILE
}  // namespace stitchwork::astitch
