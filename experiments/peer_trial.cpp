#include "experiments/peer_trial.h"

#include <algorithm>
#include <filesystem>
#include <utility>

#include "analysis/judge/cost.h"
#include "analysis/plan/control_flow.h"
#include "core/base/error.h"
#include "core/base/file.h"
#include "core/base/sha256.h"
#include "core/evaluate/judge.h"
#include "core/hlo/hlo_text.h"
#include "experiments/clock.h"
#include "experiments/launch_json.h"
#include "runtime/program/dump_plan.h"

namespace stitchwork {
namespace {

/// Plans know how long kernels took; what a trial is told apart by does not.
FusionPlan without_times(FusionPlan plan) {
  auto peer = std::make_shared<PeerPlan>(*plan.peer);
  peer->simulated = false;
  peer->dram_bytes = 0;
  peer->dump.clear();  // wherever it lies
  const auto clear = [&](FusionPlan& of) {
    of.peer = peer;
    of.predicted_us = 0;
    for (PlanStep& step : of.steps)
      if (step.kind == StepKind::kControl) step.predicted_us = 0;
    for (KernelPlan& kernel : of.kernels) {
      kernel.predicted_us = 0;
      kernel.code->timed.reset();
      kernel.code->dram_bytes = 0;
    }
  };
  clear(plan);
  for (ComputationPlan& part : plan.computations) clear(part.plan);
  return plan;
}

/// Of its first launch, but for the number of launches and their time, which are added.
KernelRun kernel_run(const sim::StepResult& step, const Device& device) {
  KernelRun run;
  run.counters = step.launch.counters;
  run.launches = 1;
  run.time_us = step.time_us;
  run.parts = step.launch.time;
  run.not_modelled = not_modelled(device, step.launch.timed);
  run.bytes_in_flight = step.launch.bytes_in_flight;
  run.method = step.launch.sampled ? Method::kSampled : Method::kSimulated;
  return run;
}

std::vector<CompiledKernel> compiled_kernels(const Dump& dump, const FusionPlan& plan) {
  std::vector<CompiledKernel> kernels;
  std::map<std::string, std::string> files;
  for (const KernelPlan& kernel : plan.kernels) {
    CompiledKernel& compiled = kernels.emplace_back();
    compiled.entry = kernel.code->entry;
    std::string& ptx = files[kernel.code->module];
    if (ptx.empty()) ptx = read_file((std::filesystem::path(dump.folder) / kernel.code->module).string());
    compiled.ptx = ptx;
    compiled.source_sha256 = sha256_hex(ptx);
  }
  return kernels;
}

/// What the steps took, those of loops with all their trips.
void add_runs(const Graph& model, const FusionPlan& plan, const sim::ProgramResult& program,
              const Device& device, RunResult& run) {
  run.kernels.resize(plan.kernels.size());
  for (const ComputationPlan& part : plan.computations)
    run.computations.emplace_back().kernels.resize(part.plan.kernels.size());
  const std::vector<std::int64_t> runs = runs_of_computations(model, plan);
  for (std::size_t part = 0; part < runs.size(); ++part) run.computations[part].runs = runs[part];
  for (const PlanStep& step : plan.steps)
    run.steps.push_back({step.predicted_us, step.kind == StepKind::kKernel || step.kind == StepKind::kControl
                                                ? Method::kSimulated
                                                : Method::kModelled});
  const std::vector<StepPlace> places = step_places(plan);
  for (std::size_t s = 0; s < program.steps.size(); ++s) {
    const auto [part, place] = places[s];
    const FusionPlan& of = part < 0 ? plan : plan.computations[static_cast<std::size_t>(part)].plan;
    const PlanStep& step = of.steps[place];
    if (part < 0) run.steps[place].time_us = program.steps[s].time_us;
    if (step.kind != StepKind::kKernel) continue;
    std::vector<KernelRun>& kernels =
        part < 0 ? run.kernels : run.computations[static_cast<std::size_t>(part)].kernels;
    KernelRun& kernel = kernels[static_cast<std::size_t>(step.kernel)];
    const KernelRun once = kernel_run(program.steps[s], device);
    if (kernel.launches > 0) {
      ++kernel.launches;
      kernel.time_us += once.time_us;
    } else {
      kernel = once;
    }
    if (part < 0 && kernel.method == Method::kSampled) run.steps[place].method = Method::kSampled;
  }
}

}  // namespace

Model model_of(const Dump& dump) { return load_model(dump.model); }

Peer peer_of(Dump dump, const Model& model) {
  const Model given = model_of(dump);
  FusionPlan plan = plan_of(dump, given.graph, model.graph);
  return {std::move(dump), std::move(plan)};
}

Peer load_peer(const std::string& path, const Model& model) { return peer_of(read_dump(path), model); }

Arithmetic arithmetic_of(const Dump& dump, const Device& device) {
  constexpr int kFirstWithTf32 = 8;  // compute capability, major
  return {.tf32 = device.cc_major >= kFirstWithTf32 && counts_of(dump.script).product_kernels > 0};
}

PeerRun run_peer(Peer& peer, std::span<const Literal> inputs, const Device& device,
                 const sim::Options& options, const PeerProgress& progress) {
  require_card(peer.dump, device);
  set_inputs(peer.dump, inputs);
  PeerRun run{run_script(peer.dump.script, device, options, progress), {}};
  if (!run.result.program.findings.empty()) return run;
  add_times(peer.plan, peer.dump, run.result, device);
  if (!options.sampled) run.outputs = results_of(peer.dump, run.result.program);
  return run;
}

void time_peer(Peer& peer, const Model& model, const PeerProgress& progress) {
  const PeerRun run =
      run_peer(peer, generate_inputs(model.graph, 0, model.inputs), device(peer.dump.device), {}, progress);
  for (const sim::Finding& finding : run.result.program.findings)
    throw Error(peer.dump.script.file, 0, 0, to_text(finding), "stitchwork run " + peer.dump.folder);
}

TrialSpec spec_of(const Peer& peer, const Device& device) {
  TrialSpec spec;
  spec.planner = peer.plan.planner;
  spec.plan = without_times(peer.plan);
  spec.device = device.id;
  return spec;
}

TrialResult run_dump(const Model& model, const TrialSpec& spec, const TrialProgress& progress) {
  if (spec.backend != "sim" || !spec.limits.empty())
    throw Error("dumps of compilers run in the simulator, on a whole device", "use --backend sim");
  const Stopwatch planning;
  Peer peer = load_peer(spec.dump, model);
  const double plan_ms = planning.ms();
  const Device& target = device(spec.device);
  std::vector<Literal> inputs = trial_inputs(model, spec);
  sim::Options options;
  options.cache = spec.cache;
  options.sanitize = spec.sanitize;
  options.sampled = spec.sampled;
  const double steps = static_cast<double>(std::max<std::size_t>(1, peer.dump.script.steps.size()));
  const Stopwatch running;
  PeerRun run = run_peer(peer, inputs, target, options, [&](std::size_t step, const std::string& what) {
    if (progress) progress(static_cast<double>(step) / steps, what);
  });
  const double run_ms = running.ms();
  std::optional<CheckResult> check;
  if (spec.check && !run.outputs.empty())
    check = Judge(model.graph, std::move(inputs), arithmetic_of(peer.dump, target)).check(run.outputs);
  TrialResult result = trial_of(peer, model, target, std::move(run), std::move(check));
  result.plan_ms = plan_ms;
  result.run_ms = run_ms;
  return result;
}

TrialResult trial_of(const Peer& peer, const Model& model, const Device& device, PeerRun run,
                     std::optional<CheckResult> check) {
  const sim::ProgramResult& program = run.result.program;
  TrialResult result;
  result.executable.plan = peer.plan;
  result.executable.compiler = peer.dump.title();
  result.executable.architecture = 10 * device.cc_major + device.cc_minor;
  result.executable.kernels = compiled_kernels(peer.dump, peer.plan);
  for (const ComputationPlan& part : peer.plan.computations)
    result.executable.computations.emplace_back().kernels = compiled_kernels(peer.dump, part.plan);
  add_runs(model.graph, peer.plan, program, device, result.run);
  for (const KernelPlan& kernel : peer.plan.kernels)
    result.costs.push_back(kernel_cost(planned_graph(model.graph, peer.plan), device, kernel));
  result.cost = plan_cost(model.graph, device, peer.plan);
  result.run.findings = program.findings;
  result.run.sanitized = run.result.sanitized;
  result.run.total_us = program.total_us;
  result.run.outputs = std::move(run.outputs);
  result.check = std::move(check);
  return result;
}

}  // namespace stitchwork
