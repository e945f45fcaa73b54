#include "experiments/library_collect.h"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <optional>
#include <set>

#include "analysis/planners/fusionstitching/one_op.h"
#include "core/base/error.h"
#include "core/base/parallel.h"
#include "core/base/version.h"
#include "core/evaluate/inputs.h"
#include "experiments/performance_library.h"
#include "runtime/cuda/backend.h"
#include "runtime/run.h"

namespace stitchwork {
namespace {

using fusionstitching::OneOp;
using fusionstitching::PerformanceLibrary;

/// Rounds of building: times of new keys lead planning to others, as fusions that were not worth it are.
/// A choice, not measured: what a round adds is less than what the one before did.
constexpr int kMostRounds = 5;
/// Kernels that are compiled ahead of being run, side by side.
/// A choice, not measured: many more than a machine has cores, and little to lose by a kill, as compiled
/// kernels are kept in a cache.
constexpr std::size_t kCompiledAhead = 32;

struct Compiled {
  OneOp one;
  Executable executable;
};

class Collector {
 public:
  Collector(const std::vector<Model>& models, const Device& device, const std::string& path,
            const CollectOptions& options)
      : models_(models), device_(device), path_(path), options_(options) {
    library_.device = device.id;
    if (options.backend != "sim" && options.backend != "cuda")
      throw Error(fmt::format("unknown backend '{}'", options.backend), "known: sim, cuda");
    const bool simulated = options.backend == "sim";
    if (options.sampled && !simulated)
      throw Error("a sample is of simulated blocks", "use --backend sim, or --mode exact");
    method_ = name(!simulated ? Method::kMeasured : options.sampled ? Method::kSampled : Method::kSimulated);
    read();
    const std::filesystem::path folder = std::filesystem::absolute(path_).parent_path();
    if (!std::filesystem::is_directory(folder))
      throw Error(path_, 0, 0, "its folder does not exist", "make it, or give another file with --db");
    if (std::filesystem::exists(path_)) writer_ = LibraryWriter::open(path_);
  }

  Collected run() {
    Collected result;
    for (;;) {
      const std::set<std::string> missing = plan(++result.rounds);
      result.missing = missing.size();
      if (missing.empty() || result.rounds > kMostRounds) break;
      build({missing.begin(), missing.end()}, result);
    }
    result.keys = library_.entries.size();
    result.method = method_;
    if (std::filesystem::exists(path_)) result.sha256 = read_library(path_).sha256;
    return result;
  }

 private:
  void read() {
    if (!std::filesystem::exists(path_)) return;
    const LibraryContents contents = read_library(path_);
    if (contents.rows.empty()) return;
    if (contents.device() != device_.id)
      throw Error(path_, 0, 0,
                  fmt::format("is a performance library of {}, not of {}", contents.device(), device_.id),
                  "a library is of one device: give each a file of its own");
    const auto other = std::find_if(contents.methods.begin(), contents.methods.end(),
                                    [&](const std::string& method) { return method != method_; });
    if (!options_.mixed && other != contents.methods.end())
      throw Error(path_, 0, 0, fmt::format("has times that are {}, these would be {}", *other, method_),
                  "give --mixed to have both in one library, or another file");
    // A key counts as known where it has a time of this method.
    for (const LibraryRow& row : contents.rows)
      if (row.method == method_) library_.entries[row.key] = {row.us, row.method};
  }

  void report(std::size_t done, std::size_t of, const std::string& what) const {
    if (options_.progress) options_.progress(done, of, what);
  }

  std::set<std::string> plan(int round) {
    PlanOptions plan_options = options_.plan;
    plan_options.library = &library_;
    std::set<std::string> missing;
    for (const Model& model : models_) {
      report(0, 0, fmt::format("round {}: planning {}", round, model.graph.source));
      const FusionPlan plan = make_plan(model.graph, device_, options_.planner, plan_options);
      missing.insert(plan.library_misses.begin(), plan.library_misses.end());
    }
    return missing;
  }

  void build(const std::vector<std::string>& keys, Collected& result) {
    if (options_.backend == "cuda" && !driver_) driver_ = cuda::load_driver();
    for (std::size_t first = 0; first < keys.size(); first += kCompiledAhead) {
      const std::size_t count = std::min(kCompiledAhead, keys.size() - first);
      report(first, keys.size(), "compiling");
      std::vector<Compiled> kernels(count);
      parallel_for(count, [&](std::size_t i) { kernels[i] = compiled(keys[first + i]); });
      for (std::size_t i = 0; i < count; ++i) {
        const std::string& key = keys[first + i];
        report(first + i, keys.size(), key);
        const double us = time_of(kernels[i], key);
        result.compiler = kernels[i].executable.compiler;
        if (!writer_) writer_ = LibraryWriter::open(path_);
        writer_->insert({{key, device_.id, result.compiler, us, method_, results_version()}});
        library_.entries[key] = {us, method_};
        ++result.built;
      }
    }
    report(keys.size(), keys.size(), "done");
  }

  Compiled compiled(const std::string& key) const {
    Compiled result;
    result.one = fusionstitching::one_op(device_, fusionstitching::parse_library_key(key));
    CompileOptions compile_options = options_.compile;
    compile_options.cubin = options_.backend == "cuda";
    result.executable = compile(result.one.graph, device_, result.one.plan, compile_options);
    return result;
  }

  /// Microseconds of one launch.
  double time_of(const Compiled& kernel, const std::string& key) {
    const Graph& graph = kernel.one.graph;
    const std::vector<Literal> inputs = generate_inputs(graph, 0, {});
    RunResult run;
    if (options_.backend == "sim") {
      RunOptions run_options;
      run_options.sampled = options_.sampled;
      run = run_simulated(graph, device_, kernel.executable, inputs, run_options);
    } else {
      cuda::CudaBackend backend(driver_, device_, {.repeats = options_.repeats, .compile = options_.compile},
                                {cuda::Blas::load, cuda::Dnn::load});
      run = run_on(backend, graph, device_, kernel.executable, inputs);
    }
    if (!run.findings.empty())
      throw Error(fmt::format("the kernel of '{}' is at fault: {}", key, run.findings.front().message),
                  "this is a bug in stitchwork; please report it with the command line");
    return run.kernels.at(0).time_us;
  }

  const std::vector<Model>& models_;
  const Device& device_;
  const std::string path_;
  const CollectOptions& options_;
  std::string method_;
  PerformanceLibrary library_;
  std::optional<LibraryWriter> writer_;
  std::shared_ptr<const cuda::Driver> driver_;
};

}  // namespace

Collected collect_library(const std::vector<Model>& models, const Device& device, const std::string& path,
                          const CollectOptions& options) {
  return Collector(models, device, path, options).run();
}

}  // namespace stitchwork
