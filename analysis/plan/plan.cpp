#include "analysis/plan/plan.h"

#include <fmt/format.h>

#include <sstream>

#include "analysis/plan/mapping.h"
#include "core/base/at.h"
#include "core/base/error.h"
#include "core/base/format.h"
#include "core/base/sorted.h"
#include "core/substitute/derivation.h"

namespace stitchwork {

std::string_view name(Scheme scheme) {
  switch (scheme) {
    case Scheme::kIndependent:
      return "independent";
    case Scheme::kLocal:
      return "local";
    case Scheme::kRegional:
      return "regional";
    case Scheme::kResident:
      return "resident";
    case Scheme::kGlobal:
      return "global";
    case Scheme::kRecomputed:
      return "recomputed";
  }
  SW_CHECK(false, "scheme number {}", static_cast<int>(scheme));
}

std::string_view name(StepKind kind) {
  switch (kind) {
    case StepKind::kKernel:
      return "kernel";
    case StepKind::kLibrary:
      return "library";
    case StepKind::kCopy:
      return "copy";
    case StepKind::kMemset:
      return "memset";
    case StepKind::kControl:
      return "control";
  }
  SW_CHECK(false, "step kind number {}", static_cast<int>(kind));
}

Scheme scheme_in_phase(const KernelPlan& kernel, NodeId op) {
  const auto near = kernel.in_phase.find(op);
  if (near != kernel.in_phase.end()) return near->second;
  const Scheme scheme = kernel.schemes.at(op);
  return scheme == Scheme::kResident ? Scheme::kLocal : scheme;
}

bool reads_shared(const KernelPlan& kernel, NodeId op, NodeId reader) {
  const auto made = kernel.levels.find(op), read = kernel.levels.find(reader);
  if (made == kernel.levels.end() || read == kernel.levels.end() || made->second != read->second)
    return false;
  return kernel.schemes.contains(op) && scheme_in_phase(kernel, op) == Scheme::kRegional;
}

std::string scheme_text(const KernelPlan& kernel, NodeId op) {
  const auto near = kernel.in_phase.find(op);
  const std::string_view scheme = name(kernel.schemes.at(op));
  return near == kernel.in_phase.end() ? std::string(scheme)
                                       : fmt::format("{} ({} in its phase)", scheme, name(near->second));
}

namespace {

std::string op_name(const Computation& computation, NodeId node) {
  return node == kNoNode ? "workspace" : computation.node(node).name;
}

std::string slots_text(const Computation& computation, const std::vector<MemorySlot>& slots) {
  std::string text;
  for (const MemorySlot& slot : slots)
    text += fmt::format(" {}@{}+{}", op_name(computation, slot.op), slot.offset, slot.bytes);
  return text;
}

std::string group_text(const Computation& computation, const KernelPlan& kernel, const Group& group) {
  std::string text = fmt::format("  group {}", computation.node(group.dominant).name);
  for (NodeId sub : group.sub_dominants) text += " + " + computation.node(sub).name;
  if (group.lane != 0) text += fmt::format(" (lane {} from block {})", group.lane, group.deal.first_block);
  text += fmt::format("\n    {}\n", to_text(group.mapping, group.deal));
  for (NodeId op : group.across)
    text +=
        fmt::format("    {} across the rows, {} partials\n", computation.node(op).name, group.deal.takers);
  for (NodeId op : group.one_pass)
    text += fmt::format("    {} in the pass of an earlier reduction\n", computation.node(op).name);
  for (NodeId op : group.ops)
    text += fmt::format("    {} {} level {}\n", computation.node(op).name, scheme_text(kernel, op),
                        kernel.levels.at(op));
  return text;
}

std::string code_text(const Computation& computation, const KernelPlan& kernel) {
  const KernelCode& code = *kernel.code;
  std::string text = fmt::format("  {} of {}", code.entry, code.module);
  if (!code.kind.empty()) text += fmt::format(", {} {}", code.kind, code.instruction);
  if (code.product) text += ", with a matrix product";
  text += "\n";
  for (const NodeId op : kernel.ops)
    text += fmt::format("    {}{}\n", computation.node(op).name,
                        kernel.schemes.at(op) == Scheme::kRecomputed ? " recomputed" : "");
  for (const std::string& name : code.not_linked_to) text += fmt::format("    not linked: {}\n", name);
  return text;
}

std::string kernel_text(const Computation& computation, const KernelPlan& kernel) {
  const KernelLaunch& launch = kernel.launch;
  std::string text =
      fmt::format("kernel {} {}: grid {}, block {}", kernel.id, kernel.name, launch.grid, launch.block);
  if (launch.shared_bytes > 0) text += fmt::format(", shared {} bytes", launch.shared_bytes);
  if (launch.scratch_bytes > 0) text += fmt::format(", scratch {} bytes", launch.scratch_bytes);
  if (launch.register_bound > 0)
    text += fmt::format(", at most {} registers, {} an SM, {} a wave", launch.register_bound,
                        counted(launch.blocks_per_sm, "block"), launch.blocks_per_wave);
  if (launch.grid_barriers > 0) text += ", " + counted(launch.grid_barriers, "grid barrier");
  if (launch.cluster > 1) text += fmt::format(", clusters of {}", launch.cluster);
  text += "\n";
  if (kernel.code) text += code_text(computation, kernel);
  for (const Group& group : kernel.groups) text += group_text(computation, kernel, group);
  text += "  outputs";
  for (NodeId op : kernel.outputs) text += " " + computation.node(op).name;
  text += "\n";
  if (!kernel.shared.empty()) text += "  shared" + slots_text(computation, kernel.shared) + "\n";
  for (const Residence& r : kernel.resident)
    text += fmt::format("  resident {} with the threads of {} from level {}: {} bytes {}\n",
                        computation.node(r.op).name, computation.node(r.group).name, r.level, r.bytes,
                        r.shared ? fmt::format("of shared memory @{}", r.offset) : "of registers a thread");
  for (const Tile& tile : kernel.tiles)
    text += fmt::format("  tile of {} in level {} for the group of {}: {} bytes of shared memory @{}\n",
                        computation.node(tile.op).name, tile.level, computation.node(tile.group).name,
                        tile.bytes, tile.offset);
  if (!kernel.shrunk.empty()) {
    text += "  computed by their readers for want of shared memory:";
    for (NodeId op : kernel.shrunk) text += " " + computation.node(op).name;
    text += "\n";
  }
  if (!kernel.scratch.empty()) text += "  scratch" + slots_text(computation, kernel.scratch) + "\n";
  return text;
}

std::string step_text(const Computation& computation, const PlanStep& step) {
  std::string text = fmt::format("  {} {}", name(step.kind), step.id);
  if (step.kind == StepKind::kLibrary)
    for (NodeId op : step.nodes) text += " " + std::string(def(computation.node(op).op).name);
  if (!step.variant.empty()) text += " by " + step.variant;
  if (step.kind == StepKind::kControl) {
    const Node& node = computation.node(step.nodes.at(0));
    text += fmt::format(" {}", def(node.op).name);
    if (node.op == Op::kWhile)
      text += step.trips ? fmt::format(", {} trips", *step.trips) : ", trips unknown (counted once)";
  }
  if (step.stream != 0) text += fmt::format(" stream {}", step.stream);
  if (step.once) text += " once";
  for (int wait : step.waits) text += fmt::format(" waits {}", wait);
  return text + "\n";
}

}  // namespace

std::string to_text(const PlanCounts& counts) {
  const std::string products =
      counts.product_kernels > 0 ? ", " + counted(counts.product_kernels, "kernel") + " with products" : "";
  return fmt::format("{}{}, {}, {} {}, {}", counted(counts.memory_kernels, "memory kernel"), products,
                     counted(counts.library_calls, "library call"), counts.copies,
                     counts.copies == 1 ? "copy" : "copies", counted(counts.memsets, "memset"));
}

const Graph& planned_graph(const Graph& model, const FusionPlan& plan) {
  return plan.rewritten == nullptr ? model : plan.rewritten->graph;
}

std::string times_method(const FusionPlan& plan) {
  return plan.peer == nullptr ? "modelled" : plan.peer->simulated ? "simulated" : "";
}

const Graph& model_graph(const Graph& graph, const FusionPlan& plan) {
  return plan.rewritten == nullptr ? graph : *plan.rewritten->model;
}

NodeId planned_op(const FusionPlan& plan, NodeId op) {
  if (plan.rewritten == nullptr) return op;
  const rewriting::Origins& origins = plan.rewritten->origins[at(plan.rewritten->graph.entry)];
  if (const NodeId now = origins.now[at(op)]; now != kNoNode) return now;
  for (std::size_t i = origins.of.size(); i-- > 0;)
    if (contains_sorted(origins.of[i], op)) return static_cast<NodeId>(i);
  return kNoNode;
}

std::vector<NodeId> model_ops(const FusionPlan& plan, NodeId op) {
  if (plan.rewritten == nullptr) return {op};
  return plan.rewritten->origins[at(plan.rewritten->graph.entry)].of[at(op)];
}

std::vector<bool> once_kernels(const FusionPlan& plan) {
  std::vector<bool> once(plan.kernels.size());
  for (const PlanStep& step : plan.steps)
    if (step.kind == StepKind::kKernel) once[static_cast<std::size_t>(step.kernel)] = step.once;
  return once;
}

std::string to_text(const Graph& model, const FusionPlan& plan) {
  const Graph& graph = planned_graph(model, plan);
  const Computation& computation = graph.entry_computation();
  std::string text = fmt::format("plan of {} for {} by {}\n", graph.name, plan.device, plan.planner);
  for (const auto& [knob, value] : plan.options) text += fmt::format("option {}={}\n", knob, value);
  if (!plan.library.empty()) text += fmt::format("option library={}\n", plan.library);
  if (plan.tf32) text += "library products may round f32 operands to TF32\n";
  if (!plan.weights.empty())
    text += fmt::format("weights: {}\n", counted(std::ssize(plan.weights), "parameter"));
  for (const Edit& edit : plan.edits) text += fmt::format("override {}\n", to_text(edit));
  if (plan.peer != nullptr) text += fmt::format("made by {}: {}\n", plan.peer->title, plan.peer->dump);
  if (plan.rewritten != nullptr) {
    std::istringstream steps(rewriting::to_text(plan.rewritten->steps));
    for (std::string step; std::getline(steps, step);) text += fmt::format("rewritten by {}\n", step);
  }
  text += to_text(plan.counts) + "\n";
  text += "steps\n";
  for (const PlanStep& step : plan.steps) text += step_text(computation, step);
  for (const KernelPlan& kernel : plan.kernels) text += kernel_text(computation, kernel);
  if (plan.peer != nullptr)
    for (const auto& [op, why] : plan.peer->gone) text += fmt::format("no step has {}: {}\n", op, why);
  for (const ComputationPlan& part : plan.computations) {
    const Computation& inner = graph.computation(part.computation);
    text += fmt::format("computation {}\nsteps\n", inner.name);
    for (const PlanStep& step : part.plan.steps) text += step_text(inner, step);
    for (const KernelPlan& kernel : part.plan.kernels) text += kernel_text(inner, kernel);
  }
  return text;
}

}  // namespace stitchwork
