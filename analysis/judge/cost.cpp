#include "analysis/judge/cost.h"

#include <algorithm>

#include "analysis/facts/facts.h"
#include "analysis/judge/cost_internal.h"
#include "analysis/judge/cost_within.h"
#include "analysis/judge/read_again.h"
#include "analysis/plan/assemble.h"
#include "analysis/schedule/clusters.h"
#include "analysis/schedule/launch.h"
#include "core/base/error.h"
#include "core/base/sorted.h"
#include "occupancy_model/occupancy.h"

namespace stitchwork {
namespace costs {

KernelCounter::KernelCounter(const Graph& graph, const Device& device, const KernelPlan& kernel)
    : graph_(graph), computation_(graph.entry_computation()), device_(device), kernel_(kernel) {
  inside_.insert(kernel.ops.begin(), kernel.ops.end());
  outputs_.insert(kernel.outputs.begin(), kernel.outputs.end());
  multiplies_ = std::any_of(kernel.ops.begin(), kernel.ops.end(),
                            [&](NodeId op) { return is_product(computation_.node(op)); });
}

std::optional<KernelCost> KernelCounter::run(const KernelEvaluations& found, double most_us) {
  SW_CHECK(found.size() == kernel_.groups.size());
  for (std::size_t g = 0; g < found.size(); ++g) {
    count_group(kernel_.groups[g], found[g]);
    if (most_us < kNoLimit && least_us() > most_us) return std::nullopt;
  }
  count_dram();
  for (const auto& [op, evaluated] : evaluated_) {
    const std::int64_t elements = computation_.node(op).shape.elements_count();
    cost_.recomputed_elements += std::max<std::int64_t>(0, static_cast<std::int64_t>(evaluated) - elements);
  }
  finish();
  if (cost_.predicted_us > most_us) return std::nullopt;
  return cost_;
}

int KernelCounter::level_of(NodeId op) const {
  const auto it = kernel_.levels.find(op);
  return it == kernel_.levels.end() ? 0 : it->second;
}

int KernelCounter::blocks_per_sm() const {
  const KernelLaunch& launch = kernel_.launch;
  const int registers = launch.register_bound > 0 ? launch.register_bound : kAssumedRegisters;
  return occupancy(device_, launch.block, registers, launch.shared_bytes).blocks_per_sm;
}

ThreadWork& KernelCounter::now() {
  auto& work = phases_[level_].work;
  if (work.empty() || work.back().first != deal_) work.push_back({deal_, {}});
  return work.back().second;
}

void KernelCounter::count_group(const Group& group, const GroupEvaluations& found) {
  deal_ = group.deal;
  // A value is made in the phase of what asks for it.
  const int first_level = level_of(
      group.sub_dominants.empty() ? group.dominant : std::min(group.dominant, group.sub_dominants[0]));
  const double all_tasks = warp_tasks(group.deal);
  std::map<int, double> passes{{first_level, 1}};  // over a task; a value in shared memory ends one
  std::int64_t reductions = 0;
  std::map<int, ThreadLoads> loads;  // by phase
  const std::vector<int> steps = steps_of_values(graph_, kernel_, group, found);
  rows_in_l1_ = l1_holds(computation_, device_, kernel_, group, found, steps, blocks_per_sm());
  const Layout layout = layout_of(group);
  const Choices choices(computation_, group, found, layout);
  for (std::size_t v = 0; v < found.values.size(); ++v) {
    const Evaluation& e = found.values[v];
    level_ = level_of(e.root);
    passes.try_emplace(level_, 1);
    if (e.load)
      count_load(group, e, static_cast<int>(v), choices, steps[v] - 1, loads[level_]);
    else
      count_value(group, found, static_cast<int>(v), choices, steps[v]);
  }
  count_reads_once(group);
  for (NodeId op : materialised(group)) {
    const auto placed = found.placements->find(op);
    if (placed == found.placements->end()) continue;
    level_ = level_of(op);
    count_store(group, op, placed->second);
    reductions += reduces_cols(computation_, op, group);
    if (scheme_in_phase(kernel_, op) != Scheme::kRegional) continue;
    if (placed->second.coverage == Coverage::kFull || reduces_cols(computation_, op, group))
      passes[level_] += 1;  // that of a value of the row is a single warp's
    if (placed->second.coverage != Coverage::kRows) continue;
    // Every warp of the row reads it back.
    now().ldst_warp_instructions += all_tasks;
    now().shared_wavefronts += all_tasks;
  }
  level_ = first_level;
  for (const Residence& r : kernel_.resident) {
    if (!r.shared || r.group != group.dominant) continue;
    const auto placed = found.placements->find(r.op);
    if (placed != found.placements->end())
      count_kept(warp_accesses(placed->second.map, group.mapping, layout_of(group)));
  }
  now().cluster_barriers +=
      cluster_barriers(group.deal, reductions) * static_cast<double>(group.deal.blocks());
  for (const auto& [level, times] : passes) {
    level_ = level;
    now().warp_instructions += task_instructions(group, times) * all_tasks;
    count_step(group);
  }
  for (auto& [level, of_phase] : loads) {
    of_phase.together = loads_of_expressions(group, found, choices, level);
    count_in_flight(group, of_phase);
  }
  deal_.reset();
}

}  // namespace costs

/// A compiler's own kernel is not modelled: what its run gave, zeros without one.
static KernelCost simulated_cost(const KernelCode& code) {
  KernelCost cost;
  cost.dram_read_bytes = code.dram_bytes;
  if (!code.timed) return cost;
  cost.timed = *code.timed;
  cost.predicted_us = code.timed->time.total_us;
  return cost;
}

KernelCost kernel_cost(const Graph& graph, const Device& device, const KernelPlan& kernel) {
  if (kernel.code) return simulated_cost(*kernel.code);
  return kernel_cost(graph, device, kernel, evaluations(graph.entry_computation(), kernel));
}

KernelCost kernel_cost(const Graph& graph, const Device& device, const KernelPlan& kernel,
                       const KernelEvaluations& found) {
  if (kernel.code) return simulated_cost(*kernel.code);
  return costs::KernelCounter(graph, device, kernel).run(found);
}

std::optional<double> us_within(const Graph& graph, const Device& device, const KernelPlan& kernel,
                                const KernelEvaluations& found, double most_us) {
  const auto cost = costs::KernelCounter(graph, device, kernel).run(found, most_us);
  return cost ? std::optional(cost->predicted_us) : std::nullopt;
}

double wave_us(const Graph& graph, const Device& device, const KernelPlan& alone, std::int64_t blocks) {
  const KernelWork counted = kernel_cost(graph, device, alone).work;
  const auto tasks = static_cast<double>(std::max<std::int64_t>(1, alone.groups.at(0).deal.tasks));
  const double share = static_cast<double>(blocks) / tasks;
  KernelWork wave = counted;
  static_cast<ThreadWork&>(wave) = counted * share;
  wave.dram_sectors *= share;
  wave.grid_blocks = blocks;
  wave.busiest_sm = 1;
  wave.grid_barriers = 0;
  wave.phases = 1;
  return kernel_time(device, wave).total_us - device.launch_us;
}

}  // namespace stitchwork
