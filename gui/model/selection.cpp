#include "gui/model/selection.h"

namespace stitchwork::gui {

void SelectionModel::select(const Selection& selection) {
  if (selection == current_) return;
  way_.resize(static_cast<std::size_t>(position_) + 1);
  constexpr std::size_t kLongest = 200;
  if (way_.size() >= kLongest) way_.erase(way_.begin());
  way_.push_back(selection);
  go(static_cast<int>(way_.size()) - 1);
}

void SelectionModel::reset(const Selection& selection) {
  way_ = {selection};
  go(0);
}

void SelectionModel::back() {
  if (can_back()) go(position_ - 1);
}

void SelectionModel::forward() {
  if (can_forward()) go(position_ + 1);
}

void SelectionModel::go(int position) {
  position_ = position;
  current_ = way_[static_cast<std::size_t>(position)];
  emit changed(current_);
}

}  // namespace stitchwork::gui
