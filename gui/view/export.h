// What the window shows, as files: the graph as SVG, PDF, PNG, HTML or DOT, the plan as JSON, tables as CSV.
#pragma once

#include <QByteArray>
#include <QString>
#include <string>

#include "gui/view/graph_picture.h"

namespace stitchwork::gui {

/// The contents of a file by its ending: .svg, .pdf, .png, .html, .dot; on light paper. Throws Error naming
/// the file and what can be written. Safe on any thread.
std::string graph_file(const GraphPicture& picture, const QString& file);

/// As an SVG of one piece, texts as text.
QByteArray graph_svg(const GraphPicture& picture);

/// The boxes and edges drawn, as Graphviz reads them; expanded boxes are clusters.
std::string to_dot(const GraphPicture& picture);

}  // namespace stitchwork::gui
