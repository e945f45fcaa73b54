#include "gui/model/tables.h"

#include <fmt/ranges.h>

#include <QCoreApplication>
#include <algorithm>

#include "core/base/format.h"
#include "core/substitute/rule.h"
#include "gui/model/text.h"
#include "occupancy_model/occupancy_limits.h"

namespace stitchwork::gui {
namespace {

QString tables_tr(const char* text) { return QCoreApplication::translate("tables", text); }
/// A number as a cell: its text, and itself to sort by.
QVariant number(double value, const QString& text, int role) {
  if (role == Qt::DisplayRole) return text;
  if (role == kSortRole) return value;
  return {};
}

QVariant count(std::int64_t value, int role) {
  return number(static_cast<double>(value), value ? grouped(value) : QString(), role);
}

QVariant text(const QString& value, int role) {
  return role == Qt::DisplayRole || role == Qt::ToolTipRole ? QVariant(value) : QVariant();
}

QString badges(const StepRow& row) {
  QString letters;
  for (std::size_t s = 0; s < row.schemes.size(); ++s)
    if (row.schemes[s] > 0) letters += badge(static_cast<Scheme>(s));
  return letters;
}

QString schemes_in_words(const StepRow& row) {
  QStringList lines;
  for (std::size_t s = 0; s < row.schemes.size(); ++s)
    if (row.schemes[s] > 0)
      lines << tables_tr("%1 · %2: %3 ops, %4")
                   .arg(QChar(badge(static_cast<Scheme>(s))), q(name(static_cast<Scheme>(s))))
                   .arg(row.schemes[s])
                   .arg(q(meaning(static_cast<Scheme>(s))));
  return lines.join('\n');
}

/// Whether the run's kernels are those of the plan shown: compilation may have planned again
/// (codegen/settle.h).
bool same_kernels(const PlannedModel& planned, const TrialResult& run) {
  return run.executable.plan.edits == planned.plan->edits &&
         run.executable.plan.kernels.size() == planned.plan->kernels.size();
}

std::vector<Column> kernel_columns() {
  return {
      {tables_tr("Kernel"),
       tables_tr("A kernel of the plan, or a call of a library (dot, convolution), a copy, a memset")},
      {tables_tr("Name"),
       tables_tr("After the last op that it writes to memory; what loops and branches run says where, and "
                 "how often it runs")},
      {tables_tr("Time"), tables_tr("Of one run; modelled from the plan, or simulated where it was run"),
       true},
      {tables_tr("Share"),
       tables_tr(
           "Of the time of all steps, with all its runs (a loop contains what it runs); the bar is relative "
           "to "
           "the longest"),
       true},
      {tables_tr("How"),
       tables_tr("How the time was obtained: modelled, simulated or measured. It never loses that label.")},
      {tables_tr("Schemes"),
       tables_tr("How the values of its ops travel: I independent, L local (registers), R regional (shared "
                 "memory), S resident (kept across a grid barrier), G global (device memory), C recomputed")},
      {tables_tr("Ops"), tables_tr("Instructions of the model that it evaluates"), true},
      {tables_tr("Groups"), tables_tr("Parts with a thread mapping of their own, each around a dominant op"),
       true},
      {tables_tr("Grid"), tables_tr("Thread blocks of the launch"), true},
      {tables_tr("Block"), tables_tr("Threads a block"), true},
      {tables_tr("Barriers"),
       tables_tr("Grid barriers: the whole grid waits, all its blocks must be resident"), true},
      {tables_tr("Shared"), tables_tr("Shared memory a block"), true},
      {tables_tr("DRAM"), tables_tr("Bytes read and written in device memory, modelled"), true},
      {tables_tr("Registers"),
       tables_tr("Bound on the registers of a thread (assume-relax-apply); none: the compiler's choice"),
       true},
  };
}

}  // namespace

QString counted(long long count, const QString& what) {
  return grouped(count) + ' ' + what + (count == 1 ? "" : what.endsWith('x') ? "es" : "s");
}
QString us(double microseconds) { return QString::number(microseconds, 'f', 2) + tables_tr(" µs"); }
QString grouped(long long value) { return q(with_commas(value)); }
QString bytes_text(double bytes) { return q(human_bytes(bytes)); }

void fill_kernels(RecordModel& model, const PlannedModel& planned, const TrialResult* run) {
  struct Time {
    double us = 0;
    QString method;
  };
  std::vector<Time> times;
  double total = 0, longest = 0;
  const bool executed =
      run && same_kernels(planned, *run) && run->run.steps.size() == planned.plan->steps.size();
  for (std::size_t s = 0; s < planned.steps.size(); ++s) {
    const bool compiled = planned.plan->peer != nullptr && planned.steps[s].kernel >= 0;
    Time time{planned.steps[s].predicted_us, compiled ? tables_tr("simulated") : tables_tr("modelled")};
    if (executed && planned.steps[s].body < 0)
      time = {run->run.steps[s].time_us, q(name(run->run.steps[s].method))};
    if (planned.steps[s].body < 0) total += time.us;
    longest = std::max(longest, time.us * planned.steps[s].runs);
    times.push_back(time);
  }
  auto cell = [rows = planned.steps, times, total, longest](int r, int c, int role) -> QVariant {
    const StepRow& row = rows[static_cast<std::size_t>(r)];
    const Time& time = times[static_cast<std::size_t>(r)];
    if (role == kKeyRole) return row.step;
    switch (c) {
      case 0:
        return role == kSortRole ? QVariant(r) : text(q(row.id), role);
      case 1:
        return text(q(row.name) + (row.body < 0 ? QString() : tables_tr(" in %1").arg(q(row.within))) +
                        (row.runs == 1 ? QString() : QString(" × %1").arg(row.runs, 0, 'f', 0)),
                    role);
      case kTimeColumn:
        return number(time.us, us(time.us), role);
      case kShareColumn: {
        const double share = total > 0 ? std::min(1.0, time.us * row.runs / total) : 0;
        if (role == kShareRole) return share;
        if (role == kBarRole) return longest > 0 ? time.us * row.runs / longest : 0;
        return number(share, QString::number(100 * share, 'f', 1) + " %", role);
      }
      case 4:
        return text(time.method, role);
      case 5:
        if (role == kBadgesRole || role == kSortRole) return badges(row);
        if (role == Qt::DisplayRole) return row.kind == StepKind::kKernel ? badges(row) : q(name(row.kind));
        if (role == Qt::ToolTipRole) return schemes_in_words(row);
        return {};
      case 6:
        return count(row.ops, role);
      case 7:
        return count(row.groups, role);
      case 8:
        return count(row.grid, role);
      case 9:
        return count(row.block, role);
      case 10:
        return count(row.barriers, role);
      case 11:
        return number(static_cast<double>(row.shared_bytes),
                      row.shared_bytes ? bytes_text(static_cast<double>(row.shared_bytes)) : QString(), role);
      case 12:
        return number(static_cast<double>(row.dram_bytes),
                      row.dram_bytes ? bytes_text(static_cast<double>(row.dram_bytes)) : QString(), role);
      case 13:
        return count(row.register_bound, role);
      default:
        return {};
    }
  };
  model.reset(kernel_columns(), static_cast<int>(planned.steps.size()), std::move(cell));
}

void fill_decisions(RecordModel& model, const PlannedModel& planned) {
  std::vector<Column> columns = {
      {tables_tr("#"), tables_tr("Decisions in the order the planner took them"), true},
      {tables_tr("Pass"), tables_tr("The planner's pass")},
      {tables_tr("Answer"), tables_tr("Taken, or refused with the rule that says why")},
      {tables_tr("Op"), tables_tr("What was decided about")},
      {tables_tr("With"), tables_tr("The other op of a pair: producer into consumer, candidates merged")},
      {tables_tr("Rule"),
       tables_tr("Its short name; the planners' pages in the documentation cite their sources")},
      {tables_tr("Why"), tables_tr("With the numbers that decided")},
  };
  auto cell = [plan = planned.plan](int r, int c, int role) -> QVariant {
    const Decision& d = plan->decisions[static_cast<std::size_t>(r)];
    if (role == kKeyRole) return r;
    switch (c) {
      case 0:
        return number(r + 1, QString::number(r + 1), role);
      case 1:
        return text(q(d.step), role);
      case 2:
        return text(d.verdict.ok ? tables_tr("✓ taken") : tables_tr("✗ refused"), role);
      case 3:
        return text(q(d.subject), role);
      case 4:
        return text(q(d.object), role);
      case 5:
        return text(q(d.verdict.rule), role);
      case 6:
        return text(q(d.verdict.why), role);
      default:
        return {};
    }
  };
  model.reset(std::move(columns), static_cast<int>(planned.plan->decisions.size()), std::move(cell));
}

void fill_counters(RecordModel& model, const TrialResult& run) {
  std::vector<Column> columns = {
      {tables_tr("Kernel"), {}}, {tables_tr("Name"), {}}, {tables_tr("Time"), tables_tr("Simulated"), true}};
  for (const auto& [counter, value] : sim::counter_list({}))
    columns.push_back({q(counter), tables_tr("docs/simulator.md defines each counter"), true});
  struct Row {
    QString id, name;
    double us = 0;
    std::vector<double> values;
  };
  std::vector<Row> rows;
  for (std::size_t k = 0; k < run.run.kernels.size(); ++k) {
    const KernelPlan& kernel = run.executable.plan.kernels[k];
    Row row{q(kernel.id), q(kernel.name), run.run.kernels[k].time_us, {}};
    for (const auto& [counter, value] : sim::counter_list(run.run.kernels[k].counters))
      row.values.push_back(value);
    rows.push_back(std::move(row));
  }
  const int count = static_cast<int>(rows.size());
  auto cell = [rows = std::move(rows)](int r, int c, int role) -> QVariant {
    const Row& row = rows[static_cast<std::size_t>(r)];
    if (role == kKeyRole) return r;
    if (c == 0) return role == kSortRole ? QVariant(r) : text(row.id, role);
    if (c == 1) return text(row.name, role);
    if (c == 2) return number(row.us, us(row.us), role);
    const double value = row.values[static_cast<std::size_t>(c - 3)];
    const bool whole = value == static_cast<double>(static_cast<long long>(value));
    return number(value, whole ? grouped(static_cast<long long>(value)) : QString::number(value, 'f', 3),
                  role);
  };
  model.reset(std::move(columns), count, std::move(cell));
}

void fill_launches(RecordModel& model, const PlannedModel& planned, const ProfileComparison& profiled) {
  struct Row {
    int step = -1;
    QString kernel, stands_for, how, at;
    std::optional<double> imported_us, modelled_us;
  };
  std::vector<Row> rows;
  for (std::size_t i = 0; i < profiled.matches.size(); ++i) {
    const ProfileLaunch& launch = profiled.iterations.launches[i];
    const ProfileMatch& match = profiled.matches[i];
    Row row{-1, q(launch.kernel), q(match.stands_for.name), q(name(match.rule)), {}, {}, {}};
    if (match.rule == ProfileRule::kNone) row.how = q(match.why);
    if (launch.timed) row.imported_us = launch.mean_us;
    QStringList steps;
    for (const int s : match.steps) {
      row.step = first_step(*planned.plan, match.stands_for.body) + s;
      steps << q(planned.plan_step(row.step).id);
    }
    row.at = steps.join(", ");
    if (match.steps.size() == 1)
      row.modelled_us = planned.row(row.step).predicted_us;
    else
      row.step = -1;
    rows.push_back(std::move(row));
  }
  const int launches = static_cast<int>(rows.size());
  auto cell = [rows = std::move(rows)](int r, int c, int role) -> QVariant {
    const Row& row = rows[static_cast<std::size_t>(r)];
    const auto time = [role](const std::optional<double>& value) {
      return value ? number(*value, us(*value), role) : QVariant();
    };
    if (role == kKeyRole) return row.step;
    switch (c) {
      case 0:
        return role == kSortRole ? QVariant(r) : text(QString::number(r + 1), role);
      case 1:
        return text(row.kernel, role);
      case 2:
        return time(row.imported_us);
      case 3:
        return time(row.modelled_us);
      case 4:
        return text(row.stands_for, role);
      case 5:
        return text(row.how, role);
      default:
        return text(row.at, role);
    }
  };
  model.reset({{tables_tr("Launch"), tables_tr("Of an iteration, in its order"), true},
               {tables_tr("Kernel"), tables_tr("As the tool calls it")},
               {tables_tr("Imported"), tables_tr("Mean over iterations, as the tool recorded it"), true},
               {tables_tr("Modelled"), tables_tr("Of the step that it is of"), true},
               {tables_tr("Stands for"), tables_tr("Of the model")},
               {tables_tr("By"), tables_tr("The rule that found it (docs/profiles.md), or why none did")},
               {tables_tr("Step"), tables_tr("Of the plan: what evaluates these ops")}},
              launches, std::move(cell));
}

void fill_occupancy(RecordModel& model, const Device& device, int threads, int registers,
                    std::int64_t shared_bytes) {
  const auto limits = occupancy_limits(device, threads, registers, shared_bytes);
  std::vector<Column> columns = {
      {tables_tr("Resource"), tables_tr("Of a streaming multiprocessor (SM)")},
      {tables_tr("A block takes"), tables_tr("With the granularity of its allocation"), true},
      {tables_tr("An SM has"), {}, true},
      {tables_tr("Blocks"), tables_tr("That fit by this resource alone; the least limits"), true}};
  std::int64_t least = OccupancyLimit::kUnlimited;
  for (const OccupancyLimit& limit : limits) least = std::min(least, limit.blocks);
  auto cell = [limits, least](int r, int c, int role) -> QVariant {
    const OccupancyLimit& limit = limits[static_cast<std::size_t>(r)];
    if (role == kKeyRole) return r;
    switch (c) {
      case 0:
        return text(q(limit.resource) + (limit.blocks == least ? tables_tr("  ← limits") : QString()), role);
      case 1:
        return number(static_cast<double>(limit.per_block),
                      counted(limit.per_block, q(limit.unit).chopped(1)), role);
      case 2:
        return number(static_cast<double>(limit.per_sm), counted(limit.per_sm, q(limit.unit).chopped(1)),
                      role);
      case 3:
        return number(
            static_cast<double>(limit.blocks),
            limit.blocks == OccupancyLimit::kUnlimited ? tables_tr("no limit") : grouped(limit.blocks), role);
      default:
        return {};
    }
  };
  model.reset(std::move(columns), static_cast<int>(limits.size()), std::move(cell));
}

void fill_advice(RecordModel& model, const std::vector<Advice>& advice) {
  std::vector<Column> columns = {
      {tables_tr("Value"), tables_tr("Written by one kernel and read by another")},
      {tables_tr("Read by"), tables_tr("The first op of the other kernel that reads it")},
      {tables_tr("Between"), tables_tr("The kernels")},
      {tables_tr("DRAM"), tables_tr("Traffic that would go"), true},
      {tables_tr("With it"), tables_tr("What planning with the override gives")},
      {tables_tr("Gain"), tables_tr("Predicted for the whole model, modelled"), true},
      {tables_tr("Kept apart by"), tables_tr("The rule that keeps the kernels apart, and why")},
      {tables_tr("Override"), tables_tr("What one click applies")},
  };
  auto cell = [advice](int r, int c, int role) -> QVariant {
    const Advice& a = advice[static_cast<std::size_t>(r)];
    if (role == kKeyRole) return r;
    switch (c) {
      case 0:
        return text(q(a.producer), role);
      case 1:
        return text(q(a.consumer), role);
      case 2:
        return text(q(a.from_kernel) + " → " + q(a.to_kernel), role);
      case 3:
        return number(static_cast<double>(a.bytes), bytes_text(static_cast<double>(a.bytes)), role);
      case 4:
        return text(!a.after_us ? tables_tr("refused: ") + q(a.refusal)
                    : a.gains() ? tables_tr("gains")
                                : tables_tr("does not gain"),
                    role);
      case 5:
        if (!a.after_us) return role == kSortRole ? QVariant(-1e30) : QVariant();
        return number(a.before_us - *a.after_us, us(a.before_us - *a.after_us), role);
      case 6:
        return text(a.rule.empty() ? QString() : q(a.rule) + ": " + q(a.why), role);
      case 7:
        return text(q(to_text(a.edit)), role);
      default:
        return {};
    }
  };
  model.reset(std::move(columns), static_cast<int>(advice.size()), std::move(cell));
}

void fill_edits(RecordModel& model, const std::vector<Edit>& edits) {
  auto cell = [edits](int r, int c, int role) -> QVariant {
    const Edit& edit = edits[static_cast<std::size_t>(r)];
    if (role == kKeyRole) return r;
    return c == 0 ? text(q(name(edit.kind)), role) : text(q(to_text(edit)), role);
  };
  model.reset({{tables_tr("Kind"), {}},
               {tables_tr("Override"), tables_tr("Addressed by op, so that it survives planning again")}},
              static_cast<int>(edits.size()), std::move(cell));
}

std::vector<Rewriting> rewritings(const PlannedModel& planned) {
  std::vector<Rewriting> result;
  const FusionPlan& plan = *planned.plan;
  if (!plan.rewritten) return result;
  const Computation& now = planned.entry();
  const Computation& model = plan.rewritten->model->entry_computation();
  for (const rewriting::Rewrite& step : plan.rewritten->steps)
    for (const rewriting::Place& place : step.at) {
      Rewriting one{step.rule, place, now.find(place.front()),
                    std::string(rewriting::rule_named(step.rule).summary)};
      if (const NodeId op = model.find(place.front()); one.now == kNoNode && op != kNoNode)
        one.now = planned_op(plan, op);
      for (const Decision& decision : plan.decisions)
        if (decision.verdict.rule == "fission.taken" && decision.subject == place.front())
          one.why = decision.verdict.why;
      result.push_back(std::move(one));
    }
  return result;
}

void fill_rewritings(RecordModel& model, const std::vector<Rewriting>& steps) {
  auto cell = [steps](int r, int c, int role) -> QVariant {
    const Rewriting& step = steps[static_cast<std::size_t>(r)];
    if (role == kKeyRole) return r;
    switch (c) {
      case 0:
        return number(r + 1, QString::number(r + 1), role);
      case 1:
        return text(q(step.rule), role);
      case 2:
        return text(q(step.at.front()), role);
      case 3:
        return text(q(fmt::format("{}", fmt::join(step.at.begin() + 1, step.at.end(), ", "))), role);
      default:
        return text(q(step.why), role);
    }
  };
  model.reset({{tables_tr("Step"), {}},
               {tables_tr("Rule"), tables_tr("`stitchwork rules` says what each does")},
               {tables_tr("At"), tables_tr("In the graph that the steps before gave")},
               {tables_tr("With"), tables_tr("The other ops that the rule stands on")},
               {tables_tr("Why"), {}}},
              static_cast<int>(steps.size()), std::move(cell));
}

void fill_problems(RecordModel& model, const std::vector<Problem>& problems) {
  auto cell = [problems](int r, int c, int role) -> QVariant {
    const Problem& p = problems[static_cast<std::size_t>(r)];
    if (role == kKeyRole) return r;
    const QString columns[] = {p.doing, p.where, p.message, p.hint};
    if (role == Qt::ToolTipRole) return p.text();
    return text(columns[c], role);
  };
  model.reset({{tables_tr("While"), {}},
               {tables_tr("Where"), {}},
               {tables_tr("What"), {}},
               {tables_tr("What to do"), {}}},
              static_cast<int>(problems.size()), std::move(cell));
}

}  // namespace stitchwork::gui
