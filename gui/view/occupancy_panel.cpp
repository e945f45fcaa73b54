#include "gui/view/occupancy_panel.h"

#include <QHBoxLayout>
#include <QLabel>
#include <QSpinBox>
#include <QVBoxLayout>

#include "core/base/arithmetic.h"
#include "gui/model/tables.h"
#include "gui/model/text.h"
#include "occupancy_model/occupancy.h"

namespace stitchwork::gui {

OccupancyPanel::OccupancyPanel(Session& session, SelectionModel& selection, QWidget* parent)
    : QWidget(parent), session_(session), selection_(selection) {
  auto* layout = new QHBoxLayout(this);
  layout->setContentsMargins(0, 0, 0, 0);
  table_ = new TablePage(tr("Open a model: what limits the residency of its kernels appears here."));
  table_->show_filter(false);
  steps_ = new QLabel;
  auto* left = new QVBoxLayout;
  auto* inputs = new QHBoxLayout;
  inputs->setContentsMargins(8, 6, 8, 2);
  const auto spin = [&](const QString& label, int most, int step) {
    auto* box = new QSpinBox;
    box->setRange(0, most);
    box->setSingleStep(step);
    box->setGroupSeparatorShown(true);
    inputs->addWidget(new QLabel(label));
    inputs->addWidget(box);
    connect(box, &QSpinBox::valueChanged, this, &OccupancyPanel::compute);
    return box;
  };
  threads_ = spin(tr("Threads a block"), 1024, 32);
  threads_->setMinimum(1);
  registers_ = spin(tr("Registers a thread"), 255, 8);
  shared_ = spin(tr("Shared bytes a block"), 232448, 1024);
  inputs->addStretch(1);
  left->addLayout(inputs);
  left->addWidget(table_, 1);
  layout->addLayout(left, 3);
  steps_->setObjectName("occupancy_steps");
  steps_->setWordWrap(true);
  steps_->setMargin(10);
  steps_->setAlignment(Qt::AlignTop | Qt::AlignLeft);
  steps_->setTextInteractionFlags(Qt::TextSelectableByMouse);
  layout->addWidget(steps_, 2);
  connect(&selection_, &SelectionModel::changed, this, &OccupancyPanel::follow);
  connect(&session_, &Session::planned_changed, this, &OccupancyPanel::follow);
  follow();
}

namespace {

const char* const kHeading =
    QT_TRANSLATE_NOOP("occupancy", "<b>Assume, relax, apply</b> (AStitch, section 4.5)<br>");

QString assumed_text(const Device& device, int threads, std::int64_t shared) {
  const Occupancy assumed = occupancy(device, threads, kAssumedRegisters, shared);
  return QObject::tr("Assume %1 registers a thread: an SM holds %2 (limited by %3).")
      .arg(kAssumedRegisters)
      .arg(counted(assumed.blocks_per_sm, QObject::tr("block")), QString::fromStdString(assumed.limiter));
}

/// As it would be for any kernel of such blocks.
QString steps_of(const Device& device, int threads, std::int64_t shared) {
  const LaunchBound bound = assume_relax_apply(device, threads, shared);
  return QObject::tr(
             "%1%2<br>2. Relax: that leaves %3 registers a thread.<br>3. Apply: the compiler is bound to "
             "them, and a grid of %4 is resident, so its barriers cannot deadlock.")
      .arg(QObject::tr(kHeading), "1. " + assumed_text(device, threads, shared))
      .arg(bound.register_bound)
      .arg(counted(bound.blocks_per_wave, QObject::tr("block")));
}

/// As the kernel's plan has it.
QString steps_of(const Device& device, const KernelLaunch& launch) {
  QStringList steps{assumed_text(device, launch.block, launch.shared_bytes)};
  if (launch.blocks_per_sm <
      occupancy(device, launch.block, kAssumedRegisters, launch.shared_bytes).blocks_per_sm)
    steps << (ceil_div(launch.grid, device.sms) <= launch.blocks_per_sm
                  ? QObject::tr("Its grid has %1, so that an SM gets %2 at most.")
                        .arg(counted(launch.grid, QObject::tr("block")))
                        .arg(launch.blocks_per_sm)
                  : QObject::tr(
                        "The plan asks for %1 only: the fewer there are, the more registers a thread has "
                        "to keep its row in.")
                        .arg(launch.blocks_per_sm));
  steps << QObject::tr("Relax: %1 an SM leave %2 registers a thread.")
               .arg(counted(launch.blocks_per_sm, QObject::tr("block")))
               .arg(launch.register_bound);
  steps
      << QObject::tr("Apply: __launch_bounds__(%1, %2) binds the compiler to them. ")
                 .arg(launch.block)
                 .arg(launch.blocks_per_sm) +
             (launch.grid_barriers > 0
                  ? QObject::tr(
                        "The grid of %1 is resident as a wave has %2, so its barriers cannot deadlock.")
                  : QObject::tr(
                        "Without grid barriers the grid of %1 need not be resident at once; a wave has %2."))
                 .arg(counted(launch.grid, QObject::tr("block")), grouped(launch.blocks_per_wave));
  QString text = QObject::tr(kHeading);
  for (qsizetype i = 0; i < steps.size(); ++i) text += QStringLiteral("%1. %2<br>").arg(i + 1).arg(steps[i]);
  return text;
}

}  // namespace

QString OccupancyPanel::steps() const { return steps_->text(); }

void OccupancyPanel::follow() {
  const PlannedPtr planned = session_.planned();
  const int step = selection_.current().step;
  int threads = 256, registers = 32, shared = 0;
  kernel_ = planned ? planned->kernel(step) : nullptr;
  if (kernel_ != nullptr) {
    threads = kernel_->launch.block;
    registers = kernel_->launch.register_bound > 0 ? kernel_->launch.register_bound : 32;
    shared = static_cast<int>(kernel_->launch.shared_bytes);
  }
  for (auto& [box, value] :
       {std::pair(threads_, threads), std::pair(registers_, registers), std::pair(shared_, shared)}) {
    const QSignalBlocker quiet(box);
    box->setValue(value);
  }
  compute();
}

void OccupancyPanel::compute() {
  const PlannedPtr planned = session_.planned();
  if (!planned) {
    table_->model().clear();
    steps_->clear();
    return;
  }
  const Device& device = *planned->device;
  const int threads = threads_->value(), registers = std::max(1, registers_->value());
  const std::int64_t shared = shared_->value();
  fill_occupancy(table_->model(), device, threads, registers, shared);
  table_->fit_columns();
  const Occupancy now = occupancy(device, threads, registers, shared);
  QString text =
      tr("<b>Residency</b> of %1<br><br>%2 an SM, %3 a wave; occupancy %4 %, limited by %5.<br><br>")
          .arg(QString::fromStdString(device.name))
          .arg(counted(now.blocks_per_sm, tr("block")))
          .arg(grouped(now.blocks_per_wave))
          .arg(100 * now.warps_ratio, 0, 'f', 0)
          .arg(QString::fromStdString(now.limiter));
  const bool planned_so = kernel_ != nullptr && threads == kernel_->launch.block &&
                          shared == kernel_->launch.shared_bytes &&
                          registers == kernel_->launch.register_bound;
  steps_->setText(text +
                  (planned_so ? steps_of(device, kernel_->launch) : steps_of(device, threads, shared)));
}

}  // namespace stitchwork::gui
