// What an eager framework launches (docs/planners/eager.md): a kernel for each op and for each function of
// its library; views are no kernels, and products take transposes in.
#include "analysis/planners/planner.h"

#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <utility>

#include "analysis/facts/facts.h"
#include "analysis/forms/best_kernel.h"
#include "analysis/plan/assemble.h"
#include "analysis/planners/eager/functions.h"
#include "analysis/planners/eager/views.h"
#include "analysis/schedule/inlined_kernel.h"
#include "analysis/schedule/plain_mapping.h"
#include "analysis/verify/verify.h"
#include "core/substitute/derivation.h"
#include "core/substitute/view.h"

namespace stitchwork {
namespace eager {
namespace {

class Launches {
 public:
  Launches(const Graph& graph, const Device& device, bool record)
      : graph_(graph),
        computation_(graph.entry_computation()),
        device_(device),
        recorder_(record),
        views_(graph) {}

  FusionPlan run() {
    std::vector<LibraryFunction> functions = library_functions(graph_, views_);
    keep(functions, [](const LibraryFunction& f) { return f.convex; });
    std::vector<KernelPlan> kernels = planned(functions);
    // Functions of one result wait for nothing of their own, as single ops do not.
    const auto single = [](const LibraryFunction& f) { return f.outputs.size() == 1; };
    if (!std::ranges::all_of(functions, single) && !can_be_ordered(graph_, kernels)) {
      keep(functions, single);
      kernels = planned(functions);
    }
    record(functions);
    mark_recomputed(kernels);
    FusionPlan plan = assemble(graph_, device_, "eager", std::move(kernels));
    plan.decisions = recorder_.take();
    return plan;
  }

 private:
  const Node& node(NodeId id) const { return computation_.node(id); }
  const std::string& name(NodeId id) const { return node(id).name; }

  /// The kernels of the functions, and of each other op. `functions` without those that are no one kernel.
  std::vector<KernelPlan> planned(std::vector<LibraryFunction>& functions) {
    std::vector<KernelPlan> kernels;
    std::vector<bool> made(computation_.nodes.size(), false);
    std::vector<std::optional<KernelPlan>> of = kernels_of(functions);
    std::size_t kept = 0;
    for (std::size_t f = 0; f < functions.size(); ++f) {
      if (!of[f]) {
        refuse(functions[f], "no kernel without barriers of the grid computes all of it");
        continue;
      }
      for (const NodeId op : functions[f].ops) made[static_cast<std::size_t>(op)] = true;
      kernels.push_back(std::move(*of[f]));
      if (kept != f) functions[kept] = std::move(functions[f]);
      ++kept;
    }
    functions.resize(kept);
    for (const Node& n : computation_.nodes)
      if (is_kernel(n) && !made[static_cast<std::size_t>(n.id)]) kernels.push_back(alone(n));
    return kernels;
  }

  bool is_kernel(const Node& n) const {
    if (plan_role(n) != PlanRole::kMemory || views_.is_copy_step(n)) return false;
    return !views_.is_view(n.id) || views_.is_dense(n.id);
  }

  KernelPlan alone(const Node& n) const { return inlined({n.id}, {n.id}); }

  KernelPlan inlined(const std::vector<NodeId>& ops, const std::vector<NodeId>& outputs) const {
    const NodeId last = outputs.back();
    return inlined_kernel(computation_, views_.with_views(ops), outputs, last,
                          eager_mapping(graph_, device_, node(last)));
  }

  /// Nothing where the results are of different elements, reversed ones, say.
  std::optional<KernelPlan> one_loop(const LibraryFunction& function) const {
    KernelPlan kernel = inlined(function.ops, function.outputs);
    kernel.outputs = function.outputs;
    if (function.outputs.size() > 1 &&
        !verify_values(graph_, device_, kernel, evaluations(computation_, kernel)).empty())
      return std::nullopt;
    return kernel;
  }

  /// A loop over the elements, if all results have the same; else, and where rows are reduced, the kernel
  /// that AStitch's passes find for these ops, if it is one without a barrier of the grid.
  std::vector<std::optional<KernelPlan>> kernels_of(const std::vector<LibraryFunction>& functions) {
    std::vector<std::optional<KernelPlan>> result(functions.size());
    std::vector<std::size_t> searched;
    for (std::size_t f = 0; f < functions.size(); ++f) {
      const LibraryFunction& function = functions[f];
      const bool alike = std::ranges::all_of(function.outputs, [&](NodeId output) {
        return node(output).shape.dims == node(function.outputs.back()).shape.dims;
      });
      if (alike && !function.reduces) result[f] = one_loop(function);
      if (!result[f]) searched.push_back(f);
    }
    if (searched.empty()) return result;
    if (!nodes_) nodes_ = astitch::node_facts(graph_);
    std::vector<std::size_t> asked;
    std::vector<Candidate> candidates;
    for (const std::size_t f : searched)
      if (std::optional<Candidate> candidate = candidate_of(functions[f])) {
        asked.push_back(f);
        candidates.push_back(std::move(*candidate));
      }
    // A block a row, as ATen's softmax has them (aten/src/ATen/native/cuda/SoftMax.cu), however many rows.
    PlanOptions block_a_row;
    block_a_row.knobs["mapping"] = "paper";
    block_a_row.knobs["adaptive_mapping"] = "off";
    std::vector<BestKernel> found =
        best_kernels(*nodes_, candidates, device_, astitch::read_options(block_a_row));
    for (std::size_t i = 0; i < asked.size(); ++i) {
      std::vector<KernelPlan>& kernels = found[i].kernels;
      if (kernels.size() != 1 || kernels.front().launch.grid_barriers > 0) continue;
      kernels.front().outputs = candidates[i].outputs;
      result[asked[i]] = std::move(kernels.front());
    }
    return result;
  }

  /// With the views that it reads through, but for those that any kernel repeats.
  std::optional<Candidate> candidate_of(const LibraryFunction& function) const {
    Candidate result{{}, function.outputs};
    for (const NodeId op : views_.with_views(function.ops)) {
      if ((*nodes_)[op].isolated) return std::nullopt;
      if ((*nodes_)[op].member) result.members.push_back(op);
    }
    return result;
  }

  /// Those of which it holds that nothing outside comes between their ops.
  template <typename Holds>
  void keep(std::vector<LibraryFunction>& functions, Holds holds) {
    std::erase_if(functions, [&](const LibraryFunction& function) {
      if (holds(function)) return false;
      refuse(function, "something else lies between its ops");
      return true;
    });
  }

  // ---- why

  void refuse(const LibraryFunction& function, std::string_view why) {
    recorder_.add("library-function", name(function.outputs.back()), name(function.ops.front()), [&] {
      return Verdict::no("eager.library-function",
                         fmt::format("{} of {} ops: {}", function.name, function.ops.size(), why));
    });
  }

  void record(const std::vector<LibraryFunction>& functions) {
    if (!recorder_.enabled()) return;
    std::vector<bool> told(computation_.nodes.size(), false);
    for (const LibraryFunction& function : functions)
      for (const NodeId op : function.ops) {
        told[static_cast<std::size_t>(op)] = true;
        recorder_.add("library-function", name(op), "", [&] {
          return Verdict::yes("eager.library-function",
                              fmt::format("{}, {} ops of the model, is one kernel of the framework's library",
                                          function.name, function.ops.size()));
        });
      }
    for (const Node& n : computation_.nodes) {
      if (plan_role(n) != PlanRole::kMemory || told[static_cast<std::size_t>(n.id)]) continue;
      if (views_.is_view(n.id)) {
        recorder_.add("view", n.name, "", [&] { return of_view(n.id); });
      } else if (is_kernel(n)) {
        recorder_.add("scope", n.name, "", [] {
          return Verdict::yes("eager.one-op-a-kernel", "every op that computes is a kernel");
        });
      }
    }
  }

  Verdict of_view(NodeId id) const {
    if (views_.is_dense(id))
      return Verdict::no("eager.contiguous", fmt::format("a view, written out since {} reads it from memory",
                                                         name(views_.dense_for(id))));
    return Verdict::yes("eager.view", "no kernel: strides, which its readers read through");
  }

  const Graph& graph_;
  const Computation& computation_;
  const Device& device_;
  Recorder recorder_;
  const Views views_;
  std::optional<astitch::Nodes> nodes_;  ///< once kernels are searched for
};

/// Whether the product that takes the transpose in is one call still: its batch stays in front.
bool stays_one_call(const rewriting::View& view, const Node& dot, const Node& layout) {
  if (layout.op != Op::kTranspose) return false;
  const int batch = view.labels(dot).batch;
  for (int d = 0; d < batch; ++d)
    if (layout.attrs.dimensions[static_cast<std::size_t>(d)] != d) return false;
  return true;
}

/// A transpose, or another shape of one operand where the other one is a transpose, which is next then.
bool takes_in(const rewriting::View& view, const rewriting::Match& match) {
  const Node& dot = view.node(match.at[0]);
  const Node& layout = view.node(match.at[1]);
  if (layout.op == Op::kTranspose) return stays_one_call(view, dot, layout);
  return layout.id == dot.operands[0] && stays_one_call(view, dot, view.operand(dot, 1));
}

}  // namespace
}  // namespace eager

rewriting::RewrittenGraph rewrite_eager(const Graph& model, const Device&, const PlanOptions&, Recorder&) {
  rewriting::Derivation derivation(model);
  const rewriting::Rule& results = rewriting::rule_named("transpose-of-dot");
  const rewriting::Rule& operands = rewriting::rule_named("layout-into-dot");
  for (const ComputationId id : rewriting::running_computations(model)) {
    const std::string name = model.computations[static_cast<std::size_t>(id)].name;
    for (bool again = true; again;) {  // an operand may be the transpose of a transpose
      const Graph& graph = derivation.result().graph;
      const rewriting::View view(graph, rewriting::computation_named(graph, name));
      std::vector<std::string> of_results, of_operands;
      for (const Node& node : view.computation().nodes) {
        if (results.find(view, node.id)) of_results.push_back(node.name);
        const auto match = operands.find(view, node.id);
        if (match && eager::takes_in(view, *match)) of_operands.push_back(node.name);
      }
      again = !of_results.empty() || !of_operands.empty();
      if (!of_results.empty()) {
        derivation.apply(results, name, std::move(of_results));
      } else if (!of_operands.empty()) {
        derivation.apply(operands, name, std::move(of_operands));
      }
    }
  }
  return derivation.result();
}

FusionPlan plan_eager(const Graph& graph, const Device& device, const PlanOptions& options) {
  return eager::Launches(graph, device, options.record_decisions).run();
}

}  // namespace stitchwork
