#include "analysis/explain/advise.h"

#include <algorithm>
#include <map>
#include <set>

#include "analysis/explain/boundaries.h"
#include "analysis/plan/assemble.h"
#include "analysis/plan/constraints.h"
#include "core/base/error.h"
#include "core/base/sorted.h"

namespace stitchwork {
namespace {

/// A kernel reads what another writes.
struct DramEdge {
  StepBoundary at;
  std::size_t from = 0, to = 0;  ///< kernels
  std::int64_t bytes = 0;
};

/// Most bytes first.
std::vector<DramEdge> find_edges(const Graph& graph, const FusionPlan& plan) {
  const std::vector<StepBoundary> all = boundaries(graph, plan);
  std::map<NodeId, int> reads;  // by any step; the result reads too
  for (const StepBoundary& boundary : all) ++reads[boundary.value];
  const auto kernel = [&](int step) {
    return step < 0 ? -1 : plan.steps[static_cast<std::size_t>(step)].kernel;
  };
  std::vector<DramEdge> edges;
  for (const StepBoundary& at : all) {
    if (kernel(at.from) < 0 || kernel(at.to) < 0) continue;
    const std::int64_t bytes = graph.entry_computation().node(at.value).shape.byte_size();
    edges.push_back({at, static_cast<std::size_t>(kernel(at.from)), static_cast<std::size_t>(kernel(at.to)),
                     reads.at(at.value) == 1 ? 2 * bytes : bytes});
  }
  std::stable_sort(edges.begin(), edges.end(),
                   [](const DramEdge& a, const DramEdge& b) { return a.bytes > b.bytes; });
  return edges;
}

/// What the edge costs: its bytes at the sustained bandwidth, and a launch.
double edge_us(const Device& device, const DramEdge& edge) {
  return static_cast<double>(edge.bytes) / (device.dram_gb_s * device.dram_efficiency * 1e3) +
         device.launch_us + device.launch_gap_us;
}

/// The merge of all of both kernels that lies on paths through the edge: from the first op the value needs to
/// the last one that needs its reader. Where a limit cut a kernel, merging the edge alone only moves the cut.
Edit whole_merge(const Computation& computation, const FusionPlan& plan, const DramEdge& edge) {
  const KernelPlan &from = plan.kernels[edge.from], &to = plan.kernels[edge.to];
  std::set<NodeId> needed{edge.at.value}, reached{edge.at.reader};
  for (auto op = from.ops.rbegin(); op != from.ops.rend(); ++op) {
    if (!needed.contains(*op)) continue;
    for (const NodeId operand : computation.node(*op).operands)
      if (contains_sorted(from.ops, operand) && def(computation.node(operand).op).instructions > 0)
        needed.insert(operand);
  }
  for (const NodeId op : to.ops) {
    const auto& operands = computation.node(op).operands;
    if (std::any_of(operands.begin(), operands.end(), [&](NodeId id) { return reached.contains(id); }))
      reached.insert(op);
  }
  return {EditKind::kMerge,
          {computation.node(*needed.begin()).name, computation.node(*reached.rbegin()).name},
          "",
          0};
}

void try_override(const Graph& graph, const Device& device, std::string_view planner, PlanOptions options,
                  Advice& advice) {
  options.edits.push_back(advice.edit);
  options.record_decisions = false;
  advice.after_us.reset();
  advice.refusal.clear();
  try {
    advice.after_us = make_plan(graph, device, planner, options).predicted_us;
  } catch (const Error& error) {  // that it is refused is an answer
    advice.refusal = error.message();
  }
}

/// The rules that a kernel's size breaks.
bool is_limit(std::string_view rule) { return rule == "astitch.max-ops" || rule == "astitch.kernel-limits"; }

}  // namespace

std::vector<Advice> advise(const Graph& model, const Device& device, std::string_view planner,
                           const PlanOptions& options, std::size_t count) {
  PlanOptions recorded = options;
  recorded.record_decisions = true;
  const FusionPlan plan = make_plan(model, device, planner, recorded);
  const Graph& graph = planned_graph(model, plan);
  const Computation& computation = graph.entry_computation();
  const PlanView view(graph, plan);
  std::vector<Advice> result;
  std::set<std::pair<std::size_t, std::size_t>> seen;  // one edge of two kernels is enough: they merge or not
  for (const DramEdge& edge : find_edges(graph, plan)) {
    if (result.size() == count) break;
    if (!seen.insert({edge.from, edge.to}).second) continue;
    const KernelPlan &from = plan.kernels[edge.from], &to = plan.kernels[edge.to];
    Advice advice;
    advice.producer = computation.node(edge.at.value).name;
    advice.consumer = computation.node(edge.at.reader).name;
    advice.from_kernel = from.id + " " + from.name;
    advice.to_kernel = to.id + " " + to.name;
    advice.bytes = edge.bytes;
    advice.gain_us = edge_us(device, edge);
    const Verdict block = why_apart(view, plan, edge.at).verdict;
    advice.rule = block.rule;
    advice.why = block.why;
    advice.edit = {EditKind::kMerge, {advice.producer, advice.consumer}, "", 0};
    advice.before_us = plan.predicted_us;
    try_override(graph, device, planner, options, advice);
    if (!advice.gains() && is_limit(advice.rule)) {
      Advice whole = advice;
      whole.edit = whole_merge(computation, plan, edge);
      try_override(graph, device, planner, options, whole);
      if (whole.gains()) advice = std::move(whole);
    }
    result.push_back(std::move(advice));
  }
  return result;
}

}  // namespace stitchwork
