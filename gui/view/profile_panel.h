// Another tool's profile of the model, held to the plan: what each launch stands for, by which rule.
#pragma once

#include <QWidget>

#include "gui/model/selection.h"
#include "gui/model/session.h"
#include "gui/view/table_page.h"

class QLabel;
class QPushButton;

namespace stitchwork::gui {

/// To choose a launch selects the step that it is of.
class ProfilePanel : public QWidget {
  Q_OBJECT
 public:
  ProfilePanel(Session& session, SelectionModel& selection, QWidget* parent = nullptr);
  TablePage& table() { return *table_; }
  QString said() const;  ///< how much of the profile stands for what, and what does not
  /// Asks for a file.
  void browse();

 private:
  void follow();

  Session& session_;
  TablePage* table_;
  QLabel* said_;
  QPushButton* open_;
};

}  // namespace stitchwork::gui
