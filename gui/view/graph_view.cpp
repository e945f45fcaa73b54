#include "gui/view/graph_view.h"

#include <QHelpEvent>
#include <QKeyEvent>
#include <QMouseEvent>
#include <QPainter>
#include <QToolTip>
#include <QWheelEvent>
#include <algorithm>
#include <cmath>

#include "gui/model/tables.h"

namespace stitchwork::gui {
namespace {

constexpr double kLeastScale = 0.001, kMostScale = 4, kEdge = kPictureEdge;
constexpr double kReadable = 0.8;  ///< the least scale a selection is brought into view at
constexpr int kMostBoxes = 12000;  ///< that "expand all" makes

}  // namespace

GraphView::GraphView(QWidget* parent) : QWidget(parent) {
  setFocusPolicy(Qt::StrongFocus);
  setMouseTracking(true);
  setMinimumSize(200, 150);
  setAccessibleName(tr("Graph of the plan"));
}

void GraphView::show_plan(PlannedPtr planned) {
  const bool same_model = planned_ && planned && planned_->model == planned->model;
  planned_ = std::move(planned);
  look_.selected = -1;
  look_.hits.clear();
  found_.clear();
  overlay_.reset();
  layout_.reset();
  folding_.reset();
  drawn_ = {};
  if (planned_) {
    layout_ = std::make_unique<FoldedLayout>(planned_->folds, box_size);
    folding_ = folding_at_opening(planned_->folds);
    drawn_ = layout_->draw(*folding_);
    fresh_ = !same_model;
    if (fresh_ || drawn_.boxes.empty()) opening_view();
  }
  emit summary_changed(summary());
  update();
}

/// Whole if it can then be read, else from the top, where the model begins.
void GraphView::opening_view() {
  zoom_fit();
  constexpr double kLegible = 0.5;
  if (scale_ >= kLegible || drawn_.boxes.empty()) return;
  scale_ = kReadable;
  const double wide = drawn_.width * scale_;
  offset_ = {wide < width() ? (width() - wide) / 2 : kEdge, kEdge};
  update();
}

void GraphView::lay_out() {
  if (!layout_) return;
  drawn_ = layout_->draw(*folding_);
  look_.hits.clear();
  for (int node : found_) look_.hits.insert(folding_->drawn(node));
  emit summary_changed(summary());
  update();
}

QString GraphView::summary() const {
  if (!planned_) return {};
  QString text = counted(static_cast<int>(drawn_.boxes.size()), "box");
  if (!drawn_.stubs.empty())
    text += tr(" · %1 drawn as numbered stubs").arg(counted(static_cast<int>(drawn_.stubs.size()), "edge"));
  return text;
}

void GraphView::set_hits(const std::vector<int>& nodes) {
  found_ = nodes;
  look_.hits.clear();
  if (folding_)
    for (int node : found_) look_.hits.insert(folding_->drawn(node));
  update();
}

void GraphView::set_overlay(std::optional<Overlay> overlay) {
  overlay_ = std::move(overlay);
  update();
}

void GraphView::select_node(int node, bool bring_into_view) {
  if (!folding_ || node < 0) {
    look_.selected = -1;
    return update();
  }
  if (folding_->drawn(node) != node && bring_into_view) {
    folding_->reveal(node);
    lay_out();
  }
  look_.selected = folding_->drawn(node);
  if (bring_into_view) {
    if (const DrawnBox* box = drawn_.box_of(look_.selected)) {
      const QRectF on_screen(to_screen(box->rect.x, box->rect.y),
                             to_screen(box->rect.right(), box->rect.bottom()));
      if (!QRectF(rect()).adjusted(kEdge, kEdge, -kEdge, -kEdge).contains(on_screen)) centre_selection(false);
    }
  }
  update();
}

void GraphView::zoom_fit() {
  if (drawn_.boxes.empty()) return;
  const double below = height() - kLegendHeight;
  const double room_x = std::max(1.0, width() - 2 * kEdge), room_y = std::max(1.0, below - 2 * kEdge);
  scale_ = std::clamp(std::min(room_x / std::max(1.0, drawn_.width), room_y / std::max(1.0, drawn_.height)),
                      kLeastScale, 1.25);
  offset_ = {(width() - drawn_.width * scale_) / 2, (below - drawn_.height * scale_) / 2};
  update();
}

void GraphView::centre_selection(bool fit) {
  const DrawnBox* box = drawn_.box_of(look_.selected);
  if (!box) return;
  if (fit)
    scale_ =
        std::clamp(0.9 * std::min(width() / box->rect.width, height() / box->rect.height), kLeastScale, 1.5);
  else
    scale_ = std::max(scale_, kReadable);
  offset_ = {width() / 2.0 - (box->rect.x + box->rect.width / 2) * scale_,
             height() / 2.0 - (box->rect.y + box->rect.height / 2) * scale_};
  update();
}

void GraphView::toggle(int node) {
  if (!folding_ || node <= 0 || planned_->folds->leaf(node)) return;
  const DrawnBox* before = drawn_.box_of(node);
  const QPointF anchor = before ? to_screen(before->rect.x, before->rect.y) : QPointF();
  folding_->expand(node, !folding_->expanded(node));
  lay_out();
  if (const DrawnBox* after = drawn_.box_of(node); before && after)
    offset_ += anchor - to_screen(after->rect.x, after->rect.y);
  update();
}

void GraphView::expand_selected(bool on) {
  const int node = look_.selected;
  if (!folding_ || node <= 0) return;
  if (on != folding_->expanded(node) && !planned_->folds->leaf(node)) return toggle(node);
  if (!on && planned_->folds->node(node).parent > 0) emit node_clicked(planned_->folds->node(node).parent);
}

void GraphView::expand_all() {
  if (!folding_) return;
  folding_->expand_all(FoldKind::kOp, kMostBoxes);
  lay_out();
  zoom_fit();
}

void GraphView::collapse_all() {
  if (!folding_) return;
  folding_ = folding_at_opening(planned_->folds);
  if (look_.selected >= 0) look_.selected = folding_->drawn(look_.selected);
  lay_out();
  zoom_fit();
}

QRectF GraphView::visible() const { return {to_graph({0, 0}), to_graph(QPointF(width(), height()))}; }

int GraphView::node_at(QPointF screen) const {
  const QPointF at = to_graph(screen);
  const int box = drawn_.box_at(at.x(), at.y());
  return box < 0 ? -1 : drawn_.boxes[static_cast<std::size_t>(box)].node;
}

const DrawnStub* GraphView::stub_at(QPointF screen, bool& outgoing) const {
  const QPointF at = to_graph(screen);
  for (const DrawnStub& s : drawn_.stubs)
    for (const Point& end : {s.out, s.in})
      if (std::abs(at.x() - end.x) < 9 && std::abs(at.y() - end.y) < 8) {
        outgoing = &end == &s.out || (end.x == s.out.x && end.y == s.out.y);
        return &s;
      }
  return nullptr;
}

void GraphView::paintEvent(QPaintEvent*) {
  QPainter painter(this);
  GraphLook look = look_;
  look.theme = &theme(palette());
  look.overlay = overlay_ ? &*overlay_ : nullptr;
  painter.fillRect(rect(), look.theme->canvas);
  if (!planned_) {
    painter.setPen(look.theme->muted);
    painter.drawText(rect(), Qt::AlignCenter, tr("Open a model to see its plan as a graph"));
    return;
  }
  painter.setRenderHint(QPainter::Antialiasing, scale_ > 0.1);
  painter.save();
  painter.translate(offset_);
  painter.scale(scale_, scale_);
  paint_graph(painter, *planned_, drawn_, look, visible(), scale_);
  painter.restore();
  painter.translate(0, height() - kLegendHeight);
  if (!planned_->steps.empty()) paint_legend(painter, *planned_, look, width());
}

void GraphView::resizeEvent(QResizeEvent*) {
  if (fresh_ && planned_) opening_view();
}

void GraphView::mousePressEvent(QMouseEvent* event) {
  if (event->button() != Qt::LeftButton && event->button() != Qt::MiddleButton) return;
  fresh_ = false;
  pressed_ = event->position();
  offset_at_press_ = offset_;
  panning_ = true;
  moved_ = false;
}

void GraphView::mouseMoveEvent(QMouseEvent* event) {
  if (!panning_) return;
  const QPointF by = event->position() - pressed_;
  if (!moved_ && by.manhattanLength() < 4) return;
  moved_ = true;
  setCursor(Qt::ClosedHandCursor);
  offset_ = offset_at_press_ + by;
  update();
}

void GraphView::mouseReleaseEvent(QMouseEvent* event) {
  const bool clicked = panning_ && !moved_;  // not the end of a double click
  panning_ = false;
  unsetCursor();
  if (!clicked || event->button() != Qt::LeftButton) return;
  bool outgoing = false;
  if (const DrawnStub* stub = stub_at(event->position(), outgoing)) {
    const int other = outgoing ? stub->to : stub->from;
    emit node_clicked(other);
    look_.selected = other;
    centre_selection(false);
    return;
  }
  emit node_clicked(node_at(event->position()));
}

void GraphView::mouseDoubleClickEvent(QMouseEvent* event) {
  if (const int node = node_at(event->position()); node > 0) toggle(node);
}

void GraphView::wheelEvent(QWheelEvent* event) {
  fresh_ = false;
  zoom(std::pow(1.0015, event->angleDelta().y()), event->position());
}

void GraphView::zoom(double factor, QPointF about) {
  const double next = std::clamp(scale_ * factor, kLeastScale, kMostScale);
  offset_ = about - (about - offset_) * (next / scale_);
  scale_ = next;
  update();
}

/// Up and Down go along edges, to the neighbour that is nearest.
void GraphView::walk(int key) {
  const DrawnBox* from = drawn_.box_of(look_.selected);
  if (!from) {
    if (!drawn_.boxes.empty()) emit node_clicked(drawn_.boxes.front().node);
    return;
  }
  int best = -1;
  double nearest = 1e300;
  for (const DrawnEdge& e : drawn_.edges) {
    const int other = key == Qt::Key_Down && e.from == look_.selected ? e.to
                      : key == Qt::Key_Up && e.to == look_.selected   ? e.from
                                                                      : -1;
    const DrawnBox* box = other < 0 ? nullptr : drawn_.box_of(other);
    if (!box) continue;
    const double far = std::hypot(box->rect.x - from->rect.x, box->rect.y - from->rect.y);
    if (far < nearest) nearest = far, best = other;
  }
  if (best >= 0) {
    emit node_clicked(best);
    select_node(best, true);
  }
}

void GraphView::keyPressEvent(QKeyEvent* event) {
  fresh_ = false;
  const QPointF middle(width() / 2.0, height() / 2.0);
  switch (event->key()) {
    case Qt::Key_Space:
      return zoom_fit();
    case Qt::Key_F: {
      const QPointF before = offset_;
      centre_selection(false);
      if (before == offset_) centre_selection(true);  // again
      return;
    }
    case Qt::Key_Escape:
      return emit node_clicked(-1);
    case Qt::Key_Right:
      return expand_selected(true);
    case Qt::Key_Left:
      return expand_selected(false);
    case Qt::Key_Up:
    case Qt::Key_Down:
      return walk(event->key());
    case Qt::Key_Return:
    case Qt::Key_Enter:
      return toggle(look_.selected);
    case Qt::Key_Plus:
    case Qt::Key_Equal:
      return zoom(1.25, middle);
    case Qt::Key_Minus:
      return zoom(0.8, middle);
    default:
      break;
  }
  if (event->modifiers() == Qt::ShiftModifier && event->key() == Qt::Key_E) return expand_all();
  if (event->modifiers() == Qt::ShiftModifier && event->key() == Qt::Key_C) return collapse_all();
  QWidget::keyPressEvent(event);
}

bool GraphView::event(QEvent* event) {
  if (event->type() != QEvent::ToolTip || !planned_) return QWidget::event(event);
  const auto* help = static_cast<QHelpEvent*>(event);
  bool outgoing = false;
  if (const DrawnStub* stub = stub_at(help->pos(), outgoing)) {
    const auto& other = planned_->folds->node(outgoing ? stub->to : stub->from);
    QToolTip::showText(help->globalPos(),
                       (outgoing ? tr("to %1: click to go there") : tr("from %1: click to go there"))
                           .arg(QString::fromStdString(other.label)),
                       this);
    return true;
  }
  const int node = node_at(help->pos());
  if (node < 0) {
    QToolTip::hideText();
    return true;
  }
  const FoldNode& n = planned_->folds->node(node);
  QString text = QString::fromStdString(n.label);
  if (n.op != kNoNode && n.kind == FoldKind::kOp)
    text += "\n" + QString::fromStdString(to_text(planned_->computation(n.step).node(n.op).shape));
  if (n.kind == FoldKind::kStep) text += "\n" + us(planned_->row(n.step).predicted_us);
  if (!planned_->folds->leaf(node))
    text += tr("\n%1; double-click folds and unfolds").arg(counted(n.ops, n.steps > 0 ? "op" : "node"));
  QToolTip::showText(help->globalPos(), text, this);
  return true;
}

}  // namespace stitchwork::gui
