// Readable kernels, whatever their ops are called.
#include <fmt/format.h>

#include <algorithm>

#include "codegen/kernel.h"
#include "codegen/print/print_text.h"
#include "tests/codegen/harness.h"
#include "tests/codegen/workloads.h"

namespace stitchwork {
namespace TEST_FILE {

struct Case {
  const char* workload;
  testing::WorkloadSize size;
  const char* device;
};
/// Between them: bulk and asynchronous copies ahead, clusters, single rows, sums of columns in vectors and
/// across rows, shared bodies, grid barriers.
const Case kCases[] = {{"softmax", {40000, 33}, "h200"},         {"softmax", {64, 30000}, "h200"},
                       {"softmax", {40000, 33}, "a100-sxm-80"},  {"softmax", {40000, 33}, "v100"},
                       {"layer_norm_grad", {4096, 768}, "h200"}, {"column_sum", {100000, 33}, "v100"},
                       {"layer_norm", {512, 50257}, "h200"},     {"adam", {64, 64}, "v100"}};

class Names : public ::testing::TestWithParam<Case> {};

/// Ops are called, a few at a time, as everything that the printer itself writes.
TEST_P(Names, NoneIsTakenByThePrinter) {
  SKIP_WITHOUT_COMPILER();
  const Device& target = device(GetParam().device);
  Graph graph = testing::graph_of(testing::workload(GetParam().workload).hlo(GetParam().size));
  const FusionPlan plan = make_plan(graph, target, "astitch");
  const KernelPlan& kernel = plan.kernels.at(0);
  Computation& entry = graph.computations.at(static_cast<std::size_t>(graph.entry));
  std::vector<NodeId> named;
  for (const Node& node : entry.nodes)
    if (node.op != Op::kTuple) named.push_back(node.id);
  const Identifiers printed = identifiers(to_cuda(graph, build_schedule(graph, kernel), true));
  ASSERT_GT(printed.size(), 20u);
  CompileOptions options;
  options.ptxas = false;
  for (auto next = printed.begin(); next != printed.end();) {
    std::string names;
    for (const NodeId id : named) {
      if (next == printed.end()) break;
      entry.nodes.at(static_cast<std::size_t>(id)).name = *next;
      names += *next++ + " ";
    }
    const std::string cuda = to_cuda(graph, build_schedule(graph, kernel), false);
    EXPECT_NO_THROW(compile_kernel(cuda, kernel.name, kernel.launch, target, options)) << names << "\n"
                                                                                       << cuda;
  }
}

INSTANTIATE_TEST_SUITE_P(Forms, Names, ::testing::ValuesIn(kCases), [](const auto& info) {
  std::string name = fmt::format("{}_{}x{}_{}", info.param.workload, info.param.size.rows,
                                 info.param.size.cols, info.param.device);
  std::replace(name.begin(), name.end(), '-', '_');
  return name;
});

TEST(Identifiers, AreWordsThatBeginWithALetter) {
  EXPECT_EQ(identifiers("a1 = sw_max(b_2.y, 3.0f) + 0x7fu;\n_x"), (Identifiers{"_x", "a1", "b_2", "sw_max"}));
}

}  // namespace TEST_FILE
}  // namespace stitchwork
