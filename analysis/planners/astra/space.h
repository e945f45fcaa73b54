// What could be done with a model: Astra's enumerator (ASPLOS 2019, section 4.4). Nothing is ranked.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

#include "analysis/planners/astra/epochs.h"
#include "analysis/planners/astra/strategies.h"

namespace stitchwork::astra {

struct SpaceOptions {
  /// "roughly a few milliseconds" (section 4.5.3): 2 ms is a choice, not measured: since 1 is less and 5 is
  /// more than that, both are offered.
  double super_epoch_us = 2000;
  int streams = 2;
};

/// Of the entry computation of one graph and one plan of it.
struct Space {
  Products products;
  std::vector<Ladder> ladders;
  std::vector<int> provenance;      ///< by ladder
  std::vector<FusionGroup> groups;  ///< all blocks, ladders alone as well
  Strategies strategies;
  std::string plan;  ///< the planner whose steps the epochs are of
  StreamSpace streams;
  SpaceOptions options;
  std::vector<Decision> decisions;  ///< refusals, steps astra.fusion and astra.allocation
};

/// `plan` is of `graph` and says which steps there are; the products' side does not depend on it.
Space enumerate(const Graph& graph, const FusionPlan& plan, const SpaceOptions& options = {});

/// Products, ladders, groups with their members and chunks, strategies with their regions, epochs, refusals
/// by rule.
std::string to_text(const Graph& graph, const Device& device, const FusionPlan& plan, const Space& space);
/// The same (docs/schema/dump.schema.json, space).
nlohmann::ordered_json space_json(const Graph& graph, const Device& device, const FusionPlan& plan,
                                  const Space& space);

}  // namespace stitchwork::astra
