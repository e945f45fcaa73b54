#include "analysis/explain/statistics.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>

#include "analysis/facts/facts.h"
#include "analysis/plan/control_flow.h"
#include "analysis/planners/planner.h"
#include "analysis/schedule/plain_mapping.h"

namespace stitchwork {

// Found by argument-dependent lookup from control_cost, so in no unnamed namespace.
static Shares operator+(Shares a, const Shares& b) {
  a.memory_kernels += b.memory_kernels;
  a.library_calls += b.library_calls;
  a.memory_us += b.memory_us;
  a.library_us += b.library_us;
  return a;
}
static Shares operator*(std::int64_t times, Shares a) {
  a.memory_kernels *= times;
  a.library_calls *= times;
  a.memory_us *= static_cast<double>(times);
  a.library_us *= static_cast<double>(times);
  return a;
}
static bool operator<(const Shares& a, const Shares& b) {
  return a.memory_us + a.library_us < b.memory_us + b.library_us;
}

namespace {

double share(double part, double rest) { return part + rest > 0 ? part / (part + rest) : 0; }

Shares own_shares(const Computation& computation, const FusionPlan& plan,
                  const std::map<ComputationId, Shares>& parts) {
  Shares total;
  for (const PlanStep& step : plan.steps) {
    if (step.once) continue;
    if (step.kind == StepKind::kControl) {
      const Node& node = computation.node(step.nodes.at(0));
      total = total + control_cost(node, step.trips,
                                   [&](std::size_t i) { return parts.at(node.attrs.computations[i]); });
      continue;
    }
    const bool call = step.kind == StepKind::kLibrary;
    total.library_calls += call;
    total.memory_kernels += step.kind == StepKind::kKernel;
    (call ? total.library_us : total.memory_us) += step.predicted_us;
  }
  return total;
}

/// The entry and what its loops and branches run.
std::vector<ComputationId> running(const Graph& graph) {
  std::vector<ComputationId> ids = run_by_control(graph);
  ids.push_back(graph.entry);
  return ids;
}

void add_irregular(const Computation& computation, const Device& device,
                   std::vector<IrregularReduction>& found) {
  for (const Node& node : computation.nodes) {
    if (plan_role(node) != PlanRole::kMemory || def(node.op).cls != OpClass::kReduce) continue;
    const ReductionSize shape = reduction_size(computation, node.id);
    if (!shape.row_reduce || shape.rows == 0 || shape.cols < 2) continue;
    const int block = block_threads(block_a_row_mapping(shape.rows, shape.cols, shape.cols).mapping);
    IrregularReduction reduction{node.name, shape.rows, shape.cols, block, "", ""};
    const int resident = std::min(device.max_blocks_per_sm, device.max_threads_per_sm() / block);
    const std::int64_t at_once = std::int64_t{resident} * device.sms;
    if (resident * block < device.max_threads_per_sm() && resident == device.max_blocks_per_sm) {
      reduction.what = "small blocks";
      reduction.why = fmt::format("{} blocks of {} threads, {} of an SM's {}", resident, block,
                                  resident * block, device.max_threads_per_sm());
    } else if (shape.rows < at_once) {
      reduction.what = "few blocks";
      reduction.why =
          fmt::format("{} blocks of {} threads, {} holds {} at once", shape.rows, block, device.id, at_once);
    } else {
      continue;
    }
    found.push_back(std::move(reduction));
  }
}

}  // namespace

double Shares::kernel_share() const {
  return share(static_cast<double>(memory_kernels), static_cast<double>(library_calls));
}
double Shares::time_share() const { return share(memory_us, library_us); }

Shares shares(const Graph& graph, const Device& device) {
  const FusionPlan plan = make_plan(graph, device, "unfused");
  std::map<ComputationId, Shares> parts;
  for (const ComputationPlan& part : plan.computations)
    parts[part.computation] = own_shares(graph.computation(part.computation), part.plan, parts);
  return own_shares(graph.entry_computation(), plan, parts);
}

std::vector<IrregularReduction> irregular_reductions(const Graph& graph, const Device& device) {
  std::vector<IrregularReduction> found;
  for (const ComputationId id : running(graph)) add_irregular(graph.computation(id), device, found);
  return found;
}

std::map<int, int> size_histogram(const Graph& graph) {
  std::map<int, int> histogram;
  for (const ComputationId id : running(graph))
    for (const Node& node : graph.computation(id).nodes)
      if (plan_role(node) == PlanRole::kMemory)
        ++histogram[std::bit_width(static_cast<std::uint64_t>(node.shape.elements_count())) - 1];
  return histogram;
}

}  // namespace stitchwork
