// The window: welcome page or tabs in the middle, panels around, one selection through all of them.
#pragma once

#include <QMainWindow>
#include <QSettings>
#include <memory>

#include "gui/model/outline_model.h"
#include "gui/model/selection.h"
#include "gui/model/session.h"
#include "gui/view/diff_page.h"
#include "gui/view/experiments_page.h"
#include "gui/view/graph_view.h"
#include "gui/view/model_questions.h"
#include "gui/view/occupancy_panel.h"
#include "gui/view/planning_panels.h"
#include "gui/view/profile_panel.h"
#include "gui/view/rewriting_panel.h"
#include "gui/view/run_panel.h"
#include "gui/view/selection_panel.h"
#include "gui/view/source_view.h"
#include "gui/view/table_page.h"
#include "gui/view/timeline_view.h"
#include "gui/view/welcome_page.h"

class QComboBox;
class QDockWidget;
class QLabel;
class QLineEdit;
class QProgressBar;
class QPushButton;
class QStackedWidget;
class QTabWidget;
class QTreeView;

namespace stitchwork::gui {

class MainWindow : public QMainWindow {
  Q_OBJECT
 public:
  /// `settings_file` "": the user's own.
  explicit MainWindow(const QString& settings_file = {}, QWidget* parent = nullptr);
  ~MainWindow() override;

  void open(const QString& name);
  Session& session() { return session_; }
  SelectionModel& selection() { return selection_; }
  GraphView& graph() { return *graph_; }
  TablePage& kernels() { return *kernels_; }
  DiffPage& diff_page() { return *diff_; }
  SourceView& source() { return *source_; }
  RunPanel& run_panel() { return *run_; }
  ProfilePanel& profile_panel() { return *profile_; }
  AdvicePanel& advice() { return *advice_; }
  RewritingPanel& rewriting() { return *rewriting_; }
  OverridePanel& overrides() { return *overrides_; }
  DecisionPanel& decisions() { return *decisions_; }
  OccupancyPanel& occupancy() { return *occupancy_; }
  SelectionPanel& panel() { return *panel_; }
  TimelineView& timeline() { return *timeline_; }
  ExperimentsPage& experiments() { return *experiments_; }
  GraphView& dot() { return *dot_; }
  WelcomePage& welcome() { return *welcome_; }
  TablePage& problems() { return *problems_; }
  QTabWidget& tabs() { return *tabs_; }
  QTreeView& outline() { return *outline_; }
  void show_dock(const QString& object_name);
  /// Writes what the ending says, on a worker thread.
  void export_to(const QString& file);

 protected:
  void dragEnterEvent(QDragEnterEvent* event) override;
  void dropEvent(QDropEvent* event) override;
  void closeEvent(QCloseEvent* event) override;
  bool eventFilter(QObject* watched, QEvent* event) override;

 private:
  void make_pages();
  void make_docks();
  void make_toolbar();
  void make_actions();
  void make_file_menu();
  void make_edit_menu();
  void make_view_menu();
  void make_go_menu();
  void make_plan_menu();
  void make_help_menu();
  void fill_toolbar();
  void needs_plan(QAction* action);
  void connect_session();
  void browse();
  void open_dot(const QString& file);
  void remember(const QString& name);
  void show_plan();
  void show_settings();
  void show_problem(const Problem& problem);
  void ask(const Problem& problem);
  void follow_selection(const Selection& selection);
  void select_node(int node);
  void step_kernel(int by);
  GraphView& searched();  ///< the graph that search looks in: the one read from DOT where it is shown
  void search(const QString& text);
  void next_hit(int by);
  void show_overlay(const QString& counter);
  void show_palette();
  void show_go_to();
  void show_help();
  void show_knobs();
  QWidget* library_row();
  void ask_export(const QString& filter, const QString& ending);
  void set_appearance(Appearance appearance);
  QAction* add_action(QMenu* menu, const QString& text, const QKeySequence& keys, std::function<void()> run);
  int selected_node() const;

  Session session_;
  SelectionModel selection_;
  std::unique_ptr<QSettings> settings_;
  OutlineModel outline_model_;
  QStackedWidget* stack_;
  QTabWidget* tabs_;
  WelcomePage* welcome_;
  TablePage *kernels_, *problems_;
  GraphView *graph_, *dot_;
  QLabel *graph_summary_, *status_, *search_count_;
  SourceView* source_;
  DiffPage* diff_;
  TimelineView* timeline_;
  ExperimentsPage* experiments_;
  SelectionPanel* panel_;
  DecisionPanel* decisions_;
  AdvicePanel* advice_;
  RewritingPanel* rewriting_;
  OverridePanel* overrides_;
  RunPanel* run_;
  ProfilePanel* profile_;
  OccupancyPanel* occupancy_;
  QTreeView* outline_;
  QComboBox *planner_, *device_;
  QLineEdit* search_;
  QProgressBar* busy_;
  QPushButton* stop_;                   ///< beside it
  std::vector<QAction*> plan_actions_;  ///< that need a plan
  QAction *back_, *forward_, *open_action_;
  std::vector<Problem> problem_list_;
  QString asked_file_;  ///< of the model being opened that leaves something open
  std::vector<OnnxQuestion> asked_;
  Answers answers_;
  std::vector<int> hits_;
  int hit_ = -1;
  bool from_graph_ = false;
  bool quiet_ = false;  ///< widgets are being set from the session
};

}  // namespace stitchwork::gui
