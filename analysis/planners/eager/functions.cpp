#include "analysis/planners/eager/functions.h"

#include <algorithm>
#include <array>
#include <map>
#include <set>
#include <utility>

#include "analysis/facts/facts.h"
#include "analysis/plan/assemble.h"
#include "analysis/planners/eager/spelled.h"
#include "core/base/at.h"
#include "core/base/disjoint_sets.h"
#include "core/base/sorted.h"
#include "core/substitute/view.h"

namespace stitchwork::eager {
namespace {

/// Functions of jax.nn of whose counterpart ATen has a kernel, and one of its gradient
/// (aten/src/ATen/native/cuda: SoftMax.cu, Activation*.cu, ActivationGeluKernel.cu,
/// UnarySpecialOpsKernel.cu).
constexpr auto kJaxFunctions = std::to_array<std::string_view>(
    {"celu",      "elu",        "gelu",        "glu",         "hard_sigmoid", "hard_silu", "hard_swish",
     "hard_tanh", "leaky_relu", "log_sigmoid", "log_softmax", "mish",         "relu",      "relu6",
     "selu",      "sigmoid",    "silu",        "softmax",     "softplus",     "swish"});
/// The same of ONNX operators, and layer normalisation (layer_norm_kernel.cu).
constexpr auto kOnnxOperators = std::to_array<std::string_view>(
    {"Celu", "Elu", "FastGelu", "Gelu", "HardSigmoid", "HardSwish", "LayerNormalization", "LeakyRelu",
     "LogSoftmax", "Mish", "PRelu", "Selu", "Sigmoid", "Softmax", "Softplus", "Swish"});

/// The function that a scope names: "transpose(jvp(jit(log_softmax)))" or "jit(_softmax)"; empty: none.
std::string_view jitted(std::string_view scope) {
  constexpr std::string_view kJit = "jit(";
  const std::size_t from = scope.rfind(kJit);
  if (from == std::string_view::npos) return {};
  std::string_view name = scope.substr(from + kJit.size());
  name = name.substr(0, name.find(')'));
  while (name.starts_with('_')) name.remove_prefix(1);
  return std::ranges::find(kJaxFunctions, name) == kJaxFunctions.end() ? std::string_view() : name;
}

class Finder {
 public:
  Finder(const Graph& graph, const Views& views)
      : graph_(graph),
        computation_(graph.entry_computation()),
        views_(views),
        users_(computation_.users()),
        taken_(computation_.nodes.size(), false) {
    for (const NodeId value : values_read(computation_, computation_.root)) stored_.insert(value);
    for (const Node& node : computation_.nodes)
      if (const PlanRole role = plan_role(node); role == PlanRole::kLibrary || role == PlanRole::kOpaque)
        for (const NodeId value : library_inputs(computation_, node)) stored_.insert(value);
  }

  std::vector<LibraryFunction> run() {
    add_by_origin();
    const rewriting::View view(graph_, graph_.entry);
    for (const Node& node : computation_.nodes)
      if (Spelled spelled = spelled_function(view, node); !spelled.ops.empty())
        add(std::string(spelled.name), std::move(spelled.ops));
    std::ranges::sort(found_, {}, [](const LibraryFunction& f) { return f.ops.front(); });
    return std::move(found_);
  }

 private:
  const Node& node(NodeId id) const { return computation_.node(id); }

  /// What a kernel computes that is no view and no copy.
  bool computes(NodeId id) const {
    return plan_role(node(id)) == PlanRole::kMemory && !views_.is_view(id) && node(id).op != Op::kCopy;
  }

  /// What is computed of an operand: behind names of it and views.
  NodeId source(NodeId operand) const {
    for (;;) {
      operand = buffer_of(computation_, operand);
      if (!views_.is_read_through(operand) || node(operand).operands.empty()) return operand;
      operand = node(operand).operands[0];
    }
  }

  void add_by_origin() {
    std::vector<int> place_of(computation_.nodes.size(), -1);
    std::map<std::pair<std::string, std::string>, int> places;
    std::vector<std::string> names;
    DisjointSets<NodeId> sets;
    for (const Node& n : computation_.nodes) {
      if (!computes(n.id)) continue;
      Origin origin = origin_of(n.metadata);
      if (origin.function.empty()) continue;
      const auto [place, fresh] =
          places.emplace(std::pair(origin.function, std::move(origin.place)), static_cast<int>(names.size()));
      if (fresh) names.push_back(origin.function);
      place_of[at(n.id)] = place->second;
      for (const NodeId operand : n.operands)
        if (const NodeId from = source(operand); place_of[at(from)] == place->second) sets.join(n.id, from);
    }
    std::map<int, std::vector<NodeId>> parts;
    for (const Node& n : computation_.nodes)
      if (place_of[at(n.id)] >= 0) parts[sets.find(n.id)].push_back(n.id);
    for (auto& [first, ops] : parts)
      if (ops.size() > 1) add(names[at(place_of[at(first)])], std::move(ops));
  }

  void add(std::string name, std::vector<NodeId> ops) {
    if (std::ranges::any_of(ops, [&](NodeId op) { return taken_[at(op)]; })) return;
    LibraryFunction function{std::move(name), std::move(ops), {}};
    for (const NodeId op : function.ops) {
      if (is_read_outside(function.ops, op, op)) function.outputs.push_back(op);
      function.reduces = function.reduces || def(node(op).op).cls == OpClass::kReduce;
    }
    if (function.outputs.empty()) return;
    function.convex = is_convex(function.ops);
    for (const NodeId op : function.ops) taken_[at(op)] = function.convex;
    found_.push_back(std::move(function));
  }

  /// Whether the op is read outside the ops under the name or view `as` of it.
  bool is_read_outside(const std::vector<NodeId>& ops, NodeId op, NodeId as) const {
    if (stored_.contains(as)) return true;
    return std::ranges::any_of(users_[at(as)], [&](NodeId user) {
      if (contains_sorted(ops, user)) return false;
      if (plan_role(node(user)) == PlanRole::kAlias) return is_read_outside(ops, op, user);
      if (!views_.is_view(user) || views_.is_dense(user)) return true;
      return is_read_outside(ops, op, user);
    });
  }

  /// Whether no way leads from one of the ops to another through something else.
  bool is_convex(const std::vector<NodeId>& ops) const {
    enum class Of : std::uint8_t { kNothing, kOps, kOthers };  // what a node is computed of
    const NodeId first = ops.front();
    std::vector<Of> of(at(ops.back() - first) + 1, Of::kNothing);
    for (NodeId id = first; id <= ops.back(); ++id) {
      Of most = Of::kNothing;
      for (const NodeId operand : node(id).operands)
        if (operand >= first) most = std::max(most, of[at(operand - first)]);
      const bool inside = contains_sorted(ops, id);
      if (inside && most == Of::kOthers) return false;
      const bool renames = plan_role(node(id)) == PlanRole::kAlias || views_.is_read_through(id);
      of[at(id - first)] = inside ? Of::kOps : most == Of::kOps && !renames ? Of::kOthers : most;
    }
    return true;
  }

  const Graph& graph_;
  const Computation& computation_;
  const Views& views_;
  std::vector<std::vector<NodeId>> users_;
  std::set<NodeId> stored_;  ///< results, and what calls read
  std::vector<bool> taken_;
  std::vector<LibraryFunction> found_;
};

}  // namespace

Origin origin_of(const Metadata& metadata) {
  if (!metadata.op_name.empty() &&
      std::ranges::find(kOnnxOperators, metadata.op_type) != kOnnxOperators.end())
    return {metadata.op_type, metadata.op_name};
  const std::string_view path = metadata.op_name;
  bool backward = false;
  // The first part names the program, the last one the op itself.
  std::size_t from = path.find('/');
  if (from == std::string_view::npos) return {};
  for (std::size_t to; (to = path.find('/', ++from)) != std::string_view::npos; from = to) {
    const std::string_view scope = path.substr(from, to - from);
    backward = backward || scope.starts_with("transpose(jvp(");
    if (const std::string_view name = jitted(scope); !name.empty())
      return {std::string(name) + (backward ? " backward" : ""), std::string(path.substr(0, to))};
  }
  return {};
}

std::vector<LibraryFunction> library_functions(const Graph& graph, const Views& views) {
  return Finder(graph, views).run();
}

}  // namespace stitchwork::eager
