// Arrays of a loop's state that its body updates where they lie: what a scan stacks up, a slice a trip.
#pragma once

#include "core/graph/graph.h"

namespace stitchwork {

/// Makes each dynamic-update-slice of a loop's body that can work in place an update-in-place: its value is
/// the slice that it writes (its operands are the update and the starts), its name stays, and
/// Attributes::updated says of which array. It can where the array is an element of the loop's state that
/// nothing else in the body reads, and becomes the same element of the next state and nothing else: then
/// nobody has use for what was there before. (XLA's buffer assignment aliases these, too.) Ids stay.
void update_in_place(Computation& body);

}  // namespace stitchwork
