// Which values a thread computes only where a choice takes them.
#pragma once

#include <cstdint>
#include <vector>

#include "analysis/schedule/layout.h"
#include "analysis/schedule/schedule.h"

namespace stitchwork {

/// One argument of a choice whose arguments are computed in branches.
struct Branch {
  int choice = -1;    ///< the kChoose value
  int argument = -1;  ///< index into its arguments
  int parent = -1;    ///< the branch that the choice itself is in, -1: in none
};

/// The branches of a step. Values that a single argument of a choice needs, and nothing else, are computed in
/// that argument's branch: of a concatenation's operands a thread computes the one it is in. A choice between
/// few and cheap arguments computes all of them and selects, which no thread waits for.
struct Branches {
  std::vector<Branch> all;    ///< those of a choice follow each other, by argument
  std::vector<int> first_of;  ///< by value: of a choice with branches the first of them, else -1
  std::vector<int> of;        ///< by value: the innermost branch it is in, -1: none

  bool has(int choice) const { return first_of[static_cast<std::size_t>(choice)] >= 0; }
};

/// The branches of a step, for whose values `order` is there. Values that other steps read are in none.
Branches find_branches(const Computation& computation, const Step& step);

/// Whether a choice between so many arguments, which take so much work together, has branches.
bool has_branches(std::size_t arguments, std::int64_t work);

/// In machine instructions, about: those of a load with its address and condition, of an index, and of each
/// element that a thread folds or reduces.
/// A choice, not measured: they are rounded counts of what the compiler makes of such values.
inline constexpr std::int64_t kLoadWork = 6, kIndexWork = 3, kReducedWork = 6;
/// Of a fold of partials, and all that more elements count for: enough for branches.
/// A choice, not measured: about ten loads, well above the compares and jumps of a branch.
inline constexpr std::int64_t kMostWorkSelected = 64;

/// Whether the branch that a vector of elements takes is that of its first one, known before any value is.
bool is_one_for_vectors(const Value& choice, const Layout& layout);

}  // namespace stitchwork
