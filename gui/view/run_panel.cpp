#include "gui/view/run_panel.h"

#include <QApplication>
#include <QCheckBox>
#include <QClipboard>
#include <QComboBox>
#include <QHBoxLayout>
#include <QLabel>
#include <QLineEdit>
#include <QProgressBar>
#include <QPushButton>
#include <QVBoxLayout>

#include "experiments/launch_json.h"
#include "gui/model/tables.h"
#include "gui/view/theme.h"

namespace stitchwork::gui {

RunPanel::RunPanel(Session& session, QWidget* parent) : QWidget(parent), session_(session) {
  auto* layout = new QVBoxLayout(this);
  layout->setContentsMargins(0, 0, 0, 0);
  layout->setSpacing(0);
  auto* header = new QHBoxLayout;
  header->setContentsMargins(6, 4, 6, 4);
  header->setSpacing(6);
  run_ = new QPushButton(tr("Run in the simulator"));
  run_->setObjectName("run");
  run_->setToolTip(tr("Compiles the kernels to PTX and executes them instruction by instruction (F5)"));
  cancel_ = new QPushButton(tr("Cancel"));
  cancel_->setObjectName("cancel_run");
  cancel_->setEnabled(false);
  check_ = new QCheckBox(tr("Check outputs"));
  check_->setChecked(true);
  check_->setToolTip(tr("Compares every output with a reference computed in double precision"));
  race_ = new QCheckBox(tr("Races"));
  race_->setToolTip(tr("Reports accesses of shared and global memory that nothing orders; slower"));
  init_ = new QCheckBox(tr("Uninitialised reads"));
  overlay_ = new QComboBox;
  overlay_->setObjectName("overlay");
  overlay_->setMinimumWidth(200);
  overlay_->setToolTip(tr("One counter, or the time, as colours of the kernels in the graph"));
  progress_ = new QProgressBar;
  progress_->setRange(0, 1000);
  progress_->setMaximumWidth(240);
  progress_->setFormat("%p %");
  progress_->hide();
  for (QWidget* w : std::initializer_list<QWidget*>{run_, cancel_, check_, race_, init_, progress_})
    header->addWidget(w);
  header->addStretch(1);
  header->addWidget(new QLabel(tr("On the graph:")));
  header->addWidget(overlay_);
  layout->addLayout(header);
  verdict_ = new QLabel;
  verdict_->setObjectName("verdict");
  verdict_->setWordWrap(true);
  verdict_->setMargin(6);
  verdict_->setTextInteractionFlags(Qt::TextSelectableByMouse | Qt::TextSelectableByKeyboard);
  verdict_->hide();
  copy_ = new QPushButton(tr("Copy text"));
  copy_->setObjectName("copy_verdict");
  copy_->hide();
  connect(copy_, &QPushButton::clicked, this,
          [this] { QApplication::clipboard()->setText(verdict_->text()); });
  auto* said = new QHBoxLayout;
  said->addWidget(verdict_, 1);
  said->addWidget(copy_, 0, Qt::AlignTop);
  layout->addLayout(said);
  counters_ =
      new TablePage(tr("Run the plan: counters of every kernel appear here. Large models take minutes in the "
                       "simulator; their _tiny variants take a second."));
  layout->addWidget(counters_, 1);

  connect(run_, &QPushButton::clicked, this, &RunPanel::run);
  connect(cancel_, &QPushButton::clicked, this, [this] {
    session_.jobs().cancel(Jobs::kRun);
    say(tr("Cancelled."));
  });
  follow_jobs();
  connect(&session_, &Session::result_changed, this, &RunPanel::show_result);
  connect(overlay_, &QComboBox::activated, this,
          [this] { emit overlay_chosen(overlay_->currentData().toString()); });
  show_result();
}

void RunPanel::follow_jobs() {
  connect(&session_.jobs(), &Jobs::started, this, [this](int lane) {
    if (lane != Jobs::kRun) return;
    progress_->setValue(0);
    progress_->show();
    cancel_->setEnabled(true);
    run_->setEnabled(false);
  });
  connect(&session_.jobs(), &Jobs::progressed, this, [this](int lane, double fraction, const QString& what) {
    if (lane != Jobs::kRun) return;
    progress_->setValue(static_cast<int>(1000 * fraction));
    progress_->setToolTip(what);  // the status bar says it too: it has the room
  });
  connect(&session_.jobs(), &Jobs::finished, this, [this](int lane) {
    if (lane != Jobs::kRun) return;
    progress_->hide();
    cancel_->setEnabled(false);
    run_->setEnabled(session_.planned() != nullptr);
  });
  connect(&session_.jobs(), &Jobs::failed, this, [this](int lane, const Problem& problem) {
    if (lane != Jobs::kRun) return;
    say(problem.text());
  });
}

void RunPanel::run() {
  RunSettings settings;
  settings.check = check_->isChecked();
  settings.race = race_->isChecked();
  settings.init = init_->isChecked();
  session_.run(settings);
}

QString RunPanel::verdict() const { return verdict_->text(); }

void RunPanel::show_result() {
  run_->setEnabled(session_.planned() != nullptr && !session_.jobs().busy(Jobs::kRun));
  overlay_->clear();
  overlay_->addItem(tr("schemes"), QString());
  if (session_.planned()) overlay_->addItem(tr("time"), "time");
  const auto result = session_.result();
  if (!result) {
    counters_->model().clear();
    say({});
    return;
  }
  for (const auto& [counter, value] : sim::counter_list({})) {
    const QString name = QString::fromUtf8(counter.data(), static_cast<qsizetype>(counter.size()));
    overlay_->addItem(name, name);
  }
  fill_counters(counters_->model(), *result);
  counters_->fit_columns(200);
  QString text = tr("%1 in the simulator; compiled in %2 s by %3, run in %4 s.")
                     .arg(us(result->run.total_us))
                     .arg(result->compile_ms / 1000, 0, 'f', 2)
                     .arg(QString::fromStdString(result->executable.compiler))
                     .arg(result->run_ms / 1000, 0, 'f', 2);
  if (result->check)
    text += result->check->ok ? tr(" ✓ Outputs agree with the reference (largest relative error %1).")
                                    .arg(result->check->max_rel_error, 0, 'g', 3)
                              : tr(" ✗ Outputs differ from the reference: %1")
                                    .arg(QString::fromStdString(result->check->message));
  for (const Decision& d : result->executable.checks)
    text += "\n" + QString::fromStdString(d.subject + ": " + d.verdict.why);
  for (const sim::Finding& finding : result->run.findings)
    text += "\n✗ " + QString::fromStdString(stitchwork::to_text(finding));
  say(text);
}

void RunPanel::say(const QString& text) {
  verdict_->setText(text);
  verdict_->setVisible(!text.isEmpty());
  copy_->setVisible(!text.isEmpty());
}

}  // namespace stitchwork::gui
