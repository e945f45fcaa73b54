// Arrays of a loop's state that its trips write from end to end.
#pragma once

#include <vector>

#include "core/graph/graph.h"

namespace stitchwork {

/// Of the elements of the state of `loop`, a while of the graph's entry, that its body updates in place
/// (core/passes/in_place.h), those of which its trips write everything, ascending: nobody sees what they
/// start as. Known where the text tells the trips, and the starts of the slices follow from scalars of the
/// state that start as constants, trip by trip; and where slices differ in one dimension from the array.
const std::vector<int>& wholly_written(const Graph& graph, const Node& loop);

}  // namespace stitchwork
