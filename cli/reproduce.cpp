// stitchwork reproduce PAPER
#include "experiments/reproduce.h"

#include <nlohmann/json.hpp>

#include "cli/cli.h"
#include "cli/table.h"
#include "core/error.h"
#include "core/file.h"
#include "experiments/store.h"

namespace stitchwork {
namespace {

using nlohmann::ordered_json;

struct Arguments {
  std::string paper, db, output;
  std::vector<std::string> only;
  bool quick = false;
};

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
                        {"method", v.method}});
    tables.push_back({{"id", table.id},
                      {"place", table.place},
                      {"title", table.title},
                      {"values", values},
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

void run(Cli& cli, const Arguments& a) {
  ReproduceOptions options;
  options.quick = a.quick;
  options.only = a.only;
  options.db = a.db.empty() ? default_store_path() : a.db;
  options.progress = [&](std::size_t done, std::size_t of, double left, const std::string& what) {
    const std::string time = left < 0 ? "" : fmt::format(", {:.0f} s left", left);
    cli.progress(of == 0 ? what : fmt::format("[{}/{}{}] {}", done, of, time, what));
  };
  const Reproduction r = reproduce(a.paper, options);
  cli.progress("");
  if (!r.failures.empty()) cli.exit_code = kExitBadInput;
  if (!a.output.empty()) write_file(a.output, to_markdown(r));
  if (cli.json) return cli.print(to_json(r));
  cli.print(heading(r));
  for (const ReproducedTable& table : r.tables) {
    std::vector<std::string> heads = reproduction_heads();
    for (std::size_t i = 2; i < 5; ++i) heads[i] = ">" + heads[i];
    Table text(heads);
    for (const auto& line : lines(table)) text.add(line);
    cli.print(fmt::format("\n{}: {}\n{}", table.place, table.title, text.text()));
    for (const std::string& note : table.notes) cli.print("note: " + note);
    for (const std::string& exception : table.exceptions) cli.print("out of the paper's order: " + exception);
  }
  for (const std::string& failure : r.failures) cli.err << fmt::format("stitchwork: {}\n", failure);
  if (!a.output.empty()) cli.print(fmt::format("\n{} written", a.output));
}

}  // namespace

void add_reproduce(CLI::App& app, Cli& cli) {
  CLI::App* command = app.add_subcommand("reproduce", "a paper's tables, its figures beside ours");
  auto a = std::make_shared<Arguments>();
  command->add_option("PAPER", a->paper, fmt::format("known: {}", fmt::join(papers(), ", ")))->required();
  command->add_flag("--quick", a->quick, "on tiny variants of its models, simulated and checked");
  command->add_option("--only", a->only, "ids of tables, comma-separated")->delimiter(',');
  command->add_option("--db", a->db, "store (default ${XDG_DATA_HOME:-~/.local/share}/stitchwork/runs.db)");
  command->add_option("-o,--output", a->output, "also as Markdown");
  add_common(*command, cli,
             "  stitchwork reproduce astitch --db astitch.db -o astitch.md\n"
             "  stitchwork reproduce astitch --quick --only table3,table4");
  command->callback([&cli, a] { run(cli, *a); });
}

}  // namespace stitchwork
