#include "runtime/program/dump_plan.h"

#include <algorithm>
#include <memory>
#include <optional>
#include <set>
#include <utility>

#include "analysis/facts/facts.h"
#include "analysis/plan/control_flow.h"
#include "core/base/at.h"
#include "core/base/error.h"
#include "core/base/sorted.h"
#include "runtime/program/dump_link.h"

namespace stitchwork {
namespace {

class DumpPlanner {
 public:
  DumpPlanner(const Dump& dump, const Graph& given, const Graph& model)
      : dump_(dump), given_(given), model_(model) {}

  FusionPlan run() {
    auto peer = std::make_shared<PeerPlan>();
    peer->dump = dump_.folder;
    peer->title = dump_.title();
    require_dump_of(dump_, given_, model_);
    if (!dump_.optimised.empty()) {
      linked_ = link_dump(dump_, given_, model_);
      peer->gone = linked_->gone;
      peer->own = linked_->own;
    }
    graph_ = linked_ ? &linked_->rewritten->graph : &model_;
    plan_steps(plan_, graph_->entry, 0, dump_.script.steps.size());
    if (!linked_) find_gone(*peer);
    count();
    for_each_plan([&](FusionPlan& plan, ComputationId id) {
      mark_again(plan);
      decide(plan, graph_->computation(id));
      plan.peer = peer;
      plan.device = device(dump_.device).id;
      plan.planner = dump_.planner();
    });
    for (const ComputationPlan& part : plan_.computations)
      plan_.decisions.insert(plan_.decisions.end(), part.plan.decisions.begin(), part.plan.decisions.end());
    plan_.model_path = model_.source;
    plan_.model_sha256 = model_.source_sha256;
    if (linked_) plan_.rewritten = linked_->finished();
    return std::move(plan_);
  }

 private:
  using Ops = LinkedDump::Ops;

  const Computation& entry() const { return graph_->entry_computation(); }

  bool is_computed(NodeId op) const {
    const Node& node = entry().node(op);
    return node.op != Op::kParameter && node.op != Op::kConstant;
  }

  /// Of those that loops run, callees first, and of the whole.
  template <typename Visit>
  void for_each_plan(Visit visit) {
    for (ComputationPlan& part : plan_.computations) visit(part.plan, part.computation);
    visit(plan_, graph_->entry);
  }

  /// Of a dump without an optimised module: ops of the model that the step names, by their own names or by
  /// the scopes of theirs that are one op's.
  Ops named_ops(const ScriptStep& step, std::vector<std::string>& unknown) const {
    Ops ops;
    for (const std::string& name : step.ops) {
      std::vector<NodeId> found;
      if (const NodeId op = entry().find(name); op != kNoNode)
        found.push_back(op);
      else
        for (const Node& node : entry().nodes)
          if (node.metadata.op_name == name) found.push_back(node.id);
      std::erase_if(found, [&](NodeId op) { return !is_computed(op); });
      if (found.empty()) unknown.push_back(name);
      for (const NodeId op : found) insert_sorted(ops.all, op);
    }
    const auto users = entry().users();
    for (const NodeId op : ops.all)
      if (op == entry().root ||
          std::ranges::any_of(users[at(op)], [&](NodeId user) { return !contains_sorted(ops.all, user); }))
        ops.given.push_back(op);
    if (ops.given.empty() && !ops.all.empty()) ops.given = {ops.all.back()};
    return ops;
  }

  /// The steps from `s` to `end`, one run of a computation.
  void plan_steps(FusionPlan& plan, ComputationId computation, std::size_t s, std::size_t end) {
    while (s < end) {
      if (next_loop_ == dump_.loops.size() || dump_.loops[next_loop_].first != s) {
        plan_step(plan, computation, s++);
        continue;
      }
      const DumpLoop& loop = dump_.loops[next_loop_++];
      const Node& node = loop_node(computation, loop);
      const ComputationId body = node.attrs.computations.at(1);
      PlanStep& step = plan.steps.emplace_back();
      step.kind = StepKind::kControl;
      step.id = fmt::format("control:{}", node.name);
      step.nodes = {node.id};
      step.trips = loop.trips;
      FusionPlan trip;
      plan_steps(trip, body, s, s + loop.steps);
      plan_.computations.push_back({body, std::move(trip)});
      s += loop.steps * static_cast<std::size_t>(loop.trips);
    }
  }

  const Node& loop_node(ComputationId id, const DumpLoop& loop) const {
    const Computation& computation = graph_->computation(id);
    if (linked_)
      for (const NodeId op : linked_->ops_of(id, loop.instruction).all)
        if (const Node& node = computation.node(op); node.op == Op::kWhile) return node;
    throw Error(dump_.script.file, 0, 0,
                fmt::format("its steps are of a loop {}, which the compiled module does not have there",
                            loop.instruction),
                "make the dump anew");
  }

  void plan_step(FusionPlan& plan, ComputationId computation, std::size_t s) {
    const ScriptStep& step = dump_.script.steps[s];
    std::vector<std::string> unknown;
    Ops ops = linked_ ? linked_->ops_of(computation, step.instruction) : named_ops(step, unknown);
    if (linked_ && ops.all.empty()) unknown = step.ops;
    PlanStep& planned = plan.steps.emplace_back();
    const std::string& name =
        step.instruction.empty() ? dump_.script.program.steps[s].name : step.instruction;
    if (step.kind == ScriptStepKind::kKernel) {
      planned.kernel = static_cast<int>(plan.kernels.size());
      planned.id = fmt::format("k{}", planned.kernel);
      plan.kernels.push_back(kernel(s, name, std::move(ops), std::move(unknown)));
      plan.kernels.back().id = planned.id;
      return;
    }
    planned.kind = step.kind == ScriptStepKind::kCall   ? StepKind::kLibrary
                   : step.kind == ScriptStepKind::kCopy ? StepKind::kCopy
                                                        : StepKind::kMemset;
    planned.id =
        fmt::format("{}:{}", step.kind == ScriptStepKind::kCall ? "lib" : stitchwork::name(step.kind), name);
    planned.nodes = std::move(ops.all);
    planned.predicted_us = modelled_us(step, device(dump_.device));
  }

  /// Each computation by itself, launches by the trips, and the whole by what all have.
  void count() {
    for_each_plan([&](FusionPlan& plan, ComputationId id) {
      for (const PlanStep& step : plan.steps) {
        plan.counts.library_calls += step.kind == StepKind::kLibrary;
        plan.counts.copies += step.kind == StepKind::kCopy;
        plan.counts.memsets += step.kind == StepKind::kMemset;
      }
      for (const KernelPlan& kernel : plan.kernels) {
        plan.counts.memory_kernels += !kernel.code->product;
        plan.counts.product_kernels += kernel.code->product;
      }
      plan.counts.dynamic_memory_kernels = plan.counts.memory_kernels;
      add_control_counts(entered(*graph_, id), plan, plan_.computations);
    });
    for (const ComputationPlan& part : plan_.computations) {
      plan_.counts.memory_kernels += part.plan.counts.memory_kernels;
      plan_.counts.product_kernels += part.plan.counts.product_kernels;
      plan_.counts.library_calls += part.plan.counts.library_calls;
      plan_.counts.copies += part.plan.counts.copies;
      plan_.counts.memsets += part.plan.counts.memsets;
    }
  }

  KernelPlan kernel(std::size_t s, const std::string& name, Ops ops, std::vector<std::string> unknown) const {
    const ScriptStep& step = dump_.script.steps[s];
    const sim::Launch& launch = std::get<sim::KernelStep>(dump_.script.program.steps[s].what).launch;
    KernelPlan kernel;
    kernel.name = name;
    kernel.ops = std::move(ops.all);
    kernel.outputs = std::move(ops.given);
    for (const NodeId op : kernel.ops) {
      kernel.schemes[op] = contains_sorted(kernel.outputs, op) ? Scheme::kIndependent : Scheme::kLocal;
      kernel.levels[op] = 0;
    }
    kernel.launch.grid = static_cast<std::int64_t>(launch.grid.count());
    kernel.launch.block = static_cast<int>(launch.block.count());
    kernel.launch.shared_bytes = launch.dynamic_shared_bytes;
    kernel.launch.cluster = launch.cluster ? static_cast<int>(launch.cluster->count()) : 1;
    kernel.code = KernelCode{.module = step.module,
                             .entry = launch.kernel,
                             .instruction = step.instruction,
                             .kind = linked_ ? linked_->kind_of(step.instruction) : "",
                             .product = step.product,
                             .dram_bytes = 0,
                             .timed = {},
                             .not_linked_to = std::move(unknown)};
    return kernel;
  }

  /// Ops that several kernels compute.
  static void mark_again(FusionPlan& plan) {
    std::map<NodeId, int> computed;
    for (const KernelPlan& kernel : plan.kernels)
      for (const NodeId op : kernel.ops) ++computed[op];
    for (KernelPlan& kernel : plan.kernels)
      for (auto& [op, scheme] : kernel.schemes)
        if (computed[op] > 1 && scheme == Scheme::kLocal) scheme = Scheme::kRecomputed;
  }

  /// Without a module between, what no step names is not known.
  void find_gone(PeerPlan& peer) const {
    std::set<NodeId> found;
    for (const KernelPlan& kernel : plan_.kernels) found.insert(kernel.ops.begin(), kernel.ops.end());
    for (const PlanStep& step : plan_.steps) found.insert(step.nodes.begin(), step.nodes.end());
    for (const Node& node : entry().nodes)
      if (!found.contains(node.id) && is_computed(node.id) && plan_role(node) != PlanRole::kAlias &&
          !is_immediate(entry(), node.id))
        peer.gone[node.name] = "not linked: no step of the dump names it";
  }

  /// What is known of why: which instruction of the compiler's a kernel carries out.
  void decide(FusionPlan& plan, const Computation& computation) {
    for (const KernelPlan& kernel : plan.kernels) {
      if (kernel.ops.empty()) continue;
      const KernelCode& code = *kernel.code;
      std::string why = fmt::format("{} computes it by {} of {}", dump_.title(), code.entry, code.module);
      if (!code.instruction.empty())
        why += fmt::format(", which carries out {}{}", code.instruction,
                           code.kind.empty() ? "" : fmt::format(" ({})", code.kind));
      for (const NodeId op : kernel.ops)
        plan.decisions.push_back(
            {"compiled", computation.node(op).name, "", Verdict::yes("peer.kernel", why)});
    }
  }

  const Dump& dump_;
  const Graph &given_, &model_;
  const Graph* graph_ = nullptr;      ///< that is planned
  std::optional<LinkedDump> linked_;  ///< of a dump with an optimised module
  std::size_t next_loop_ = 0;
  FusionPlan plan_;
};

}  // namespace

FusionPlan plan_of(const Dump& dump, const Graph& given, const Graph& model) {
  return DumpPlanner(dump, given, model).run();
}

std::vector<StepPlace> step_places(const FusionPlan& plan) {
  std::vector<StepPlace> places;
  const auto walk = [&](auto& self, const FusionPlan& of, int part) -> void {
    for (std::size_t s = 0; s < of.steps.size(); ++s) {
      const PlanStep& step = of.steps[s];
      if (step.kind != StepKind::kControl) {
        places.push_back({part, s});
        continue;
      }
      const Graph& graph = plan.rewritten->graph;
      const ComputationId caller = part < 0 ? graph.entry : plan.computations[at(part)].computation;
      const ComputationId body = graph.computation(caller).node(step.nodes.at(0)).attrs.computations.at(1);
      const auto run = std::ranges::find(plan.computations, body, &ComputationPlan::computation);
      SW_CHECK(run != plan.computations.end(), "{} has no plan", step.id);
      for (std::int64_t trip = 0; trip < step.trips.value_or(0); ++trip)
        self(self, run->plan, static_cast<int>(run - plan.computations.begin()));
    }
  };
  walk(walk, plan, -1);
  return places;
}

namespace {

/// Times of single runs of the steps from the sums over all; of loops none.
void share_out(FusionPlan& plan, const Device& device, const std::vector<std::int64_t>& runs) {
  plan.predicted_us = 0;
  for (std::size_t s = 0; s < plan.steps.size(); ++s) {
    PlanStep& step = plan.steps[s];
    if (s > 0) plan.predicted_us += device.launch_gap_us;
    if (step.kind == StepKind::kControl) continue;
    const std::int64_t times = std::max<std::int64_t>(1, runs[s]);
    step.predicted_us /= static_cast<double>(times);
    plan.predicted_us += step.predicted_us;
    if (step.kind != StepKind::kKernel) continue;
    KernelPlan& kernel = plan.kernels[at(step.kernel)];
    kernel.predicted_us = step.predicted_us;
    kernel.code->dram_bytes /= times;
  }
}

}  // namespace

void add_times(FusionPlan& plan, const Dump& dump, const ScriptResult& result, const Device& device) {
  const std::vector<StepPlace> places = step_places(plan);
  SW_CHECK(places.size() == result.program.steps.size(), "plan of {} launches, a run of {}", places.size(),
           result.program.steps.size());
  constexpr std::int64_t kSectorBytes = 32;
  auto peer = std::make_shared<PeerPlan>(*plan.peer);
  peer->simulated = true;
  peer->dram_bytes = 0;
  std::map<int, std::vector<std::int64_t>> runs;  // by part, of its steps
  const auto part_of = [&](int part) -> FusionPlan& {
    return part < 0 ? plan : plan.computations[at(part)].plan;
  };
  for (std::size_t s = 0; s < places.size(); ++s) {
    FusionPlan& part = part_of(places[s].part);
    PlanStep& step = part.steps[places[s].step];
    const sim::StepResult& ran = result.program.steps[s];
    std::vector<std::int64_t>& times = runs[places[s].part];
    times.resize(part.steps.size());
    const bool first = times[places[s].step]++ == 0;
    step.predicted_us = ran.time_us + (first ? 0 : step.predicted_us);
    if (step.kind != StepKind::kKernel) {
      peer->dram_bytes += dump.script.steps[s].bytes;
      continue;
    }
    KernelCode& code = *part.kernels[at(step.kernel)].code;
    const std::int64_t bytes =
        kSectorBytes * static_cast<std::int64_t>(ran.launch.counters.dram_read_transactions +
                                                 ran.launch.counters.dram_write_transactions);
    if (first) code.timed = ran.launch.timed;
    code.dram_bytes = bytes + (first ? 0 : code.dram_bytes);
    peer->dram_bytes += bytes;
  }
  for (int part = 0; part <= static_cast<int>(plan.computations.size()); ++part) {
    const int id = part < static_cast<int>(plan.computations.size()) ? part : -1;  // callees first
    FusionPlan& of = part_of(id);
    of.peer = peer;
    of.device = device.id;
    runs[id].resize(of.steps.size());
    share_out(of, device, runs[id]);
    if (plan.rewritten == nullptr) continue;  // without loops
    const Graph& graph = plan.rewritten->graph;
    add_control(id < 0 ? graph : entered(graph, plan.computations[at(id)].computation), device, of,
                plan.computations);
  }
  plan.predicted_us = result.program.total_us;
}

}  // namespace stitchwork
