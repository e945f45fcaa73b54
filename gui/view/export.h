// What the window shows, as files: the graph as SVG, PDF, PNG, HTML or DOT, the plan as JSON, tables as CSV.
#pragma once

#include <QString>

#include "gui/view/graph_view.h"

namespace stitchwork::gui {

/// The contents of a file by its ending: .svg, .pdf, .png, .html, .dot; on light paper. Throws Error naming
/// the file and what can be written. Safe on any thread.
std::string graph_file(const GraphPicture& picture, const QString& file);

/// The boxes and edges drawn, as Graphviz reads them; expanded boxes are clusters.
std::string to_dot(const PlannedModel& planned, const DrawnGraph& graph);

}  // namespace stitchwork::gui
