// Graphs that others wrote as DOT, to be looked at: nodes, edges and clusters, folded and laid out as ours
// are.
#pragma once

#include <QString>

#include "gui/model/planned_model.h"

namespace stitchwork::gui {

/// Files that are read so: .dot, .gv.
bool is_dot_path(const QString& file);

/// The first graph of the file, as a plan without steps: clusters are what folds, nodes are leaves without an
/// op, in an order that edges follow. Colours and dashed borders are taken over, shapes and positions are
/// not. Throws Error with the file and line of what is wrong, and where the program is built without
/// Graphviz.
PlannedPtr read_dot(const QString& file);

}  // namespace stitchwork::gui
