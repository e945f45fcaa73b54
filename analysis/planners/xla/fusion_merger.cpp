// FusionMerger: a cheap loop fusion that only fusions read goes into all of them, if that does not read much
// more than it saves.
#include <algorithm>

#include "analysis/planners/xla/fusion_graph.h"
#include "analysis/planners/xla/rules.h"
#include "analysis/planners/xla/uses.h"
#include "core/base/interrupt.h"

namespace stitchwork::xla {
namespace {

/// Growth of bytes read and written that merging may cost.
/// XLA's FusionMerger has this bound (docs/planners/xla.md).
constexpr double kMaxRatio = 1.10;

/// Bytes a fusion reads of a value: only the slices where nothing else reads it.
double bytes_read(const FusionGraph& graph, int fusion, NodeId value) {
  const Computation& computation = graph.computation();
  double sliced = 0;
  for (NodeId op : graph[fusion].ops) {
    const Node& node = computation.node(op);
    if (std::find(node.operands.begin(), node.operands.end(), value) == node.operands.end()) continue;
    if (node.op != Op::kSlice && node.op != Op::kDynamicSlice)
      return static_cast<double>(computation.node(value).shape.byte_size());
    sliced += static_cast<double>(node.shape.byte_size());
  }
  return sliced;
}

Ruling may_merge(const FusionGraph& graph, int fusion, UsesByInstruction& uses) {
  const Computation& computation = graph.computation();
  const Instruction& f = graph[fusion];
  const std::vector<int> users = graph.users(fusion);
  if (f.roots.size() != 1)
    return {"xla.merge-several-outputs", "it has {} outputs", static_cast<std::int64_t>(f.roots.size())};
  for (int user : users)
    if (graph[user].kind == InstructionKind::kPlain)
      return {"xla.merge-user-is-no-fusion", "a user of it is no fusion"};
  for (NodeId op : f.ops)
    if (is_expensive(computation, computation.node(op)))
      return {"xla.merge-expensive",
              "it computes something expensive, which would be computed in every user"};
  double bytes_in = 0;
  for (NodeId value : f.reads) bytes_in += bytes_read(graph, fusion, value);
  const double bytes_out = static_cast<double>(computation.node(f.roots[0]).shape.byte_size());
  const double count = static_cast<double>(users.size());
  const double merged = bytes_in * count;
  const double current = bytes_in + bytes_out * (count + 1);
  if (merged / std::max(1.0, current) > kMaxRatio)
    return {"xla.merge-reads-more", "merged, its users would move {} bytes instead of {}",
            static_cast<std::int64_t>(merged), static_cast<std::int64_t>(current)};
  for (int user : users)
    if (Ruling rarely = merged_rarely(graph, fusion, uses.of(user)); !rarely) return rarely;
  for (int user : users)
    if (Ruling fits = fits_one_kernel(graph, fusion, user, false); !fits) return fits;
  return kAllowed;
}

}  // namespace

bool fusion_merger(FusionGraph& graph, Recorder& recorder) {
  bool changed = false;
  UsesByInstruction uses(graph);
  for (int fusion : graph.post_order()) {
    interruption_point();
    if (!graph[fusion].alive || graph[fusion].kind != InstructionKind::kLoop) continue;
    const std::vector<int> users = graph.users(fusion);
    const Ruling ruling = may_merge(graph, fusion, uses);
    const NodeId root = graph[fusion].roots.back();
    recorder.record("fusion-merger", root, ruling ? graph[users[0]].roots.back() : kNoNode, ruling,
                    "xla.merged");
    if (!ruling) continue;
    const std::vector<NodeId> ops = graph.sorted_ops(fusion);
    for (int user : users) {
      uses.fuse(ops, user);
      graph.fuse(fusion, user);
    }
    changed = true;
  }
  return changed;
}

}  // namespace stitchwork::xla
