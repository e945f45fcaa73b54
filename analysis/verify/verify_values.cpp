#include <algorithm>
#include <unordered_map>

#include "analysis/facts/facts.h"
#include "analysis/plan/assemble.h"
#include "analysis/schedule/evaluations.h"
#include "analysis/schedule/launch.h"
#include "analysis/schedule/mapping.h"
#include "analysis/verify/verify_internal.h"

namespace stitchwork::verification {
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

Interval hull(const IndexMap& map, const std::vector<std::int64_t>& extents) {
  return range_of(linearize(map.results, extents), map);
}

/// Tasks that are looked at one by one, where locality does not follow from the maps: verify's time, no
/// truth.
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
  const Interval range = range_of(simplify(place, element), element);
  return range.lo >= 0 && range.hi < elements;
}

struct ValueCheck {
  const Computation& computation;
  const KernelPlan& kernel;
  const KernelEvaluations& groups;
  Report& report;
  std::unordered_map<NodeId, std::size_t> owner;  ///< group that materialises the op

  const std::string& op_name(NodeId op) const { return computation.node(op).name; }
  Scheme scheme(NodeId op) const { return kernel.schemes.at(op); }
  Scheme in_phase(NodeId op) const { return scheme_in_phase(kernel, op); }
  int level(NodeId op) const { return kernel.levels.at(op); }

  void evaluate() {
    for (std::size_t g = 0; g < kernel.groups.size(); ++g) {
      const Group& group = kernel.groups[g];
      owner[group.dominant] = g;
      for (NodeId op : group.sub_dominants) owner[op] = g;
      for (NodeId op : groups[g].unplaced)
        report.add("placement", "kernel {}: {} does not lie one to one in the domain of group {} ({})",
                   kernel.id, op_name(op), op_name(group.dominant), to_text(group.mapping, group.deal));
      for (const Evaluation& e : groups[g].values)
        if (!e.load && !std::binary_search(group.ops.begin(), group.ops.end(), e.op))
          report.add("group", "kernel {}: group {} evaluates {} for {} but does not list it", kernel.id,
                     op_name(group.dominant), op_name(e.op), op_name(e.root));
    }
  }

  void across() {
    for (const Group& group : kernel.groups) {
      if (group.across.empty()) continue;
      const std::string& leader = op_name(group.dominant);
      for (NodeId op : group.across) {
        if (!std::binary_search(group.sub_dominants.begin(), group.sub_dominants.end(), op))
          report.add("across", "kernel {}: {} is no sub-dominant of group {}", kernel.id, op_name(op),
                     leader);
        if (def(computation.node(op).op).cls != OpClass::kReduce)
          report.add("across", "kernel {}: {} reduces nothing across the rows of group {}", kernel.id,
                     op_name(op), leader);
        if (scheme(op) != Scheme::kGlobal)
          report.add("across", "kernel {}: {} leaves partials of every block, so it is global, not {}",
                     kernel.id, op_name(op), name(scheme(op)));
      }
      const std::int64_t registers = accumulator_registers(computation, group, kernel.launch.block);
      const std::int64_t most = most_accumulator_registers(kernel.launch.register_bound);
      if (registers > most)
        report.add("across",
                   "kernel {}: group {} accumulates across its rows in {} registers a thread, at most {}",
                   kernel.id, leader, registers, most);
    }
  }

  void schemes() {
    const std::vector<NodeId> made = materialised(kernel);
    for (NodeId op : kernel.ops) {
      const bool stored = std::binary_search(made.begin(), made.end(), op);
      const Scheme s = scheme(op);
      if (!stored && (s == Scheme::kRegional || s == Scheme::kGlobal || s == Scheme::kIndependent))
        report.add("scheme", "kernel {}: {} is {} but neither dominant nor sub-dominant", kernel.id,
                   op_name(op), name(s));
      for (NodeId operand : computation.node(op).operands) {
        if (!kernel.schemes.contains(operand)) continue;
        const int least = level(operand) + (in_phase(operand) == Scheme::kGlobal ? 1 : 0);
        if (level(op) < least && !computed_by_readers(operand))
          report.add("level", "kernel {}: {} has level {} but reads {} ({}, level {}): at least {}",
                     kernel.id, op_name(op), level(op), op_name(operand), scheme_text(kernel, operand),
                     level(operand), least);
        if (scheme(operand) == Scheme::kIndependent)
          report.add("scheme", "kernel {}: {} is independent but {} reads it in the kernel", kernel.id,
                     op_name(operand), op_name(op));
        if (in_phase(operand) == Scheme::kLocal && combined_by_threads(operand))
          report.add("scheme",
                     "kernel {}: {} is reduced by several threads, {} cannot read it as a local value",
                     kernel.id, op_name(operand), op_name(op));
      }
    }
  }

  /// A stored value that readers compute for themselves, each where it is: an output of another group.
  bool computed_by_readers(NodeId op) const {
    return owner.contains(op) && (scheme(op) == Scheme::kLocal || scheme(op) == Scheme::kRecomputed);
  }

  bool combined_by_threads(NodeId op) const {
    return owner.contains(op) && reduces_domain(computation, op, kernel.groups[owner.at(op)].mapping);
  }

  void loads() {
    for (std::size_t g = 0; g < groups.size(); ++g)
      for (const Evaluation& e : groups[g].values)
        if (e.load && owner.contains(e.op)) load(g, e);
  }

  void load(std::size_t reader, const Evaluation& e) {
    const std::size_t producer = owner.at(e.op);
    const int made = level(e.op), read = level(e.root);
    if (e.resident) return;  // see check_residents
    if (scheme(e.op) == Scheme::kResident && read != made) {
      report.add("locality", "kernel {}: {} is Resident, but {} needs other elements than its threads keep",
                 kernel.id, op_name(e.op), op_name(e.root));
      return;
    }
    const bool global = scheme(e.op) == Scheme::kGlobal;
    if (global && read > made) return;
    if (global && (read < made || in_phase(e.op) == Scheme::kGlobal)) {
      report.add("level",
                 "kernel {}: {} (level {}) reads {}, Global and made in level {}, without a grid barrier "
                 "between",
                 kernel.id, op_name(e.root), read, op_name(e.op), made);
      return;
    }
    if (read != made) {
      report.add("locality", "kernel {}: {} is Regional in level {} but {} reads it in level {}", kernel.id,
                 op_name(e.op), made, op_name(e.root), read);
      return;
    }
    block_local(reader, producer, e);
  }

  /// Regional: the need of every task lies inside what the same task of the producer makes.
  void block_local(std::size_t reader, std::size_t producer, const Evaluation& e) {
    const Mapping& makes = kernel.groups[producer].mapping;
    const Mapping& needs = kernel.groups[reader].mapping;
    if (segments(makes) > 1 || segments(needs) > 1) {
      report.add("locality", "kernel {}: {} is Regional, but its rows are split over blocks", kernel.id,
                 op_name(e.op));
      return;
    }
    const Deal &made = kernel.groups[producer].deal, &read = kernel.groups[reader].deal;
    if (made != read) {
      report.add("locality", "kernel {}: {} is Regional, made in {}, but read in {}", kernel.id,
                 op_name(e.op), to_text(made), to_text(read));
      return;
    }
    const auto placed = groups[producer].placements.find(e.op);
    if (placed == groups[producer].placements.end()) return;  // already reported
    if (made.cluster > 1 && placed->second.coverage != Coverage::kRows) {
      report.add("locality", "kernel {}: {} is Regional, but each block of a cluster has a part of the row",
                 kernel.id, op_name(e.op));
      return;
    }
    if (makes == needs && placed->second.map == e.map) return;
    const std::vector<std::int64_t>& extents = computation.node(e.op).shape.dims;
    if (const auto elements = elements_a_task(placed->second, makes, extents);
        elements && follows_from_maps(e.map, needs, *elements, extents))
      return;
    if (made.tasks > kMostTasks) {
      report.add("locality",
                 "kernel {}: {} is Regional, and it is not known whether each of {} tasks of {} needs only "
                 "what it makes",
                 kernel.id, op_name(e.op), made.tasks, op_name(e.root));
      return;
    }
    for (std::int64_t task = 0; task < made.tasks; ++task) {
      const IndexMap made_map = of_task(placed->second.map, makes, task);
      const IndexMap need_map = of_task(e.map, needs, task);
      if (need_map.is_empty()) continue;  // its guard never holds in this task
      const Interval made = hull(made_map, extents);
      Interval need = hull(need_map, extents);
      // Of guarded pieces (pad, concatenate) the hull may reach beyond the array: nothing is read there.
      need = {std::max<std::int64_t>(need.lo, 0),
              std::min(need.hi, computation.node(e.op).shape.elements_count() - 1)};
      const std::int64_t made_elements =
          made_map.dims[0] * (placed->second.coverage == Coverage::kFull ? made_map.dims[1] : 1);
      if (made.size() == made_elements && made.contains(need)) continue;
      report.add("locality",
                 "kernel {}: {} is Regional, but task {} makes elements {}..{} and {} needs {}..{}",
                 kernel.id, op_name(e.op), task, made.lo, made.hi, op_name(e.root), need.lo, need.hi);
      return;
    }
  }
};

}  // namespace

void check_values(const Computation& computation, const KernelPlan& kernel,
                  const KernelEvaluations& evaluated, Report& report) {
  ValueCheck check{computation, kernel, evaluated, report, {}};
  check.evaluate();
  check.across();
  check.schemes();
  check.loads();
}

}  // namespace stitchwork::verification
