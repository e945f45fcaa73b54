#include <algorithm>
#include <unordered_map>

#include "analysis/facts/facts.h"
#include "analysis/plan/assemble.h"
#include "analysis/plan/mapping.h"
#include "analysis/schedule/evaluations.h"
#include "analysis/schedule/launch.h"
#include "analysis/schedule/locality.h"
#include "analysis/verify/verify_internal.h"

namespace stitchwork::verification {
namespace {

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
    if (!groups[producer].placements->contains(e.op)) return;  // already reported
    if (const Verdict local = block_local(computation, kernel, groups, reader, producer, e); !local)
      report.add("locality", "kernel {}: {} is Regional, {}", kernel.id, op_name(e.op), local.why);
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
