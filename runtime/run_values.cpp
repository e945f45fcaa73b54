#include "runtime/run_values.h"

#include <algorithm>
#include <map>
#include <set>
#include <utility>

#include "analysis/facts/facts.h"
#include "analysis/plan/assemble.h"
#include "analysis/plan/written_state.h"
#include "core/base/error.h"
#include "core/index/buffer.h"

namespace stitchwork {
namespace {

/// Whether the host fills the buffer, once, before the first step that reads it: of a parameter, a
/// constant, an element of a tuple.
bool is_source(const Node& owner) {
  const PlanRole role = plan_role(owner);
  return role == PlanRole::kSource || role == PlanRole::kAlias;
}

/// Calls `move` for each row of a block: where it begins in the array and in the matrix, and its elements.
template <typename Move>
void for_each_run(const Shape& shape, const PlacedArray& placed, Move move) {
  const std::int64_t elements = shape.elements_count();
  for (std::int64_t from = 0; from < elements; from += placed.cols)
    move(from, placed.offset + from / placed.cols * placed.matrix.dims.back(), placed.cols);
}

}  // namespace

RunValue RunValue::of(Literal literal) {
  RunValue value;
  value.shape = literal.shape;
  if (literal.shape.is_tuple)
    for (Literal& element : literal.elements) value.elements.push_back(of(std::move(element)));
  else
    value.host = std::make_shared<const Literal>(std::move(literal));
  return value;
}

RunValue RunValue::borrowed(const Literal& literal) {
  RunValue value;
  value.shape = literal.shape;
  if (literal.shape.is_tuple)
    for (const Literal& element : literal.elements) value.elements.push_back(borrowed(element));
  else
    value.host = std::shared_ptr<const Literal>(std::shared_ptr<const Literal>(), &literal);
  return value;
}

RunValues::RunValues(const Computation& computation, Backend& backend)
    : computation_(computation), backend_(backend) {
  std::map<std::pair<NodeId, std::int64_t>, int> names;  // of a parameter's element
  std::set<NodeId> whole;                                // tuples that are named as a whole
  for (const Node& node : computation.nodes) {
    if (node.attrs.updated != nullptr) updated_.insert(storage_of(computation, node.id));
    if (node.op == Op::kGetTupleElement)
      ++names[{node.operands[0], node.attrs.tuple_index}];
    else
      whole.insert(node.operands.begin(), node.operands.end());
  }
  for (const Node& node : computation.nodes)
    if (node.op == Op::kGetTupleElement && computation.node(node.operands[0]).op == Op::kParameter &&
        !whole.contains(node.operands[0]) && node.operands[0] != computation.root &&
        names.at({node.operands[0], node.attrs.tuple_index}) == 1)
      alone_.insert(node.id);
}

bool RunValues::is_written_once(const Node& owner) const {
  return is_source(owner) || staying_.contains(owner.id);
}

std::size_t RunValues::bytes_of(const Node& owner) const {
  const Shape& shape = owner.attrs.placed == nullptr ? owner.shape : owner.attrs.placed->matrix;
  return static_cast<std::size_t>(std::max<std::int64_t>(1, shape.byte_size()));
}

DeviceAddress RunValues::address(NodeId op) {
  const NodeId owner = memory_of(computation_, op);
  const Node& node = computation_.node(owner);
  SW_CHECK(!ended_.contains(owner), "{} is used after the last step that touches its buffer", node.name);
  std::shared_ptr<DeviceBuffer>& buffer = buffers_[owner];
  if (buffer == nullptr)
    buffer = std::make_shared<DeviceBuffer>(backend_, bytes_of(node), node.name,
                                            is_written_once(node) ? MemoryUse::kSource : MemoryUse::kValue);
  return buffer->address();
}

void RunValues::end(NodeId owner) {
  ended_.insert(owner);
  if (!backend_.keeps_sources() || !is_written_once(computation_.node(owner))) buffers_.erase(owner);
}

void RunValues::upload(NodeId op, const Literal& value) {
  const PlacedArray* placed = computation_.node(op).attrs.placed.get();
  if (placed == nullptr) return backend_.write(address(op), value.bytes);
  const int element = byte_size(value.shape.dtype);
  for_each_run(value.shape, *placed, [&](std::int64_t from, std::int64_t to, std::int64_t count) {
    backend_.write(
        address(op) + static_cast<DeviceAddress>(to * element),
        std::span(value.bytes)
            .subspan(static_cast<std::size_t>(from * element), static_cast<std::size_t>(count * element)));
  });
}

void RunValues::place(NodeId owner, RunValue value) {
  if (computation_.node(owner).attrs.placed != nullptr) return upload(owner, literal(value));
  if (value.device == nullptr) return upload(owner, *value.host);
  // One holder is `value`; what updates the array in place may not be seen by others.
  if (updated_.contains(owner) && value.device.use_count() > 1)
    return backend_.copy(address(owner), value.device->address(), bytes_of(computation_.node(owner)));
  buffers_[owner] = std::move(value.device);
}

void RunValues::upload_source(NodeId owner) {
  const Node& node = computation_.node(owner);
  if (!is_source(node) || node.shape.is_tuple || !uploaded_.insert(owner).second) return;
  if (plan_role(node) == PlanRole::kSource)
    place(owner, source(node));
  else
    place(owner, element(node));
}

RunValue* RunValues::held_tuple(const Node& node) {
  if (const auto made = made_.find(node.id); made != made_.end()) return &made->second;
  if (plan_role(node) == PlanRole::kSource) return &source(node);
  if (node.op != Op::kGetTupleElement) return nullptr;
  RunValue* from = held_tuple(computation_.node(node.operands[0]));
  return from == nullptr ? nullptr : &from->elements.at(static_cast<std::size_t>(node.attrs.tuple_index));
}

RunValue RunValues::element(const Node& node) {
  SW_CHECK(!node.operands.empty(), "{} ({}) has no value", node.name, def(node.op).name);
  if (node.op != Op::kGetTupleElement) return held(node.operands[0]);
  const Node& from = computation_.node(node.operands[0]);
  const auto index = static_cast<std::size_t>(node.attrs.tuple_index);
  // What nobody else asks for is taken out of the tuple.
  if (RunValue* tuple = held_tuple(from))
    return alone_.contains(node.id) ? std::move(tuple->elements.at(index)) : tuple->elements.at(index);
  if (from.op == Op::kTuple) return held(from.operands.at(index));
  return std::move(held(from.id).elements.at(index));
}

RunValue RunValues::tuple(const Node& node) {
  if (const RunValue* held = held_tuple(node)) return *held;
  if (node.op != Op::kTuple) return element(node);
  RunValue tuple;
  tuple.shape = node.shape;
  for (const NodeId operand : node.operands) tuple.elements.push_back(held(operand));
  return tuple;
}

RunValue& RunValues::source(const Node& node) {
  if (node.op == Op::kParameter) return inputs_.at(static_cast<std::size_t>(node.attrs.parameter_number));
  SW_CHECK(node.attrs.literal != nullptr, "{} is not a parameter or constant", node.name);
  const auto [at, fresh] = made_.try_emplace(node.id);
  if (fresh) at->second = RunValue::borrowed(*node.attrs.literal);
  return at->second;
}

RunValue RunValues::held(NodeId id) {
  const Node& node = computation_.node(id);
  if (node.shape.is_tuple) return tuple(node);
  const NodeId owner = storage_of(computation_, id);
  upload_source(owner);
  RunValue value;
  value.placed = computation_.node(owner).attrs.placed;
  value.shape = value.placed == nullptr ? buffer_shape(node) : node.shape;
  static_cast<void>(address(owner));
  value.device = buffers_.at(memory_of(computation_, id));
  return value;
}

RunValue RunValues::start_of_loop(const Graph& graph, const Node& loop, std::span<const NodeId> last) {
  RunValue state = held(loop.operands.at(0));
  for (const NodeId owner : last)
    if (owner != loop.id) end(owner);
  for (const int element : state.elements.empty() ? std::vector<int>() : wholly_written(graph, loop)) {
    RunValue& array = state.elements.at(static_cast<std::size_t>(element));
    if (array.device != nullptr && array.device.use_count() == 1) continue;
    const auto bytes = static_cast<std::size_t>(std::max<std::int64_t>(1, array.shape.byte_size()));
    array = {.shape = array.shape, .device = std::make_shared<DeviceBuffer>(backend_, bytes, loop.name)};
  }
  return state;
}

Literal RunValues::literal(const RunValue& value) {
  if (value.host != nullptr) return *value.host;
  Literal literal;
  if (value.shape.is_tuple) {
    literal.shape = value.shape;
    for (const RunValue& element : value.elements) literal.elements.push_back(this->literal(element));
    return literal;
  }
  literal = Literal::zeros(value.shape);
  if (value.placed == nullptr) {
    backend_.read(value.device->address(), literal.bytes);
    return literal;
  }
  const int element = byte_size(value.shape.dtype);
  for_each_run(value.shape, *value.placed, [&](std::int64_t to, std::int64_t from, std::int64_t count) {
    backend_.read(
        value.device->address() + static_cast<DeviceAddress>(from * element),
        std::span(literal.bytes)
            .subspan(static_cast<std::size_t>(to * element), static_cast<std::size_t>(count * element)));
  });
  return literal;
}

Literal RunValues::value(NodeId id) { return literal(held(id)); }

void RunValues::keep(const Node& node, RunValue result) {
  if (node.shape.is_tuple)
    made_.insert_or_assign(node.id, std::move(result));
  else
    place(node.id, std::move(result));
}

}  // namespace stitchwork
