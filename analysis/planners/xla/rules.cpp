#include "analysis/planners/xla/rules.h"

#include <algorithm>
#include <unordered_set>

#include "analysis/facts/facts.h"
#include "occupancy_model/hardware.h"

namespace stitchwork::xla {
namespace {

bool is_real_single_or_half(DType type) { return type == DType::kF16 || type == DType::kF32; }

/// Divisor of an integer division known at compile time.
bool divides_by_constant(const Computation& computation, const Node& node) {
  return is_integral(node.shape.dtype) && is_immediate(computation, node.operands.at(1));
}

std::int64_t product(const std::vector<std::int64_t>& dims, std::size_t from, std::size_t to) {
  std::int64_t result = 1;
  for (std::size_t d = from; d < to; ++d) result *= dims[d];
  return result;
}

/// First and one-past-last of the positions in `marked` equal to `value`; nullopt if they are not contiguous.
std::optional<std::pair<std::size_t, std::size_t>> run_of(const std::vector<bool>& marked, bool value) {
  const auto first = std::find(marked.begin(), marked.end(), value);
  const auto end = std::find(first, marked.end(), !value);
  if (std::find(end, marked.end(), value) != marked.end()) return std::nullopt;
  return std::pair(static_cast<std::size_t>(first - marked.begin()),
                   static_cast<std::size_t>(end - marked.begin()));
}

}  // namespace

bool is_scalar_constant(const Node& node) {
  return node.op == Op::kConstant && !node.shape.is_tuple && node.shape.elements_count() == 1;
}

bool is_splat_constant(const Computation& computation, const Node& node) {
  return is_scalar_constant(node) ||
         (node.op == Op::kBroadcast && is_scalar_constant(computation.node(node.operands[0])));
}

bool is_expensive(const Computation& computation, const Node& node) {
  switch (node.op) {
    case Op::kExp:
    case Op::kExpm1:
    case Op::kLog:
    case Op::kLog1p:
    case Op::kPower:
    case Op::kTanh:
    case Op::kSqrt:
    case Op::kAtan2:
    // Not instructions of their own in XLA of 2020, which expanded them into the ones above.
    case Op::kLogistic:
    case Op::kErf:
    case Op::kCbrt:
    case Op::kTan:
      return true;
    case Op::kRsqrt:
      return !is_real_single_or_half(node.shape.dtype);
    case Op::kDivide:
      return !is_real_single_or_half(node.shape.dtype) && !divides_by_constant(computation, node);
    case Op::kRemainder:
      return !divides_by_constant(computation, node);
    case Op::kAbs:
    case Op::kSign:
    case Op::kSin:
    case Op::kCos:
      return node.shape.dtype == DType::kC64 || node.shape.dtype == DType::kC128;
    default:
      break;
  }
  switch (def(node.op).cls) {
    case OpClass::kReduce:
    case OpClass::kWindow:
    case OpClass::kScatter:
    case OpClass::kLinear:
    case OpClass::kSort:
    case OpClass::kOpaque:
      return true;
    default:
      return node.op == Op::kGather || plan_role(node) == PlanRole::kOpaque;
  }
}

std::optional<TiledReduction> tiled_reduction(const Computation& computation, const Node& node) {
  if (def(node.op).cls != OpClass::kReduce || node.shape.is_tuple || node.operands.empty())
    return std::nullopt;
  const std::vector<std::int64_t>& dims = computation.node(node.operands[0]).shape.dims;
  std::vector<bool> reduced(dims.size(), false);
  for (std::int64_t d : node.attrs.dimensions) reduced.at(static_cast<std::size_t>(d)) = true;
  std::int64_t kept = 1;
  for (std::size_t d = 0; d < dims.size(); ++d)
    if (!reduced[d]) kept *= dims[d];

  TiledReduction shape;
  const auto kept_run = run_of(reduced, false);
  const auto reduced_run = run_of(reduced, true);
  if (kept == 1) {
    shape.width = product(dims, 0, dims.size());
  } else if (kept_run) {
    const std::int64_t major = product(dims, 0, kept_run->first);
    const std::int64_t minor = product(dims, kept_run->second, dims.size());
    if (minor == 1)
      shape = {false, 1, major, kept};
    else
      shape = {true, major, kept, minor};
  } else if (reduced_run) {
    const std::int64_t major = product(dims, 0, reduced_run->first);
    const std::int64_t middle = product(dims, reduced_run->first, reduced_run->second);
    const std::int64_t minor = product(dims, reduced_run->second, dims.size());
    if (minor == 1)
      shape = {true, 1, major, middle};
    else
      shape = {false, major, middle, minor};
  } else {
    return std::nullopt;
  }
  return (shape.row ? shape.width : shape.height) >= kWarp ? std::optional(shape) : std::nullopt;
}

bool is_loop_fusible(const Computation& computation, const Node& node) {
  if (plan_role(node) != PlanRole::kMemory && plan_role(node) != PlanRole::kAlias) return false;
  if (node.shape.is_tuple) return false;
  const OpClass cls = def(node.op).cls;
  if (is_elementwise(node.op)) return !node.operands.empty();
  switch (cls) {
    case OpClass::kBroadcast:
    case OpClass::kLayout:
    case OpClass::kGather:
      return true;
    case OpClass::kReduce:
      return !tiled_reduction(computation, node);
    case OpClass::kWindow:
      return node.op == Op::kReduceWindow;
    default:
      return node.op == Op::kIota;
  }
}

bool has_inner_loop(const Computation& computation, const Node& node) {
  if (def(node.op).cls == OpClass::kReduce) return !tiled_reduction(computation, node);
  return node.op == Op::kReduceWindow;
}

bool reuses_operand(const Computation& computation, const Node& node, int operand) {
  switch (def(node.op).cls) {
    case OpClass::kBroadcast:
      return node.shape.elements_count() >
             computation.node(node.operands.at(static_cast<std::size_t>(operand))).shape.elements_count();
    case OpClass::kReduce:
      return operand > 0;
    case OpClass::kWindow:
    case OpClass::kLinear:
      return true;
    default:
      return node.op == Op::kGather && operand == 0;
  }
}

bool is_renamed_input(const Computation& computation, const Node& node) {
  const Node* n = &node;
  bool renamed = false;
  while (n->operands.size() == 1) {
    const std::vector<std::int64_t>& from = computation.node(n->operands[0]).shape.dims;
    bool renames = n->op == Op::kReshape || n->op == Op::kBitcast;
    if (n->op == Op::kTranspose) {
      // Moving only dims of extent 1 leaves the elements where they are.
      std::int64_t last = -1;
      renames = true;
      for (std::int64_t d : n->attrs.dimensions) {
        if (from.at(static_cast<std::size_t>(d)) == 1) continue;
        renames = renames && d > last;
        last = d;
      }
    }
    if (!renames) break;
    renamed = true;
    n = &computation.node(n->operands[0]);
  }
  if (!renamed) return false;
  const PlanRole role = plan_role(*n);
  return n->op == Op::kParameter || role == PlanRole::kLibrary || role == PlanRole::kOpaque;
}

bool reads_more_than_writes(const Computation& computation, const Node& node) {
  const auto true_rank = [](const Shape& shape) {
    return std::count_if(shape.dims.begin(), shape.dims.end(), [](std::int64_t d) { return d > 1; });
  };
  std::unordered_set<NodeId> unique;
  std::int64_t elements = 0;
  int large = 0;
  for (NodeId operand : node.operands) {
    const Node& n = computation.node(operand);
    if (n.op == Op::kBroadcast || n.op == Op::kIota || is_scalar_constant(n)) continue;
    if (!unique.insert(operand).second) continue;
    elements += n.shape.elements_count();
    large += true_rank(n.shape) >= true_rank(node.shape);
  }
  return large >= 2 && elements > node.shape.elements_count();
}

std::int64_t tile_shared_bytes(const Computation& computation, const Node& node) {
  const auto tiled = tiled_reduction(computation, node);
  if (!tiled) return 0;
  const std::int64_t size = byte_size(node.shape.dtype);
  return tiled->row ? kWarp * size : 2 * kWarp * (kWarp + 1) * size;
}

bool moves_minor_dimension(const Computation& computation, const Node& node) {
  if (node.op != Op::kTranspose) return false;
  const std::vector<std::int64_t>& from = computation.node(node.operands[0]).shape.dims;
  std::int64_t last = -1;  // of the operand's dimensions longer than one, the last
  for (std::size_t d = 0; d < from.size(); ++d)
    if (from[d] > 1) last = static_cast<std::int64_t>(d);
  for (auto d = node.attrs.dimensions.rbegin(); d != node.attrs.dimensions.rend(); ++d)
    if (from[static_cast<std::size_t>(*d)] > 1) return *d != last;
  return false;
}

}  // namespace stitchwork::xla
