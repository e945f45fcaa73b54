// The automatic planner (docs/planners/auto.md): plans as AStitch does, then gives every kernel the cheapest
// of its forms.
#include <fmt/format.h>

#include <algorithm>
#include <set>
#include <unordered_map>

#include "analysis/forms/auto_forms.h"
#include "analysis/judge/cost.h"
#include "analysis/plan/assemble.h"
#include "analysis/plan/inlined_kernel.h"
#include "analysis/planners/xla/fusion_graph.h"
#include "core/base/format.h"

namespace stitchwork {
namespace {

using automatic::Recipe;
using automatic::Stitched;

/// The region of each node for XLA's fusions: the stitched kernel that computes it. Index maps that several
/// kernels repeat belong to none.
std::vector<int> find_regions(const astitch::Nodes& nodes, const std::vector<Stitched>& stitched) {
  std::vector<int> regions(nodes.facts.size(), xla::kAnyRegion);
  for (std::size_t k = 0; k < stitched.size(); ++k)
    for (const NodeId id : stitched[k].op.members)
      regions[static_cast<std::size_t>(id)] = static_cast<int>(k);
  for (NodeId id = static_cast<NodeId>(regions.size()) - 1; id >= 0; --id) {
    int& region = regions[static_cast<std::size_t>(id)];
    if (region != xla::kAnyRegion || !nodes[id].transparent || nodes[id].users.empty()) continue;
    const int first = regions[static_cast<std::size_t>(nodes[id].users.front())];
    const bool one = std::all_of(nodes[id].users.begin(), nodes[id].users.end(), [&](NodeId user) {
      return regions[static_cast<std::size_t>(user)] == first;
    });
    if (one) region = first;
  }
  return regions;
}

/// Of a stitched kernel that is not in the plan what was recorded of its forms.
void forget_forms(const astitch::Nodes& nodes, const KernelPlan& kernel, std::vector<Decision>& decisions) {
  std::erase_if(decisions, [&](const Decision& d) {
    return d.step == kFormStep && std::any_of(kernel.ops.begin(), kernel.ops.end(),
                                              [&](NodeId id) { return nodes.name(id) == d.subject; });
  });
}

/// Of kernels in a stitched one's place: what each reads of the others, and that their form was chosen.
void record_cuts(const Graph& graph, const std::vector<KernelPlan>& kernels, const Verdict& why,
                 astitch::Recorder& recorder) {
  if (!recorder.enabled()) return;
  const Computation& computation = graph.entry_computation();
  std::set<NodeId> made;
  for (const KernelPlan& kernel : kernels) {
    const std::vector<NodeId> of = materialised(kernel);
    made.insert(of.begin(), of.end());
  }
  for (const KernelPlan& kernel : kernels)
    for (const NodeId op : kernel.ops)
      for (const NodeId operand : computation.node(op).operands)
        for (const NodeId value : values_read(computation, operand))
          if (made.contains(value) && !std::binary_search(kernel.ops.begin(), kernel.ops.end(), value))
            recorder.add("scope", computation.node(value).name, computation.node(op).name,
                         [&] { return why; });
}

/// Adds the kernels of `loose` whose values something reads and nothing else makes.
void add_missing(const Graph& graph, std::vector<KernelPlan> loose, std::vector<KernelPlan>& kernels) {
  std::set<NodeId> made;
  for (const KernelPlan& kernel : kernels) {
    const std::vector<NodeId> of = materialised(kernel);
    made.insert(of.begin(), of.end());
  }
  for (std::size_t k = 0; k < kernels.size(); ++k) {  // grows
    for (const NodeId read : kernel_reads(graph, kernels[k])) {
      if (made.contains(read)) continue;
      const auto found = std::find_if(loose.begin(), loose.end(), [&](const KernelPlan& kernel) {
        const std::vector<NodeId> of = materialised(kernel);
        return std::binary_search(of.begin(), of.end(), read);
      });
      if (found == loose.end()) continue;
      const std::vector<NodeId> of = materialised(*found);
      made.insert(of.begin(), of.end());
      kernels.push_back(std::move(*found));
      loose.erase(found);
    }
  }
}

}  // namespace

FusionPlan plan_auto(const Graph& graph, const Device& device, const PlanOptions& options) {
  FusionPlan base = plan_astitch(graph, device, options);
  astitch::Options knobs = astitch::read_options(options);
  knobs.constraints = constraints(graph, device, options.edits);
  const astitch::Nodes nodes = astitch::node_facts(graph);
  astitch::Recorder recorder(options.record_decisions);

  std::vector<Stitched> stitched;
  for (const KernelPlan& kernel : base.kernels) {
    stitched.push_back({&nodes, &device, &knobs, &kernel, nullptr,
                        astitch::stitch_op(nodes, astitch::members_of(nodes, kernel))});
  }

  // XLA's fusions of the ops of each kernel.
  xla::Recorder silent(false, graph.entry_computation());
  std::vector<std::vector<KernelPlan>> fused(stitched.size());
  std::vector<KernelPlan> loose;
  for (const xla::Instruction& instruction :
       xla::fused_kernels(graph, knobs.constraints, silent, find_regions(nodes, stitched))) {
    KernelPlan kernel = xla::lower_instruction(graph, instruction);
    kernel.outputs = materialised(kernel);
    (instruction.region == xla::kAnyRegion ? loose : fused[static_cast<std::size_t>(instruction.region)])
        .push_back(std::move(kernel));
  }

  std::unordered_map<std::string, Recipe> known;
  std::vector<KernelPlan> kernels, from_xla;
  for (std::size_t k = 0; k < stitched.size(); ++k) {
    stitched[k].xla = &fused[k];
    // Overrides tell kernels apart that are alike.
    const std::string key =
        options.edits.empty() ? automatic::signature(stitched[k]) : nodes.name(stitched[k].op.members.back());
    auto at = known.find(key);
    if (at == known.end()) at = known.emplace(key, automatic::choose_recipe(stitched[k], recorder)).first;
    if (at->second != Recipe{}) forget_forms(nodes, base.kernels[k], base.decisions);
    automatic::Form form = automatic::make_form(stitched[k], at->second);
    record_cuts(graph, form.kernels,
                Verdict::no(form.rule, fmt::format("{}: {:.2f} us in {}, the least of the forms", form.name,
                                                   form.us, counted(std::ssize(form.kernels), "launch"))),
                recorder);
    auto& into = at->second.cut == Recipe::Cut::kXla ? from_xla : kernels;
    for (KernelPlan& kernel : form.kernels) into.push_back(std::move(kernel));
  }
  mark_recomputed(from_xla);
  for (KernelPlan& kernel : from_xla) kernels.push_back(std::move(kernel));
  const std::size_t chosen_kernels = kernels.size();
  add_missing(graph, std::move(loose), kernels);
  if (kernels.size() > chosen_kernels)
    record_cuts(graph, kernels,
                Verdict::no("auto.xla", "XLA's fusions compute it once for several of the kernels"),
                recorder);

  FusionPlan plan = assemble(graph, device, "auto", std::move(kernels));
  plan.options = base.options;
  plan.decisions = std::move(base.decisions);
  std::vector<Decision> chosen = recorder.take();
  plan.decisions.insert(plan.decisions.end(), chosen.begin(), chosen.end());
  return plan;
}

}  // namespace stitchwork
