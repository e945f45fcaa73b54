#include "analysis/planners/auto/base.h"

#include <algorithm>

#include "analysis/plan/assemble.h"
#include "analysis/planners/xla/fusion_graph.h"
#include "core/base/sorted.h"

namespace stitchwork::automatic {
namespace {

/// The region of each node for XLA's fusions: the stitched kernel that computes it. Index maps that several
/// kernels repeat belong to none.
std::vector<int> find_regions(const astitch::Nodes& nodes, const std::vector<const Candidate*>& stitched) {
  std::vector<int> regions(nodes.facts.size(), xla::kAnyRegion);
  for (std::size_t k = 0; k < stitched.size(); ++k)
    for (const NodeId id : stitched[k]->members) regions[static_cast<std::size_t>(id)] = static_cast<int>(k);
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

}  // namespace

Base::Base(const astitch::Nodes& nodes, std::vector<KernelPlan> plans) {
  for (KernelPlan& plan : plans) {
    Candidate op = astitch::stitch_op(nodes, astitch::members_of(nodes, plan));
    kernels.push_back({std::move(plan), std::move(op), {}, true, {}});
  }
}

void Base::find_xla(const astitch::Nodes& nodes, const Constraints& constraints,
                    std::vector<KernelPlan>& loose) {
  xla::Recorder silent(false, *nodes.computation);
  std::vector<const Candidate*> ops;
  for (const Kernel& kernel : kernels) ops.push_back(&kernel.op);
  for (const xla::Instruction& instruction :
       xla::fused_kernels(*nodes.graph, constraints, silent, find_regions(nodes, ops))) {
    KernelPlan kernel = xla::lower_instruction(*nodes.graph, instruction);
    kernel.outputs = materialised(kernel);
    (instruction.region == xla::kAnyRegion ? loose
                                           : kernels[static_cast<std::size_t>(instruction.region)].xla)
        .push_back(std::move(kernel));
  }
  // XLA leaves products to calls: its fusions of a kernel that computes some are not all of it.
  for (Kernel& kernel : kernels)
    if (std::ranges::any_of(kernel.op.members, [&](NodeId id) { return is_product(nodes.node(id)); }))
      kernel.xla.clear();
}

void Base::take(std::span<const int> changed, std::span<const Candidate> after, std::span<Kernel> into) {
  auto next = into.begin();
  for (std::size_t i = 0; i < changed.size(); ++i) {
    Kernel& kernel = kernels[static_cast<std::size_t>(changed[i])];
    for (const NodeId op : after[i].members)
      if (!contains_sorted(kernel.op.members, op)) computed_again.insert(op);
    gone.push_back(std::move(kernel.plan));
    if (after[i].outputs.empty())
      kernel.op = after[i];
    else
      kernel = std::move(*next++);
  }
}

void Base::drop_empty() {
  std::erase_if(kernels, [](const Kernel& kernel) { return kernel.op.outputs.empty(); });
}

std::vector<Candidate> Base::candidates() const {
  std::vector<Candidate> ops;
  for (const Kernel& kernel : kernels) ops.push_back(kernel.op);
  return ops;
}

void Base::mark_computed_again(std::vector<KernelPlan>& plans) const {
  if (computed_again.empty()) return;
  for (KernelPlan& plan : plans) {
    const std::vector<NodeId> made = materialised(plan);
    for (auto& [op, scheme] : plan.schemes)
      if (scheme == Scheme::kLocal && computed_again.contains(op) && !contains_sorted(made, op))
        scheme = Scheme::kRecomputed;
  }
}

std::vector<std::optional<std::vector<Base::Kernel>>> planned(
    const astitch::Nodes& nodes, const std::vector<std::vector<Candidate>>& parts, const Device& device,
    const astitch::Options& knobs) {
  std::vector<Candidate> left;
  for (const std::vector<Candidate>& part : parts)
    std::ranges::copy_if(part, std::back_inserter(left),
                         [](const Candidate& after) { return !after.outputs.empty(); });
  std::vector<BestKernel> best = best_kernels(nodes, left, device, astitch::silent(knobs));
  std::vector<std::optional<std::vector<Base::Kernel>>> result;
  for (std::size_t p = 0, next = 0; p < parts.size(); ++p) {
    std::vector<Base::Kernel> kernels;
    bool single = true;
    for (const Candidate& after : parts[p]) {
      if (after.outputs.empty()) continue;
      std::vector<KernelPlan>& of = best[next++].kernels;
      single = single && of.size() == 1;
      kernels.push_back({std::move(of.front()), after, {}, false, {}});
      kernels.back().plan.outputs = after.outputs;
    }
    result.push_back(single ? std::optional(std::move(kernels)) : std::nullopt);
  }
  return result;
}

Stitched stitched_of(const astitch::Nodes& nodes, const Device& device, const astitch::Options& knobs,
                     const Base::Kernel& kernel, KnownParts* parts) {
  return {&nodes, &device, &knobs, &kernel.plan, &kernel.xla, kernel.op, parts};
}

}  // namespace stitchwork::automatic
