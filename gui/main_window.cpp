#include "gui/main_window.h"

#include <QApplication>
#include <QComboBox>
#include <QDockWidget>
#include <QDragEnterEvent>
#include <QFileDialog>
#include <QFileInfo>
#include <QLabel>
#include <QLineEdit>
#include <QMimeData>
#include <QProgressBar>
#include <QPushButton>
#include <QStackedWidget>
#include <QStatusBar>
#include <QTabWidget>
#include <QTreeView>
#include <algorithm>

#include "gui/model/dot.h"
#include "gui/model/tables.h"
#include "gui/model/text.h"
#include "gui/view/export.h"

namespace stitchwork::gui {
namespace {

constexpr int kRecentFiles = 8;
/// Of a hash, to tell files apart at sight.
constexpr std::size_t kHashDigits = 12;

/// By which library the plan was made; "" by none.
QString library_text(const PlannedModel& planned) {
  if (planned.plan->library.empty()) return {};
  const QString file = QFileInfo(q(planned.settings.library)).fileName();
  return MainWindow::tr(" · by %1 (sha256 %2…)")
      .arg(file.isEmpty() ? MainWindow::tr("a library") : file,
           q(planned.plan->library.substr(0, kHashDigits)));
}

}  // namespace

MainWindow::MainWindow(const QString& settings_file, QWidget* parent) : QMainWindow(parent) {
  settings_ = settings_file.isEmpty() ? std::make_unique<QSettings>("stitchwork", "stitchwork-gui")
                                      : std::make_unique<QSettings>(settings_file, QSettings::IniFormat);
  setWindowTitle("Stitchwork");
  setAcceptDrops(true);
  setDockNestingEnabled(true);
  resize(1440, 900);
  make_pages();
  make_docks();
  make_toolbar();
  make_actions();
  connect_session();
  welcome_->set_recent(settings_->value("recent").toStringList());
  set_appearance(static_cast<Appearance>(settings_->value("appearance", 0).toInt()));
  if (settings_->contains("geometry")) {
    restoreGeometry(settings_->value("geometry").toByteArray());
    restoreState(settings_->value("windows").toByteArray());
  }
  show_plan();
  show_settings();
}

/// Panels go before what they refer to.
MainWindow::~MainWindow() {
  qDeleteAll(findChildren<QDockWidget*>());
  delete takeCentralWidget();
}

void MainWindow::connect_session() {
  connect(&session_, &Session::opening, this, [this](const QString& name) {
    welcome_->set_problem({}, {});
    status_->setText(tr("Opening %1 …").arg(name));
  });
  connect(&session_, &Session::planned_changed, this, &MainWindow::show_plan);
  connect(&session_, &Session::settings_changed, this, &MainWindow::show_settings);
  connect(&session_, &Session::failed, this, [this](const Problem& problem) {
    // What an answer is wrong about is said where it can be mended.
    if (!asked_.empty() && problem.doing == Session::doing_open(session_.name()))
      ask(problem);
    else
      show_problem(problem);
  });
  connect(&session_, &Session::asked, this, [this](const Problem& problem) {
    asked_file_ = problem.where;
    for (const OnnxQuestion& question : problem.questions)
      if (std::find(asked_.begin(), asked_.end(), question) == asked_.end()) asked_.push_back(question);
    ask(problem);
  });
  connect(&session_, &Session::written, this,
          [this](const QString& file) { statusBar()->showMessage(tr("Wrote %1").arg(file), 6000); });
  connect(&session_, &Session::result_changed, this, [this] {
    if (!session_.planned()) return;
    fill_kernels(kernels_->model(), *session_.planned(), session_.result().get());
    kernels_->select_key(selection_.current().step);
    if (session_.result()) show_overlay({});
  });
  connect(&session_.jobs(), &Jobs::started, this, [this](int lane, const QString& doing) {
    if (lane == Jobs::kExplain) return;
    statusBar()->clearMessage();
    busy_->setRange(0, 0);
    busy_->show();
    stop_->show();
    status_->setText(doing + " …");
  });
  connect(&session_.jobs(), &Jobs::progressed, this, [this](int, double fraction, const QString& what) {
    busy_->setRange(0, 1000);
    busy_->setValue(static_cast<int>(1000 * fraction));
    status_->setText(what + " …");
  });
  connect(&session_.jobs(), &Jobs::finished, this, [this](int lane) {
    if (lane == Jobs::kExplain || session_.jobs().any_work()) return;
    busy_->hide();
    stop_->hide();
    show_settings();
  });
  connect(&selection_, &SelectionModel::changed, this, &MainWindow::follow_selection);
}

void MainWindow::open(const QString& name) {
  asked_.clear();
  answers_.clear();
  if (is_dot_path(name)) return open_dot(name);
  if (!name.endsWith(".db")) return session_.open(name);
  stack_->setCurrentWidget(tabs_);
  tabs_->setCurrentWidget(experiments_);
  experiments_->open_store(name);
}

void MainWindow::open_dot(const QString& file) {
  session_.jobs().start(
      Jobs::kDot, tr("reading %1").arg(file), [file](const JobContext&) { return read_dot(file); },
      [this, file](PlannedPtr graph) {
        const int tab = tabs_->indexOf(dot_);
        tabs_->setTabText(tab, QFileInfo(file).fileName());
        tabs_->setTabVisible(tab, true);
        tabs_->setCurrentIndex(tab);
        stack_->setCurrentWidget(tabs_);
        dot_->show_plan(std::move(graph));
        search(search_->text());
        remember(file);
      });
}

void MainWindow::browse() {
  const QString file = QFileDialog::getOpenFileName(
      this, tr("Open a model or plan"), settings_->value("folder").toString(),
      tr("Models, plans, graphs and stores (*.hlo *.txt *.onnx *.gz *.json *.dot *.gv *.db);;All files (*)"));
  if (file.isEmpty()) return;
  settings_->setValue("folder", QFileInfo(file).absolutePath());
  open(file);
}

void MainWindow::remember(const QString& name) {
  QStringList recent = settings_->value("recent").toStringList();
  recent.removeAll(name);
  recent.prepend(name);
  while (recent.size() > kRecentFiles) recent.removeLast();
  settings_->setValue("recent", recent);
  welcome_->set_recent(recent);
}

void MainWindow::show_plan() {
  const PlannedPtr planned = session_.planned();
  for (QAction* action : plan_actions_) action->setEnabled(planned != nullptr);
  stack_->setCurrentWidget(planned ? static_cast<QWidget*>(tabs_) : welcome_);
  for (QDockWidget* dock : findChildren<QDockWidget*>())
    if (!planned) dock->hide();
  if (!planned) return;
  if (!asked_.empty()) remember_answers(*settings_, asked_file_, answers_);
  asked_.clear();
  const bool same_model =
      outline_model_.rowCount() > 0 && graph_->planned() && graph_->planned()->model == planned->model;
  if (!same_model) {
    for (QDockWidget* dock : findChildren<QDockWidget*>()) dock->show();
    findChild<QDockWidget*>("decisions")->raise();
    remember(session_.name());
  }
  // Ops of loop bodies are other computations': only the entry's stay selected.
  const PlannedPtr before = graph_->planned();
  const Selection selected = selection_.current();
  const NodeId op = same_model && &before->part(selected.step) == before.get() ? selected.op : kNoNode;
  quiet_ = true;
  outline_model_.reset(planned);
  outline_->expandToDepth(0);
  quiet_ = false;
  const bool sorted = kernels_->proxy().sortColumn() >= 0;
  fill_kernels(kernels_->model(), *planned, session_.result().get());
  kernels_->fit_columns();
  kernels_->view().setColumnWidth(kShareColumn, 170);
  if (!sorted) kernels_->view().sortByColumn(kTimeColumn, Qt::DescendingOrder);
  graph_->show_plan(planned);
  search(search_->text());
  // The op stays selected from plan to plan; steps and groups are others.
  const int place = op == kNoNode ? -1 : planned->folds->find_op(op);
  selection_.reset(place < 0
                       ? Selection{}
                       : Selection{planned->folds->node(place).step, planned->folds->node(place).group, op});
  setWindowTitle(tr("%1 · Stitchwork").arg(QString::fromStdString(planned->graph().source)));
  if (!same_model) kernels_->view().setFocus();
}

void MainWindow::show_settings() {
  quiet_ = true;
  planner_->setCurrentText(q(session_.settings().planner));
  device_->setCurrentText(q(device(session_.settings().device).id));
  quiet_ = false;
  const PlannedPtr planned = session_.planned();
  if (!planned) return status_->setText(tr("No model is open"));
  const PlanCounts& c = planned->plan->counts;
  status_->setText(
      tr("%1 · %2 on %3 · %4 kernels, %5 library calls, %6 copies · %7 %11 · planned in %8 ms%9%10")
          .arg(q(planned->graph().source), q(planned->plan->planner), q(planned->plan->device))
          .arg(c.memory_kernels)
          .arg(c.library_calls)
          .arg(c.copies + c.memsets)
          .arg(us(planned->plan->predicted_us))
          .arg(planned->plan_ms, 0, 'f', 0)
          .arg(library_text(*planned))
          .arg(planned->plan_file.isEmpty() ? QString() : tr(" · from %1").arg(planned->plan_file))
          .arg(planned->plan->peer == nullptr ? tr("modelled") : tr("simulated")));
}

void MainWindow::show_problem(const Problem& problem) {
  statusBar()->clearMessage();  // of something written before
  problem_list_.push_back(problem);
  fill_problems(problems_->model(), problem_list_);
  problems_->fit_columns(420);
  problems_->select_key(static_cast<int>(problem_list_.size()) - 1);
  if (!session_.planned())
    welcome_->set_problem(tr("%1 did not work").arg(problem.doing), problem.text());
  else
    show_dock("problems");
  status_->setText(problem.text());
}

/// About what is open; `problem` says what is, or what was wrong with the answers.
void MainWindow::ask(const Problem& problem) {
  Answers known = remembered_answers(*settings_, asked_file_);
  for (const auto& [key, answer] : answers_) known[key] = answer;
  auto* dialog = new ModelQuestions(asked_file_, asked_, known,
                                    problem.questions.empty() ? problem.message : QString(), this);
  dialog->setAttribute(Qt::WA_DeleteOnClose);
  connect(dialog, &QDialog::accepted, this, [this, dialog] {
    answers_ = dialog->answers();
    session_.open(session_.name(), dialog->options());
  });
  connect(dialog, &QDialog::rejected, this, [this, problem] {
    asked_.clear();
    show_problem(problem);
  });
  dialog->open();
}

void MainWindow::show_dock(const QString& object_name) {
  auto* dock = findChild<QDockWidget*>(object_name);
  if (!dock) return;
  dock->show();
  dock->raise();
}

int MainWindow::selected_node() const {
  const PlannedPtr planned = session_.planned();
  if (!planned) return -1;
  const Selection& s = selection_.current();
  const FoldTree& tree = *planned->folds;
  if (s.op != kNoNode) {
    const int body = planned->has_step(s.step) ? planned->row(s.step).body : -1;
    for (const int place : tree.places(s.op, body))
      if ((s.step < 0 || tree.node(place).step == s.step) &&
          (s.group < 0 || tree.node(place).group == s.group))
        return place;
    return tree.find_op(s.op, body);
  }
  if (s.step < 0) return -1;
  const int step = tree.find_step(s.step);
  return s.group < 0 || step < 0 ? step : tree.node(step).children[static_cast<std::size_t>(s.group)];
}

void MainWindow::select_node(int node) {
  const PlannedPtr planned = session_.planned();
  if (!planned || node <= 0) return selection_.clear();
  const FoldNode& n = planned->folds->node(node);
  if (n.kind == FoldKind::kLayer || n.kind == FoldKind::kBody) {
    selection_.clear();
    graph_->select_node(node, false);
    return;
  }
  selection_.select({n.step, n.group, n.kind == FoldKind::kOp ? n.op : kNoNode});
}

void MainWindow::follow_selection(const Selection& selection) {
  back_->setEnabled(selection_.can_back());
  forward_->setEnabled(selection_.can_forward());
  kernels_->select_key(selection.step);
  const int node = selected_node();
  graph_->select_node(node, node >= 0 && !from_graph_);
  quiet_ = true;
  if (node >= 0) {
    outline_->setCurrentIndex(outline_model_.index_of(node));
    outline_->scrollTo(outline_model_.index_of(node));
  }
  quiet_ = false;
}

void MainWindow::step_kernel(int by) {
  auto& proxy = kernels_->proxy();
  if (proxy.rowCount() == 0) return;
  const QModelIndex now = kernels_->view().currentIndex();
  const int row = now.isValid() ? std::clamp(now.row() + by, 0, proxy.rowCount() - 1) : 0;
  selection_.select({proxy.index(row, 0).data(kKeyRole).toInt()});
}

void MainWindow::export_to(const QString& file) {
  if (!session_.planned()) return;
  const QString ending = QFileInfo(file).suffix().toLower();
  if (ending == "json") return session_.save_plan(file);
  if (ending == "csv")
    return session_.write(file, [csv = to_csv(kernels_->proxy()).toStdString()] { return csv; });
  session_.write(file, [picture = graph_->picture(), file] { return graph_file(picture, file); });
}

void MainWindow::dragEnterEvent(QDragEnterEvent* event) {
  if (event->mimeData()->hasUrls()) event->acceptProposedAction();
}

void MainWindow::dropEvent(QDropEvent* event) {
  for (const QUrl& url : event->mimeData()->urls())
    if (url.isLocalFile()) {
      event->acceptProposedAction();
      return open(url.toLocalFile());
    }
}

void MainWindow::closeEvent(QCloseEvent* event) {
  if (session_.planned()) {
    settings_->setValue("geometry", saveGeometry());
    settings_->setValue("windows", saveState());
  }
  QMainWindow::closeEvent(event);
}

bool MainWindow::eventFilter(QObject* watched, QEvent* event) {
  if (watched == search_ && event->type() == QEvent::KeyPress) {
    const auto* key = static_cast<QKeyEvent*>(event);
    if (key->key() == Qt::Key_Return || key->key() == Qt::Key_Enter) {
      next_hit(key->modifiers() & Qt::ShiftModifier ? -1 : 1);
      return true;
    }
    if (key->key() == Qt::Key_Escape) {
      search_->clear();
      graph_->setFocus();
      return true;
    }
  }
  return QMainWindow::eventFilter(watched, event);
}

}  // namespace stitchwork::gui
