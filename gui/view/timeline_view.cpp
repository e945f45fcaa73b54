#include "gui/view/timeline_view.h"

#include <QHelpEvent>
#include <QKeyEvent>
#include <QMouseEvent>
#include <QPainter>
#include <QToolTip>
#include <QWheelEvent>
#include <algorithm>
#include <cmath>

#include "gui/model/tables.h"
#include "gui/view/theme.h"

namespace stitchwork::gui {
namespace {

constexpr double kLeft = 12, kTop = 34, kLane = 44, kBar = 34;

/// 1, 2 or 5 times a power of ten, for about eight marks.
double mark_distance(double shown) {
  const double rough = shown / 8, power = std::pow(10, std::floor(std::log10(std::max(rough, 1e-9))));
  for (const double step : {1.0, 2.0, 5.0})
    if (rough <= step * power) return step * power;
  return 10 * power;
}

}  // namespace

TimelineView::TimelineView(Session& session, SelectionModel& selection, QWidget* parent)
    : QWidget(parent), session_(session), selection_(selection) {
  setFocusPolicy(Qt::StrongFocus);
  setMinimumHeight(110);
  setAccessibleName(tr("Timeline"));
  connect(&session_, &Session::planned_changed, this, &TimelineView::load);
  connect(&session_, &Session::result_changed, this, &TimelineView::load);
  connect(&selection_, &SelectionModel::changed, this, [this] { update(); });
}

void TimelineView::load() {
  begin_.clear();
  length_.clear();
  total_ = first_ = 0;
  streams_ = 1;
  const PlannedPtr planned = session_.planned();
  if (planned) {
    const auto result = session_.result();
    const bool executed = result && result->run.steps.size() == planned->plan->steps.size();
    method_ = executed ? tr("simulated where the step was executed, else modelled") : tr("modelled");
    std::vector<double> free;  // by stream
    const double gap = planned->device->launch_gap_us;
    for (std::size_t s = 0; s < planned->plan->steps.size(); ++s) {  // a loop is one bar
      const PlanStep& step = planned->plan->steps[s];
      free.resize(std::max(free.size(), static_cast<std::size_t>(step.stream) + 1));
      double begin = free[static_cast<std::size_t>(step.stream)];
      for (const int other : step.waits)
        begin = std::max(begin,
                         begin_[static_cast<std::size_t>(other)] + length_[static_cast<std::size_t>(other)]);
      begin_.push_back(begin);
      length_.push_back(executed ? result->run.steps[s].time_us : step.predicted_us);
      free[static_cast<std::size_t>(step.stream)] = begin + length_.back() + gap;
      total_ = std::max(total_, begin + length_.back());
    }
    streams_ = std::max<int>(1, static_cast<int>(free.size()));
  }
  shown_ = std::max(total_, 1e-3);
  update();
}

double TimelineView::x_of(double us) const { return kLeft + (us - first_) / shown_ * (width() - 2 * kLeft); }

QRectF TimelineView::bar(int step) const {
  const auto s = static_cast<std::size_t>(step);
  if (s >= begin_.size()) return {};
  const int stream = session_.planned()->plan->steps[s].stream;
  const double left = x_of(begin_[s]), right = x_of(begin_[s] + length_[s]);
  return {left, kTop + stream * kLane, std::max(1.0, right - left), kBar};
}

int TimelineView::step_at(const QPointF& at) const {
  for (std::size_t s = 0; s < begin_.size(); ++s)
    if (bar(static_cast<int>(s)).contains(at)) return static_cast<int>(s);
  return -1;
}

void TimelineView::paintEvent(QPaintEvent*) {
  QPainter p(this);
  const Theme& t = theme(palette());
  p.fillRect(rect(), t.canvas);
  const PlannedPtr planned = session_.planned();
  if (!planned) return;
  QFont small = font();
  small.setPixelSize(11);
  p.setFont(small);
  const double step = mark_distance(shown_);
  for (double at = std::ceil(first_ / step) * step; at <= first_ + shown_; at += step) {
    const double x = x_of(at);
    p.setPen(t.line);
    p.drawLine(QPointF(x, kTop - 8), QPointF(x, kTop + streams_ * kLane));
    p.setPen(t.muted);
    const double left = std::clamp(x - 60, 0.0, std::max(0.0, width() - 120.0));  // whole at both ends
    p.drawText(QRectF(left, 2, 120, kTop - 12),
               (x < 60               ? Qt::AlignLeft
                : x > width() - 60.0 ? Qt::AlignRight
                                     : Qt::AlignHCenter) |
                   Qt::AlignVCenter,
               QString::number(at, 'f', step < 1 ? 2 : 0) + tr(" µs"));
  }
  for (std::size_t s = 0; s < begin_.size(); ++s) {
    const QRectF r = bar(static_cast<int>(s));
    if (r.right() < 0 || r.left() > width()) continue;
    const StepRow& row = planned->steps[s];
    const auto scheme = row.scheme();
    const QColor fill = scheme ? colour(*scheme) : library_colour();
    const bool selected = selection_.current().step == static_cast<int>(s);
    p.fillRect(r, fill);
    if (r.width() > 3) {
      p.setPen(QPen(t.canvas, 1));
      p.drawRect(r);
    }
    // Phases are drawn as if they took equally long: neither estimate nor simulator times them apart.
    p.setPen(QPen(ink_on(fill), 1, Qt::DashLine));
    for (int b = 1; b <= row.barriers && r.width() > 6 * row.barriers; ++b) {
      const double x = r.left() + r.width() * b / (row.barriers + 1);
      p.drawLine(QPointF(x, r.top() + 4), QPointF(x, r.bottom() - 4));
    }
    if (r.width() > 34) {
      p.setPen(ink_on(fill));
      const QString label = QString::fromStdString(row.kernel >= 0 ? row.id + " " + row.name : row.name);
      p.drawText(r.adjusted(4, 0, -2, 0), Qt::AlignVCenter | Qt::AlignLeft,
                 QFontMetricsF(small).elidedText(label, Qt::ElideRight, r.width() - 6));
    }
    if (selected) {
      p.setPen(QPen(t.accent, 3));
      p.drawRect(r.adjusted(-1, -1, 1, 1));
    }
  }
  p.setPen(t.muted);
  p.drawText(QRectF(kLeft, kTop + streams_ * kLane + 2, width() - 2 * kLeft, 18),
             Qt::AlignLeft | Qt::AlignVCenter,
             tr("%1 · %2 · dashed: grid barriers, phases drawn equally long · wheel zooms, dragging moves")
                 .arg(us(total_), method_));
}

void TimelineView::mousePressEvent(QMouseEvent* event) {
  pressed_x_ = event->position().x();
  first_at_press_ = first_;
  if (const int step = step_at(event->position()); step >= 0) selection_.select({step});
}

void TimelineView::mouseMoveEvent(QMouseEvent* event) {
  if (!(event->buttons() & Qt::LeftButton)) return;
  first_ = first_at_press_ - (event->position().x() - pressed_x_) / (width() - 2 * kLeft) * shown_;
  first_ = std::clamp(first_, 0.0, std::max(0.0, total_ - shown_));
  update();
}

void TimelineView::wheelEvent(QWheelEvent* event) {
  zoom(std::pow(0.9985, event->angleDelta().y()), event->position().x());
}

void TimelineView::zoom(double factor, double about) {
  const double at = first_ + (about - kLeft) / (width() - 2 * kLeft) * shown_;
  const double next = std::clamp(shown_ * factor, std::max(1e-3, total_ / 5000), std::max(1e-3, total_));
  first_ = std::clamp(at - (at - first_) * next / shown_, 0.0, std::max(0.0, total_ - next));
  shown_ = next;
  update();
}

void TimelineView::keyPressEvent(QKeyEvent* event) {
  const int now = selection_.current().step, count = static_cast<int>(begin_.size());
  if (count == 0) return QWidget::keyPressEvent(event);
  switch (event->key()) {
    case Qt::Key_Right:
      return selection_.select({std::min(count - 1, now + 1)});
    case Qt::Key_Left:
      return selection_.select({std::max(0, now - 1)});
    case Qt::Key_Plus:
      return zoom(0.8, width() / 2.0);
    case Qt::Key_Minus:
      return zoom(1.25, width() / 2.0);
    case Qt::Key_Space:
      return zoom(1e9, 0);
    default:
      QWidget::keyPressEvent(event);
  }
}

bool TimelineView::event(QEvent* event) {
  if (event->type() != QEvent::ToolTip || !session_.planned()) return QWidget::event(event);
  const auto* help = static_cast<QHelpEvent*>(event);
  const int step = step_at(help->pos());
  if (step < 0) {
    QToolTip::hideText();
    return true;
  }
  const StepRow& row = session_.planned()->steps[static_cast<std::size_t>(step)];
  QString text =
      QString::fromStdString(row.id + " " + row.name) + "\n" + us(length_[static_cast<std::size_t>(step)]);
  if (row.barriers) text += "\n" + counted(row.barriers, tr("grid barrier"));
  QToolTip::showText(help->globalPos(), text, this);
  return true;
}

}  // namespace stitchwork::gui
