#include "gui/layout/folded_view.h"

#include <algorithm>
#include <cmath>
#include <deque>
#include <map>
#include <unordered_map>

#include "core/base/at.h"

namespace stitchwork::gui {
namespace {

constexpr double kMargin = 14, kTitle = 26;  ///< of a container: around its content, above it
constexpr LayoutGaps kGaps{26, 34}, kSidewaysGaps{40, 64};
constexpr double kStubLength = 14;
constexpr double kClear = 6;  ///< between a box and an edge that passes it

/// Layers follow each other from left to right, what is in a layer from top to bottom: twelve columns of a
/// dozen kernels are looked at more easily than one column of 150.
bool sideways(const FoldTree& tree, int node) {
  int layers = 0;
  for (int child : tree.node(node).children) layers += tree.node(child).kind == FoldKind::kLayer;
  return layers >= 3 && 2 * layers >= static_cast<int>(tree.node(node).children.size());
}

LayoutSize turned(LayoutSize size, bool turn) { return turn ? LayoutSize{size.along, size.across} : size; }
Point turned(LayoutPoint p, bool turn) { return turn ? Point{p.along, p.across} : Point{p.across, p.along}; }

struct Span {
  double from = 0, to = 0;
};

/// As near to `wanted` as can be without lying in one of the spans.
double clear_of(std::vector<Span> spans, double wanted) {
  std::sort(spans.begin(), spans.end(), [](const Span& a, const Span& b) { return a.from < b.from; });
  Span around{wanted, wanted};  // the union of those that overlap around it
  bool blocked = false;
  for (std::size_t i = 0; i < spans.size();) {
    Span joined = spans[i];
    for (++i; i < spans.size() && spans[i].from < joined.to; ++i)
      joined.to = std::max(joined.to, spans[i].to);
    if (joined.from < wanted && wanted < joined.to) {
      around = joined;
      blocked = true;
    }
  }
  if (!blocked) return wanted;
  return wanted - around.from <= around.to - wanted ? around.from : around.to;
}

}  // namespace

LayoutSize box_size(const FoldNode& node) {
  switch (node.kind) {
    case FoldKind::kModel:
    case FoldKind::kLayer:
    case FoldKind::kBody:
      return {210, 48};
    case FoldKind::kStep:
      return {200, 46};
    case FoldKind::kGroup:
      return {180, 42};
    case FoldKind::kOp:
      return {170, 40};
  }
  return {};
}

int DrawnGraph::box_at(double x, double y) const {
  for (std::size_t i = boxes.size(); i-- > 0;)
    if (boxes[i].rect.contains(x, y)) return static_cast<int>(i);
  return -1;
}

const DrawnBox* DrawnGraph::box_of(int node) const {
  const auto found =
      std::find_if(boxes.begin(), boxes.end(), [&](const DrawnBox& b) { return b.node == node; });
  return found == boxes.end() ? nullptr : &*found;
}

Folding::Folding(std::shared_ptr<const FoldTree> tree)
    : tree_(std::move(tree)), expanded_(tree_->nodes.size()) {
  expanded_[0] = 1;
}

void Folding::expand(int node, bool on) {
  if (node != 0 && !tree_->leaf(node)) expanded_[at(node)] = on;
}

void Folding::reveal(int node) {
  for (int up = tree_->node(node).parent; up > 0; up = tree_->node(up).parent) expand(up);
}

void Folding::collapse_all() {
  std::fill(expanded_.begin(), expanded_.end(), 0);
  expanded_[0] = 1;
}

void Folding::expand_all(FoldKind down_to, int most) {
  int count = boxes();
  std::deque<int> next{0};
  while (!next.empty()) {
    const int node = next.front();
    next.pop_front();
    const FoldNode& n = tree_->node(node);
    if (n.kind >= down_to || n.children.empty()) continue;
    if (!expanded(node)) {
      if (count + static_cast<int>(n.children.size()) > most) continue;
      expand(node);
      count += static_cast<int>(n.children.size());
    }
    next.insert(next.end(), n.children.begin(), n.children.end());
  }
}

int Folding::drawn(int node) const {
  int result = node;
  for (int up = node; up >= 0; up = tree_->node(up).parent)
    if (up != node && !expanded(up)) result = up;
  return result;
}

int Folding::boxes() const {
  int count = 0;
  std::vector<int> open{0};
  while (!open.empty()) {
    const int node = open.back();
    open.pop_back();
    if (!expanded(node)) continue;
    const auto& children = tree_->node(node).children;
    count += static_cast<int>(children.size());
    open.insert(open.end(), children.begin(), children.end());
  }
  return count;
}

Folding folding_at_opening(std::shared_ptr<const FoldTree> tree) {
  Folding folding(std::move(tree));
  folding.expand_all(FoldKind::kStep, kBoxesAtOpening);
  return folding;
}

struct FoldedLayout::Container {
  Layering layering;
  bool sideways = false;
  Placement2D placement;  ///< of the last drawing
};

FoldedLayout::FoldedLayout(std::shared_ptr<const FoldTree> tree, BoxSize size)
    : tree_(std::move(tree)),
      size_(std::move(size)),
      containers_(tree_->nodes.size()),
      rects_(tree_->nodes.size()),
      inner_edges_(tree_->nodes.size()),
      position_(tree_->nodes.size()) {
  for (const FoldNode& n : tree_->nodes)
    for (std::size_t i = 0; i < n.children.size(); ++i) position_[at(n.children[i])] = static_cast<int>(i);
  for (const FoldEdge& edge : tree_->edges) {
    int a = edge.from, b = edge.to;
    while (tree_->node(a).depth > tree_->node(b).depth) a = tree_->node(a).parent;
    while (tree_->node(b).depth > tree_->node(a).depth) b = tree_->node(b).parent;
    while (tree_->node(a).parent != tree_->node(b).parent)
      a = tree_->node(a).parent, b = tree_->node(b).parent;
    if (a != b) inner_edges_[at(tree_->node(a).parent)].push_back({position_[at(a)], position_[at(b)]});
  }
  for (auto& edges : inner_edges_) {
    std::sort(edges.begin(), edges.end(),
              [](LayoutEdge a, LayoutEdge b) { return std::pair(a.from, a.to) < std::pair(b.from, b.to); });
    edges.erase(std::unique(edges.begin(), edges.end()), edges.end());
  }
}

const FoldedLayout::Container& FoldedLayout::container(int node) {
  auto& kept = containers_[at(node)];
  if (!kept) {
    kept = std::make_shared<Container>();
    kept->layering = layer(static_cast<int>(tree_->node(node).children.size()), inner_edges_[at(node)]);
    kept->sideways = sideways(*tree_, node);
  }
  return *kept;
}

FoldedContainer FoldedLayout::at_rest(int node) {
  const Container& c = container(node);
  std::vector<LayoutSize> sizes;
  for (const int child : tree_->node(node).children)
    sizes.push_back(turned(size_(tree_->node(child)), c.sideways));
  return {&c.layering, place(c.layering, sizes, c.sideways ? kSidewaysGaps : kGaps), c.sideways};
}

LayoutSize FoldedLayout::measure(const Folding& folding, int node) {
  const FoldNode& n = tree_->node(node);
  if (!folding.expanded(node)) return size_(n);
  const Container& c = container(node);
  std::vector<LayoutSize> sizes;
  for (int child : n.children) sizes.push_back(turned(measure(folding, child), c.sideways));
  Placement2D placement = place(c.layering, sizes, c.sideways ? kSidewaysGaps : kGaps);
  const LayoutSize inner = turned(placement.size, c.sideways);
  containers_[at(node)]->placement = std::move(placement);
  if (node == 0) return inner;
  const LayoutSize least = size_(n);
  return {std::max(least.across, inner.across + 2 * kMargin), inner.along + kTitle + kMargin};
}

void FoldedLayout::put(const Folding& folding, int node, Point corner, DrawnGraph& graph) {
  const FoldNode& n = tree_->node(node);
  const Container& c = container(node);
  const LayoutSize inner = turned(c.placement.size, c.sideways);
  const double slack = node == 0 ? 0 : (rects_[at(node)].width - 2 * kMargin - inner.across) / 2;
  for (std::size_t i = 0; i < n.children.size(); ++i) {
    const int child = n.children[i];
    const Point p = turned(c.placement.corner[i], c.sideways);
    // Sizes are measured again on the way down; collapsed ones are cheap, expanded ones are kept in
    // placements.
    LayoutSize size;
    if (folding.expanded(child)) {
      const Container& in = container(child);
      const LayoutSize content = turned(in.placement.size, in.sideways);
      size = {std::max(size_(tree_->node(child)).across, content.across + 2 * kMargin),
              content.along + kTitle + kMargin};
    } else {
      size = size_(tree_->node(child));
    }
    rects_[at(child)] = {corner.x + slack + p.x, corner.y + p.y, size.across, size.along};
    graph.boxes.push_back({child, rects_[at(child)], folding.expanded(child)});
    if (folding.expanded(child))
      put(folding, child, {rects_[at(child)].x + kMargin, rects_[at(child)].y + kTitle}, graph);
  }
  // Where the content lies, for the bends of edges.
  if (node == 0) rects_[0] = {corner.x, corner.y, inner.across, inner.along};
}

/// The way of an edge from the border of `outer` to the border of `inner`, which lies in it, past the boxes
/// between the two. Ranks follow each other from left to right if `sideways`, else downwards; `at_far_side`:
/// at the ends of both where the ranks end.
void FoldedLayout::lead_in(const DrawnGraph& graph, int outer, int inner, bool sideways, bool at_far_side,
                           std::vector<Point>& points) const {
  const auto along = [&](const Rect& r) { return sideways ? Span{r.x, r.right()} : Span{r.y, r.bottom()}; };
  const auto across = [&](const Rect& r) { return sideways ? Span{r.y, r.bottom()} : Span{r.x, r.right()}; };
  const auto point = [&](double a, double c) { return sideways ? Point{a, c} : Point{c, a}; };
  const Span in = along(rects_[at(inner)]), out = along(rects_[at(outer)]), own = across(rects_[at(inner)]);
  const double middle = (own.from + own.to) / 2;
  const double border = at_far_side ? out.to : out.from, end = at_far_side ? in.to : in.from;
  const Span way{std::min(border, end), std::max(border, end)};
  std::vector<Span> passed;
  const std::size_t first = at(drawn_[at(outer)]);
  for (std::size_t i = first + 1; i < behind_[first];) {
    const DrawnBox& box = graph.boxes[i];
    const Span lies = along(box.rect), wide = across(box.rect);
    const bool beside = lies.from < way.to && way.from < lies.to;
    if (beside && !box.expanded && box.node != inner)
      passed.push_back({wide.from - kClear, wide.to + kClear});
    i = beside ? i + 1 : behind_[i];
  }
  const double clear = clear_of(std::move(passed), middle);
  points.push_back(point(border, clear));
  if (clear != middle) {
    const double bend = (sideways ? kSidewaysGaps.along : kGaps.along) - kClear;
    points.push_back(point(at_far_side ? end + bend : end - bend, clear));
  }
  points.push_back(point(end, middle));
}

void FoldedLayout::connect(const Folding& folding, DrawnGraph& graph) {
  struct Sum {
    std::int64_t bytes = 0;
    bool on_chip = true;
  };
  std::map<std::pair<int, int>, Sum> drawn;
  std::vector<int> shown(tree_->nodes.size());
  for (std::size_t i = 0; i < tree_->nodes.size(); ++i) {  // parents first
    const int parent = tree_->nodes[i].parent;
    if (parent < 0)
      shown[i] = 0;
    else
      shown[i] =
          shown[at(parent)] == parent && folding.expanded(parent) ? static_cast<int>(i) : shown[at(parent)];
  }
  for (const FoldEdge& edge : tree_->edges) {
    const int from = shown[at(edge.from)], to = shown[at(edge.to)];
    if (from == to) continue;
    Sum& sum = drawn[{from, to}];
    sum.bytes += edge.bytes;
    sum.on_chip = sum.on_chip && edge.on_chip;
  }
  drawn_.assign(tree_->nodes.size(), -1);
  behind_.assign(graph.boxes.size(), graph.boxes.size());
  const auto depth = [&](std::size_t i) { return tree_->node(graph.boxes[i].node).depth; };
  for (std::size_t i = graph.boxes.size(); i-- > 0;) {
    drawn_[at(graph.boxes[i].node)] = static_cast<int>(i);
    std::size_t next = i + 1;
    while (next < graph.boxes.size() && depth(next) > depth(i)) next = behind_[next];
    behind_[i] = next;
  }
  std::map<int, int> numbers;
  for (const auto& [ends, sum] : drawn) {
    int a = ends.first, b = ends.second;
    while (tree_->node(a).depth > tree_->node(b).depth) a = tree_->node(a).parent;
    while (tree_->node(b).depth > tree_->node(a).depth) b = tree_->node(b).parent;
    while (tree_->node(a).parent != tree_->node(b).parent)
      a = tree_->node(a).parent, b = tree_->node(b).parent;
    const int parent = tree_->node(a).parent;
    const Container& c = container(parent);
    const LayoutEdge wanted{position_[at(a)], position_[at(b)]};
    const auto found = std::lower_bound(
        c.layering.edges.begin(), c.layering.edges.end(), wanted,
        [](LayoutEdge x, LayoutEdge y) { return std::pair(x.from, x.to) < std::pair(y.from, y.to); });
    const auto e = static_cast<std::size_t>(found - c.layering.edges.begin());
    const Rect &from = rects_[at(ends.first)], &to = rects_[at(ends.second)];
    const bool back = c.layering.reversed[e] != 0;
    if (c.layering.stub[e]) {
      const int number = numbers.emplace(ends.first, static_cast<int>(numbers.size()) + 1).first->second;
      graph.stubs.push_back({ends.first,
                             ends.second,
                             number,
                             {from.right() - 10, from.bottom() + kStubLength},
                             {to.x + 10, to.y - kStubLength}});
      continue;
    }
    DrawnEdge edge{ends.first, ends.second, {}, sum.bytes, sum.on_chip, c.sideways};
    Point origin{rects_[0].x, rects_[0].y};
    if (parent != 0) {
      const Rect& r = rects_[at(parent)];
      const double slack = (r.width - 2 * kMargin - turned(c.placement.size, c.sideways).across) / 2;
      origin = {r.x + kMargin + slack, r.y + kTitle};
    }
    std::vector<Point> bends;
    for (const LayoutPoint& bend : c.placement.bends[e]) {
      const Point p = turned(bend, c.sideways);
      bends.push_back({origin.x + p.x, origin.y + p.y});
    }
    const auto end_at = [&](int outer, int inner, bool at_far_side, std::vector<Point>& points) {
      if (outer != inner) return lead_in(graph, outer, inner, c.sideways, at_far_side, points);
      const Rect& r = rects_[at(inner)];
      points.push_back(c.sideways ? Point{at_far_side ? r.right() : r.x, r.y + r.height / 2}
                                  : Point{r.x + r.width / 2, at_far_side ? r.bottom() : r.y});
    };
    end_at(a, ends.first, !back, edge.points);
    std::reverse(edge.points.begin(), edge.points.end());
    edge.points.insert(edge.points.end(), bends.begin(), bends.end());
    end_at(b, ends.second, back, edge.points);
    graph.edges.push_back(std::move(edge));
  }
}

DrawnGraph FoldedLayout::draw(const Folding& folding) {
  DrawnGraph graph;
  const LayoutSize size = measure(folding, 0);
  graph.width = size.across;
  graph.height = size.along;
  put(folding, 0, {0, 0}, graph);
  connect(folding, graph);
  return graph;
}

}  // namespace stitchwork::gui
