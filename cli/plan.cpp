// stitchwork plan MODEL, stitchwork verify PLAN.json
#include <algorithm>
#include <nlohmann/json.hpp>

#include "analysis/facts/facts.h"
#include "analysis/plan/plan_json.h"
#include "analysis/planners/fusionstitching/ilp/template_text.h"
#include "analysis/verify/verify.h"
#include "cli/cli.h"
#include "cli/table.h"
#include "codegen/executable.h"
#include "core/base/error.h"
#include "core/base/file.h"
#include "core/hlo/hlo_text.h"
#include "occupancy_model/occupancy.h"

namespace stitchwork {
namespace {

using nlohmann::ordered_json;

/// What --dump can print, in the order of the road.
struct DumpKind {
  std::string_view name, help;
  std::string (*print)(const Planned&);
};

std::string dump_graph(const Planned& p) { return to_text(p.model.graph); }

std::string dump_dominants(const Planned& p) {
  const Computation& entry = p.model.graph.entry_computation();
  std::string text;
  for (const KernelPlan& kernel : p.plan.kernels)
    for (const Group& group : kernel.groups) {
      text += fmt::format("{} {}: dominant {}", kernel.id, kernel.name, entry.node(group.dominant).name);
      for (NodeId id : group.sub_dominants) text += fmt::format(", sub-dominant {}", entry.node(id).name);
      text += fmt::format("; {}\n", to_text(group.mapping, group.deal));
    }
  return text;
}

std::string dump_plan(const Planned& p) { return to_text(p.model.graph, p.plan); }

std::string dump_schedule(const Planned& p) {
  std::string text;
  for (const KernelPlan& kernel : p.plan.kernels)
    text += to_text(p.model.graph, build_schedule(p.model.graph, kernel)) + "\n";
  return text;
}

std::string dump_cuda(const Planned& p) {
  std::string text;
  for (const KernelPlan& kernel : p.plan.kernels)
    text += to_cuda(p.model.graph, build_schedule(p.model.graph, kernel), false) + "\n";
  return text;
}

std::string dump_ptx(const Planned& p) {
  std::string text;
  for (const CompiledKernel& kernel : compile(p.model.graph, *p.device, p.plan).kernels)
    text += kernel.ptx + "\n";
  return text;
}

std::string dump_templates(const Planned& p) {
  const Computation& entry = p.model.graph.entry_computation();
  std::string text;
  for (const KernelPlan& kernel : p.plan.kernels)
    text += fmt::format("{} {}: cta_num {}, cta_size {}\n  {}\n", kernel.id, kernel.name, kernel.launch.grid,
                        kernel.launch.block,
                        fusionstitching::to_text(entry, fusionstitching::schedules_of(entry, kernel)));
  return text;
}

std::string dump_occupancy(const Planned& p) {
  Table table(
      {"kernel", ">grid", ">block", ">shared B", ">reg bound", ">blocks/SM", ">occupancy", "limited by"});
  for (const KernelPlan& k : p.plan.kernels) {
    const int registers = k.launch.register_bound > 0 ? k.launch.register_bound : 32;
    const Occupancy o = occupancy(*p.device, k.launch.block, registers, k.launch.shared_bytes);
    table.add({k.id + " " + k.name, fmt::to_string(k.launch.grid), fmt::to_string(k.launch.block),
               fmt::to_string(k.launch.shared_bytes), fmt::to_string(registers),
               fmt::to_string(o.blocks_per_sm), fmt::format("{:.0f}%", 100 * o.warps_ratio), o.limiter});
  }
  return table.text();
}

constexpr DumpKind kDumps[] = {
    {"graph", "the canonical graph, as HLO text", dump_graph},
    {"dominants", "dominant and sub-dominant ops and their thread mappings", dump_dominants},
    {"plan", "kernels, groups, schemes, launches", dump_plan},
    {"templates",
     "how what each kernel stores is dealt to the grid, warps and threads (FusionStitching 2019)",
     dump_templates},
    {"schedule", "what each kernel does: phases, task loops, steps, values, where they lie", dump_schedule},
    {"kernel", "the same, under its older name", dump_schedule},
    {"cuda", "the CUDA C++ of every kernel", dump_cuda},
    {"ptx", "the PTX of every kernel", dump_ptx},
    {"occupancy", "residency of every kernel on the device", dump_occupancy},
};

void plan(Cli& cli, const PlanArguments& arguments, const std::vector<std::string>& dumps,
          const std::string& output) {
  std::vector<const DumpKind*> wanted;
  for (const std::string& dump : dumps) {
    const auto found =
        std::find_if(std::begin(kDumps), std::end(kDumps), [&](const DumpKind& k) { return k.name == dump; });
    if (found == std::end(kDumps)) {
      std::vector<std::string_view> names;
      for (const DumpKind& k : kDumps) names.push_back(k.name);
      throw Error(fmt::format("--dump={}: no such dump", dump),
                  fmt::format("known: {}", fmt::join(names, ", ")));
    }
    wanted.push_back(found);
  }
  const Planned planned = load_planned(arguments);
  const auto document = [&] { return plan_document(planned.model.graph, planned.plan); };
  if (!output.empty()) write_file(output, document().dump(2) + "\n");
  if (!wanted.empty()) {
    for (const DumpKind* dump : wanted) {
      if (wanted.size() > 1) cli.print(fmt::format("--- {}", dump->name));
      cli.print(dump->print(planned));
    }
  } else if (cli.json) {
    cli.print(document());
  } else if (output.empty()) {
    cli.print(dump_plan(planned));
  } else {
    cli.print(fmt::format("{}: {}; predicted {:.1f} us (modelled)", output, to_text(planned.plan.counts),
                          planned.plan.predicted_us));
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
  auto arguments = std::make_shared<PlanArguments>();
  auto dumps = std::make_shared<std::vector<std::string>>();
  auto output = std::make_shared<std::string>();
  arguments->add_model(*command);
  arguments->add_planning(*command);
  arguments->add_device(*command);
  std::string help = "what to print instead, comma-separated:";
  for (const DumpKind& kind : kDumps) help += fmt::format("\n{} = {}", kind.name, kind.help);
  command->add_option("--dump", *dumps, help)->delimiter(',');
  command->add_option("-o,--output", *output, "write the plan as JSON");
  add_common(*command, cli,
             "  stitchwork plan fig7 --planner astitch --set mapping=paper\n"
             "  stitchwork plan bert_base --planner xla --device a100-sxm-80 -o bert.xla.json\n"
             "  stitchwork plan softmax --dump=kernel,cuda");
  command->callback([&cli, arguments, dumps, output] { plan(cli, *arguments, *dumps, *output); });
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
