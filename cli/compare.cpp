// stitchwork compare MODEL --planners a,b,c
#include "analysis/explain/compare.h"

#include <nlohmann/json.hpp>

#include "cli/cli.h"
#include "cli/compare_table.h"
#include "cli/table.h"
#include "core/base/format.h"

namespace stitchwork {

std::string compare_table(const std::vector<CompareRow>& rows) {
  Table table({"planner", ">memory kernels", ">library calls", ">copies", ">grid barriers", ">predicted us",
               ">DRAM bytes", ">recomputed elements", ">plan ms"});
  for (const CompareRow& r : rows)
    table.add({r.planner, with_commas(r.memory_kernels), with_commas(r.library_calls), with_commas(r.copies),
               with_commas(r.grid_barriers), fmt::format("{:.1f}", r.predicted_us), with_commas(r.dram_bytes),
               with_commas(r.recomputed_elements), fmt::format("{:.1f}", r.plan_ms)});
  return table.text();
}

void add_compare(CLI::App& app, Cli& cli) {
  struct Arguments {
    PlanArguments plan;
    std::vector<std::string> planners;
  };
  CLI::App* command = app.add_subcommand("compare", "planners side by side on one model");
  auto a = std::make_shared<Arguments>();
  a->plan.add_model(*command);
  a->plan.add_device(*command);
  command->add_option("--planners", a->planners, "comma-separated (default: all that take the model)")
      ->delimiter(',');
  a->plan.add_options(*command);
  add_common(*command, cli,
             "  stitchwork compare bert_base --planners unfused,xla,astitch\n"
             "  stitchwork compare fig7 --device a100-sxm-80 --json");
  command->callback([&cli, a] {
    if (a->plan.model.empty()) throw CLI::RequiredError("MODEL");
    const Model model = a->plan.open.load(a->plan.model);
    if (a->planners.empty())
      for (const Planner& p : planners_for(model.graph)) a->planners.emplace_back(p.name);
    const Device& target = device(a->plan.device);
    const std::vector<CompareRow> rows = compare(model.graph, target, a->planners, a->plan.options());
    if (cli.json) {
      nlohmann::ordered_json list = nlohmann::ordered_json::array();
      for (const CompareRow& r : rows)
        list.push_back({{"planner", r.planner},
                        {"memory_kernels", r.memory_kernels},
                        {"library_calls", r.library_calls},
                        {"copies", r.copies},
                        {"grid_barriers", r.grid_barriers},
                        {"predicted_us", r.predicted_us},
                        {"dram_bytes", r.dram_bytes},
                        {"recomputed_elements", r.recomputed_elements},
                        {"plan_ms", r.plan_ms}});
      return cli.print(nlohmann::ordered_json{
          {"schema", "stitchwork.compare/1"},
          {"model", {{"path", model.graph.source}, {"sha256", model.graph.source_sha256}}},
          {"device", target.id},
          {"method", "modelled"},
          {"rows", list}});
    }
    cli.print(compare_table(rows));
    cli.print(fmt::format("{} on {}; times, bytes and recomputation are modelled from the plans",
                          model.graph.source, target.id));
  });
}

}  // namespace stitchwork
