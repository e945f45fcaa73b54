#include "analysis/plan/plan_memory.h"

#include <algorithm>
#include <map>
#include <unordered_map>

#include "analysis/facts/facts.h"
#include "analysis/plan/assemble.h"
#include "analysis/plan/control_flow.h"
#include "analysis/plan/step_order.h"
#include "core/index/buffer.h"

namespace stitchwork {
namespace {

/// `parts`: what loops and branches of the whole plan run.
PlanMemory memory_of(const Graph& graph, const FusionPlan& plan, const std::vector<ComputationPlan>& parts,
                     bool with_tuples);

/// Beside the plan's buffers, while the step runs.
std::int64_t bytes_beside(const Graph& graph, const FusionPlan& plan, const PlanStep& step,
                          const std::vector<ComputationPlan>& parts, bool with_tuples) {
  if (step.kind == StepKind::kKernel)
    return plan.kernels[static_cast<std::size_t>(step.kernel)].launch.scratch_bytes;
  if (step.kind != StepKind::kControl) return 0;
  std::int64_t most = 0;
  const std::vector<ComputationId>& run =
      graph.entry_computation().node(step.nodes.front()).attrs.computations;
  for (const ComputationPlan& part : parts)
    if (std::ranges::find(run, part.computation) != run.end())
      most = std::max(most,
                      memory_of(entered(graph, part.computation), part.plan, parts, with_tuples).peak_bytes);
  return most;
}

PlanMemory memory_of(const Graph& graph, const FusionPlan& plan, const std::vector<ComputationPlan>& parts,
                     bool with_tuples) {
  const Computation& computation = graph.entry_computation();
  PlanMemory memory;
  memory.buffers = buffer_lives(computation, plan, traffic_of_steps(graph, plan));
  if (!with_tuples)
    std::erase_if(memory.buffers,
                  [&](const BufferLife& b) { return computation.node(b.owner).shape.is_tuple; });
  std::ranges::stable_sort(memory.buffers, {}, &BufferLife::first);
  std::vector<std::int64_t> change(plan.steps.size() + 2, 0);
  for (const BufferLife& buffer : memory.buffers) {
    change[buffer.first] += buffer.bytes;
    change[buffer.last + 1] -= buffer.bytes;
  }
  std::vector<std::int64_t> beside;
  for (const PlanStep& step : plan.steps)
    beside.push_back(bytes_beside(graph, plan, step, parts, with_tuples));
  if (uses_streams(plan)) {
    std::map<int, std::int64_t> most;
    for (std::size_t s = 0; s < plan.steps.size(); ++s)
      most[plan.steps[s].stream] = std::max(most[plan.steps[s].stream], beside[s]);
    std::int64_t all = 0;
    for (const auto& [stream, bytes] : most) all += bytes;
    std::ranges::fill(beside, all);
  }
  std::int64_t now = 0;
  for (std::size_t s = 0; s < plan.steps.size(); ++s) {
    now += change[s];
    const PlanMemory::Step step{now, beside[s]};
    memory.steps.push_back(step);
    if (step.buffers + step.beside <= memory.peak_bytes) continue;
    memory.peak_bytes = step.buffers + step.beside;
    memory.peak_step = s;
  }
  return memory;
}

}  // namespace

std::vector<Traffic> traffic_of_steps(const Graph& graph, const FusionPlan& plan) {
  std::vector<Traffic> steps;
  steps.reserve(plan.steps.size());
  for (const PlanStep& step : plan.steps) steps.push_back(traffic(graph, plan, step));
  return steps;
}

std::vector<BufferLife> buffer_lives(const Computation& computation, const FusionPlan& plan,
                                     std::span<const Traffic> steps) {
  const std::vector<std::size_t> last = last_steps_beside(plan);
  std::map<NodeId, BufferLife> lives;
  for (std::size_t s = 0; s < steps.size(); ++s)
    for (const std::vector<NodeId>* list : {&steps[s].reads, &steps[s].writes})
      for (const NodeId storage : *list) {
        const NodeId owner = memory_of(computation, storage);
        BufferLife& life =
            lives
                .try_emplace(owner,
                             BufferLife{owner, buffer_shape(computation.node(owner)).byte_size(), s, s})
                .first->second;
        life.last = std::max(life.last, last[s]);
      }
  for (std::size_t s = 0; s < steps.size(); ++s)
    if (plan.steps[s].once)  // later runs find it there
      for (const NodeId storage : steps[s].writes) {
        BufferLife& life = lives.at(memory_of(computation, storage));
        life.last = std::max(life.last, steps.size() - 1);
      }
  for (const NodeId owner : buffers_read(computation, computation.root))
    if (const auto at = lives.find(memory_of(computation, owner)); at != lives.end())
      at->second.last = steps.size();
  std::vector<BufferLife> result;
  result.reserve(lives.size());
  for (const auto& [owner, life] : lives) result.push_back(life);
  return result;
}

PlanMemory plan_memory(const Graph& model, const FusionPlan& plan, bool with_tuples) {
  const Graph& graph = planned_graph(model, plan);
  PlanMemory memory = memory_of(graph, plan, plan.computations, with_tuples);
  const Computation& computation = graph.entry_computation();
  std::unordered_map<NodeId, BufferLife*> by_owner;
  for (BufferLife& buffer : memory.buffers) by_owner.emplace(buffer.owner, &buffer);
  for (const Node& node : computation.nodes) {
    const auto at = by_owner.find(memory_of(computation, node.id));
    if (at != by_owner.end() && at->first != node.id) at->second->aliases.push_back(node.id);
  }
  return memory;
}

std::string_view role_of_buffer(const Computation& computation, const PlanMemory& memory,
                                const BufferLife& buffer) {
  const Node& node = computation.node(buffer.owner);
  if (node.op == Op::kParameter) return "parameter";
  if (plan_role(node) == PlanRole::kSource) return "constant";
  if (plan_role(node) == PlanRole::kAlias) return "element";
  return buffer.last == memory.steps.size() ? "result" : "value";
}

}  // namespace stitchwork
