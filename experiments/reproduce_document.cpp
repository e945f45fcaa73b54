#include "experiments/reproduce_document.h"

#include <fmt/ranges.h>

#include <algorithm>

namespace stitchwork {
namespace {

using Kind = DocumentBlock::Kind;

constexpr const char* kReproduceMethods =
    "How our numbers were obtained. modelled: from the plan alone, by the cost and timing models "
    "(docs/timing.md). simulated: the compiled PTX was executed in the simulator; counters are counted, "
    "times follow from them by the timing model, which also has those of library calls. sampled: likewise, a "
    "few waves of a kernel's blocks standing for all. measured: by a clock. imported: the paper's. Numbers "
    "of the paper "
    "are of its own software and hardware.";

DocumentTable values_table(const ReproducedTable& table) {
  return {heads(table), number_columns(table), lines(table)};
}

/// Each command once, with the rows and columns it makes.
DocumentTable rerun_table(const ReproducedTable& table) {
  DocumentTable rerun{{"values", "command"}, {false, false}, {}};
  if (table.matrix) return rerun;  // rows and columns are what `plan` takes
  for (const ReproducedValue& v : table.values) {
    if (v.rerun.empty()) continue;
    const std::string what = v.row + ": " + v.column;
    const auto known = std::find_if(rerun.rows.begin(), rerun.rows.end(),
                                    [&](const auto& row) { return row[1] == v.rerun; });
    if (known == rerun.rows.end())
      rerun.rows.push_back({what, v.rerun});
    else
      (*known)[0] += "; " + v.column;
  }
  return rerun;
}

void add_table(Document& document, const Reproduction& r, const ReproducedTable& table) {
  document.add(Kind::kHeading, fmt::format("{}: {}", table.place, table.title));
  for (const std::string& note : table.notes) document.add(Kind::kParagraph, note);
  for (const Figure& figure : table.figures)
    document.add(figure,
                 fmt::format("{} ({}; {}).", figure.title, fmt::join(methods(figure), ", "), table.device));
  document.add(values_table(table));
  if (!r.quick)
    for (const std::string& reason : reasons(table)) document.add(Kind::kItem, "* " + reason);
  for (const std::string& exception : table.exceptions)
    document.add(Kind::kItem, "Out of the paper's order: " + exception);
  document.add(Kind::kCode, fmt::format("{} --only {}", r.command, table.artifact));
  if (DocumentTable rerun = rerun_table(table); !rerun.rows.empty())
    document.add(std::move(rerun), "Each number by itself");
}

/// How many numbers there are, and how many of them are near the paper's.
std::string counts(const Reproduction& r) {
  std::size_t values = 0, compared = 0, far = 0, open = 0;
  for (const ReproducedTable& table : r.tables)
    for (const ReproducedValue& v : table.values) {
      ++values;
      compared += v.ratio() ? 1 : 0;
      far += v.far() ? 1 : 0;
      open += v.far() && !v.explained ? 1 : 0;
    }
  std::string text = fmt::format("{} tables and figures with {} numbers of ours", r.tables.size(), values);
  if (!r.compared()) return text + ".";
  text += fmt::format("; the paper gives {} of them", compared);
  if (!r.quick)
    text += fmt::format(
        ", from which {} of ours differ by more than a quarter; of {} of these the difference is not "
        "explained",
        far, open);
  return text + ".";
}

}  // namespace

Document reproduction_document(const Reproduction& r) {
  Document document;
  document.title = r.compared() ? r.paper + ": the paper's tables and figures, and ours" : r.title;
  if (r.quick) document.title += " (tiny variants)";
  document.add(Kind::kTitle, document.title);
  document.add(Kind::kParagraph, heading(r));
  document.add(Kind::kParagraph, kReproduceMethods);
  document.add(Kind::kParagraph, counts(r));
  for (const std::string& failure : r.failures) document.add(Kind::kItem, "Failed: " + failure);
  for (const ReproducedTable& table : r.tables) add_table(document, r, table);
  if (!r.pages.empty()) {
    document.add(Kind::kHeading, "Plans to look at");
    document.add(
        Kind::kParagraph,
        "Graph, kernels, CUDA, and why each edge ends a kernel; the plans of each model beside each other.");
    for (const ReproducedPage& page : r.pages) document.add_link(page.text, page.address);
  }
  document.add(Kind::kHeading, "Environment");
  for (const std::string& environment : r.environments) document.add(Kind::kItem, environment);
  document.add(Kind::kHeading, "All of it again");
  document.add(Kind::kCode, r.command + " --db FILE.db -o REPORT.html");
  return document;
}

}  // namespace stitchwork
