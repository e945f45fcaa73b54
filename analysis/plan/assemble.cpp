#include "analysis/plan/assemble.h"

#include <algorithm>
#include <cctype>
#include <queue>
#include <unordered_map>
#include <unordered_set>

#include "analysis/facts/facts.h"
#include "analysis/facts/once.h"
#include "analysis/plan/control_flow.h"
#include "analysis/plan/traffic.h"
#include "core/base/error.h"
#include "core/base/sorted.h"
#include "core/passes/trip_count.h"

namespace stitchwork {

NodeId buffer_of(const Computation& computation, NodeId node) {
  for (;;) {
    const Node& n = computation.node(node);
    // A tuple has no buffer of its own, an element of one is filled by whatever made the tuple.
    if (plan_role(n) != PlanRole::kAlias || n.shape.is_tuple || n.operands.empty()) return node;
    if (computation.node(n.operands[0]).shape.is_tuple) return node;
    node = n.operands[0];
  }
}

NodeId storage_of(const Computation& computation, NodeId node) {
  const Node& owner = computation.node(buffer_of(computation, node));
  return owner.attrs.updated == nullptr ? owner.id : storage_of(computation, owner.attrs.updated->op);
}

NodeId memory_of(const Computation& computation, NodeId node) {
  const Node& owner = computation.node(storage_of(computation, node));
  return owner.attrs.placed == nullptr ? owner.id : owner.attrs.placed->owner;
}

std::vector<NodeId> materialised(const Group& group) {
  std::vector<NodeId> result = group.sub_dominants;
  result.push_back(group.dominant);
  sort_unique(result);
  return result;
}

std::vector<NodeId> materialised(const KernelPlan& kernel) {
  if (kernel.code) return kernel.outputs;
  std::vector<NodeId> result;
  for (const Group& group : kernel.groups) {
    result.push_back(group.dominant);
    result.insert(result.end(), group.sub_dominants.begin(), group.sub_dominants.end());
  }
  sort_unique(result);
  return result;
}

std::vector<NodeId> kernel_inputs(const Graph& graph, const KernelPlan& kernel) {
  const Computation& computation = graph.entry_computation();
  const std::unordered_set<NodeId> inside(kernel.ops.begin(), kernel.ops.end());
  std::vector<NodeId> inputs;
  for (NodeId op : kernel.ops)
    for (NodeId operand : computation.node(op).operands)
      if (!inside.contains(operand) && !is_immediate(computation, operand))
        inputs.push_back(buffer_of(computation, operand));
  std::sort(inputs.begin(), inputs.end());
  inputs.erase(std::unique(inputs.begin(), inputs.end()), inputs.end());
  return inputs;
}

std::vector<NodeId> values_read(const Computation& computation, NodeId node) {
  std::vector<NodeId> owners = buffers_read(computation, node);
  std::erase_if(owners, [&](NodeId id) {
    const Node& owner = computation.node(id);
    return (plan_role(owner) == PlanRole::kAlias && !owner.operands.empty()) ||
           owner.op == Op::kConcatInPlace;
  });
  return owners;
}

std::vector<NodeId> kernel_reads(const Graph& graph, const KernelPlan& kernel) {
  std::vector<NodeId> owners;
  for (NodeId input : kernel_inputs(graph, kernel)) {
    const std::vector<NodeId> read = values_read(graph.entry_computation(), input);
    owners.insert(owners.end(), read.begin(), read.end());
  }
  std::sort(owners.begin(), owners.end());
  owners.erase(std::unique(owners.begin(), owners.end()), owners.end());
  return owners;
}

std::vector<NodeId> library_inputs(const Computation& computation, const Node& node) {
  return library_inputs(computation, std::span(&node.id, 1));
}

std::vector<NodeId> library_inputs(const Computation& computation, std::span<const NodeId> call) {
  std::vector<NodeId> inputs;
  for (const NodeId operand : call_operands(computation, call)) {
    const std::vector<NodeId> read = values_read(computation, operand);
    inputs.insert(inputs.end(), read.begin(), read.end());
  }
  std::sort(inputs.begin(), inputs.end());
  inputs.erase(std::unique(inputs.begin(), inputs.end()), inputs.end());
  return inputs;
}

namespace {

/// "multiply.1" -> "multiply_1", unique among `taken`.
std::string identifier(const std::string& op_name, std::unordered_set<std::string>& taken) {
  std::string id = op_name.empty() || std::isdigit(static_cast<unsigned char>(op_name[0])) ? "k_" : "";
  for (char c : op_name) id += std::isalnum(static_cast<unsigned char>(c)) ? c : '_';
  std::string unique = id;
  for (int n = 2; !taken.insert(unique).second; ++n) unique = fmt::format("{}_{}", id, n);
  return unique;
}

class Assembler {
 public:
  Assembler(const Graph& graph, std::vector<KernelPlan> kernels)
      : graph_(graph), computation_(graph.entry_computation()), kernels_(std::move(kernels)) {}

  void run(FusionPlan& plan, std::vector<std::vector<NodeId>> calls) {
    find_units(std::move(calls));
    fill_outputs();
    const std::vector<int> units = order();
    SW_CHECK(units.size() == units_.size(), "the kernels of the plan depend on each other in a cycle");
    emit(plan, units);
    count(plan);
  }

  bool can_be_ordered(std::vector<std::vector<NodeId>> calls) {
    find_units(std::move(calls));
    return order().size() == units_.size();
  }

 private:
  /// A step before it has its place.
  struct Unit {
    StepKind kind = StepKind::kKernel;
    int kernel = -1;
    NodeId key = kNoNode;  ///< ties of the order; the op of a call or copy, of a call of several its product
    std::vector<NodeId> reads;
    std::vector<NodeId> call;  ///< of several ops
    bool once = false;         ///< PlanStep::once
  };

  void find_units(std::vector<std::vector<NodeId>> calls) {
    find_makers();
    for (std::vector<NodeId>& call : calls) add_call(std::move(call));
    add_calls_and_copies();
  }

  /// Which unit puts each value into its buffer.
  void find_makers() {
    for (std::size_t k = 0; k < kernels_.size(); ++k) {
      const std::vector<NodeId> made = materialised(kernels_[k]);
      SW_CHECK(!made.empty(), "a kernel without groups");
      for (NodeId op : made) {
        // What several compute is given by the one whose purpose it is; of several (a kernel that computes it
        // again may be cut where it is read) by the one that ends first: others may wait for its readers.
        std::vector<int>& makers = makers_[op];
        const auto rank = [&](int kernel) {
          const KernelPlan& of = kernels_[static_cast<std::size_t>(kernel)];
          return std::pair(std::ranges::count(of.outputs, op) == 0, materialised(of).back());
        };
        makers.push_back(static_cast<int>(k));
        if (makers.size() > 1 && rank(makers.back()) < rank(makers.front()))
          std::swap(makers.back(), makers.front());
        const Node& node = computation_.node(op);
        SW_CHECK(plan_role(node) == PlanRole::kMemory || is_product(node),
                 "{} has no buffer of its own to materialise", node.name);
      }
      for (NodeId op : kernels_[k].ops) computed_.insert(op);
      units_.push_back(
          {StepKind::kKernel, static_cast<int>(k), made.back(), kernel_reads(graph_, kernels_[k]), {}});
    }
  }

  void add_call(std::vector<NodeId> call) {
    makers_[call.back()] = {static_cast<int>(units_.size())};
    computed_.insert(call.begin(), call.end());
    const NodeId product = call.front();
    std::vector<NodeId> reads = library_inputs(computation_, call);
    units_.push_back({StepKind::kLibrary, -1, product, std::move(reads), std::move(call)});
  }

  /// A copy or product that kernels compute inside is a step too if something reads its value from memory.
  void add_calls_and_copies() {
    std::unordered_set<NodeId> read;
    const auto add_reads = [&](const std::vector<NodeId>& owners) {
      read.insert(owners.begin(), owners.end());
    };
    for (const Unit& unit : units_) add_reads(unit.reads);
    add_reads(values_read(computation_, computation_.root));
    for (auto node = computation_.nodes.rbegin(); node != computation_.nodes.rend(); ++node) {
      const PlanRole role = plan_role(*node);
      const bool left = makers_.contains(node->id) ||
                        (computed_.contains(node->id) && !read.contains(node->id));  // to kernels
      const bool call = (role == PlanRole::kLibrary && !left) || role == PlanRole::kOpaque;
      const bool copy = role == PlanRole::kMemory && node->op == Op::kCopy && !left;
      if ((!call && !copy) || node->op == Op::kConcatInPlace) continue;
      makers_[node->id].push_back(static_cast<int>(units_.size()));
      const StepKind kind = is_control(*node) ? StepKind::kControl
                            : call            ? StepKind::kLibrary
                                              : StepKind::kCopy;
      units_.push_back({kind, -1, node->id, library_inputs(computation_, *node), {}});
      add_reads(units_.back().reads);
    }
  }

  void fill_outputs() {
    const auto need = [&](NodeId owner, const std::string& reader) {
      const Node& node = computation_.node(owner);
      const PlanRole role = plan_role(node);
      if (role == PlanRole::kSource || role == PlanRole::kAlias) return;
      const auto maker = makers_.find(owner);
      SW_CHECK(maker != makers_.end(), "{} reads {}, which nothing materialises", reader, node.name);
      const int unit = maker->second.front();
      if (units_[static_cast<std::size_t>(unit)].kind != StepKind::kKernel) return;
      std::vector<NodeId>& outputs = kernels_[static_cast<std::size_t>(unit)].outputs;
      if (std::find(outputs.begin(), outputs.end(), owner) == outputs.end()) outputs.push_back(owner);
    };
    for (KernelPlan& kernel : kernels_) kernel.outputs.clear();
    for (const Unit& unit : units_)
      for (NodeId owner : unit.reads) need(owner, computation_.node(unit.key).name);
    for (NodeId owner : values_read(computation_, computation_.root)) need(owner, "the result");
    // What nobody reads is still its kernel's purpose (an unfused broadcast of a constant).
    for (KernelPlan& kernel : kernels_) {
      if (kernel.outputs.empty()) kernel.outputs.push_back(materialised(kernel).back());
      std::sort(kernel.outputs.begin(), kernel.outputs.end());
    }
  }

  /// Kahn's algorithm; among the ready units the one of the smallest op goes first. Units that wait for each
  /// other in a circle are left out.
  std::vector<int> order() const {
    std::vector<std::vector<int>> readers(units_.size());
    std::vector<int> missing(units_.size(), 0);
    for (std::size_t u = 0; u < units_.size(); ++u) {
      std::unordered_set<int> before;
      for (NodeId owner : units_[u].reads)
        if (const auto maker = makers_.find(owner); maker != makers_.end())
          before.insert(maker->second.front());
      missing[u] = static_cast<int>(before.size());
      for (int b : before) readers[static_cast<std::size_t>(b)].push_back(static_cast<int>(u));
    }
    using Entry = std::pair<NodeId, int>;
    std::priority_queue<Entry, std::vector<Entry>, std::greater<>> ready;
    for (std::size_t u = 0; u < units_.size(); ++u)
      if (missing[u] == 0) ready.push({units_[u].key, static_cast<int>(u)});
    std::vector<int> order;
    while (!ready.empty()) {
      const int u = ready.top().second;
      ready.pop();
      order.push_back(u);
      for (int r : readers[static_cast<std::size_t>(u)])
        if (--missing[static_cast<std::size_t>(r)] == 0)
          ready.push({units_[static_cast<std::size_t>(r)].key, r});
    }
    return order;
  }

  void emit(FusionPlan& plan, std::vector<int> order) {
    mark_once(order);
    std::ranges::stable_partition(order, [&](int u) { return units_[static_cast<std::size_t>(u)].once; });
    for (const int u : order) emit(plan, units_[static_cast<std::size_t>(u)]);
  }

  /// Units that make nothing but what depends on weights alone, of what such units make; results are made in
  /// every run.
  void mark_once(const std::vector<int>& order) {
    const std::vector<bool> once = once_values(computation_);
    if (once.empty()) return;
    std::vector<NodeId> results = values_read(computation_, computation_.root);
    const auto is_once = [&](NodeId id) {
      return once[static_cast<std::size_t>(id)] && std::ranges::count(results, id) == 0;
    };
    const auto by_unit = [&](NodeId owner) {
      const auto maker = makers_.find(owner);
      return maker == makers_.end() || units_[static_cast<std::size_t>(maker->second.front())].once;
    };
    for (const int u : order) {
      Unit& unit = units_[static_cast<std::size_t>(u)];
      const std::vector<NodeId> made = unit.kind == StepKind::kKernel
                                           ? materialised(kernels_[static_cast<std::size_t>(unit.kernel)])
                                       : unit.call.empty() ? std::vector{unit.key}
                                                           : unit.call;
      unit.once = std::ranges::all_of(made, is_once) && std::ranges::all_of(unit.reads, by_unit);
    }
  }

  void emit(FusionPlan& plan, const Unit& unit) {
    const std::string& op_name = computation_.node(unit.key).name;
    PlanStep step;
    step.kind = unit.kind;
    step.once = unit.once;
    if (unit.kind != StepKind::kKernel) {
      step.id = fmt::format("{}:{}", unit.kind == StepKind::kLibrary ? "lib" : name(unit.kind), op_name);
      step.nodes = unit.call.empty() ? std::vector{unit.key} : unit.call;
      if (const Node& node = computation_.node(unit.key); node.op == Op::kWhile)
        step.trips = trip_count(graph_, computation_, node);
      plan.steps.push_back(std::move(step));
      return;
    }
    KernelPlan kernel = std::move(kernels_[static_cast<std::size_t>(unit.kernel)]);
    for (const Group& group : kernel.groups) {
      if (!combines_atomically(group.mapping)) continue;
      for (NodeId op : accumulators(group))
        plan.steps.push_back(
            {StepKind::kMemset, "memset:" + computation_.node(op).name, -1, {op}, 0, {}, 0, {}, unit.once});
    }
    step.kernel = static_cast<int>(plan.kernels.size());
    kernel.id = step.id = fmt::format("k{}", step.kernel);
    kernel.name = identifier(op_name, names_);
    plan.steps.push_back(std::move(step));
    plan.kernels.push_back(std::move(kernel));
  }

  std::vector<NodeId> accumulators(const Group& group) const {
    std::vector<NodeId> result;
    for (NodeId op : materialised(group))
      if (is_reduction(computation_.node(op))) result.push_back(op);
    return result;
  }

  static void count(FusionPlan& plan) {
    for (const PlanStep& step : plan.steps) {
      if (step.once) continue;
      plan.counts.memory_kernels += step.kind == StepKind::kKernel;
      plan.counts.library_calls += step.kind == StepKind::kLibrary;
      plan.counts.copies += step.kind == StepKind::kCopy;
      plan.counts.memsets += step.kind == StepKind::kMemset;
    }
    plan.counts.dynamic_memory_kernels = plan.counts.memory_kernels;
  }

  const Graph& graph_;
  const Computation& computation_;
  std::vector<KernelPlan> kernels_;
  std::vector<Unit> units_;  ///< kernels first, by their index
  std::unordered_map<NodeId, std::vector<int>> makers_;
  std::unordered_set<NodeId> computed_;
  std::unordered_set<std::string> names_;
};

}  // namespace

FusionPlan assemble(const Graph& graph, const Device& device, std::string planner,
                    std::vector<KernelPlan> kernels, std::vector<std::vector<NodeId>> calls) {
  FusionPlan plan;
  plan.model_path = graph.source;
  plan.model_sha256 = graph.source_sha256;
  plan.device = device.id;
  plan.planner = std::move(planner);
  Assembler(graph, std::move(kernels)).run(plan, std::move(calls));
  return plan;
}

bool can_be_ordered(const Graph& graph, std::vector<KernelPlan> kernels,
                    std::vector<std::vector<NodeId>> calls) {
  return Assembler(graph, std::move(kernels)).can_be_ordered(std::move(calls));
}

}  // namespace stitchwork
