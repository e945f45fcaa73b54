#include "analysis/planners/fusionstitching/requests.h"

#include <fmt/format.h>

#include <algorithm>

#include "analysis/facts/facts.h"
#include "core/base/sorted.h"

namespace stitchwork::fusionstitching {
namespace {

/// F18's shape modulation: what moves elements and computes nothing.
bool is_shape_modulation(Op op) {
  return op == Op::kReshape || op == Op::kBitcast || op == Op::kTranspose || op == Op::kBroadcast;
}

/// Whether a batch dot of the fusion reads `op` through shape modulation alone.
bool feeds_product(const Computation& computation, NodeId op, const std::function<bool(NodeId)>& in_fusion,
                   const std::vector<std::vector<NodeId>>& all_users) {
  std::vector<NodeId> open{op};
  while (!open.empty()) {
    const NodeId at = open.back();
    open.pop_back();
    for (const NodeId user : all_users[static_cast<std::size_t>(at)]) {
      if (!in_fusion(user)) continue;
      const Op kind = computation.node(user).op;
      if (kind == Op::kDot) return true;
      if (is_shape_modulation(kind)) open.push_back(user);
    }
  }
  return false;
}

}  // namespace

std::string_view name(RequestClass cls) {
  switch (cls) {
    case RequestClass::kInexpensiveShared:
      return "inexpensive, several users";
    case RequestClass::kExpensiveShared:
      return "expensive, several users";
    case RequestClass::kExpensiveBeforeProduct:
      return "expensive, before a batch dot";
    case RequestClass::kMust:
      return "reduction or dot";
  }
  return "";
}

bool is_expensive(Op op) {
  return def(op).cls == OpClass::kHeavyElementwise || op == Op::kDivide || op == Op::kRemainder;
}

std::optional<RequestClass> request_class(const Computation& computation, NodeId op, bool is_root,
                                          const std::vector<NodeId>& users,
                                          const std::function<bool(NodeId)>& in_fusion,
                                          const std::vector<std::vector<NodeId>>& all_users) {
  if (users.empty() || is_immediate(computation, op)) return std::nullopt;
  const Node& node = computation.node(op);
  if (def(node.op).cls == OpClass::kReduce || node.op == Op::kDot) return RequestClass::kMust;
  if (!is_elementwise(node.op)) return std::nullopt;
  const bool expensive = is_expensive(node.op);
  if (users.size() + (is_root ? 1 : 0) > 1)
    return expensive ? RequestClass::kExpensiveShared : RequestClass::kInexpensiveShared;
  if (expensive && feeds_product(computation, op, in_fusion, all_users))
    return RequestClass::kExpensiveBeforeProduct;
  return std::nullopt;
}

std::vector<Request> requests(const Computation& computation, const Fusion& fusion,
                              const std::function<std::int64_t(NodeId)>& chunk_elements,
                              const std::vector<std::vector<NodeId>>& all_users) {
  std::vector<Request> result;
  const auto in_fusion = [&](NodeId op) { return contains_sorted(fusion.ops, op); };
  for (const NodeId op : fusion.ops) {
    const std::int64_t elements = chunk_elements(op);
    if (elements == 0) continue;
    std::vector<NodeId> users;
    for (const NodeId user : all_users[static_cast<std::size_t>(op)])
      if (in_fusion(user)) users.push_back(user);
    const auto cls =
        request_class(computation, op, contains_sorted(fusion.roots, op), users, in_fusion, all_users);
    if (cls) result.push_back({op, *cls, elements * byte_size(computation.node(op).shape.dtype)});
  }
  return result;
}

std::int64_t requested_bytes(const std::vector<Request>& requests) {
  std::int64_t bytes = 0;
  for (const Request& request : requests) bytes += request.bytes;
  return bytes;
}

std::string to_text(const Computation& computation, const std::vector<Request>& requests) {
  std::string text;
  for (const Request& request : requests)
    text += fmt::format("{}: {} bytes ({})\n", computation.node(request.op).name, request.bytes,
                        name(request.cls));
  return text;
}

}  // namespace stitchwork::fusionstitching
