// Draws a graph: on the screen, into an SVG, a PDF or a PNG. One renderer for all.
#pragma once

#include <QColor>
#include <QRectF>
#include <QString>
#include <functional>
#include <optional>
#include <unordered_set>

#include "gui/layout/folded_view.h"
#include "gui/model/session.h"
#include "gui/view/theme.h"

class QPainter;

namespace stitchwork::gui {

/// One counter of the steps, as a colour from viridis and a text.
struct Overlay {
  QString title, least, most;  ///< for the legend
  /// Value of a step within [0, 1], and its text; nothing where it has none.
  std::function<std::optional<std::pair<double, QString>>(int step)> value;
};

struct GraphLook {
  const Theme* theme = &light_theme();
  int selected = -1;  ///< node of the fold tree
  std::unordered_set<int> hits;
  const Overlay* overlay = nullptr;
};

/// What lies within `visible`; `scale` is pixels a unit: small boxes are drawn without text.
void paint_graph(QPainter& painter, const PlannedModel& planned, const DrawnGraph& graph,
                 const GraphLook& look, const QRectF& visible, double scale);

inline constexpr double kLegendHeight = 26;
/// What the colours and badges mean that occur in the plan, `width` wide, at the painter's origin; what does
/// not fit is left out.
void paint_legend(QPainter& painter, const PlannedModel& planned, const GraphLook& look, double width);

}  // namespace stitchwork::gui
