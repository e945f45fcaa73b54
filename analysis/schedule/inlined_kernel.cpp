#include "analysis/schedule/inlined_kernel.h"

#include <algorithm>
#include <map>

#include "analysis/facts/facts.h"
#include "analysis/plan/assemble.h"
#include "analysis/schedule/evaluations.h"
#include "analysis/schedule/plain_mapping.h"

namespace stitchwork {
namespace {

/// Aliases of the kernel's own values that its ops read belong to it; they cost nothing.
std::vector<NodeId> with_aliases(const Computation& computation, std::vector<NodeId> ops) {
  std::vector<NodeId> open = ops;
  while (!open.empty()) {
    const Node& node = computation.node(open.back());
    open.pop_back();
    for (NodeId operand : node.operands) {
      std::vector<NodeId> chain;
      NodeId at = operand;
      while (!std::binary_search(ops.begin(), ops.end(), at) &&
             plan_role(computation.node(at)) == PlanRole::kAlias && buffer_of(computation, at) != at) {
        chain.push_back(at);
        at = computation.node(at).operands[0];
      }
      if (!std::binary_search(ops.begin(), ops.end(), at)) continue;
      for (NodeId alias : chain) ops.insert(std::lower_bound(ops.begin(), ops.end(), alias), alias);
    }
  }
  return ops;
}

/// One group under `dealt`, nothing recomputed.
KernelPlan one_loop(const Computation& computation, std::vector<NodeId> ops, const std::vector<NodeId>& roots,
                    NodeId dominant, const Dealt& dealt) {
  Group group;
  group.ops = with_aliases(computation, std::move(ops));
  group.dominant = dominant;
  group.mapping = dealt.mapping;
  group.deal = dealt.deal;
  for (NodeId root : roots)
    if (root != dominant) group.sub_dominants.push_back(root);

  KernelPlan kernel;
  kernel.ops = group.ops;
  for (NodeId op : kernel.ops) {
    kernel.levels[op] = 0;
    kernel.schemes[op] = Scheme::kLocal;
  }
  for (NodeId root : roots) kernel.schemes[root] = Scheme::kIndependent;
  for (NodeId op : kernel.ops)
    for (NodeId operand : computation.node(op).operands)
      if (const auto read = kernel.schemes.find(operand); read != kernel.schemes.end())
        read->second = Scheme::kLocal;
  kernel.groups.push_back(std::move(group));
  return kernel;
}

/// What is needed at several indices, or by several threads at one, is computed several times (Figure 5 of
/// the AStitch paper). Index maps cost nothing to repeat.
KernelPlan finished(const Computation& computation, const std::vector<NodeId>& roots,
                    const GroupEvaluations& found, KernelPlan kernel) {
  std::map<NodeId, int> maps;
  std::map<NodeId, double> points;
  for (const Evaluation& e : found.values) {
    if (e.load || std::binary_search(roots.begin(), roots.end(), e.op)) continue;
    const Node& node = computation.node(e.op);
    points[e.op] += e.count;
    const bool repeated =
        def(node.op).instructions > 0 && points[e.op] > static_cast<double>(node.shape.elements_count());
    if (++maps[e.op] > 1 || repeated) kernel.schemes[e.op] = Scheme::kRecomputed;
  }
  finish_plain_launch(computation, kernel);
  return kernel;
}

}  // namespace

KernelPlan inlined_kernel(const Computation& computation, std::vector<NodeId> ops,
                          const std::vector<NodeId>& roots, NodeId dominant, const Dealt& dealt) {
  KernelPlan kernel = one_loop(computation, std::move(ops), roots, dominant, dealt);
  const GroupEvaluations found = evaluations(computation, kernel, kernel.groups[0]);
  return finished(computation, roots, found, std::move(kernel));
}

std::variant<KernelPlan, NodeId> inlined_within_maps(const Computation& computation, std::vector<NodeId> ops,
                                                     const std::vector<NodeId>& roots, NodeId dominant,
                                                     const Dealt& dealt) {
  KernelPlan kernel = one_loop(computation, std::move(ops), roots, dominant, dealt);
  const auto found = evaluations_within_maps(computation, kernel);
  if (const auto* too_often = std::get_if<NodeId>(&found)) return *too_often;
  return finished(computation, roots, std::get<KernelEvaluations>(found).front(), std::move(kernel));
}

void mark_recomputed(std::vector<KernelPlan>& kernels) {
  std::map<NodeId, int> computed;
  for (const KernelPlan& kernel : kernels)
    for (NodeId op : kernel.ops) ++computed[op];
  for (KernelPlan& kernel : kernels) {
    const std::vector<NodeId> made = materialised(kernel);
    for (auto& [op, scheme] : kernel.schemes)
      if (computed[op] > 1 && !std::binary_search(made.begin(), made.end(), op)) scheme = Scheme::kRecomputed;
  }
}

}  // namespace stitchwork
