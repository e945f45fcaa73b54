// Planner auto's kernels before and while it chooses their forms.
#pragma once

#include <optional>
#include <set>
#include <span>
#include <vector>

#include "analysis/forms/auto_forms.h"
#include "analysis/forms/best_kernel.h"
#include "analysis/plan/plan.h"
#include "analysis/stitching/options.h"

namespace stitchwork::automatic {

/// The form that a kernel has in the plan.
struct Chosen {
  Recipe recipe;
  Form form;
  std::vector<Decision> decisions;  ///< of its forms; none where a kernel before is alike
};

/// AStitch's kernels, and those that read less of each other and compute it again instead.
struct Base {
  struct Kernel {
    KernelPlan plan;
    Candidate op;
    std::vector<KernelPlan> xla;  ///< XLA's fusions of its ops; none of those that compute something again
    bool as_stitched = true;      ///< by AStitch's scope
    Chosen chosen;
  };
  std::vector<Kernel> kernels;
  std::vector<KernelPlan> gone;     ///< AStitch's, where others took their place
  std::set<NodeId> computed_again;  ///< by several kernels

  Base(const astitch::Nodes& nodes, std::vector<KernelPlan> plans);

  /// `loose`: XLA's kernels of index maps that several of AStitch's repeat.
  void find_xla(const astitch::Nodes& nodes, const Constraints& constraints, std::vector<KernelPlan>& loose);
  /// `into`: the kernels that still have outputs.
  void take(std::span<const int> changed, std::span<const Candidate> after, std::span<Kernel> into);
  void drop_empty();
  std::vector<Candidate> candidates() const;
  void mark_computed_again(std::vector<KernelPlan>& plans) const;
};

/// Of each part, in order, the kernels of its candidates that have outputs; nothing where one does not become
/// one kernel.
std::vector<std::optional<std::vector<Base::Kernel>>> planned(
    const astitch::Nodes& nodes, const std::vector<std::vector<Candidate>>& parts, const Device& device,
    const astitch::Options& knobs);

Stitched stitched_of(const astitch::Nodes& nodes, const Device& device, const astitch::Options& knobs,
                     const Base::Kernel& kernel, KnownParts* parts = nullptr);

}  // namespace stitchwork::automatic
