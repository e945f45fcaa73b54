// What a kernel's groups evaluate: every (op, index map) a thread computes or loads, as codegen will lower
// it. The cost model counts these, verify checks them.
#pragma once

#include <cstddef>
#include <memory>
#include <utility>
#include <variant>
#include <vector>

#include "analysis/plan/plan.h"
#include "analysis/schedule/propagation.h"

namespace stitchwork {

/// One value of a group's domain: `op` at index `map` (dims: row, col; symbols: serial reductions inside a
/// thread). The same op under two maps is two evaluations.
struct Evaluation {
  NodeId op = kNoNode;
  IndexMap map;
  double count = 1;       ///< evaluation_count(map)
  NodeId root = kNoNode;  ///< the materialised op it is first needed for
  bool load = false;      ///< read from a buffer: an input, or a Regional or Global value of the kernel
  bool resident =
      false;          ///< a load of what the thread has kept since an earlier phase (KernelPlan::resident)
  bool tile = false;  ///< a load through a tile (KernelPlan::tiles)
  int by = -1;        ///< index of the value that needs it first; -1: a root
};

/// Evaluations that copies have in common.
class EvaluationList {
 public:
  EvaluationList() : EvaluationList(std::vector<Evaluation>()) {}
  explicit EvaluationList(std::vector<Evaluation> list)
      : list_(std::make_shared<const std::vector<Evaluation>>(std::move(list))) {}

  operator const std::vector<Evaluation>&() const { return *list_; }
  const Evaluation& operator[](std::size_t v) const { return (*list_)[v]; }
  std::size_t size() const { return list_->size(); }
  bool empty() const { return list_->empty(); }
  auto begin() const { return list_->begin(); }
  auto end() const { return list_->end(); }

 private:
  std::shared_ptr<const std::vector<Evaluation>> list_;
};

/// A value that another one reads as this operand of its op.
struct Reading {
  int reader = -1, operand = 0, value = -1;
};

struct GroupEvaluations {
  std::shared_ptr<const Placements> placements;  ///< of propagate()
  EvaluationList values;  ///< roots first, then what they read, each (op, map, level) once
  /// All that values read of each other, by reader and operand, where any of them is there for some of the
  /// domain alone; empty where none is.
  std::shared_ptr<const std::vector<Reading>> readings;
  std::vector<NodeId> unplaced;  ///< materialised ops of the group that lie nowhere in its domain
};

/// Index maps under which a group may compute one op that takes instructions, where a planner has another
/// choice: generated code has the op once for each, and all that it inlines. A choice, not measured: XLA
/// stops at 15 copies of a producer (FusionNodeIndexingEvaluation), counting equal ones apart. An associative
/// scan in one loop had up to 2,000, 138,000 lines of code.
inline constexpr int kMostMaps = 24;

/// Immediates are not listed. A materialised op of the same kernel is loaded if its scheme (in its own phase:
/// its scheme there) is Regional or Global, else evaluated in place.
GroupEvaluations evaluations(const Computation& computation, const KernelPlan& kernel, const Group& group);

/// Sets Evaluation::tile by the tiles that the kernel has.
void mark_tiles(const Computation& computation, const KernelPlan& kernel, const Group& group,
                GroupEvaluations& found);

/// Of every group of a kernel, and of every kernel of a plan. What was evaluated lately is known: forms of a
/// kernel differ in how threads share the work, not in what there is to do, and whoever estimates or checks
/// one asks for the same.
using KernelEvaluations = std::vector<GroupEvaluations>;
KernelEvaluations evaluations(const Computation& computation, const KernelPlan& kernel);
/// The same, or the first op found that a group would compute under more than kMostMaps index maps.
std::variant<KernelEvaluations, NodeId> evaluations_within_maps(const Computation& computation,
                                                                const KernelPlan& kernel);
/// The most index maps under which one of the groups computes an op that takes instructions.
int most_maps(const Computation& computation, const KernelEvaluations& evaluations);
using PlanEvaluations = std::vector<KernelEvaluations>;
PlanEvaluations evaluations(const Computation& computation, const FusionPlan& plan);

/// Whether the value under `map`, or whether there is one, varies along a dim of the domain.
bool depends_on(const IndexMap& map, int dim);

/// Points of the domain at which a value under `map` is evaluated: rows * cols * symbols, without the dims it
/// does not depend on (a value that depends on the row alone is computed once a row), times the part of them
/// that the constraints admit.
double evaluation_count(const IndexMap& map);

/// The part of the points that the constraints admit, each taken for itself.
double admitted_share(const IndexMap& map);

}  // namespace stitchwork
