// Two plans of one model side by side: totals, both graphs with one selection, what changed and why.
#pragma once

#include <QWidget>
#include <optional>

#include "gui/model/diff_table.h"
#include "gui/model/selection.h"
#include "gui/view/graph_view.h"
#include "gui/view/table_page.h"

class QComboBox;
class QLabel;

namespace stitchwork::gui {

class DiffPage : public QWidget {
  Q_OBJECT
 public:
  DiffPage(Session& session, SelectionModel& selection, QWidget* parent = nullptr);
  const std::optional<PlanComparison>& comparison() const { return comparison_; }
  /// Compares the plan shown (B) with another planner's, under the same device.
  void compare_with(const QString& planner);
  /// With the baseline, if one is set, else with the planner chosen.
  void compare();
  void set_baseline();
  TablePage& changes() { return *changes_; }
  GraphView& graph_a() { return *graph_a_; }
  GraphView& graph_b() { return *graph_b_; }

 private:
  void follow_plan();
  void present(PlanComparison comparison);
  void select_op(NodeId op);
  void clicked(const GraphView& view, int node);

  Session& session_;
  SelectionModel& selection_;
  PlannedPtr baseline_;
  std::optional<PlanComparison> comparison_;
  QComboBox* planner_;
  QLabel *title_a_, *title_b_;
  GraphView *graph_a_, *graph_b_;
  TablePage *changes_, *totals_;
};

}  // namespace stitchwork::gui
