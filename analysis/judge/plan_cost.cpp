// Costs of whole plans: kernels, library calls, copies and memsets, and the gaps between them.
#include <algorithm>
#include <array>
#include <functional>
#include <map>
#include <unordered_set>

#include "analysis/judge/cost.h"
#include "analysis/judge/library_cost.h"
#include "analysis/judge/step_times.h"
#include "analysis/plan/assemble.h"
#include "analysis/plan/control_flow.h"
#include "analysis/plan/loop_state.h"
#include "analysis/plan/step_order.h"
#include "analysis/plan/traffic.h"
#include "core/base/parallel.h"

namespace stitchwork {
namespace {

struct StepCost {
  double us = 0;
  std::int64_t dram_bytes = 0, recomputed_elements = 0;
  int grid_barriers = 0;
  StreamKernel beside{};  ///< how others that run beside it feel it
};

/// Of the i-th kernel of a plan of that graph.
using CostOfKernel = std::function<StepCost(const Graph&, const FusionPlan&, std::size_t)>;

CostOfKernel estimates(const Device& device, const PlanEvaluations& found) {
  return [&](const Graph& graph, const FusionPlan& plan, std::size_t k) {
    const KernelPlan& kernel = plan.kernels[k];
    const KernelCost cost = kernel_cost(graph, device, kernel, found.at(k));
    const double places = static_cast<double>(device.sms) * cost.timed.blocks_per_sm;
    StreamKernel beside{cost.timed.time, std::min(1.0, static_cast<double>(kernel.launch.grid) / places)};
    beside.alone.total_us = cost.predicted_us;
    return StepCost{cost.predicted_us, cost.dram_read_bytes + cost.dram_write_bytes, cost.recomputed_elements,
                    kernel.launch.grid_barriers, beside};
  };
}

StepCost step_cost(const Graph& graph, const Device& device, const FusionPlan& plan, const PlanStep& step,
                   const std::vector<StepCost>& kernels) {
  const Computation& computation = graph.entry_computation();
  if (step.kind == StepKind::kControl) return {};  // what it runs is added by add_control and plan_cost
  if (step.kind == StepKind::kKernel) return kernels.at(static_cast<std::size_t>(step.kernel));
  double bytes = 0, other_bytes = 0, product_us = 0;
  // What is no product may take all of the device.
  StreamKernel beside{.alone = {}, .resident_share = 0};
  const bool one_call = results_of(plan, step).size() < step.nodes.size();
  const std::span<const NodeId> nodes = step.nodes;
  for (std::size_t i = 0; i < (one_call ? 1 : nodes.size()); ++i) {
    const auto call = one_call ? nodes : nodes.subspan(i, 1);
    const auto product = matrix_product(computation, call, plan.tf32);
    const double of_call =
        product ? product->bytes
                : call_bytes(computation, computation.node(call.front()), step.kind != StepKind::kMemset);
    bytes += of_call;
    if (product) {
      const LibraryTime time = library_time(device, *product);
      product_us += time.total_us - device.launch_us;
      beside.alone.dram_us += time.memory_us;
      if (time.rounds > 0) beside.alone.issue_us += time.compute_us * time.tiles / (time.rounds * device.sms);
      beside.resident_share = std::max(beside.resident_share, std::min(1.0, time.tiles / device.sms));
    } else {
      other_bytes += of_call;
      beside.resident_share = 1;
    }
  }
  const double us = transfer_us(device, other_bytes) + product_us;
  beside.alone.total_us = us;
  beside.alone.launch_us = device.launch_us;
  beside.alone.dram_us += transfer_us(device, other_bytes) - device.launch_us;
  return {us, static_cast<std::int64_t>(bytes), 0, 0, beside};
}

template <typename Visit>
PlanCost for_each_step(const Graph& graph, const Device& device, const FusionPlan& plan,
                       const CostOfKernel& cost_of, Visit visit) {
  std::vector<StepCost> kernels(plan.kernels.size());
  parallel_for(kernels.size(), [&](std::size_t k) { kernels[k] = cost_of(graph, plan, k); });
  PlanCost total;
  std::array<int, 2> steps{};  // of a run, and done once
  std::vector<StreamKernel> beside;
  for (std::size_t s = 0; s < plan.steps.size(); ++s) {
    const StepCost cost = step_cost(graph, device, plan, plan.steps[s], kernels);
    visit(s, cost);
    beside.push_back(cost.beside);
    const bool once = plan.steps[s].once;
    (once ? total.once_us : total.predicted_us) += cost.us + (steps[once]++ > 0 ? device.launch_gap_us : 0);
    if (once) continue;
    total.dram_bytes += cost.dram_bytes;
    total.recomputed_elements += cost.recomputed_elements;
    total.grid_barriers += cost.grid_barriers;
  }
  if (uses_streams(plan)) total.predicted_us = last_end_us(step_spans(device, plan, beside));
  return total;
}

/// Elements computed by a second, third, ... kernel.
std::int64_t computed_again(const Graph& graph, const FusionPlan& plan) {
  std::unordered_set<NodeId> seen;
  std::int64_t elements = 0;
  for (const KernelPlan& kernel : plan.kernels)
    for (NodeId op : kernel.ops)
      if (const Node& node = graph.entry_computation().node(op);
          !seen.insert(op).second && def(node.op).instructions > 0)
        elements += node.shape.elements_count();
  return elements;
}

}  // namespace

// Found by argument-dependent lookup from control_cost, so in no unnamed namespace.
static PlanCost operator+(PlanCost a, const PlanCost& b) {
  a.predicted_us += b.predicted_us;
  a.once_us += b.once_us;
  a.dram_bytes += b.dram_bytes;
  a.recomputed_elements += b.recomputed_elements;
  a.grid_barriers += b.grid_barriers;
  return a;
}

static PlanCost operator*(std::int64_t times, PlanCost a) {
  a.predicted_us *= static_cast<double>(times);
  a.dram_bytes *= times;
  a.recomputed_elements *= times;
  a.grid_barriers *= static_cast<int>(times);
  return a;
}

static bool operator<(const PlanCost& a, const PlanCost& b) { return a.predicted_us < b.predicted_us; }

namespace {

/// Of one plan, given the costs of what its control steps run.
PlanCost own_cost(const Graph& graph, const Device& device, const FusionPlan& plan,
                  const std::map<ComputationId, PlanCost>& parts, const CostOfKernel& cost_of) {
  const Computation& computation = graph.entry_computation();
  PlanCost total = for_each_step(graph, device, plan, cost_of, [](std::size_t, const StepCost&) {});
  total.recomputed_elements += computed_again(graph, plan);
  for (const PlanStep& step : plan.steps) {
    if (step.kind != StepKind::kControl) continue;
    const Node& node = computation.node(step.nodes.at(0));
    total = total + control_cost(node, step.trips, [&](std::size_t i) {
              const auto part = parts.find(node.attrs.computations[i]);
              return part == parts.end() ? PlanCost{} : part->second;  // a plan from a file may lack it
            });
    total.predicted_us +=
        control_gaps_us(device, node, step.trips) + copied_state_us(graph, device, plan, step);
    total.dram_bytes += copied_state_bytes(graph, plan, step);
  }
  return total;
}

}  // namespace

PlanCost plan_cost(const Graph& model, const Device& device, const FusionPlan& plan) {
  const Graph& graph = planned_graph(model, plan);
  if (plan.peer != nullptr)
    return {plan.predicted_us, 0, plan.peer->dram_bytes, computed_again(graph, plan), 0};
  std::map<ComputationId, PlanCost> parts;
  const auto own = [&](const Graph& of, const FusionPlan& plan_of) {
    const PlanEvaluations found = evaluations(of.entry_computation(), plan_of);
    return own_cost(of, device, plan_of, parts, estimates(device, found));
  };
  for (const ComputationPlan& part : plan.computations)
    parts[part.computation] = own(entered(graph, part.computation), part.plan);
  return own(graph, plan);
}

double plan_us_by(const Graph& model, const Device& device, const FusionPlan& plan,
                  const std::function<double(const Graph&, const KernelPlan&)>& kernel_us) {
  const Graph& graph = planned_graph(model, plan);
  const CostOfKernel cost_of = [&](const Graph& of, const FusionPlan& plan_of, std::size_t k) {
    const double us = kernel_us(of, plan_of.kernels[k]);
    return StepCost{.us = us, .beside = {.alone = {.total_us = us}, .resident_share = 1}};
  };
  std::map<ComputationId, PlanCost> parts;
  for (const ComputationPlan& part : plan.computations)
    parts[part.computation] = own_cost(entered(graph, part.computation), device, part.plan, parts, cost_of);
  return own_cost(graph, device, plan, parts, cost_of).predicted_us;
}

void predict(const Graph& graph, const Device& device, FusionPlan& plan, const PlanEvaluations& found) {
  std::vector<double> us(plan.steps.size(), 0);
  const PlanCost total = for_each_step(graph, device, plan, estimates(device, found),
                                       [&](std::size_t s, const StepCost& cost) { us[s] = cost.us; });
  plan.predicted_us = total.predicted_us;
  plan.once_us = total.once_us;
  for (std::size_t s = 0; s < us.size(); ++s) {
    PlanStep& step = plan.steps[s];
    step.predicted_us = us[s];
    if (step.kind == StepKind::kKernel)
      plan.kernels[static_cast<std::size_t>(step.kernel)].predicted_us = us[s];
  }
}

std::vector<StreamKernel> step_kernels(const Graph& graph, const Device& device, const FusionPlan& plan,
                                       const PlanEvaluations& found) {
  std::vector<StreamKernel> kernels(plan.steps.size());
  for_each_step(graph, device, plan, estimates(device, found),
                [&](std::size_t s, const StepCost& cost) { kernels[s] = cost.beside; });
  return kernels;
}

void allow_tf32(const Graph& model, const Device& device, FusionPlan& plan) {
  const Graph& graph = planned_graph(model, plan);
  require_tf32(device);
  const auto again = [&](const Graph& entry, FusionPlan& of) {
    of.tf32 = true;
    predict(entry, device, of, evaluations(entry.entry_computation(), of));
    add_control(entry, device, of, plan.computations);
  };
  for (ComputationPlan& part : plan.computations) again(entered(graph, part.computation), part.plan);
  again(graph, plan);
}

}  // namespace stitchwork
