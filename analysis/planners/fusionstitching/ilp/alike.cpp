#include "analysis/planners/fusionstitching/ilp/alike.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "analysis/forms/alike.h"
#include "analysis/forms/auto_forms.h"

namespace stitchwork::fusionstitching {
namespace {

/// The ops, and behind them what each reads.
std::vector<NodeId> with_operands(const Computation& computation, const std::vector<NodeId>& ops) {
  std::vector<NodeId> result(ops);
  for (const NodeId op : ops) {
    const auto& operands = computation.node(op).operands;
    result.insert(result.end(), operands.begin(), operands.end());
  }
  return result;
}

}  // namespace

std::string pattern_key(const astitch::Nodes& nodes, const std::vector<NodeId>& evaluated,
                        const std::vector<NodeId>& outputs) {
  KernelPlan kernel;
  kernel.ops = evaluated;
  std::string key = automatic::signature({&nodes, nullptr, nullptr, &kernel, nullptr, {evaluated, outputs}});
  for (const NodeId id : evaluated) {
    const auto& dot = nodes.node(id).attrs.dot;
    if (!dot) continue;
    key += fmt::format(" {}|{}|{}|{}", fmt::join(dot->lhs_batch, ","), fmt::join(dot->rhs_batch, ","),
                       fmt::join(dot->lhs_contracting, ","), fmt::join(dot->rhs_contracting, ","));
  }
  return key;
}

KernelPlan renamed(const Computation& computation, const KernelPlan& kernel, const std::vector<NodeId>& from,
                   const std::vector<NodeId>& to) {
  return renamed(kernel, with_operands(computation, from), with_operands(computation, to));
}

}  // namespace stitchwork::fusionstitching
