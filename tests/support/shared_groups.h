// Kernels of groups of one op each, tied by shared memory: the plans of FusionStitching (2018, section 5.2;
// 2019, section 5), by hand.
#pragma once

#include <algorithm>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "analysis/facts/facts.h"
#include "analysis/plan/assemble.h"
#include "analysis/plan/mapping.h"
#include "tests/support/clustered.h"
#include "tests/support/graphs.h"

namespace stitchwork::testing {

/// A group of one op that the kernel stores; everything else it needs is computed in it.
struct StoredOp {
  std::string op;
  Mapping mapping;
  /// Byte at which it lies in shared memory; none: it is an output alone.
  std::optional<std::int64_t> shared;
};

/// One kernel of all of the graph's ops that a kernel can compute, `tasks` tasks a group, a block each.
inline FusionPlan plan_stored_ops(const Graph& graph, const Device& target,
                                  const std::vector<StoredOp>& stored, int block) {
  const Computation& computation = graph.entry_computation();
  std::set<NodeId> in_shared;
  for (const StoredOp& s : stored)
    if (s.shared) in_shared.insert(op(graph, s.op));
  KernelPlan kernel;
  std::set<NodeId> all;
  for (const StoredOp& s : stored) {
    Group group;
    group.dominant = op(graph, s.op);
    group.mapping = s.mapping;
    group.deal = deal_to(s.mapping, task_count(s.mapping));
    std::vector<NodeId> open{group.dominant};
    std::set<NodeId> inside;
    while (!open.empty()) {
      const Node& node = computation.node(open.back());
      open.pop_back();
      if (!is_for_kernels(node) || is_immediate(computation, node.id) || !inside.insert(node.id).second)
        continue;
      for (const NodeId operand : node.operands)
        if (!in_shared.contains(operand)) open.push_back(operand);
    }
    group.ops.assign(inside.begin(), inside.end());
    all.insert(inside.begin(), inside.end());
    const DType dtype = computation.node(group.dominant).shape.dtype;
    if (s.shared) {
      const std::int64_t wide =
          reduces_domain(computation, group.dominant, s.mapping) ? 1 : extents(s.mapping).cols;
      kernel.shared.push_back({group.dominant, *s.shared, task_rows(s.mapping) * wide * byte_size(dtype)});
    }
    kernel.groups.push_back(std::move(group));
  }
  kernel.ops.assign(all.begin(), all.end());
  for (const NodeId id : kernel.ops) {
    kernel.schemes[id] = Scheme::kLocal;
    kernel.levels[id] = 0;
  }
  for (const StoredOp& s : stored)
    kernel.schemes[op(graph, s.op)] = s.shared ? Scheme::kRegional : Scheme::kIndependent;
  // Outputs that others of the kernel read are computed by these, too.
  for (const NodeId id : kernel.ops)
    for (const NodeId operand : computation.node(id).operands)
      if (const auto read = kernel.schemes.find(operand);
          read != kernel.schemes.end() && read->second == Scheme::kIndependent)
        read->second = Scheme::kLocal;
  kernel.launch.block = block;
  launch_anew(computation, kernel);
  return assemble(graph, target, "test", {std::move(kernel)});
}

}  // namespace stitchwork::testing
