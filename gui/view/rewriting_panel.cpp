#include "gui/view/rewriting_panel.h"

#include <QHBoxLayout>
#include <QPushButton>
#include <QVBoxLayout>

#include "gui/view/planning_panels.h"

namespace stitchwork::gui {

RewritingPanel::RewritingPanel(Session& session, SelectionModel& selection, QWidget* parent)
    : QWidget(parent), session_(session), selection_(selection) {
  auto* layout = new QVBoxLayout(this);
  layout->setContentsMargins(0, 0, 0, 0);
  table_ = new TablePage(tr(
      "The plan is of the model's own ops. The planners tvm+fission, korch and fission rewrite the model "
      "first; their steps appear here, one by one, and can be forbidden. A rewriting is asked for at an op: "
      "Overrides, “Override selection”."));
  forbid_ = new QPushButton(tr("Forbid here"));
  forbid_->setObjectName("forbid_rewrite");
  forbid_->setToolTip(tr("An override: this rule is not taken at this op. The plan is made again at once."));
  table_->header().addWidget(forbid_);
  layout->addWidget(table_);
  connect(table_, &TablePage::key_selected, this, [this](const QVariant& key) { select(key.toInt()); });
  connect(forbid_, &QPushButton::clicked, this, [this] {
    const QVariant key = table_->current_key();
    if (!key.isValid()) return;
    const Rewriting& step = steps_[static_cast<std::size_t>(key.toInt())];
    session_.add_edit({EditKind::kForbidRewrite, {step.at.front()}, step.rule, 0});
  });
  connect(&session_, &Session::planned_changed, this, &RewritingPanel::follow);
  follow();
}

void RewritingPanel::follow() {
  const PlannedPtr planned = session_.planned();
  steps_ = planned ? rewritings(*planned) : std::vector<Rewriting>{};
  fill_rewritings(table_->model(), steps_);
  table_->fit_columns(420);
  forbid_->setEnabled(!steps_.empty() && session_.honours(EditKind::kForbidRewrite));
}

void RewritingPanel::select(int step) {
  const PlannedPtr planned = session_.planned();
  if (!planned || step < 0 || step >= static_cast<int>(steps_.size())) return;
  const NodeId op = steps_[static_cast<std::size_t>(step)].now;
  if (op != kNoNode) selection_.select(selection_of(*planned, planned->entry().node(op).name));
}

}  // namespace stitchwork::gui
