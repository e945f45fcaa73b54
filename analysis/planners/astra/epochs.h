// What may run beside what: super-epochs, epochs and classes of equal steps of a plan, and how steps are
// dealt to streams (Astra, sections 3.3 and 4.5.3 to 4.5.5).
#pragma once

#include <string>
#include <vector>

#include "analysis/plan/plan.h"

namespace stitchwork::astra {

/// Steps of an epoch of which only the number on each stream matters: equal in kernel or call, in what comes
/// before and behind, and in scope but for numbers.
struct StepClass {
  std::vector<int> steps;  ///< indices into FusionPlan::steps, ascending
  double us = 0;           ///< of each, modelled
};

/// Steps of which none reads what another makes.
struct Epoch {
  std::vector<StepClass> classes;  ///< longest steps first, then by first step
  /// One step with which no other may run: a kernel with grid barriers, a loop or branch. All streams join
  /// before and behind it.
  bool alone = false;
  double us = 0;  ///< of all steps, modelled
};

/// Epochs between two barriers of all streams.
struct SuperEpoch {
  std::vector<Epoch> epochs;
  double us = 0;
};

struct StreamSpace {
  std::vector<std::vector<int>> before;  ///< by step: those it has to wait for, ascending
  std::vector<SuperEpoch> super_epochs;
  /// By step: the longest way from its beginning to the end of its super-epoch, us, modelled.
  std::vector<double> way_us;
};

/// Of the entry computation's steps. Epochs are levels of the steps' dependences; a super-epoch closes behind
/// the level with which it reaches `super_epoch_us`, modelled; infinity: never.
StreamSpace stream_space(const Graph& graph, const FusionPlan& plan, double super_epoch_us);

/// By class how many of its steps are on each stream.
using StreamCounts = std::vector<std::vector<int>>;

/// All on stream 0, then from the most even to the least, by predicted time: at most kMostCounts of them.
/// `behind_barrier`: streams are alike, so that the first class has no more on a stream than on the one
/// before.
std::vector<StreamCounts> stream_choices(const Epoch& epoch, int streams, bool behind_barrier);

/// Whether all streams join before the e-th epoch.
bool behind_barrier(const SuperEpoch& part, std::size_t e);

/// A choice, not measured: section 4.8 has the streams roughly balanced, and gives no number.
inline constexpr std::size_t kMostCounts = 64;

/// The steps on streams.
struct Dealt {
  /// Of dispatch: steps, epoch by epoch, those first from which the way to the super-epoch's end is longest:
  /// the paper varies the order and gives no rule (3.3); list scheduling takes this one.
  std::vector<int> order;
  std::vector<int> stream;  ///< by step
  std::vector<std::vector<int>>
      waits;  ///< by step: steps on other streams that no earlier wait covers, ascending
};

/// `counts`: by epoch, over all super-epochs in turn.
Dealt deal(const StreamSpace& space, const std::vector<StreamCounts>& counts, int streams);

/// "3+7 1+0": classes in turn.
std::string to_text(const StreamCounts& counts);

}  // namespace stitchwork::astra
