// Products (dot) that kernels compute: under every mapping, of every type, inlined or stored.
#include <fmt/format.h>

#include <set>
#include <string>

#include "analysis/facts/facts.h"
#include "analysis/json/plan_json.h"
#include "analysis/schedule/inlined_kernel.h"
#include "analysis/schedule/plain_mapping.h"
#include "analysis/verify/verify.h"
#include "tests/codegen/planned.h"
#include "tests/support/random_products.h"
#include "tests/support/shared_groups.h"

namespace stitchwork {
namespace TEST_FILE {

using testing::graph_of;
using testing::op;
using testing::ProductDraw;
using testing::ProductText;

std::string problems(const Graph& graph, const FusionPlan& plan) {
  std::string text;
  for (const Verdict& verdict : verify(graph, device(plan.device), plan))
    text += verdict.rule + ": " + verdict.why + "\n";
  return text;
}

/// The mappings that a product of `results` x `contracted` elements is drawn of.
Mapping drawn_mapping(ProductDraw& draw, const ProductText& text, std::int64_t rows, int block) {
  switch (draw.draw(0, 3)) {
    case 0:
      return mapping::Rows{text.results, text.contracted, mapping::OneThread{rows}};
    case 1:
      return mapping::Columns{.results = text.results,
                              .length = text.contracted,
                              .tile = std::min<std::int64_t>(rows, block),
                              .threads = static_cast<int>(block / std::min<std::int64_t>(rows, block))};
    default: {
      const int threads = draw.one_in(4) ? block : 1 << draw.draw(0, 5);
      return mapping::Rows{text.results, text.contracted,
                           mapping::Lanes{threads, rows, {draw.one_in(3) ? 2 : 1, 1}, {}}};
    }
  }
}

/// The product in shared memory, then the sum that reads it; "" or what verify says.
FusionPlan stored_plan(const Graph& graph, ProductDraw& draw, const ProductText& text, const Device& target) {
  const int block = 32 * static_cast<int>(draw.draw(1, 8));
  std::int64_t rows = draw.draw(1, std::min<std::int64_t>(text.results, 3 * block));
  const Mapping product = drawn_mapping(draw, text, rows, block);
  rows = task_rows(product);
  return testing::plan_stored_ops(
      graph, target, {{"product", product, 0}, {"sum", mapping::Elements{text.results, rows}, std::nullopt}},
      block);
}

FusionPlan inlined_plan(const Graph& graph, const Device& target) {
  const Computation& computation = graph.entry_computation();
  std::vector<NodeId> ops;
  for (const Node& node : computation.nodes)
    if (plan_role(node) == PlanRole::kMemory || is_product(node)) ops.push_back(node.id);
  const NodeId root = op(graph, "sum");
  return assemble(graph, target, "test",
                  {inlined_kernel(computation, ops, {root}, root,
                                  element_mapping(computation.node(root).shape.elements_count(), 128))});
}

TEST(Products, OfAMatrixAreComputedInTheKernelThatListsThem) {
  SKIP_WITHOUT_COMPILER();
  const Graph graph = graph_of(
      "  left = f32[6,20] parameter(0)\n  right = f32[20,5] parameter(1)\n  addend = f32[6,5] parameter(2)\n"
      "  product = f32[6,5] dot(left, right), lhs_contracting_dims={1}, rhs_contracting_dims={0}\n"
      "  ROOT sum = f32[6,5] add(product, addend)\n");
  for (const FusionPlan& plan :
       {inlined_plan(graph, device("v100")),
        testing::plan_stored_ops(graph, device("v100"),
                                 {{"product", mapping::Rows{30, 20, mapping::OneThread{30}}, 0},
                                  {"sum", mapping::Elements{30, 30}, std::nullopt}},
                                 64)}) {
    ASSERT_EQ(problems(graph, plan), "");
    EXPECT_EQ(plan.counts.library_calls, 0);
    EXPECT_EQ(plan.counts.memory_kernels, 1);
    const testing::SanitizedRun ran = testing::run_sanitized(graph, device("v100"), plan);
    EXPECT_TRUE(ran.run.library_calls.empty());
    const FusionPlan read = plan_from_json(graph, plan_to_json(graph, plan).dump(), "plan.json");
    EXPECT_EQ(to_text(graph, read), to_text(graph, plan));
    EXPECT_EQ(problems(graph, read), "");
  }
}

/// Shapes, types, order of dimensions, mappings and devices by seed.
TEST(Products, AreRightWhateverTheirShapesTypesAndMappings) {
  SKIP_WITHOUT_COMPILER();
  std::set<std::string> forms;
  int checked = 0, outer = 0, in_turn = 0, batched = 0;
  for (std::uint32_t seed = 0; seed < 90; ++seed) {
    ProductDraw draw(seed);
    const ProductText text = draw.product(seed % 10 == 0 ? 40 : 12, seed % 7 == 0 ? 90 : 20);
    const Graph graph = graph_of(text.hlo);
    const Device& target = device(seed % 2 == 0 ? "v100" : "h200");
    const bool inlined = draw.one_in(4);
    const FusionPlan plan = inlined ? inlined_plan(graph, target) : stored_plan(graph, draw, text, target);
    const Group& group = plan.kernels.at(0).groups.at(0);
    SCOPED_TRACE(fmt::format("seed {}: {}; {}", seed, text.description, to_text(group.mapping, group.deal)));
    if (const std::string why = problems(graph, plan); !why.empty()) {
      // What these drawn numbers ask of vectors and threads may be impossible.
      EXPECT_NE(why.find("verify.mapping."), std::string::npos) << why;
      continue;
    }
    testing::run_sanitized(graph, target, plan);
    forms.insert(inlined ? "inlined" : std::string(name(group.mapping)));
    ++checked;
    outer += text.contracted == 1 ? 1 : 0;
    batched += text.batch > 1 ? 1 : 0;
    in_turn += Layout(group.mapping, plan.kernels[0].launch.block).turns > 1 ? 1 : 0;
  }
  EXPECT_EQ(forms, (std::set<std::string>{"column", "inlined", "row_pack", "row_serial"}));
  EXPECT_GE(checked, 70);
  EXPECT_GE(outer, 5);
  EXPECT_GE(batched, 25);
  EXPECT_GE(in_turn, 5);
}

TEST(Products, AreTheOnlyLibraryOpsOfKernels) {
  const Graph graph = graph_of(
      "  x = f32[1,8,8,2] parameter(0)\n  w = f32[3,3,2,4] parameter(1)\n"
      "  conv = f32[1,6,6,4] convolution(x, w), window={size=3x3}, dim_labels=b01f_01io->b01f\n"
      "  ROOT out = f32[1,6,6,4] tanh(conv)\n");
  FusionPlan plan = make_plan(graph, device("v100"), "unfused");
  KernelPlan& kernel = plan.kernels.at(0);
  const NodeId conv = op(graph, "conv");
  kernel.ops.insert(kernel.ops.begin(), conv);
  kernel.groups[0].ops.insert(kernel.groups[0].ops.begin(), conv);
  kernel.schemes[conv] = Scheme::kLocal;
  kernel.levels[conv] = 0;
  EXPECT_NE(problems(graph, plan).find("verify.op-kind: kernel k0: conv is a convolution"), std::string::npos)
      << problems(graph, plan);
}

}  // namespace TEST_FILE
}  // namespace stitchwork
