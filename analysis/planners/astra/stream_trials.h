// One plan's steps on streams, as the bindings of its epochs say.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "analysis/judge/step_times.h"
#include "analysis/planners/astra/space_tree.h"

namespace stitchwork::astra {

class StreamTrials {
 public:
  /// `plan` is predicted, its steps on one stream; all of them outlive this.
  StreamTrials(const Graph& graph, const Device& device, const FusionPlan& plan, int streams);

  const StreamSpace& space() const { return space_; }
  /// Names as epoch_name; its options are counts on streams.
  const TreeNode& tree() const { return tree_; }
  static std::string epoch_name(std::size_t super_epoch, std::size_t epoch);
  std::size_t choices(std::size_t super_epoch, std::size_t epoch) const {
    return choices_.at(first_.at(super_epoch) + epoch).size();
  }

  Dealt dealt(const Bindings& bindings) const;
  /// By step of the plan. `kernels`: by step as well (step_kernels, with_times).
  std::vector<StreamSpan> spans(const Dealt& dealt, const std::vector<StreamKernel>& kernels) const;
  /// Of each epoch, us: from the beginning of its super-epoch to the end of all steps up to its own
  /// (section 4.7).
  std::map<std::string, double> epoch_us(const std::vector<StreamSpan>& spans) const;

 private:
  const Device& device_;
  int streams_;
  StreamSpace space_;
  TreeNode tree_;
  std::vector<std::size_t> first_;                            ///< by super-epoch its first epoch among all
  std::vector<std::string> names_;                            ///< of all epochs
  std::vector<std::map<std::string, StreamCounts>> choices_;  ///< likewise, by option
};

/// The plan's steps in the order of dispatch, its kernels numbered in it.
void reorder(FusionPlan& plan, const Dealt& dealt);

}  // namespace stitchwork::astra
