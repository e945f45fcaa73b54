// The graph as it is drawn: boxes and curves for one state of folding. Laid out bottom-up, a container at a
// time; the ranks and order within a container do not depend on what is expanded in it, so expanding moves
// nothing but aside.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "gui/layout/fold_tree.h"
#include "gui/layout/layered.h"

namespace stitchwork::gui {

struct Rect {
  double x = 0, y = 0, width = 0, height = 0;
  double right() const { return x + width; }
  double bottom() const { return y + height; }
  bool contains(double px, double py) const { return px >= x && px < right() && py >= y && py < bottom(); }
};

struct Point {
  double x = 0, y = 0;
};

struct DrawnBox {
  int node = 0;  ///< of the fold tree
  Rect rect;
  bool expanded = false;
};

/// Values between two boxes. Points go from the edge of the source to the edge of the target.
struct DrawnEdge {
  int from = 0, to = 0;  ///< nodes of the fold tree, both drawn
  std::vector<Point> points;
  std::int64_t bytes = 0;
  bool on_chip = false;
  bool sideways = false;  ///< leaves at the right and arrives at the left
};

/// An edge that is not drawn through (kStubFanOut, kStubRanks): a number at both its ends.
struct DrawnStub {
  int from = 0, to = 0;
  int number = 0;  ///< of the source: all its stubs share one
  Point out, in;
};

struct DrawnGraph {
  std::vector<DrawnBox> boxes;  ///< containers before what is in them
  std::vector<DrawnEdge> edges;
  std::vector<DrawnStub> stubs;
  double width = 0, height = 0;

  /// The innermost box there; -1.
  int box_at(double x, double y) const;
  const DrawnBox* box_of(int node) const;
};

/// How large a box is drawn that is not expanded.
using BoxSize = std::function<LayoutSize(const FoldNode&)>;
/// What windows and pages use; fonts do not count, so that layouts are the same everywhere.
LayoutSize box_size(const FoldNode& node);

/// Which nodes are expanded. The model always is.
class Folding {
 public:
  explicit Folding(std::shared_ptr<const FoldTree> tree);

  const FoldTree& tree() const { return *tree_; }
  bool expanded(int node) const { return expanded_[static_cast<std::size_t>(node)] != 0; }
  /// Leaves cannot be expanded.
  void expand(int node, bool on = true);
  /// Expands what holds the node, so that it is drawn.
  void reveal(int node);
  /// Every layer and, as deep as `most` boxes allow, what is in it; in breadth first order.
  void expand_all(FoldKind down_to, int most);
  void collapse_all();
  /// The deepest drawn node that is or holds `node`.
  int drawn(int node) const;
  /// Boxes drawn, containers included.
  int boxes() const;

 private:
  std::shared_ptr<const FoldTree> tree_;
  std::vector<char> expanded_;
};

/// At most so many boxes when a model is opened: at kernel level, layers folded where there are more kernels.
inline constexpr int kBoxesAtOpening = 500;
Folding folding_at_opening(std::shared_ptr<const FoldTree> tree);

/// How the children of a node lie while none of them is expanded.
struct FoldedContainer {
  const Layering* layering = nullptr;  ///< of the children, by their positions
  Placement2D placement;
  bool sideways = false;  ///< ranks follow each other from left to right
};

/// Lays out a folding; keeps the layering of containers from call to call.
class FoldedLayout {
 public:
  FoldedLayout(std::shared_ptr<const FoldTree> tree, BoxSize size);
  DrawnGraph draw(const Folding& folding);
  /// `node` has children. The layering lives as long as this.
  FoldedContainer at_rest(int node);

 private:
  struct Container;
  const Container& container(int node);
  LayoutSize measure(const Folding& folding, int node);
  void put(const Folding& folding, int node, Point corner, DrawnGraph& graph);
  void connect(const Folding& folding, DrawnGraph& graph);
  void lead_in(const DrawnGraph& graph, int outer, int inner, bool sideways, bool at_far_side,
               std::vector<Point>& points) const;

  std::shared_ptr<const FoldTree> tree_;
  BoxSize size_;
  std::vector<std::shared_ptr<Container>> containers_;
  std::vector<Rect> rects_;          ///< by node, of the last drawing
  std::vector<int> drawn_;           ///< by node: its place among the boxes drawn
  std::vector<std::size_t> behind_;  ///< by box: the place of the next that does not lie in it
  std::vector<std::vector<LayoutEdge>> inner_edges_;  ///< by container: between its children, by position
  std::vector<int> position_;                         ///< by node, among its parent's children
};

}  // namespace stitchwork::gui
