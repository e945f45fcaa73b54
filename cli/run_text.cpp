#include "cli/run_text.h"

#include <algorithm>
#include <map>
#include <utility>

#include "analysis/plan/step_order.h"
#include "cli/cli.h"
#include "cli/table.h"
#include "core/base/format.h"
#include "occupancy_model/timing_text.h"
#include "runtime/cuda/profile.h"

namespace stitchwork {
namespace {

std::vector<std::string> counter_columns(const sim::Counters& c) {
  return {with_commas(static_cast<long long>(c.inst_executed)),
          human_bytes(32.0 * static_cast<double>(c.dram_read_transactions)),
          human_bytes(32.0 * static_cast<double>(c.dram_write_transactions)), percent(c.achieved_occupancy),
          percent(c.sm_efficiency)};
}

/// The same columns of what Nsight Compute read.
std::vector<std::string> counter_columns(const cuda::ProfiledCounters& profiled) {
  const auto column = [&](std::string_view counter, const auto& text) -> std::string {
    const auto found =
        std::find_if(profiled.begin(), profiled.end(), [&](const auto& one) { return one.first == counter; });
    return found == profiled.end() ? "-" : text(found->second);
  };
  const auto count = [](double value) { return with_commas(static_cast<long long>(value)); };
  const auto bytes = [](double sectors) { return human_bytes(32.0 * sectors); };
  return {column("inst_executed", count), column("dram_read_transactions", bytes),
          column("dram_write_transactions", bytes), column("achieved_occupancy", percent),
          column("sm_efficiency", percent)};
}

/// Library calls that loops and branches made.
std::int64_t calls_of_loops(const FusionPlan& plan, const RunResult& run) {
  std::int64_t calls = 0;
  for (std::size_t c = 0; c < plan.computations.size(); ++c)
    calls += run.computations[c].runs *
             std::ranges::count(plan.computations[c].plan.steps, StepKind::kLibrary, &PlanStep::kind);
  return calls;
}

/// What the run's time is made of beside the kernels' rows, so that all rows add up to it.
std::vector<std::pair<std::string, double>> other_rows(const FusionPlan& plan, const RunResult& run,
                                                       const Device& device) {
  struct Sum {
    std::map<Method, std::pair<int, double>> by;  ///< steps and their time
  };
  std::map<StepKind, Sum> kinds;
  double once_us = 0;  // of the kernels' rows
  for (std::size_t s = 0; s < plan.steps.size(); ++s) {
    if (plan.steps[s].once) {
      if (plan.steps[s].kind == StepKind::kKernel) once_us += run.steps[s].time_us;
      continue;
    }
    auto& [count, us] = kinds[plan.steps[s].kind].by[run.steps[s].method];
    ++count;
    us += run.steps[s].time_us;
  }
  std::vector<std::pair<std::string, double>> rows;
  const auto add = [&](StepKind kind, const char* one) {
    for (const auto& [method, sum] : kinds[kind].by)
      rows.emplace_back(fmt::format("{} ({})", counted(sum.first, one), name(method)), sum.second);
  };
  add(StepKind::kLibrary, "library call");
  add(StepKind::kCopy, "copy");
  add(StepKind::kMemset, "memset");
  double control = 0;
  for (const auto& [method, sum] : kinds[StepKind::kControl].by) control += sum.second;
  if (control > 0) {
    for (const ComputationRun& part : run.computations)
      for (const KernelRun& kernel : part.kernels) control -= kernel.time_us;
    const std::int64_t calls = calls_of_loops(plan, run);
    rows.emplace_back(calls == 0 ? "loops and branches, beside their kernels"
                                 : fmt::format("loops and branches, beside their kernels: {}, gaps",
                                               counted(calls, "library call")),
                      control);
  }
  if (const auto steps = std::ranges::count(plan.steps, false, &PlanStep::once); steps > 1)
    rows.emplace_back(fmt::format("{} between steps", counted(steps - 1, "gap")),
                      device.launch_gap_us * static_cast<double>(steps - 1));
  if (once_us > 0) rows.emplace_back("done once, in no run's time", -once_us);
  if (uses_streams(plan)) {
    double all = -run.total_us;
    for (const StepRun& step : run.steps) all += step.time_us;
    all += device.launch_gap_us * static_cast<double>(plan.steps.size() - 1);
    rows.emplace_back("beside other streams", -all);
  }
  return rows;
}

/// As many columns of a name as leave room for a table's numbers: what it begins and ends with.
std::string shortened(const std::string& text) {
  // A choice, not measured: the wider of the tables below takes some 65 of 120 columns for its numbers.
  constexpr std::size_t kMost = 54, kEnd = 20;
  if (text.size() <= kMost) return text;
  return text.substr(0, kMost - kEnd - 3) + "..." + text.substr(text.size() - kEnd);
}

/// Calls visit(plan's kernel, run's kernel, name) of the entry, then of what loops and branches run.
template <typename Visit>
void for_each_run(const Model& model, const TrialResult& result, Visit visit) {
  const FusionPlan& plan = result.executable.plan;
  const std::vector<bool> once = once_kernels(plan);
  for (std::size_t i = 0; i < plan.kernels.size(); ++i)
    visit(plan.kernels[i], result.run.kernels[i],
          shortened(plan.kernels[i].id + " " + plan.kernels[i].name) + (once[i] ? ", once" : ""));
  for (std::size_t c = 0; c < plan.computations.size(); ++c) {
    const ComputationPlan& part = plan.computations[c];
    const std::string& computation = planned_graph(model.graph, plan).computation(part.computation).name;
    for (std::size_t i = 0; i < part.plan.kernels.size(); ++i) {
      const KernelPlan& k = part.plan.kernels[i];
      const KernelRun& r = result.run.computations[c].kernels[i];
      visit(k, r,
            shortened(fmt::format("{}: {} {}, {}", computation, k.id, k.name, counted(r.launches, "time"))));
    }
  }
}

}  // namespace

std::string check_text(const CheckResult& check) {
  if (check.ok && check.elements > 0 && check.nan == check.elements)
    return fmt::format(
        "check: says nothing: {} NaN in both; give inputs in the model's domain: --inputs DIR, or --seed N",
        check.elements == 1 ? "the only element is" : fmt::format("all {} elements are", check.elements));
  std::string text = fmt::format("check: {} (max abs error {:.3g}, max rel error {:.3g})",
                                 check.ok ? "ok" : "FAILED", check.max_abs_error, check.max_rel_error);
  text += remarks(check);
  return check.ok ? text : text + ": " + check.message;
}

std::string repeated_text(const RunResult& run) {
  if (!run.repeated) {
    if (run.host_calls.empty()) return "times are of one launch each";
    return fmt::format(
        "the CPU reference took part ({}{}): times are of one launch each", run.host_calls[0],
        run.host_calls.size() > 1 ? fmt::format(" and {} more", run.host_calls.size() - 1) : "");
  }
  std::string text = fmt::format("whole: {:.1f} us launch by launch", run.repeated->stream_us);
  if (run.repeated->graph_us) text += fmt::format(", {:.1f} us as a CUDA graph", *run.repeated->graph_us);
  return text + fmt::format(" (measured, median of {})", run.repeated->times);
}

std::string library_text(const RunResult& run) {
  std::map<std::string, std::vector<std::string>> ops;
  for (const auto& [op, by] : run.library_calls) ops[by].push_back(op);
  std::string text;
  for (const auto& [by, made] : ops)
    text += fmt::format("{}library: {}{} by {}", text.empty() ? "" : "\n", made[0],
                        made.size() > 1 ? fmt::format(" and {} more", made.size() - 1) : "", by);
  return text;
}

std::string kernels_text(const Model& model, const TrialResult& result, bool simulated) {
  std::vector<std::string> heads{"kernel", ">grid", ">block", ">barriers", ">regs"};
  heads.push_back(fmt::format(">us ({})", name(simulated ? Method::kSimulated : Method::kMeasured)));
  if (simulated) heads.emplace_back("limited by");
  Table table(heads);
  for_each_run(model, result, [&](const KernelPlan& k, const KernelRun& r, const std::string& name) {
    std::vector<std::string> row{name,
                                 fmt::to_string(k.launch.grid),
                                 fmt::to_string(k.launch.block),
                                 fmt::to_string(k.launch.grid_barriers),
                                 fmt::to_string(r.registers),
                                 fmt::format("{:.2f}", r.time_us)};
    if (simulated) row.push_back(limited_by(r.parts));
    table.add(row);
  });
  const FusionPlan& plan = result.executable.plan;
  for (const auto& [what, us] : other_rows(plan, result.run, device(plan.device))) {
    std::vector<std::string> row(heads.size(), "");
    row[0] = what;
    row[5] = fmt::format("{:.2f}", us);
    table.add(row);
  }
  return table.text();
}

std::string counters_text(const Model& model, const TrialResult& result, bool profiled) {
  Table table({"kernel", ">inst_executed", ">DRAM read", ">DRAM write", ">occupancy", ">SM eff."});
  for_each_run(model, result, [&](const KernelPlan&, const KernelRun& r, const std::string& name) {
    std::vector<std::string> row = profiled ? counter_columns(r.profiled) : counter_columns(r.counters);
    row.insert(row.begin(), name);
    table.add(row);
  });
  return table.text();
}

}  // namespace stitchwork
