#include "analysis/planners/fission/search.h"

#include <fmt/format.h>

#include <algorithm>
#include <unordered_set>

#include "analysis/planners/fission/extract.h"
#include "core/base/interrupt.h"
#include "core/hlo/hlo_text.h"
#include "core/substitute/derivation.h"
#include "core/substitute/view.h"

namespace stitchwork::fission {
namespace {

/// A graph of the search.
struct State {
  rewriting::Derivation derivation;
  std::vector<Move> moves;
  std::string text;
  double us = 0;  ///< by the sketch
};

/// The text without the names of ops: graphs that differ by these alone are one.
std::string text_of(Graph graph) {
  for (Node& node : graph.computations[static_cast<std::size_t>(graph.entry)].nodes) {
    node.name = fmt::format("n{}", node.id);
    node.metadata = {};
  }
  return to_text(graph) + weights_text(graph);
}

std::size_t ops_of(const Graph& graph) { return graph.entry_computation().nodes.size(); }

}  // namespace

RegionSearch search(const Region& region, const std::vector<const rewriting::Rule*>& rules,
                    const Price& sketch, const Price& price, const SearchLimits& limits) {
  RegionSearch result;
  State first{rewriting::Derivation(region.graph), {}, {}, 0};
  first.derivation.tidy();
  first.text = text_of(first.derivation.result().graph);
  first.us = sketch(first.derivation.result().graph, first.text);
  std::unordered_set<std::string> seen{first.text};
  const std::size_t most_ops = 2 * ops_of(region.graph);
  const auto later = [](const State& a, const State& b) {
    return a.us != b.us ? a.us > b.us : a.moves.size() > b.moves.size();
  };
  const double first_us = first.us;
  double best_us = first.us;
  std::vector<State> queue{std::move(first)}, cheaper;
  int sketched = 1;
  while (!queue.empty() && sketched < limits.graphs) {
    std::ranges::pop_heap(queue, later);
    const State state = std::move(queue.back());
    queue.pop_back();
    if (state.us > limits.tolerance * best_us) break;  // so are the others
    const Graph& graph = state.derivation.result().graph;
    const rewriting::View view(graph, graph.entry);
    const std::string& computation = graph.entry_computation().name;
    for (const rewriting::Rule* rule : rules)
      for (const Node& node : graph.entry_computation().nodes) {
        interruption_point();
        if (sketched >= limits.graphs) break;
        if (!rule->find(view, node.id)) continue;
        State next{state.derivation, state.moves, {}, 0};
        if (!next.derivation.apply(*rule, computation, node.name)) continue;
        next.derivation.tidy();
        const Graph& made = next.derivation.result().graph;
        next.text = text_of(made);
        if (ops_of(made) > most_ops || !seen.insert(next.text).second) continue;
        next.moves.push_back({rule, node.name});
        next.us = sketch(made, next.text);
        ++sketched;
        if (state.moves.empty()) result.sketched.push_back({next.moves, next.us, first_us});
        best_us = std::min(best_us, next.us);
        if (next.us <= (1 - limits.margin) * first_us) cheaper.push_back(next);
        if (next.us > limits.tolerance * best_us) continue;
        queue.push_back(std::move(next));
        std::ranges::push_heap(queue, later);
      }
  }
  if (cheaper.empty()) return result;
  std::ranges::stable_sort(cheaper, [&](const State& a, const State& b) { return later(b, a); });
  cheaper.erase(cheaper.begin() + static_cast<std::ptrdiff_t>(std::min(cheaper.size(), limits.priced)),
                cheaper.end());
  result.before_us = result.after_us = price(region.graph, text_of(region.graph));
  for (const State& state : cheaper) {
    const double us = price(state.derivation.result().graph, state.text);
    result.priced.push_back({state.moves, us, result.before_us});
    if (us >= result.after_us) continue;
    result.after_us = us;
    result.moves = state.moves;
  }
  return result;
}

}  // namespace stitchwork::fission
