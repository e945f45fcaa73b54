#include "analysis/plan/loop_state.h"

#include <algorithm>
#include <map>

#include "analysis/facts/facts.h"
#include "analysis/plan/assemble.h"
#include "analysis/plan/control_flow.h"
#include "analysis/plan/plan_memory.h"
#include "analysis/plan/written_state.h"
#include "core/base/sorted.h"
#include "occupancy_model/timing.h"

namespace stitchwork {
namespace {

/// A buffer that a kernel or call of the computation fills and no tuple holds.
bool has_own_buffer(const Computation& computation, NodeId owner) {
  const Node& node = computation.node(owner);
  const PlanRole role = plan_role(node);
  return !node.shape.is_tuple &&
         (role == PlanRole::kMemory || role == PlanRole::kLibrary || role == PlanRole::kOpaque);
}

const Shape& shape_of(const Graph& graph, const PlanStep& step, int element) {
  const Node& loop = graph.entry_computation().node(step.nodes.front());
  return loop.shape.elements.at(static_cast<std::size_t>(element));
}

}  // namespace

std::vector<int> updated_in_place(const Graph& graph, const Node& loop) {
  std::vector<int> elements;
  const Graph body = entered(graph, loop.attrs.computations.at(1));
  for (const Node& node : body.entry_computation().nodes)
    if (node.attrs.updated != nullptr)
      elements.push_back(
          static_cast<int>(body.entry_computation().node(node.attrs.updated->op).attrs.tuple_index));
  std::ranges::sort(elements);
  return elements;
}

std::vector<int> copied_state(const Graph& graph, const FusionPlan& plan, const PlanStep& step) {
  const Computation& computation = graph.entry_computation();
  if (plan.peer != nullptr || step.kind != StepKind::kControl) return {};
  const Node& loop = computation.node(step.nodes.front());
  if (loop.op != Op::kWhile) return {};
  std::vector<int> copied = updated_in_place(graph, loop);
  std::erase_if(copied, [&](int element) { return contains_sorted(wholly_written(graph, loop), element); });
  const Node& state = computation.node(loop.operands.at(0));
  if (copied.empty() || state.op != Op::kTuple) return copied;
  std::map<NodeId, int> places;  // of the state, by owner
  for (const NodeId element : state.operands) ++places[storage_of(computation, element)];
  const auto at =
      static_cast<std::size_t>(std::ranges::find(plan.steps, step.id, &PlanStep::id) - plan.steps.begin());
  std::map<NodeId, std::size_t> last;
  for (const BufferLife& life : buffer_lives(computation, plan, traffic_of_steps(graph, plan)))
    last.emplace(life.owner, life.last);
  std::erase_if(copied, [&](int element) {
    const NodeId owner = storage_of(computation, state.operands[static_cast<std::size_t>(element)]);
    const auto life = last.find(owner);
    return has_own_buffer(computation, owner) && places.at(owner) == 1 && life != last.end() &&
           life->second == at;
  });
  return copied;
}

std::int64_t copied_state_bytes(const Graph& graph, const FusionPlan& plan, const PlanStep& step) {
  std::int64_t bytes = 0;
  for (const int element : copied_state(graph, plan, step))
    bytes += 2 * shape_of(graph, step, element).byte_size();
  return bytes;
}

double copied_state_us(const Graph& graph, const Device& device, const FusionPlan& plan,
                       const PlanStep& step) {
  double us = 0;
  for (const int element : copied_state(graph, plan, step))
    us += transfer_us(device, 2.0 * static_cast<double>(shape_of(graph, step, element).byte_size())) +
          device.launch_gap_us;
  return us;
}

}  // namespace stitchwork
