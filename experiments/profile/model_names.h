// By which names a profile may call what a model's plan launches.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "analysis/plan/plan.h"
#include "core/passes/op_trace.h"
#include "experiments/model.h"

namespace stitchwork {

/// Ops of one computation that a name of the profile stands for.
struct NamedOps {
  std::string name;         ///< in the model's file, or of the plan's kernel
  int body = -1;            ///< index into FusionPlan::computations of what they are in; -1: the entry
  std::vector<NodeId> ops;  ///< of the planned graph, ascending
  bool fusion = false;      ///< one of a compiled module: XLA's kernels are called so
  int step = -1;            ///< of the plan of that computation, where the name is the step's own
};

/// "loop_add_fusion.3" as XLA names the kernel: what is neither letter nor digit becomes '_'.
std::string kernel_identifier(std::string_view instruction);
/// A name without its number: "loop_add_fusion.3" and "loop_add_fusion_3" are "loop_add_fusion".
std::string without_number(std::string_view name);

/// What NamedOps::body numbers: its plan, and its computation of the planned graph.
const FusionPlan& body_plan(const FusionPlan& plan, int body);
const Computation& body_computation(const Graph& graph, const FusionPlan& plan, int body);

class ModelNames {
 public:
  /// All outlive it. `trace`: what became of the ops of the model's file.
  ModelNames(const Model& model, const OpTrace& trace, const FusionPlan& plan);

  /// A fusion of a compiled module, else an op, by the name that the file has.
  const NamedOps* instruction(const std::string& name) const;
  /// The same by XLA's name of the kernel; also of the second kernel of an instruction ("NAME__1").
  const NamedOps* xla_kernel(const std::string& function) const;
  /// A kernel of the plan by its own name, if the launch is the plan's where the profile says it.
  const NamedOps* own_kernel(const std::string& function, const std::string& grid,
                             const std::string& block) const;
  /// Whether that kernel of the plan has this launch; "": not known.
  bool launched_so(const NamedOps& own, const std::string& grid, const std::string& block) const;
  /// Ops of that metadata op_name.
  const NamedOps* framework_op(const std::string& op) const;
  /// Kernels of the plan as they run when stitchwork launches them: all of one name, in the plan's order.
  const std::vector<NamedOps>& own_kernels() const { return own_; }
  /// Dots (or convolutions) of the entry, in the order of the text.
  const std::vector<NamedOps>& products(bool convolutions) const {
    return convolutions ? convolutions_ : dots_;
  }
  bool products_in_loops() const { return products_in_loops_; }
  /// Fusions and ops of that name but for their number, in the order of the text.
  std::vector<const NamedOps*> alike(const std::string& name) const;

 private:
  void add_computation(const Computation& planned, int body, const Computation* model);
  void add(NamedOps named);
  void add_own(const FusionPlan& plan, int body);

  const Model& model_;
  const OpTrace& trace_;
  const FusionPlan& plan_;
  const Graph& graph_;
  std::vector<NamedOps> named_, own_, dots_, convolutions_;
  std::unordered_map<std::string, std::size_t> by_name_, by_kernel_, by_own_;
  std::unordered_map<std::string, std::vector<std::size_t>> by_stem_;
  std::unordered_map<std::string, NamedOps> by_op_;
  mutable std::unordered_map<std::string, std::optional<NamedOps>> traced_;
  bool products_in_loops_ = false;
};

}  // namespace stitchwork
