// Which classes of fusion groups fit beside each other, in which orders of their members.
#pragma once

#include <optional>
#include <vector>

#include "analysis/plan/recorder.h"
#include "analysis/planners/astra/group_classes.h"

namespace stitchwork::astra {

/// A member moved to either end of its axis: [h|s] and [s|h] give the same sum.
struct MemberMove {
  Axis axis = kK;
  int place = 0;
  bool to_front = false;
};

/// A class with the orders tried so far.
struct FittedClass {
  std::vector<PlacedGroup> groups;
  int members() const { return groups.empty() ? 0 : groups[0].group.products(); }
};
FittedClass moved(const FittedClass& fitted, const MemberMove& move);

/// Pins the classes of `which` in turn. Where one does not fit each of its shared members is tried at either
/// end, then those of classes before it. Returns the place in `which` of the first that fits no way; nothing
/// if all do. Orders that were found stay in `classes`.
std::optional<std::size_t> fit(Pins& pins, std::vector<FittedClass>& classes, const std::vector<int>& which);

/// Gives up members until all classes fit, or no class is kept from fitting by one array alone: of the
/// classes that hold it the one with most members that keeps two without it gives it up
/// (astra.offending-tensor). Returns the classes that fit together.
std::vector<int> give_up_offending(const Computation& computation, const std::vector<Pinnable>& arrays,
                                   std::vector<FittedClass>& classes, Recorder& recorder);

}  // namespace stitchwork::astra
