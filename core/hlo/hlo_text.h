// HLO text: reader and printer. The text form of a graph, used by tests, dumps and bug reports alike.
#pragma once

#include <string>
#include <string_view>

#include "core/graph/graph.h"

namespace stitchwork {

/// Parses an HLO module, as JAX and TensorFlow print it or as written by hand (operand shapes, layouts,
/// %-signs, comments and `ENTRY` parameter lists are optional). Throws Error with file, line, column and a
/// hint.
Graph parse_hlo(std::string_view text, std::string file);

/// Prints the module so that parse_hlo gives the same graph back. Attributes in HLO's order; unknown ones
/// verbatim.
std::string to_text(const Graph& graph);
/// One instruction line, without indentation: `add.1 = f32[4096,256] add(parameter.1, broadcast.1)`.
std::string to_text(const Graph& graph, const Computation& computation, const Node& node);

/// Reads a .hlo, .txt or .gz file; fills source and source_sha256. Throws Error if unreadable or not HLO.
Graph read_graph(const std::string& path);

}  // namespace stitchwork
