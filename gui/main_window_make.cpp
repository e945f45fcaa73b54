// The pages, panels and bars of the window, and who tells whom.
#include <QApplication>
#include <QClipboard>
#include <QComboBox>
#include <QDockWidget>
#include <QFileDialog>
#include <QHeaderView>
#include <QLabel>
#include <QLineEdit>
#include <QProgressBar>
#include <QPushButton>
#include <QStackedWidget>
#include <QStatusBar>
#include <QTabWidget>
#include <QToolBar>
#include <QTreeView>
#include <QVBoxLayout>

#include "gui/main_window.h"
#include "gui/model/tables.h"
#include "gui/model/text.h"
#include "gui/view/delegates.h"

namespace stitchwork::gui {
void MainWindow::make_pages() {
  stack_ = new QStackedWidget;
  setCentralWidget(stack_);
  welcome_ = new WelcomePage;
  stack_->addWidget(welcome_);
  tabs_ = new QTabWidget;
  tabs_->setDocumentMode(true);
  stack_->addWidget(tabs_);

  kernels_ = new TablePage(tr("No kernels."));
  kernels_->setObjectName("kernels");
  kernels_->view().setItemDelegateForColumn(kShareColumn, new ShareDelegate(this));
  kernels_->view().setItemDelegateForColumn(5, new BadgeDelegate(this));
  kernels_->filter().setPlaceholderText(tr("Filter kernels"));
  tabs_->addTab(kernels_, tr("Kernels"));

  auto* page = new QWidget;
  auto* column = new QVBoxLayout(page);
  column->setContentsMargins(0, 0, 0, 0);
  column->setSpacing(0);
  graph_ = new GraphView;
  graph_->setObjectName("graph");
  graph_summary_ = new QLabel;
  graph_summary_->setMargin(4);
  column->addWidget(graph_summary_);
  column->addWidget(graph_, 1);
  tabs_->addTab(page, tr("Graph"));

  source_ = new SourceView(session_, selection_);
  tabs_->addTab(source_, tr("Source"));
  diff_ = new DiffPage(session_, selection_);
  tabs_->addTab(diff_, tr("Diff"));
  experiments_ = new ExperimentsPage(session_);
  tabs_->addTab(experiments_, tr("Experiments"));
  dot_ = new GraphView;
  dot_->setObjectName("dot");
  tabs_->setTabVisible(tabs_->addTab(dot_, tr("DOT")), false);  // until there is one
  connect(dot_, &GraphView::node_clicked, this, [this](int node) { dot_->select_node(node, false); });
  connect(tabs_, &QTabWidget::currentChanged, this, [this] {
    if (searched().planned() && !search_->text().isEmpty()) search(search_->text());
  });

  connect(welcome_, &WelcomePage::open, this, &MainWindow::open);
  connect(welcome_, &WelcomePage::browse, this, &MainWindow::browse);
  connect(kernels_, &TablePage::key_selected, this,
          [this](const QVariant& key) { selection_.select({key.toInt()}); });
  connect(kernels_, &TablePage::key_activated, this, [this](const QVariant& key) {
    selection_.select({key.toInt()});
    tabs_->setCurrentIndex(1);
    graph_->select_node(selected_node(), true);
    graph_->centre_selection(false);
    graph_->setFocus();
  });
  connect(graph_, &GraphView::node_clicked, this, [this](int node) {
    from_graph_ = true;  // what is clicked stays where it is
    select_node(node);
    from_graph_ = false;
  });
  connect(graph_, &GraphView::summary_changed, graph_summary_, &QLabel::setText);
}

void MainWindow::make_docks() {
  const auto dock = [this](const QString& title, const QString& name, QWidget* widget,
                           Qt::DockWidgetArea area) {
    auto* d = new QDockWidget(title);
    d->setObjectName(name);
    d->setWidget(widget);
    addDockWidget(area, d);
    return d;
  };
  outline_ = new QTreeView;
  outline_->setModel(&outline_model_);
  outline_->setUniformRowHeights(true);
  outline_->setIndentation(12);
  outline_->setAccessibleName(tr("Outline"));
  outline_->header()->setStretchLastSection(false);
  outline_->header()->setSectionResizeMode(0, QHeaderView::Stretch);
  outline_->header()->setSectionResizeMode(1, QHeaderView::ResizeToContents);
  outline_->header()->hide();
  dock(tr("Outline"), "outline", outline_, Qt::LeftDockWidgetArea);
  connect(outline_->selectionModel(), &QItemSelectionModel::currentChanged, this,
          [this](const QModelIndex& at) {
            if (at.isValid() && !quiet_) select_node(outline_model_.node(at));
          });
  panel_ = new SelectionPanel(session_, selection_);
  dock(tr("Selection"), "selection_dock", panel_, Qt::RightDockWidgetArea);
  decisions_ = new DecisionPanel(session_, selection_);
  overrides_ = new OverridePanel(session_, selection_);
  advice_ = new AdvicePanel(session_, selection_);
  rewriting_ = new RewritingPanel(session_, selection_);
  run_ = new RunPanel(session_);
  occupancy_ = new OccupancyPanel(session_, selection_);
  problems_ = new TablePage(tr("No problems."));
  auto* copy = new QPushButton(tr("Copy text"));
  copy->setObjectName("copy_problem_row");
  problems_->header().addWidget(copy);
  connect(copy, &QPushButton::clicked, this, [this] {
    const QVariant key = problems_->current_key();
    if (key.isValid())
      QApplication::clipboard()->setText(problem_list_[static_cast<std::size_t>(key.toInt())].text());
  });
  QDockWidget* first = dock(tr("Decisions"), "decisions", decisions_, Qt::BottomDockWidgetArea);
  QDockWidget* last = first;
  const auto stack = [&](const QString& title, const QString& name, QWidget* widget) {
    QDockWidget* d = dock(title, name, widget, Qt::BottomDockWidgetArea);
    tabifyDockWidget(last, d);
    last = d;
  };
  stack(tr("Overrides"), "overrides", overrides_);
  stack(tr("Advice"), "advice", advice_);
  stack(tr("Rewriting"), "rewriting", rewriting_);
  stack(tr("Run"), "run_dock", run_);
  profile_ = new ProfilePanel(session_, selection_);
  stack(tr("Profile"), "profile", profile_);
  stack(tr("Occupancy"), "occupancy", occupancy_);
  timeline_ = new TimelineView(session_, selection_);
  stack(tr("Timeline"), "timeline", timeline_);
  stack(tr("Problems"), "problems", problems_);
  first->raise();
  setTabPosition(Qt::BottomDockWidgetArea, QTabWidget::North);
  setCorner(Qt::BottomRightCorner, Qt::RightDockWidgetArea);
  resizeDocks({findChild<QDockWidget*>("outline"), findChild<QDockWidget*>("selection_dock")}, {310, 370},
              Qt::Horizontal);
  resizeDocks({first}, {270}, Qt::Vertical);
  connect(overrides_, &OverridePanel::save, this, [this] {
    const QString file =
        QFileDialog::getSaveFileName(this, tr("Save overrides"), "overrides.json", tr("Overrides (*.json)"));
    if (!file.isEmpty()) session_.save_overrides(file);
  });
  connect(overrides_, &OverridePanel::load, this, [this] {
    const QString file =
        QFileDialog::getOpenFileName(this, tr("Load overrides"), {}, tr("Overrides (*.json)"));
    if (!file.isEmpty()) session_.load_overrides(file);
  });
  connect(run_, &RunPanel::overlay_chosen, this, &MainWindow::show_overlay);
}

void MainWindow::make_toolbar() {
  QToolBar* bar = addToolBar(tr("Planning"));
  bar->setObjectName("toolbar");
  bar->setMovable(false);
  planner_ = new QComboBox;
  planner_->setObjectName("planner");
  for (const Planner& row : planners()) {
    planner_->addItem(q(row.name));
    planner_->setItemData(planner_->count() - 1, q(row.summary), Qt::ToolTipRole);
  }
  device_ = new QComboBox;
  device_->setObjectName("device");
  for (const Device& d : devices()) {
    device_->addItem(q(d.id));
    device_->setItemData(device_->count() - 1, q(d.name), Qt::ToolTipRole);
  }
  bar->addWidget(new QLabel(tr(" Planner ")));
  bar->addWidget(planner_);
  bar->addWidget(new QLabel(tr("  Device ")));
  bar->addWidget(device_);
  connect(planner_, &QComboBox::textActivated, this,
          [this](const QString& name) { session_.set_planner(name); });
  connect(device_, &QComboBox::textActivated, this, [this](const QString& id) { session_.set_device(id); });
  auto* space = new QWidget;
  space->setSizePolicy(QSizePolicy::Expanding, QSizePolicy::Preferred);
  bar->addWidget(space);
  search_ = new QLineEdit;
  search_->setObjectName("search");
  search_->setPlaceholderText(tr("Find: words, /regex/, kernel: op: scheme: dtype:"));
  search_->setClearButtonEnabled(true);
  search_->setMinimumWidth(330);
  search_->setMaximumWidth(430);
  search_->installEventFilter(this);
  search_count_ = new QLabel;
  search_count_->setObjectName("search_count");
  search_count_->setMinimumWidth(64);
  search_count_->setMargin(4);
  bar->addWidget(search_);
  bar->addWidget(search_count_);
  connect(search_, &QLineEdit::textChanged, this, &MainWindow::search);
  status_ = new QLabel;
  status_->setObjectName("status");
  busy_ = new QProgressBar;
  busy_->setMaximumWidth(200);
  busy_->setTextVisible(false);
  busy_->hide();
  statusBar()->addWidget(status_, 1);
  stop_ = new QPushButton(tr("Cancel"));
  stop_->setObjectName("cancel_work");
  stop_->setToolTip(tr("Ends what is being read, planned, run or compared; what is shown stays"));
  stop_->hide();
  connect(stop_, &QPushButton::clicked, &session_, &Session::cancel);
  statusBar()->addPermanentWidget(busy_);
  statusBar()->addPermanentWidget(stop_);
}

}  // namespace stitchwork::gui
