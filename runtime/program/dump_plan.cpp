#include "runtime/program/dump_plan.h"

#include <algorithm>
#include <memory>
#include <optional>
#include <set>
#include <utility>

#include "analysis/facts/facts.h"
#include "analysis/facts/link.h"
#include "analysis/plan/assemble.h"
#include "core/base/at.h"
#include "core/base/error.h"
#include "core/base/sorted.h"
#include "core/hlo/hlo_text.h"
#include "core/passes/passes.h"
#include "runtime/program/dump_calls.h"

namespace stitchwork {
namespace {

/// What an op reads and gives shapes by, for people: "f32[64,96] maximum".
std::string described(const Node& node) {
  return fmt::format("{} {}", to_text(node.shape), def(node.op).name);
}

/// By op of what the compiler was given: the ops of the model that compute the same.
std::vector<std::vector<NodeId>> model_ops_of(const Dump& dump, const Graph& given, const Graph& model) {
  const Computation &theirs = given.entry_computation(), &ours = model.entry_computation();
  const auto refuse = [&](const std::string& what) {
    throw Error(dump.script.file, 0, 0, fmt::format("is no dump of {}: {}", model.source, what),
                "make the dump anew");
  };
  for (const std::size_t count : {dump.parameters.size(), theirs.parameters.size()})
    if (count != ours.parameters.size())
      refuse(fmt::format("it has {} parameters, the model {}", count, ours.parameters.size()));
  for (std::size_t i = 0; i < ours.parameters.size(); ++i) {
    const Shape &a = theirs.node(theirs.parameters[i]).shape, &b = ours.node(ours.parameters[i]).shape;
    if (!a.compatible(b))
      refuse(fmt::format("parameter {} is {}, in the model {}", i, to_text(a), to_text(b)));
  }
  const std::vector<NodeId> equal = equal_values(given, model);
  if (equal[at(theirs.root)] == kNoNode)
    for (const Node& node : theirs.nodes)  // operands come first
      if (equal[at(node.id)] == kNoNode)
        refuse(fmt::format("the model does not compute its {} ({})", node.name, described(node)));
  std::vector<std::vector<NodeId>> result(theirs.nodes.size());
  const std::vector<NodeId> back = equal_values(model, given);
  for (const Node& node : ours.nodes)
    if (const NodeId of = back[at(node.id)]; of != kNoNode) result[at(of)].push_back(node.id);
  // Several of one value: the first has them.
  for (const Node& node : theirs.nodes)
    if (result[at(node.id)].empty() && equal[at(node.id)] != kNoNode)
      result[at(node.id)] = result[at(back[at(equal[at(node.id)])])];
  return result;
}

/// What the compiler calls an instruction of its entry: "loop fusion", "triton fusion", "custom-call".
std::string kind_of(const Computation& raw, const std::string& instruction) {
  const NodeId id = raw.find(instruction);
  if (id == kNoNode) return "";
  const Node& node = raw.node(id);
  if (node.op != Op::kFusion) return std::string(def(node.op).name);
  for (const auto& [key, value] : node.attrs.other) {
    if (key != "backend_config") continue;
    constexpr std::string_view kKind = "\"kind\":\"__";
    if (const std::size_t from = value.find(kKind); from != std::string::npos) {
      const std::size_t start = from + kKind.size();
      return value.substr(start, value.find('"', start) - start) + " fusion";
    }
  }
  for (const auto& [key, value] : node.attrs.other)
    if (key == "kind" && value.size() > 1 && value.front() == 'k') {
      std::string word = value.substr(1);
      std::ranges::transform(word, word.begin(), [](unsigned char c) { return std::tolower(c); });
      return word + " fusion";
    }
  return "fusion";
}

class DumpPlanner {
 public:
  DumpPlanner(const Dump& dump, const Graph& given, const Graph& model)
      : dump_(dump), given_(given), model_(model) {}

  FusionPlan run() {
    auto peer = std::make_shared<PeerPlan>();
    peer->dump = dump_.folder;
    peer->title = dump_.title();
    const std::vector<std::vector<NodeId>> models = model_ops_of(dump_, given_, model_);
    if (!dump_.optimised.empty())
      link(models, *peer);
    else
      graph_ = &model_;
    plan_steps();
    if (dump_.optimised.empty()) find_gone(*peer);
    mark_again();
    if (rewritten_ != nullptr) name_entry();
    plan_.peer = std::move(peer);
    plan_.model_path = model_.source;
    plan_.model_sha256 = model_.source_sha256;
    plan_.device = device(dump_.device).id;
    plan_.planner = dump_.planner();
    decide();
    return std::move(plan_);
  }

 private:
  const Computation& entry() const { return graph_->entry_computation(); }

  void link(const std::vector<std::vector<NodeId>>& models, PeerPlan& peer) {
    const Graph raw = read_graph(dump_.optimised);
    for (const ScriptStep& step : dump_.script.steps)
      kinds_.push_back(kind_of(raw.entry_computation(), step.instruction));
    GraphOfCalls optimised = with_calls(canonicalize(raw, &trace_), dump_.script);
    calls_ = std::move(optimised.of);
    require_same_results(optimised.graph);
    const GraphLinks links = link_graphs(given_, optimised.graph);
    auto rewritten = std::make_shared<rewriting::RewrittenGraph>();
    rewritten->graph = std::move(optimised.graph);
    rewritten->graph.source = model_.source;
    rewritten->graph.source_sha256 = model_.source_sha256;
    rewritten->model = std::make_shared<const Graph>(model_);
    rewritten->origins.resize(rewritten->graph.computations.size());
    rewriting::Origins& origins = rewritten->origins[at(rewritten->graph.entry)];
    for (const std::vector<NodeId>& of : links.origins.of) {
      std::vector<NodeId>& now = origins.of.emplace_back();
      for (const NodeId op : of)
        for (const NodeId own : models[at(op)]) insert_sorted(now, own);
    }
    origins.now.assign(model_.entry_computation().nodes.size(), kNoNode);
    for (std::size_t op = 0; op < models.size(); ++op)
      for (const NodeId own : models[op])
        if (links.origins.now[op] != kNoNode) origins.now[at(own)] = links.origins.now[op];
    for (const auto& [op, why] : links.gone)
      for (const NodeId own : models[at(op)])
        if (planned(origins, own) == kNoNode) peer.gone[model_.entry_computation().node(own).name] = why;
    graph_ = &rewritten->graph;
    for (const NodeId own : links.own) peer.own.push_back(entry().node(own).name);
    rewritten_ = std::move(rewritten);
  }

  /// Origins are looked up by the names of computations: the entries are one to the other.
  void name_entry() {
    const std::string& name = model_.entry_computation().name;
    for (Computation& computation : rewritten_->graph.computations)
      if (computation.name == name) computation.name += ".compiled";
    rewritten_->graph.computations[at(rewritten_->graph.entry)].name = name;
    plan_.rewritten = std::move(rewritten_);
  }

  static NodeId planned(const rewriting::Origins& origins, NodeId op) {
    for (std::size_t i = 0; i < origins.of.size(); ++i)
      if (contains_sorted(origins.of[i], op)) return static_cast<NodeId>(i);
    return kNoNode;
  }

  void require_same_results(const Graph& optimised) const {
    const Computation &a = given_.entry_computation(), &b = optimised.entry_computation();
    if (a.parameters.size() != b.parameters.size() || !a.node(a.root).shape.compatible(b.node(b.root).shape))
      throw Error(dump_.optimised, 0, 0,
                  fmt::format("is not made of {}: parameters or results differ", dump_.model),
                  "make the dump anew");
  }

  /// The ops of an instruction of the optimised module, and those whose values it gives.
  struct Ops {
    std::vector<NodeId> all, given;
  };

  Ops ops_of(const std::string& instruction) const {
    Ops ops;
    for (const ImportedKernel& fusion : entry().imported) {
      if (fusion.name != instruction) continue;
      for (const NodeId op : fusion.ops)
        if (is_computed(op)) ops.all.push_back(op);
      for (const NodeId root : fusion.roots) {
        const NodeId owner = buffer_of(entry(), root);
        insert_sorted(ops.given, contains_sorted(ops.all, owner) ? owner : root);
      }
      std::erase_if(ops.given, [&](NodeId op) { return !contains_sorted(ops.all, op); });
      return ops;
    }
    if (const auto call = calls_.find(instruction); call != calls_.end()) {
      for (const std::string& name : call->second) insert_sorted(ops.all, entry().find(name));
      if (!ops.all.empty()) ops.given = {ops.all.back()};
      return ops;
    }
    std::vector<std::string> names{instruction};
    if (entry().find(instruction) == kNoNode) {
      names.clear();
      for (const OpName& now : trace_.now(*graph_, {entry().name, instruction}))
        if (now.computation == entry().name) names.push_back(now.op);
    }
    for (const std::string& name : names)
      if (const NodeId op = entry().find(name); op != kNoNode && is_computed(op)) insert_sorted(ops.all, op);
    ops.given = ops.all;
    return ops;
  }

  bool is_computed(NodeId op) const {
    const Node& node = entry().node(op);
    return node.op != Op::kParameter && node.op != Op::kConstant;
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

  void plan_steps() {
    const Device& target = device(dump_.device);
    for (std::size_t s = 0; s < dump_.script.steps.size(); ++s) {
      const ScriptStep& step = dump_.script.steps[s];
      std::vector<std::string> unknown;
      Ops ops = dump_.optimised.empty() ? named_ops(step, unknown) : ops_of(step.instruction);
      if (!dump_.optimised.empty() && ops.all.empty()) unknown = step.ops;
      PlanStep& planned = plan_.steps.emplace_back();
      const std::string& name =
          step.instruction.empty() ? dump_.script.program.steps[s].name : step.instruction;
      if (step.kind == ScriptStepKind::kKernel) {
        planned.kernel = static_cast<int>(plan_.kernels.size());
        plan_.kernels.push_back(kernel(s, name, std::move(ops), std::move(unknown)));
        planned.id = plan_.kernels.back().id;
        continue;
      }
      planned.kind = step.kind == ScriptStepKind::kCall   ? StepKind::kLibrary
                     : step.kind == ScriptStepKind::kCopy ? StepKind::kCopy
                                                          : StepKind::kMemset;
      planned.id = fmt::format(
          "{}:{}", step.kind == ScriptStepKind::kCall ? "lib" : stitchwork::name(step.kind), name);
      planned.nodes = std::move(ops.all);
      planned.predicted_us = modelled_us(step, target);
    }
    for (const PlanStep& step : plan_.steps) {
      plan_.counts.library_calls += step.kind == StepKind::kLibrary;
      plan_.counts.copies += step.kind == StepKind::kCopy;
      plan_.counts.memsets += step.kind == StepKind::kMemset;
    }
    for (const KernelPlan& kernel : plan_.kernels) {
      plan_.counts.memory_kernels += !kernel.code->product;
      plan_.counts.product_kernels += kernel.code->product;
    }
    plan_.counts.dynamic_memory_kernels = plan_.counts.memory_kernels;
  }

  KernelPlan kernel(std::size_t s, const std::string& name, Ops ops, std::vector<std::string> unknown) const {
    const ScriptStep& step = dump_.script.steps[s];
    const sim::Launch& launch = std::get<sim::KernelStep>(dump_.script.program.steps[s].what).launch;
    KernelPlan kernel;
    kernel.id = fmt::format("k{}", plan_.kernels.size());
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
                             .kind = kinds_.empty() ? "" : kinds_[s],
                             .product = step.product,
                             .dram_bytes = 0,
                             .timed = {},
                             .not_linked_to = std::move(unknown)};
    return kernel;
  }

  /// Ops that several kernels compute.
  void mark_again() {
    std::map<NodeId, int> computed;
    for (const KernelPlan& kernel : plan_.kernels)
      for (const NodeId op : kernel.ops) ++computed[op];
    for (KernelPlan& kernel : plan_.kernels)
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
  void decide() {
    for (const KernelPlan& kernel : plan_.kernels) {
      if (kernel.ops.empty()) continue;
      const KernelCode& code = *kernel.code;
      std::string why = fmt::format("{} computes it by {} of {}", dump_.title(), code.entry, code.module);
      if (!code.instruction.empty())
        why += fmt::format(", which carries out {}{}", code.instruction,
                           code.kind.empty() ? "" : fmt::format(" ({})", code.kind));
      for (const NodeId op : kernel.ops)
        plan_.decisions.push_back({"compiled", entry().node(op).name, "", Verdict::yes("peer.kernel", why)});
    }
  }

  const Dump& dump_;
  const Graph &given_, &model_;
  const Graph* graph_ = nullptr;  ///< that is planned
  std::shared_ptr<rewriting::RewrittenGraph> rewritten_;
  OpTrace trace_;  ///< of the optimised module's ops
  std::map<std::string, std::vector<std::string>> calls_;
  std::vector<std::string> kinds_;  ///< by step
  FusionPlan plan_;
};

}  // namespace

FusionPlan plan_of(const Dump& dump, const Graph& given, const Graph& model) {
  return DumpPlanner(dump, given, model).run();
}

void add_times(FusionPlan& plan, const Dump& dump, const ScriptResult& result, const Device& device) {
  SW_CHECK(plan.steps.size() == result.program.steps.size(), "plan of {} steps, a run of {}",
           plan.steps.size(), result.program.steps.size());
  constexpr std::int64_t kSectorBytes = 32;
  auto peer = std::make_shared<PeerPlan>(*plan.peer);
  peer->simulated = true;
  peer->dram_bytes = 0;
  for (std::size_t s = 0; s < plan.steps.size(); ++s) {
    PlanStep& step = plan.steps[s];
    const sim::StepResult& ran = result.program.steps[s];
    step.predicted_us = ran.time_us;
    if (step.kind != StepKind::kKernel) {
      peer->dram_bytes += dump.script.steps[s].bytes;
      continue;
    }
    KernelPlan& kernel = plan.kernels[at(step.kernel)];
    kernel.predicted_us = ran.time_us;
    kernel.code->timed = ran.launch.timed;
    kernel.code->dram_bytes =
        kSectorBytes * static_cast<std::int64_t>(ran.launch.counters.dram_read_transactions +
                                                 ran.launch.counters.dram_write_transactions);
    peer->dram_bytes += kernel.code->dram_bytes;
  }
  plan.predicted_us = result.program.total_us;
  plan.device = device.id;
  plan.peer = std::move(peer);
}

}  // namespace stitchwork
