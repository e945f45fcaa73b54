// stitchwork explain MODEL OP
#include "analysis/explain/explain.h"

#include <nlohmann/json.hpp>
#include <utility>

#include "analysis/explain/what_if.h"
#include "analysis/json/overrides_json.h"
#include "analysis/json/plan_json.h"
#include "cli/cli.h"
#include "core/base/error.h"

namespace stitchwork {
namespace {

using nlohmann::ordered_json;

ordered_json to_json(const Decision& d) {
  return {{"step", d.step},     {"subject", d.subject},   {"object", d.object},
          {"ok", d.verdict.ok}, {"rule", d.verdict.rule}, {"why", d.verdict.why}};
}

ordered_json to_json(const Explanation& e, const FusionPlan& plan, const std::vector<WhatIf>& trials) {
  const auto forms = [](const OpPlacement& p) {
    ordered_json tried = ordered_json::array();
    for (const Decision& form : p.forms) tried.push_back(to_json(form));
    return tried;
  };
  const auto timed = [](const OpPlacement& p) { return p.code.empty() || p.time.total_us > 0; };
  ordered_json placements = ordered_json::array();
  for (const OpPlacement& p : e.placements)
    placements.push_back(
        {{"kernel", p.kernel_id},
         {"name", p.kernel_name},
         {"role", p.role},
         {"dominant", p.dominant},
         {"scheme", name(p.scheme)},
         {"in_phase", name(p.in_phase.value_or(p.scheme))},
         {"level", p.level},
         {"mapping", p.mapping},
         {"output", p.output},
         {"code", p.code},
         {"beside", p.beside},
         {"producers", p.producers},
         {"consumers", p.consumers},
         {"predicted_us", timed(p) ? ordered_json(p.time.total_us) : ordered_json()},
         {"time_parts",
          timed(p) ? time_parts_json(p.time, p.code.empty() ? "modelled" : "simulated") : ordered_json()},
         {"not_modelled", not_modelled_json(p.not_modelled)},
         {"forms", forms(p)}});
  ordered_json decisions = ordered_json::array();
  for (const Decision& d : e.decisions) decisions.push_back(to_json(d));
  ordered_json neighbours = ordered_json::array(), refusals = ordered_json::array(),
               tried = ordered_json::array();
  for (const Neighbour& n : e.neighbours)
    neighbours.push_back({{"relation", n.relation},
                          {"producer", n.producer},
                          {"consumer", n.consumer},
                          {"where", n.where},
                          {"refusal", n.refusal ? to_json(*n.refusal) : ordered_json(nullptr)},
                          {"needs", n.needs}});
  for (const Refusal& r : e.refusals)
    refusals.push_back({{"decision", to_json(r.decision)}, {"needs", r.needs}});
  for (const WhatIf& t : trials)
    tried.push_back({{"override", edits_to_json({t.edit})[0]},
                     {"admitted", t.admitted},
                     {"predicted_us", t.admitted ? ordered_json(t.predicted_us) : ordered_json(nullptr)},
                     {"why", t.why}});
  return {{"schema", "stitchwork.explain/1"},
          {"op", e.op},
          {"became", e.became},
          {"opcode", e.opcode},
          {"updates", e.updates},
          {"place", e.place},
          {"shape", e.shape},
          {"step", e.step},
          {"library_time", e.library_time},
          {"placements", placements},
          {"neighbours", neighbours},
          {"refusals", refusals},
          {"predicted_us", times_method(plan).empty() ? ordered_json() : ordered_json(plan.predicted_us)},
          {"overrides", tried},
          {"decisions", decisions}};
}

/// A saved plan holds no decisions: those of planning it again by its library, if that gives the same plan.
void take_decisions(Planned& planned, const fusionstitching::PerformanceLibrary& library) {
  const Graph& model = model_graph(planned.model.graph, planned.plan);
  PlanOptions options = as_planned(planned.plan, true);
  options.library = &library;
  FusionPlan again = make_plan(model, *planned.device, planned.plan.planner, options);
  std::vector<Decision> decisions = std::exchange(again.decisions, {});
  if (plan_document(model, again) == plan_document(planned.graph(), planned.plan))
    planned.plan.decisions = std::move(decisions);
}

}  // namespace

void add_explain(CLI::App& app, Cli& cli) {
  CLI::App* command = app.add_subcommand("explain", "which kernel an op is in, how, and why");
  auto arguments = std::make_shared<PlanArguments>();
  auto op = std::make_shared<std::string>();
  arguments->add_model(*command);
  command->add_option("OP", *op, "name of the op, as the file has it");
  arguments->add_planning(*command);
  arguments->add_device(*command);
  add_common(*command, cli,
             "  stitchwork explain fig7 power.1 --planner astitch --set mapping=paper\n"
             "  stitchwork explain bert_base divide.422 --planner xla\n"
             "  stitchwork explain fig7 power.1 --plan dumps/fig7-a100");
  command->callback([&cli, arguments, op] {
    // A saved plan names its model: with it the one name given is the op's.
    if (op->empty() && !arguments->plan_file.empty()) op->swap(arguments->model);
    if (op->empty()) throw CLI::RequiredError("OP");
    OpTrace trace;
    Planned planned = load_explained(*arguments, trace, *op);
    const Graph& graph = planned.model.graph;
    if (!arguments->plan_file.empty() && arguments->library() != nullptr)
      take_decisions(planned, *arguments->library());
    const Explanation explanation = has_op(graph, planned.plan, *op)
                                        ? explain(graph, planned.plan, *op)
                                        : explain_as_read(graph, planned.plan, trace, *op);
    const std::vector<WhatIf> trials =
        try_overrides(graph, planned.plan, explanation, kTriedOverrides, arguments->library());
    if (cli.json) return cli.print(to_json(explanation, planned.plan, trials));
    cli.print(to_text(explanation) + to_text(planned.plan, trials));
  });
}

}  // namespace stitchwork
