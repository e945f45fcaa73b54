// stitchwork explain MODEL OP
#include "analysis/explain.h"

#include <nlohmann/json.hpp>

#include "cli/cli.h"
#include "core/error.h"

namespace stitchwork {
namespace {

using nlohmann::ordered_json;

ordered_json to_json(const Explanation& e) {
  ordered_json placements = ordered_json::array();
  for (const OpPlacement& p : e.placements)
    placements.push_back({{"kernel", p.kernel_id},
                          {"name", p.kernel_name},
                          {"role", p.role},
                          {"dominant", p.dominant},
                          {"scheme", name(p.scheme)},
                          {"level", p.level},
                          {"mapping", p.mapping},
                          {"output", p.output},
                          {"producers", p.producers},
                          {"consumers", p.consumers}});
  ordered_json decisions = ordered_json::array();
  for (const Decision& d : e.decisions)
    decisions.push_back({{"step", d.step},
                         {"subject", d.subject},
                         {"object", d.object},
                         {"ok", d.verdict.ok},
                         {"rule", d.verdict.rule},
                         {"why", d.verdict.why}});
  return {{"schema", "stitchwork.explain/1"},
          {"op", e.op},
          {"opcode", e.opcode},
          {"shape", e.shape},
          {"step", e.step},
          {"placements", placements},
          {"decisions", decisions}};
}

}  // namespace

void add_explain(CLI::App& app, Cli& cli) {
  CLI::App* command = app.add_subcommand("explain", "which kernel an op is in, how, and why");
  auto arguments = std::make_shared<PlanArguments>();
  auto op = std::make_shared<std::string>();
  arguments->add_model(*command);
  command->add_option("OP", *op, "name of the op, as the HLO text has it")->required();
  arguments->add_planning(*command);
  arguments->add_device(*command);
  add_common(*command, cli,
             "  stitchwork explain fig7 power.1 --planner astitch --set mapping=paper\n"
             "  stitchwork explain bert_base divide.97 --planner xla");
  command->callback([&cli, arguments, op] {
    const Planned planned = load_planned(*arguments, true);
    const Explanation explanation = explain(planned.model.graph, planned.plan, *op);
    if (cli.json) return cli.print(to_json(explanation));
    cli.print(to_text(explanation));
  });
}

}  // namespace stitchwork
