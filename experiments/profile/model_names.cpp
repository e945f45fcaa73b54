#include "experiments/profile/model_names.h"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>

#include "analysis/facts/facts.h"
#include "core/base/sorted.h"

namespace stitchwork {
namespace {

bool starts_nothing(const Node& node) {
  const PlanRole role = plan_role(node);
  return role == PlanRole::kSource || role == PlanRole::kAlias;
}

/// Of dots, convolutions and XLA's calls of libraries for them.
bool computes_product(const Node& node, bool convolution) {
  if (node.op == (convolution ? Op::kConvolution : Op::kDot)) return true;
  if (node.op != Op::kCustomCall) return false;
  return std::ranges::any_of(node.attrs.other, [&](const auto& attribute) {
    return attribute.first == "custom_call_target" &&
           attribute.second.find(convolution ? "__cudnn$conv" : "__cublas$") != std::string::npos;
  });
}

std::string launch_extents(std::int64_t x) { return fmt::format("[{},1,1]", x); }

}  // namespace

std::string kernel_identifier(std::string_view instruction) {
  std::string text(instruction);
  for (char& c : text)
    if (std::isalnum(static_cast<unsigned char>(c)) == 0) c = '_';
  return text;
}

std::string without_number(std::string_view name) {
  std::size_t end = name.size();
  while (end > 0 && std::isdigit(static_cast<unsigned char>(name[end - 1])) != 0) --end;
  if (end == name.size() || end < 2 || (name[end - 1] != '.' && name[end - 1] != '_')) end = name.size() + 1;
  return kernel_identifier(name.substr(0, end - 1));
}

const FusionPlan& body_plan(const FusionPlan& plan, int body) {
  return body < 0 ? plan : plan.computations[static_cast<std::size_t>(body)].plan;
}

const Computation& body_computation(const Graph& graph, const FusionPlan& plan, int body) {
  return body < 0 ? graph.entry_computation()
                  : graph.computation(plan.computations[static_cast<std::size_t>(body)].computation);
}

ModelNames::ModelNames(const Model& model, const OpTrace& trace, const FusionPlan& plan)
    : model_(model), trace_(trace), plan_(plan), graph_(planned_graph(model.graph, plan)) {
  const bool rewritten = plan.rewritten != nullptr;
  add_computation(graph_.entry_computation(), -1, &model.graph.entry_computation());
  for (std::size_t body = 0; body < plan.computations.size(); ++body) {
    const Computation& of = graph_.computation(plan.computations[body].computation);
    add_computation(of, static_cast<int>(body), rewritten ? nullptr : &of);
    products_in_loops_ = products_in_loops_ || std::ranges::any_of(of.nodes, [](const Node& n) {
                           return computes_product(n, false) || computes_product(n, true);
                         });
  }
  add_own(plan, -1);
  for (std::size_t body = 0; body < plan.computations.size(); ++body)
    add_own(plan.computations[body].plan, static_cast<int>(body));
}

void ModelNames::add(NamedOps named) {
  const std::size_t at = named_.size();
  if (!by_name_.try_emplace(named.name, at).second) return;
  // Two names that are one kernel's say nothing.
  if (const auto [known, fresh] = by_kernel_.try_emplace(kernel_identifier(named.name), at); !fresh)
    by_kernel_.erase(known);
  by_stem_[without_number(named.name)].push_back(at);
  named_.push_back(std::move(named));
}

void ModelNames::add_computation(const Computation& planned, int body, const Computation* model) {
  const bool entry = body < 0;
  const auto now = [&](NodeId op) { return entry ? planned_op(plan_, op) : op; };
  if (model != nullptr) {
    for (const ImportedKernel& fusion : model->imported) {
      NamedOps named{fusion.name, body, {}, true};
      for (const NodeId op : fusion.ops)
        if (const NodeId at = now(op); at != kNoNode) insert_sorted(named.ops, at);
      add(std::move(named));
    }
    for (const Node& node : model->nodes) {
      const NodeId at = now(node.id);
      if (at == kNoNode || starts_nothing(node)) continue;
      if (!node.metadata.op_name.empty()) {
        NamedOps& of = by_op_.try_emplace(node.metadata.op_name, NamedOps{node.metadata.op_name, body, {}})
                           .first->second;
        if (of.body == body) insert_sorted(of.ops, at);
      }
      if (entry && computes_product(node, false)) dots_.push_back({node.name, body, {at}});
      if (entry && computes_product(node, true)) convolutions_.push_back({node.name, body, {at}});
      add({node.name, body, {at}});
    }
  }
  for (const Node& node : planned.nodes)
    if (!starts_nothing(node)) add({node.name, body, {node.id}});
}

void ModelNames::add_own(const FusionPlan& plan, int body) {
  for (std::size_t s = 0; s < plan.steps.size(); ++s) {
    if (plan.steps[s].kind != StepKind::kKernel) continue;
    const KernelPlan& kernel = plan.kernels[static_cast<std::size_t>(plan.steps[s].kernel)];
    if (const auto [known, fresh] = by_own_.try_emplace(kernel.name, own_.size()); !fresh)
      by_own_.erase(known);  // of another computation: the name does not tell
    own_.push_back({kernel.name, body, kernel.ops, false, static_cast<int>(s)});
  }
}

const NamedOps* ModelNames::instruction(const std::string& name) const {
  if (const auto found = by_name_.find(name); found != by_name_.end()) return &named_[found->second];
  const auto [known, fresh] = traced_.try_emplace(name);
  if (fresh) {
    const Computation& entry = model_.graph.entry_computation();
    if (const std::optional<OpName> read = trace_.find(name, entry.name)) {
      NamedOps named{name, -1, {}};
      for (const OpName& op : trace_.now(model_.graph, *read)) {
        if (op.computation != entry.name) continue;
        if (const NodeId at = planned_op(plan_, entry.find(op.op)); at != kNoNode)
          insert_sorted(named.ops, at);
      }
      if (!named.ops.empty()) known->second = std::move(named);
    }
  }
  return known->second ? &*known->second : nullptr;
}

const NamedOps* ModelNames::xla_kernel(const std::string& function) const {
  const auto find = [&](const std::string& text) {
    const auto found = by_kernel_.find(text);
    return found == by_kernel_.end() ? nullptr : &named_[found->second];
  };
  if (const NamedOps* whole = find(function)) return whole;
  const std::size_t part = function.rfind("__");
  if (part == std::string::npos || part + 2 == function.size() ||
      function.find_first_not_of("0123456789", part + 2) != std::string::npos)
    return nullptr;
  return find(function.substr(0, part));
}

const NamedOps* ModelNames::own_kernel(const std::string& function, const std::string& grid,
                                       const std::string& block) const {
  const auto found = by_own_.find(function);
  return found != by_own_.end() && launched_so(own_[found->second], grid, block) ? &own_[found->second]
                                                                                 : nullptr;
}

bool ModelNames::launched_so(const NamedOps& own, const std::string& grid, const std::string& block) const {
  const FusionPlan& plan = own.body < 0 ? plan_ : plan_.computations[static_cast<std::size_t>(own.body)].plan;
  const PlanStep& step = plan.steps[static_cast<std::size_t>(own.step)];
  const KernelLaunch& launch = plan.kernels[static_cast<std::size_t>(step.kernel)].launch;
  return (grid.empty() || grid == launch_extents(launch.grid)) &&
         (block.empty() || block == launch_extents(launch.block));
}

const NamedOps* ModelNames::framework_op(const std::string& op) const {
  const auto found = by_op_.find(op);
  return found == by_op_.end() ? nullptr : &found->second;
}

std::vector<const NamedOps*> ModelNames::alike(const std::string& name) const {
  std::vector<const NamedOps*> list;
  if (const auto found = by_stem_.find(without_number(name)); found != by_stem_.end())
    for (const std::size_t at : found->second) list.push_back(&named_[at]);
  return list;
}

}  // namespace stitchwork
