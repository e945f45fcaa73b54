#include "gui/view/occupancy_panel.h"

#include <QHBoxLayout>
#include <QLabel>
#include <QSpinBox>
#include <QVBoxLayout>

#include "gui/model/tables.h"
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

QString OccupancyPanel::steps() const { return steps_->text(); }

void OccupancyPanel::follow() {
  const PlannedPtr planned = session_.planned();
  const int step = selection_.current().step;
  int threads = 256, registers = 32, shared = 0;
  if (planned && planned->has_step(step) && planned->row(step).kernel >= 0) {
    const StepRow& row = planned->row(step);
    threads = row.block;
    registers = row.register_bound > 0 ? row.register_bound : 32;
    shared = static_cast<int>(row.shared_bytes);
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
  const Occupancy assumed = occupancy(device, threads, 32, shared);
  const LaunchBound bound = assume_relax_apply(device, threads, shared);
  steps_->setText(
      tr("<b>%1</b> of %2<br><br>%3 blocks an SM, %4 a wave; occupancy %5 %, limited by %6.<br><br>"
         "<b>Assume, relax, apply</b> (AStitch, section 4.5)<br>1. Assume 32 registers a thread: an SM holds "
         "%7 blocks "
         "(limited by %8).<br>2. Relax: those blocks leave %9 registers a thread.<br>3. Apply: the compiler "
         "is bound to "
         "them, and a grid of %10 blocks is resident, so its barriers cannot deadlock.")
          .arg(tr("Residency"), QString::fromStdString(device.name))
          .arg(now.blocks_per_sm)
          .arg(grouped(now.blocks_per_wave))
          .arg(100 * now.warps_ratio, 0, 'f', 0)
          .arg(QString::fromStdString(now.limiter))
          .arg(assumed.blocks_per_sm)
          .arg(QString::fromStdString(assumed.limiter))
          .arg(bound.register_bound)
          .arg(grouped(bound.blocks_per_wave)));
}

}  // namespace stitchwork::gui
