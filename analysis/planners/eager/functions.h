// Ops that an eager framework has one kernel for: its library functions, recognised in a graph that spells
// them out.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "analysis/planners/eager/views.h"
#include "core/graph/graph.h"

namespace stitchwork::eager {

/// A function of the framework's library, which one kernel computes.
struct LibraryFunction {
  std::string name;             ///< "log_softmax", "log_softmax backward"
  std::vector<NodeId> ops;      ///< ascending; no views
  std::vector<NodeId> outputs;  ///< those that something else reads, ascending
  bool reduces = false;         ///< some op of it is a reduction
  bool convex = true;           ///< no way leads out of it and back
};

/// The function that the op is part of, by what its metadata says: a function of jax.nn that is jitted, or
/// the ONNX operator it was imported from, with the place in the program. Empty where there is none.
struct Origin {
  std::string function, place;
};
Origin origin_of(const Metadata& metadata);

/// Connected ops of the same origin; of the rest, functions by their form (spelled.h). Of each op one that is
/// convex at most. Ascending by first op.
std::vector<LibraryFunction> library_functions(const Graph& graph, const Views& views);

}  // namespace stitchwork::eager
