// Menus, keys, palettes and dialogs of the window.
#include <QActionGroup>
#include <QApplication>
#include <QComboBox>
#include <QDialog>
#include <QDialogButtonBox>
#include <QDockWidget>
#include <QFileDialog>
#include <QFileInfo>
#include <QFormLayout>
#include <QHBoxLayout>
#include <QLabel>
#include <QLineEdit>
#include <QMenu>
#include <QMenuBar>
#include <QPushButton>
#include <QStackedWidget>
#include <QTabWidget>
#include <QTextBrowser>
#include <QToolBar>
#include <QVBoxLayout>
#include <algorithm>

#include "gui/main_window.h"
#include "gui/model/text.h"
#include "gui/view/command_palette.h"

namespace stitchwork::gui {
namespace {

/// Keys of one letter must not take letters from where text is typed.
bool typing() {
  const QWidget* focus = QApplication::focusWidget();
  return qobject_cast<const QLineEdit*>(focus) || (focus && focus->inherits("QAbstractSpinBox"));
}

}  // namespace

QAction* MainWindow::add_action(QMenu* menu, const QString& text, const QKeySequence& keys,
                                std::function<void()> run) {
  QAction* action = menu->addAction(text);
  action->setShortcut(keys);
  const bool letter = keys.count() == 1 && !(keys[0].keyboardModifiers() & ~Qt::ShiftModifier) &&
                      keys[0].key() < Qt::Key_Escape;
  connect(action, &QAction::triggered, this, [letter, run = std::move(run)] {
    if (!letter || !typing()) run();
  });
  addAction(action);
  return action;
}

void MainWindow::make_actions() {
  make_file_menu();
  make_edit_menu();
  make_view_menu();
  make_go_menu();
  make_plan_menu();
  make_help_menu();
  fill_toolbar();
}

void MainWindow::needs_plan(QAction* action) { plan_actions_.push_back(action); }

void MainWindow::make_file_menu() {
  QMenu* file = menuBar()->addMenu(tr("&File"));
  open_action_ = add_action(file, tr("&Open …"), QKeySequence::Open, [this] { browse(); });
  add_action(file, tr("Welcome page"), {}, [this] {
    stack_->setCurrentWidget(
        stack_->currentWidget() == welcome_ && session_.planned() ? static_cast<QWidget*>(tabs_) : welcome_);
  });
  file->addSeparator();
  needs_plan(add_action(file, tr("Save plan …"), QKeySequence::Save,
                        [this] { ask_export(tr("Plans (*.json)"), "json"); }));
  needs_plan(add_action(file, tr("Export graph as PNG …"), QKeySequence("Ctrl+Shift+E"),
                        [this] { ask_export(tr("PNG (*.png)"), "png"); }));
  needs_plan(add_action(file, tr("Export graph as SVG …"), QKeySequence("Ctrl+Alt+E"),
                        [this] { ask_export(tr("SVG (*.svg)"), "svg"); }));
  needs_plan(
      add_action(file, tr("Export graph as PDF …"), {}, [this] { ask_export(tr("PDF (*.pdf)"), "pdf"); }));
  needs_plan(add_action(file, tr("Export graph and kernels as HTML …"), {},
                        [this] { ask_export(tr("HTML (*.html)"), "html"); }));
  needs_plan(add_action(file, tr("Export graph as DOT …"), {},
                        [this] { ask_export(tr("Graphviz (*.dot)"), "dot"); }));
  needs_plan(
      add_action(file, tr("Export kernels as CSV …"), {}, [this] { ask_export(tr("CSV (*.csv)"), "csv"); }));
  needs_plan(
      add_action(file, tr("Join profile …"), {}, [this] { show_dock("profile"), profile_->browse(); }));
  file->addSeparator();
  add_action(file, tr("&Quit"), QKeySequence::Quit, [this] { close(); });
}

void MainWindow::make_edit_menu() {
  QMenu* edit = menuBar()->addMenu(tr("&Edit"));
  QAction* undo = session_.undo().createUndoAction(this, tr("&Undo"));
  QAction* redo = session_.undo().createRedoAction(this, tr("&Redo"));
  undo->setShortcut(QKeySequence::Undo);
  redo->setShortcut(QKeySequence::Redo);
  addAction(undo);
  addAction(redo);
  edit->addAction(undo);
  edit->addAction(redo);
  edit->addSeparator();
  add_action(edit, tr("&Find"), QKeySequence::Find, [this] { search_->setFocus(), search_->selectAll(); });
  add_action(edit, tr("Find (also /)"), QKeySequence("/"),
             [this] { search_->setFocus(), search_->selectAll(); });
  needs_plan(add_action(edit, tr("Go to kernel or op …"), QKeySequence("Ctrl+P"), [this] { show_go_to(); }));
  add_action(edit, tr("Next hit"), QKeySequence("F3"), [this] { next_hit(1); });
  add_action(edit, tr("Previous hit"), QKeySequence("Shift+F3"), [this] { next_hit(-1); });
}

void MainWindow::make_view_menu() {
  QMenu* view = menuBar()->addMenu(tr("&View"));
  const char* pages[] = {"Kernels", "Graph", "Source", "Diff", "Experiments"};
  for (int i = 0; i < 5; ++i)
    needs_plan(add_action(view, tr(pages[i]), QKeySequence(QString("Ctrl+%1").arg(i + 1)),
                          [this, i] { tabs_->setCurrentIndex(i); }));
  view->addSeparator();
  needs_plan(
      add_action(view, tr("Zoom to fit"), {}, [this] { tabs_->setCurrentIndex(1), graph_->zoom_fit(); }));
  needs_plan(add_action(view, tr("Centre the selection"), {},
                        [this] { tabs_->setCurrentIndex(1), graph_->centre_selection(false); }));
  needs_plan(add_action(view, tr("Expand everything"), {}, [this] { graph_->expand_all(); }));
  needs_plan(add_action(view, tr("Collapse to kernels"), {}, [this] { graph_->collapse_all(); }));
  needs_plan(add_action(view, tr("Colour the graph by time"), {}, [this] { show_overlay("time"); }));
  needs_plan(add_action(view, tr("Colour the graph by scheme"), {}, [this] { show_overlay({}); }));
  view->addSeparator();
  QMenu* panels = view->addMenu(tr("Panels"));
  for (QDockWidget* dock : findChildren<QDockWidget*>()) panels->addAction(dock->toggleViewAction());
  QMenu* looks = view->addMenu(tr("Appearance"));
  auto* group = new QActionGroup(this);
  const std::pair<const char*, Appearance> kinds[] = {
      {"As the system", Appearance::kSystem}, {"Light", Appearance::kLight}, {"Dark", Appearance::kDark}};
  for (const auto& [text, kind] : kinds) {
    QAction* action = add_action(looks, tr(text), {}, [this, kind = kind] { set_appearance(kind); });
    action->setCheckable(true);
    action->setChecked(static_cast<int>(kind) == settings_->value("appearance", 0).toInt());
    group->addAction(action);
  }
}

void MainWindow::make_go_menu() {
  QMenu* go = menuBar()->addMenu(tr("&Go"));
  back_ = add_action(go, tr("Back"), QKeySequence("Alt+Left"), [this] { selection_.back(); });
  forward_ = add_action(go, tr("Forward"), QKeySequence("Alt+Right"), [this] { selection_.forward(); });
  back_->setEnabled(false);
  forward_->setEnabled(false);
  needs_plan(add_action(go, tr("Previous kernel"), QKeySequence("["), [this] { step_kernel(-1); }));
  needs_plan(add_action(go, tr("Next kernel"), QKeySequence("]"), [this] { step_kernel(1); }));
  needs_plan(add_action(go, tr("Next decision"), QKeySequence("J"),
                        [this] { show_dock("decisions"), decisions_->step(1); }));
  needs_plan(add_action(go, tr("Previous decision"), QKeySequence("K"),
                        [this] { show_dock("decisions"), decisions_->step(-1); }));
}

void MainWindow::make_plan_menu() {
  QMenu* plan = menuBar()->addMenu(tr("&Plan"));
  needs_plan(add_action(plan, tr("Knobs …"), {}, [this] { show_knobs(); }));
  needs_plan(add_action(plan, tr("Set as baseline"), QKeySequence("B"), [this] { diff_->set_baseline(); }));
  needs_plan(add_action(plan, tr("Diff with the baseline or another planner"), QKeySequence("D"), [this] {
    tabs_->setCurrentWidget(diff_);
    diff_->compare();
  }));
  needs_plan(add_action(plan, tr("Ask for advice"), {}, [this] { show_dock("advice"), advice_->ask(); }));
  needs_plan(add_action(plan, tr("Run in the simulator"), QKeySequence("F5"),
                        [this] { show_dock("run_dock"), run_->run(); }));
}

void MainWindow::make_help_menu() {
  QMenu* help = menuBar()->addMenu(tr("&Help"));
  add_action(help, tr("Every command …"), QKeySequence("Ctrl+Shift+P"), [this] { show_palette(); });
  add_action(help, tr("Keys and words"), QKeySequence("F1"), [this] { show_help(); });
  add_action(help, tr("Keys and words (also ?)"), QKeySequence("?"), [this] { show_help(); });
}

void MainWindow::fill_toolbar() {
  auto* bar = findChild<QToolBar*>("toolbar");
  QAction* before = bar->actions().front();
  for (QAction* action : {open_action_, back_, forward_}) bar->insertAction(before, action);
  // The menu's actions say what they undo, which is too long here.
  QUndoStack* stack = &session_.undo();
  auto* undo_button = new QAction(tr("Undo"), bar);
  auto* redo_button = new QAction(tr("Redo"), bar);
  for (QAction* action : {undo_button, redo_button}) {
    action->setEnabled(false);
    bar->insertAction(before, action);
  }
  connect(undo_button, &QAction::triggered, stack, &QUndoStack::undo);
  connect(redo_button, &QAction::triggered, stack, &QUndoStack::redo);
  connect(stack, &QUndoStack::canUndoChanged, undo_button, &QAction::setEnabled);
  connect(stack, &QUndoStack::canRedoChanged, redo_button, &QAction::setEnabled);
  connect(stack, &QUndoStack::undoTextChanged, undo_button,
          [undo_button](const QString& what) { undo_button->setToolTip(tr("Undo %1 (Ctrl+Z)").arg(what)); });
  bar->insertSeparator(before);
  open_action_->setIconText(tr("Open"));
  back_->setIconText("◂");
  back_->setToolTip(tr("Back (Alt+Left)"));
  forward_->setIconText("▸");
  forward_->setToolTip(tr("Forward (Alt+Right)"));
}

void MainWindow::ask_export(const QString& filter, const QString& ending) {
  const QString name = QFileInfo(QString::fromStdString(session_.planned()->graph().source)).baseName();
  const QString file = QFileDialog::getSaveFileName(
      this, tr("Export"), QString("%1.%2.%3").arg(name, q(session_.planned()->plan->planner), ending),
      filter);
  if (!file.isEmpty()) export_to(file.endsWith("." + ending) ? file : file + "." + ending);
}

void MainWindow::set_appearance(Appearance appearance) {
  settings_->setValue("appearance", static_cast<int>(appearance));
  apply_appearance(*qApp, appearance);
  selection_.reset(selection_.current());  // texts carry colours
}

void MainWindow::show_palette() {
  QList<QAction*> commands = actions();
  for (QDockWidget* dock : findChildren<QDockWidget*>()) commands << dock->toggleViewAction();
  auto* palette = new CommandPalette(
      tr("A command"),
      [commands](const QString& text) {
        std::vector<std::pair<int, PaletteEntry>> found;
        for (QAction* action : commands) {
          QString name = action->text().remove('&');
          if (action->isCheckable() && !action->actionGroup()) name = tr("Panel: ") + name;
          const int distance = fuzzy_distance(text, name);
          if (name.isEmpty() || action->menu() || distance < 0 || !action->isEnabled()) continue;
          found.push_back({distance, {name, action->shortcut().toString(QKeySequence::NativeText), [action] {
                                        action->trigger();
                                      }}});
        }
        std::stable_sort(found.begin(), found.end(), [](auto& a, auto& b) { return a.first < b.first; });
        std::vector<PaletteEntry> entries;
        for (auto& [distance, entry] : found) entries.push_back(std::move(entry));
        return entries;
      },
      this);
  palette->show();
}

void MainWindow::show_go_to() {
  const PlannedPtr planned = session_.planned();
  auto* palette = new CommandPalette(
      tr("A kernel or an op"),
      [this, planned](const QString& text) {
        std::vector<std::pair<int, int>> found;
        const auto& nodes = planned->folds->nodes;
        for (std::size_t i = 1; i < nodes.size(); ++i) {
          if (nodes[i].kind == FoldKind::kGroup) continue;
          const int distance = fuzzy_distance(text, q(nodes[i].label));
          if (distance >= 0) found.emplace_back(distance, static_cast<int>(i));
        }
        std::sort(found.begin(), found.end());
        constexpr std::size_t kMost = 100;
        if (found.size() > kMost) found.resize(kMost);
        std::vector<PaletteEntry> entries;
        for (const auto& [distance, node] : found)
          entries.push_back({q(planned->folds->node(node).label), q(name(planned->folds->node(node).kind)),
                             [this, node = node] { select_node(node); }});
        return entries;
      },
      this);
  palette->show();
}

void MainWindow::show_knobs() {
  QDialog dialog(this);
  dialog.setObjectName("knobs");
  dialog.setWindowTitle(tr("Knobs of %1").arg(q(session_.settings().planner)));
  auto* layout = new QVBoxLayout(&dialog);
  auto* form = new QFormLayout;
  layout->addLayout(form);
  const Planner& row = planner(session_.settings().planner);
  const auto values = resolve_knobs(row, {session_.settings().knobs, {}, false});
  for (const auto& [name, value] : values) {
    auto* box = new QComboBox;
    box->setObjectName(q(name));
    for (const Knob& knob : knobs())
      if (knob.name == name)
        for (const auto& v : knob.values) box->addItem(q(v));
    box->setCurrentText(q(value));
    connect(box, &QComboBox::textActivated, this,
            [this, name = q(name)](const QString& v) { session_.set_knob(name, v); });
    form->addRow(q(name), box);
  }
  if (row.takes_library) form->addRow(tr("library"), library_row());
  if (values.empty()) layout->addWidget(new QLabel(tr("This planner has no knobs: it is what others do.")));
  auto* buttons = new QDialogButtonBox(QDialogButtonBox::Close);
  connect(buttons, &QDialogButtonBox::rejected, &dialog, &QDialog::reject);
  layout->addWidget(buttons);
  dialog.exec();
}

/// Times of single ops to plan by: which file, another one, none.
QWidget* MainWindow::library_row() {
  auto* line = new QWidget;
  auto* row = new QHBoxLayout(line);
  row->setContentsMargins(0, 0, 0, 0);
  auto* file = new QLabel;
  file->setObjectName("library_file");
  auto* choose = new QPushButton(tr("Choose …"));
  choose->setObjectName("choose_library");
  choose->setToolTip(tr("Times of single ops, as `stitchwork library collect` writes them"));
  auto* none = new QPushButton(tr("None"));
  none->setObjectName("no_library");
  const auto show = [this, file, none] {
    const QString name = q(session_.settings().library);
    file->setText(name.isEmpty() ? tr("none: times are modelled") : QFileInfo(name).fileName());
    file->setToolTip(name);
    none->setEnabled(!name.isEmpty());
  };
  show();
  connect(&session_, &Session::settings_changed, line, show);
  connect(choose, &QPushButton::clicked, this, [this] {
    const QString chosen = QFileDialog::getOpenFileName(this, tr("Plan by a performance library"), {},
                                                        tr("Libraries (*.library *.db);;All files (*)"));
    if (!chosen.isEmpty()) session_.set_library(chosen);
  });
  connect(none, &QPushButton::clicked, this, [this] { session_.set_library({}); });
  row->addWidget(file, 1);
  row->addWidget(choose);
  row->addWidget(none);
  return line;
}

void MainWindow::show_help() {
  auto* dialog = new QDialog(this);
  dialog->setAttribute(Qt::WA_DeleteOnClose);
  dialog->setObjectName("help");
  dialog->setWindowTitle(tr("Keys and words"));
  dialog->resize(640, 620);
  auto* layout = new QVBoxLayout(dialog);
  auto* text = new QTextBrowser;
  QString html = tr("<h3>Keys</h3><table>");
  for (QAction* action : actions())
    if (!action->shortcut().isEmpty())
      html += QString("<tr><td style='padding-right:18px'><b>%1</b></td><td>%2</td></tr>")
                  .arg(action->shortcut().toString(QKeySequence::NativeText).toHtmlEscaped(),
                       action->text().remove('&'));
  html +=
      tr("<tr><td style='padding-right:18px'><b>Space</b></td><td>graph: "
         "whole</td></tr><tr><td><b>F</b></td><td>graph: centre the "
         "selection, again: "
         "fit it</td></tr><tr><td><b>Right, Left</b></td><td>graph: expand, collapse</td></tr>"
         "<tr><td><b>Up, Down</b></td><td>graph: along the edges</td></tr>"
         "<tr><td style='padding-right:18px'><b>Shift+E, Shift+C</b></td><td>graph: expand, collapse "
         "all</td></tr>"
         "<tr><td><b>Esc</b></td><td>clears the selection</td></tr></table><h3>Words</h3>");
  for (const Scheme s : {Scheme::kIndependent, Scheme::kLocal, Scheme::kRegional, Scheme::kResident,
                         Scheme::kGlobal, Scheme::kRecomputed})
    html += QString("<p><b>%1 · %2</b>: %3</p>").arg(QChar(badge(s))).arg(q(name(s)), q(meaning(s)));
  html +=
      tr("<p><b>★ dominant</b>: the op whose thread mapping the ops of its group follow.</p>"
         "<p><b>Grid barrier</b>: all blocks of a kernel wait for each other; all must be resident (one "
         "wave).</p>"
         "<p><b>Modelled, simulated, measured</b>: from the plan alone; PTX executed in the simulator; on a "
         "GPU.</p>");
  text->setHtml(html);
  layout->addWidget(text);
  dialog->show();
}

}  // namespace stitchwork::gui
