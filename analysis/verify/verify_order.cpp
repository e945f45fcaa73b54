#include <fmt/ranges.h>

#include <algorithm>
#include <unordered_map>
#include <unordered_set>

#include "analysis/facts/facts.h"
#include "analysis/facts/once.h"
#include "analysis/plan/assemble.h"
#include "analysis/plan/control_flow.h"
#include "analysis/plan/epilogue.h"
#include "analysis/plan/step_order.h"
#include "analysis/plan/traffic.h"
#include "analysis/verify/verify_internal.h"
#include "core/base/sorted.h"

namespace stitchwork::verification {
namespace {

bool is_call(const Node& node) {
  const PlanRole role = plan_role(node);
  return (role == PlanRole::kLibrary || role == PlanRole::kOpaque) && node.op != Op::kConcatInPlace;
}

std::vector<std::string> names_of(const Computation& computation, std::span<const NodeId> ops) {
  std::vector<std::string> names;
  for (const NodeId op : ops) names.push_back(computation.node(op).name);
  return names;
}

bool valid_kernel(const FusionPlan& plan, const PlanStep& step) {
  return step.kind == StepKind::kKernel && step.kernel >= 0 &&
         step.kernel < static_cast<int>(plan.kernels.size());
}

void check_steps(const Computation& computation, const FusionPlan& plan, Report& report) {
  std::vector<int> launched(plan.kernels.size(), 0);
  std::unordered_map<NodeId, int> called;
  for (std::size_t s = 0; s < plan.steps.size(); ++s) {
    const PlanStep& step = plan.steps[s];
    if (step.kind == StepKind::kKernel) {
      if (!valid_kernel(plan, step))
        report.add("step", "step {} launches kernel number {} of {}", s, step.kernel, plan.kernels.size());
      else
        ++launched[static_cast<std::size_t>(step.kernel)];
    } else if (step.nodes.empty()) {
      report.add("step", "step {} ({}) names no op", s, step.id);
    }
    // Of several ops a call is only as a product with its epilogue; a compiler's own has what it says.
    const bool several = results_of(plan, step).size() < step.nodes.size();
    if (several && !epilogue_of(computation, step.nodes))
      report.add("step", "step {} ({}): no library call computes {} in one", s, step.id,
                 fmt::join(names_of(computation, step.nodes), ", "));
    for (NodeId op : std::span<const NodeId>(step.nodes).first(several ? 1 : step.nodes.size())) {
      const Node& node = computation.node(op);
      if (step.kind == StepKind::kLibrary && (!is_call(node) || is_control(node)))
        report.add("step", "step {}: {} ({}) is no library call", s, node.name, def(node.op).name);
      if (step.kind == StepKind::kControl && !is_control(node))
        report.add("step", "step {}: {} ({}) is no loop or branch", s, node.name, def(node.op).name);
      if (step.kind == StepKind::kCopy && node.op != Op::kCopy)
        report.add("step", "step {}: {} ({}) is no copy", s, node.name, def(node.op).name);
      if (step.kind != StepKind::kMemset) ++called[op];
    }
    for (int wait : step.waits)
      if (wait < 0 || wait >= static_cast<int>(s))
        report.add("step", "step {} ({}) waits for step {}, which is not before it", s, step.id, wait);
    if (!step.variant.empty() &&
        (step.kind != StepKind::kLibrary || computation.node(step.nodes.front()).op != Op::kDot))
      report.add("step", "step {} ({}) has the kernel {} of a product, which it is not", s, step.id,
                 step.variant);
    if (step.stream < 0) report.add("step", "step {} ({}) is on stream {}", s, step.id, step.stream);
  }
  for (std::size_t k = 0; k < launched.size(); ++k)
    if (launched[k] != 1)
      report.add("step", "kernel {} is launched {} times, not once", plan.kernels[k].id, launched[k]);
  std::unordered_set<NodeId> in_kernels;  // products that need no call
  for (const KernelPlan& kernel : plan.kernels) {
    in_kernels.insert(kernel.ops.begin(), kernel.ops.end());
    for (const NodeId op : kernel.outputs)
      if (is_call(computation.node(op)) && called[op] > 0)
        report.add("output", "{} is called, and kernel {} leaves it in memory", computation.node(op).name,
                   kernel.id);
  }
  for (const Node& node : computation.nodes) {
    if (!is_call(node) || called[node.id] == 1) continue;
    if (called[node.id] == 0 && in_kernels.contains(node.id)) continue;
    report.add("missing-step", "{} ({}) is called {} times, not once", node.name, def(node.op).name,
               called[node.id]);
  }
}

void check_memsets(const Computation& computation, const FusionPlan& plan, Report& report) {
  std::unordered_set<NodeId> cleared;
  for (const PlanStep& step : plan.steps) {
    if (step.kind == StepKind::kMemset) cleared.insert(step.nodes.begin(), step.nodes.end());
    if (!valid_kernel(plan, step)) continue;
    const KernelPlan& kernel = plan.kernels[static_cast<std::size_t>(step.kernel)];
    for (const Group& group : kernel.groups) {
      if (!combines_atomically(group.mapping)) continue;
      for (NodeId op : materialised(group))
        if (is_reduction(computation.node(op)) && kernel.levels.at(op) == 0 && !cleared.contains(op))
          report.add("memset", "kernel {} accumulates {} by atomics, but no memset step before it clears it",
                     kernel.id, computation.node(op).name);
    }
  }
}

/// Steps of other streams that are read from or overwritten are waited for.
void check_waits(const Graph& graph, const FusionPlan& plan, Report& report) {
  if (!uses_streams(plan)) return;
  const std::vector<std::vector<int>> open = unordered_dependences(plan, step_dependences(graph, plan));
  for (std::size_t s = 0; s < open.size(); ++s)
    for (const int p : open[s]) {
      const PlanStep &step = plan.steps[s], &other = plan.steps[static_cast<std::size_t>(p)];
      report.add("wait",
                 "step {} ({}, stream {}) does not wait for step {} ({}, stream {}), with which it has "
                 "a buffer in common",
                 s, step.id, step.stream, p, other.id, other.stream);
    }
}

}  // namespace

void check_coverage(const Graph& graph, const FusionPlan& plan, Report& report) {
  const Computation& computation = graph.entry_computation();
  check_steps(computation, plan, report);
  check_memsets(computation, plan, report);

  std::unordered_map<NodeId, std::string> makers;  // buffer -> kernel or step
  std::unordered_set<NodeId> computed;
  std::vector<std::pair<NodeId, std::string>> reads;  // buffer, reader
  for (const KernelPlan& kernel : plan.kernels) {
    computed.insert(kernel.ops.begin(), kernel.ops.end());
    for (NodeId input : kernel_reads(graph, kernel)) reads.emplace_back(input, "kernel " + kernel.id);
    for (NodeId op : kernel.outputs)
      if (const auto [at, fresh] = makers.emplace(op, kernel.id); !fresh)
        report.add("output", "{} is an output of {} and of {}", computation.node(op).name, at->second,
                   kernel.id);
  }
  for (const PlanStep& step : plan.steps) {
    if (step.kind == StepKind::kKernel || step.kind == StepKind::kMemset) continue;
    computed.insert(step.nodes.begin(), step.nodes.end());
    for (const NodeId op : results_of(plan, step)) makers.emplace(op, step.id);
    for (const NodeId input : library_inputs(computation, step.nodes)) reads.emplace_back(input, step.id);
  }
  for (NodeId result : values_read(computation, computation.root)) reads.emplace_back(result, "the result");

  std::unordered_set<NodeId> missing;
  for (const auto& [buffer, reader] : reads) {
    const Node& node = computation.node(buffer);
    const PlanRole role = plan_role(node);
    if (role == PlanRole::kSource || role == PlanRole::kAlias || makers.contains(buffer)) continue;
    if (is_call(node) && !computed.contains(buffer)) continue;  // reported as a missing step
    if (!missing.insert(buffer).second) continue;
    if (computed.contains(buffer))
      report.add("output", "{} reads {}, which is computed but is no kernel's output", reader, node.name);
    else
      report.add("missing-op", "{} reads {} ({}), which no step computes", reader, node.name,
                 def(node.op).name);
  }
}

/// Steps done once come before all of a run, make what depends on weights alone, and read nothing else.
void check_once(const Graph& graph, const FusionPlan& plan, Report& report) {
  const Computation& computation = graph.entry_computation();
  for (const std::string& weight : plan.weights)
    if (const NodeId id = computation.find(weight);
        id == kNoNode || computation.node(id).op != Op::kParameter)
      report.add("once", "{} is no parameter, and the plan takes it for a weight", weight);
  if (std::ranges::none_of(plan.steps, &PlanStep::once)) return;
  const std::vector<bool> once = once_values(computation, plan.weights);
  const std::vector<NodeId> results = buffers_read(computation, computation.root);
  bool run = false;  // whether a step of a run has come
  for (const PlanStep& step : plan.steps) {
    run = run || !step.once;
    if (!step.once) continue;
    if (run) report.add("once", "step {} is done once, behind steps of a run", step.id);
    const Traffic moved = traffic(graph, plan, step);
    for (const std::vector<NodeId>* list : {&moved.reads, &moved.writes})
      for (const NodeId owner : *list)
        if (once.empty() || !once[static_cast<std::size_t>(owner)])
          report.add("once", "step {} is done once, but {} does not depend on weights alone", step.id,
                     computation.node(owner).name);
    for (const NodeId owner : moved.writes)
      if (contains_sorted(results, owner))
        report.add("once", "step {} is done once, but {} is a result", step.id, computation.node(owner).name);
  }
}

void check_order(const Graph& graph, const FusionPlan& plan, Report& report) {
  check_once(graph, plan, report);
  check_waits(graph, plan, report);
  const Computation& computation = graph.entry_computation();
  std::vector<Traffic> steps;
  std::unordered_map<NodeId, int> maker;
  for (std::size_t s = 0; s < plan.steps.size(); ++s) {
    steps.push_back(traffic(graph, plan, plan.steps[s]));
    // An array that it updates in place is the loop's, and nobody fills it before.
    std::erase_if(steps.back().reads, [&](NodeId id) { return contains_sorted(steps.back().writes, id); });
    // The last to fill it: a kernel that accumulates comes after the memset.
    for (NodeId op : steps.back().writes) maker.insert_or_assign(op, static_cast<int>(s));
  }
  bool ordered = true;
  for (std::size_t s = 0; s < steps.size() && ordered; ++s)
    for (NodeId buffer : steps[s].reads) {
      const auto made = maker.find(buffer);
      if (made != maker.end() && made->second >= static_cast<int>(s)) ordered = false;
    }
  if (ordered) return;

  // A cycle, or only a wrong order? Depth-first over who reads whom; the path names the cycle.
  enum class Mark : std::uint8_t { kNew, kOpen, kDone };
  std::vector<Mark> marks(steps.size(), Mark::kNew);
  struct Frame {
    int step;
    std::size_t next;
  };
  for (std::size_t start = 0; start < steps.size(); ++start) {
    std::vector<Frame> path{{static_cast<int>(start), 0}};
    if (marks[start] != Mark::kNew) continue;
    marks[start] = Mark::kOpen;
    while (!path.empty()) {
      Frame& top = path.back();
      const std::vector<NodeId>& reads = steps[static_cast<std::size_t>(top.step)].reads;
      if (top.next == reads.size()) {
        marks[static_cast<std::size_t>(top.step)] = Mark::kDone;
        path.pop_back();
        continue;
      }
      const auto made = maker.find(reads[top.next++]);
      if (made == maker.end()) continue;
      Mark& mark = marks[static_cast<std::size_t>(made->second)];
      if (mark == Mark::kNew) {
        mark = Mark::kOpen;
        path.push_back({made->second, 0});
      } else if (mark == Mark::kOpen) {
        std::string told;
        std::size_t from = path.size();
        while (from > 0 && path[from - 1].step != made->second) --from;
        for (std::size_t i = from == 0 ? 0 : from - 1; i < path.size(); ++i)
          told += plan.steps[static_cast<std::size_t>(path[i].step)].id + " needs ";
        told += plan.steps[static_cast<std::size_t>(made->second)].id;
        report.add("cycle", "the steps depend on each other in a cycle: {}", told);
        return;
      }
    }
  }
  for (std::size_t s = 0; s < steps.size(); ++s)
    for (NodeId buffer : steps[s].reads) {
      const auto made = maker.find(buffer);
      if (made == maker.end() || made->second < static_cast<int>(s)) continue;
      report.add("order", "step {} ({}) reads {}, which step {} ({}) fills only later", s, plan.steps[s].id,
                 computation.node(buffer).name, made->second,
                 plan.steps[static_cast<std::size_t>(made->second)].id);
    }
}

}  // namespace stitchwork::verification
