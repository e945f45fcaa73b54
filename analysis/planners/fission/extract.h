// Kernels of sets of primitives: with the index maps they read through, as a graph of their own.
#pragma once

#include <string>
#include <vector>

#include "analysis/planners/fission/windows.h"

namespace stitchwork::fission {

/// What a kernel of these primitives (ascending) evaluates, ascending: they, and the index maps between them
/// and what they read. Names of buffers that lie outside are left there.
std::vector<NodeId> with_index_maps(const astitch::Nodes& nodes, const std::vector<NodeId>& primitives);

/// These ops (ascending) as a module: what they read from outside are its parameters, in order, immediates
/// are copied; `outputs`, ascending, are its results, a tuple if several. Ops keep their names.
Graph extract(const Graph& graph, const std::vector<NodeId>& ops, const std::vector<NodeId>& outputs);

/// Which parameters of a module are weights, as its text does not say.
std::string weights_text(const Graph& graph);

/// The function that TVM makes of a module whose ops all lead to its result; false: it makes several.
bool is_one_function(const Graph& module);

}  // namespace stitchwork::fission
