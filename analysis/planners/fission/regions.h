// Parts of a model that are rewritten by themselves: what lies between library calls, with the calls beside
// it.
#pragma once

#include <string>
#include <vector>

#include "analysis/stitching/nodes.h"
#include "core/substitute/rewritten_graph.h"

namespace stitchwork::fission {

/// A part of a computation as a model of its own, its ops called n0, n1, ... so that parts alike have the
/// same text.
struct Region {
  std::string computation;         ///< of the model
  std::vector<std::string> names;  ///< of the model's ops, by number
  Graph graph;
  std::string text;  ///< of `graph`

  /// What the model calls an op of the region, or one that rules made there: "n5.divide" -> "dot.31.divide".
  std::string in_model(const std::string& op) const;
};

/// Of every computation that runs: for each window of primitives (windows.h) these and the products that they
/// read or that read them, and for each group of products that read each other or one value, these. Regions
/// may have products in common.
std::vector<Region> regions(const Graph& graph);

}  // namespace stitchwork::fission
