#include "analysis/planners/fusionstitching/ilp/ops.h"

#include <algorithm>
#include <map>

#include "analysis/facts/facts.h"
#include "analysis/judge/library_cost.h"
#include "analysis/plan/assemble.h"
#include "analysis/planners/fusionstitching/alone.h"
#include "core/base/sorted.h"

namespace stitchwork::fusionstitching {
namespace {

OpKind kind_of(const astitch::Nodes& nodes, NodeId id) {
  const astitch::NodeFacts& facts = nodes[id];
  const Node& node = nodes.node(id);
  if (!astitch::is_step(facts)) return OpKind::kNone;
  if (facts.role == PlanRole::kAlias) return OpKind::kName;
  if (node.op == Op::kDot)
    return node.attrs.dot && !node.attrs.dot->lhs_batch.empty() ? OpKind::kBatchedGemm : OpKind::kGemm;
  if (facts.role != PlanRole::kMemory || facts.isolated) return OpKind::kCall;
  if (!facts.reduction) return OpKind::kElementwise;
  if (facts.reduction->rows == 1) return OpKind::kScalarReduction;
  return facts.reduction->row_reduce ? OpKind::kRowReduction : OpKind::kColumnReduction;
}

/// Bytes of an operand that an op touches, at most: a gather reads no more than what it makes.
double most_bytes(const astitch::Nodes& nodes, NodeId id, std::size_t operand) {
  const Shape& shape = nodes.node(nodes.node(id).operands[operand]).shape;
  const auto all = static_cast<double>(shape.byte_size());
  const std::vector<astitch::Edge>& edges = nodes[id].edges;
  if (operand >= edges.size() || !edges[operand].map || shape.elements_count() == 0) return all;
  double points = static_cast<double>(nodes[id].elements);
  for (const std::int64_t extent : edges[operand].map->symbols) points *= static_cast<double>(extent);
  return std::min(all, points * all / static_cast<double>(shape.elements_count()));
}

/// Walks from `id` through index maps to the buffers it reads. A map in between passes on no more bytes than
/// it has itself.
void add_reads(const astitch::Nodes& nodes, NodeId id, std::map<NodeId, double>& reads) {
  const Computation& computation = *nodes.computation;
  const bool passes = nodes[id].role == PlanRole::kMemory && !nodes[id].isolated;
  std::vector<std::pair<NodeId, double>> open;
  for (std::size_t i = 0; i < nodes.node(id).operands.size(); ++i)
    open.emplace_back(nodes.node(id).operands[i], most_bytes(nodes, id, i));
  while (!open.empty()) {
    const auto [at, most] = open.back();
    open.pop_back();
    const astitch::NodeFacts& facts = nodes[at];
    const double bytes = std::min(most, static_cast<double>(nodes.bytes(at)));
    if (facts.immediate) continue;
    const bool through = facts.transparent && (passes || !facts.member);
    if (through && !nodes.node(at).operands.empty()) {
      for (const NodeId operand : nodes.node(at).operands) open.emplace_back(operand, bytes);
    } else if (!through) {
      double& known = reads[buffer_of(computation, at)];
      known = std::max(known, bytes);
    }
  }
}

}  // namespace

std::string_view name(OpKind kind) {
  switch (kind) {
    case OpKind::kNone:
      return "index map";
    case OpKind::kName:
      return "name";
    case OpKind::kCall:
      return "call";
    case OpKind::kElementwise:
      return "elementwise";
    case OpKind::kRowReduction:
      return "row reduction";
    case OpKind::kColumnReduction:
      return "column reduction";
    case OpKind::kScalarReduction:
      return "scalar reduction";
    case OpKind::kGemm:
      return "gemm";
    case OpKind::kBatchedGemm:
      return "batched gemm";
  }
  return "";
}

bool is_product(OpKind kind) { return kind == OpKind::kGemm || kind == OpKind::kBatchedGemm; }

bool is_reduction(OpKind kind) {
  return kind == OpKind::kRowReduction || kind == OpKind::kColumnReduction ||
         kind == OpKind::kScalarReduction;
}

Ops find_ops(const astitch::Nodes& nodes, const Device& device, bool products) {
  Ops ops{&nodes, &device, std::vector<StepFacts>(nodes.facts.size()), nodes.computation->users()};
  for (NodeId id = 0; id < static_cast<NodeId>(ops.size()); ++id) {
    StepFacts& facts = ops.facts[static_cast<std::size_t>(id)];
    facts.kind = kind_of(nodes, id);
    if (facts.kind == OpKind::kNone) continue;
    if (is_product(facts.kind)) {
      const auto product = matrix_product(*nodes.computation, nodes.node(id));
      facts.large = facts.kind == OpKind::kGemm && product &&
                    library_time(device, *product).total_us - device.launch_us >= kFineGrainedUs;
      facts.fusible = products && !facts.large && stitchwork::is_product(nodes.node(id));
    } else {
      facts.fusible = facts.kind != OpKind::kName && facts.kind != OpKind::kCall;
    }
    if (is_empty(nodes, id)) facts.fusible = false;
    facts.producers = astitch::producers(nodes, id);
    for (const NodeId producer : facts.producers)
      insert_sorted(ops.facts[static_cast<std::size_t>(producer)].consumers, id);
    std::map<NodeId, double> reads;
    add_reads(nodes, id, reads);
    for (const auto& [buffer, bytes] : reads) facts.reads.push_back({buffer, bytes});
  }
  for (StepFacts& facts : ops.facts) facts.result = facts.kind != OpKind::kNone && facts.consumers.empty();
  for (const NodeId id : values_read(*nodes.computation, nodes.computation->root))
    ops.facts[static_cast<std::size_t>(id)].result = true;
  return ops;
}

}  // namespace stitchwork::fusionstitching
