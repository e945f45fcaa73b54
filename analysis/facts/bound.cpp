#include "analysis/facts/bound.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <map>
#include <unordered_map>
#include <vector>

#include "analysis/facts/facts.h"
#include "core/base/format.h"

namespace stitchwork {
namespace {

enum class Part : std::uint8_t {
  kNone,    ///< a source, or a name or map of another value: no kernel need compute it
  kKernel,  ///< computed by kernels
  kCall,    ///< between kernels
};

/// Index maps are repeated by whoever reads them.
bool is_map(const Node& node) {
  switch (node.op) {
    case Op::kBroadcast:
    case Op::kSlice:
    case Op::kIota:
    case Op::kReshape:
    case Op::kBitcast:
      return true;
    default:
      return false;
  }
}

struct Parts {
  std::vector<Part> of;       ///< by node: what it is to this bound
  std::vector<bool> written;  ///< a call or a result reads it, directly or under another name
};

/// A map counts where it is written: some kernel does so. A copy may be a step of its own.
Parts parts(const Computation& computation) {
  std::vector<Part> result(computation.nodes.size(), Part::kNone);
  std::vector<bool> written(computation.nodes.size(), false);
  written[static_cast<std::size_t>(computation.root)] = true;
  for (auto it = computation.nodes.rbegin(); it != computation.nodes.rend(); ++it) {
    const auto id = static_cast<std::size_t>(it->id);
    const PlanRole role = it->op == Op::kCopy ? PlanRole::kAlias : plan_role(*it);
    const bool call = role == PlanRole::kLibrary || role == PlanRole::kOpaque;
    if (call || (role == PlanRole::kAlias && written[id]))
      for (const NodeId operand : it->operands) written[static_cast<std::size_t>(operand)] = true;
    if (call)
      result[id] = Part::kCall;
    else if (role == PlanRole::kMemory &&
             (written[id] || !(is_map(*it) || is_immediate(computation, it->id))))
      result[id] = Part::kKernel;
  }
  return {std::move(result), std::move(written)};
}

/// By kernel op, the ops of the longest chain that ends with it; 0 for others. `before` lists the neighbours
/// of a node that `order` has earlier: operands in the order of the graph, users against it.
template <typename Order, typename Before>
std::vector<int> chain_lengths(const Order& order, const Before& before, const std::vector<Part>& parts) {
  // Of the chains on paths to a node: those no call has ended, whose last kernel may go on, and the others.
  std::vector<int> open(parts.size(), 0), ended(parts.size(), 0), result(parts.size(), 0);
  for (const NodeId id : order) {
    const auto at = static_cast<std::size_t>(id);
    for (const NodeId other : before(id)) {
      open[at] = std::max(open[at], open[static_cast<std::size_t>(other)]);
      ended[at] = std::max(ended[at], ended[static_cast<std::size_t>(other)]);
    }
    if (parts[at] == Part::kKernel) {
      result[at] = open[at] = std::max(open[at], ended[at] + 1);
    } else if (parts[at] == Part::kCall) {
      ended[at] = std::max(open[at], ended[at]);
      open[at] = 0;
    }
  }
  return result;
}

/// Whether nothing shares code with the op: it is no expression of elements.
bool stands_alone(const Node& node) {
  const OpClass cls = def(node.op).cls;
  return node.shape.is_tuple || cls == OpClass::kScatter || cls == OpClass::kSort ||
         (cls == OpClass::kReduce && node.operands.size() != 2);
}

/// By node, a number that ops have in common whose values are computed alike: the same op, element type and
/// constants, of operands computed alike, down to what kernels only read. Sizes and index maps make no
/// difference. Two ops that one piece of code may serve have one number; others may have it, too.
std::vector<int> alike(const Computation& computation, const std::vector<Part>& parts) {
  std::vector<int> result(parts.size(), -1);
  std::map<std::vector<std::int64_t>, int> numbers;
  for (const Node& node : computation.nodes) {
    const auto id = static_cast<std::size_t>(node.id);
    if (!node.operands.empty() && (is_map(node) || is_immediate(computation, node.id))) {
      result[id] = result[static_cast<std::size_t>(node.operands[0])];
      continue;
    }
    std::vector<std::int64_t> key{static_cast<std::int64_t>(node.shape.dtype)};
    if (node.op == Op::kConstant && is_immediate(computation, node.id)) {
      const Literal& literal = *node.attrs.literal;
      key.push_back(std::bit_cast<std::int64_t>(
          is_floating(node.shape.dtype) ? literal.get_double(0) : static_cast<double>(literal.get_int(0))));
    } else if (parts[id] == Part::kKernel && !stands_alone(node)) {
      key.push_back(static_cast<std::int64_t>(node.op));
      for (const NodeId operand : node.operands) key.push_back(result[static_cast<std::size_t>(operand)]);
    }
    result[id] = numbers.try_emplace(std::move(key), static_cast<int>(numbers.size())).first->second;
  }
  return result;
}

/// The largest ceil(n / max_ops) + t - 1, n ops that are not alike being followed (or preceded) by t - 1
/// others of a chain.
int bound_by_size(const std::vector<int>& lengths, const std::vector<int>& numbers, int max_ops) {
  std::unordered_map<int, int> longest;  // of each number
  for (std::size_t id = 0; id < lengths.size(); ++id)
    if (lengths[id] > 0) longest[numbers[id]] = std::max(longest[numbers[id]], lengths[id]);
  std::vector<int> count(lengths.size() + 2, 0);  // numbers of at least that length
  for (const auto& [number, length] : longest) ++count[static_cast<std::size_t>(length)];
  for (std::size_t t = lengths.size(); t > 0; --t) count[t] += count[t + 1];
  int bound = 0;
  for (std::size_t t = 1; t < count.size() && count[t] > 0; ++t)
    bound = std::max(bound, (count[t] + max_ops - 1) / max_ops + static_cast<int>(t) - 1);
  return bound;
}

}  // namespace

KernelBound kernel_bound(const Graph& graph, int max_ops) {
  const Computation& computation = graph.entry_computation();
  const auto [part, written] = parts(computation);
  const auto users = computation.users();
  std::vector<NodeId> order;
  for (const Node& node : computation.nodes) order.push_back(node.id);
  const auto operands = [&](NodeId id) -> const std::vector<NodeId>& {
    return computation.node(id).operands;
  };
  const std::vector<int> heads = chain_lengths(order, operands, part);
  std::ranges::reverse(order);
  const auto readers = [&](NodeId id) -> const std::vector<NodeId>& {
    return users[static_cast<std::size_t>(id)];
  };
  const std::vector<int> tails = chain_lengths(order, readers, part);

  KernelBound bound;
  bound.ops = static_cast<int>(std::ranges::count(part, Part::kKernel));
  bound.stages = heads.empty() ? 0 : std::ranges::max(heads);
  for (const Node& node : computation.nodes)
    if (const auto id = static_cast<std::size_t>(node.id); part[id] == Part::kKernel && written[id])
      bound.written_bytes += node.shape.byte_size();
  const std::vector<int> numbers = alike(computation, part);
  bound.kernels = std::max(bound_by_size(heads, numbers, max_ops), bound_by_size(tails, numbers, max_ops));
  return bound;
}

std::string to_text(const KernelBound& bound) {
  return fmt::format("at least {}: {} in {}\n", counted(bound.kernels, "kernel"), counted(bound.ops, "op"),
                     counted(bound.stages, "stage"));
}

}  // namespace stitchwork
