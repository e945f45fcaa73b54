// The plan's steps in time: a bar each, as long as it takes, with the grid barriers within.
#pragma once

#include <QWidget>

#include "gui/model/selection.h"
#include "gui/model/session.h"

namespace stitchwork::gui {

class TimelineView : public QWidget {
  Q_OBJECT
 public:
  TimelineView(Session& session, SelectionModel& selection, QWidget* parent = nullptr);
  /// Screen rectangle of a step, for tests and tool tips.
  QRectF bar(int step) const;
  QSize sizeHint() const override { return {600, 120}; }

 protected:
  void paintEvent(QPaintEvent* event) override;
  void mousePressEvent(QMouseEvent* event) override;
  void mouseMoveEvent(QMouseEvent* event) override;
  void wheelEvent(QWheelEvent* event) override;
  void keyPressEvent(QKeyEvent* event) override;
  bool event(QEvent* event) override;

 private:
  void load();
  int step_at(const QPointF& at) const;
  double x_of(double us) const;
  void zoom(double factor, double about);

  Session& session_;
  SelectionModel& selection_;
  std::vector<double> begin_, length_;  ///< by step, microseconds
  QString method_;
  int streams_ = 1;
  double total_ = 0, first_ = 0, shown_ = 0;  ///< microseconds: of all, at the left edge, across the width
  double pressed_x_ = 0, first_at_press_ = 0;
};

}  // namespace stitchwork::gui
