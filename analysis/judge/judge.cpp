#include "analysis/judge/judge.h"

#include <algorithm>

#include "analysis/facts/facts.h"
#include "analysis/judge/cost.h"
#include "analysis/plan/assemble.h"
#include "core/base/error.h"
#include "core/base/sorted.h"
#include "occupancy_model/errors.h"

namespace stitchwork {
namespace {

bool is_any(const KernelPlan& kernel, bool (*is)(const Group&)) {
  return std::any_of(kernel.groups.begin(), kernel.groups.end(), is);
}

bool by_atomics(const Group& group) { return combines_atomically(group.mapping); }

Simplicity simplicity(const KernelPlan& kernel) {
  const bool copies = is_any(kernel, [](const Group& g) { return copy_depth(g.mapping) > 0; });
  const bool staged = is_any(kernel, [](const Group& g) { return is_staged(g.mapping); });
  const bool clusters = kernel.launch.cluster > 1, atomics = is_any(kernel, by_atomics);
  Simplicity result;
  result.grid_barriers = kernel.launch.grid_barriers;
  result.kinds_of_sync = static_cast<int>(kernel.launch.grid_barriers > 0) + static_cast<int>(clusters) +
                         static_cast<int>(!kernel.shared.empty()) + static_cast<int>(copies) +
                         static_cast<int>(atomics);
  result.steps = static_cast<int>(kernel.groups.size());
  result.choices = static_cast<int>(staged) + static_cast<int>(clusters) +
                   static_cast<int>(is_any(kernel, [](const Group& g) { return !g.across.empty(); })) +
                   static_cast<int>(is_any(kernel, [](const Group& g) { return !g.one_pass.empty(); })) +
                   static_cast<int>(is_any(kernel, [](const Group& g) { return segments(g.mapping) > 1; }));
  return result;
}

/// What sets the results of atomics to zero before the kernel.
double memsets_us(const Computation& computation, const Device& device, const KernelPlan& kernel) {
  double us = 0;
  for (const Group& group : kernel.groups) {
    if (!by_atomics(group)) continue;
    for (const NodeId id : materialised(group)) {
      const Node& node = computation.node(id);
      if (is_reduction(node))
        us += transfer_us(device, static_cast<double>(node.shape.byte_size())) + device.launch_gap_us;
    }
  }
  return us;
}

class Modelled final : public PlanJudge {
 public:
  Evidence evidence() const override { return Evidence::kModelled; }
  double resolution() const override { return kResolution; }
  KernelWorth kernel(const Graph& graph, const Device& device, const KernelPlan& kernel) const override {
    const KernelCost cost = kernel_cost(graph, device, kernel);
    return {cost.predicted_us, cost.work.dram_sectors, cost.work.l2_sectors};
  }
};

class InTwoStages final : public PlanJudge {
 public:
  InTwoStages(const PlanJudge& first, const PlanJudge& then, int top)
      : first_(first), then_(then), top_(top) {
    SW_CHECK(top > 0, "nothing is left to the second judge");
  }

  Evidence evidence() const override { return first_.evidence(); }
  double resolution() const override { return first_.resolution(); }
  KernelWorth kernel(const Graph& graph, const Device& device, const KernelPlan& kernel) const override {
    return first_.kernel(graph, device, kernel);
  }

  std::size_t best(const Graph& graph, const Device& device, std::span<const Worth> worths,
                   std::span<const Kernels> forms) const override {
    const Order order{resolution()};
    std::vector<std::size_t> ranked(worths.size());
    for (std::size_t i = 0; i < ranked.size(); ++i) ranked[i] = i;
    std::stable_sort(ranked.begin(), ranked.end(),
                     [&](std::size_t a, std::size_t b) { return order.before(worths[a], worths[b]); });
    const std::int64_t last = order.bucket(worths[ranked.front()].us) + 1;
    std::erase_if(ranked, [&](std::size_t i) { return order.bucket(worths[i].us) > last; });
    if (ranked.size() > static_cast<std::size_t>(top_)) ranked.resize(static_cast<std::size_t>(top_));
    if (ranked.size() == 1) return ranked.front();
    std::vector<Worth> again;
    std::vector<Kernels> left;
    for (const std::size_t i : ranked) {
      left.push_back(forms[i]);
      again.push_back(then_.worth(graph, device, forms[i]));
    }
    return ranked[then_.best(graph, device, again, left)];
  }

 private:
  const PlanJudge& first_;
  const PlanJudge& then_;
  int top_;
};

}  // namespace

Worth PlanJudge::worth(const Graph& graph, const Device& device, std::span<const KernelPlan> kernels) const {
  Worth sum;
  sum.evidence = evidence();
  for (const KernelPlan& plan : kernels) {
    const KernelWorth of = kernel(graph, device, plan);
    sum.us += of.us + device.launch_gap_us + memsets_us(graph.entry_computation(), device, plan);
    sum.dram_sectors += of.dram_sectors;
    sum.l2_sectors += of.l2_sectors;
    const Simplicity simple = simplicity(plan);
    sum.simple.grid_barriers += simple.grid_barriers;
    sum.simple.kinds_of_sync = std::max(sum.simple.kinds_of_sync, simple.kinds_of_sync);
    sum.simple.steps += simple.steps;
    sum.simple.choices += simple.choices;
  }
  return sum;
}

double PlanJudge::plan_us(const Graph& graph, const Device& device, const FusionPlan& plan) const {
  return plan_us_by(graph, device, plan, [&](const Graph& of, const KernelPlan& plan_of) {
    return kernel(of, device, plan_of).us;
  });
}

std::size_t PlanJudge::best(const Graph&, const Device&, std::span<const Worth> worths,
                            std::span<const Kernels>) const {
  return Order{resolution()}.best(worths);
}

const PlanJudge& modelled_judge() {
  static const Modelled judge;
  return judge;
}

std::unique_ptr<PlanJudge> in_two_stages(const PlanJudge& first, const PlanJudge& then, int top) {
  return std::make_unique<InTwoStages>(first, then, top);
}

}  // namespace stitchwork
