// How often a loop runs.
#pragma once

#include <cstdint>
#include <optional>

#include "core/graph/graph.h"

namespace stitchwork {

/// How often `loop`, a while of `computation`, runs its body, where the text tells: by the `known_trip_count`
/// that XLA leaves in backend_config, or because an integer of the state goes from a constant by constant
/// steps to a constant bound (which may be an element of the state that the body passes on). nullopt
/// elsewhere, and where the integer would overflow first.
std::optional<std::int64_t> trip_count(const Graph& graph, const Computation& computation, const Node& loop);

}  // namespace stitchwork
