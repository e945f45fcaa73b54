// Reductions gathered in the pass of an earlier one give what two passes give, for every kind of number.
#include "analysis/schedule/one_pass.h"

#include <cmath>
#include <limits>

#include "analysis/verify/verify.h"
#include "core/base/sorted.h"
#include "tests/codegen/planned.h"
#include "tests/codegen/workloads.h"

namespace stitchwork {
namespace TEST_FILE {

using testing::graph_of;

constexpr float kInfinity = std::numeric_limits<float>::infinity();

/// Everything that can be gathered is, whether or not the row stays on chip.
FusionPlan gathered(const Graph& graph, FusionPlan plan) {
  for (KernelPlan& kernel : plan.kernels)
    for (Group& group : kernel.groups)
      for (const NodeId op : materialised(group))
        if (can_gather(graph, kernel, group, op)) insert_sorted(group.one_pass, op);
  return plan;
}

/// A wave of few blocks, so that few rows fill it and none is split.
const Device& target() {
  static const Device device = testing::few_sms("v100", 2);
  return device;
}

FusionPlan planned(const Graph& graph, const char* mapping = "tuned", const char* one_pass = "on") {
  PlanOptions options;
  options.knobs = {{"mapping", mapping}, {"one_pass", one_pass}};
  return make_plan(graph, target(), "astitch", options);
}

std::size_t count(const FusionPlan& plan) {
  std::size_t n = 0;
  for (const KernelPlan& kernel : plan.kernels)
    for (const Group& group : kernel.groups) n += group.one_pass.size();
  return n;
}

/// Right and clean under all sanitizers; the bytes loaded.
std::uint64_t run(const Graph& graph, const FusionPlan& plan, const std::vector<Literal>& inputs) {
  Judge judge(graph, inputs);
  std::uint64_t bytes = 0;
  for (const std::string& compiler : testing::installed_compilers()) {
    SCOPED_TRACE(compiler);
    CompileOptions options;
    options.compiler = compiler;
    options.ptxas = false;
    RunOptions run_options;
    run_options.sanitize = {.race = true, .init = true};
    const RunResult run =
        run_simulated(graph, target(), compile(graph, target(), plan, options), inputs, run_options);
    for (const sim::Finding& finding : run.findings)
      ADD_FAILURE() << name(finding.kind) << " in " << finding.kernel << ": " << finding.message;
    const CheckResult check = judge.check(run.outputs);
    EXPECT_TRUE(check.ok) << check.message;
    bytes = 0;
    for (const KernelRun& kernel : run.kernels) bytes += kernel.counters.gld_bytes;
  }
  return bytes;
}

void expect_right(const Graph& graph, const std::vector<Literal>& inputs) {
  for (const char* mapping : {"tuned", "paper"}) {
    SCOPED_TRACE(mapping);
    const FusionPlan plan = gathered(graph, planned(graph, mapping));
    EXPECT_GE(count(plan), 1u);
    EXPECT_TRUE(verify(graph, target(), plan).empty());
    run(graph, plan, inputs);
  }
}

/// Rows of ordinary numbers, and such as a masked or broken model has.
std::vector<Literal> unusual(const Graph& graph) {
  std::vector<Literal> inputs = generate_inputs(graph, 0);
  Literal& x = inputs.at(0);
  const std::int64_t rows = x.shape.dims[0], cols = x.shape.dims[1];
  for (std::int64_t row = 0; row < rows; ++row)
    for (std::int64_t col = 0; col < cols; ++col) {
      const std::int64_t at = row * cols + col;
      switch (row % 8) {
        case 0:
          x.set_double(at, -kInfinity);
          break;
        case 1:
          if (col != cols / 2) x.set_double(at, -kInfinity);
          break;
        case 2:
          if (col == cols - 1) x.set_double(at, kInfinity);
          break;
        case 3:
          if (col == 1) x.set_double(at, std::numeric_limits<float>::quiet_NaN());
          break;
        case 4:
          if (col < cols - 3) x.set_double(at, -kInfinity);
          break;
        case 5:
          x.set_double(at, static_cast<double>(col));  // each the largest so far
          break;
        case 6:
          x.set_double(at, 1e-3 * x.get_double(at));
          break;
        default:
          break;
      }
    }
  return inputs;
}

Graph softmax(std::int64_t rows, std::int64_t cols) {
  return graph_of(testing::workload("softmax").hlo({rows, cols, "f32"}));
}
Graph layer_norm(std::int64_t rows, std::int64_t cols) {
  return graph_of(testing::workload("layer_norm").hlo({rows, cols, "f32"}));
}

TEST(OnePass, SoftmaxOfRowsOfAnyNumbers) {
  SKIP_WITHOUT_COMPILER();
  for (const std::int64_t cols : {700, 1024, 5000}) {
    SCOPED_TRACE(cols);
    const Graph graph = softmax(40, cols);
    expect_right(graph, unusual(graph));
  }
}

TEST(OnePass, NormOfRowsOfAnyNumbers) {
  SKIP_WITHOUT_COMPILER();
  for (const std::int64_t cols : {700, 1024, 5000}) {
    SCOPED_TRACE(cols);
    const Graph graph = layer_norm(40, cols);
    expect_right(graph, unusual(graph));
    expect_right(graph, generate_inputs(graph, 1));
  }
}

TEST(OnePass, WidenedInputsAndLossesToo) {
  SKIP_WITHOUT_COMPILER();
  for (const auto& hlo : {testing::workload("softmax").hlo({40, 3001, "bf16"}),
                          testing::workload("masked_softmax").hlo({40, 2048, "f32"}),
                          testing::workload("cross_entropy").hlo({40, 2048, "f32"}),
                          testing::workload("layer_norm").hlo({40, 3001, "f16"})}) {
    const Graph graph = graph_of(hlo);
    expect_right(graph, generate_inputs(graph, 0));
  }
}

TEST(OnePass, RowsThatDoNotFitAreReadTwiceNotThreeTimes) {
  SKIP_WITHOUT_COMPILER();
  constexpr std::int64_t kRows = 24, kCols = 70000;
  for (const Graph& graph : {softmax(kRows, kCols), layer_norm(kRows, kCols)}) {
    const std::vector<Literal> inputs = generate_inputs(graph, 0);
    // Whether it pays or not: these few rows come from L2 again.
    const FusionPlan apart = planned(graph, "tuned", "off"), together = gathered(graph, apart);
    EXPECT_EQ(count(apart), 0u);
    ASSERT_EQ(count(together), 1u);
    EXPECT_EQ(run(graph, apart, inputs) - run(graph, together, inputs), kRows * kCols * 4);
  }
}

TEST(OnePass, RowsThatFitStayAsTheyAre) {
  EXPECT_EQ(count(planned(softmax(512, 1024))), 0u);
  EXPECT_EQ(count(planned(layer_norm(512, 1024))), 0u);
}

OnePassForm form_of(const Graph& graph, const std::string& op) {
  return one_pass_form(graph, graph.entry_computation().find(op)).value_or(OnePassForm{});
}

TEST(OnePass, FormsAreFoundByWhatIsComputed) {
  const Graph graph = graph_of(R"(HloModule m
sum { a = f32[] parameter(0)  b = f32[] parameter(1)  ROOT s = f32[] add(a, b) }
ENTRY main {
  x = f32[8,64] parameter(0)
  r = f32[8] parameter(1)
  w = f32[64] parameter(2)
  zero = f32[] constant(0)
  n = f32[] constant(0.015625)
  ns = f32[8] broadcast(n), dimensions={}
  total = f32[8] reduce(x, zero), dimensions={1}, to_apply=sum
  mean = f32[8] multiply(total, ns)
  c = f32[8,64] broadcast(mean), dimensions={0}
  d = f32[8,64] subtract(x, c)
  dd = f32[8,64] multiply(d, d)
  squares = f32[8] reduce(dd, zero), dimensions={1}, to_apply=sum
  rb = f32[8,64] broadcast(r), dimensions={0}
  e = f32[8,64] subtract(x, rb)
  ee = f32[8,64] multiply(e, e)
  others = f32[8] reduce(ee, zero), dimensions={1}, to_apply=sum
  p = f32[8,64] exponential(e)
  exponentials = f32[8] reduce(p, zero), dimensions={1}, to_apply=sum
  wb = f32[8,64] broadcast(w), dimensions={1}
  f = f32[8,64] subtract(x, wb)
  q = f32[8,64] exponential(f)
  weighted = f32[8] reduce(q, zero), dimensions={1}, to_apply=sum
  columns = f32[64] reduce(p, zero), dimensions={0}, to_apply=sum
  ROOT all = (f32[8], f32[8], f32[8], f32[8], f32[64]) tuple(squares, others, exponentials, weighted, columns)
}
)");
  const Computation& computation = graph.entry_computation();
  EXPECT_EQ(form_of(graph, "squares").kind, OnePassKind::kSquares);
  EXPECT_EQ(form_of(graph, "squares").x, computation.find("x"));
  EXPECT_EQ(form_of(graph, "exponentials").kind, OnePassKind::kExponentials);
  EXPECT_EQ(form_of(graph, "exponentials").c, computation.find("rb"));
  EXPECT_EQ(form_of(graph, "others").x, kNoNode) << "not about the mean: infinities would show";
  EXPECT_EQ(form_of(graph, "weighted").x, kNoNode) << "w differs from element to element";
  EXPECT_EQ(form_of(graph, "columns").x, kNoNode) << "r differs from row to row, which are reduced";
  EXPECT_EQ(form_of(graph, "total").x, kNoNode);
}

TEST(OnePass, VerifyRefusesWhatHasNoEarlierPass) {
  const Graph graph = softmax(16, 1024);
  FusionPlan plan = planned(graph);
  for (KernelPlan& kernel : plan.kernels)
    for (Group& group : kernel.groups)
      for (const NodeId op : materialised(group))
        if (!can_gather(graph, kernel, group, op)) insert_sorted(group.one_pass, op);
  const std::vector<Verdict> problems = verify(graph, target(), plan);
  ASSERT_FALSE(problems.empty());
  EXPECT_EQ(problems[0].rule, "verify.one-pass");
}

// An output that a later phase stores is computed again by those who read it before: what it waits for they
// do.
TEST(OnePass, ElementsBehindAReductionAreNotGatheredThoughALaterPhaseStoresThem) {
  const Graph graph = graph_of(R"(x = f32[4,30264] parameter(0)
    w = f32[4,30264] parameter(1)
    low = f32[] constant(-inf)
    zero = f32[] constant(0)
    share = f32[] constant(3.304255881575469e-05)
    m = f32[4] reduce(x, low), dimensions={1}, to_apply=max
    mb = f32[4,30264] broadcast(m), dimensions={0}
    d = f32[4,30264] subtract(x, mb)
    e = f32[4,30264] exponential(d)
    t = f32[4,30264] multiply(e, w)
    s = f32[4] reduce(t, zero), dimensions={1}, to_apply=sum
    shares = f32[4] broadcast(share), dimensions={}
    mean = f32[4] multiply(s, shares)
    means = f32[4,30264] broadcast(mean), dimensions={0}
    c = f32[4,30264] subtract(t, means)
    cc = f32[4,30264] multiply(c, c)
    v = f32[4] reduce(cc, zero), dimensions={1}, to_apply=sum
    r = f32[4] rsqrt(v)
    rb = f32[4,30264] broadcast(r), dimensions={0}
    y = f32[4,30264] multiply(c, rb)
    yy = f32[4,30264] multiply(y, y)
    columns = f32[30264] reduce(yy, zero), dimensions={0}, to_apply=sum
    ROOT out = (f32[4,30264], f32[30264]) tuple(t, columns))");
  const Device device = testing::share_of("v100", 4);
  const FusionPlan plan = gathered(
      graph, make_plan(graph, device, "astitch", {.knobs = {{"across_rows", "off"}, {"one_pass", "off"}}}));
  ASSERT_EQ(plan.kernels.size(), 1u);
  const KernelPlan& kernel = plan.kernels[0];
  const Computation& computation = graph.entry_computation();
  const NodeId sum = computation.find("v");
  ASSERT_GT(kernel.levels.at(computation.find("t")), kernel.levels.at(sum));
  for (const Group& group : kernel.groups) EXPECT_FALSE(contains_sorted(group.one_pass, sum));
  EXPECT_TRUE(verify(graph, device, plan).empty());
}

}  // namespace TEST_FILE
}  // namespace stitchwork
