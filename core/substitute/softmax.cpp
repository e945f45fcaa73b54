#include "core/substitute/softmax.h"

#include <algorithm>
#include <set>

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

/// The dots that read the op of that name.
std::set<std::string> dots_reading(const Derivation& derivation, const std::string& computation,
                                   const std::string& op) {
  const Graph& graph = derivation.result().graph;
  const View view(graph, computation_named(graph, computation));
  std::set<std::string> result;
  for (const NodeId id : view.readers(view.computation().find(op)))
    if (view.node(id).op == Op::kDot) result.insert(view.node(id).name);
  return result;
}

/// scale-out-of-dot at at[0], `second` at at[2], `third` at the dot that the first made of at[3].
void take_steps(Derivation& derivation, const std::string& computation, const std::vector<std::string>& at,
                std::string_view second, std::string_view third) {
  const std::set<std::string> before = dots_reading(derivation, computation, at[3]);
  const bool scaled = derivation.apply(rule_named("scale-out-of-dot"), computation, at[0]);
  std::string made;
  for (const std::string& name : dots_reading(derivation, computation, at[3]))
    if (!before.contains(name)) made = name;
  SW_CHECK(scaled && !made.empty(), "no dot was made at '{}'", at[0]);
  const bool then = derivation.apply(rule_named(second), computation, at[2]) &&
                    derivation.apply(rule_named(third), computation, made);
  SW_CHECK(then, "{} or {} does not hold at '{}'", second, third, at[0]);
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

void softmax_dot_steps(Derivation& derivation, const std::string& computation,
                       const std::vector<std::string>& at) {
  take_steps(derivation, computation, at, "reduce-as-dot", "dot-merge-free");
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

void linear_attention_steps(Derivation& derivation, const std::string& computation,
                            const std::vector<std::string>& at) {
  take_steps(derivation, computation, at, "reduce-of-dot", "dot-chain");
}

}  // namespace stitchwork::rewriting
