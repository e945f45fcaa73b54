// The graph on the screen: pan, zoom, fold, select, search hits, a metric on top.
#pragma once

#include <QPointF>
#include <QWidget>
#include <memory>
#include <optional>
#include <vector>

#include "gui/layout/folded_view.h"
#include "gui/model/selection.h"
#include "gui/view/graph_picture.h"

namespace stitchwork::gui {

class GraphView : public QWidget {
  Q_OBJECT
 public:
  explicit GraphView(QWidget* parent = nullptr);

  void show_plan(PlannedPtr planned);  ///< null: empty
  const PlannedPtr& planned() const { return planned_; }
  const DrawnGraph& drawn() const { return drawn_; }
  const Folding* folding() const { return folding_ ? &*folding_ : nullptr; }

  void select_node(int node, bool bring_into_view);  ///< of the fold tree; -1: nothing
  int selected() const { return look_.selected; }
  void set_hits(const std::vector<int>& nodes);
  void set_overlay(std::optional<Overlay> overlay);

  void zoom_fit();
  void centre_selection(bool fit);
  void expand_selected(bool on);
  void expand_all();
  void collapse_all();
  void toggle(int node);  ///< expands or collapses; the clicked box stays where it is
  double scale() const { return scale_; }
  QPointF to_screen(double x, double y) const { return {x * scale_ + offset_.x(), y * scale_ + offset_.y()}; }
  /// "171 boxes · 14 edges as stubs"
  QString summary() const;
  /// The whole graph, as it is folded now.
  GraphPicture picture() const { return {planned_, drawn_, look_, overlay_}; }

 signals:
  void node_clicked(int node);
  void summary_changed(const QString& text);

 protected:
  void paintEvent(QPaintEvent* event) override;
  void resizeEvent(QResizeEvent* event) override;
  void mousePressEvent(QMouseEvent* event) override;
  void mouseMoveEvent(QMouseEvent* event) override;
  void mouseReleaseEvent(QMouseEvent* event) override;
  void mouseDoubleClickEvent(QMouseEvent* event) override;
  void wheelEvent(QWheelEvent* event) override;
  void keyPressEvent(QKeyEvent* event) override;
  bool event(QEvent* event) override;

 private:
  void lay_out();
  void opening_view();
  void zoom(double factor, QPointF about);
  QPointF to_graph(QPointF screen) const { return (screen - offset_) / scale_; }
  QRectF visible() const;
  int node_at(QPointF screen) const;
  const DrawnStub* stub_at(QPointF screen, bool& outgoing) const;
  void walk(int key);

  PlannedPtr planned_;
  std::unique_ptr<FoldedLayout> layout_;
  std::optional<Folding> folding_;
  DrawnGraph drawn_;
  GraphLook look_;
  std::optional<Overlay> overlay_;
  std::vector<int> found_;  ///< hits, whether or not they are drawn
  double scale_ = 1;
  QPointF offset_, pressed_, offset_at_press_;
  bool panning_ = false, moved_ = false, fresh_ = true;
};

}  // namespace stitchwork::gui
