#include "gui/view/profile_panel.h"

#include <QFileDialog>
#include <QHBoxLayout>
#include <QLabel>
#include <QPushButton>
#include <QScrollArea>
#include <QVBoxLayout>

#include "experiments/profile/profile_text.h"
#include "gui/model/tables.h"
#include "gui/model/text.h"

namespace stitchwork::gui {

ProfilePanel::ProfilePanel(Session& session, SelectionModel& selection, QWidget* parent)
    : QWidget(parent), session_(session) {
  auto* layout = new QVBoxLayout(this);
  layout->setContentsMargins(0, 0, 0, 0);
  layout->setSpacing(0);
  table_ = new TablePage(tr(
      "Join what Nsight Systems (.sqlite), Nsight Compute (.csv), JAX or PyTorch (.json, .json.gz) recorded "
      "of this model: each launch appears here with what it stands for, its time beside the modelled one."));
  open_ = new QPushButton(tr("Join profile …"));
  open_->setObjectName("join_profile");
  table_->header().addWidget(open_);
  said_ = new QLabel;
  said_->setObjectName("profile_said");
  said_->setWordWrap(true);
  said_->setMargin(6);
  said_->setAlignment(Qt::AlignTop);
  said_->setTextInteractionFlags(Qt::TextSelectableByMouse | Qt::TextSelectableByKeyboard);
  auto* scroll = new QScrollArea;
  scroll->setWidget(said_);
  scroll->setWidgetResizable(true);
  scroll->setFrameShape(QFrame::NoFrame);
  auto* both = new QHBoxLayout;
  both->addWidget(table_, 3);
  both->addWidget(scroll, 1);
  layout->addLayout(both);
  connect(open_, &QPushButton::clicked, this, &ProfilePanel::browse);
  connect(table_, &TablePage::key_selected, this, [&selection](const QVariant& key) {
    if (key.toInt() >= 0) selection.select({key.toInt()});
  });
  connect(&session_, &Session::profile_changed, this, &ProfilePanel::follow);
  follow();
}

QString ProfilePanel::said() const { return said_->text(); }

void ProfilePanel::browse() {
  const QString file =
      QFileDialog::getOpenFileName(this, tr("Join a profile of %1").arg(session_.name()), {},
                                   tr("Profiles (*.sqlite *.csv *.json *.json.gz);;All files (*)"));
  if (!file.isEmpty()) session_.join_profile(file);
}

void ProfilePanel::follow() {
  const PlannedPtr planned = session_.planned();
  open_->setEnabled(planned != nullptr);
  if (!planned || !session_.profiled()) {
    table_->model().clear();
    said_->clear();
    return;
  }
  fill_launches(table_->model(), *planned, *session_.profiled());
  table_->fit_columns(300);
  said_->setText(q(profile_summary(*session_.profile(), *session_.profiled()) +
                   profile_findings(*session_.profiled(), *planned->plan)));
}

}  // namespace stitchwork::gui
