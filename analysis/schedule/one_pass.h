// Reductions of a row that can be gathered in the pass of an earlier one: online softmax (Milakov and
// Gimelshein, "Online normalizer calculation for softmax", 2018) and one-pass variance (Welford 1962; Chan,
// Golub and LeVeque, "Algorithms for computing the sample variance", 1983).
#pragma once

#include <optional>

#include "analysis/plan/plan.h"

namespace stitchwork {

enum class OnePassKind : std::uint8_t {
  kExponentials,  ///< the sum of exp(x - c): gathered about one of the largest x so far
  kSquares,       ///< the sum of (x - c)^2: gathered about the mean of the x so far
};

/// A sum over elements x and a value c of the row. What a thread has gathered about a value of its own is
/// moved to c once that is known.
struct OnePassForm {
  OnePassKind kind = OnePassKind::kExponentials;
  NodeId x = kNoNode;  ///< a value of the elements
  NodeId c = kNoNode;  ///< the row's value, spread over the cols: a broadcast
};

/// Of a reduce by addition in f32 or f64; none for other ops and other sums. Squares want c to be the sum of
/// the same x times or over constants: about its mean nothing is lost.
std::optional<OnePassForm> one_pass_form(const Graph& graph, NodeId reduce);

/// Whether `reduce`, which the group materialises, can be gathered in the pass of an earlier reduction of the
/// group: its x is known then, and its c comes from that reduction.
Verdict can_gather(const Graph& graph, const KernelPlan& kernel, const Group& group, NodeId reduce);

}  // namespace stitchwork
