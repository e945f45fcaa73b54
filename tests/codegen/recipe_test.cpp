// The recipe for a planner (CONTRIBUTING.md, "Add a planner"), tried: one of forty lines whose plans verify
// accepts for every graph and every device runs.
#include <gtest/gtest.h>

#include <algorithm>
#include <map>

#include "analysis/facts/facts.h"
#include "analysis/plan/assemble.h"
#include "analysis/schedule/inlined_kernel.h"
#include "analysis/schedule/plain_mapping.h"
#include "analysis/verify/verify.h"
#include "tests/codegen/planned.h"
#include "tests/support/graphs.h"

namespace stitchwork {
namespace TEST_FILE {

/// Whether the op is computed in its only reader's kernel: both element-wise, of one shape.
bool joins_its_reader(const Computation& computation, const Node& node, const std::vector<NodeId>& readers) {
  if (readers.size() != 1 || node.id == computation.root || !is_elementwise(node.op)) return false;
  const Node& reader = computation.node(readers[0]);
  return plan_role(reader) == PlanRole::kMemory && is_elementwise(reader.op) &&
         reader.shape.dims == node.shape.dims;
}

/// Chains of element-wise ops are kernels; every other op is one by itself.
FusionPlan plan_chains(const Graph& graph, const Device& device) {
  const Computation& computation = graph.entry_computation();
  const auto users = computation.users();
  std::vector<NodeId> last(computation.nodes.size(), kNoNode);
  std::map<NodeId, std::vector<NodeId>> chains;  // by their last op
  for (auto node = computation.nodes.rbegin(); node != computation.nodes.rend(); ++node) {
    if (plan_role(*node) != PlanRole::kMemory || node->op == Op::kCopy) continue;
    const auto& readers = users[static_cast<std::size_t>(node->id)];
    const bool joins = joins_its_reader(computation, *node, readers);
    last[static_cast<std::size_t>(node->id)] = joins ? last[static_cast<std::size_t>(readers[0])] : node->id;
    chains[last[static_cast<std::size_t>(node->id)]].push_back(node->id);
  }
  std::vector<KernelPlan> kernels;
  for (auto& [end, ops] : chains) {
    std::ranges::sort(ops);
    kernels.push_back(
        inlined_kernel(computation, ops, {end}, end, natural_mapping(computation, computation.node(end))));
  }
  return assemble(graph, device, "chains", std::move(kernels));
}

TEST(Recipe, APlannerOfFortyLinesMakesPlansThatVerifyAndRun) {
  int fewer = 0;
  for (std::uint32_t seed = 0; seed < 12; ++seed) {
    const Graph graph = testing::graph_of(testing::random_hlo(seed));
    const Device& target = device(testing::kFuzzDevices[seed % std::size(testing::kFuzzDevices)]);
    const FusionPlan plan = plan_chains(graph, target);
    for (const Verdict& problem : verify(graph, target, plan)) ADD_FAILURE() << seed << ": " << problem.why;
    fewer += plan.kernels.size() < make_plan(graph, target, "unfused").kernels.size() ? 1 : 0;
    if (seed < 2) testing::expect_correct(graph, plan);
  }
  EXPECT_GE(fewer, 6);
}

}  // namespace TEST_FILE
}  // namespace stitchwork
