// What a mini-batch of an exploration is: bindings made a plan, and a plan's times made those of its
// variables (Astra, sections 4.4.2 and 4.7).
#pragma once

#include <functional>
#include <map>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <vector>

#include "analysis/planners/astra/product_trials.h"
#include "analysis/planners/astra/stream_trials.h"

namespace stitchwork::astra {

/// What each step of a plan takes by itself, us.
using StepTimes = std::function<std::vector<double>(const FusionPlan& plan)>;

/// What a plan took that was run as a whole: from its beginning to the end of each step, us; 0 of steps that
/// did nothing.
struct Pass {
  std::vector<double> ends_us;  ///< by step
  double whole_us = 0;
};
using RunPass = std::function<Pass(const FusionPlan& plan)>;

/// Kernels that products are tried by in place of a library's, and who says how long they take.
struct ProductKernels {
  std::vector<std::string> names;  ///< the default first
  /// Of a call of a product by the kernel of that name, us; the product is the call's first op.
  std::function<double(const Computation& computation, std::span<const NodeId> call, const std::string& name)>
      us;
};

/// All keys of an exploration are behind this: lengths of sequences would be told apart by it.
inline constexpr const char* kBucket = "b0";

/// Mini-batches that trying option by option takes (Table 7), of a row's plan: of each strategy the products,
/// and the epochs of this plan.
double trials_of_plan(const Graph& model, const Device& device, const FusionPlan& plan);

/// Of one model, device and row of Astra. Every mini-batch is a whole plan: its products joined as the
/// bindings say, the kernels between them by the row's planner, its steps on streams.
class MiniBatches {
 public:
  /// `options` as for make_plan; without edits. `kernels`: of all products, whatever `times` says of them;
  /// without, what the library takes by itself has its time of `times`, and its other kernels are modelled.
  /// Model and device outlive this. Throws Error as make_plan does, and for a row that explores nothing.
  MiniBatches(const Graph& model, const Device& device, std::string planner, const PlanOptions& options,
              StepTimes times, std::optional<ProductKernels> kernels = std::nullopt);
  /// Times are those of whole plans, run as bound. `kernels`: that products are tried by, the default first:
  /// kLibraryKernel, or tiled ones of ours by name. `margin` as for next.
  MiniBatches(const Graph& model, const Device& device, std::string planner, const PlanOptions& options,
              RunPass pass, std::vector<std::string> kernels, double margin);
  MiniBatches(const MiniBatches&) = delete;
  MiniBatches& operator=(const MiniBatches&) = delete;

  /// The update tree as far as the index decides it: the epochs of a strategy are those of its best plan on
  /// one stream, so that they are there once its products are settled.
  const TreeNode& tree(const ProfileIndex& index);

  /// That products are tried by, the default first.
  const std::vector<std::string>& kernels() const { return products_.options().variants; }
  const std::string& default_kernel() const { return kernels().front(); }

  /// As astra::next, of tree(index).
  bool next(const ProfileIndex& index, Bindings& bindings);

  /// Microseconds by name of the tree. A product's are its calls with launch gaps and its share of the
  /// kernels before and behind them, which the groups beside a kernel divide equally; an epoch's from the
  /// beginning of its super-epoch; "strategy": of the whole.
  std::map<std::string, double> run(const Bindings& bindings);

  /// Of times by step: "strategy" of run() with the time that StepTimes has of each step, products included.
  double us_of_steps(const Bindings& bindings);

  /// Predicted and verified; products by kernels of ours name them.
  FusionPlan plan(const Bindings& bindings);

 private:
  /// A plan on one stream and what its steps take.
  struct Instance {
    std::string key;
    FusionPlan plan;
    std::vector<double> us;                                  ///< by step; empty: not timed yet
    std::map<std::string, std::vector<std::size_t>> steps;   ///< by call
    std::map<std::string, std::vector<std::string>> groups;  ///< calls by group
    std::map<std::size_t, std::set<std::string>> beside;     ///< groups by step that is before or behind
    std::optional<StreamTrials> streams;
    std::vector<StreamKernel> kernels;  ///< by step, modelled
  };

  /// What a mini-batch took.
  struct Took {
    std::vector<double> step_us;  ///< with the gap or the waiting before it
    std::map<std::string, double> epochs;
    double whole_us = 0;
  };
  /// A plan as it is run, and which steps of the plan on one stream its steps are.
  struct Ordered {
    FusionPlan plan;
    std::vector<int> order;
  };

  std::size_t strategy_of(const Bindings& bindings) const;
  Instance& instance(const Bindings& bindings);
  void time(Instance& made) const;
  Instance make_instance(const Bindings& bindings) const;
  void find_calls(const Bindings& bindings, Instance& made) const;
  void share_kernels(Instance& made) const;
  void check(const FusionPlan& plan) const;
  Ordered ordered(const Instance& of, const Bindings& bindings) const;
  Took timed(Instance& of, const Bindings& bindings) const;
  Took measured(const Instance& of, const Bindings& bindings) const;
  std::map<std::string, double> around_us(const Instance& of, const std::vector<double>& step_us) const;
  std::vector<std::string> kernels_of(const Instance& of, const Bindings& bindings) const;
  double product_us(const Instance& of, std::size_t step, const std::string& kernel) const;
  double whole_us(const Instance& of, const Bindings& bindings, const std::vector<double>& step_us,
                  std::map<std::string, double>* epochs) const;
  std::vector<double> times_of(const Instance& of, const Bindings& bindings) const;

  const Graph& model_;
  const Device& device_;
  std::string planner_;
  PlanOptions options_;
  StepTimes times_;
  std::optional<ProductKernels> kernels_;
  RunPass pass_;  ///< null: times by step
  double margin_ = 0;
  int streams_;
  ProductTrials products_;
  TreeNode tree_;
  std::map<std::size_t, Instance> settled_;  ///< by strategy, with its epochs
  std::optional<Instance> last_;
};

}  // namespace stitchwork::astra
