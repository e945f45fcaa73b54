// Fusion groups with their arrays numbered for pins, and those of them that are decided together.
#pragma once

#include <string>
#include <vector>

#include "analysis/planners/astra/groups.h"
#include "analysis/planners/astra/pins.h"

namespace stitchwork::astra {

/// A fusion group of more than one product, its members ordered along each axis: so that members that go
/// together come in one order in every group, by labels of the dimensions that groups identify.
struct PlacedGroup {
  FusionGroup group;
  std::vector<std::vector<int>> left, right;  ///< as group.left, right: numbers of arrays
  std::vector<int> result;                    ///< as group.result
  int number = 0;                             ///< place among the groups of the space
  int array_to(int i, int j) const { return result[static_cast<std::size_t>(i * group.n() + j)]; }
};

/// Groups of equal extents, shapes, sides and scope without numbers: time steps of one model decide alike.
struct GroupClass {
  std::vector<PlacedGroup> groups;
  int saved = 0;  ///< calls that all of them save when whole
};

struct ClassedGroups {
  std::vector<Pinnable> arrays;  ///< by number
  std::vector<GroupClass> list;  ///< most saved calls first
};

/// Of `groups` those of more than one product.
ClassedGroups classed(const Computation& computation, const Products& products,
                      const std::vector<Ladder>& ladders, const std::vector<FusionGroup>& groups);

/// `with` its members along an axis in another order: member `order[p]` comes p-th.
PlacedGroup reordered(const PlacedGroup& group, Axis axis, const std::vector<int>& order);
/// See without(FusionGroup).
PlacedGroup without(const PlacedGroup& group, Axis axis, int place);

/// The arrays at a place of an axis, of which `without` leaves the group free: operands, not results.
std::vector<int> arrays_at(const PlacedGroup& group, Axis axis, int place);
/// All arrays of a group.
std::vector<int> arrays_of(const PlacedGroup& group);

/// Pins the group's members; false, and nothing is pinned, where one does not fit.
bool pin(Pins& pins, const PlacedGroup& group);

/// "jit(step)/transpose(jvp(main))/dot_general" without digits.
std::string scope_without_numbers(const std::string& op_name);

}  // namespace stitchwork::astra
