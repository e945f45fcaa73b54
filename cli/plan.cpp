// stitchwork plan MODEL, stitchwork verify PLAN.json
#include <algorithm>
#include <nlohmann/json.hpp>

#include "analysis/json/plan_json.h"
#include "analysis/verify/verify.h"
#include "cli/cli.h"
#include "cli/compare_graphs.h"
#include "cli/dumps.h"
#include "cli/peer_dump.h"
#include "cli/peer_plan.h"
#include "cli/usage.h"
#include "core/base/error.h"
#include "core/base/file.h"
#include "core/base/format.h"

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
  if (const std::string dump = dump_of(flags.plan); !dump.empty())
    for (const DumpKind* kind : kinds)
      if (kind->name != "graph" && kind->name != "plan")
        throw Error(fmt::format("--dump={} is of planners' kernels: {} has a compiler's", kind->name, dump),
                    "its PTX lies in the folder; --dump=graph,plan is there");
  const Planned planned = load_planned(flags.plan);
  const auto document = [&] { return plan_document(planned.model.graph, planned.plan); };
  if (!flags.output.empty()) write_file(flags.output, document().dump(2) + "\n");
  if (!kinds.empty()) {
    print_dumps(cli, planned, kinds, flags.kernels);
  } else if (cli.json) {
    cli.print(document());
  } else if (flags.output.empty()) {
    cli.print(to_text(planned.model.graph, planned.plan));
  } else if (planned.plan.peer != nullptr) {
    cli.print(fmt::format("{}: {}; not run", flags.output, to_text(planned.plan.counts)));
  } else {
    const double once_us = planned.plan.once_us;
    cli.print(fmt::format("{}: {}; predicted {:.1f} us{} (modelled)", flags.output,
                          to_text(planned.plan.counts), planned.plan.predicted_us,
                          once_us > 0 ? fmt::format(", and {:.1f} us once", once_us) : ""));
  }
}

struct VerifyFlags {
  std::string file;
  ModelOptions open;
  bool numerics = false;
  std::uint64_t seed = 0;
};

/// How many of the ops that differ are printed; the rest are counted.
constexpr std::size_t kOpsShown = 10;

/// What the plan's rewriting makes of values; a plan of the model as it is computes what the model does.
ordered_json numerics_json(const std::optional<GraphComparison>& comparison, std::uint64_t seed) {
  if (!comparison) return nullptr;
  ordered_json result = to_json(*comparison, seed), differ = ordered_json::array();
  for (const ArrayError& error : comparison->differ)
    differ.push_back({{"op", error.op},
                      {"shape", error.shape},
                      {"max_abs_error", error.max_abs},
                      {"max_rel_error", error.max_rel}});
  result["ops"] = comparison->ops;
  result["differ"] = std::move(differ);
  return result;
}

void verify_file(Cli& cli, const VerifyFlags& flags) {
  const std::string& file = flags.file;
  refuse_dump(file, "verified: `stitchwork run DUMP --check` says whether it computes the model");
  const std::string text = read_file(file);
  const Model model = flags.open.load(model_of_plan(read_plan_header(text, file).model_path, file));
  const FusionPlan plan = plan_from_json(model.graph, text, file);
  const std::vector<Verdict> problems = verify(model.graph, device(plan.device), plan);
  std::optional<GraphComparison> comparison;
  if (flags.numerics && problems.empty() && plan.rewritten)
    comparison = compare_graphs(model, *plan.rewritten, flags.seed, true);
  const bool ok = problems.empty() && (!comparison || comparison->judged.ok);
  if (cli.json) {
    ordered_json rows = ordered_json::array();
    for (const Verdict& v : problems) rows.push_back({{"rule", v.rule}, {"why", v.why}});
    ordered_json document{{"schema", "stitchwork.verify/1"}, {"ok", ok}, {"problems", rows}};
    if (flags.numerics) document["numerics"] = numerics_json(comparison, flags.seed);
    cli.print(document);
  } else if (problems.empty()) {
    std::string said = fmt::format("{}: ok, {}\n", file, counted(std::ssize(plan.kernels), "kernel"));
    if (comparison)
      said += results_text(*comparison) + ops_text(*comparison, kOpsShown);
    else if (flags.numerics)
      said += "the plan rewrites nothing: its kernels compute the model's own ops\n";
    cli.print(said);
  } else {
    for (const Verdict& v : problems)
      cli.err << fmt::format("stitchwork: {}: {} [{}]\n", file, v.why, v.rule);
  }
  if (!ok) cli.exit_code = kExitBadInput;
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
             "  stitchwork plan bert_layer --dump=cuda --kernel k0\n"
             "  stitchwork plan dumps/softmax-a100 --json");
  command->callback([&cli, flags, command] {
    if (const std::string dump = dump_of(flags->plan); !dump.empty())
      refuse_options(*command, dump,
                     {"--planner", "--device", "--set", "--override", "--library", "--mixed", "--tf32",
                      "--weights", "--kernel", "--trips"});
    plan(cli, *flags);
  });
}

void add_verify(CLI::App& app, Cli& cli) {
  CLI::App* command = app.add_subcommand("verify", "check a saved or hand-edited plan");
  auto flags = std::make_shared<VerifyFlags>();
  command->add_option("PLAN", flags->file, "plan JSON")->required();
  flags->open.add(*command);
  command->add_flag(
      "--numerics", flags->numerics,
      "of a plan of a rewritten graph: evaluate it and the model, and say where and by how much "
      "results and ops differ");
  add_seed(*command, flags->seed, "of the inputs of --numerics");
  add_common(
      *command, cli,
      "  stitchwork plan fig7 -o plan.json && stitchwork verify plan.json\n"
      "  stitchwork plan softmax_block -p korch -o korch.json && stitchwork verify korch.json --numerics");
  command->callback([&cli, flags] { verify_file(cli, *flags); });
}

}  // namespace stitchwork
