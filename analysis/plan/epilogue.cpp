#include "analysis/plan/epilogue.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <iterator>
#include <utility>

#include "analysis/facts/cudnn.h"
#include "analysis/facts/facts.h"
#include "analysis/facts/gemm.h"
#include "analysis/plan/assemble.h"
#include "core/graph/literal.h"
#include "core/graph/window.h"

namespace stitchwork {
namespace {

bool has_epilogues(DType dtype) {
  return dtype == DType::kF32 || dtype == DType::kF16 || dtype == DType::kBF16;
}

/// A call, op by op.
class Call {
 public:
  Call(const Computation& computation, NodeId product) : computation_(computation), value_(product) {
    const Node& node = computation.node(product);
    const bool dot = node.op == Op::kDot && node.attrs.dot;
    if (!(dot || node.op == Op::kConvolution) || !has_epilogues(node.shape.dtype)) return;
    const Shape &lhs = computation.node(node.operands[0]).shape,
                &rhs = computation.node(node.operands[1]).shape;
    const bool types = lhs.dtype == rhs.dtype && has_epilogues(lhs.dtype) &&
                       (node.shape.dtype == lhs.dtype || node.shape.dtype == DType::kF32);
    if (!types || lhs.elements_count() == 0 || rhs.elements_count() == 0) return;
    epilogue_.product = product;
    if (!dot)
      convolution(node, lhs, rhs);
    else if (const auto gemm =
                 gemm_of(node, computation.node(node.operands[0]), computation.node(node.operands[1])))
      matrices(*gemm);
  }

  bool is_made() const { return columns_ > 0; }
  /// What it makes so far, under its last name.
  NodeId value() const { return value_; }
  const Epilogue& epilogue() const { return epilogue_; }

  /// Another name of the value, its transpose, a sum of it and one thing more, or the larger of it and zero.
  /// `views`: of the bias, which the call has too, are added.
  bool take(const Node& next, std::vector<NodeId>& views) {
    // What is added, and the result, lie dense.
    if (is_block(next.id) || std::ranges::any_of(next.operands, [&](NodeId id) { return is_block(id); }))
      return false;
    if (plan_role(next) == PlanRole::kAlias) {
      if (next.shape.is_tuple || next.operands.size() != 1 || next.operands[0] != value_) return false;
      value_ = next.id;
      return true;
    }
    if (next.op == Op::kTranspose) return transpose(next);
    const bool same_type = next.shape.dtype == computation_.node(value_).shape.dtype;
    if ((next.op != Op::kAdd && next.op != Op::kMaximum) || !same_type || epilogue_.relu != kNoNode || !adds_)
      return false;
    const bool first = next.operands[0] == value_;
    const NodeId other = next.operands[first ? 1 : 0];
    if (other == value_ || next.operands[first ? 0 : 1] != value_) return false;
    if (next.op == Op::kMaximum) return relu(next, other);
    if (const Node& added = computation_.node(other); is_bias(added)) {
      if (epilogue_.bias != kNoNode) return false;
      epilogue_.bias = vector_of(added, views);
    } else {
      const Node& owner = computation_.node(buffer_of(computation_, other));
      const bool view = plan_role(owner) == PlanRole::kMemory && is_index_map(owner);
      if (epilogue_.addend != kNoNode || view || is_immediate(computation_, owner.id) || is_input(owner))
        return false;
      epilogue_.addend = other;
    }
    value_ = next.id;
    return true;
  }

 private:
  bool is_block(NodeId id) const {
    return computation_.node(buffer_of(computation_, id)).attrs.placed != nullptr;
  }

  void convolution(const Node& node, const Shape& input, const Shape& kernel) {
    if (node.shape.elements_count() == 0 || !cudnn_adds(node, input, kernel)) return;
    const auto feature =
        static_cast<std::size_t>(parse_dim_labels(other_attribute(node, "dim_labels")).output_feature);
    columns_ = node.shape.dims[feature];
    for (std::size_t d = feature + 1; d < node.shape.dims.size(); ++d) apart_ *= node.shape.dims[d];
  }

  bool relu(const Node& next, NodeId other) {
    if (!is_zero(other)) return false;
    epilogue_.relu = value_ = next.id;
    return true;
  }

  /// Of a convolution: cuDNN's x and z are two buffers.
  bool is_input(const Node& owner) const {
    const Node& node = computation_.node(epilogue_.product);
    return node.op == Op::kConvolution && buffer_of(computation_, node.operands[0]) == owner.id;
  }

  bool is_zero(NodeId id) const {
    if (!is_immediate(computation_, id)) return false;
    const Node* node = &computation_.node(id);
    while (node->op != Op::kConstant) node = &computation_.node(node->operands[0]);
    return node->attrs.literal != nullptr && node->attrs.literal->get_double(0) == 0;
  }

  void matrices(const Gemm& gemm) {
    columns_ = gemm.n;
    adds_ = gemm.batch.size() <= 1;
  }

  /// Of the product itself.
  bool transpose(const Node& next) {
    const Node& dot = computation_.node(epilogue_.product);
    if (dot.op != Op::kDot || value_ != epilogue_.product || next.operands[0] != value_) return false;
    const Node &lhs = computation_.node(dot.operands[0]), &rhs = computation_.node(dot.operands[1]);
    const auto gemm = gemm_of(dot, lhs, rhs, next.attrs.dimensions);
    if (!gemm) return false;
    matrices(*gemm);
    epilogue_.transpose = value_ = next.id;
    return true;
  }

  /// A broadcast of as many elements as there are columns, along dimensions that are theirs, those of one
  /// element left out: `apart_` elements lie behind each.
  bool is_bias(const Node& node) const {
    if (node.op != Op::kBroadcast || is_immediate(computation_, node.id)) return false;
    if (computation_.node(node.operands[0]).shape.elements_count() != columns_) return false;
    const auto extent = [&](std::int64_t d) { return node.shape.dims[static_cast<std::size_t>(d)]; };
    const auto is_long = [&](std::int64_t d) { return extent(d) != 1; };
    std::vector<std::int64_t> along, all;
    std::ranges::copy_if(node.attrs.dimensions, std::back_inserter(along), is_long);
    for (std::int64_t d = 0; std::cmp_less(d, node.shape.dims.size()); ++d)
      if (is_long(d)) all.push_back(d);
    const auto found = std::ranges::search(all, along);
    if (found.empty()) return along.empty();
    std::int64_t apart = 1;
    std::for_each(found.end(), all.end(), [&](std::int64_t d) { apart *= extent(d); });
    return apart == apart_;
  }

  /// What a bias spreads, through views that have its elements in its order (JAX writes f32[n], f32[1,n],
  /// f32[n], f32[m,n]); those of them that lie nowhere, and the broadcast itself, are added to `views`.
  NodeId vector_of(const Node& broadcast, std::vector<NodeId>& views) const {
    views.push_back(broadcast.id);
    NodeId vector = broadcast.operands[0];
    std::vector<NodeId> passed;
    for (NodeId id = vector;;) {
      const Node& node = computation_.node(id);
      const bool alias = plan_role(node) == PlanRole::kAlias;
      const bool spreads = node.op == Op::kBroadcast && std::ranges::is_sorted(node.attrs.dimensions);
      if (!(alias || spreads) || node.operands.size() != 1) return vector;
      const Shape& below = computation_.node(node.operands[0]).shape;
      if (node.shape.is_tuple || below.is_tuple || below.elements_count() != node.shape.elements_count())
        return vector;
      passed.push_back(id);
      id = node.operands[0];
      if (alias) continue;
      views.insert(views.end(), passed.begin(), passed.end());
      passed.clear();
      vector = id;
    }
  }

  const Computation& computation_;
  NodeId value_;
  /// Of the product's matrices, or features of the convolution; 0: no library makes them.
  std::int64_t columns_ = 0;
  bool adds_ = true;        ///< cuBLASLt takes no list of matrices: its batch has one stride at most
  std::int64_t apart_ = 1;  ///< elements of the result from one column to the next
  Epilogue epilogue_;
};

}  // namespace

std::optional<Epilogue> epilogue_of(const Computation& computation, std::span<const NodeId> call) {
  if (call.empty()) return std::nullopt;
  Call made(computation, call.front());
  if (!made.is_made()) return std::nullopt;
  std::vector<NodeId> views, taken{call.front()};
  for (const NodeId op : call.subspan(1))
    if (made.take(computation.node(op), views)) taken.push_back(op);
  // What it took is all there is, with the views, and ends with an op that is the call's result.
  std::vector<NodeId> all = taken, named(call.begin(), call.end());
  all.insert(all.end(), views.begin(), views.end());
  std::ranges::sort(all);
  std::ranges::sort(named);
  if (all != named || taken.back() != call.back()) return std::nullopt;
  return made.epilogue();
}

std::vector<std::vector<NodeId>> calls_with_epilogue(const Computation& computation,
                                                     const std::vector<std::vector<NodeId>>& users,
                                                     NodeId product) {
  std::vector<std::vector<NodeId>> result;
  Call call(computation, product);
  if (!call.is_made()) return result;
  std::vector<NodeId> ops{product}, views;
  for (;;) {
    const std::vector<NodeId>& readers = users[static_cast<std::size_t>(call.value())];
    if (readers.size() != 1 || call.value() == computation.root) return result;
    const Node& next = computation.node(readers.front());
    if (!call.take(next, views)) return result;
    ops.push_back(next.id);
    if (!takes_from_kernels(next)) continue;
    std::vector<NodeId>& made = result.emplace_back(ops);
    made.insert(made.end(), views.begin(), views.end());
    std::sort(made.begin() + 1, made.end());
  }
}

std::string to_text(const Computation& computation, const Epilogue& epilogue) {
  std::vector<std::string> parts;
  if (epilogue.transpose != kNoNode) parts.emplace_back("stored transposed");
  const auto name_of = [&](NodeId id) { return computation.node(buffer_of(computation, id)).name; };
  if (epilogue.bias != kNoNode) parts.push_back("bias " + name_of(epilogue.bias));
  if (epilogue.addend != kNoNode) parts.push_back("array " + name_of(epilogue.addend));
  if (epilogue.relu != kNoNode) parts.emplace_back("ReLU");
  return fmt::format("{}", fmt::join(parts, ", "));
}

bool takes_from_kernels(const Node& node) {
  return node.op == Op::kAdd || node.op == Op::kMaximum || node.op == Op::kTranspose;
}

}  // namespace stitchwork
