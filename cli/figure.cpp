// stitchwork figure ID: a figure of a reproduced paper, or of an experiment
#include <algorithm>
#include <filesystem>
#include <nlohmann/json.hpp>

#include "cli/cli.h"
#include "cli/experiment.h"
#include "cli/reproduction.h"
#include "core/base/error.h"
#include "core/base/file.h"
#include "experiments/experiment_figure.h"
#include "figures/data/forms.h"

namespace stitchwork {
namespace {

struct FigureArguments {
  std::string id, db, paper = "astitch", folder = ".", metric = "total_us";
  std::vector<std::string> formats;
};

/// The paper's figures of that name: one, or all of a table's. Empty where it has none.
std::vector<Figure> of_paper(const FigureArguments& a, const std::string& db) {
  ReproduceOptions options;
  options.db = db;
  options.run = false;
  options.quick = only_quick(a.paper, db);
  std::vector<Figure> found;
  for (const std::string& table : tables_of_figure(a.paper, a.id)) {
    options.only = {table};
    for (const ReproducedTable& one : reproduce(a.paper, options).tables)
      for (const Figure& figure : one.figures)
        if (one.id == a.id || figure.id == a.id) found.push_back(figure);
  }
  return found;
}

void draw(Cli& cli, const FigureArguments& a) {
  const Store store = open_store(a.db);
  std::vector<Figure> figures = of_paper(a, store.path());
  if (figures.empty()) {
    const std::vector<ExperimentEntry> known = list_experiments(store);
    if (std::none_of(known.begin(), known.end(), [&](const ExperimentEntry& e) { return e.name == a.id; })) {
      std::vector<std::string> names;
      for (const ExperimentEntry& e : known) names.push_back(e.name);
      throw Error(fmt::format("{} is no figure of {} and no experiment of {}", a.id, a.paper, store.path()),
                  fmt::format("experiments there: {}", fmt::join(names, ", ")));
    }
    figures.push_back(experiment_figure(read_results(store, a.id), a.metric));
  }
  std::vector<FigureFormat> formats;
  if (a.formats.empty()) {
    formats = drawn_formats();
    if (!can_render())
      cli.err << fmt::format("stitchwork: figures as SVG only, no PDF or PNG: {}\n", why_not_rendered());
  }
  for (const FigureFormat format : {FigureFormat::kSvg, FigureFormat::kPdf, FigureFormat::kPng})
    if (std::find(a.formats.begin(), a.formats.end(), name(format)) != a.formats.end())
      formats.push_back(format);
  std::vector<std::string> files;
  for (const Figure& figure : figures)
    for (std::string& file : write_figure(figure, a.folder, formats)) files.push_back(std::move(file));
  if (cli.json)
    return cli.print(nlohmann::ordered_json{
        {"schema", "stitchwork.figure/1"}, {"id", a.id}, {"store", store.path()}, {"files", files}});
  for (const std::string& file : files) cli.print(file + " written");
}

}  // namespace

void add_figure(CLI::App& app, Cli& cli) {
  CLI::App* command =
      app.add_subcommand("figure", "draws a figure of a reproduced paper, or an experiment's metric");
  auto a = std::make_shared<FigureArguments>();
  command->add_option("ID", a->id, "figure or table of the paper (fig11, table3), or an experiment")
      ->required();
  command->add_option("--paper", a->paper, "whose figure")->capture_default_str();
  command->add_option("--metric", a->metric, "of an experiment")->capture_default_str();
  command->add_option("--format", a->formats, "svg, pdf, png, comma-separated (default: all)")
      ->delimiter(',')
      ->check(CLI::IsMember({"svg", "pdf", "png"}));
  command->add_option("-o,--output", a->folder, "folder")->capture_default_str();
  add_db(*command, a->db);
  add_common(*command, cli,
             "  stitchwork figure fig11 --db astitch.db --format svg,pdf -o figures\n"
             "  stitchwork figure astitch-models --metric kernel_us --db astitch.db");
  command->callback([&cli, a] { draw(cli, *a); });
}

}  // namespace stitchwork
