// Panels about planning: the decisions step by step, what would be worth changing, the overrides in force.
#pragma once

#include <QWidget>
#include <vector>

#include "analysis/explain/advise.h"
#include "gui/model/selection.h"
#include "gui/model/session.h"
#include "gui/view/table_page.h"

class QLabel;
class QPushButton;
class QTextBrowser;

namespace stitchwork::gui {

/// Where an op of the planned entry lies; empty where there is none of that name.
Selection selection_of(const PlannedModel& planned, const std::string& name);

/// The planner's decisions in order: one frame a decision, with what was considered, the answer and why.
class DecisionPanel : public QWidget {
  Q_OBJECT
 public:
  DecisionPanel(Session& session, SelectionModel& selection, QWidget* parent = nullptr);
  void step(int by);  ///< in the order shown; the first one if none is chosen
  TablePage& table() { return *table_; }
  QString frame() const;

 private:
  void show_frame(int decision);

  Session& session_;
  SelectionModel& selection_;
  TablePage* table_;
  QTextBrowser* frame_;
};

/// `advise` as a list: one click applies an override.
class AdvicePanel : public QWidget {
  Q_OBJECT
 public:
  AdvicePanel(Session& session, SelectionModel& selection, QWidget* parent = nullptr);
  void ask();
  TablePage& table() { return *table_; }

 private:
  Session& session_;
  TablePage* table_;
  QPushButton *ask_, *apply_;
  std::vector<Advice> advice_;
};

/// The overrides in force, and what they changed; saved as the file the command line reads.
class OverridePanel : public QWidget {
  Q_OBJECT
 public:
  OverridePanel(Session& session, SelectionModel& selection, QWidget* parent = nullptr);
  TablePage& table() { return *table_; }

 signals:
  void save();
  void load();

 private:
  void follow();
  void offer();

  Session& session_;
  SelectionModel& selection_;
  TablePage* table_;
  QLabel* delta_;
  QPushButton *add_, *remove_, *save_;
};

}  // namespace stitchwork::gui
