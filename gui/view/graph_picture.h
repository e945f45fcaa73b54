// A graph as it is shown, with its legend, apart from any window.
#pragma once

#include <QSizeF>
#include <optional>

#include "gui/view/graph_painter.h"

namespace stitchwork::gui {

/// A graph as it is shown, to be painted elsewhere and on another thread.
struct GraphPicture {
  PlannedPtr planned;
  DrawnGraph drawn;
  GraphLook look;
  std::optional<Overlay> overlay;

  /// "bert_layer by astitch on v100-sxm2"
  QString title() const;
  QSizeF size() const;  ///< with the legend
  void paint(QPainter& painter, const Theme& theme) const;
};

/// The plan unfolded to its ops, or as deep as kBoxesAtOpening boxes allow.
GraphPicture unfolded_picture(const PlannedPtr& planned);

inline constexpr double kPictureEdge = 24;  ///< around the graph

}  // namespace stitchwork::gui
