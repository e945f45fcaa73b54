#include "gui/layout/folded_view.h"
#include "gui/page/page_data.h"

namespace stitchwork::gui {
namespace {

using nlohmann::ordered_json;

/// Edges as pairs of children, by rank the slots (a child, or -1 - edge for one that passes) and their
/// centres across, what is laid out reversed or left out. The page makes room for what is expanded.
ordered_json container_json(const FoldTree& tree, int node, const FoldedContainer& at) {
  const Layering& l = *at.layering;
  ordered_json edges = ordered_json::array(), kinds = ordered_json::array(), ranks = ordered_json::array(),
               centres = ordered_json::array();
  std::vector<std::size_t> passed(l.edges.size());
  for (std::size_t e = 0; e < l.edges.size(); ++e) {
    edges.push_back(l.edges[e].from);
    edges.push_back(l.edges[e].to);
    kinds.push_back((l.stub[e] ? 1 : 0) + (l.reversed[e] ? 2 : 0));
  }
  const auto round = [](double x) { return std::round(10 * x) / 10; };
  for (const auto& rank : l.ranks) {
    ordered_json slots = ordered_json::array(), places = ordered_json::array();
    for (const Layering::Slot& slot : rank) {
      if (slot.node >= 0) {
        const std::size_t child = static_cast<std::size_t>(slot.node);
        const LayoutSize size = box_size(tree.node(tree.node(node).children[child]));
        slots.push_back(slot.node);
        places.push_back(
            round(at.placement.corner[child].across + (at.sideways ? size.along : size.across) / 2));
      } else {
        const auto e = static_cast<std::size_t>(slot.edge);
        const std::vector<LayoutPoint>& bends = at.placement.bends[e];
        // Two points a rank, from the edge's source; ranks are met from the other end where it is reversed.
        const std::size_t i = std::min(bends.size() - 1, 2 * passed[e]++);
        slots.push_back(-1 - slot.edge);
        places.push_back(round(bends[l.reversed[e] ? bends.size() - 1 - i : i].across));
      }
    }
    ranks.push_back(std::move(slots));
    centres.push_back(std::move(places));
  }
  return {{"sideways", at.sideways},   {"edges", std::move(edges)},     {"kinds", std::move(kinds)},
          {"ranks", std::move(ranks)}, {"centres", std::move(centres)}, {"loose", l.loose}};
}

}  // namespace

ordered_json page_graph(const Graph& graph, const PlanExcerpt& excerpt,
                        const std::optional<std::vector<int>>& expanded) {
  const auto tree = std::make_shared<const FoldTree>(fold_tree(graph, closed_plan(excerpt)));
  ordered_json nodes = ordered_json::array(), edges = ordered_json::array(), open = ordered_json::array(),
               containers = ordered_json::object();
  FoldedLayout layout(tree, box_size);
  const Folding opening = folding_at_opening(tree);
  for (std::size_t i = 0; i < tree->nodes.size(); ++i) {
    const FoldNode& n = tree->nodes[i];
    const int number = static_cast<int>(i);
    const int op =
        n.op == kNoNode
            ? -1
            : excerpt.parts[static_cast<std::size_t>(n.body + 1)].row[static_cast<std::size_t>(n.op)];
    nodes.push_back({static_cast<int>(n.kind), n.parent, n.label, n.step, n.group, op, n.body});
    if (n.children.empty()) continue;
    containers[std::to_string(i)] = container_json(*tree, number, layout.at_rest(number));
    if (!expanded && opening.expanded(number)) open.push_back(number);
  }
  for (const FoldEdge& edge : tree->edges)
    edges.push_back({edge.from, edge.to, edge.bytes, edge.on_chip ? 1 : 0});
  if (expanded) open = *expanded;
  return {{"nodes", std::move(nodes)},
          {"edges", std::move(edges)},
          {"containers", std::move(containers)},
          {"open", std::move(open)}};
}

}  // namespace stitchwork::gui
