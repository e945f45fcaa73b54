#include "gui/view/diff_page.h"

#include <QComboBox>
#include <QHBoxLayout>
#include <QHeaderView>
#include <QLabel>
#include <QPushButton>
#include <QSplitter>
#include <QVBoxLayout>

#include "analysis/planners/planner.h"

namespace stitchwork::gui {
namespace {

/// The op by which a place in one plan is found in another: what the kernel writes last, the dominant, the
/// op.
NodeId representative(const PlannedModel& planned, int node) {
  const FoldNode& n = planned.folds->node(node);
  if (n.body >= 0) return kNoNode;  // compared as a whole, with the loop or branch that runs it
  if (n.op != kNoNode) return n.op;
  if (n.step < 0) return kNoNode;
  const KernelPlan* kernel = planned.kernel(n.step);
  if (kernel == nullptr) {
    const PlanStep& step = planned.plan_step(n.step);
    return step.nodes.empty() ? kNoNode : step.nodes.back();
  }
  if (kernel->ops.empty()) return kNoNode;  // a compiler's, of which nothing is known
  return kernel->outputs.empty() ? kernel->ops.back() : kernel->outputs.back();
}

QString title(const QString& letter, const PlannedModel& planned) {
  return QString("<b>%1</b>: %2 · %3 kernels · %4 µs modelled")
      .arg(letter, QString::fromStdString(planned.plan->planner))
      .arg(planned.plan->counts.memory_kernels)
      .arg(planned.plan->predicted_us, 0, 'f', 1);
}

}  // namespace

DiffPage::DiffPage(Session& session, SelectionModel& selection, QWidget* parent)
    : QWidget(parent), session_(session), selection_(selection) {
  auto* layout = new QVBoxLayout(this);
  layout->setContentsMargins(0, 0, 0, 0);
  layout->setSpacing(0);
  auto* header = new QHBoxLayout;
  header->setContentsMargins(8, 4, 8, 4);
  header->setSpacing(6);
  header->addWidget(new QLabel(tr("Compare the plan with")));
  planner_ = new QComboBox;
  planner_->setObjectName("diff_planner");
  for (const Planner& row : planners())
    planner_->addItem(QString::fromUtf8(row.name.data(), static_cast<qsizetype>(row.name.size())));
  planner_->setCurrentText("xla");
  header->addWidget(planner_);
  auto* go = new QPushButton(tr("Compare"));
  go->setObjectName("diff_go");
  header->addWidget(go);
  auto* keep = new QPushButton(tr("Set as baseline"));
  keep->setObjectName("diff_baseline");
  keep->setToolTip(tr("Later plans (other knobs, overrides) are compared with the plan as it is now"));
  header->addWidget(keep);
  header->addStretch(1);
  layout->addLayout(header);

  auto* split = new QSplitter(Qt::Vertical);
  auto* panes = new QSplitter(Qt::Horizontal);
  const auto pane = [&](QLabel*& label, GraphView*& graph) {
    auto* side = new QWidget;
    auto* column = new QVBoxLayout(side);
    column->setContentsMargins(0, 0, 0, 0);
    column->setSpacing(0);
    label = new QLabel;
    label->setMargin(5);
    graph = new GraphView;
    column->addWidget(label);
    column->addWidget(graph, 1);
    panes->addWidget(side);
  };
  pane(title_a_, graph_a_);
  pane(title_b_, graph_b_);
  split->addWidget(panes);
  auto* lists = new QSplitter(Qt::Horizontal);
  totals_ = new TablePage(tr("Totals of both plans appear here."));
  totals_->show_filter(false);
  changes_ =
      new TablePage(tr("Press Compare: what the two plans do differently is listed here, with the reason."));
  lists->addWidget(totals_);
  lists->addWidget(changes_);
  lists->setStretchFactor(0, 2);
  lists->setStretchFactor(1, 5);
  lists->setSizes({400, 700});
  split->addWidget(lists);
  split->setStretchFactor(0, 3);
  split->setStretchFactor(1, 2);
  layout->addWidget(split, 1);

  connect(go, &QPushButton::clicked, this, [this] { compare_with(planner_->currentText()); });
  connect(keep, &QPushButton::clicked, this, &DiffPage::set_baseline);
  connect(graph_a_, &GraphView::node_clicked, this, [this](int node) { clicked(*graph_a_, node); });
  connect(graph_b_, &GraphView::node_clicked, this, [this](int node) { clicked(*graph_b_, node); });
  connect(changes_, &TablePage::key_selected, this, [this](const QVariant& key) {
    if (comparison_)
      select_op(comparison_->b->model->graph.entry_computation().find(key.toString().toStdString()));
  });
  connect(&session_, &Session::planned_changed, this, &DiffPage::follow_plan);
}

void DiffPage::set_baseline() { baseline_ = session_.planned(); }

void DiffPage::compare() {
  const PlannedPtr b = session_.planned();
  if (!b) return;
  if (!baseline_ || baseline_ == b) return compare_with(planner_->currentText());
  session_.jobs().start(
      Jobs::kCompare, tr("comparing with the baseline"),
      [a = baseline_, b](const JobContext&) {
        return PlanComparison{a, b, diff(b->graph(), *a->plan, *b->plan)};
      },
      [this](PlanComparison comparison) { present(std::move(comparison)); });
}

void DiffPage::compare_with(const QString& planner) {
  const PlannedPtr b = session_.planned();
  if (!b) return;
  planner_->setCurrentText(planner);
  PlanSettings settings{planner.toStdString(), b->settings.device, {}, {}};
  session_.jobs().start(
      Jobs::kCompare, tr("comparing with %1").arg(planner),
      [b, settings](const JobContext& job) {
        PlannedPtr a = plan_model(b->model, settings);
        job.progress(0.6, tr("comparing"));
        return PlanComparison{a, b, diff(b->graph(), *a->plan, *b->plan)};
      },
      [this](PlanComparison comparison) { present(std::move(comparison)); });
}

/// Another plan of the same model is compared with what was compared before; of another model, with nothing.
void DiffPage::follow_plan() {
  const PlannedPtr planned = session_.planned();
  if (baseline_ && planned && baseline_->model != planned->model) baseline_.reset();
  if (!comparison_) return;
  if (planned && comparison_->a->model == planned->model) {
    session_.jobs().start(
        Jobs::kCompare, tr("comparing"),
        [a = comparison_->a, b = planned](const JobContext&) {
          return PlanComparison{a, b, diff(b->graph(), *a->plan, *b->plan)};
        },
        [this](PlanComparison comparison) { present(std::move(comparison)); });
    return;
  }
  comparison_.reset();
  graph_a_->show_plan(nullptr);
  graph_b_->show_plan(nullptr);
  title_a_->clear();
  title_b_->clear();
  changes_->model().clear();
  totals_->model().clear();
}

void DiffPage::present(PlanComparison comparison) {
  comparison_ = std::move(comparison);
  title_a_->setText(title("A", *comparison_->a));
  title_b_->setText(title("B", *comparison_->b));
  graph_a_->show_plan(comparison_->a);
  graph_b_->show_plan(comparison_->b);
  fill_diff(changes_->model(), *comparison_);
  fill_totals(totals_->model(), *comparison_);
  changes_->fit_columns(260);
  totals_->fit_columns();
}

void DiffPage::clicked(const GraphView& view, int node) {
  if (node < 0 || !comparison_) return;
  const NodeId op = representative(*view.planned(), node);
  const std::vector<NodeId> of = op == kNoNode ? std::vector<NodeId>{} : model_ops(*view.planned()->plan, op);
  if (!of.empty()) select_op(of.back());
}

/// The model's op in both graphs: itself where it is drawn, else what holds it.
void DiffPage::select_op(NodeId op) {
  if (!comparison_ || op == kNoNode) return;
  for (GraphView* view : {graph_a_, graph_b_}) {
    const FoldTree& tree = *view->planned()->folds;
    const NodeId own = planned_op(*view->planned()->plan, op);
    const int place = own == kNoNode ? -1 : tree.find_op(own);
    if (place < 0) {
      view->select_node(-1, false);
      continue;
    }
    view->select_node(view->folding()->drawn(place), true);
  }
  const PlannedModel& b = *comparison_->b;
  const NodeId own = planned_op(*b.plan, op);
  const int place = own == kNoNode ? -1 : b.folds->find_op(own);
  if (place >= 0) selection_.select({b.folds->node(place).step, b.folds->node(place).group, own});
}

}  // namespace stitchwork::gui
