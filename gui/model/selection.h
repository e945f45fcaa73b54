// The one selection that every pane follows, with back and forward as in a browser.
#pragma once

#include <QObject>
#include <vector>

#include "core/graph/graph.h"

namespace stitchwork::gui {

/// A step of the plan, a group of its kernel, an op: as far as they are set. `op` alone is an op anywhere.
struct Selection {
  int step = -1;
  int group = -1;
  NodeId op = kNoNode;
  bool empty() const { return step < 0 && op == kNoNode; }
  bool operator==(const Selection&) const = default;
};

class SelectionModel : public QObject {
  Q_OBJECT
 public:
  using QObject::QObject;
  const Selection& current() const { return current_; }
  void select(const Selection& selection);
  void clear() { select({}); }
  /// Another plan: its steps are others. Selects `selection` and forgets the way there.
  void reset(const Selection& selection = {});
  bool can_back() const { return position_ > 0; }
  bool can_forward() const { return position_ + 1 < static_cast<int>(way_.size()); }
  void back();
  void forward();

 signals:
  void changed(const stitchwork::gui::Selection& selection);

 private:
  void go(int position);

  Selection current_;
  std::vector<Selection> way_{Selection{}};
  int position_ = 0;
};

}  // namespace stitchwork::gui
