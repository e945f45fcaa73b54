// A model's graph written differently, and which of the model's ops each of its ops stands for.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "core/graph/graph.h"

namespace stitchwork::rewriting {

/// The ops a rule stands on, by name in the graph it finds; the place first.
using Place = std::vector<std::string>;

/// One step: a rule's name, or "tidy" for all tidy rules to their fixpoint, then without places.
struct Rewrite {
  std::string rule, computation;
  std::vector<Place> at;  ///< all found in one graph and written at once
  bool operator==(const Rewrite&) const = default;
};

/// Of one computation, against the model's computation of the same name.
struct Origins {
  /// By op: the model's ops it stands for, ascending. An op the model has stands for itself alone.
  std::vector<std::vector<NodeId>> of;
  /// By the model's op: who gives its value; kNoNode: nobody.
  std::vector<NodeId> now;
};

struct RewrittenGraph {
  Graph graph;
  std::vector<Rewrite> steps;
  std::shared_ptr<const Graph> model;
  std::vector<Origins> origins;  ///< by computation of `graph`; empty for those the model lacks

  /// The model's computation of that name; nullptr if it has none.
  const Computation* model_computation(const std::string& name) const;
};

/// Of the ops of all running computations, a line each; constants that the model has, by name alone. What two
/// graphs rewritten from one model have in common if they are the same.
std::string sha256_of(const RewrittenGraph& rewritten);

/// The model itself, no step taken.
RewrittenGraph unchanged(Graph model);

/// The computation of that name; -1 if there is none.
ComputationId computation_named(const Graph& graph, const std::string& name);

/// The name of the running computation that has the op, the entry before others. Throws Error naming the
/// nearest op if none does.
std::string computation_of(const Graph& graph, const std::string& op);

/// Those whose ops run as ops: the entry, and what its loops, branches and calls run; ascending.
std::vector<ComputationId> running_computations(const Graph& graph);

}  // namespace stitchwork::rewriting
