// The steps by which the planned graph came of the model, each of which can be forbidden.
#pragma once

#include <QWidget>
#include <string>
#include <vector>

#include "gui/model/selection.h"
#include "gui/model/session.h"
#include "gui/model/tables.h"
#include "gui/view/table_page.h"

class QPushButton;

namespace stitchwork::gui {

/// A rule at a place, as the plan recorded it. To choose one selects what computes its value now; to forbid
/// it is an override, planned again at once.
class RewritingPanel : public QWidget {
  Q_OBJECT
 public:
  RewritingPanel(Session& session, SelectionModel& selection, QWidget* parent = nullptr);
  TablePage& table() { return *table_; }

 private:
  void follow();
  void select(int step);

  Session& session_;
  SelectionModel& selection_;
  TablePage* table_;
  QPushButton* forbid_;
  std::vector<Rewriting> steps_;
};

}  // namespace stitchwork::gui
