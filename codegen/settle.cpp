#include "codegen/settle.h"

#include <algorithm>
#include <optional>

#include "core/error.h"
#include "occupancy_model/occupancy.h"

namespace stitchwork {
namespace {

/// Rounds of planning again: an SM holds few blocks of a kernel that spills, and splits are rare.
constexpr int kMaxRounds = 8;
constexpr int kWarp = 32;
/// A thread cannot address more. Half the threads of an SM's one block have twice the registers, up to these.
constexpr int kMostRegisters = 255;

/// What is wrong with a compiled kernel; ok if nothing is.
Verdict fits(const Device& device, const KernelPlan& plan, const CompiledKernel& compiled) {
  if (compiled.spill_bytes.value_or(0) > 0)
    return Verdict::no("compile.spills",
                       fmt::format("{} bytes of registers spilled at {} registers a thread, {} blocks an SM",
                                   *compiled.spill_bytes, compiled.registers, plan.launch.blocks_per_sm));
  if (plan.launch.grid_barriers == 0 || compiled.registers == 0) return Verdict::yes();
  const Occupancy held = occupancy(device, plan.launch.block, compiled.registers, plan.launch.shared_bytes);
  const std::int64_t resident = std::int64_t{held.blocks_per_sm} * device.sms;
  if (resident >= plan.launch.grid) return Verdict::yes();
  return Verdict::no("compile.resident",
                     fmt::format("{} registers a thread leave {} blocks resident, its grid of {} "
                                 "meets at barriers",
                                 compiled.registers, resident, plan.launch.grid));
}

/// The Global value of a kernel that costs least to pass to another kernel: outputs are written anyway.
std::optional<NodeId> cheapest_global(const Graph& graph, const KernelPlan& kernel) {
  const Computation& computation = graph.entry_computation();
  std::optional<NodeId> best;
  for (const auto& [op, scheme] : kernel.schemes) {
    if (scheme != Scheme::kGlobal) continue;
    if (!best || computation.node(op).shape.byte_size() < computation.node(*best).shape.byte_size())
      best = op;
  }
  return best;
}

/// What to plan otherwise for a kernel that does not fit.
std::optional<Edit> remedy(const Graph& graph, const KernelPlan& kernel) {
  const Computation& computation = graph.entry_computation();
  if (kernel.launch.blocks_per_sm > 1)
    return Edit{EditKind::kResidency,
                {computation.node(kernel.outputs.back()).name},
                "",
                kernel.launch.blocks_per_sm / 2};
  if (kernel.launch.register_bound > 0 && kernel.launch.register_bound < kMostRegisters &&
      kernel.launch.block >= 2 * kWarp)
    return Edit{EditKind::kBlock,
                {computation.node(kernel.outputs.back()).name},
                "",
                kernel.launch.block / 2 / kWarp * kWarp};
  if (const auto value = cheapest_global(graph, kernel))
    return Edit{EditKind::kSplit, {computation.node(*value).name}, "", 0};
  return std::nullopt;
}

/// Adds an edit; a residency or block replaces an earlier one of the same op.
void add_edit(std::vector<Edit>& edits, Edit edit) {
  std::erase_if(edits, [&](const Edit& old) {
    const bool number = edit.kind == EditKind::kResidency || edit.kind == EditKind::kBlock;
    return number && old.kind == edit.kind && old.ops == edit.ops;
  });
  edits.push_back(std::move(edit));
}

}  // namespace

Executable compile_settled(const Graph& graph, const Device& device, FusionPlan plan, const Replan& replan,
                           const CompileOptions& options) {
  std::vector<Decision> checks;
  std::vector<Edit> more;
  for (int round = 0;; ++round) {
    Executable executable = compile(graph, device, plan, options);
    std::vector<Edit> wanted = more;
    bool changed = false;
    for (std::size_t k = 0; k < executable.kernels.size(); ++k) {
      const KernelPlan& kernel = plan.kernels[k];
      const Verdict verdict = fits(device, kernel, executable.kernels[k]);
      if (verdict) continue;
      checks.push_back({"compile", kernel.name, "", verdict});
      if (!replan || round == kMaxRounds) continue;
      std::optional<Edit> edit = remedy(graph, kernel);
      if (!edit) continue;
      checks.push_back({"compile", kernel.name, "", Verdict::yes("compile.retry", to_text(*edit))});
      add_edit(wanted, std::move(*edit));
      changed = true;
    }
    executable.checks = checks;
    if (!changed) return executable;
    try {
      plan = replan(wanted);
    } catch (const Error& error) {  // the planner refuses: the kernel stays as it is
      executable.checks.push_back({"compile", "", "", Verdict::no("compile.retry", error.message())});
      return executable;
    }
    more = std::move(wanted);
  }
}

}  // namespace stitchwork
