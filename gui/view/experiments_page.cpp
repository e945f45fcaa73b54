#include "gui/view/experiments_page.h"

#include <QApplication>
#include <QClipboard>
#include <QFileDialog>
#include <QFileInfo>
#include <QHBoxLayout>
#include <QLabel>
#include <QPushButton>
#include <QSplitter>
#include <QTabWidget>
#include <QVBoxLayout>
#include <chrono>
#include <cmath>
#include <set>

#include "core/base/error.h"
#include "experiments/metrics.h"
#include "experiments/report.h"
#include "experiments/report_quantities.h"
#include "experiments/store.h"
#include "gui/model/tables.h"
#include "gui/model/text.h"

namespace stitchwork::gui {
namespace {

struct TrialRow {
  const ReportSection* section;
  const ReportTrial* trial;
};

std::vector<TrialRow> rows_of(const ReportData& data) {
  std::vector<TrialRow> rows;
  for (const ReportSection& section : data.sections)
    for (const ReportTrial& trial : section.trials) rows.push_back({&section, &trial});
  return rows;
}

/// For whoever writes to a store that is to be shown; then it is said to be locked.
constexpr std::chrono::seconds kWait(3);

/// -1: less is better.
int direction(const std::string& metric) {
  for (const Metric& m : metrics())
    if (m.name == metric) return m.direction;
  return 0;
}

QString value_text(double v) {
  return v == std::floor(v) && std::abs(v) < 1e15 ? grouped(static_cast<long long>(v))
                                                  : QString::number(v, 'f', 3);
}

}  // namespace

ExperimentsPage::ExperimentsPage(Session& session, QWidget* parent) : QWidget(parent), session_(session) {
  auto* layout = new QVBoxLayout(this);
  layout->setContentsMargins(0, 0, 0, 0);
  layout->setSpacing(0);
  auto* header = new QHBoxLayout;
  header->setContentsMargins(8, 4, 8, 4);
  header->setSpacing(6);
  auto* open = new QPushButton(tr("Open a store …"));
  open->setObjectName("open_store");
  auto* own = new QPushButton(tr("My runs"));
  own->setToolTip(q(default_store_path()));
  file_label_ = new QLabel(tr("Runs that `stitchwork run` and `stitchwork experiment` recorded"));
  file_label_->setTextInteractionFlags(Qt::TextSelectableByMouse | Qt::TextSelectableByKeyboard);
  file_label_->setWordWrap(true);
  copy_ = new QPushButton(tr("Copy text"));
  copy_->setObjectName("copy_store_problem");
  copy_->hide();
  connect(copy_, &QPushButton::clicked, this,
          [this] { QApplication::clipboard()->setText(file_label_->text()); });
  report_ = new QPushButton(tr("Report …"));
  report_->setObjectName("store_report");
  report_->setToolTip(tr("Planners side by side, figures and kernels, as one HTML page, PDF or Markdown"));
  report_->setEnabled(false);
  header->addWidget(open);
  header->addWidget(own);
  header->addWidget(report_);
  header->addWidget(file_label_, 1);
  header->addWidget(copy_);
  layout->addLayout(header);
  auto* split = new QSplitter(Qt::Vertical);
  trials_ = new TablePage(
      tr("Open a store of runs (.db): its trials are listed here. Select two to compare them."));
  trials_->view().setSelectionMode(QAbstractItemView::ExtendedSelection);
  comparison_ = new TablePage(tr("Select two trials above (Ctrl+click) to compare them."));
  split->addWidget(trials_);
  figures_ = new FigurePane(session_);
  below_ = new QTabWidget;
  below_->setObjectName("experiments_below");
  below_->setDocumentMode(true);
  below_->addTab(comparison_, tr("Comparison"));
  below_->addTab(figures_, tr("Figures"));
  split->addWidget(below_);
  split->setStretchFactor(0, 3);
  split->setStretchFactor(1, 2);
  layout->addWidget(split, 1);
  connect(open, &QPushButton::clicked, this, [this] {
    const QString file =
        QFileDialog::getOpenFileName(this, tr("Open a store"), {}, tr("Stores (*.db);;All files (*)"));
    if (!file.isEmpty()) open_store(file);
  });
  connect(report_, &QPushButton::clicked, this, [this] {
    const QString file = QFileDialog::getSaveFileName(
        this, tr("Report of %1").arg(QFileInfo(file_).fileName()), QFileInfo(file_).baseName() + ".html",
        tr("HTML (*.html);;PDF (*.pdf);;Markdown (*.md)"));
    if (!file.isEmpty()) write_report(file);
  });
  connect(own, &QPushButton::clicked, this, [this] { open_store(q(default_store_path())); });
  connect(trials_->view().selectionModel(), &QItemSelectionModel::selectionChanged, this,
          &ExperimentsPage::compare);
  connect(trials_->view().selectionModel(), &QItemSelectionModel::currentRowChanged, this,
          &ExperimentsPage::show_figures);
  connect(&session_.jobs(), &Jobs::failed, this, [this](int lane, const Problem& problem) {
    if (lane != Jobs::kStore) return;
    report_->setEnabled(data_ != nullptr);
    file_label_->setText(problem.text());
    copy_->show();
  });
}

QString ExperimentsPage::message() const { return file_label_->text(); }

void ExperimentsPage::open_store(const QString& file) {
  session_.jobs().start(
      Jobs::kStore, tr("reading %1").arg(file),
      [file](const JobContext&) {
        // Store::open would make a file that is not there.
        if (!QFileInfo::exists(file))
          throw Error(file.toStdString(), 0, 0, "no such store",
                      "`stitchwork run` and `stitchwork experiment run` make one");
        return std::make_shared<const ReportData>(read_report(Store::read(file.toStdString(), kWait), ""));
      },
      [this, file](std::shared_ptr<const ReportData> data) {
        data_ = std::move(data);
        file_ = file;
        show_data();
      });
}

void ExperimentsPage::write_report(const QString& file) {
  session_.write(file, [store = file_.toStdString(), path = file.toStdString()] {
    return report_bytes(Store::read(store, kWait), {}, path);
  });
}

void ExperimentsPage::show_data() {
  const std::vector<TrialRow> rows = rows_of(*data_);
  copy_->hide();
  report_->setEnabled(true);
  file_label_->setText(tr("%1 · %2").arg(file_, counted(static_cast<long long>(rows.size()), tr("trial"))));
  trials_->model().reset({{tr("Model"), {}},
                          {tr("Device"), {}},
                          {tr("Planner"), tr("And what tells it from the others")},
                          {tr("Experiment"), {}},
                          {tr("Backend"), {}},
                          {tr("Time"), tr("Of all steps and the gaps between them, median"), true},
                          {tr("How"), {}},
                          {tr("Kernels"), {}, true},
                          {tr("Result"), {}}},
                         static_cast<int>(rows.size()),
                         [rows, data = data_](int r, int c, int role) -> QVariant {
                           const auto& [section, trial] = rows[static_cast<std::size_t>(r)];
                           if (role == kKeyRole) return r;
                           const std::optional<ReportValue> time = quantity("total time (us)").of(*trial);
                           if (role == kSortRole && c == 5) return time ? time->value : -1;
                           if (role == kSortRole && c == 7)
                             return static_cast<qlonglong>(trial->kernels.size());
                           if (role != Qt::DisplayRole && role != Qt::ToolTipRole) return {};
                           switch (c) {
                             case 0:
                               return q(section->workload);
                             case 1:
                               return q(section->device);
                             case 2:
                               return q(trial->label);
                             case 3:
                               return q(trial->experiment);
                             case 4:
                               return q(trial->backend);
                             case 5:
                               return time ? us(time->value) : QString();
                             case 6:
                               return time ? q(time->method) : QString();
                             case 7:
                               return grouped(static_cast<long long>(trial->kernels.size()));
                             case 8:
                               return trial->ok ? tr("ok") : tr("✗ ") + q(trial->reason);
                             default:
                               return {};
                           }
                         });
  trials_->fit_columns();
  comparison_->model().clear();
  show_figures();
}

/// Of the model and device of the current trial, with all its planners.
void ExperimentsPage::show_figures() {
  std::vector<Figure> figures;
  if (data_ && !data_->sections.empty()) {
    const QVariant key = trials_->current_key();
    const ReportSection& section = key.isValid()
                                       ? *rows_of(*data_)[static_cast<std::size_t>(key.toInt())].section
                                       : data_->sections.front();
    for (const ReportChart& chart : report_charts())
      if (std::optional<Figure> figure = chart_figure(section, chart)) {
        figure->title += ", " + section.workload + " on " + section.device;
        figures.push_back(std::move(*figure));
      }
  }
  figures_->set_figures(std::move(figures));
}

void ExperimentsPage::compare() {
  const QModelIndexList chosen = trials_->view().selectionModel()->selectedRows();
  if (!data_ || chosen.size() != 2) return comparison_->model().clear();
  const std::vector<TrialRow> rows = rows_of(*data_);
  const TrialRow a = rows[static_cast<std::size_t>(chosen[0].data(kKeyRole).toInt())];
  const TrialRow b = rows[static_cast<std::size_t>(chosen[1].data(kKeyRole).toInt())];
  struct Line {
    QString what;
    std::optional<double> a, b;
    int direction = 0;
  };
  std::vector<Line> lines;
  std::set<std::string> names, counters;
  for (const ReportTrial* t : {a.trial, b.trial}) {
    for (const auto& [name, value] : t->samples) names.insert(name);
    for (const ReportKernel& k : t->kernels)
      for (const auto& [name, value] : k.counters) counters.insert(name);
  }
  const auto value = [](const ReportValue* v) { return v ? std::optional(v->value) : std::nullopt; };
  for (const std::string& name : names)
    lines.push_back({q(name), value(a.trial->sample(name)), value(b.trial->sample(name)), direction(name)});
  for (const std::string& name : counters) {
    const auto x = a.trial->total(name), y = b.trial->total(name);
    lines.push_back({q(name), x ? std::optional(x->value) : std::nullopt,
                     y ? std::optional(y->value) : std::nullopt, direction(name)});
  }
  const auto title = [](const QString& letter, const TrialRow& row) {
    return letter + ": " + q(row.section->workload) + ", " + q(row.trial->label);
  };
  const int count = static_cast<int>(lines.size());
  comparison_->model().reset(
      {{tr("Metric"), {}}, {title("A", a), {}, true}, {title("B", b), {}, true}, {tr("Change"), {}, true}},
      count, [lines = std::move(lines)](int r, int c, int role) -> QVariant {
        const Line& line = lines[static_cast<std::size_t>(r)];
        if (role == kKeyRole) return r;
        if (role != Qt::DisplayRole) return {};
        if (c == 0) return line.what;
        if (c == 1) return line.a ? value_text(*line.a) : QString("–");
        if (c == 2) return line.b ? value_text(*line.b) : QString("–");
        if (!line.a || !line.b) return {};
        if (*line.a == *line.b) return tr("same");
        QString text = *line.b > *line.a ? "+" : "−";
        text += *line.a != 0
                    ? QString::number(100 * std::abs(*line.b - *line.a) / std::abs(*line.a), 'f', 1) + " %"
                    : value_text(std::abs(*line.b));
        if (line.direction != 0)
          text += (*line.b > *line.a) == (line.direction > 0) ? tr(" better") : tr(" worse");
        return text;
      });
  comparison_->fit_columns();
}

}  // namespace stitchwork::gui
