// stitchwork plan MODEL, stitchwork verify PLAN.json
#include <algorithm>
#include <nlohmann/json.hpp>

#include "analysis/plan/control_flow.h"
#include "analysis/plan/plan_json.h"
#include "analysis/planners/fusionstitching/ilp/template_text.h"
#include "analysis/verify/verify.h"
#include "cli/cli.h"
#include "cli/table.h"
#include "codegen/executable.h"
#include "core/base/error.h"
#include "core/base/file.h"
#include "core/base/suggest.h"
#include "core/hlo/hlo_text.h"
#include "occupancy_model/occupancy.h"

namespace stitchwork {
namespace {

using nlohmann::ordered_json;

/// The kernels asked for: all, or those of these ids or names.
struct Wanted {
  std::vector<std::string> kernels;

  bool operator()(const KernelPlan& kernel) const {
    return kernels.empty() || std::find(kernels.begin(), kernels.end(), kernel.id) != kernels.end() ||
           std::find(kernels.begin(), kernels.end(), kernel.name) != kernels.end();
  }
};

/// What --dump can print, in the order of the road.
struct DumpKind {
  std::string_view name, help;
  std::string (*print)(const Planned&, const Wanted&);
};

/// Calls visit(graph, kernel) of the kernels asked for: of the entry, then of what loops and branches run.
template <typename Visit>
void for_each_kernel(const Planned& p, const Wanted& wanted, Visit visit) {
  for (const KernelPlan& kernel : p.plan.kernels)
    if (wanted(kernel)) visit(p.model.graph, kernel);
  for (const ComputationPlan& part : p.plan.computations) {
    const Graph graph = entered(p.model.graph, part.computation);
    for (const KernelPlan& kernel : part.plan.kernels)
      if (wanted(kernel)) visit(graph, kernel);
  }
}

std::string dump_graph(const Planned& p, const Wanted&) { return to_text(p.model.graph); }

std::string dump_dominants(const Planned& p, const Wanted& wanted) {
  std::string text;
  for_each_kernel(p, wanted, [&](const Graph& graph, const KernelPlan& kernel) {
    const Computation& entry = graph.entry_computation();
    for (const Group& group : kernel.groups) {
      text += fmt::format("{} {}: dominant {}", kernel.id, kernel.name, entry.node(group.dominant).name);
      for (NodeId id : group.sub_dominants) text += fmt::format(", sub-dominant {}", entry.node(id).name);
      text += fmt::format("; {}\n", to_text(group.mapping, group.deal));
    }
  });
  return text;
}

std::string dump_plan(const Planned& p, const Wanted&) { return to_text(p.model.graph, p.plan); }

std::string dump_schedule(const Planned& p, const Wanted& wanted) {
  std::string text;
  for_each_kernel(p, wanted, [&](const Graph& graph, const KernelPlan& kernel) {
    text += to_text(graph, build_schedule(graph, kernel)) + "\n";
  });
  return text;
}

std::string dump_cuda(const Planned& p, const Wanted& wanted) {
  std::string text;
  for_each_kernel(p, wanted, [&](const Graph& graph, const KernelPlan& kernel) {
    text += to_cuda(graph, build_schedule(graph, kernel), false) + "\n";
  });
  return text;
}

std::string dump_ptx(const Planned& p, const Wanted& wanted) {
  std::string text;
  const Executable executable = compile(p.model.graph, *p.device, p.plan);
  const auto add = [&](const FusionPlan& plan, const std::vector<CompiledKernel>& kernels) {
    for (std::size_t k = 0; k < kernels.size(); ++k)
      if (wanted(plan.kernels[k])) text += kernels[k].ptx + "\n";
  };
  add(p.plan, executable.kernels);
  for (std::size_t c = 0; c < executable.computations.size(); ++c)
    add(p.plan.computations[c].plan, executable.computations[c].kernels);
  return text;
}

std::string dump_templates(const Planned& p, const Wanted& wanted) {
  std::string text;
  for_each_kernel(p, wanted, [&](const Graph& graph, const KernelPlan& kernel) {
    const Computation& entry = graph.entry_computation();
    text += fmt::format("{} {}: cta_num {}, cta_size {}\n  {}\n", kernel.id, kernel.name, kernel.launch.grid,
                        kernel.launch.block,
                        fusionstitching::to_text(entry, fusionstitching::schedules_of(entry, kernel)));
  });
  return text;
}

std::string dump_occupancy(const Planned& p, const Wanted& wanted) {
  Table table(
      {"kernel", ">grid", ">block", ">shared B", ">reg bound", ">blocks/SM", ">occupancy", "limited by"});
  for_each_kernel(p, wanted, [&](const Graph&, const KernelPlan& k) {
    const int registers = k.launch.register_bound > 0 ? k.launch.register_bound : 32;
    const Occupancy o = occupancy(*p.device, k.launch.block, registers, k.launch.shared_bytes);
    table.add({k.id + " " + k.name, fmt::to_string(k.launch.grid), fmt::to_string(k.launch.block),
               fmt::to_string(k.launch.shared_bytes), fmt::to_string(registers),
               fmt::to_string(o.blocks_per_sm), fmt::format("{:.0f}%", 100 * o.warps_ratio), o.limiter});
  });
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

struct PlanFlags {
  PlanArguments plan;
  std::vector<std::string> dumps;
  Wanted kernels;
  std::string output;
};

std::vector<const DumpKind*> dump_kinds(const std::vector<std::string>& dumps) {
  std::vector<const DumpKind*> wanted;
  for (const std::string& dump : dumps) {
    const auto* found =
        std::find_if(std::begin(kDumps), std::end(kDumps), [&](const DumpKind& k) { return k.name == dump; });
    if (found == std::end(kDumps)) {
      std::vector<std::string_view> names;
      for (const DumpKind& k : kDumps) names.push_back(k.name);
      throw Error(fmt::format("--dump={}: no such dump", dump),
                  fmt::format("known: {}", fmt::join(names, ", ")));
    }
    wanted.push_back(found);
  }
  return wanted;
}

void require_kernels(const Planned& planned, const Wanted& wanted) {
  for (const std::string& name : wanted.kernels) {
    std::vector<std::string> names;
    bool found = false;
    for_each_kernel(planned, {}, [&](const Graph&, const KernelPlan& kernel) {
      found = found || kernel.id == name || kernel.name == name;
      names.push_back(kernel.name);
    });
    if (found) continue;
    const std::string_view near = closest(name, {names.begin(), names.end()});
    throw Error(fmt::format("--kernel {}: the plan has no such kernel", name),
                near.empty() ? std::string("`stitchwork plan MODEL` lists them")
                             : fmt::format("did you mean {}?", near));
  }
}

void print_dumps(const Cli& cli, const Planned& planned, const std::vector<const DumpKind*>& kinds,
                 const Wanted& kernels) {
  require_kernels(planned, kernels);
  if (cli.json) {
    ordered_json dumps = ordered_json::array();
    for (const DumpKind* kind : kinds)
      dumps.push_back({{"kind", kind->name}, {"text", kind->print(planned, kernels)}});
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
  const std::vector<const DumpKind*> kinds = dump_kinds(flags.dumps);
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
    cli.print(dump_plan(planned, {}));
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
  for (const DumpKind& kind : kDumps) help += fmt::format("\n{} = {}", kind.name, kind.help);
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
