#include <array>

#include "core/base/error.h"
#include "core/base/suggest.h"
#include "core/substitute/families.h"
#include "core/substitute/softmax.h"

namespace stitchwork::rewriting {
namespace {

constexpr Exactness kMoves = Exactness::kMoves, kReassociates = Exactness::kReassociates;

constexpr std::array kRules = {
    // name, from -> to, holds if, exactness, tidy, find, apply, steps
    Rule{"same", "a layout op, gather, convert or copy that changes nothing -> its operand",
         "its index map is the identity; type, extents and order in memory are the operand's", kMoves, true,
         find_same, apply_same},
    Rule{"layout-pair", "layout ops in a row -> one, or none",
         "the composed index map is that of one reshape, transpose, broadcast, slice or reverse", kMoves,
         true, find_layout_pair, apply_layout_pair},
    Rule{"neutral", "max(x, -inf), min(x, inf), x * 1, x / 1, x - 0, x + -0 -> x",
         "the other operand is that constant everywhere; of integers also x + 0, x & ~0, x | 0, x ^ 0; not x "
         "+ 0 "
         "of floats, where -0 becomes 0",
         kMoves, true, find_neutral, apply_neutral},
    Rule{"constant", "an op of constants -> a constant",
         "element-wise, layout or a reduction; operands and result of at most 16 MiB; no broadcast", kMoves,
         true, find_constant, apply_constant},
    Rule{"slice-of-concat", "slice(concat(..., a, ...)) -> slice(a)", "the slice lies inside one part",
         kMoves, true, find_slice_of_concat, apply_slice_of_concat},
    Rule{"concat-of-slices", "concat(slice(x), slice(x), ...) -> slice(x), or x",
         "the slices follow one another along the dimension, without gaps and strides, and are alike in "
         "others",
         kMoves, true, find_concat_of_slices, apply_concat_of_slices},
    Rule{"broadcast-down", "f(broadcast x, broadcast y) -> broadcast f(x, y)",
         "f is element-wise; all operands repeat arrays of one shape along the same dimensions, or one "
         "element",
         kMoves, false, find_broadcast_down, apply_broadcast_down},
    Rule{"through-elementwise", "f(T x, T y) -> T f(x, y)",
         "f is element-wise; T is one transpose, reshape, reverse or concatenation; other operands are one "
         "element everywhere",
         kMoves, false, find_through_elementwise, apply_through_elementwise},
    Rule{"before-elementwise", "T f(x, y) -> f(T x, T y)",
         "f is element-wise and only T reads it; T is a transpose, reshape, reverse or slice", kMoves, false,
         find_before_elementwise, apply_before_elementwise},
    Rule{"layout-into-dot", "dot(T x, y) -> dot of other dimension numbers, of x",
         "T is a transpose that keeps the order of the dimensions that the dot keeps, or a reshape that "
         "splits, "
         "merges or adds only those",
         kMoves, false, find_layout_into_dot, apply_layout_into_dot},
    Rule{"transpose-of-dot", "transpose(dot(x, y)) -> dot(y, x)",
         "the transpose swaps what is left of x and of y, and alone reads the dot", kMoves, false,
         find_transpose_of_dot, apply_transpose_of_dot},
    Rule{
        "dot-merge-free", "dot(x, w1), dot(x, w2), ... -> slices of dot(x, [w1 | w2 | ...]); either side",
        "same batch and contracted dimensions of x, same types and attributes; none is computed from another",
        kMoves, false, find_dot_merge_free, apply_dot_merge_free},
    Rule{"dot-merge-batch", "dots of equal shapes -> slices of one with a new batch dimension",
         "same dimension numbers, types and attributes; none is computed from another", kMoves, false,
         find_dot_merge_batch, apply_dot_merge_batch},
    Rule{"dot-split", "slice(dot(x, y)) -> dot(slice x, slice y); dot(x, [w1 | w2]) -> concat of dots",
         "the concatenation is along a dimension that the dot keeps, no batch dimension", kMoves, false,
         find_dot_split, apply_dot_split},
    Rule{"dot-split-sum", "dot([x1 | x2], y) -> dot(x1, y1) + dot(x2, y2); either side",
         "floats; the concatenation is along a contracted dimension", kReassociates, false,
         find_dot_split_sum, apply_dot_split_sum},
    Rule{"dot-chain", "(A B) C -> A (B C), and back",
         "one float type and the same attributes; the batch dimensions are the same; what the outer dot "
         "contracts are own dimensions of one operand of the inner; nothing else reads the inner",
         kReassociates, false, find_dot_chain, apply_dot_chain},
    Rule{"dot-sum",
         "dot(x, w) +- dot(x, v) -> dot(x, w +- v); dot(x, w) + dot(y, v) -> dot([x | y], [w ; v])",
         "one float type, the same dimension numbers and attributes; nothing else reads the dots; appended "
         "along "
         "the first contracted dimension, all others equal",
         kReassociates, false, find_dot_sum, apply_dot_sum},
    Rule{"scale-out-of-dot", "dot(x * broadcast s, y) -> dot(x, y) * broadcast s; / too; either side",
         "s does not vary along contracted dimensions; only the dot reads the scaled array; one float type, "
         "not "
         "f16, where the product without its scale may overflow",
         kReassociates, false, find_scale_out_of_dot, apply_scale_out_of_dot},
    Rule{"scale-into-dot", "dot(x, y) * broadcast s -> dot(x * broadcast s, y); / too; the smaller side",
         "s varies along dimensions of one operand only; nothing else reads the dot; one float type, not f16",
         kReassociates, false, find_scale_into_dot, apply_scale_into_dot},
    Rule{
        "scale-across-dot", "dot(x * broadcast s, y) -> dot(x, y * broadcast s); / too; either side",
        "s varies along contracted and batch dimensions only; only the dot reads the scaled array; one float "
        "type, not f16",
        kReassociates, false, find_scale_across_dot, apply_scale_across_dot},
    Rule{"reduce-as-dot", "sum(x) -> dot(x, ones)",
         "a reduction by add from 0, of floats; batch dimensions and side are those of a dot that contracts "
         "the "
         "same of x, if there is one",
         kReassociates, false, find_reduce_as_dot, apply_reduce_as_dot},
    Rule{"dot-as-product", "dot(x, y) -> sum(x * y)",
         "one float type; it contracts one element, or leaves one for each element of the batch",
         kReassociates, false, find_dot_as_product, apply_dot_as_product},
    Rule{"reduce-of-dot", "sum(dot(x, y)) -> dot(sum x, y); either side",
         "a reduction by add from 0, of one float type, over own dimensions of one operand", kReassociates,
         false, find_reduce_of_dot, apply_reduce_of_dot},
    Rule{"reduce-pair", "reduce(reduce(x)) -> one reduce of x",
         "one reducer, of one op; the inner one starts from its identity and nothing else reads it",
         kReassociates, false, find_reduce_pair, apply_reduce_pair},
    Rule{"reduce-of-broadcast", "max(broadcast x) -> x; sum(broadcast x) -> n * x",
         "by max, min, and, or, add, from the identity; n is a value of the type", kReassociates, false,
         find_reduce_of_broadcast, apply_reduce_of_broadcast},
    Rule{"reduce-through-layout", "reduce(T x) -> T' reduce(x)",
         "T is a transpose that keeps the order of the reduced dimensions, or a reshape that keeps them "
         "together",
         kMoves, false, find_reduce_through_layout, apply_reduce_through_layout},
    Rule{"conv-as-dot", "a 1x1 convolution -> dot",
         "one float type, window of size 1, stride 1, no padding, no dilation of the input, no groups",
         kReassociates, false, find_conv_as_dot, apply_conv_as_dot},
    Rule{"conv-merge", "conv(x, w1), conv(x, w2), ... -> slices of conv(x, [w1 | w2 | ...])",
         "same window, dimension numbers and float type; no groups; none is computed from another",
         kReassociates, false, find_conv_merge, apply_conv_merge},
    Rule{"conv-scale", "conv(x, w) * broadcast s -> conv(x, w * broadcast s); / too",
         "s varies along output features only; nothing else reads the convolution; one float type, not f16; "
         "no "
         "groups",
         kReassociates, false, find_conv_scale, apply_conv_scale},
    Rule{"softmax-dot", "dot(E / sum E, v) -> both products of dot(E, [v | 1]), then the division",
         "E is an exponential that no dot reads; the sum is over what the dot contracts of E; steps: "
         "scale-out-of-dot, reduce-as-dot, dot-merge-free",
         kReassociates, false, find_softmax_dot, nullptr, softmax_dot_steps},
    Rule{"linear-attention", "dot(A B / sum(A B), v) -> A (B v) / (A sum B)",
         "the sum is over what the dot contracts, own dimensions of A or of B; only these two read A B; "
         "steps: "
         "scale-out-of-dot, reduce-of-dot, dot-chain",
         kReassociates, false, find_linear_attention, nullptr, linear_attention_steps},
};

constexpr std::array kChosenRules = {
    Rule{"fuse-products",
         "dots of matrices with common operands, and sums of dots -> slices of one dot of operands appended",
         "the named dots, and behind the name of an add those that it sums, make a complete grid of left and "
         "right operands; one float type, no batch dimensions; none is computed from another",
         kReassociates, false, find_fuse_products, apply_fuse_products, nullptr, find_all_fuse_products},
    Rule{"concat-in-place", "concatenate(x, y, ..) -> the same, x, y, .. computed where it has them: no copy",
         "an operand is a parameter or computed by a kernel, and what reads it may read a block of a matrix "
         "(others are copied there); none has its place elsewhere",
         kMoves, false, find_concat_in_place, apply_concat_in_place, nullptr, find_all_concat_in_place},
    Rule{"reduce-split",
         "reduce over dimensions that do not lie together -> reduce of the longest that do, then of the "
         "others",
         "the reducer is one op, from its identity; at least two groups of reduced dimensions with others "
         "between",
         kReassociates, false, find_reduce_split, apply_reduce_split, nullptr, find_all_reduce_split},
};

}  // namespace

std::span<const Rule> rules() { return kRules; }
std::span<const Rule> chosen_rules() { return kChosenRules; }

const Rule& rule_named(std::string_view name) {
  std::vector<std::string_view> names;
  for (const std::span<const Rule> table : {rules(), chosen_rules()})
    for (const Rule& rule : table) {
      if (rule.name == name) return rule;
      names.push_back(rule.name);
    }
  const std::string_view near = closest(name, names);
  throw Error(fmt::format("no rule is called '{}'", name),
              near.empty() ? "`stitchwork rules` lists them" : fmt::format("did you mean {}?", near));
}

std::string_view name(Exactness exactness) {
  return exactness == Exactness::kMoves ? "moves" : "reassociates";
}

}  // namespace stitchwork::rewriting
