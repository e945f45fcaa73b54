// What generated code takes for values that are there for some elements alone: pieces of concatenations and
// paddings, elements of windows, slices of these (codegen/print/print_branches.cpp).
#pragma once

#include <deque>
#include <set>
#include <span>
#include <utility>
#include <vector>

#include "analysis/facts/facts.h"
#include "analysis/plan/plan.h"
#include "analysis/schedule/evaluations.h"
#include "analysis/schedule/layout.h"
#include "occupancy_model/timing.h"

namespace stitchwork::costs {

/// Whether a thread goes through several elements of the first operand for one of the result.
inline bool reduces(const Node& node) { return is_reduction(node) || node.op == Op::kReduceWindow; }
/// So many.
double reduced_elements(const Computation& computation, const Node& node);

/// Guarded values of a group. A choice between few and cheap arguments computes all of them for every
/// element; the arguments of others are computed in branches (analysis/schedule/branches.h), by the warps
/// that have such an element.
class Choices {
 public:
  Choices(const Computation& computation, const Group& group, const GroupEvaluations& found,
          const Layout& layout);

  /// Whether any value is guarded; if not, nothing below is to be asked.
  bool any() const { return found_.readings != nullptr; }

  /// Warps that compute value `v`, or ask for its guards, for an element in each lane.
  double warps(int v) const;
  /// Instructions of one such warp for the guards of the value: compares, what joins them, branches and
  /// selections; of a reduction of each element. What is computed for the guard of another value where it
  /// stands is not computed again.
  ThreadWork guard_work(int v) const { return any() ? at(v).guards : ThreadWork(); }
  /// And those of the addresses of a guarded load.
  ThreadWork address_work(int v) const { return at(v).address; }
  /// Whether guards stand before the value is loaded, in a block of code of its own.
  bool is_guarded_load(int v) const { return any() && at(v).guarded_load; }
  /// Or whether it is loaded in a branch, and so behind all that stands before that: what has guards of its
  /// own alone is loaded under a predicate, with its neighbours (simulator/lower/load_order.cpp).
  bool waits_for_branch(int v) const { return any() && at(v).branch >= 0; }
  /// Its conditions that are open where it stands.
  std::vector<Constraint> open_constraints(int v) const;
  /// Whether it is loaded by an index that is a value.
  bool is_indexed(int v) const { return !evaluation(v).map.runtime.empty(); }
  /// The innermost branch that the value is in, -1: none.
  int branch(int v) const { return at(v).branch; }

 private:
  // No quantity: no reader has been visited, or none takes the value.
  static constexpr int kNotRead = -2;

  struct OfValue {
    int branch = kNotRead, first = -1;  ///< first: of a choice with branches
    ThreadWork guards, address;
    bool guarded_load = false;
  };
  /// An argument of a choice that may be taken, and where it is read.
  struct Argument {
    int operand = 0;
    const IndexMap* map = nullptr;
  };
  struct Branch {
    int choice = -1, argument = 0, parent = -1;
    const IndexMap* map = nullptr;
    double share = 1;  ///< of elements
    double warps = 1;  ///< of warps, over those of all elements
  };
  /// What a thread knows where it is, and need not compute again.
  struct Known {
    std::set<IndexExpr> parts;
    std::set<Constraint> conditions;
    std::set<std::pair<NodeId, IndexExpr>> addresses;
  };

  OfValue& at(int v) { return values_[static_cast<std::size_t>(v)]; }
  const OfValue& at(int v) const { return values_[static_cast<std::size_t>(v)]; }
  const Evaluation& evaluation(int v) const { return found_.values[static_cast<std::size_t>(v)]; }
  const Node& node(int v) const { return computation_.node(evaluation(v).op); }
  std::span<const Reading> readings(int v) const;
  bool is_choice(int v) const;
  bool is_root(int v) const;
  /// Of a choice, in the order in which they are asked for.
  std::vector<Argument> arguments(int v);

  void order_values();
  void place(const std::vector<char>& branched);
  void visit(int v, bool branched);
  void read(int v, int branch);
  int common(int a, int b) const;
  int outside_of_elements(int v, int branch) const;
  std::int64_t work(int v) const;
  std::vector<char> find_branched();
  void share_branches();

  void count_guards();
  double conditions(const IndexMap& map, int branch);
  double condition(const Constraint& constraint, const IndexMap& map, int branch);
  double parts(const IndexExpr& expr, int branch);
  double part(const IndexTerm& term, int branch);
  /// Loads ahead are in branches of their own, which begin with what is known outside of all.
  std::size_t known_index(int branch) const {
    return branch < 0 ? 0 : 2 * static_cast<std::size_t>(branch) + (ahead_ ? 2 : 1);
  }
  /// Whether `set` of a branch around has it; if not, this one has it from now on.
  template <typename T>
  bool is_known(int branch, std::set<T> Known::*set, const T& what);
  bool holds(int branch, const Constraint& constraint) const;
  ThreadWork of_choice(int v);
  ThreadWork of_load(int v);
  ThreadWork of_window(int v);
  ThreadWork of_address(int v);

  const Computation& computation_;
  const Group& group_;
  const GroupEvaluations& found_;
  const Layout& layout_;
  std::vector<std::size_t> first_reading_;  ///< by value
  std::vector<int> order_;                  ///< readers before what they read
  std::vector<OfValue> values_;
  std::vector<std::vector<Argument>> arguments_;  ///< by value, of choices
  std::deque<IndexMap> maps_;                     ///< of arguments that are immediates
  std::vector<Branch> branches_;
  std::vector<Known> known_;  ///< known_index()
  /// Of the value whose guards are being counted.
  bool in_window_ = false, ahead_ = false;
};

}  // namespace stitchwork::costs
