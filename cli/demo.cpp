// stitchwork demo: the main job, start to end, in a few minutes.
#include <filesystem>
#include <nlohmann/json.hpp>

#include "analysis/explain/compare.h"
#include "cli/cli.h"
#include "cli/compare_table.h"
#include "cli/report_pages.h"
#include "cli/table.h"
#include "core/base/error.h"
#include "core/base/file.h"
#include "core/base/format.h"
#include "core/evaluate/judge.h"
#include "experiments/report.h"
#include "experiments/store.h"

namespace stitchwork {
namespace {

struct DemoArguments {
  std::string device = "v100-sxm2";
  std::string folder = "stitchwork-demo";
};

void demo(Cli& cli, const DemoArguments& a) {
  const Device& target = device(a.device);
  std::error_code error;
  std::filesystem::create_directories(a.folder, error);
  if (error)
    throw Error(a.folder, 0, 0, fmt::format("cannot be made: {}", error.message()),
                "give another with --folder");
  const std::string db = a.folder + "/runs.db", page = a.folder + "/report.html";
  Store store = Store::open(db);

  cli.progress("planning bert_base");
  const Model base = load_model("bert_base");
  std::vector<std::string> names;
  for (const Planner& p : planners_for(base.graph)) names.emplace_back(p.name);
  const std::vector<CompareRow> rows = compare(base.graph, target, names);
  cli.progress("");
  nlohmann::ordered_json document{{"schema", "stitchwork.demo/1"}, {"store", db}, {"report", page}};
  if (!cli.json) {
    cli.print(
        fmt::format("1. How would BERT-base be fused? ({}, times modelled from the plans)\n", target.id));
    cli.print(compare_table(rows));
    cli.print(
        "2. Are the kernels right, and what do they do? (one layer, every kernel executed in the PTX "
        "simulator)\n");
  }

  const Model layer = load_model("bert_layer");
  TrialSpec spec;
  spec.device = a.device;
  spec.check = true;
  cli.progress("evaluating the reference");
  Judge judge(layer.graph, trial_inputs(layer, spec), arithmetic_of(spec));
  Table table(
      {"planner", ">kernels", ">simulated us", ">inst_executed", ">DRAM read", ">DRAM written", "check"});
  bool ok = true;
  for (const char* planner : {"xla", "astitch"}) {
    spec.planner = planner;
    const TrialResult result = run_trial(
        layer, spec,
        [&](double done, const std::string& what) {
          cli.progress(fmt::format("bert_layer, {}: [{:3.0f}%] {}", planner, 100 * done, what));
        },
        &judge);
    cli.progress("");
    store.record("demo", layer, spec, result);
    double instructions = 0, read = 0, written = 0, us = 0;
    for (const KernelRun& k : result.run.kernels) {
      instructions += static_cast<double>(k.counters.inst_executed);
      read += 32.0 * static_cast<double>(k.counters.dram_read_transactions);
      written += 32.0 * static_cast<double>(k.counters.dram_write_transactions);
      us += k.time_us;
    }
    ok = ok && result.ok();
    document["runs"].push_back(run_to_json(layer, spec, result));
    table.add({planner, fmt::to_string(result.executable.plan.counts.memory_kernels),
               fmt::format("{:.1f}", us), with_commas(static_cast<long long>(instructions)),
               human_bytes(read), human_bytes(written),
               !result.run.findings.empty() ? result.run.findings[0].message
               : result.check->ok ? fmt::format("ok, max rel error {:.1e}", result.check->max_rel_error)
                                  : "FAILED: " + result.check->message});
  }
  ReportOptions options{"demo", {}, {}};
  options.pages = write_pages(cli, read_report(store, options.experiment), a.folder + "/pages", page).trials;
  write_file(page, report_html(store, options));
  if (!ok) cli.exit_code = kExitBadInput;
  if (cli.json) return cli.print(document);
  cli.print(table.text());
  cli.print(fmt::format(
      "Stored in {}; the report is {} (open it in a browser; each planner and kernel leads to its plan).\n\n",
      db, page));
  cli.print(
      "Try next:\n"
      "  stitchwork explain bert_layer reduce.77 --planner astitch    why an op is where it is\n"
      "  stitchwork plan fig7 --planner astitch --set mapping=paper   the paper's running example\n"
      "  stitchwork plan softmax --dump=cuda                          the generated kernel\n"
      "  stitchwork run softmax --device a100-sxm-80 --check          another GPU\n"
      "  stitchwork compare YOUR_MODEL.hlo                            your own model");
}

}  // namespace

void add_demo(CLI::App& app, Cli& cli) {
  CLI::App* command =
      app.add_subcommand("demo", "compare the planners on BERT, run and check a layer, leave a report");
  auto a = std::make_shared<DemoArguments>();
  command->add_option("--device,-d", a->device, "device id or alias")->capture_default_str();
  command->add_option("--folder", a->folder, "where the store and the report go")->capture_default_str();
  add_common(*command, cli, "  stitchwork demo\n  stitchwork demo --device a100-sxm-80 --folder /tmp/demo");
  command->callback([&cli, a] { demo(cli, *a); });
}

}  // namespace stitchwork
