// The tidy rules to their fixpoint: what any graph is before and after other rules.
#pragma once

#include "core/substitute/rewritten_graph.h"

namespace stitchwork::rewriting {

/// `graph` with the tidy rules applied until none holds: sweeps over all running computations, nodes
/// ascending, at each the first rule in table order. `places`: at how many they were. The steps stay those of
/// `graph`.
RewrittenGraph tidied(const RewrittenGraph& graph, int* places = nullptr);

}  // namespace stitchwork::rewriting
