// The occupancy calculator of the selected kernel: what each resource admits, and assume-relax-apply step by
// step.
#pragma once

#include <QWidget>

#include "gui/model/selection.h"
#include "gui/model/session.h"
#include "gui/view/table_page.h"

class QLabel;
class QSpinBox;

namespace stitchwork::gui {

class OccupancyPanel : public QWidget {
  Q_OBJECT
 public:
  OccupancyPanel(Session& session, SelectionModel& selection, QWidget* parent = nullptr);
  TablePage& table() { return *table_; }
  QString steps() const;

 private:
  void follow();
  void compute();

  Session& session_;
  SelectionModel& selection_;
  const KernelPlan* kernel_ = nullptr;  ///< the selected one, of the session's plan; null: none
  QSpinBox *threads_, *registers_, *shared_;
  QLabel* steps_;
  TablePage* table_;
};

}  // namespace stitchwork::gui
