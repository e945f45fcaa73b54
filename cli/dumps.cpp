#include "cli/dumps.h"

#include <algorithm>
#include <nlohmann/json.hpp>

#include "analysis/plan/control_flow.h"
#include "analysis/plan/memory_text.h"
#include "analysis/planners/astra/space.h"
#include "analysis/planners/fission/program_text.h"
#include "analysis/planners/fusionstitching/ilp/template_text.h"
#include "cli/table.h"
#include "codegen/executable.h"
#include "core/base/error.h"
#include "core/base/format.h"
#include "core/base/suggest.h"
#include "core/hlo/hlo_text.h"
#include "occupancy_model/occupancy.h"

namespace stitchwork {
namespace {

using nlohmann::ordered_json;

/// Calls visit(graph, kernel) of the kernels asked for: of the entry, then of what loops and branches run.
template <typename Visit>
void for_each_kernel(const Planned& p, const WantedKernels& wanted, Visit visit) {
  for (const KernelPlan& kernel : p.plan.kernels)
    if (wanted(kernel)) visit(p.graph(), kernel);
  for (const ComputationPlan& part : p.plan.computations) {
    const Graph graph = entered(p.graph(), part.computation);
    for (const KernelPlan& kernel : part.plan.kernels)
      if (wanted(kernel)) visit(graph, kernel);
  }
}

std::string dump_graph(const Planned& p, const WantedKernels&) { return to_text(p.graph()); }

std::string dump_dominants(const Planned& p, const WantedKernels& wanted) {
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

std::string dump_plan(const Planned& p, const WantedKernels&) { return to_text(p.graph(), p.plan); }

std::string dump_schedule(const Planned& p, const WantedKernels& wanted) {
  std::string text;
  for_each_kernel(p, wanted, [&](const Graph& graph, const KernelPlan& kernel) {
    text += to_text(graph, build_schedule(graph, kernel)) + "\n";
  });
  return text;
}

std::string dump_cuda(const Planned& p, const WantedKernels& wanted) {
  std::string text;
  for_each_kernel(p, wanted, [&](const Graph& graph, const KernelPlan& kernel) {
    text += to_cuda(graph, build_schedule(graph, kernel), false) + "\n";
  });
  return text;
}

std::string dump_ptx(const Planned& p, const WantedKernels& wanted) {
  std::string text;
  const Executable executable = compile(p.graph(), *p.device, p.plan);
  const auto add = [&](const FusionPlan& plan, const std::vector<CompiledKernel>& kernels) {
    for (std::size_t k = 0; k < kernels.size(); ++k)
      if (wanted(plan.kernels[k])) text += kernels[k].ptx + "\n";
  };
  add(p.plan, executable.kernels);
  for (std::size_t c = 0; c < executable.computations.size(); ++c)
    add(p.plan.computations[c].plan, executable.computations[c].kernels);
  return text;
}

std::string dump_templates(const Planned& p, const WantedKernels& wanted) {
  std::string text;
  for_each_kernel(p, wanted, [&](const Graph& graph, const KernelPlan& kernel) {
    const Computation& entry = graph.entry_computation();
    text += fmt::format("{} {}: cta_num {}, cta_size {}\n  {}\n", kernel.id, kernel.name, kernel.launch.grid,
                        kernel.launch.block,
                        fusionstitching::to_text(entry, fusionstitching::schedules_of(entry, kernel)));
  });
  return text;
}

using ProgramText = std::string (*)(const Computation&, const std::vector<fission::WindowProgram>&);

/// What the program of `korch` chooses from, of the graph as it was planned.
template <ProgramText kText>
std::string dump_programs(const Planned& p, const WantedKernels&) {
  return kText(p.graph().entry_computation(), fission::programs(p.graph(), *p.device, p.plan.options));
}

std::string dump_occupancy(const Planned& p, const WantedKernels& wanted) {
  Table table(
      {"kernel", ">grid", ">block", ">shared B", ">reg bound", ">blocks/SM", ">occupancy", "limited by"});
  for_each_kernel(p, wanted, [&](const Graph&, const KernelPlan& k) {
    const int registers = k.launch.register_bound > 0 ? k.launch.register_bound : 32;
    const Occupancy o = occupancy(*p.device, k.launch.block, registers, k.launch.shared_bytes);
    table.add({k.id + " " + k.name, fmt::to_string(k.launch.grid), fmt::to_string(k.launch.block),
               fmt::to_string(k.launch.shared_bytes), fmt::to_string(registers),
               fmt::to_string(o.blocks_per_sm), percent(o.warps_ratio), o.limiter});
  });
  return table.text();
}

/// Calls visit(graph, plan, name) of the entry, then of what loops and branches run.
template <typename Visit>
void for_each_plan(const Planned& p, Visit visit) {
  visit(p.graph(), p.plan, p.graph().entry_computation().name);
  for (const ComputationPlan& part : p.plan.computations) {
    FusionPlan with_callees = part.plan;
    with_callees.computations = p.plan.computations;
    const Graph graph = entered(p.graph(), part.computation);
    visit(graph, with_callees, graph.entry_computation().name);
  }
}

std::string dump_memory(const Planned& p, const WantedKernels&) {
  std::string text;
  for_each_plan(p, [&](const Graph& graph, const FusionPlan& plan, const std::string& name) {
    if (!p.plan.computations.empty()) text += fmt::format("{}{}\n", text.empty() ? "" : "\n", name);
    text += to_text(graph, plan, plan_memory(graph, plan));
  });
  return text;
}

ordered_json memory_document(const Planned& p) {
  ordered_json list = ordered_json::array();
  for_each_plan(p, [&](const Graph& graph, const FusionPlan& plan, const std::string& name) {
    ordered_json one{{"computation", name}};
    one.update(memory_json(graph, plan, plan_memory(graph, plan)));
    list.push_back(std::move(one));
  });
  return list;
}

std::string dump_space(const Planned& p, const WantedKernels&) {
  std::string text;
  for_each_plan(p, [&](const Graph& graph, const FusionPlan& plan, const std::string& name) {
    if (!p.plan.computations.empty()) text += fmt::format("{}{}\n", text.empty() ? "" : "\n", name);
    text += astra::to_text(graph, *p.device, plan, astra::enumerate(graph, plan));
  });
  return text;
}

ordered_json space_document(const Planned& p) {
  ordered_json list = ordered_json::array();
  for_each_plan(p, [&](const Graph& graph, const FusionPlan& plan, const std::string& name) {
    ordered_json one{{"computation", name}};
    one.update(astra::space_json(graph, *p.device, plan, astra::enumerate(graph, plan)));
    list.push_back(std::move(one));
  });
  return list;
}

constexpr DumpKind kDumps[] = {
    {"graph", "the canonical graph, as HLO text", dump_graph},
    {"dominants", "dominant and sub-dominant ops and their thread mappings", dump_dominants},
    {"plan", "kernels, groups, schemes, launches", dump_plan},
    {"templates",
     "how what each kernel stores is dealt to the grid, warps and threads (FusionStitching 2019)",
     dump_templates},
    {"primitives", "ops that kernels are chosen for, in windows, and their execution states (korch)",
     dump_programs<fission::primitives_text>},
    {"candidates", "kernels that might compute them, with prices; what is chosen is marked (korch)",
     dump_programs<fission::candidates_text>},
    {"program", "the binary program that chooses, in LP format for any solver (korch)",
     dump_programs<fission::program_text>},
    {"schedule", "what each kernel does: phases, task loops, steps, values, where they lie", dump_schedule},
    {"kernel", "the same, under its older name", dump_schedule},
    {"cuda", "the CUDA C++ of every kernel", dump_cuda},
    {"ptx", "the PTX of every kernel", dump_ptx},
    {"occupancy", "residency of every kernel on the device", dump_occupancy},
    {"memory", "device memory: the peak, what is alive at each step, each buffer's first and last",
     dump_memory, memory_document},
    {"space", "what Astra's exploration would try: products that become one, where their arrays lie, streams",
     dump_space, space_document},
};

}  // namespace

bool WantedKernels::operator()(const KernelPlan& kernel) const {
  return kernels.empty() || std::find(kernels.begin(), kernels.end(), kernel.id) != kernels.end() ||
         std::find(kernels.begin(), kernels.end(), kernel.name) != kernels.end();
}

std::span<const DumpKind> dump_kinds() { return kDumps; }

const DumpKind& dump_kind(std::string_view name) {
  const auto* found = std::ranges::find(kDumps, name, &DumpKind::name);
  if (found != std::end(kDumps)) return *found;
  std::vector<std::string_view> names;
  for (const DumpKind& k : kDumps) names.push_back(k.name);
  throw Error(fmt::format("--dump={}: no such dump", name), fmt::format("known: {}", fmt::join(names, ", ")));
}

void require_kernels(const Planned& planned, const WantedKernels& wanted) {
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

}  // namespace stitchwork
