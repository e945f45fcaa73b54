#include "analysis/planners/xla/imported.h"

#include <algorithm>
#include <map>
#include <optional>
#include <set>
#include <unordered_map>
#include <unordered_set>
#include <utility>

#include "analysis/facts/facts.h"
#include "analysis/forms/best_kernel.h"
#include "analysis/plan/assemble.h"
#include "analysis/planners/planner.h"
#include "analysis/planners/xla/fusion_graph.h"
#include "analysis/schedule/inlined_kernel.h"
#include "analysis/stitching/options.h"
#include "analysis/verify/verify_internal.h"
#include "core/base/error.h"
#include "core/base/sorted.h"

namespace stitchwork {
namespace {

class Importer {
 public:
  Importer(const Graph& graph, const Device& device, const FusionSource& source, bool record)
      : graph_(graph),
        computation_(graph.entry_computation()),
        device_(device),
        source_(source),
        record_(record) {}

  FusionPlan run(const std::vector<ImportedKernel>& fusions, std::vector<std::vector<NodeId>> calls) {
    for (const std::vector<NodeId>& call : calls) {
      call_of_.emplace(call.back(), call);
      made_.insert(call.begin(), call.end());
    }
    for (const ImportedKernel& fusion : fusions) import(fusion);
    add_unfused();
    mark_recomputed(kernels_);
    FusionPlan plan = assemble(graph_, device_, source_.planner, std::move(kernels_), std::move(calls));
    plan.decisions = std::move(decisions_);
    return plan;
  }

 private:
  const Node& node(NodeId id) const { return computation_.node(id); }
  bool generated(NodeId id) const {
    return plan_role(node(id)) == PlanRole::kMemory && !is_immediate(computation_, id);
  }

  void decide(NodeId op, bool ok, std::string rule, std::string why) {
    if (!record_) return;
    const Verdict verdict =
        ok ? Verdict::yes(std::move(rule), std::move(why)) : Verdict::no(std::move(rule), std::move(why));
    decisions_.push_back({source_.planner, node(op).name, "", verdict});
  }

  /// A fusion becomes a kernel. One that holds library calls is cut where they read and are read.
  void import(const ImportedKernel& fusion) {
    const std::map<int, std::vector<NodeId>> parts = between_calls(fusion);
    const std::set<NodeId> stored = read_across(fusion, parts);
    std::vector<NodeId> roots;
    for (const NodeId root : fusion.roots) insert_sorted(roots, buffer_of(computation_, root));
    for (const auto& part : parts) {
      const std::vector<NodeId>& ops = part.second;
      std::vector<NodeId> wanted;
      for (const NodeId op : ops)
        if ((contains_sorted(roots, op) || stored.contains(op)) && !made_.contains(op)) wanted.push_back(op);
      if (wanted.empty()) continue;
      const std::string from = fmt::format("{}: fusion {} kind={}", source_.said, fusion.name, fusion.kind);
      for (const NodeId op : ops)
        decide(op, true, "imported.fusion",
               parts.size() == 1 ? from : from + ", cut at the library calls it holds");
      for (const NodeId op : ops) held_.try_emplace(op, fusions_.size());
      fusions_.push_back(ops);
      const bool rows = fusion.kind != "kLoop" && parts.size() == 1 && reduces_inside(ops, wanted);
      if (!rows || !add_stitched(ops, wanted)) add_kernels(ops, wanted, fusion.name);
    }
  }

  /// Whether a reduction's value is read within. XLA gives such fusions to Triton, whose blocks hold tiles of
  /// rows, or its reduction emitter goes on with what is reduced: a thread for each result would compute its
  /// row's reductions anew.
  bool reduces_inside(const std::vector<NodeId>& ops, const std::vector<NodeId>& roots) const {
    return std::ranges::any_of(ops, [&](NodeId op) {
      return def(node(op).op).cls == OpClass::kReduce && !contains_sorted(roots, op);
    });
  }

  /// One kernel of AStitch's passes, which keep what is reduced within the block: mapping and block are our
  /// search's. False where they have none that is valid.
  bool add_stitched(const std::vector<NodeId>& ops, const std::vector<NodeId>& roots) {
    const std::vector<NodeId> given = stitchable(ops, roots);
    std::vector<KernelPlan> found = stitched(ops, given);
    if (found.size() != 1 || !valid(found.front(), given)) return false;
    keep(std::move(found.front()), given);
    // A broadcast that the fusion ends with is written out by a kernel of its own.
    const std::vector<NodeId> within = needed(ops, given);
    for (const NodeId root : roots)
      if (!contains_sorted(given, root)) {
        std::vector<NodeId> behind = needed(ops, {root});
        std::erase_if(behind, [&](NodeId op) { return contains_sorted(within, op); });
        add_kernels(behind, {root}, node(root).name);
      }
    return true;
  }

  /// The roots, in place of a broadcast what it spreads: stitched kernels give values, no views of them.
  std::vector<NodeId> stitchable(const std::vector<NodeId>& ops, const std::vector<NodeId>& roots) {
    if (!nodes_) nodes_ = astitch::node_facts(graph_);
    std::vector<NodeId> result;
    for (NodeId root : roots) {
      while (!(*nodes_)[root].member && node(root).op == Op::kBroadcast) {
        const std::vector<NodeId> source = values_read(computation_, node(root).operands[0]);
        if (source.size() != 1 || !contains_sorted(ops, source[0])) break;
        root = source[0];
      }
      insert_sorted(result, root);
    }
    return result;
  }

  /// Likewise, in as many kernels as that takes.
  bool add_cut(const std::vector<NodeId>& ops, const std::vector<NodeId>& roots, const std::string& name) {
    std::vector<KernelPlan> found = stitched(ops, roots);
    if (found.size() < 2 || stitchable(ops, roots) != roots) return false;
    decide(roots.back(), false, "imported.form",
           fmt::format("no generated kernel has the form of fusion {}; here it is {} kernels", name,
                       found.size()));
    for (KernelPlan& kernel : found) {
      std::vector<NodeId> given;
      for (const NodeId op : kernel.ops)
        if (contains_sorted(roots, op)) insert_sorted(given, op);
      keep(std::move(kernel), given);
    }
    return true;
  }

  std::vector<KernelPlan> stitched(const std::vector<NodeId>& ops, const std::vector<NodeId>& roots) {
    if (!nodes_) nodes_ = astitch::node_facts(graph_);
    Candidate candidate;
    candidate.outputs = roots;
    for (const NodeId op : needed(ops, roots))
      if ((*nodes_)[op].member) candidate.members.push_back(op);
    if (!std::ranges::includes(candidate.members, roots)) return {};
    PlanOptions tuned;
    tuned.knobs["mapping"] = "tuned";
    return best_kernel(*nodes_, candidate, device_, astitch::read_options(tuned)).kernels;
  }

  /// The fusion's generated ops by the number of library calls on their longest way from its inputs.
  std::map<int, std::vector<NodeId>> between_calls(const ImportedKernel& fusion) const {
    std::map<NodeId, int> depths;
    std::map<int, std::vector<NodeId>> parts;
    for (const NodeId op : fusion.ops) {
      int depth = 0;
      for (const NodeId operand : node(op).operands) {
        const auto at = depths.find(operand);
        if (at == depths.end()) continue;
        const PlanRole role = plan_role(node(operand));
        depth =
            std::max(depth, at->second + (role == PlanRole::kLibrary || role == PlanRole::kOpaque ? 1 : 0));
      }
      depths[op] = depth;
      if (generated(op)) parts[depth].push_back(op);
    }
    return parts;
  }

  /// Values of a part that its fusion's calls and other parts read from memory.
  std::set<NodeId> read_across(const ImportedKernel& fusion,
                               const std::map<int, std::vector<NodeId>>& parts) const {
    std::unordered_map<NodeId, int> part_of;
    for (const auto& [depth, ops] : parts)
      for (const NodeId op : ops) part_of.emplace(op, depth);
    std::set<NodeId> result;
    for (const NodeId user : fusion.ops) {
      if (plan_role(node(user)) == PlanRole::kAlias) continue;
      const auto own = part_of.find(user);
      for (const NodeId operand : node(user).operands)
        for (const NodeId value : values_read(computation_, operand))
          if (const auto part = part_of.find(value);
              part != part_of.end() && (own == part_of.end() || own->second != part->second))
            result.insert(value);
    }
    return result;
  }

  /// One kernel: inlined, or stitched; where neither gives all these values at once, one for each.
  void add_kernels(const std::vector<NodeId>& ops, const std::vector<NodeId>& roots,
                   const std::string& name) {
    std::optional<KernelPlan> kernel = kernel_of(ops, roots);
    if (kernel || roots.size() == 1) {
      if (!kernel && add_cut(ops, roots, name)) return;
      if (!kernel) return split(ops, roots.front(), name);
      keep(std::move(*kernel), roots);
      return;
    }
    if (add_stitched(ops, roots)) return;
    for (const NodeId root : roots) {
      decide(root, false, "imported.roots",
             fmt::format("fusion {} gives values of different forms; here each has a kernel", name));
      if (std::optional<KernelPlan> alone = kernel_of(needed(ops, {root}), {root}))
        keep(std::move(*alone), {root});
      else
        split(needed(ops, {root}), root, name);
    }
  }

  /// The last resort: a kernel an op.
  void split(const std::vector<NodeId>& ops, NodeId root, const std::string& name) {
    decide(root, false, "imported.form",
           fmt::format("no generated kernel has the form of fusion {}; here its ops have one each", name));
    for (const NodeId op : ops)
      if (!made_.contains(op)) keep(alone(op), {op});
  }

  KernelPlan alone(NodeId op) const {
    return xla::lower_instruction(graph_, {xla::InstructionKind::kPlain, true, 0, {op}, {op}, {}});
  }

  void keep(KernelPlan kernel, const std::vector<NodeId>& roots) {
    made_.insert(roots.begin(), roots.end());
    kernel.outputs = roots;  // what it is for: other kernels may compute the same within
    kernels_.push_back(std::move(kernel));
  }

  /// The ops among `ops` that these roots need.
  std::vector<NodeId> needed(const std::vector<NodeId>& ops, const std::vector<NodeId>& roots) const {
    std::vector<NodeId> open = roots, result;
    std::unordered_set<NodeId> seen(roots.begin(), roots.end());
    while (!open.empty()) {
      const NodeId op = open.back();
      open.pop_back();
      result.push_back(op);
      for (const NodeId operand : node(op).operands)
        for (const NodeId owner : values_read(computation_, operand))
          if (contains_sorted(ops, owner) && seen.insert(owner).second) open.push_back(owner);
    }
    sort_unique(result);
    return result;
  }

  std::optional<KernelPlan> kernel_of(const std::vector<NodeId>& ops,
                                      const std::vector<NodeId>& roots) const {
    KernelPlan kernel =
        xla::lower_instruction(graph_, {xla::InstructionKind::kLoop, true, 0, needed(ops, roots), roots, {}});
    if (!valid(kernel, roots)) return std::nullopt;
    return kernel;
  }

  bool valid(KernelPlan& kernel, const std::vector<NodeId>& roots) const {
    using namespace verification;
    kernel.outputs = roots;
    Report report;
    check_structure(computation_, kernel, report);
    if (report.problems.empty()) {
      check_mappings(computation_, device_.vector_bytes(), kernel, report);
      check_launch(computation_, device_, kernel, report);
      if (report.problems.empty())
        check_values(computation_, kernel, evaluations(computation_, kernel), report);
    }
    kernel.outputs.clear();
    return report.problems.empty();
  }

  /// Ops the dump left alone are kernels of their own, and so are values of which only copies inside fusions
  /// are left: equal ops are merged before planning.
  void add_unfused() {
    std::set<NodeId> fused;
    for (const KernelPlan& kernel : kernels_) fused.insert(kernel.ops.begin(), kernel.ops.end());
    std::set<NodeId> wanted;
    const auto want = [&](const std::vector<NodeId>& owners) {
      for (const NodeId owner : owners)
        if (plan_role(node(owner)) == PlanRole::kMemory) wanted.insert(owner);
    };
    for (const KernelPlan& kernel : kernels_) want(kernel_reads(graph_, kernel));
    want(values_read(computation_, computation_.root));
    for (auto at = computation_.nodes.rbegin(); at != computation_.nodes.rend(); ++at) {
      const PlanRole role = plan_role(*at);
      if (role == PlanRole::kLibrary || role == PlanRole::kOpaque) want(library_inputs(computation_, *at));
      if (const auto call = call_of_.find(at->id); call != call_of_.end())
        want(library_inputs(computation_, call->second));
      if (role != PlanRole::kMemory || made_.contains(at->id)) continue;
      // An immediate is written only where a call or the result reads it from memory.
      if (is_immediate(computation_, at->id) && !wanted.contains(at->id)) continue;
      if (fused.contains(at->id) && !wanted.contains(at->id)) continue;
      if (fused.contains(at->id) && give_also(at->id, want)) continue;
      for (const NodeId operand : at->operands) want(values_read(computation_, operand));
      if (at->op == Op::kCopy) continue;  // a copy of the device
      decide(at->id, true, "imported.op", fmt::format("{}: an op outside fusions", source_.said));
      keep(alone(at->id), {at->id});
    }
  }

  /// A value within a fusion that another kernel reads without the view that the fusion gives: one kernel.
  template <typename Want>
  bool give_also(NodeId op, const Want& want) {
    const auto held = held_.find(op);
    if (held == held_.end()) return false;
    std::optional<KernelPlan> kernel = kernel_of(needed(fusions_[held->second], {op}), {op});
    if (!kernel) return false;
    want(kernel_reads(graph_, *kernel));
    decide(op, true, "imported.fusion", fmt::format("{}: read from within a fusion", source_.said));
    keep(std::move(*kernel), {op});
    return true;
  }

  const Graph& graph_;
  const Computation& computation_;
  const Device& device_;
  const FusionSource& source_;
  bool record_;
  std::optional<astitch::Nodes> nodes_;  ///< once some fusion is stitched
  std::vector<KernelPlan> kernels_;
  std::vector<std::vector<NodeId>> fusions_;      ///< ops of each, ascending
  std::unordered_map<NodeId, std::size_t> held_;  ///< the first fusion that holds an op
  std::set<NodeId> made_;
  std::map<NodeId, std::vector<NodeId>> call_of_;  ///< by the result of a call of several ops
  std::vector<Decision> decisions_;
};

}  // namespace

Verdict takes_imported(const Graph& graph) {
  const bool fused =
      std::ranges::any_of(graph.computations, [](const Computation& c) { return !c.imported.empty(); });
  return fused ? Verdict::yes()
               : Verdict::no("imported.fusions",
                             "it has no fusions; the planner takes dumps after XLA's optimisation");
}

FusionPlan plan_fusions(const Graph& graph, const Device& device, const FusionSource& source,
                        const std::vector<ImportedKernel>& fusions, bool record_decisions,
                        std::vector<std::vector<NodeId>> calls) {
  return Importer(graph, device, source, record_decisions).run(fusions, std::move(calls));
}

FusionPlan plan_imported(const Graph& graph, const Device& device, const PlanOptions& options) {
  return plan_fusions(graph, device, {"imported", "imported from the dump"},
                      graph.entry_computation().imported, options.record_decisions);
}

}  // namespace stitchwork
