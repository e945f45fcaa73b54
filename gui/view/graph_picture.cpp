#include "gui/view/graph_picture.h"

#include <QPainter>
#include <algorithm>

namespace stitchwork::gui {

QString GraphPicture::title() const {
  if (planned->steps.empty()) return QString::fromStdString(planned->graph().source);
  return QString("%1 by %2 on %3")
      .arg(QString::fromStdString(planned->graph().source), QString::fromStdString(planned->plan->planner),
           QString::fromStdString(planned->plan->device));
}

QSizeF GraphPicture::size() const {
  constexpr double kLeastForLegend = 760;
  return {std::max(kLeastForLegend, drawn.width + 2 * kPictureEdge),
          drawn.height + 2 * kPictureEdge + kLegendHeight};
}

void GraphPicture::paint(QPainter& painter, const Theme& theme) const {
  painter.setRenderHint(QPainter::Antialiasing);
  painter.fillRect(QRectF({0, 0}, size()), theme.canvas);
  GraphLook own = look;
  own.theme = &theme;
  own.overlay = overlay ? &*overlay : nullptr;
  painter.save();
  painter.translate((size().width() - drawn.width) / 2, kPictureEdge);
  paint_graph(painter, *planned, drawn, own, QRectF(0, 0, drawn.width, drawn.height), 1);
  painter.restore();
  painter.translate(0, size().height() - kLegendHeight);
  if (!planned->steps.empty()) paint_legend(painter, *planned, own, size().width());
}

GraphPicture unfolded_picture(const PlannedPtr& planned) {
  Folding folding(planned->folds);
  folding.expand_all(FoldKind::kOp, kBoxesAtOpening);
  return {planned, FoldedLayout(planned->folds, box_size).draw(folding), {}, {}};
}

}  // namespace stitchwork::gui
