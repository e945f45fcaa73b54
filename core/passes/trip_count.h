// How often a loop runs.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "core/graph/graph.h"

namespace stitchwork {

/// How often `loop`, a while of `computation`, runs its body, where the text tells: by the `known_trip_count`
/// that XLA leaves in backend_config, or because an integer of the state goes from a constant by constant
/// steps to a constant bound (which may be an element of the state that the body passes on). nullopt
/// elsewhere, and where the integer would overflow first.
std::optional<std::int64_t> trip_count(const Graph& graph, const Computation& computation, const Node& loop);

/// Whether the trips of `loop` are a user's (with_trips): estimates count by them, but how often it really
/// runs its condition alone says.
bool trips_are_assumed(const Node& loop);

/// A loop of a module.
struct LoopTrips {
  std::string computation, op;
  std::optional<std::int64_t> trips;  ///< of one run; nothing: unknown
};

/// Those that run, of the entry first, then of what loops and branches run.
std::vector<LoopTrips> loops(const Graph& graph);

/// "while.3 100 trips, while.9 trips unknown: counted once (--trips while.9=N)"; "" without loops.
std::string to_text(const std::vector<LoopTrips>& loops);

/// The module with the trips of loops that its text does not tell, by the loops' names. Throws Error where
/// there is no such loop, and where the text tells another number.
Graph with_trips(Graph graph, const std::map<std::string, std::int64_t>& trips);

}  // namespace stitchwork
