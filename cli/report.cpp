// stitchwork report DB -o FILE.html|.pdf|.md
#include "experiments/report.h"

#include <filesystem>
#include <nlohmann/json.hpp>

#include "cli/cli.h"
#include "cli/report_pages.h"
#include "cli/reproduction.h"
#include "core/base/error.h"
#include "core/base/file.h"

namespace stitchwork {

void add_report(CLI::App& app, Cli& cli) {
  struct ReportArguments {
    std::string db, experiment, paper, output, pages;
    std::optional<std::size_t> kernels;
  };
  CLI::App* command =
      app.add_subcommand("report", "a store as one self-contained HTML page, PDF or Markdown");
  auto a = std::make_shared<ReportArguments>();
  command->add_option("DB", a->db, "store (default: the one `run` writes)");
  command->add_option("--experiment", a->experiment, "only this experiment");
  command->add_option(
      "--kernels", a->kernels,
      "kernels listed of each trial, the slowest; 0: all (default: 2,000 in all, at least 3)");
  command->add_option("--paper", a->paper,
                      "a reproduced paper's tables and figures (`stitchwork reproduce`)");
  command->add_option("-o,--output", a->output, "HTML, PDF or Markdown by its ending: .html, .pdf, .md")
      ->required();
  add_pages(*command, a->pages);
  add_common(*command, cli,
             "  stitchwork run softmax --check --db runs.db\n  stitchwork report runs.db -o report.html\n"
             "  stitchwork report runs.db -o report.html --pages pages\n"
             "  stitchwork report astitch.db --paper astitch -o astitch.pdf");
  command->callback([&cli, a] {
    const std::string db = a->db.empty() ? default_store_path() : a->db;
    if (!std::filesystem::exists(db))
      throw Error(db, 0, 0, "no such store", "make one: stitchwork run MODEL --db FILE");
    require_writable(a->output);
    cli.progress("writing " + a->output);
    if (a->paper.empty()) {
      const Store store = Store::read(db);
      ReportOptions options{a->experiment, a->kernels, {}};
      if (!a->pages.empty())
        options.pages = write_pages(cli, read_report(store, a->experiment), a->pages, a->output).trials;
      write_file(a->output, report_bytes(store, options, a->output));
    } else {
      ReproduceOptions options;
      options.db = db;
      options.run = false;
      options.quick = only_quick(a->paper, db);
      Reproduction reproduction = reproduce(a->paper, options);
      if (!a->pages.empty()) lead_to_pages(cli, reproduction, db, {}, a->pages, a->output);
      write_reproduction(reproduction, a->output);
    }
    cli.progress("");
    if (cli.json)
      return cli.print(
          nlohmann::ordered_json{{"schema", "stitchwork.report/1"}, {"store", db}, {"file", a->output}});
    cli.print(fmt::format("{} written from {}", a->output, db));
  });
}

}  // namespace stitchwork
