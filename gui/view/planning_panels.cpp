#include "gui/view/planning_panels.h"

#include <QHBoxLayout>
#include <QInputDialog>
#include <QLabel>
#include <QLineEdit>
#include <QMenu>
#include <QPushButton>
#include <QSplitter>
#include <QTextBrowser>
#include <QVBoxLayout>
#include <algorithm>
#include <cmath>

#include "analysis/explain/remedy.h"
#include "core/substitute/rule.h"
#include "core/substitute/view.h"
#include "gui/model/tables.h"
#include "gui/model/text.h"
#include "gui/view/theme.h"

namespace stitchwork::gui {
namespace {

QVBoxLayout* tight(QWidget* widget) {
  auto* layout = new QVBoxLayout(widget);
  layout->setContentsMargins(0, 0, 0, 0);
  layout->setSpacing(0);
  return layout;
}

/// Rules that hold at the model's op and are not taken everywhere in any case.
std::vector<std::string> rules_at(const Graph& model, const std::string& name) {
  const NodeId op = model.entry_computation().find(name);
  std::vector<std::string> result;
  if (op == kNoNode) return result;
  const rewriting::View view(model, model.entry);
  for (const rewriting::Rule& rule : rewriting::rules())
    if (!rule.tidy && rule.find(view, op)) result.emplace_back(rule.name);
  return result;
}

}  // namespace

Selection selection_of(const PlannedModel& planned, const std::string& name) {
  const NodeId op = planned.entry().find(name);
  const int place = op == kNoNode ? -1 : planned.folds->find_op(op);
  if (place < 0) return {-1, -1, op};
  return {planned.folds->node(place).step, planned.folds->node(place).group, op};
}

DecisionPanel::DecisionPanel(Session& session, SelectionModel& selection, QWidget* parent)
    : QWidget(parent), session_(session), selection_(selection) {
  auto* layout = tight(this);
  auto* split = new QSplitter(Qt::Horizontal);
  table_ = new TablePage(
      tr("What the planner considered, took and refused appears here, decision by decision. A plan "
         "that was loaded from a file has none; planners without choices record none."));
  auto* back = new QPushButton(tr("◂ k"));
  auto* next = new QPushButton(tr("j ▸"));
  back->setToolTip(tr("Previous decision (k)"));
  next->setToolTip(tr("Next decision (j)"));
  for (QPushButton* button : {back, next}) {
    button->setMaximumWidth(54);
    table_->header().addWidget(button);
  }
  frame_ = new QTextBrowser;
  frame_->setFrameShape(QFrame::NoFrame);
  frame_->document()->setDocumentMargin(10);
  frame_->setPlaceholderText(tr("Step with j and k: what was considered, the answer, and why appear here."));
  split->addWidget(table_);
  split->addWidget(frame_);
  split->setStretchFactor(0, 3);
  split->setStretchFactor(1, 1);
  layout->addWidget(split);
  connect(back, &QPushButton::clicked, this, [this] { step(-1); });
  connect(next, &QPushButton::clicked, this, [this] { step(1); });
  connect(table_, &TablePage::key_selected, this, [this](const QVariant& key) { show_frame(key.toInt()); });
  connect(&session_, &Session::planned_changed, this, [this] {
    frame_->clear();
    if (session_.planned())
      fill_decisions(table_->model(), *session_.planned());
    else
      table_->model().clear();
    table_->fit_columns(240);
  });
}

QString DecisionPanel::frame() const { return frame_->toPlainText(); }

void DecisionPanel::step(int by) {
  auto& proxy = table_->proxy();
  if (proxy.rowCount() == 0) return;
  const QModelIndex now = table_->view().currentIndex();
  const int row = now.isValid() ? std::clamp(now.row() + by, 0, proxy.rowCount() - 1) : 0;
  table_->view().setCurrentIndex(proxy.index(row, 0));
  table_->view().scrollTo(proxy.index(row, 0));
}

void DecisionPanel::show_frame(int index) {
  const PlannedPtr planned = session_.planned();
  if (!planned || index < 0 || index >= static_cast<int>(planned->plan->decisions.size())) return;
  const Decision& d = planned->plan->decisions[static_cast<std::size_t>(index)];
  const Theme& t = theme(palette());
  const QString needs = q(remedy(*planned->device, d)).toHtmlEscaped();
  frame_->setHtml(
      tr("<p style='color:%1'>Decision %2 of %3 · pass <b>%4</b></p><h3>%5%6</h3><p "
         "style='color:%7'><b>%8</b></p>"
         "<p>%9</p>")
          .arg(t.muted.name())
          .arg(index + 1)
          .arg(planned->plan->decisions.size())
          .arg(q(d.step).toHtmlEscaped(), q(d.subject).toHtmlEscaped(),
               d.object.empty() ? QString() : " → " + q(d.object).toHtmlEscaped(),
               (d.verdict.ok ? t.better : t.worse).name(),
               (d.verdict.ok ? tr("✓ taken by ") : tr("✗ refused by ")) + q(d.verdict.rule).toHtmlEscaped(),
               q(d.verdict.why).toHtmlEscaped()) +
      (needs.isEmpty() ? QString() : tr("<p><i>To change it: %1</i></p>").arg(needs)));
  selection_.select(selection_of(*planned, d.subject));
}

AdvicePanel::AdvicePanel(Session& session, SelectionModel& selection, QWidget* parent)
    : QWidget(parent), session_(session) {
  auto* layout = tight(this);
  table_ = new TablePage(
      tr("Ask for advice: the costliest values between kernels are listed, each with the override that "
         "would keep it on the chip, planned and compared."));
  ask_ = new QPushButton(tr("Ask for advice"));
  ask_->setObjectName("advise");
  apply_ = new QPushButton(tr("Apply override"));
  apply_->setObjectName("apply_advice");
  apply_->setEnabled(false);
  table_->header().addWidget(ask_);
  table_->header().addWidget(apply_);
  layout->addWidget(table_);
  connect(ask_, &QPushButton::clicked, this, &AdvicePanel::ask);
  connect(table_, &TablePage::key_selected, this, [this, &selection](const QVariant& key) {
    const Advice& a = advice_[static_cast<std::size_t>(key.toInt())];
    apply_->setEnabled(a.after_us.has_value());
    if (session_.planned()) selection.select(selection_of(*session_.planned(), a.producer));
  });
  const auto apply = [this](const QVariant& key) {
    if (!key.isValid()) return;
    const Advice a = advice_[static_cast<std::size_t>(key.toInt())];
    if (a.after_us) session_.add_edit(a.edit);
  };
  connect(table_, &TablePage::key_activated, this, apply);
  connect(apply_, &QPushButton::clicked, this, [this, apply] { apply(table_->current_key()); });
  connect(&session_, &Session::planned_changed, this, [this] {
    session_.jobs().cancel(Jobs::kAdvise);
    advice_.clear();
    table_->model().clear();
    apply_->setEnabled(false);
    ask_->setEnabled(session_.planned() && session_.planned()->plan_file.isEmpty());
  });
  ask_->setEnabled(false);
}

void AdvicePanel::ask() {
  const PlannedPtr planned = session_.planned();
  if (!planned) return;
  session_.jobs().start(
      Jobs::kAdvise, tr("looking for advice"),
      [planned](const JobContext&) {
        return advise(planned->model->graph, *planned->device, planned->settings.planner,
                      planned->options(false));
      },
      [this](std::vector<Advice> advice) {
        advice_ = std::move(advice);
        fill_advice(table_->model(), advice_);
        table_->fit_columns(260);
      });
}

OverridePanel::OverridePanel(Session& session, SelectionModel& selection, QWidget* parent)
    : QWidget(parent), session_(session), selection_(selection) {
  auto* layout = tight(this);
  table_ = new TablePage(
      tr("No overrides. Select an op and add one: force a scheme, forbid or force a merge, split a "
         "kernel, set its block size. The plan is made again at once."));
  add_ = new QPushButton(tr("Override selection ▾"));
  add_->setObjectName("add_override");
  remove_ = new QPushButton(tr("Remove"));
  remove_->setObjectName("remove_override");
  save_ = new QPushButton(tr("Save …"));
  save_->setToolTip(tr("As the file that `stitchwork plan --override` reads"));
  auto* load = new QPushButton(tr("Load …"));
  delta_ = new QLabel;
  delta_->setObjectName("delta");
  table_->header().addWidget(delta_);
  for (QPushButton* button : {add_, remove_, load, save_}) table_->header().addWidget(button);
  layout->addWidget(table_);
  connect(add_, &QPushButton::clicked, this, &OverridePanel::offer);
  connect(remove_, &QPushButton::clicked, this, [this] {
    if (const QVariant key = table_->current_key(); key.isValid()) session_.remove_edit(key.toInt());
  });
  connect(save_, &QPushButton::clicked, this, &OverridePanel::save);
  connect(load, &QPushButton::clicked, this, &OverridePanel::load);
  connect(&session_, &Session::settings_changed, this, &OverridePanel::follow);
  connect(&session_, &Session::planned_changed, this, &OverridePanel::follow);
  connect(&selection_, &SelectionModel::changed, this, &OverridePanel::follow);
  follow();
}

void OverridePanel::follow() {
  fill_edits(table_->model(), session_.settings().edits);
  table_->fit_columns(600);
  const bool any = !session_.settings().edits.empty();
  remove_->setEnabled(any);
  save_->setEnabled(any);
  // Overrides are of the entry's ops.
  const PlannedPtr planned = session_.planned();
  const Selection& s = selection_.current();
  add_->setEnabled(planned && s.op != kNoNode && &planned->part(s.step) == planned.get());
  const auto before = session_.previous_us();
  if (!before || !session_.planned()) return delta_->clear();
  const double now = session_.planned()->plan->predicted_us, by = now - *before;
  const Theme& t = theme(palette());
  delta_->setText(tr("predicted %1 → %2 <b style='color:%3'>%4%5</b>")
                      .arg(us(*before), us(now), (by <= 0 ? t.better : t.worse).name(), by < 0 ? "−" : "+",
                           us(std::abs(by))));
}

/// What can be asked of the selected op under this planner.
void OverridePanel::offer() {
  const PlannedPtr planned = session_.planned();
  const NodeId op = selection_.current().op;
  if (!planned || op == kNoNode) return;
  const std::string name = planned->entry().node(op).name;
  QMenu menu(this);
  menu.setObjectName("override_menu");
  const auto add = [&](const QString& text, const Edit& edit) {
    QAction* action = menu.addAction(text);
    action->setEnabled(session_.honours(edit.kind));
    if (!action->isEnabled())
      action->setText(text + tr(" (not honoured by %1)").arg(q(session_.settings().planner)));
    connect(action, &QAction::triggered, this, [this, edit] { session_.add_edit(edit); });
  };
  for (const Scheme scheme : {Scheme::kLocal, Scheme::kRegional, Scheme::kGlobal})
    add(tr("Scheme %1").arg(q(stitchwork::name(scheme))),
        {EditKind::kScheme, {name}, std::string(stitchwork::name(scheme)), 0});
  menu.addSeparator();
  add(tr("Split the kernel behind it"), {EditKind::kSplit, {name}, {}, 0});
  for (const NodeId operand : planned->entry().node(op).operands)
    if (planned->folds->find_op(operand) >= 0) {
      const std::string& other = planned->entry().node(operand).name;
      add(tr("Forbid to share a kernel with %1").arg(q(other)),
          {EditKind::kForbidMerge, {other, name}, {}, 0});
      add(tr("Merge with %1").arg(q(other)), {EditKind::kMerge, {other, name}, {}, 0});
    }
  menu.addSeparator();
  for (const int threads : {128, 256, 512, 1024})
    add(tr("Blocks of %1 threads").arg(threads), {EditKind::kBlock, {name}, {}, threads});
  for (const int blocks : {1, 2, 4})
    add(tr("At most %1 an SM").arg(counted(blocks, "block")), {EditKind::kResidency, {name}, {}, blocks});
  if (session_.honours(EditKind::kRewrite)) {
    menu.addSeparator();
    for (const std::string& rule : rules_at(planned->model->graph, name)) {
      add(tr("Rewrite by %1").arg(q(rule)), {EditKind::kRewrite, {name}, rule, 0});
      add(tr("Forbid %1 here").arg(q(rule)), {EditKind::kForbidRewrite, {name}, rule, 0});
    }
  }
  menu.exec(add_->mapToGlobal(QPoint(0, add_->height())));
}

}  // namespace stitchwork::gui
