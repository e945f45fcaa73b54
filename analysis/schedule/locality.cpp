#include "analysis/schedule/locality.h"

#include <fmt/format.h>

#include <algorithm>
#include <optional>

#include "analysis/facts/facts.h"
#include "analysis/plan/assemble.h"
#include "analysis/plan/mapping.h"
#include "analysis/schedule/launch.h"
#include "core/base/sorted.h"

namespace stitchwork {
namespace {

/// `map` restricted to one task of `mapping`: rows [task * task_rows, ...), every col.
IndexMap of_task(const IndexMap& map, const Mapping& mapping, std::int64_t task) {
  const std::int64_t first = task * task_rows(mapping);
  const Extents domain = extents(mapping);
  IndexMap box;
  box.dims = {std::min(task_rows(mapping), domain.rows - first), domain.cols};
  box.results = {IndexExpr::dim(0) + IndexExpr::value(first), IndexExpr::dim(1)};
  return compose(box, map);
}

/// range_of where the map's guards hold: those on quotients and remainders narrow these too.
Interval guarded_range(const IndexExpr& expr, const IndexMap& map) {
  Interval sum{expr.constant, expr.constant};
  for (const IndexTerm& term : expr.terms) {
    IndexExpr atom;
    atom.terms.push_back(term);
    atom.terms.front().coefficient = 1;
    Interval range = range_of(atom, map);
    for (const Constraint& guard : map.constraints)
      if (guard.expr == atom)
        range = {std::max(range.lo, guard.range.lo), std::min(range.hi, guard.range.hi)};
    const std::int64_t a = term.coefficient * range.lo, b = term.coefficient * range.hi;
    sum = {sum.lo + std::min(a, b), sum.hi + std::max(a, b)};
  }
  return sum;
}

Interval hull(const IndexMap& map, const std::vector<std::int64_t>& extents) {
  return guarded_range(linearize(map.results, extents), map);
}

/// Tasks that are looked at one by one, where locality does not follow from the maps: time, no truth.
/// A choice, not measured: some milliseconds an op.
constexpr std::int64_t kMostTasks = 65536;

/// Whether task t of `makes` makes the elements [t * a, (t + 1) * a) for some a, by the placement's map
/// alone.
std::optional<std::int64_t> elements_a_task(const Placement& placed, const Mapping& makes,
                                            const std::vector<std::int64_t>& extents) {
  const bool full = placed.coverage == Coverage::kFull;
  const std::int64_t cols = stitchwork::extents(makes).cols;
  const IndexExpr element = simplify(linearize(placed.map.results, extents), placed.map);
  const IndexExpr row_major = full ? IndexExpr::dim(0) * cols + IndexExpr::dim(1) : IndexExpr::dim(0);
  if (element != simplify(row_major, placed.map)) return std::nullopt;
  return task_rows(makes) * (full ? cols : 1);
}

/// Whether, for every row and col of the reader's domain, the element it needs is one of its own task's:
/// element - task * elements lies in [0, elements).
bool follows_from_maps(const IndexMap& need, const Mapping& needs, std::int64_t elements,
                       const std::vector<std::int64_t>& extents) {
  IndexMap of_task;  // (task, row in it, col) -> (row, col)
  of_task.dims = {task_count(needs), task_rows(needs),
                  std::max<std::int64_t>(1, stitchwork::extents(needs).cols)};
  of_task.results = {IndexExpr::dim(0) * task_rows(needs) + IndexExpr::dim(1), IndexExpr::dim(2)};
  const IndexMap element = compose(of_task, need);
  const IndexExpr place = linearize(element.results, extents) - IndexExpr::dim(0) * elements;
  const Interval range = guarded_range(simplify(place, element), element);
  return range.lo >= 0 && range.hi < elements;
}

template <typename... Args>
Verdict crosses(fmt::format_string<Args...> why, Args&&... args) {
  return Verdict::no("locality", fmt::format(why, std::forward<Args>(args)...));
}

/// Task by task, by the hulls of what is made and needed.
Verdict local_task_by_task(const Computation& computation, const Placement& placed, const Mapping& makes,
                           const Mapping& needs, const Evaluation& e, std::int64_t tasks) {
  const std::vector<std::int64_t>& extents = computation.node(e.op).shape.dims;
  const std::string& root = computation.node(e.root).name;
  if (tasks > kMostTasks)
    return crosses("and it is not known whether each of {} tasks of {} needs only what it makes", tasks,
                   root);
  for (std::int64_t task = 0; task < tasks; ++task) {
    const IndexMap made_map = of_task(placed.map, makes, task);
    const IndexMap need_map = of_task(e.map, needs, task);
    if (need_map.is_empty()) continue;  // its guard never holds in this task
    const Interval made = hull(made_map, extents);
    // Of guarded pieces (pad, concatenate) the hull may reach beyond the array: nothing is read there.
    Interval need = hull(need_map, extents);
    need = {std::max<std::int64_t>(need.lo, 0),
            std::min(need.hi, computation.node(e.op).shape.elements_count() - 1)};
    const std::int64_t made_elements =
        made_map.dims[0] * (placed.coverage == Coverage::kFull ? made_map.dims[1] : 1);
    if (made.size() == made_elements && made.contains(need)) continue;
    return crosses("but task {} makes elements {}..{} and {} needs {}..{}", task, made.lo, made.hi, root,
                   need.lo, need.hi);
  }
  return Verdict::yes();
}

/// Where an element of a Regional value lies, from the beginning of its slot in elements, task * `of_task`
/// more: a function of the row and col of a domain.
struct Place {
  IndexExpr element;
  std::int64_t of_task = 0;
  bool operator==(const Place&) const = default;
};

Place place_made(const Placement& placed, const Mapping& makes) {
  const bool rows = placed.coverage == Coverage::kRows;
  const std::int64_t stride = rows ? 1 : stitchwork::extents(makes).cols;
  const IndexExpr element =
      rows ? IndexExpr::dim(0) : simplify(IndexExpr::dim(0) * stride + IndexExpr::dim(1), placed.map);
  return {simplify(element, placed.map), task_rows(makes) * stride};
}

/// Of the element at `map` of a value that lies as `placed` says.
std::optional<Place> place_read(const IndexMap& map, const Placement& placed, const Mapping& makes,
                                const std::vector<std::int64_t>& extents) {
  if (elements_a_task(placed, makes, extents))
    return Place{simplify(linearize(map.results, extents), map), place_made(placed, makes).of_task};
  IndexMap domain = placed.map;
  if (placed.coverage == Coverage::kRows) domain.dims.resize(1);
  const auto inverse = invert(domain, extents);
  if (!inverse) return std::nullopt;
  const Place made = place_made(placed, makes);
  const IndexMap at = compose(map, *inverse);
  IndexExpr element = at.results[0];
  if (placed.coverage == Coverage::kFull) element = element * stitchwork::extents(makes).cols + at.results[1];
  return Place{simplify(element, map), made.of_task};
}

/// Whether the threads that share a row, or a value of it, are one: what a row has one of, it reads and
/// writes.
bool is_alone(const Mapping& mapping) {
  return is<mapping::Elements>(mapping) || is<mapping::OneThread>(mapping);
}

}  // namespace

Verdict block_local(const Computation& computation, const KernelPlan& kernel,
                    const KernelEvaluations& evaluated, std::size_t reader, std::size_t producer,
                    const Evaluation& e) {
  const Group &making = kernel.groups[producer], &reading = kernel.groups[reader];
  const Mapping &makes = making.mapping, &needs = reading.mapping;
  if (segments(makes) > 1 || segments(needs) > 1) return crosses("but its rows are split over blocks");
  if (making.deal != reading.deal)
    return crosses("made in {}, but read in {}", to_text(making.deal), to_text(reading.deal));
  const auto placed = evaluated[producer].placements->find(e.op);
  if (placed == evaluated[producer].placements->end()) return crosses("but lies nowhere in the domain");
  if (making.deal.cluster > 1 && placed->second.coverage != Coverage::kRows)
    return crosses("but each block of a cluster has a part of the row");
  if (makes == needs && placed->second.map == e.map) return Verdict::yes();
  const std::vector<std::int64_t>& extents = computation.node(e.op).shape.dims;
  if (const auto elements = elements_a_task(placed->second, makes, extents);
      elements && follows_from_maps(e.map, needs, *elements, extents))
    return Verdict::yes();
  return local_task_by_task(computation, placed->second, makes, needs, e, making.deal.tasks);
}

Verdict in_place(const Computation& computation, const KernelPlan& kernel, const KernelEvaluations& evaluated,
                 const TaskSteps& steps, NodeId value, NodeId op) {
  const auto name = [&](NodeId id) -> const std::string& { return computation.node(id).name; };
  const TaskSteps::Made &of_value = steps.at(value), &of_op = steps.at(op);
  if (kernel.levels.at(value) != kernel.levels.at(op) || of_value.last != of_op.step)
    return crosses("{} is not made in the last step that reads {}", name(op), name(value));
  const auto makes = static_cast<std::size_t>(of_value.group), reads = static_cast<std::size_t>(of_op.group);
  const Group &maker = kernel.groups[makes], &group = kernel.groups[reads];
  const auto placed = evaluated[makes].placements->find(value), at = evaluated[reads].placements->find(op);
  if (placed == evaluated[makes].placements->end() || at == evaluated[reads].placements->end())
    return crosses("{} or {} lies nowhere in its group's domain", name(value), name(op));
  const bool over_rows = at->second.coverage == Coverage::kRows;
  if (reduces_cols(computation, op, group) || is_across(group, op) || group.deal.cluster > 1 ||
      segments(group.mapping) > 1)
    return crosses("{} is not made element by element, each by one thread", name(op));
  if (over_rows ? packs_rows(group.mapping) : !is_alone(group.mapping) && extents(group.mapping).cols == 1)
    return crosses("all threads of a row read what one of them writes of {}", name(op));
  if (byte_size(computation.node(value).shape.dtype) != byte_size(computation.node(op).shape.dtype))
    return crosses("elements of {} and {} differ in size", name(value), name(op));
  for (const auto& [root, made] : steps.ops()) {
    if (made.step != of_op.step || kernel.levels.at(root) != kernel.levels.at(op)) continue;
    if (!shared_reads(computation, kernel, root).contains(value)) continue;
    const auto root_at = evaluated[static_cast<std::size_t>(made.group)].placements->find(root);
    const bool same_step =
        made.group == of_op.group && root_at != evaluated[reads].placements->end() &&
        (root_at->second.coverage == Coverage::kRows && !reduces_cols(computation, root, group)) == over_rows;
    if (!same_step) return crosses("{} reads {} in the same step", name(root), name(value));
  }
  const Place written = place_made(at->second, group.mapping);
  bool read = false;
  for (const Evaluation& e : evaluated[reads].values) {
    if (!e.load || e.op != value || kernel.levels.at(e.root) != kernel.levels.at(op)) continue;
    read = true;
    const auto from =
        e.map.symbols.empty() && e.map.runtime.empty() && e.map.constraints.empty()
            ? place_read(e.map, placed->second, maker.mapping, computation.node(value).shape.dims)
            : std::nullopt;
    if (from != written)
      return crosses("threads read other elements of {} than they write of {}", name(value), name(op));
  }
  if (!read) return crosses("{} does not read {}", name(op), name(value));
  return Verdict::yes();
}

}  // namespace stitchwork
