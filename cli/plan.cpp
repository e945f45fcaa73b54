// stitchwork plan MODEL, stitchwork verify PLAN.json
#include <algorithm>
#include <nlohmann/json.hpp>

#include "analysis/plan/plan_json.h"
#include "analysis/verify/verify.h"
#include "cli/cli.h"
#include "cli/dumps.h"
#include "core/base/error.h"
#include "core/base/file.h"

namespace stitchwork {
namespace {

using nlohmann::ordered_json;

struct PlanFlags {
  PlanArguments plan;
  std::vector<std::string> dumps;
  WantedKernels kernels;
  std::string output;
};

void print_dumps(const Cli& cli, const Planned& planned, const std::vector<const DumpKind*>& kinds,
                 const WantedKernels& kernels) {
  require_kernels(planned, kernels);
  if (cli.json) {
    ordered_json dumps = ordered_json::array();
    for (const DumpKind* kind : kinds) {
      dumps.push_back({{"kind", kind->name}, {"text", kind->print(planned, kernels)}});
      if (kind->document != nullptr) dumps.back()[std::string(kind->name)] = kind->document(planned);
    }
    const Graph& graph = planned.model.graph;
    return cli.print(ordered_json{{"schema", "stitchwork.dump/1"},
                                  {"model", {{"path", graph.source}, {"sha256", graph.source_sha256}}},
                                  {"device", planned.plan.device},
                                  {"planner", planned.plan.planner},
                                  {"dumps", dumps}});
  }
  for (const DumpKind* kind : kinds) {
    if (kinds.size() > 1) cli.print(fmt::format("--- {}", kind->name));
    cli.print(kind->print(planned, kernels));
  }
}

void plan(Cli& cli, const PlanFlags& flags) {
  std::vector<const DumpKind*> kinds;
  for (const std::string& dump : flags.dumps) kinds.push_back(&dump_kind(dump));
  if (kinds.empty() && !flags.kernels.kernels.empty())
    throw Error("--kernel is for dumps", "for example --dump=cuda --kernel k0");
  const Planned planned = load_planned(flags.plan);
  const auto document = [&] { return plan_document(planned.model.graph, planned.plan); };
  if (!flags.output.empty()) write_file(flags.output, document().dump(2) + "\n");
  if (!kinds.empty()) {
    print_dumps(cli, planned, kinds, flags.kernels);
  } else if (cli.json) {
    cli.print(document());
  } else if (flags.output.empty()) {
    cli.print(to_text(planned.model.graph, planned.plan));
  } else {
    cli.print(fmt::format("{}: {}; predicted {:.1f} us (modelled)", flags.output,
                          to_text(planned.plan.counts), planned.plan.predicted_us));
  }
}

void verify_file(Cli& cli, const std::string& file, const ModelOptions& open) {
  const std::string text = read_file(file);
  const Model model = open.load(read_plan_header(text, file).model_path);
  const FusionPlan plan = plan_from_json(model.graph, text, file);
  const std::vector<Verdict> problems = verify(model.graph, device(plan.device), plan);
  if (cli.json) {
    ordered_json rows = ordered_json::array();
    for (const Verdict& v : problems) rows.push_back({{"rule", v.rule}, {"why", v.why}});
    cli.print(ordered_json{{"schema", "stitchwork.verify/1"}, {"ok", problems.empty()}, {"problems", rows}});
  } else if (problems.empty()) {
    cli.print(fmt::format("{}: ok, {} kernels", file, plan.kernels.size()));
  } else {
    for (const Verdict& v : problems)
      cli.err << fmt::format("stitchwork: {}: {} [{}]\n", file, v.why, v.rule);
  }
  if (!problems.empty()) cli.exit_code = kExitBadInput;
}

}  // namespace

void add_plan(CLI::App& app, Cli& cli) {
  CLI::App* command = app.add_subcommand("plan", "plan a model's kernels");
  auto flags = std::make_shared<PlanFlags>();
  flags->plan.add_model(*command);
  flags->plan.add_planning(*command);
  flags->plan.add_device(*command);
  std::string help = "what to print instead, comma-separated:";
  for (const DumpKind& kind : dump_kinds()) help += fmt::format("\n{} = {}", kind.name, kind.help);
  command->add_option("--dump", flags->dumps, help)->delimiter(',');
  command
      ->add_option("--kernel,-k", flags->kernels.kernels,
                   "only of these kernels, by id or name, comma-separated")
      ->delimiter(',');
  command->add_option("-o,--output", flags->output, "write the plan as JSON");
  add_common(*command, cli,
             "  stitchwork plan fig7 --planner astitch --set mapping=paper\n"
             "  stitchwork plan bert_base --planner xla --device a100-sxm-80 -o bert.xla.json\n"
             "  stitchwork plan softmax --dump=kernel,cuda\n"
             "  stitchwork plan bert_layer --dump=cuda --kernel k0");
  command->callback([&cli, flags] { plan(cli, *flags); });
}

void add_verify(CLI::App& app, Cli& cli) {
  CLI::App* command = app.add_subcommand("verify", "check a saved or hand-edited plan");
  auto file = std::make_shared<std::string>();
  command->add_option("PLAN", *file, "plan JSON")->required();
  auto open = std::make_shared<ModelOptions>();
  open->add(*command);
  add_common(*command, cli, "  stitchwork plan fig7 -o plan.json && stitchwork verify plan.json");
  command->callback([&cli, file, open] { verify_file(cli, *file, *open); });
}

}  // namespace stitchwork
