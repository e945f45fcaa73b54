// The right-hand panel: what is selected, how it is executed, why, and what was refused.
#pragma once

#include <QTextBrowser>
#include <QWidget>
#include <vector>

#include "analysis/explain/explain.h"
#include "analysis/explain/what_if.h"
#include "gui/model/selection.h"
#include "gui/model/session.h"

class QPushButton;

namespace stitchwork::gui {

class SelectionPanel : public QWidget {
  Q_OBJECT
 public:
  SelectionPanel(Session& session, SelectionModel& selection, QWidget* parent = nullptr);
  QString text() const { return browser_->toPlainText(); }

 private:
  void show_selection();
  void explain_op(const Selection& selection);
  void render();
  void follow(const QUrl& link);
  void try_alternatives();
  QString step_html(const PlannedModel& planned, int step) const;
  QString group_html(const PlannedModel& planned, int step, int group) const;
  QString op_html(const PlannedModel& planned, const Selection& selection) const;
  QString placement_html(const OpPlacement& at) const;
  QString trials_html() const;
  QString why_html() const;
  QString badge_html(Scheme scheme) const;
  QString op_link(NodeId op) const;
  QString op_link(const std::string& op) const;
  int body() const;                  ///< of the plan, that the selection is in; -1: the entry
  const Computation& shown() const;  ///< that the selection is in

  Session& session_;
  SelectionModel& selection_;
  QTextBrowser* browser_;
  QPushButton* alternatives_;
  std::optional<Explanation> explanation_;  ///< of the op selected, once it is there
  std::vector<WhatIf> trials_;
  bool tried_ = false;
};

}  // namespace stitchwork::gui
