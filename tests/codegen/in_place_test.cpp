// Values in shared memory that lie where what they are made of did: right and free of races where verify
// admits them, refused where a thread would read what another has overwritten.
#include <fmt/format.h>

#include <set>
#include <string>

#include "analysis/schedule/locality.h"
#include "analysis/verify/verify.h"
#include "tests/codegen/planned.h"
#include "tests/support/random_products.h"
#include "tests/support/shared_groups.h"

namespace stitchwork {
namespace TEST_FILE {

using testing::graph_of;
using testing::op;
using testing::StoredOp;

/// Softmax whose exponentials, sums and quotients are stored; `how` reads the quotients.
Graph softmax(std::int64_t rows, std::int64_t cols, const std::string& quotient, const char* type = "f32") {
  const std::string full = fmt::format("{}[{},{}]", type, rows, cols),
                    row = fmt::format("{}[{}]", type, rows);
  return graph_of(fmt::format(
      "HloModule test\n"
      "sum {{ a = {0}[] parameter(0)\n b = {0}[] parameter(1)\n ROOT s = {0}[] add(a, b) }}\n"
      "ENTRY main {{\n  x = {1} parameter(0)\n  zero = {0}[] constant(0)\n  e = {1} exponential(x)\n"
      "  s = {2} reduce(e, zero), dimensions={{1}}, to_apply=sum\n"
      "  w = {1} broadcast(s), dimensions={{0}}\n{3}  ROOT out = {1} tanh(d)\n}}\n",
      type, full, row, fmt::vformat(quotient, fmt::make_format_args(full, row))));
}

std::string refusals(const Graph& graph, const FusionPlan& plan) {
  std::string text;
  for (const Verdict& verdict : verify(graph, device(plan.device), plan))
    text += verdict.rule + ": " + verdict.why + "\n";
  return text;
}

/// Groups of rows that a task has `rows` of: their exponentials at byte 0, sums behind, quotients at byte 0.
FusionPlan overlaid(const Graph& graph, const Device& target, const Mapping& of_e, const Mapping& of_d,
                    int block) {
  const NodeId e = op(graph, "e");
  const Shape& shape = graph.entry_computation().node(e).shape;
  const std::int64_t rows = shape.dims[0], cols = shape.dims[1];
  std::int64_t of_task = task_rows(of_e);
  if (is<mapping::Elements>(of_e)) of_task /= cols;
  const std::int64_t bytes = round_up(of_task * cols * byte_size(shape.dtype), std::int64_t{16});
  const int threads = block % 32 == 0 ? 32 : 1;
  return testing::plan_stored_ops(
      graph, target,
      {{"e", of_e, 0},
       {"s", mapping::Rows{rows, cols, mapping::Lanes{threads, of_task, {}, {}}}, bytes},
       {"d", of_d, 0},
       {"out", mapping::Elements{rows * cols, of_task * cols}, std::nullopt}},
      block);
}

constexpr const char* kDivide = "  d = {0} divide(e, w)\n";

TEST(InPlace, TheLastReaderOfAValueTakesItsBytesElementByElement) {
  SKIP_WITHOUT_COMPILER();
  const Graph graph = softmax(12, 20, kDivide);
  const mapping::Elements elements{240, 80};
  const FusionPlan plan = overlaid(graph, device("v100"), elements, elements, 64);
  ASSERT_EQ(refusals(graph, plan), "");
  const KernelPlan& kernel = plan.kernels.at(0);
  const Computation& computation = graph.entry_computation();
  const KernelEvaluations found = evaluations(computation, kernel);
  const TaskSteps steps = task_steps(computation, kernel);
  EXPECT_TRUE(in_place(computation, kernel, found, steps, op(graph, "e"), op(graph, "d")));
  EXPECT_FALSE(in_place(computation, kernel, found, steps, op(graph, "s"), op(graph, "d")));
  EXPECT_FALSE(in_place(computation, kernel, found, steps, op(graph, "d"), op(graph, "e")));
  testing::run_sanitized(graph, device("v100"), plan);
}

/// Rows, cols, tasks, threads and mappings by seed: the rows of both groups are the same tasks, so all are
/// admitted but where several threads would have one element.
TEST(InPlace, IsRightUnderAnyMappingsThatHaveTheSameTasks) {
  SKIP_WITHOUT_COMPILER();
  int checked = 0, mixed = 0, in_turn = 0;
  for (std::uint32_t seed = 0; seed < 40; ++seed) {
    testing::ProductDraw draw(seed);
    const std::int64_t rows = draw.draw(1, 40), cols = draw.draw(2, 70), of_task = draw.draw(1, rows);
    const int block = 32 * static_cast<int>(draw.draw(1, 6));
    const auto mapping = [&]() -> Mapping {
      switch (draw.draw(0, 2)) {
        case 0:
          return mapping::Elements{rows * cols, of_task * cols};
        case 1:
          return mapping::Rows{rows, cols, mapping::OneThread{of_task}};
        default:
          return mapping::Rows{rows, cols, mapping::Lanes{1 << draw.draw(0, 5), of_task, {}, {}}};
      }
    };
    const Graph graph = softmax(rows, cols, kDivide, draw.one_in(3) ? "bf16" : "f32");
    const Mapping of_e = mapping(), of_d = mapping();
    const FusionPlan plan = overlaid(graph, device("v100"), of_e, of_d, block);
    SCOPED_TRACE(fmt::format("seed {}: {}x{}, {} rows a task, block {}; {}; {}", seed, rows, cols, of_task,
                             block, name(of_e), name(of_d)));
    EXPECT_EQ(refusals(graph, plan), "");
    testing::run_sanitized(graph, device("v100"), plan);
    ++checked;
    mixed += name(of_e) != name(of_d) ? 1 : 0;
    in_turn += Layout(of_d, block).turns > 1 ? 1 : 0;
  }
  EXPECT_GE(mixed, 10);
  EXPECT_GE(in_turn, 3);
}

struct Refused {
  const char* name;
  const char* quotient;
  const char* why;
};

class InPlaceRefused : public ::testing::TestWithParam<Refused> {};

/// Whatever the shapes, by seed.
TEST_P(InPlaceRefused, WhereAThreadReadsWhatAnotherWrites) {
  for (std::uint32_t seed = 0; seed < 12; ++seed) {
    testing::ProductDraw draw(seed);
    const std::int64_t rows = draw.draw(2, 30), cols = draw.draw(3, 50), of_task = draw.draw(1, rows);
    const Graph graph = softmax(rows, cols, GetParam().quotient);
    const mapping::Elements elements{rows * cols, of_task * cols};
    const FusionPlan plan = overlaid(graph, device("v100"), elements, elements, 96);
    const std::string why = refusals(graph, plan);
    EXPECT_NE(why.find("verify.slot"), std::string::npos) << why;
    EXPECT_NE(why.find(GetParam().why), std::string::npos) << why;
  }
}

INSTANTIATE_TEST_SUITE_P(
    Reads, InPlaceRefused,
    ::testing::Values(Refused{"reversed", "  r = {0} reverse(e), dimensions={{1}}\n  d = {0} divide(r, w)\n",
                              "threads read other elements of e than they write of d"},
                      Refused{"twice",
                              "  r = {0} reverse(e), dimensions={{1}}\n  q = {0} add(e, r)\n"
                              "  d = {0} divide(q, w)\n",
                              "threads read other elements of e than they write of d"}),
    [](const auto& info) { return std::string(info.param.name); });

TEST(InPlace, IsRefusedWhereAnotherStepReadsTheValueThenOrLater) {
  // `f` reads e in the step of d, `out` reads it in a later one.
  const Graph then =
      softmax(12, 20, "  f = {0} multiply(e, w)\n  q = {0} divide(e, w)\n  d = {0} add(q, f)\n");
  const mapping::Elements elements{240, 80};
  const auto plan = [&](const Graph& graph, std::vector<StoredOp> stored) {
    return testing::plan_stored_ops(graph, device("v100"), std::move(stored), 64);
  };
  const StoredOp e{"e", elements, 0}, out{"out", elements, std::nullopt};
  const StoredOp s{"s", mapping::Rows{12, 20, mapping::Lanes{32, 4, {}, {}}}, 320};
  EXPECT_NE(
      refusals(then, plan(then, {e, s, {"f", elements, 336}, {"q", elements, 0}, {"d", elements, 656}, out}))
          .find("f reads e in the same step"),
      std::string::npos);
  EXPECT_EQ(
      refusals(then,
               plan(then, {e, s, {"f", elements, 336}, {"q", elements, 976}, {"d", elements, 656}, out})),
      "");
  const Graph later = softmax(12, 20, "  q = {0} divide(e, w)\n  d = {0} add(q, e)\n");
  EXPECT_NE(refusals(later, plan(later, {e, s, {"q", elements, 0}, {"d", elements, 336}, out}))
                .find("q is not made in the last step that reads e"),
            std::string::npos);
  EXPECT_EQ(refusals(later, plan(later, {e, s, {"q", elements, 336}, {"d", elements, 336}, out})), "");
  EXPECT_NE(refusals(later, plan(later, {e, s, {"q", elements, 336}, {"d", elements, 340}, out}))
                .find("verify.slot"),
            std::string::npos)
      << "not at one byte";
}

TEST(InPlace, IsRefusedOfElementsOfOtherSizesOrOfSeveralThreads) {
  const auto of = [&](const Graph& graph, const std::vector<StoredOp>& stored) {
    return refusals(graph, testing::plan_stored_ops(graph, device("v100"), stored, 64));
  };
  const mapping::Elements elements{240, 80};
  const mapping::Rows rows{12, 20, mapping::Lanes{16, 4, {}, {}}};
  const Graph half = graph_of(
      "  x = f32[12,20] parameter(0)\n  zero = f32[] constant(0)\n  e = f32[12,20] exponential(x)\n"
      "  h = f16[12,20] convert(e)\n  ROOT out = f16[12,20] tanh(h)\n");
  EXPECT_NE(of(half, {{"e", elements, 0}, {"h", elements, 0}, {"out", elements, std::nullopt}})
                .find("elements of e and h differ in size"),
            std::string::npos);
  // Each row's value is read by all its threads, and written by one.
  const Graph of_rows = graph_of(
      "  x = f32[12,20] parameter(0)\n  zero = f32[] constant(0)\n"
      "  m = f32[12] reduce(x, zero), dimensions={1}, to_apply=max\n  n = f32[12] negate(m)\n"
      "  w = f32[12,20] broadcast(n), dimensions={0}\n  d = f32[12,20] add(x, w)\n"
      "  r = f32[12] reduce(d, zero), dimensions={1}, to_apply=sum\n  v = f32[12,20] broadcast(r), "
      "dimensions={0}\n"
      "  ROOT out = f32[12,20] multiply(x, v)\n");
  EXPECT_NE(
      of(of_rows,
         {{"m", rows, 0}, {"n", mapping::Elements{12, 4}, 16}, {"r", rows, 16}, {"out", rows, std::nullopt}})
          .find("r is not made element by element"),
      std::string::npos);
  EXPECT_EQ(
      of(of_rows,
         {{"m", rows, 0}, {"n", mapping::Elements{12, 4}, 0}, {"r", rows, 16}, {"out", rows, std::nullopt}}),
      "");
}

}  // namespace TEST_FILE
}  // namespace stitchwork
