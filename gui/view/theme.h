// Colours: of schemes (checked for protan, deutan and tritan vision; docs/gui.md), metrics and differences,
// in light and dark windows.
#pragma once

#include <QColor>
#include <QPalette>
#include <QString>

#include "analysis/plan/plan.h"

class QApplication;

namespace stitchwork::gui {

enum class Appearance { kSystem, kLight, kDark };

struct Theme {
  bool dark = false;
  QColor canvas;         ///< behind the graph
  QColor container;      ///< an expanded layer
  QColor paper;          ///< a box on it
  QColor text, muted;    ///< at least 7:1 and 4.5:1 against paper
  QColor line, edge;     ///< borders, curves
  QColor accent;         ///< the selection
  QColor hit;            ///< what a search found
  QColor better, worse;  ///< never red and green
};
const Theme& light_theme();
const Theme& dark_theme();
/// By the palette in force.
const Theme& theme(const QPalette& palette);

void apply_appearance(QApplication& application, Appearance appearance);

/// Tol's palette; badges are mandatory besides, because Independent and Local merge in greyscale.
QColor colour(Scheme scheme);
QColor library_colour();
/// What is read on a colour: black or white, whichever contrasts more.
QColor ink_on(const QColor& background);
/// Contrast of two colours by WCAG 2: 1 to 21.
double contrast(const QColor& a, const QColor& b);
/// Viridis at t within [0, 1].
QColor viridis(double t);

}  // namespace stitchwork::gui
