#include "analysis/schedule/values.h"

#include <algorithm>

#include "analysis/facts/choices.h"
#include "analysis/facts/facts.h"
#include "analysis/facts/operand_index.h"
#include "analysis/schedule/tiles.h"
#include "core/base/error.h"
#include "core/index/index_ranges.h"

namespace stitchwork {
namespace {

/// Whether an element is one of the first operand, wherever it lies: of ops that move elements, those that do
/// not choose between operands, by the index (`chooses_operand`) or by a condition. `real` computes nothing
/// either: complex numbers are pairs of arrays here (core/passes/passes.h split_complex), and of a real
/// number it is the number.
bool passes_through(Op op) {
  if (op == Op::kReal) return true;
  return def(op).moves_elements && !chooses_operand(op) && op != Op::kSelect;
}

}  // namespace

ValueBuilder::ValueBuilder(BuildContext& context, Step& step, int phase)
    : context_(context), step_(step), phase_(phase) {}

int ValueBuilder::root_value(NodeId op, const IndexMap& map) {
  Key key(-1, op, map);
  if (const auto found = known_.find(key); found != known_.end()) return found->second;
  Pending root = is_immediate(context_.computation, op) ? there(constant(op, map, -1)) : compute(op, map, -1);
  root.key = std::move(key);
  return settle(std::move(root));
}

int ValueBuilder::value(NodeId op, IndexMap map, int scope) {
  return settle({{}, {{op, std::move(map), scope}}, {}, [](Pending& p) { return p.had[0]; }});
}

int ValueBuilder::settle(Pending first) {
  std::vector<Pending> open;
  open.push_back(std::move(first));
  for (;;) {
    Pending& top = open.back();
    if (top.had.size() < top.needs.size()) {
      Wanted& next = top.needs[top.had.size()];
      hoist(next.map, next.scope);
      Key key(next.scope, next.op, next.map);
      if (const auto found = known_.find(key); found != known_.end()) {
        top.had.push_back(found->second);
        continue;
      }
      Pending needed = build(next.op, next.map, next.scope);
      needed.key = std::move(key);
      open.push_back(std::move(needed));
      continue;
    }
    const std::optional<int> made = top.finish(top);
    if (!made) continue;
    if (top.key) known_.emplace(std::move(*top.key), *made);
    open.pop_back();
    if (open.empty()) return *made;
    open.back().had.push_back(*made);
  }
}

ValueBuilder::Pending ValueBuilder::there(int value) {
  return {{}, {}, {}, [value](Pending&) { return value; }};
}

ValueBuilder::Pending ValueBuilder::read_at(Value v, const IndexMap& map, int scope) {
  v.at.map = map;
  return {{}, runtime_values(map, scope), {}, [this, v = std::move(v), scope](Pending& p) mutable {
            v.at.runtime = std::move(p.had);
            return add(std::move(v), scope);
          }};
}

ValueBuilder::Pending ValueBuilder::build(NodeId op, const IndexMap& map, int scope) {
  if (is_immediate(context_.computation, op)) return there(constant(op, map, scope));
  if (in_tile(op, map, scope)) return tile_load(op, map);
  switch (context_.reach(op, phase_)) {
    case Reach::kInput:
      return load(op, map, scope, context_.input_buffer(op));
    case Reach::kGlobal:
      return load(op, map, scope, context_.materials.at(op).global);
    case Reach::kPartials:
      return fold(op, map, scope);
    case Reach::kShared:
      return load_shared(op, map, scope);
    case Reach::kCompute:
      return compute(op, map, scope);
  }
  SW_CHECK(false, "how {} is reached", context_.node(op).name);
}

ValueBuilder::Pending ValueBuilder::compute(NodeId op, const IndexMap& map, int scope) {
  const Node& node = context_.node(op);
  if (passes_through(node.op)) {
    return {
        {}, {{node.operands[0], read_map(context_.computation, node, 0, map), scope}}, {}, [](Pending& p) {
          return p.had[0];
        }};
  }
  if (chooses_operand(node.op)) return choose(node, map, scope);
  switch (node.op) {
    case Op::kIota: {
      Value v;
      v.kind = ValueKind::kIndex;
      v.op = op;
      IndexMap index = map;
      index.results = {map.results.at(static_cast<std::size_t>(node.attrs.dimensions.at(0)))};
      return read_at(std::move(v), index, scope);
    }
    case Op::kReduce:
    case Op::kReduceWindow:
    case Op::kDot:
      return inner_reduce(node, map, scope);
    default:
      SW_CHECK(is_elementwise(node.op) || node.op == Op::kGetDimensionSize, "{} ({}) cannot be generated",
               node.name, def(node.op).name);
      return apply(node, map, scope);
  }
}

int ValueBuilder::constant(NodeId op, const IndexMap& map, int scope) {
  NodeId source = op;
  while (context_.node(source).op != Op::kConstant) source = context_.node(source).operands.at(0);
  IndexMap nowhere;
  nowhere.dims = map.dims;
  hoist(nowhere, scope);
  const auto key = std::tuple(scope, source, nowhere);
  if (const auto found = known_.find(key); found != known_.end()) return found->second;
  Value v;
  v.kind = ValueKind::kConstant;
  v.op = source;
  v.at.map = nowhere;
  const int result = add(std::move(v), scope);
  known_.emplace(key, result);
  return result;
}

ValueBuilder::Pending ValueBuilder::load(NodeId op, const IndexMap& map, int scope, int buffer) {
  Value v;
  v.kind = ValueKind::kLoad;
  v.op = op;
  v.buffer = buffer;
  v.offset = context_.offset_in(buffer, op, map);
  return read_at(std::move(v), map, scope);
}

ValueBuilder::Pending ValueBuilder::load_shared(NodeId op, const IndexMap& map, int scope) {
  const Material& m = context_.materials.at(op);
  const Mapping& producer = context_.plan.groups[static_cast<std::size_t>(m.group)].mapping;
  const std::int64_t cols = stitchwork::extents(producer).cols;
  const bool rows = m.placement.coverage == Coverage::kRows;
  const std::int64_t stride = rows ? 1 : cols;
  const std::vector<std::int64_t>& extents = context_.node(op).shape.dims;
  Value v;
  v.kind = ValueKind::kLoad;
  v.op = op;
  v.buffer = m.shared;

  IndexMap here = m.placement.map;
  here.dims = map.dims;
  const IndexExpr place = rows ? IndexExpr::dim(0) : IndexExpr::dim(0) * cols + IndexExpr::dim(1);
  if (here == map && step_.mapping == producer) {
    v.local = true;
    v.offset = simplify(place, map);
    return read_at(std::move(v), map, scope);
  }
  v.task_offset = task_rows(producer) * stride;
  const IndexMap& placement = m.placement.map;
  if (simplify(linearize(placement.results, extents), placement) == simplify(place, placement)) {
    v.offset = simplify(linearize(map.results, extents), map);
    return read_at(std::move(v), map, scope);
  }
  IndexMap over_rows = placement;
  if (rows) over_rows.dims.resize(1);
  const auto inverse = invert(over_rows, extents);
  SW_CHECK(inverse.has_value(), "the place of {} in shared memory is unknown", context_.node(op).name);
  const IndexMap where = compose(map, *inverse);
  v.offset = rows ? where.results[0] : simplify(where.results[0] * cols + where.results[1], where);
  return read_at(std::move(v), map, scope);
}

/// A step between memory and the tiles reads what they are filled from.
bool ValueBuilder::in_tile(NodeId op, const IndexMap& map, int scope) const {
  if (scope >= 0 || step_.turned || context_.tile(op, step_.group, phase_) < 0) return false;
  const Reach reach = context_.reach(op, phase_);
  if (reach != Reach::kInput && reach != Reach::kGlobal) return false;
  const Mapping& mapping = context_.plan.groups[static_cast<std::size_t>(step_.group)].mapping;
  if (is_staged(mapping)) return staged_part(context_.node(op).shape, map, mapping).has_value();
  const auto& places = *context_.placements[static_cast<std::size_t>(step_.group)];
  const auto placed = places.find(op);
  return placed != places.end() && placed->second.map == map;
}

int ValueBuilder::load_tile(NodeId op, const IndexMap& map) { return settle(tile_load(op, map)); }

ValueBuilder::Pending ValueBuilder::tile_load(NodeId op, const IndexMap& map) {
  Value v;
  v.kind = ValueKind::kLoad;
  v.op = op;
  v.buffer = context_.tile(op, step_.group, phase_);
  v.local = true;
  v.offset = context_.tile_offset(op, step_.group, step_.turned);
  return read_at(std::move(v), map, -1);
}

IndexMap ValueBuilder::fold_map(NodeId op) const {
  const Material& m = context_.materials.at(op);
  IndexMap column;  // (element, partial) -> (row, col) of the group
  column.dims = {step_.layout.rows, step_.layout.cols};
  column.results = {IndexExpr::value(0), IndexExpr::dim(0)};
  return compose(column, m.placement.map);
}

int ValueBuilder::partial(NodeId op) {
  Value v;
  v.kind = ValueKind::kLoad;
  v.op = op;
  v.buffer = context_.materials.at(op).partials;
  v.at.map.dims = {step_.layout.rows, step_.layout.cols};
  v.at.map.results = {IndexExpr::dim(1), IndexExpr::dim(0)};
  v.offset = IndexExpr::dim(1) * step_.layout.rows + IndexExpr::dim(0);
  return add(std::move(v), -1);
}

ValueBuilder::Pending ValueBuilder::fold(NodeId op, const IndexMap& map, int scope) {
  const Material& m = context_.materials.at(op);
  const Node& node = context_.node(op);
  // Partials lie by the producer's rows, or its cols.
  IndexMap over_rows = m.placement.map;
  if (m.placement.coverage == Coverage::kCols) {
    IndexMap column;
    column.dims = {m.placement.map.dims[1]};
    column.results = {IndexExpr::value(0), IndexExpr::dim(0)};
    over_rows = compose(column, m.placement.map);
  } else {
    over_rows.dims.resize(1);
  }
  IndexExpr row;
  if (simplify(linearize(over_rows.results, node.shape.dims), over_rows) ==
      simplify(IndexExpr::dim(0), over_rows)) {
    row = simplify(linearize(map.results, node.shape.dims), map);
  } else {
    const auto inverse = invert(over_rows, node.shape.dims);
    SW_CHECK(inverse.has_value(), "the place of the partials of {} is unknown", node.name);
    row = compose(map, *inverse).results[0];
  }
  Value v;
  v.kind = ValueKind::kFold;
  v.op = op;
  v.buffer = m.partials;
  v.at.map = map;
  v.offset = std::move(row);
  std::vector<Wanted> needs = initial_values(node, map, scope);
  const auto initial = static_cast<std::ptrdiff_t>(needs.size());
  std::vector<Wanted> runtime = runtime_values(map, scope);
  std::move(runtime.begin(), runtime.end(), std::back_inserter(needs));
  return {{}, std::move(needs), {}, [this, v = std::move(v), scope, initial](Pending& p) mutable {
            v.arguments.assign(p.had.begin(), p.had.begin() + initial);
            v.at.runtime.assign(p.had.begin() + initial, p.had.end());
            return add(std::move(v), scope);
          }};
}

int ValueBuilder::slice(const Node& node, const IndexMap& map) {
  IndexMap at = updated_map(context_.computation, node);
  for (IndexExpr& start : at.results)
    start = substitute(
        start,
        [](AtomKind kind, int id) {
          return kind == AtomKind::kRuntime ? IndexExpr::runtime(id) : IndexExpr::value(0);
        },
        nullptr);
  at.results = {linearize(at.results, node.attrs.updated->shape.dims)};
  at.dims = map.dims;  // no start depends on them
  Value v;
  v.kind = ValueKind::kSlice;
  v.op = node.id;
  return settle(read_at(std::move(v), at, -1));
}

ValueBuilder::Pending ValueBuilder::choose(const Node& node, const IndexMap& map, int scope) {
  Value v;
  v.kind = ValueKind::kChoose;
  v.op = node.id;
  v.at.map = map;
  std::vector<int> pieces;
  if (node.op == Op::kDynamicUpdateSlice)
    pieces = {1, 0};
  else
    for (int i = 0; i < static_cast<int>(node.operands.size()); ++i) pieces.push_back(i);
  const bool ranges = node.op == Op::kConcatenate;
  const auto dimension = ranges ? static_cast<std::size_t>(node.attrs.dimensions.at(0)) : 0;
  if (ranges) v.offset = map.results.at(dimension);
  std::vector<Wanted> needs;  // of each piece the value, then what guards it
  std::int64_t next = 0;
  for (int piece : pieces) {
    const std::int64_t first = next;
    if (ranges)
      next += context_.node(node.operands[static_cast<std::size_t>(piece)]).shape.dims.at(dimension);
    const IndexMap read = read_map(context_.computation, node, piece, map);
    if (read.is_empty() && piece != pieces.back()) continue;
    if (ranges) v.extents.push_back(first);
    needs.push_back({node.operands[static_cast<std::size_t>(piece)], read, scope});
    std::vector<Wanted> guard = runtime_values(read, scope);
    std::move(guard.begin(), guard.end(), std::back_inserter(needs));
    v.guards.push_back({read, {}});
    if (read.constraints.empty()) break;  // it always holds
  }
  if (ranges) {
    std::vector<Wanted> index = runtime_values(map, scope);
    std::move(index.begin(), index.end(), std::back_inserter(needs));
  }
  return {{}, std::move(needs), {}, [this, v = std::move(v), scope](Pending& p) mutable {
            auto had = p.had.begin();
            for (Access& guard : v.guards) {
              v.arguments.push_back(*had++);
              const auto end = had + static_cast<std::ptrdiff_t>(guard.map.runtime.size());
              guard.runtime.assign(had, end);
              had = end;
            }
            if (v.arguments.size() == 1) return v.arguments[0];
            v.at.runtime.assign(had, p.had.end());
            const int made = add(std::move(v), scope);
            set_depth_of_choice(made);
            return made;
          }};
}

/// Of a row are also choices of its values by the row alone, whatever element they are for.
void ValueBuilder::set_depth_of_choice(int choice) {
  Value& value = step_.values[static_cast<std::size_t>(choice)];
  value.depth = 0;
  for (const Access& guard : value.guards) {
    IndexMap condition = guard.map;
    condition.results.clear();
    value.depth = std::max(value.depth, depth_of(condition));
  }
  for (const int argument : value.arguments)
    value.depth = std::max(value.depth, step_.values[static_cast<std::size_t>(argument)].depth);
  for (const int index : value.at.runtime)
    value.depth = std::max(value.depth, step_.values[static_cast<std::size_t>(index)].depth);
  if (value.offset.uses_dim(0)) value.depth = std::max(value.depth, 1);
  if (value.offset.uses_dim(1)) value.depth = 2;
}

ValueBuilder::Pending ValueBuilder::apply(const Node& node, const IndexMap& map, int scope) {
  Value v;
  v.kind = ValueKind::kApply;
  v.op = node.id;
  v.at.map = map;
  std::vector<Wanted> needs;
  if (node.op != Op::kGetDimensionSize)
    for (int i = 0; i < static_cast<int>(node.operands.size()); ++i)
      needs.push_back(
          {node.operands[static_cast<std::size_t>(i)], read_map(context_.computation, node, i, map), scope});
  return {{}, std::move(needs), {}, [this, v = std::move(v), scope](Pending& p) mutable {
            v.arguments = std::move(p.had);
            return add(std::move(v), scope);
          }};
}

std::vector<ValueBuilder::Wanted> ValueBuilder::runtime_values(const IndexMap& map, int scope) {
  std::vector<Wanted> values;
  for (std::size_t k = 0; k < map.runtime.size(); ++k) {
    const RuntimeVariable& variable = map.runtime[k];
    IndexMap index;
    index.dims = map.dims;
    index.runtime.assign(map.runtime.begin(), map.runtime.begin() + static_cast<std::ptrdiff_t>(k));
    index.results = variable.index;
    for (const Constraint& c : map.constraints)
      if (last_runtime(c.expr) < static_cast<int>(k)) index.constraints.push_back(c);
    values.push_back({variable.op, simplify(std::move(index)), scope});
  }
  return values;
}

int ValueBuilder::add(Value v, int scope) {
  v.scope = scope;
  v.depth = depth_of(v.at.map);
  step_.values.push_back(std::move(v));
  return static_cast<int>(step_.values.size()) - 1;
}

void ValueBuilder::hoist(IndexMap& map, int& scope) const {
  while (scope >= 0) {
    const Value& around = step_.values[static_cast<std::size_t>(scope)];
    const std::size_t outer = around.at.map.dims.size();
    if (uses_dims_from(map, outer)) return;
    map.dims.resize(outer);
    scope = around.scope;
  }
}

}  // namespace stitchwork
