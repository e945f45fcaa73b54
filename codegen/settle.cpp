#include "codegen/settle.h"

#include <algorithm>
#include <limits>
#include <optional>
#include <set>
#include <utility>

#include "core/base/error.h"
#include "core/base/format.h"
#include "occupancy_model/errors.h"
#include "occupancy_model/hardware.h"
#include "occupancy_model/occupancy.h"

namespace stitchwork {
namespace {

/// Rounds of planning again: an SM holds few blocks of a kernel that spills, and splits are rare.
/// A choice, not measured: it bounds the time of compiling.
constexpr int kMaxRounds = 8;
/// A thread cannot address more. Half the threads of an SM's one block have twice the registers, up to these.
/// CUDA Programming Guide: registers a thread.
constexpr int kMostRegisters = 255;

/// What is wrong with a compiled kernel; ok if nothing is.
Verdict fits(const Device& device, const KernelPlan& plan, const CompiledKernel& compiled) {
  if (compiled.spill_bytes.value_or(0) > 0)
    return Verdict::no(
        "compile.spills",
        fmt::format("{} bytes of registers spilled at {} registers a thread, {} an SM", *compiled.spill_bytes,
                    compiled.registers, counted(plan.launch.blocks_per_sm, "block")));
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

/// Modelled time of a compiled kernel in us: the plan's estimate, and its spills. A spilled byte is written
/// through the L1 and read back, at the L2's bandwidth at worst; ptxas counts a thread's once, and a thread
/// spills in every task.
double price_us(const Device& device, const KernelPlan& plan, const CompiledKernel& compiled) {
  std::int64_t tasks = 1;
  for (const Group& group : plan.groups) tasks = std::max(tasks, group.deal.most_tasks());
  const double bytes = static_cast<double>(compiled.spill_bytes.value_or(0)) *
                       static_cast<double>(plan.launch.grid * plan.launch.block * tasks);
  return plan.predicted_us + bytes / (device.l2_gb_s * 1e3);
}

/// A plan made with these edits, compiled.
struct Attempt {
  std::vector<Edit> edits;
  Executable executable;
  bool launches = true;      ///< every grid with barriers is resident
  double us = 0;             ///< of all kernels
  std::int64_t spilled = 0;  ///< bytes a thread, over all kernels
};

/// Of those that launch, if any: the one with the fewest spills of those that estimates may not tell from the
/// fastest.
const Attempt& chosen(const std::vector<Attempt>& attempts) {
  const bool launches = std::ranges::any_of(attempts, &Attempt::launches);
  const auto counts = [&](const Attempt& attempt) { return attempt.launches == launches; };
  double least = std::numeric_limits<double>::infinity();
  for (const Attempt& attempt : attempts)
    if (counts(attempt)) least = std::min(least, attempt.us);
  const Attempt* best = nullptr;
  for (const Attempt& attempt : attempts) {
    if (!counts(attempt) || attempt.us > (1 + kChoiceError) * least) continue;
    if (best == nullptr || std::pair(attempt.spilled, attempt.us) < std::pair(best->spilled, best->us))
      best = &attempt;
  }
  return *best;
}

/// The kernels of `attempt` that hold one of `ops`, in us; `covered` becomes all that they store: what
/// several kernels compute again for themselves ties none of them together.
double price_us(const Device& device, const Attempt& attempt, const std::set<NodeId>& ops,
                std::set<NodeId>& covered) {
  double us = 0;
  for (std::size_t k = 0; k < attempt.executable.kernels.size(); ++k) {
    const KernelPlan& kernel = attempt.executable.plan.kernels[k];
    if (std::ranges::none_of(kernel.ops, [&](NodeId op) { return ops.contains(op); })) continue;
    covered.insert(kernel.outputs.begin(), kernel.outputs.end());
    us += price_us(device, kernel, attempt.executable.kernels[k]) + device.launch_gap_us;
  }
  return us;
}

/// The edits of `after` but those for kernels of `before` whose ops it made clearly dearer, each judged with
/// whatever shares kernels with them.
std::vector<Edit> worthwhile(const Graph& graph, const Device& device, const Attempt& before,
                             const Attempt& after) {
  std::vector<Edit> edits = after.edits;
  for (const KernelPlan& kernel : before.executable.plan.kernels) {
    const std::set<NodeId> ops(kernel.ops.begin(), kernel.ops.end()),
        stored(kernel.outputs.begin(), kernel.outputs.end());
    std::set<NodeId> covered, ignored;
    const double after_us = price_us(device, after, stored, covered);
    if (after_us <= (1 + kChoiceError) * price_us(device, before, covered, ignored)) continue;
    std::erase_if(edits, [&](const Edit& edit) {
      return ops.contains(graph.entry_computation().find(edit.ops.at(0)));
    });
  }
  return edits;
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

Executable compile_settled(const Graph& model, const Device& device, const FusionPlan& plan,
                           const Replan& replan, const CompileOptions& options) {
  const Graph& graph = planned_graph(model, plan);
  const auto attempt = [&](const FusionPlan& made, std::vector<Edit> edits) {
    Attempt result{std::move(edits), compile(graph, device, made, options)};
    for (std::size_t k = 0; k < result.executable.kernels.size(); ++k) {
      const KernelPlan& kernel = result.executable.plan.kernels[k];
      const CompiledKernel& compiled = result.executable.kernels[k];
      if (fits(device, kernel, compiled).rule == "compile.resident") result.launches = false;
      result.us += price_us(device, kernel, compiled) + device.launch_gap_us;
      result.spilled += compiled.spill_bytes.value_or(0);
    }
    return result;
  };
  std::vector<Decision> checks;
  std::vector<Attempt> attempts;
  attempts.push_back(attempt(plan, {}));
  for (int round = 0;; ++round) {
    const Attempt& last = attempts.back();
    std::vector<Edit> wanted = last.edits;
    bool changed = false;
    for (std::size_t k = 0; k < last.executable.kernels.size(); ++k) {
      const KernelPlan& kernel = last.executable.plan.kernels[k];
      const Verdict verdict = fits(device, kernel, last.executable.kernels[k]);
      if (verdict) continue;
      checks.push_back({"compile", kernel.name, "", verdict});
      if (!replan || round == kMaxRounds) continue;
      std::optional<Edit> edit = remedy(graph, kernel);
      if (!edit) continue;
      checks.push_back({"compile", kernel.name, "", Verdict::yes("compile.retry", to_text(*edit))});
      add_edit(wanted, std::move(*edit));
      changed = true;
    }
    if (!changed) break;
    try {
      attempts.push_back(attempt(replan(wanted), wanted));
    } catch (const Error& error) {  // the planner refuses: the kernel stays as it is
      checks.push_back({"compile", "", "", Verdict::no("compile.retry", error.message())});
      break;
    }
  }
  Attempt best = chosen(attempts);
  if (const Attempt& first = attempts.front(); !best.edits.empty() && first.launches) {
    const std::vector<Edit> edits = worthwhile(graph, device, first, best);
    try {
      Attempt fewer = edits.empty() ? first : edits == best.edits ? best : attempt(replan(edits), edits);
      if (fewer.launches && fewer.us < best.us) best = std::move(fewer);
    } catch (const Error&) {  // the planner refuses fewer edits: they stay together
    }
  }
  if (best.edits.empty() && std::ranges::any_of(checks, [](const Decision& d) {
        return d.verdict.rule == "compile.retry" && d.verdict.ok;
      }))
    checks.push_back(
        {"compile", "", "",
         Verdict::no("compile.dearer",
                     fmt::format("no plan made again spills less without taking clearly longer than "
                                 "the first: {:.1f} us, its spills included (modelled)",
                                 best.us))});
  best.executable.checks = std::move(checks);
  return std::move(best.executable);
}

}  // namespace stitchwork
