// Plans of one model as a page of HTML that needs nothing else: no script, no network.
#pragma once

#include <string>
#include <vector>

#include "gui/view/graph_picture.h"

namespace stitchwork::gui {

/// One plan is shown at a time, chosen at the top: its graph as it is folded, and its kernels by time with
/// the decisions behind each, where the plan has them.
std::string plans_page(const std::vector<GraphPicture>& pictures);

}  // namespace stitchwork::gui
