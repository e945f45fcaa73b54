#include "gui/view/selection_panel.h"

#include <QGuiApplication>
#include <QPushButton>
#include <QScrollBar>
#include <QUrl>
#include <QVBoxLayout>
#include <algorithm>
#include <cmath>

#include "analysis/plan/assemble.h"
#include "core/hlo/hlo_text.h"
#include "gui/model/tables.h"
#include "gui/view/theme.h"
#include "occupancy_model/timing_text.h"

namespace stitchwork::gui {
namespace {

QString as_html(std::string_view text) {
  return QString::fromUtf8(text.data(), static_cast<qsizetype>(text.size())).toHtmlEscaped();
}

QString row(const QString& what, const QString& value) {
  return value.isEmpty()
             ? QString()
             : QString("<tr><td style='padding-right:10px'>%1</td><td>%2</td></tr>").arg(what, value);
}

constexpr int kMostListed = 60;

/// What each unit of the device does of what it could do in the kernel's time, a bar each.
QString units_html(const KernelTime& time) {
  const Theme& t = theme(QGuiApplication::palette());
  constexpr int kCells = 24;  // of a full bar
  QString rows;
  for (std::size_t u = 0; u < kUnits.size(); ++u) {
    const double share = unit_share(time, u);
    if (time.busy_us[u] <= 0) continue;
    const int cells = static_cast<int>(std::lround(kCells * share));
    rows += QString(
                "<tr><td style='padding-right:10px'>%1</td><td align='right'>%2 %</td>"
                "<td style='padding-left:8px'><span style='background-color:%3'>%4</span></td></tr>")
                .arg(as_html(kUnits[u].name))
                .arg(100 * share, 0, 'f', share < 0.1 ? 1 : 0)
                .arg(t.accent.name(), QString("&nbsp;").repeated(cells));
  }
  return rows.isEmpty()
             ? QString()
             : QString("<h4>%1</h4><p style='color:%2'>%3</p><table>%4</table>")
                   .arg(QObject::tr("Speed of light"), t.muted.name(),
                        QObject::tr("Share of its time that each unit needs at its peak, modelled"), rows);
}

bool shows_op(const PlannedModel& planned, const Selection& s) {
  return s.op != kNoNode && s.op < planned.computation(s.step).size();
}

}  // namespace

SelectionPanel::SelectionPanel(Session& session, SelectionModel& selection, QWidget* parent)
    : QWidget(parent), session_(session), selection_(selection) {
  auto* layout = new QVBoxLayout(this);
  layout->setContentsMargins(0, 0, 0, 0);
  layout->setSpacing(0);
  browser_ = new QTextBrowser;
  browser_->setObjectName("selection");
  browser_->setOpenLinks(false);
  browser_->setFrameShape(QFrame::NoFrame);
  browser_->document()->setDocumentMargin(10);
  browser_->setAccessibleName(tr("Selection"));
  alternatives_ = new QPushButton(tr("Try alternatives"));
  alternatives_->setObjectName("try_alternatives");
  alternatives_->setToolTip(
      tr("Plans the model again with each override that would change where this op is, and shows what it "
         "would gain"));
  layout->addWidget(browser_, 1);
  layout->addWidget(alternatives_);
  connect(browser_, &QTextBrowser::anchorClicked, this, &SelectionPanel::follow);
  connect(alternatives_, &QPushButton::clicked, this, &SelectionPanel::try_alternatives);
  connect(&selection_, &SelectionModel::changed, this, &SelectionPanel::show_selection);
  connect(&session_, &Session::planned_changed, this, &SelectionPanel::show_selection);
  show_selection();
}

void SelectionPanel::show_selection() {
  explanation_.reset();
  trials_.clear();
  tried_ = false;
  session_.jobs().cancel(Jobs::kExplain);
  const PlannedPtr planned = session_.planned();
  const Selection s = selection_.current();
  if (planned && shows_op(*planned, s)) explain_op(s);
  render();
  browser_->verticalScrollBar()->setValue(0);
}

void SelectionPanel::explain_op(const Selection& selection) {
  const PlannedPtr planned = session_.planned();
  session_.jobs().start(
      Jobs::kExplain, tr("explaining"),
      [planned, selection](const JobContext&) {
        const PlannedModel& part = planned->part(selection.step);
        return explain(part.graph(), *part.plan, part.entry().node(selection.op).name);
      },
      [this](Explanation explanation) {
        explanation_ = std::move(explanation);
        render();
      });
}

void SelectionPanel::try_alternatives() {
  if (!explanation_) return;
  const PlannedPtr planned = session_.planned();
  alternatives_->setEnabled(false);
  alternatives_->setText(tr("Planning with each …"));
  session_.jobs().start(
      Jobs::kExplain, tr("trying alternatives"),
      [planned, explanation = *explanation_](const JobContext&) {
        return try_overrides(planned->graph(), *planned->plan, explanation, kTriedOverrides,
                             planned->library.get());
      },
      [this](std::vector<WhatIf> trials) {
        trials_ = std::move(trials);
        tried_ = true;
        render();
      });
}

void SelectionPanel::follow(const QUrl& link) {
  const PlannedPtr planned = session_.planned();
  if (!planned) return;
  const QString value = link.path();
  if (link.scheme() == "op") {
    const NodeId op = value.toInt();
    const int node = planned->folds->find_op(op, body());
    selection_.select({node < 0 ? -1 : planned->folds->node(node).step,
                       node < 0 ? -1 : planned->folds->node(node).group, op});
  } else if (link.scheme() == "step") {
    selection_.select({value.toInt()});
  } else if (link.scheme() == "group") {
    selection_.select({value.section('.', 0, 0).toInt(), value.section('.', 1, 1).toInt()});
  } else if (link.scheme() == "apply") {
    const int index = value.toInt();
    if (index >= 0 && index < static_cast<int>(trials_.size()))
      session_.add_edit(trials_[static_cast<std::size_t>(index)].edit);
  }
}

void SelectionPanel::render() {
  const PlannedPtr planned = session_.planned();
  const Selection s = selection_.current();
  const Theme& t = theme(palette());
  const bool op = planned && shows_op(*planned, s);
  // Overrides are of the entry's ops.
  alternatives_->setVisible(op && &planned->part(s.step) == planned.get());
  alternatives_->setEnabled(explanation_.has_value() && !tried_);
  alternatives_->setText(tr("Try alternatives"));
  QString html;
  if (!planned)
    html = tr("<p>Nothing is open.</p>");
  else if (op)
    html = op_html(*planned, s) + why_html();
  else if (planned->has_step(s.step))
    html = s.group >= 0 ? group_html(*planned, s.step, s.group) : step_html(*planned, s.step);
  else
    html = tr("<p style='color:%1'>Select a kernel, a group or an op: in the list, the graph or the outline. "
              "Its "
              "attributes, its scheme, <i>why</i> it is there and what was refused appear here.</p>")
               .arg(t.muted.name());
  browser_->setHtml(html);
}

QString SelectionPanel::badge_html(Scheme scheme) const {
  const QColor fill = colour(scheme);
  return QString("<span style='background-color:%1; color:%2; font-weight:bold'>&nbsp;%3&nbsp;</span>")
      .arg(fill.name(), ink_on(fill).name(), QChar(badge(scheme)));
}

/// Of the computation that the selection is in.
QString SelectionPanel::op_link(NodeId op) const {
  return QString("<a href='op:%1'>%2</a>").arg(op).arg(as_html(shown().node(op).name));
}

QString SelectionPanel::op_link(const std::string& name) const {
  const NodeId op = shown().find(name);
  return op == kNoNode ? as_html(name) : op_link(op);
}

int SelectionPanel::body() const {
  const PlannedPtr planned = session_.planned();
  const int step = selection_.current().step;
  return planned->has_step(step) ? planned->row(step).body : -1;
}

const Computation& SelectionPanel::shown() const {
  return session_.planned()->computation(selection_.current().step);
}

QString SelectionPanel::step_html(const PlannedModel& planned, int index) const {
  const StepRow& step = planned.row(index);
  const Theme& t = theme(palette());
  QString html =
      QString("<h3 style='margin-bottom:2px'>%1 %2</h3>").arg(as_html(step.id), as_html(step.name));
  const PeerPlan* peer = planned.plan->peer.get();
  const QString method = peer != nullptr && step.kernel >= 0 ? tr("simulated") : tr("modelled");
  html += tr("<p style='color:%1'>%2 · <b>%3</b> %5, %4 % of the plan</p>")
              .arg(t.muted.name(),
                   step.kernel < 0   ? as_html(name(step.kind))
                   : peer == nullptr ? tr("generated kernel")
                                     : tr("kernel of %1").arg(as_html(peer->title)),
                   us(step.predicted_us), QString("%4"), method)
              .arg(100 * step.share, 0, 'f', 1);
  if (step.runs != 1) html += tr("<p>Runs %1 times; the time is of one.</p>").arg(step.runs, 0, 'f', 0);
  if (step.kind == StepKind::kControl) {
    const auto trips = planned.plan_step(index).trips;
    html += tr("<p>%1%2. The host decides; what it runs is within it in the graph and the outline, planned "
               "like a model of its own.</p><p>%3</p>")
                .arg(step.name == "while" ? tr("A loop") : tr("A branch"),
                     trips                  ? tr(" of %1").arg(counted(*trips, "trip"))
                     : step.name == "while" ? tr(" whose trips are not known: its time is of one")
                                            : QString(),
                     op_link(planned.plan_step(index).nodes.at(0)));
    return html;
  }
  if (step.kernel < 0) {
    html +=
        tr("<p>Not generated: a library or the device does it. Times of calls are a roofline of the "
           "device.</p><p>");
    for (NodeId op : planned.plan_step(index).nodes) html += op_link(op) + " ";
    return html + "</p>";
  }
  const KernelPlan& kernel = *planned.kernel(index);
  html += "<table>";
  html += row(tr("Launch"), tr("%1 of %2 threads").arg(counted(step.grid, tr("block")), grouped(step.block)));
  html += row(tr("Residency"), step.blocks_per_sm ? tr("%1 an SM, %2 a wave")
                                                        .arg(counted(step.blocks_per_sm, tr("block")))
                                                        .arg(grouped(kernel.launch.blocks_per_wave))
                                                  : QString());
  html += row(tr("Registers"),
              step.register_bound ? tr("at most %1 a thread").arg(step.register_bound) : QString());
  html += row(tr("Grid barriers"), step.barriers ? QString::number(step.barriers) : tr("none"));
  html += row(tr("Shared memory"),
              step.shared_bytes ? tr("%1 a block").arg(bytes_text(static_cast<double>(step.shared_bytes)))
                                : QString());
  html += row(tr("Scratch"),
              step.scratch_bytes ? bytes_text(static_cast<double>(step.scratch_bytes)) : QString());
  html += row(tr("DRAM"), tr("%1, modelled").arg(bytes_text(static_cast<double>(step.dram_bytes))));
  html += row(tr("Limited by"), as_html(limited_by(step.time)));
  html +=
      "</table>" + units_html(step.time) + "<h4 style='margin-top:12px'>" + tr("Schemes") + "</h4><table>";
  for (std::size_t s = 0; s < step.schemes.size(); ++s)
    if (step.schemes[s] > 0)
      html +=
          QString("<tr><td>%1</td><td style='padding-left:6px'>%2 <span style='color:%3'>%4</span></td></tr>")
              .arg(badge_html(static_cast<Scheme>(s)), counted(step.schemes[s], "op"), t.muted.name(),
                   as_html(meaning(static_cast<Scheme>(s))));
  html += "</table><h4>" + tr("Groups") + "</h4>";
  for (std::size_t g = 0; g < kernel.groups.size(); ++g) {
    const Group& group = kernel.groups[g];
    html += QString("<p>★ <a href='group:%1.%2'>%3</a>, %4<br><span style='color:%5'>%6</span></p>")
                .arg(index)
                .arg(g)
                .arg(as_html(shown().node(group.dominant).name),
                     counted(static_cast<int>(group.ops.size()), "op"), t.muted.name(),
                     as_html(to_text(group.mapping, group.deal)));
    if (g + 1 == kMostListed) break;
  }
  html += "<h4>" + tr("Writes") + "</h4><p>";
  for (NodeId op : kernel.outputs) html += op_link(op) + " ";
  html += "</p><h4>" + tr("Reads") + "</h4><p>";
  for (NodeId op : kernel_inputs(planned.part(index).graph(), kernel)) html += op_link(op) + " ";
  return html + "</p>";
}

QString SelectionPanel::group_html(const PlannedModel& planned, int index, int g) const {
  const StepRow& step = planned.row(index);
  if (step.kernel < 0) return step_html(planned, index);
  const KernelPlan& kernel = *planned.kernel(index);
  if (g >= static_cast<int>(kernel.groups.size())) return step_html(planned, index);
  const Group& group = kernel.groups[static_cast<std::size_t>(g)];
  QString html =
      QString("<h3 style='margin-bottom:2px'>★ %1</h3><p>").arg(as_html(shown().node(group.dominant).name));
  html += tr("group of <a href='step:%1'>%2 %3</a></p>").arg(index).arg(as_html(step.id), as_html(step.name));
  html +=
      tr("<p>The dominant op decides how threads are dealt to elements; the ops of the group follow it.</p>");
  html += "<table>" + row(tr("Mapping"), as_html(to_text(group.mapping, group.deal))) + "</table><h4>" +
          tr("Ops") + "</h4><table>";
  for (NodeId op : group.ops) {
    const auto scheme = kernel.schemes.find(op);
    html +=
        QString(
            "<tr><td>%1</td><td style='padding-left:6px'>%2</td><td style='padding-left:8px'>%3</td></tr>")
            .arg(scheme == kernel.schemes.end() ? QString() : badge_html(scheme->second), op_link(op),
                 as_html(to_text(shown().node(op).shape)));
  }
  return html + "</table>";
}

QString SelectionPanel::op_html(const PlannedModel& planned, const Selection& s) const {
  const Theme& t = theme(palette());
  const PlannedModel& part = planned.part(s.step);
  const Node& node = part.entry().node(s.op);
  QString html = QString("<h3 style='margin-bottom:2px'>%1</h3>").arg(as_html(node.name));
  html += QString("<p style='color:%1'>%2 %3</p>")
              .arg(t.muted.name(), as_html(def(node.op).name), as_html(to_text(node.shape)));
  html += "<table>";
  QStringList scope;
  for (const std::string& part : scopes(node.metadata.op_name)) scope << as_html(part);
  html += row(tr("Layer"), scope.join(" / "));
  html += row(tr("Line"),
              node.line ? tr("%1 of %2").arg(node.line).arg(as_html(planned.graph().source)) : QString());
  for (const auto& [key, value] : node.metadata.other)
    if (key == "source_file") html += row(tr("Source"), as_html(value));
  QString operands;
  for (NodeId operand : node.operands) operands += op_link(operand) + " ";
  html += row(tr("Operands"), operands);
  if (const UpdatedArray* array = node.attrs.updated.get())
    html += row(tr("Written to"), op_link(array->op) + " " + as_html(to_text(array->shape)));
  if (const std::string place = place_text(part.entry(), node); !place.empty())
    html += row(tr("Lies in"), as_html(place));
  html += "</table>";
  html += QString("<p><code>%1</code></p>").arg(as_html(to_text(part.graph(), part.entry(), node)).left(600));
  return html;
}

QString SelectionPanel::placement_html(const OpPlacement& at) const {
  const Theme& t = theme(palette());
  QString html;
  int step = -1;
  for (const StepRow& r : session_.planned()->steps)
    if (r.body == body() && r.id == at.kernel_id) step = r.step;
  html += QString("<p>%1 <b>%2</b>, %3 in <a href='step:%4'>%5 %6</a>, level %7%8")
              .arg(badge_html(at.scheme), as_html(name(at.scheme)), as_html(at.role))
              .arg(step)
              .arg(as_html(at.kernel_id), as_html(at.kernel_name))
              .arg(at.level)
              .arg(at.output ? tr(", an output") : QString());
  if (at.in_phase) html += tr("; %1 in its own phase").arg(as_html(name(*at.in_phase)));
  html += QString("<br><span style='color:%1'>%2</span>").arg(t.muted.name(), as_html(meaning(at.scheme)));
  if (at.role != "dominant" && !at.dominant.empty()) html += tr("<br>follows ★ %1").arg(op_link(at.dominant));
  if (!at.mapping.empty()) html += "<br>" + as_html(at.mapping);
  html += "</p>";
  return html;
}

QString SelectionPanel::trials_html() const {
  const Theme& t = theme(palette());
  QString html;
  html += "<h4>" + tr("Alternatives, planned") + "</h4>";
  if (trials_.empty()) html += tr("<p>This planner honours no override that would change it.</p>");
  for (std::size_t i = 0; i < trials_.size(); ++i) {
    const WhatIf& w = trials_[i];
    const double delta = w.predicted_us - session_.planned()->plan->predicted_us;
    html += "<p>" + as_html(to_text(w.edit));
    if (w.admitted)
      html += QString("<br><span style='color:%1'>%2 (%3%4)</span> <a href='apply:%5'>%6</a>")
                  .arg((delta <= 0 ? t.better : t.worse).name(), us(w.predicted_us), delta >= 0 ? "+" : "−",
                       us(std::abs(delta)))
                  .arg(i)
                  .arg(tr("apply"));
    else
      html += QString("<br><span style='color:%1'>✗ %2</span>").arg(t.worse.name(), as_html(w.why));
    html += "</p>";
  }
  return html;
}

QString SelectionPanel::why_html() const {
  const Theme& t = theme(palette());
  if (!explanation_) return tr("<p style='color:%1'>Looking up why …</p>").arg(t.muted.name());
  const Explanation& e = *explanation_;
  QString html;
  const auto decision = [&](const Decision& d) {
    return QString("<span style='color:%1'>%2</span> <b>%3</b> %4")
        .arg((d.verdict.ok ? t.better : t.worse).name(), d.verdict.ok ? tr("✓ taken") : tr("✗ refused"),
             as_html(d.verdict.rule), as_html(d.verdict.why));
  };
  if (!e.step.empty()) html += QString("<p>%1</p>").arg(as_html(e.step));
  if (!e.placements.empty())
    html += "<h4>" +
            (e.placements.size() > 1 ? tr("Computed in %1 kernels").arg(e.placements.size()) : tr("Where")) +
            "</h4>";
  for (const OpPlacement& at : e.placements) html += placement_html(at);
  if (tried_) html += trials_html();
  if (!e.neighbours.empty()) html += "<h4>" + tr("Rejected alternatives") + "</h4>";
  for (const Neighbour& n : e.neighbours) {
    html += QString("<p>%1 %2: %3 → %4")
                .arg(as_html(n.relation), as_html(n.where), op_link(n.producer), op_link(n.consumer));
    if (n.refusal) html += "<br>" + decision(*n.refusal);
    if (!n.needs.empty()) html += "<br><i>" + tr("To change it: %1").arg(as_html(n.needs)) + "</i>";
    html += "</p>";
  }
  for (const Refusal& r : e.refusals) {
    html += "<p>" + decision(r.decision);
    if (!r.needs.empty()) html += "<br><i>" + tr("To change it: %1").arg(as_html(r.needs)) + "</i>";
    html += "</p>";
  }
  for (const OpPlacement& at : e.placements) {
    if (at.forms.empty()) continue;
    html += "<h4>" + tr("Forms of %1 that were tried (modelled)").arg(as_html(at.kernel_id)) + "</h4>";
    for (const Decision& form : at.forms)
      html += "<p>" + as_html(form.object) + "<br>" + decision(form) + "</p>";
  }
  if (!e.decisions.empty()) html += "<h4>" + tr("Why: decisions that name it") + "</h4>";
  int listed = 0;
  for (const Decision& d : e.decisions) {
    if (++listed > kMostListed) {
      html += tr("<p>and %1 more: the Decisions panel has them</p>")
                  .arg(static_cast<int>(e.decisions.size()) - kMostListed);
      break;
    }
    html += QString("<p><span style='color:%1'>%2</span> %3%4<br>%5</p>")
                .arg(t.muted.name(), as_html(d.step), op_link(d.subject),
                     d.object.empty() ? QString() : " → " + op_link(d.object), decision(d));
  }
  return html;
}

}  // namespace stitchwork::gui
