// Macros: several rules in a row, where each alone would gain nothing. After Venkatram and Oliaro,
// Algorithm 1.
#pragma once

#include <string>
#include <vector>

#include "core/substitute/rule.h"

namespace stitchwork::rewriting {

/// At the dot that reads a softmax E / sum(E) whose sum runs over what the dot contracts.
std::optional<Match> find_softmax_dot(const View& view, NodeId place);
/// scale-out-of-dot, reduce-as-dot, dot-merge-free.
int softmax_dot_steps(Derivation& derivation, const std::string& computation, const std::vector<Place>& at);

/// At the dot that reads (A B) / sum(A B), the sum over what the dot contracts, own dimensions of A or B.
std::optional<Match> find_linear_attention(const View& view, NodeId place);
/// scale-out-of-dot, reduce-of-dot, dot-chain.
int linear_attention_steps(Derivation& derivation, const std::string& computation,
                           const std::vector<Place>& at);

/// Algorithm 1 at every softmax E / sum(E), E an exponential: softmax-dot where it holds, else reduce-as-dot
/// of the sum. (The text leaves a softmax whole that is neither last nor before a product; its code does
/// not.) Returns how many sums became products.
int fission_softmax(Derivation& derivation);

}  // namespace stitchwork::rewriting
