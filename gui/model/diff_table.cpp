#include "gui/model/diff_table.h"

#include <QCoreApplication>
#include <cmath>

#include "gui/model/tables.h"
#include "gui/model/text.h"

namespace stitchwork::gui {
namespace {

QString diff_tr(const char* text) { return QCoreApplication::translate("diff", text); }

struct Row {
  QString kind, what, in_a, in_b, why;
  std::string op;
};

QString kernel_text(const DiffKernel& k) { return q(k.id + " " + k.name); }

QString listed(const std::vector<std::string>& names) {
  QStringList list;
  for (const std::string& n : names) list << q(n);
  return list.join(", ");
}

QString decision_text(const std::optional<Decision>& d) {
  return d ? q(d->verdict.rule + ": " + d->verdict.why) : QString();
}

std::vector<Row> rows_of(const PlanDiff& d) {
  std::vector<Row> rows;
  for (const Boundary& b : d.boundaries) {
    const QString apart = diff_tr("apart"), together = diff_tr("together");
    QString why = decision_text(b.apart);
    if (const QString joined = decision_text(b.together); !joined.isEmpty())
      why += (why.isEmpty() ? QString() : QString(" · ")) + diff_tr("joined by ") + joined;
    rows.push_back({b.apart_in_b ? diff_tr("cut") : diff_tr("joined"), q(b.producer) + " → " + q(b.consumer),
                    b.apart_in_b ? together : apart, b.apart_in_b ? apart : together, why, b.consumer});
  }
  for (const KernelChange& c : d.changed) {
    QStringList why;
    if (!c.gained.empty()) why << diff_tr("gains ") + listed(c.gained);
    if (!c.lost.empty()) why << diff_tr("loses ") + listed(c.lost);
    if (!c.schemes.empty()) why << listed(c.schemes);
    if (c.launch_a != c.launch_b) why << q(c.launch_a) + " → " + q(c.launch_b);
    why << us(c.us_a) + " → " + us(c.us_b);
    rows.push_back({diff_tr("changed"), kernel_text(c.b), kernel_text(c.a), kernel_text(c.b), why.join("; "),
                    c.b.ops.empty() ? "" : c.b.ops.back()});
  }
  for (const DiffKernel& k : d.removed)
    rows.push_back({diff_tr("removed"),
                    kernel_text(k),
                    kernel_text(k),
                    {},
                    listed(k.ops),
                    k.ops.empty() ? "" : k.ops.back()});
  for (const DiffKernel& k : d.added)
    rows.push_back({diff_tr("added"),
                    kernel_text(k),
                    {},
                    kernel_text(k),
                    listed(k.ops),
                    k.ops.empty() ? "" : k.ops.back()});
  const auto maker = [](const std::string& kernel) {
    return kernel.empty() ? diff_tr("the library") : q(kernel);
  };
  for (const ProductChange& p : d.products)
    rows.push_back({diff_tr("product"), q(p.op), maker(p.from), maker(p.to), {}, p.op});
  for (const MovedOp& m : d.moved)
    rows.push_back({diff_tr("moved"), q(m.op), listed(m.from), listed(m.to), {}, m.op});
  return rows;
}

}  // namespace

void fill_diff(RecordModel& model, const PlanComparison& comparison) {
  std::vector<Row> rows = rows_of(comparison.diff);
  const int count = static_cast<int>(rows.size());
  model.reset(
      {{diff_tr("Change"), diff_tr("From A to B: kernels joined or cut, changed, removed, added; ops moved")},
       {diff_tr("What"), {}},
       {diff_tr("In A"), {}},
       {diff_tr("In B"), {}},
       {diff_tr("Why"), diff_tr("The decision behind it, with its rule")}},
      count, [rows = std::move(rows)](int r, int c, int role) -> QVariant {
        const Row& row = rows[static_cast<std::size_t>(r)];
        if (role == kKeyRole) return q(row.op);
        if (role != Qt::DisplayRole && role != Qt::ToolTipRole) return {};
        const QString cells[] = {row.kind, row.what, row.in_a, row.in_b, row.why};
        return cells[c];
      });
}

void fill_totals(RecordModel& model, const PlanComparison& comparison) {
  struct Total {
    QString what;
    double a = 0, b = 0;
    QString text_a, text_b;
  };
  const PlanTotals &a = comparison.diff.a, &b = comparison.diff.b;
  const auto number = [](const QString& what, double x, double y) {
    return Total{what, x, y, grouped(static_cast<long long>(x)), grouped(static_cast<long long>(y))};
  };
  std::vector<Total> rows = {
      {diff_tr("predicted time"), a.predicted_us, b.predicted_us, us(a.predicted_us), us(b.predicted_us)},
      number(diff_tr("memory kernels"), a.memory_kernels, b.memory_kernels),
      number(diff_tr("library calls"), a.library_calls, b.library_calls),
      number(diff_tr("copies and memsets"), a.copies + a.memsets, b.copies + b.memsets),
      number(diff_tr("grid barriers"), a.grid_barriers, b.grid_barriers),
      {diff_tr("DRAM bytes"), static_cast<double>(a.dram_bytes), static_cast<double>(b.dram_bytes),
       bytes_text(static_cast<double>(a.dram_bytes)), bytes_text(static_cast<double>(b.dram_bytes))}};
  const int count = static_cast<int>(rows.size());
  model.reset({{diff_tr("Total"), {}},
               {diff_tr("A"), {}, true},
               {diff_tr("B"), {}, true},
               {diff_tr("Change"), {}, true}},
              count, [rows = std::move(rows)](int r, int c, int role) -> QVariant {
                const Total& row = rows[static_cast<std::size_t>(r)];
                if (role == kKeyRole) return r;
                if (role != Qt::DisplayRole) return {};
                if (c == 0) return row.what;
                if (c == 1) return row.text_a;
                if (c == 2) return row.text_b;
                if (row.a == row.b) return diff_tr("same");
                const QString sign = row.b < row.a ? "−" : "+";
                if (row.a == 0) return sign + row.text_b;
                return sign + QString::number(100 * std::abs(row.b - row.a) / row.a, 'f', 1) + " %" +
                       (row.b < row.a ? diff_tr(" ▼ less") : diff_tr(" ▲ more"));
              });
}

}  // namespace stitchwork::gui
