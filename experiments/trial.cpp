#include "experiments/trial.h"

#include <algorithm>
#include <filesystem>
#include <nlohmann/json.hpp>

#include "analysis/json/overrides_json.h"
#include "analysis/json/plan_json.h"
#include "analysis/judge/cost.h"
#include "analysis/plan/control_flow.h"
#include "analysis/planners/fusionstitching/library.h"
#include "analysis/verify/verify.h"
#include "codegen/settle.h"
#include "core/base/arithmetic.h"
#include "core/base/error.h"
#include "core/base/file.h"
#include "core/base/memory.h"
#include "core/base/sha256.h"
#include "core/hlo/hlo_text.h"
#include "core/hlo/npy.h"
#include "core/passes/moved.h"
#include "experiments/clock.h"
#include "experiments/launch_json.h"
#include "experiments/memory_need.h"
#include "experiments/peer_trial.h"
#include "occupancy_model/hardware.h"
#include "runtime/cuda/profile.h"

namespace stitchwork {
namespace {

using nlohmann::ordered_json;

constexpr std::string_view kMemoryHint =
    "arrays are kept in this machine's memory: plan, compare and explain take a model of any size, --mode "
    "sampled and a run without --check need less";

std::string input_path(const std::string& folder, const Node& parameter) {
  namespace fs = std::filesystem;
  for (const std::string& stem : {parameter.name, std::to_string(parameter.attrs.parameter_number)}) {
    const fs::path path = fs::path(folder) / (stem + ".npy");
    if (fs::exists(path)) return path.string();
  }
  throw Error(folder, 0, 0,
              fmt::format("no array for parameter {} ({})", parameter.name, to_text(parameter.shape)),
              fmt::format("save it as {}.npy or {}.npy", parameter.name, parameter.attrs.parameter_number));
}

Literal read_input(const std::string& folder, const Node& parameter) {
  const std::string path = input_path(folder, parameter);
  Literal literal = read_npy(path);
  // NumPy has no floats of 8 bits and no smaller integers: their bytes, a value each.
  const Shape raw = Shape::array(DType::kU8, parameter.shape.dims);
  if (is_moved(parameter) && literal.shape.compatible(raw)) literal.shape.dtype = parameter.shape.dtype;
  if (!literal.shape.compatible(parameter.shape))
    throw Error(path, 0, 0,
                fmt::format("is {}, parameter {} is {}", to_text(literal.shape), parameter.name,
                            to_text(parameter.shape)));
  return literal;
}

/// Of the arrays' files, wherever they lie.
std::string sha256_of_inputs(const Graph& graph, const std::string& folder) {
  const Computation& entry = graph.entry_computation();
  std::string all;
  for (const NodeId id : entry.parameters) all += sha256_hex(read_file(input_path(folder, entry.node(id))));
  return sha256_hex(all);
}

std::string sha256_of(const InputOverrides& overrides) {
  std::string all;
  for (const auto& [parameter, d] : overrides)
    all += fmt::format("{} {} {} {} {} {} {}\n", parameter, static_cast<int>(d.kind), d.mean, d.stddev, d.low,
                       d.high, d.value);
  return sha256_hex(all);
}

void add_costs(const Graph& model, const Device& device, TrialResult& result) {
  const FusionPlan& plan = result.executable.plan;
  const Graph& graph = planned_graph(model, plan);
  for (const KernelPlan& kernel : plan.kernels) result.costs.push_back(kernel_cost(graph, device, kernel));
  result.cost = plan_cost(graph, device, plan);
}

/// achieved_occupancy and sm_efficiency as the simulator counts them (simulator/launch/scheduler.cpp), every
/// block taking equally long: full waves, and what is left in the last one.
void fill_waves(const Device& device, const KernelWork& work, sim::Counters& counters) {
  const std::int64_t resident = static_cast<std::int64_t>(device.sms) * work.blocks_per_sm;
  const auto warps = static_cast<double>(ceil_div(work.threads_per_block, 32));
  const auto add = [&](std::int64_t blocks, double weight) {
    if (blocks == 0) return;
    const auto busy = static_cast<double>(std::min<std::int64_t>(blocks, device.sms));
    const double of_an_sm = warps * static_cast<double>(blocks) / (busy * device.max_warps_per_sm);
    counters.achieved_occupancy += weight * std::min(1.0, of_an_sm);
    counters.sm_efficiency += weight * busy / device.sms;
  };
  const std::int64_t left = work.grid_blocks % resident;
  const auto grid = static_cast<double>(std::max<std::int64_t>(1, work.grid_blocks));
  if (work.grid_blocks >= resident) add(resident, static_cast<double>(work.grid_blocks - left) / grid);
  add(left, static_cast<double>(left) / grid);
}

/// What the kernels of loops and branches take in all their runs, without counters.
std::vector<ComputationRun> estimated_computations(const Graph& graph, const FusionPlan& plan) {
  std::vector<ComputationRun> all;
  const std::vector<std::int64_t> runs = runs_of_computations(graph, plan);
  for (std::size_t c = 0; c < runs.size(); ++c) {
    ComputationRun& part = all.emplace_back();
    part.runs = runs[c];
    for (const KernelPlan& kernel : plan.computations[c].plan.kernels) {
      KernelRun& one = part.kernels.emplace_back();
      one.launches = runs[c];
      one.registers = kernel.launch.register_bound;
      one.time_us = static_cast<double>(runs[c]) * kernel.predicted_us;
      one.method = Method::kModelled;
    }
  }
  return all;
}

/// The plan's own estimates in the form of a run; loops and branches are steps of their whole time.
RunResult estimated(const Graph& graph, const Device& device, const FusionPlan& plan,
                    const std::vector<KernelCost>& costs) {
  RunResult run;
  for (std::size_t i = 0; i < plan.kernels.size(); ++i) {
    const KernelPlan& kernel = plan.kernels[i];
    const KernelCost& cost = costs[i];
    KernelRun& one = run.kernels.emplace_back();
    fill_waves(device, cost.work, one.counters);
    one.counters.dram_read_transactions = static_cast<std::uint64_t>(cost.dram_read_bytes / kSectorBytes);
    one.counters.dram_write_transactions = static_cast<std::uint64_t>(cost.dram_write_bytes / kSectorBytes);
    constexpr double kLanes = 32;
    one.counters.inst_fp_32 = static_cast<std::uint64_t>(kLanes * cost.work.fp32_warp_instructions);
    one.launches = 1;
    one.registers = kernel.launch.register_bound;
    one.time_us = kernel.predicted_us;
    one.parts = cost.timed.time;
    one.not_modelled = not_modelled(device, cost.timed);
    one.method = Method::kModelled;
  }
  for (const PlanStep& step : plan.steps) run.steps.push_back({step.predicted_us, Method::kModelled});
  run.computations = estimated_computations(graph, plan);
  run.total_us = plan.predicted_us;
  return run;
}

/// By name. Throws Error where there is none, or nothing is run.
TiledProduct products_of(const TrialSpec& spec) {
  const TiledProduct product = named_product(spec.products);
  if (spec.backend == "model")
    throw Error("products by tiled kernels are run: estimates are of a library's", "leave them out");
  return product;
}

}  // namespace

std::string variant_of(const TrialSpec& spec) { return spec.variant.empty() ? spec.planner : spec.variant; }

Device target_of(const TrialSpec& spec) { return limited(device(spec.device), spec.limits); }

Arithmetic arithmetic_of(const TrialSpec& spec) {
  return {.fast_math = spec.compile.fast_math, .tf32 = spec.backend == "cuda" && spec.options.tf32};
}

std::vector<Literal> trial_inputs(const Model& model, const TrialSpec& spec) {
  if (spec.inputs_dir.empty()) return generate_inputs(model.graph, spec.seed, model.inputs);
  const Computation& entry = model.graph.entry_computation();
  std::vector<Literal> inputs;
  for (NodeId id : entry.parameters) inputs.push_back(read_input(spec.inputs_dir, entry.node(id)));
  return inputs;
}

TrialResult run_trial(const Model& model, const TrialSpec& spec, const TrialProgress& progress,
                      Judge* judge) {
  auto report = [&](double done, const std::string& what) {
    if (progress) progress(done, what);
  };
  const bool simulated = spec.backend == "sim", modelled = spec.backend == "model";
  if (!simulated && !modelled && spec.backend != "cuda")
    throw Error(fmt::format("unknown backend '{}'", spec.backend), "known: model, sim, cuda");
  if (!simulated && spec.sanitize.any())
    throw Error("--sanitize needs the simulator", "use --backend sim, or NVIDIA's compute-sanitizer");
  if (spec.sampled &&
      (!simulated || spec.check || spec.sanitize.any() || spec.cache == sim::CacheMode::kWarm))
    throw Error(
        "--mode sampled runs some of each kernel's blocks in the simulator: there are no outputs to check, "
        "and it says "
        "nothing of a GPU, of races or of a warm cache",
        "leave out --check, --sanitize, --cache warm and --backend cuda, or use --mode exact");
  if (!spec.products.empty()) products_of(spec);
  const auto driver = spec.backend == "cuda" ? cuda::load_driver() : nullptr;  // before the long work
  if (!spec.dump.empty()) return run_dump(model, spec, progress);
  const Device target = target_of(spec);
  if (!modelled) {
    require_runnable(model.graph);
    require_memory(input_bytes(model.graph), "the parameters of the run",
                   kMemoryHint);  // before planning
  }
  TrialResult result;
  report(0, "planning");
  const Stopwatch planning;
  FusionPlan plan = spec.plan ? *spec.plan : make_plan(model.graph, target, spec.planner, spec.options);
  result.plan_ms = planning.ms();
  if (modelled) {
    result.executable.plan = std::move(plan);
    add_costs(model.graph, target, result);
    result.run = estimated(model.graph, target, result.executable.plan, result.costs);
    result.executable.kernels.resize(result.run.kernels.size());
    result.executable.computations.resize(result.run.computations.size());
    for (std::size_t c = 0; c < result.run.computations.size(); ++c)
      result.executable.computations[c].kernels.resize(result.run.computations[c].kernels.size());
    return result;
  }
  require_memory(run_bytes(model.graph, plan, simulated && !spec.sampled, spec.check), "the run",
                 kMemoryHint);
  report(0.02, "compiling");
  const Stopwatch compiling;
  Replan replan;
  if (!spec.plan)
    replan = [&](const std::vector<Edit>& more) {
      PlanOptions options = spec.options;
      options.rewrites = as_planned(plan, false).rewrites;
      options.edits.insert(options.edits.end(), more.begin(), more.end());
      return make_plan(model.graph, target, spec.planner, options);
    };
  CompileOptions compiling_options = spec.compile;
  compiling_options.cubin = !simulated;
  result.executable = compile_settled(model.graph, target, plan, replan, compiling_options);
  result.compile_ms = compiling.ms();
  add_costs(model.graph, target, result);
  report(0.2, "preparing inputs");
  const std::vector<Literal> inputs = trial_inputs(model, spec);
  const Stopwatch running;
  RunOptions options;
  options.cache = spec.cache;
  options.sanitize = spec.sanitize;
  options.sampled = spec.sampled;
  options.lines = spec.lines;
  if (!spec.products.empty()) options.products = products_of(spec);
  options.compile = compiling_options;
  options.limits = {spec.max_trips, spec.shuffle};
  options.progress = [&](int done, int total, const std::string& what) {
    report(0.25 + 0.6 * done / std::max(1, total), what);
  };
  if (simulated) {
    result.run = run_simulated(model.graph, target, result.executable, inputs, options);
  } else {
    cuda::CudaBackend backend(driver, target,
                              {.repeats = spec.repeats,
                               .cache = spec.cache,
                               .tf32 = spec.options.tf32,
                               .convolutions = cuda::parse_convolutions(spec.convolutions),
                               .compile = compiling_options,
                               .products = options.products},
                              {cuda::Blas::load, cuda::Dnn::load});
    result.gpu = backend.gpu();
    result.run =
        run_on(backend, model.graph, target, result.executable, inputs, options.progress, options.limits);
    for (std::size_t i = 0; i < result.run.kernels.size(); ++i)  // a GPU tells no parts: the model's
      result.run.kernels[i].parts = result.costs[i].timed.time;
  }
  result.run_ms = running.ms();
  if (spec.check && result.run.findings.empty()) {
    report(0.85, "checking against the reference");
    std::optional<Judge> own;
    if (judge == nullptr) judge = &own.emplace(model.graph, inputs, arithmetic_of(spec));
    result.check = judge->check(result.run.outputs);
  }
  report(1, "done");
  return result;
}

namespace {

void add_run(ordered_json& kernel, const KernelRun& run, const CompiledKernel& compiled) {
  const bool counted = run.method == Method::kSimulated || run.method == Method::kSampled;
  kernel["counters"] = counted ? counters_json(run.counters) : ordered_json(nullptr);
  if (!run.profiled.empty()) kernel["counters"] = ordered_json::object();
  for (const auto& [counter, value] : run.profiled) kernel["counters"][counter] = value;
  kernel["launches"] = run.launches;
  kernel["registers"] = run.registers;
  kernel["spill_bytes"] = run.spill_bytes ? ordered_json(*run.spill_bytes) : ordered_json(nullptr);
  kernel["time_us"] = run.time_us;
  kernel["method"] = name(run.method);
  if (run.parts.total_us > 0)
    kernel["time_parts"] =
        time_parts_json(run.parts, name(run.method == Method::kMeasured ? Method::kModelled : run.method));
  if (run.method != Method::kMeasured) kernel["not_modelled"] = not_modelled_json(run.not_modelled);
  kernel["source_sha256"] = compiled.source_sha256;
}

}  // namespace

ordered_json run_to_json(const Model& model, const TrialSpec& spec, const TrialResult& result) {
  ordered_json document = plan_to_json(model.graph, result.executable.plan);
  document["schema"] = "stitchwork.run/1";
  document["backend"] = spec.backend;
  document["cache"] = spec.cache == sim::CacheMode::kCold ? "cold" : "warm";
  document["seed"] = spec.seed;
  document["compiler"] = result.executable.compiler;
  document["fast_math"] = spec.compile.fast_math;
  for (std::size_t i = 0; i < result.run.kernels.size(); ++i) {
    ordered_json& kernel = document["kernels"][i];
    kernel["predicted_issue_slots"] = result.costs[i].work.warp_instructions;
    add_run(kernel, result.run.kernels[i], result.executable.kernels[i]);
  }
  for (std::size_t c = 0; c < result.run.computations.size(); ++c) {
    const ComputationRun& part = result.run.computations[c];
    document["computations"][c]["runs"] = part.runs;
    for (std::size_t i = 0; i < part.kernels.size(); ++i)
      add_run(document["computations"][c]["kernels"][i], part.kernels[i],
              result.executable.computations[c].kernels[i]);
  }
  for (std::size_t i = 0; i < result.run.steps.size(); ++i) {
    document["steps"][i]["time_us"] = result.run.steps[i].time_us;
    document["steps"][i]["method"] = name(result.run.steps[i].method);
  }
  document["time_us"] = result.run.total_us;
  if (result.run.once_us > 0) document["once_time_us"] = result.run.once_us;
  if (spec.backend == "cuda" || !spec.products.empty() || !result.run.library_calls.empty()) {
    document["library_calls"] = ordered_json::array();
    for (const auto& [op, by] : result.run.library_calls)
      document["library_calls"].push_back({{"op", op}, {"by", by}});
  }
  if (spec.backend == "cuda") {
    document["dependent_launch"] = spec.compile.dependent_launch;
    document["host_calls"] = result.run.host_calls;
    const auto& repeated = result.run.repeated;
    document["repeated"] = nullptr;
    if (repeated)
      document["repeated"] = {
          {"times", repeated->times},
          {"stream_us", repeated->stream_us},
          {"graph_us", repeated->graph_us ? ordered_json(*repeated->graph_us) : ordered_json()},
          {"method", name(Method::kMeasured)}};
  }
  if (std::any_of(result.run.kernels.begin(), result.run.kernels.end(),
                  [](const KernelRun& run) { return !run.profiled.empty(); }))
    for (const cuda::ProfiledMetric& metric : cuda::profiled_metrics())
      if (metric.asked) document["metrics"][metric.counter] = metric.metric;
  if (!result.executable.checks.empty())
    document["compile_checks"] = decisions_to_json(result.executable.checks);
  ordered_json findings = ordered_json::array();
  for (const sim::Finding& f : result.run.findings) findings.push_back(finding_json(f));
  document["findings"] = findings;
  document["sanitizers"] = sanitizers_json(spec.sanitize, result.run.sanitized);
  if (result.check)
    document["check"] = {{"max_abs_error", result.check->max_abs_error},
                         {"max_rel_error", result.check->max_rel_error},
                         {"elements", result.check->elements},
                         {"allowed_elements", result.check->allowed},
                         {"nan_elements", result.check->nan},
                         {"uniform_outputs", result.check->uniform},
                         {"ok", result.check->ok}};
  else
    document["check"] = nullptr;
  return document;
}

ordered_json trial_params(const Model& model, const TrialSpec& spec) {
  ordered_json params{{"results", spec.results},
                      {"model_sha256", model.graph.source_sha256},
                      {"device", device(spec.device).id},
                      {"backend", spec.backend},
                      {"seed", spec.seed},
                      {"planner", spec.planner},
                      {"options", spec.options.knobs}};
  if (!spec.limits.empty()) params["limits"] = spec.limits;
  if (!spec.options.edits.empty()) params["overrides"] = edits_to_json(spec.options.edits);
  if (const std::filesystem::path file = std::filesystem::path(spec.dump) / "dump.json"; !spec.dump.empty())
    params["dump"] = std::filesystem::is_regular_file(file) ? sha256_hex(read_file(file.string())) : "";
  if (spec.plan) params["plan"] = sha256_hex(plan_to_json(model.graph, *spec.plan).dump());
  if (spec.options.tf32) params["tf32"] = true;
  if (!spec.options.weights.empty())
    params["weights"] = fmt::format("{}", fmt::join(spec.options.weights, ","));
  if (spec.options.library != nullptr) params["library"] = spec.options.library->sha256;
  if (spec.backend == "model") return params;
  params["cache"] = spec.cache == sim::CacheMode::kCold ? "cold" : "warm";
  params["compiler"] = spec.compile.compiler.empty() ? "auto" : spec.compile.compiler;
  params["fast_math"] = spec.compile.fast_math;
  params["dependent_launch"] = spec.compile.dependent_launch;
  if (!spec.inputs_dir.empty())
    params["inputs_sha256"] = sha256_of_inputs(model.graph, spec.inputs_dir);
  else if (!model.inputs.empty())
    params["distributions_sha256"] = sha256_of(model.inputs);
  if (!spec.products.empty()) params["products"] = spec.products;
  if (spec.backend == "sim") params["mode"] = spec.sampled ? "sampled" : "exact";
  if (spec.backend == "cuda") {
    params["repeats"] = spec.repeats;
    params["tf32"] = spec.options.tf32;
    params["convolutions"] = spec.convolutions;
  }
  return params;
}

std::string trial_key(const Model& model, const TrialSpec& spec) {
  return sha256_hex(ordered_json{
      {"workload", model.graph.source}, {"variant", variant_of(spec)}, {"params", trial_params(model, spec)}}
                        .dump());
}

}  // namespace stitchwork
