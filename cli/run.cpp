// stitchwork run MODEL
#include <fmt/ranges.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <limits>
#include <nlohmann/json.hpp>

#include "cli/cli.h"
#include "cli/peer_dump.h"
#include "cli/peer_plan.h"
#include "cli/run_text.h"
#include "cli/usage.h"
#include "codegen/compile/process.h"
#include "core/base/error.h"
#include "core/base/file.h"
#include "core/base/format.h"
#include "core/hlo/npy.h"
#include "experiments/launch_json.h"
#include "experiments/store.h"
#include "experiments/trace.h"
#include "experiments/trial.h"
#include "runtime/cuda/backend.h"
#include "runtime/cuda/profile.h"

namespace stitchwork {
namespace {

struct RunArguments {
  PlanArguments plan;
  std::string backend = "sim", cache = "cold", mode = "exact", convolutions = "auto", products, inputs,
              outputs, trace, db, sanitize;
  std::uint64_t seed = 0;
  std::int64_t max_trips = kMaxTrips;
  std::uint32_t shuffle = 0;
  CLI::Option* shuffled = nullptr;
  int repeats = 20;
  bool check = false, counters = false, dependent_launch = false, fast_math = false;
  const CLI::Option* device = nullptr;  ///< whether it was given
};

/// There or to be made.
void require_folder(const std::string& folder) {
  std::error_code error;
  std::filesystem::path there = std::filesystem::absolute(folder);
  while (!std::filesystem::exists(there, error) && there.has_relative_path()) there = there.parent_path();
  if (!std::filesystem::is_directory(there, error))
    throw Error(folder, 0, 0, fmt::format("cannot be made: {} is no folder", there.string()));
  if (::access(there.c_str(), W_OK) != 0)
    throw Error(folder, 0, 0, fmt::format("cannot be written: {}", std::strerror(errno)));
}

void save_outputs(const std::string& folder, const std::vector<Literal>& outputs) {
  std::error_code error;
  std::filesystem::create_directories(folder, error);
  if (error) throw Error(folder, 0, 0, fmt::format("cannot be made: {}", error.message()));
  for (std::size_t i = 0; i < outputs.size(); ++i)
    write_npy(fmt::format("{}/out{}.npy", folder, i), outputs[i]);
}

/// This program again, for another one to start.
std::string own_path() {
  if (const char* wrapper = std::getenv("STITCHWORK_PROGRAM"); wrapper != nullptr && *wrapper != '\0')
    return wrapper;
  return std::filesystem::read_symlink("/proc/self/exe").string();
}

/// Runs the same command once more under Nsight Compute and gives each kernel the counters of its first
/// launch.
void read_counters(const Cli& cli, TrialResult& result) {
  const FusionPlan& plan = result.executable.plan;
  if (!plan.computations.empty())
    throw Error(
        "loops and branches launch kernels in an order of their own: their counters cannot be told apart",
        "leave out --counters");
  const TemporaryFolder folder;
  std::vector<std::string> command = {own_path()};
  std::copy_if(cli.words.begin(), cli.words.end(), std::back_inserter(command),
               [](const std::string& word) { return word != "--counters" && word != "--check"; });
  for (const std::string& word : {std::string("--repeats"), std::string("0"), std::string("--db"),
                                  (folder.path() / "runs.db").string()})
    command.push_back(word);
  const auto launches = cuda::profile(command, "k");
  std::size_t launch = 0;
  const auto steps = std::count_if(plan.steps.begin(), plan.steps.end(),
                                   [](const PlanStep& step) { return step.kind == StepKind::kKernel; });
  if (static_cast<std::size_t>(steps) != launches.size())
    throw Error(fmt::format("ncu profiled {} launches of the plan's {}", launches.size(), steps));
  for (const PlanStep& step : plan.steps)
    if (step.kind == StepKind::kKernel)
      result.run.kernels[static_cast<std::size_t>(step.kernel)].profiled = launches[launch++];
}

/// Of a compiler's dump, which has its plan and kernels: what of `run` says how one is made does not apply.
DumpRunArguments dump_arguments(const CLI::App& command, const RunArguments& a) {
  const std::string dump = dump_of(a.plan);
  refuse_options(command, dump,
                 {"--planner",
                  "--set",
                  "--override",
                  "--library",
                  "--mixed",
                  "--tf32",
                  "--weights",
                  "--backend",
                  "--repeats",
                  "--counters",
                  "--convolutions",
                  "--products",
                  "--dependent-launch",
                  "--fast-math",
                  "--max-trips",
                  "--shuffle",
                  "--trace",
                  "--dim",
                  "--value",
                  "--trips"});
  return {.path = dump,
          .device = a.device->count() > 0 ? a.plan.device : "",
          .model = a.plan.model == dump ? "" : a.plan.model,
          .db = a.db,
          .cache = a.cache,
          .mode = a.mode,
          .sanitize = a.sanitize,
          .inputs = a.inputs,
          .outputs = a.outputs,
          .seed = a.seed,
          .check = a.check};
}

TrialSpec trial_spec(const RunArguments& a) {
  TrialSpec spec;
  spec.planner = a.plan.planner;
  spec.options = a.plan.options();
  spec.device = a.plan.device;
  spec.backend = a.backend;
  spec.repeats = a.repeats;
  spec.convolutions = a.convolutions;
  spec.products = a.products;
  spec.compile.dependent_launch = a.dependent_launch;
  spec.compile.fast_math = a.fast_math;
  if (a.backend == "cuda" && a.device->count() == 0 && a.plan.plan_file.empty())
    spec.device = cuda::described(cuda::gpu(*cuda::load_driver(), 0)).id;
  spec.cache = a.cache == "warm" ? sim::CacheMode::kWarm : sim::CacheMode::kCold;
  spec.seed = a.seed;
  spec.max_trips = a.max_trips;
  if (a.shuffled->count() > 0) spec.shuffle = a.shuffle;
  if (spec.shuffle && spec.cache == sim::CacheMode::kWarm)
    throw Error("in a warm cache a kernel's counters depend on the order of the steps",
                "leave out --shuffle, or use --cache cold");
  spec.inputs_dir = a.inputs;
  spec.check = a.check;
  spec.sampled = a.mode == "sampled";
  if (spec.sampled && !a.outputs.empty())
    throw Error("--mode sampled runs some of the blocks: outputs would be incomplete",
                "leave out --outputs, or use --mode exact");
  if (!a.sanitize.empty()) spec.sanitize = sim::parse_sanitizers(a.sanitize);
  return spec;
}

/// How the times of a simulated run were had.
std::string simulated_method(const TrialSpec& spec, const RunResult& run) {
  const std::string_view method = spec.sampled ? "sampled" : "simulated";
  if (run.library_calls.empty()) return fmt::format("kernels {}, library calls modelled", method);
  return fmt::format("kernels and matrix products {}, other library calls modelled", method);
}

void run(Cli& cli, const RunArguments& a) {
  if (a.counters && a.backend != "cuda")
    throw Error("--counters reads a GPU's: simulated runs count by themselves",
                "leave it out, or use --backend cuda");
  if (!a.trace.empty()) require_writable(a.trace);  // before the long work, as all that it writes to
  if (!a.outputs.empty()) require_folder(a.outputs);
  const std::string db = a.db.empty() ? default_store_path() : a.db;
  const std::filesystem::path folder = std::filesystem::path(db).parent_path();
  std::error_code none;
  if (!a.db.empty() && !folder.empty() && !std::filesystem::exists(folder, none))
    cli.err << fmt::format("{} is a new folder\n", folder.string());
  Store store = Store::open(db);  // before the long work: an unwritable database is found at once
  TrialSpec spec = trial_spec(a);
  Model model;
  if (a.plan.plan_file.empty()) {
    if (a.plan.model.empty()) throw no_model();
    model = a.plan.open.load(a.plan.model);
  } else {
    Planned planned = load_planned(a.plan);
    model = std::move(planned.model);
    spec.planner = planned.plan.planner;
    spec.device = planned.plan.device;
    spec.options.tf32 = planned.plan.tf32;
    spec.plan = std::move(planned.plan);
  }
  if (!model.left_out.empty())
    cli.err << fmt::format("stitchwork: note: left out, as no output depends on it: {}\n",
                           fmt::join(model.left_out, ", "));
  TrialResult result = run_trial(model, spec, [&](double done, const std::string& what) {
    cli.progress(fmt::format("[{:3.0f}%] {}", 100 * done, what));
  });
  if (a.counters) {
    cli.progress("[100%] reading counters");
    read_counters(cli, result);
  }
  cli.progress("");
  const std::int64_t attempt = store.record("adhoc", model, spec, result);
  if (!a.trace.empty()) write_file(a.trace, trace_json(model, spec, result).dump(1) + "\n");
  if (!a.outputs.empty() && result.run.findings.empty()) save_outputs(a.outputs, result.run.outputs);
  if (!result.ok()) cli.exit_code = kExitBadInput;
  if (cli.json) return cli.print(run_to_json(model, spec, result));

  const FusionPlan& plan = result.executable.plan;
  const bool simulated = a.backend == "sim";
  cli.print(kernels_text(model, result, simulated));
  const bool modelled = std::any_of(result.run.steps.begin(), result.run.steps.end(),
                                    [](const StepRun& step) { return step.method == Method::kModelled; });
  cli.print(fmt::format(
      "{}: {}; {:.1f} us{} on {} ({})", plan.planner, to_text(plan.counts), result.run.total_us,
      result.run.once_us > 0 ? fmt::format(", and {:.1f} us once,", result.run.once_us) : "", plan.device,
      simulated  ? simulated_method(spec, result.run)
      : modelled ? std::string("sum of steps: kernels measured, what the CPU computed modelled")
                 : std::string("sum of steps, measured")));
  if (!simulated) cli.print(repeated_text(result.run));
  if (simulated || a.counters) cli.print("\n" + counters_text(model, result, a.counters) + "\n");
  if (!result.run.library_calls.empty()) cli.print(library_text(result.run));
  print_checks(cli, result.executable);
  for (const sim::Finding& f : result.run.findings) cli.err << fmt::format("stitchwork: {}\n", to_text(f));
  if (!a.sanitize.empty() && result.run.findings.empty())
    cli.print(to_text(spec.sanitize, result.run.sanitized) + "; no findings");
  if (result.check) cli.print(check_text(*result.check));
  cli.err << fmt::format("stored as attempt {} in {}\n", attempt, db);
}

}  // namespace

void add_run(CLI::App& app, Cli& cli) {
  CLI::App* command =
      app.add_subcommand("run", "plan, compile and run a model; counters and times per kernel");
  auto a = std::make_shared<RunArguments>();
  a->plan.add_model(*command);
  a->plan.add_planning(*command);
  a->device = a->plan.add_device(*command);
  command->add_option("--backend", a->backend, "sim: the PTX simulator; cuda: an NVIDIA GPU")
      ->capture_default_str()
      ->check(CLI::IsMember({"sim", "cuda"}));
  command->add_option("--repeats", a->repeats, "cuda: of every kernel and of the whole, at least; 0: one run")
      ->capture_default_str()
      ->multi_option_policy(CLI::MultiOptionPolicy::TakeLast)
      ->check(CLI::Range(0, 100000));
  command->add_flag("--counters", a->counters,
                    "cuda: read the GPU's counters by Nsight Compute, in a second run");
  command
      ->add_option("--convolutions", a->convolutions,
                   "cuda: cudnn, patches (gathered for cuBLAS), or auto: cuDNN where it is and can")
      ->capture_default_str()
      ->check(CLI::IsMember({"auto", "cudnn", "patches"}));
  command->add_option("--products", a->products,
                      "matrix products by our own kernel of this tile, simulated or measured as others: "
                      "tiled-64x64, or tiled-32x32/8 with k split (default: a library's)");
  command->add_flag("--dependent-launch", a->dependent_launch,
                    "cuda, sm_90: kernels' blocks start while the one before ends, and wait themselves");
  add_fast_math(*command, a->fast_math);
  command->add_flag("--check", a->check, "compare the outputs with the reference evaluator");
  add_sanitize(*command, a->sanitize);
  command->add_option("--cache", a->cache, "L2 between kernels: cold (empty at each kernel) or warm")
      ->capture_default_str()
      ->check(CLI::IsMember({"cold", "warm"}));
  command
      ->add_option(
          "--mode", a->mode,
          "exact: every block; sampled: a few waves of a kernel's blocks stand for all; counters and times "
          "only")
      ->capture_default_str()
      ->check(CLI::IsMember({"exact", "sampled"}));
  add_seed(*command, a->seed, "of the generated inputs");
  command->add_option("--max-trips", a->max_trips, "of one loop: a run whose loop goes on ends there")
      ->capture_default_str()
      ->check(CLI::Range(std::int64_t{1}, std::numeric_limits<std::int64_t>::max()));
  a->shuffled = command->add_option("--shuffle", a->shuffle,
                                    "sim: seed of another order of the steps, as streams and waits allow");
  command->add_option("--inputs", a->inputs, "folder of .npy inputs, by parameter name or number");
  command->add_option("--outputs", a->outputs, "folder to save outputs in, as out0.npy, out1.npy, ...");
  command->add_option("--trace", a->trace,
                      "file for the timeline, which ui.perfetto.dev and chrome://tracing open");
  command->add_option("--db", a->db, "store (default ${XDG_DATA_HOME:-~/.local/share}/stitchwork/runs.db)")
      ->multi_option_policy(CLI::MultiOptionPolicy::TakeLast);
  add_common(*command, cli,
             "  stitchwork run softmax --planner astitch --device v100 --check\n"
             "  stitchwork run bert_layer --planner xla --check --db runs.db --json\n"
             "  stitchwork run softmax --planner astitch --sanitize mem,race,sync,init\n"
             "  stitchwork run softmax --mode sampled --json\n"
             "  stitchwork run scrnn_tiny -p astra --products tiled-64x64 --check\n"
             "  stitchwork run bert_layer --planner astitch --trace trace.json\n"
             "  stitchwork run scrnn_tiny --planner astra --shuffle 1 --check\n"
             "  stitchwork run --plan plan.json --outputs out/\n"
             "  stitchwork run dumps/softmax-a100 --check\n"
             "  stitchwork run softmax --plan dumps/softmax-a100 --check --db runs.db");
  command->callback([&cli, a, command] {
    if (!dump_of(a->plan).empty())
      run_dump(cli, dump_arguments(*command, *a));
    else
      run(cli, *a);
  });
}

}  // namespace stitchwork
