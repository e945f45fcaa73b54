// stitchwork reproduce PAPER
#include "experiments/reproduce.h"

#include <algorithm>
#include <filesystem>
#include <nlohmann/json.hpp>

#include "cli/cli.h"
#include "cli/report_pages.h"
#include "cli/reproduction.h"
#include "cli/table.h"
#include "core/base/error.h"
#include "core/base/file.h"
#include "experiments/document.h"
#include "experiments/reproduce_document.h"
#include "experiments/store.h"
#include "figures/data/renderer.h"

namespace stitchwork {
namespace {

using nlohmann::ordered_json;

struct ReproduceArguments {
  std::string paper, db, output, figures, models, dumps, pages;
  std::vector<std::string> only, workloads, devices;
  bool quick = false;
};

/// Where nobody says: beside the store, "astitch-quick.html".
std::string report_beside(const std::string& db, const Reproduction& r) {
  const std::filesystem::path file =
      std::filesystem::path(db).replace_filename(r.paper + (r.quick ? "-quick" : "") + ".html");
  std::error_code ignored;  // writing says what is wrong
  if (file.has_parent_path()) std::filesystem::create_directories(file.parent_path(), ignored);
  return file.string();
}

ordered_json to_json(const Reproduction& r) {
  const auto number = [](const std::optional<double>& x) { return x ? ordered_json(*x) : ordered_json(); };
  ordered_json tables = ordered_json::array();
  for (const ReproducedTable& table : r.tables) {
    ordered_json values = ordered_json::array();
    for (const ReproducedValue& v : table.values)
      values.push_back({{"row", v.row},
                        {"column", v.column},
                        {"unit", v.unit},
                        {"paper", number(v.paper)},
                        {"ours", number(v.ours)},
                        {"ratio", number(v.ratio())},
                        {"method", v.method},
                        {"fitted", v.fitted},
                        {"why", v.far() ? ordered_json(v.why) : ordered_json()},
                        {"rerun", v.rerun.empty() ? ordered_json() : ordered_json(v.rerun)}});
    ordered_json figures = ordered_json::array();
    for (const Figure& figure : table.figures) figures.push_back(figure.id);
    ordered_json best = ordered_json::array();
    for (const auto& [row, b] : table.best)
      best.push_back({{"row", row},
                      {"variants", b.variants},
                      {"over", b.over.empty() ? ordered_json() : ordered_json(b.over)},
                      {"factor", b.factor},
                      {"cause", b.cause.empty() ? ordered_json() : ordered_json(b.cause)},
                      {"why", b.why}});
    tables.push_back({{"id", table.id},
                      {"place", table.place},
                      {"title", table.title},
                      {"device", table.device},
                      {"values", values},
                      {"best", best},
                      {"figures", figures},
                      {"notes", table.notes},
                      {"exceptions", table.exceptions}});
  }
  return {{"schema", "stitchwork.reproduction/1"},
          {"paper", r.paper},
          {"title", r.title},
          {"device", r.device},
          {"quick", r.quick},
          {"tables", tables},
          {"failures", r.failures}};
}

void run(Cli& cli, const ReproduceArguments& a) {
  ReproduceOptions options;
  options.quick = a.quick;
  options.only = a.only;
  options.workloads = a.workloads;
  options.models = a.models;
  options.dumps = a.dumps;
  options.devices = a.devices;
  options.db = a.db.empty() ? default_store_path() : a.db;
  options.progress = [&](std::size_t done, std::size_t of, double left, const std::string& what) {
    const std::string time = left < 0 ? "" : fmt::format(", {:.0f} s left", left);
    cli.progress(of == 0 ? what : fmt::format("[{}/{}{}] {}", done, of, time, what));
  };
  if (!a.output.empty()) {  // before the long work
    require_document_form(a.output);
    require_writable(a.output);
  }
  Reproduction r = reproduce(a.paper, options);
  cli.progress("");
  if (!r.failures.empty()) cli.exit_code = kExitBadInput;
  const std::string output = a.output.empty() ? report_beside(options.db, r) : a.output;
  if (!a.pages.empty()) lead_to_pages(cli, r, options.db, a.workloads, a.pages, output);
  write_reproduction(r, output);
  std::size_t files = 0;
  if (!a.figures.empty())
    for (const ReproducedTable& table : r.tables)
      for (const Figure& figure : table.figures)
        files += write_figure(figure, a.figures, drawn_formats()).size();
  if (cli.json) {
    ordered_json document = to_json(r);
    document["store"] = options.db;
    document["report"] = output;
    return cli.print(document);
  }
  cli.print(heading(r));
  for (const ReproducedTable& table : r.tables) {
    std::vector<std::string> names = heads(table);
    const std::vector<bool> right = number_columns(table);
    for (std::size_t i = 0; i < names.size(); ++i)
      if (right[i]) names[i] = ">" + names[i];
    Table text(names);
    for (const auto& line : lines(table)) text.add(line);
    cli.print(fmt::format("\n{}: {}\n{}", table.place, table.title, text.text()));
    for (const std::string& note : table.notes) cli.print("note: " + note);
    if (!r.quick)
      for (const std::string& reason : reasons(table)) cli.print("* " + reason);
    for (const std::string& exception : table.exceptions) cli.print("out of the paper's order: " + exception);
  }
  for (const std::string& failure : r.failures) cli.err << fmt::format("stitchwork: {}\n", failure);
  if (files > 0) cli.print(fmt::format("\n{} files of figures written to {}", files, a.figures));
  if (files > 0 && !can_render())
    cli.err << fmt::format("stitchwork: figures as SVG only, no PDF or PNG: {}\n", why_not_rendered());
  cli.print(fmt::format("\nstore: {}\nreport: {}", options.db, output));
}

}  // namespace

std::vector<FigureFormat> drawn_formats() {
  if (!can_render()) return {FigureFormat::kSvg};
  return {FigureFormat::kSvg, FigureFormat::kPdf, FigureFormat::kPng};
}

void lead_to_pages(const Cli& cli, Reproduction& reproduction, const std::string& db,
                   const std::vector<std::string>& workloads, const std::string& folder,
                   const std::string& report) {
  const Store store = Store::open(db);
  ReportData data;
  for (const std::string& experiment : reproduction.experiments) {
    const ReportData one = read_report(store, experiment);
    for (const ReportSection& section : one.sections) {
      const bool wanted = workloads.empty() || std::ranges::any_of(workloads, [&](const std::string& name) {
                            return section.workload == name || section.workload == name + "_tiny";
                          });
      if (!wanted) continue;
      const auto same = std::ranges::find_if(data.sections, [&](const ReportSection& s) {
        return s.workload == section.workload && s.device == section.device &&
               s.model_sha256 == section.model_sha256;
      });
      if (same == data.sections.end())
        data.sections.push_back(section);
      else
        same->trials.insert(same->trials.end(), section.trials.begin(), section.trials.end());
    }
  }
  for (const WrittenPage& page : write_pages(cli, data, folder, report).pages)
    reproduction.pages.push_back(
        {fmt::format("{} on {}: {}", page.workload, page.device, fmt::join(page.plans, ", ")), page.address});
}

void write_reproduction(const Reproduction& reproduction, const std::string& file) {
  require_document_form(file);
  write_file(file, document_bytes(reproduction_document(reproduction), file));
}

void add_reproduce(CLI::App& app, Cli& cli) {
  CLI::App* command = app.add_subcommand("reproduce", "a paper's tables, its figures beside ours");
  auto a = std::make_shared<ReproduceArguments>();
  command->add_option("PAPER", a->paper, fmt::format("known: {}", fmt::join(papers(), ", ")))->required();
  command->add_flag("--quick", a->quick, "on tiny variants of its models, simulated and checked");
  command->add_option("--only", a->only, "ids of tables, comma-separated")->delimiter(',');
  command->add_option("--workloads", a->workloads, "of its models these alone, comma-separated")
      ->delimiter(',');
  command->add_option("--devices", a->devices, "of its devices these alone, comma-separated")->delimiter(',');
  command->add_option("--dumps", a->dumps,
                      "folder of compilers' dumps (scripts/peers/all) that `today` compares with");
  command->add_option("--models", a->models,
                      "folder of a paper's exported models that are no datasets (without: its tiny ones)");
  command->add_option("--db", a->db, "store (default ${XDG_DATA_HOME:-~/.local/share}/stitchwork/runs.db)");
  command->add_option("-o,--output", a->output,
                      "report: .html, .pdf or .md (default: PAPER.html beside the store)");
  add_pages(*command, a->pages);
  command->add_option("--figures", a->figures,
                      "folder for the figures: SVG, PDF, PNG, their data as CSV and Vega-Lite");
  add_common(*command, cli,
             "  stitchwork reproduce astitch --db astitch.db -o astitch.html --figures figures\n"
             "  stitchwork reproduce astitch --quick --only table3,table4\n"
             "  stitchwork reproduce astra --models exports --db astra.db -o astra.html\n"
             "  stitchwork reproduce planners --workloads softmax,bert --db planners.db -o planners.md");
  command->callback([&cli, a] { run(cli, *a); });
}

}  // namespace stitchwork
