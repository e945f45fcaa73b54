#include "core/substitute/softmax.h"

#include <algorithm>
#include <set>
#include <unordered_map>

#include "core/base/error.h"
#include "core/substitute/derivation.h"
#include "core/substitute/families.h"
#include "core/substitute/scale.h"
#include "core/substitute/view.h"

namespace stitchwork::rewriting {
namespace {

/// A dot of E / sum(E), the sum over what the dot contracts of it.
struct Normalised {
  NodeId divide = kNoNode, sum = kNoNode, value = kNoNode;
};

std::optional<Normalised> normalised_operand(const View& view, NodeId place) {
  const std::optional<ScaledDot> found = scale_of_dot(view, place);
  if (!found || found->scaled.op != Op::kDivide) return std::nullopt;
  const Node& sum = view.node(found->scaled.scale.source);
  if (!is_sum(view, sum) || sum.operands[0] != found->scaled.value) return std::nullopt;
  const DotDims dims = view.node(place).attrs.dot.value_or(DotDims{});
  if (!std::ranges::is_permutation(found->side == 0 ? dims.lhs_contracting : dims.rhs_contracting,
                                   sum.attrs.dimensions))
    return std::nullopt;
  // The dot's other operand must not wait for the sum: they are to be one product.
  if (view.descends(view.node(place).operands[1 - found->side], sum.id)) return std::nullopt;
  return Normalised{found->scaled.node, sum.id, found->scaled.value};
}

/// By place, the dots that read its value, at[3], by name.
std::vector<std::set<std::string>> dots_reading(const Derivation& derivation, const std::string& computation,
                                                const std::vector<Place>& at) {
  const Graph& graph = derivation.result().graph;
  const View view(graph, computation_named(graph, computation));
  std::unordered_map<std::string_view, NodeId> ids;
  for (const Node& node : view.computation().nodes) ids.emplace(node.name, node.id);
  std::vector<std::set<std::string>> result;
  for (const Place& place : at) {
    std::set<std::string>& dots = result.emplace_back();
    const auto value = ids.find(place[3]);
    if (value == ids.end()) continue;
    for (const NodeId id : view.readers(value->second))
      if (view.node(id).op == Op::kDot) dots.insert(view.node(id).name);
  }
  return result;
}

/// scale-out-of-dot at each at[0], `second` at each at[2], `third` at the dots that the first made of each
/// at[3]. Returns at how many places `third` was taken.
int take_steps(Derivation& derivation, const std::string& computation, const std::vector<Place>& at,
               std::string_view second, std::string_view third) {
  std::vector<std::string> dots, sums, made;
  for (const Place& place : at) {
    dots.push_back(place[0]);
    sums.push_back(place[2]);
  }
  const auto before = dots_reading(derivation, computation, at);
  derivation.apply(rule_named("scale-out-of-dot"), computation, dots);
  const auto after = dots_reading(derivation, computation, at);
  for (std::size_t p = 0; p < at.size(); ++p)
    for (const std::string& name : after[p])
      if (!before[p].contains(name)) made.push_back(name);
  const int summed = derivation.apply(rule_named(second), computation, sums);
  return std::min(summed, derivation.apply(rule_named(third), computation, made));
}

/// The sum of the softmax that the op is: of an exponential that it divides by it; kNoNode: it is none.
NodeId sum_of_softmax(const View& view, const Node& node) {
  if (node.op != Op::kDivide || view.operand(node, 0).op != Op::kExp) return kNoNode;
  for (const Spread& spread : view.spreads(node.operands[1]))
    if (const Node& sum = view.node(spread.source); is_sum(view, sum) && sum.operands[0] == node.operands[0])
      return sum.id;
  return kNoNode;
}

std::vector<std::string> sums_of_softmaxes(const View& view) {
  std::vector<std::string> result;
  for (const Node& node : view.computation().nodes)
    if (const NodeId sum = sum_of_softmax(view, node); sum != kNoNode) result.push_back(view.node(sum).name);
  return result;
}

/// The dots that read a softmax through reshapes and transposes.
std::vector<std::string> dots_behind_layouts(const View& view) {
  std::vector<std::string> result;
  for (const Node& dot : view.computation().nodes) {
    if (dot.op != Op::kDot) continue;
    for (const NodeId operand : dot.operands) {
      NodeId value = operand;
      while (!view.node(value).operands.empty() &&
             only_moves(view.node(value), view.operand(view.node(value), 0).shape))
        value = view.node(value).operands[0];
      if (value != operand && sum_of_softmax(view, view.node(value)) != kNoNode) result.push_back(dot.name);
    }
  }
  return result;
}

/// JAX and ONNX put reshapes between a softmax and its product: the product reads the softmax as it is.
void take_layouts_away(Derivation& derivation, const std::string& computation) {
  constexpr int kMostLayouts = 4;  // in a row; tidy rules leave two kinds at most
  for (int i = 0; i < kMostLayouts; ++i) {
    const Graph& graph = derivation.result().graph;
    const std::vector<std::string> dots =
        dots_behind_layouts(View(graph, computation_named(graph, computation)));
    if (dots.empty() || derivation.apply(rule_named("layout-into-dot"), computation, dots) == 0) return;
  }
}

}  // namespace

std::optional<Match> find_softmax_dot(const View& view, NodeId place) {
  const std::optional<Normalised> found = normalised_operand(view, place);
  if (!found || view.node(found->value).op != Op::kExp) return std::nullopt;
  const Node& dot = view.node(place);
  if (std::ranges::any_of(dot.attrs.other, [](const auto& a) { return a.first != "operand_precision"; }))
    return std::nullopt;
  // The sum takes the batch dimensions of the dot that is to be made; no other may read E.
  if (std::ranges::any_of(view.readers(found->value),
                          [&](NodeId id) { return view.node(id).op == Op::kDot; }))
    return std::nullopt;
  return Match{{place, found->divide, found->sum, found->value}};
}

int softmax_dot_steps(Derivation& derivation, const std::string& computation, const std::vector<Place>& at) {
  return take_steps(derivation, computation, at, "reduce-as-dot", "dot-merge-free");
}

std::optional<Match> find_linear_attention(const View& view, NodeId place) {
  const std::optional<Normalised> found = normalised_operand(view, place);
  if (!found || !find_reduce_of_dot(view, found->sum)) return std::nullopt;
  const Node &outer = view.node(place), &inner = view.node(found->value);
  const DotLabels outside = view.labels(outer), inside = view.labels(inner);
  const std::size_t side = outer.operands[0] == found->divide ? 0 : 1;
  if (inner.attrs.other != outer.attrs.other || inside.contracted.empty() || inside.batch != outside.batch ||
      view.readers(inner.id).size() != 2 || inner.id == view.computation().root)
    return std::nullopt;
  for (int b = 0; b < inside.batch; ++b)
    if (!outside.is_batch(outside.operand(side)[static_cast<std::size_t>(b)])) return std::nullopt;
  for (const std::size_t s : {0, 1})
    if (view.operand(inner, s).shape.dtype != inner.shape.dtype) return std::nullopt;
  return Match{{place, found->divide, found->sum, found->value}};
}

int linear_attention_steps(Derivation& derivation, const std::string& computation,
                           const std::vector<Place>& at) {
  return take_steps(derivation, computation, at, "reduce-of-dot", "dot-chain");
}

int fission_softmax(Derivation& derivation) {
  std::vector<std::string> computations;
  for (const ComputationId id : running_computations(derivation.result().graph))
    computations.push_back(derivation.result().graph.computation(id).name);
  for (const std::string& computation : computations) take_layouts_away(derivation, computation);
  int sums = derivation.apply_everywhere(rule_named("softmax-dot"));
  for (const std::string& computation : computations) {
    const Graph& graph = derivation.result().graph;
    const std::vector<std::string> left =
        sums_of_softmaxes(View(graph, computation_named(graph, computation)));
    sums += derivation.apply(rule_named("reduce-as-dot"), computation, left);
  }
  return sums;
}

}  // namespace stitchwork::rewriting
