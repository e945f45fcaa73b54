// The search for rewritings: of each region of a model, as TASO searches (Jia et al., SOSP 2019;
// Graph::optimize of its code), judged by what the planner `auto` makes of it.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "analysis/planners/fission/regions.h"
#include "core/substitute/rule.h"

namespace stitchwork::fission {

/// Steps of a derivation of a region: a rule at an op, by its name there.
struct Move {
  const rewriting::Rule* rule = nullptr;
  std::string op;
};

struct SearchLimits {
  /// That are sketched for one region. A choice between gains and time.
  int graphs = 32;
  /// Of those that are cheaper by the sketch, so many are priced. A choice: a price takes 10 to 40 sketches.
  std::size_t priced = 4;
  /// Graphs that cost up to so much more than the best are looked at further: TASO's alpha, as its evaluation
  /// sets it.
  double tolerance = 1.05;
  /// What a graph has to gain by the sketch, of the region's time, to be priced.
  double margin = 0.03;
};

/// What moves would give, for the record.
struct Tried {
  std::vector<Move> moves;
  double us = 0, before_us = 0;  ///< modelled
};

struct RegionSearch {
  double before_us = 0, after_us = 0;  ///< priced; equal if nothing is better
  std::vector<Move> moves;             ///< to the best graph; none if the region's own is
  std::vector<Tried> sketched;         ///< one move alone
  std::vector<Tried> priced;
};

/// The time of a graph whose text, without the names of its ops, is the other.
using Price = std::function<double(const Graph&, const std::string&)>;

/// Tidies the region, then applies every rule of `rules` everywhere to the graph that is cheapest by `sketch`
/// and not looked at yet, until none is left or the limit is met. A graph may have twice the ops it has at
/// first. Those that are cheapest so are priced; of equal prices the fewest moves win.
RegionSearch search(const Region& region, const std::vector<const rewriting::Rule*>& rules,
                    const Price& sketch, const Price& price, const SearchLimits& limits);

}  // namespace stitchwork::fission
