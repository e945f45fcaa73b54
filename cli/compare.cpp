// stitchwork compare MODEL --planners a,b,c
#include "analysis/explain/compare.h"

#include <algorithm>
#include <nlohmann/json.hpp>

#include "cli/cli.h"
#include "cli/compare_table.h"
#include "cli/peer_dump.h"
#include "cli/table.h"
#include "core/base/format.h"
#include "core/passes/trip_count.h"

namespace stitchwork {

namespace {

using nlohmann::ordered_json;

Table table_of(const std::vector<CompareRow>& rows) {
  const auto differs = [&](auto member) {
    return std::any_of(rows.begin(), rows.end(),
                       [&](const CompareRow& r) { return r.*member != rows.front().*member; });
  };
  const bool devices = differs(&CompareRow::device);
  const bool loops = std::any_of(rows.begin(), rows.end(),
                                 [](const CompareRow& r) { return r.launched != r.memory_kernels; });
  std::vector<std::string> heads{"planner"};
  if (devices) heads.emplace_back("device");
  heads.emplace_back(">kernels");
  if (loops) heads.emplace_back(">launched");
  for (const char* head :
       {">calls", ">copies", ">barriers", ">predicted us", ">DRAM bytes", ">recomputed", ">plan ms"})
    heads.emplace_back(head);
  Table table(heads);
  for (const CompareRow& r : rows) {
    std::vector<std::string> row{r.planner};
    if (devices) row.push_back(r.device);
    row.push_back(with_commas(r.memory_kernels));
    if (loops) row.push_back(with_commas(r.launched));
    for (const std::string& cell :
         {with_commas(r.library_calls), with_commas(r.copies), with_commas(r.grid_barriers),
          fmt::format("{:.1f}", r.predicted_us), with_commas(r.dram_bytes),
          with_commas(r.recomputed_elements), fmt::format("{:.1f}", r.plan_ms)})
      row.push_back(cell);
    table.add(std::move(row));
  }
  return table;
}

/// Every column under its name in the document, all digits.
std::string csv_of(const std::vector<CompareRow>& rows) {
  Table table({"planner", "device", "memory_kernels", "dynamic_memory_kernels", "library_calls", "copies",
               "grid_barriers", "predicted_us", "dram_bytes", "recomputed_elements", "plan_ms"});
  for (const CompareRow& r : rows)
    table.add({r.planner, r.device, fmt::to_string(r.memory_kernels), fmt::to_string(r.launched),
               fmt::to_string(r.library_calls), fmt::to_string(r.copies), fmt::to_string(r.grid_barriers),
               fmt::to_string(r.predicted_us), fmt::to_string(r.dram_bytes),
               fmt::to_string(r.recomputed_elements), fmt::to_string(r.plan_ms)});
  return table.csv();
}

ordered_json to_json(const CompareRow& r) {
  return {{"planner", r.planner},
          {"device", r.device},
          {"memory_kernels", r.memory_kernels},
          {"dynamic_memory_kernels", r.launched},
          {"library_calls", r.library_calls},
          {"copies", r.copies},
          {"grid_barriers", r.grid_barriers},
          {"predicted_us", r.predicted_us},
          {"dram_bytes", r.dram_bytes},
          {"recomputed_elements", r.recomputed_elements},
          {"plan_ms", r.plan_ms}};
}

struct CompareArguments {
  PlanArguments plan;
  std::vector<std::string> planners, devices, dumps;
  bool csv = false;
  const CLI::Option* device = nullptr;  ///< whether it was given
};

void compare_command(Cli& cli, const CompareArguments& a) {
  if (a.plan.model.empty()) throw CLI::RequiredError("MODEL");
  const Model model = a.plan.open.load(a.plan.model);
  std::vector<std::string> names = a.planners, targets = a.devices;
  if (names.empty())
    for (const Planner& p : planners_for(model.graph)) names.emplace_back(p.name);
  if (targets.empty()) targets.push_back(a.plan.device);
  std::vector<CompareRow> rows;
  for (const std::string& target : targets)
    for (CompareRow& row : compare(model.graph, device(target), names, a.plan.options()))
      rows.push_back(std::move(row));
  const std::vector<LoopTrips> known = loops(model.graph);
  const std::vector<DumpRow> dumps =
      dump_rows(cli, model, a.dumps, a.device->count() > 0 ? a.plan.device : "");
  if (cli.json) {
    ordered_json list = ordered_json::array();
    for (const CompareRow& r : rows) list.push_back(to_json(r));
    ordered_json document{{"schema", "stitchwork.compare/1"},
                          {"model", {{"path", model.graph.source}, {"sha256", model.graph.source_sha256}}},
                          {"device", device(targets.front()).id},
                          {"method", "modelled"},
                          {"loops", loops_json(known)},
                          {"rows", list}};
    if (!dumps.empty()) document["dumps"] = dump_rows_json(dumps);
    return cli.print(document);
  }
  if (a.csv) return cli.print(csv_of(rows));
  cli.print(compare_table(rows));
  cli.print(fmt::format("{}{}; times, bytes and recomputation are modelled from the plans",
                        model.graph.source,
                        targets.size() == 1 ? " on " + device(targets.front()).id : std::string()));
  if (!dumps.empty()) cli.print(dump_rows_text(dumps));
  if (!known.empty())
    cli.print(fmt::format("loops: {}; kernels launched are as often as they run", to_text(known)));
}

}  // namespace

std::string compare_table(const std::vector<CompareRow>& rows) { return table_of(rows).text(); }

void add_compare(CLI::App& app, Cli& cli) {
  CLI::App* command = app.add_subcommand("compare", "planners side by side on one model");
  auto a = std::make_shared<CompareArguments>();
  a->plan.add_model(*command);
  a->device = a->plan.add_device(*command);
  command
      ->add_option("--with", a->dumps,
                   "what a compiler made of the model (docs/peers.md): run in the simulator, a row each")
      ->take_all();
  command->add_option("--devices", a->devices, "comma-separated: a row a planner and device")->delimiter(',');
  command->add_option("--planners", a->planners, "comma-separated (default: all that take the model)")
      ->delimiter(',');
  command->add_flag("--csv", a->csv, "the rows as comma-separated values, all digits");
  a->plan.add_options(*command);
  add_common(*command, cli,
             "  stitchwork compare bert_base --planners unfused,xla,astitch\n"
             "  stitchwork compare fig7 --device a100-sxm-80 --json\n"
             "  stitchwork compare fig7 --devices v100,t4,h200 --csv\n"
             "  stitchwork compare softmax --device a100-sxm-40 --with dumps/softmax-a100");
  command->callback([&cli, a] { compare_command(cli, *a); });
}

}  // namespace stitchwork
