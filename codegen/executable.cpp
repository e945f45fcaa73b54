#include "codegen/executable.h"

#include <algorithm>
#include <chrono>
#include <thread>

#include "analysis/plan/control_flow.h"
#include "analysis/schedule/clusters.h"
#include "codegen/compile/cache.h"
#include "codegen/compile/compiler.h"
#include "codegen/compile/lines.h"
#include "codegen/compile/ptxas.h"
#include "core/base/error.h"
#include "core/base/parallel.h"
#include "core/base/sha256.h"
#include "core/graph/float_semantics.h"
#include "core/hlo/hlo_text.h"

namespace stitchwork {
namespace {

/// One source to compile, for all the kernels that have it.
struct Job {
  std::string kernel;  ///< the first of them and its plan, for errors
  std::string entry;
  std::string source;
  CachedKernel result;
  bool from_cache = false;
  double ms = 0;  ///< wall time; of what was compiled together a kernel's part
};

class Compilation {
 public:
  Compilation(const Device& device, const CompileOptions& options)
      : compiler_(find_compiler(options.compiler)),
        architecture_(compile_architecture(compiler_, device)),
        cubin_(options.cubin && compiles_for(compiler_, device)),
        ptxas_(options.ptxas ? find_ptxas() : std::string()),
        cache_(options.cache_dir) {}

  const PtxCompiler& compiler() const { return compiler_; }
  int architecture() const { return architecture_; }

  /// All jobs, over the host's cores.
  void run(std::vector<Job>& jobs) const {
    parallel_for(jobs.size(), [&](std::size_t j) {
      read(jobs[j]);
      if (jobs[j].from_cache) finish(jobs[j]);
    });
    std::vector<Job*> missing;
    for (Job& job : jobs)
      if (!job.from_cache) missing.push_back(&job);
    const std::vector<std::vector<Job*>> programs = parted(missing);
    // Into the cache with each program: who interrupts a long compilation keeps what is done.
    parallel_for(programs.size(), [&](std::size_t p) {
      make(programs[p]);
      ask_together(programs[p]);
      for (Job* job : programs[p]) finish(*job);
    });
  }

 private:
  using Clock = std::chrono::steady_clock;
  static double ms_since(Clock::time_point begin) {
    return std::chrono::duration<double, std::milli>(Clock::now() - begin).count();
  }

  /// Runs `body`; its errors name the kernel.
  template <typename Body>
  static void of_kernel(const Job& job, const Body& body) {
    try {
      body();
    } catch (const Error& error) {
      throw Error(fmt::format("kernel {}: {}", job.kernel, error.message()), error.hint());
    }
  }

  void read(Job& job) const {
    const auto begin = Clock::now();
    auto cached = cache_.read(KernelCache::key(job.source, compiler_, architecture_));
    if (!cached || (cubin_ && cached->cubin.empty())) return;
    job.result = std::move(*cached);
    job.from_cache = true;
    job.ms = ms_since(begin);
  }

  /// Jobs to compile as one program each: PTX of one entry's name, and a part for each core.
  std::vector<std::vector<Job*>> parted(const std::vector<Job*>& jobs) const {
    // A choice, not measured: NVRTC's start is then a tenth of what a program takes, and its errors are found
    // in one of few.
    constexpr std::size_t kMost = 32;
    const std::size_t cores = std::max(1u, std::thread::hardware_concurrency());
    const std::size_t each =
        std::clamp<std::size_t>((jobs.size() + cores - 1) / cores, 1, cubin_ ? 1 : kMost);
    std::vector<std::vector<Job*>> programs;
    for (Job* job : jobs) {
      if (programs.empty() || programs.back().size() == each || programs.back().front()->entry != job->entry)
        programs.emplace_back();
      programs.back().push_back(job);
    }
    return programs;
  }

  void make(const std::vector<Job*>& jobs) const {
    const auto begin = Clock::now();
    if (cubin_ || jobs.size() == 1) {
      Job& job = *jobs.front();
      of_kernel(job, [&] {
        Code code = cubin_ ? compile_code(compiler_, job.source, architecture_)
                           : Code{compile_ptx(compiler_, job.source, architecture_), {}};
        job.result.ptx = std::move(code.ptx);
        job.result.cubin = std::move(code.cubin);
      });
    } else {
      make_together(jobs);
    }
    for (Job* job : jobs) job->ms = ms_since(begin) / static_cast<double>(jobs.size());
  }

  void make_together(const std::vector<Job*>& jobs) const {
    std::vector<std::string_view> sources;
    for (const Job* job : jobs) sources.push_back(job->source);
    auto made = compile_together(compiler_, sources, jobs.front()->entry, architecture_);
    for (std::size_t j = 0; j < jobs.size(); ++j)
      of_kernel(*jobs[j], [&] {
        jobs[j]->result.ptx =
            made[j] ? std::move(*made[j]) : compile_ptx(compiler_, jobs[j]->source, architecture_);
      });
  }

  /// What ptxas says of those that it can be asked of together; the others are asked of alone, by finish.
  void ask_together(const std::vector<Job*>& jobs) const {
    if (ptxas_.empty() || jobs.size() < 2) return;
    const auto begin = Clock::now();
    std::vector<std::string> ptx;
    for (const Job* job : jobs) ptx.push_back(job->result.ptx);
    const auto uses = run_ptxas_together(ptxas_, ptx, jobs.front()->entry, architecture_);
    for (std::size_t j = 0; j < jobs.size(); ++j) jobs[j]->result.use = uses[j];
    for (Job* job : jobs) job->ms += ms_since(begin) / static_cast<double>(jobs.size());
  }

  /// What ptxas says of it, and into the cache.
  void finish(Job& job) const {
    const auto begin = Clock::now();
    const bool ask = !ptxas_.empty() && !job.result.use;
    if (ask) of_kernel(job, [&] { job.result.use = run_ptxas(ptxas_, job.result.ptx, architecture_); });
    if (!job.from_cache || (ask && job.result.use))
      cache_.write(KernelCache::key(job.source, compiler_, architecture_), job.result);
    job.ms += ms_since(begin);
  }

  PtxCompiler compiler_;
  int architecture_;
  bool cubin_;
  std::string ptxas_;
  KernelCache cache_;
};

void take(const Job& job, CompiledKernel& compiled) {
  compiled.ptx = job.result.ptx;
  compiled.cubin = job.result.cubin;
  compiled.from_cache = job.from_cache;
  compiled.compile_ms = job.ms;
  if (!job.result.use) return;
  compiled.registers = job.result.use->registers;
  compiled.spill_bytes = job.result.use->spill_bytes;
}

/// griddepcontrol is of sm_90 (PTX ISA 7.8).
void require_dependent_launches(const Device& device, const Compilation& compilation) {
  // PTX ISA 7.8, griddepcontrol.
  constexpr int kOldest = 90;
  const int architecture = 10 * device.cc_major + device.cc_minor;
  if (architecture < kOldest)
    throw Error(
        fmt::format("dependent launches need sm_{} or later, {} is sm_{}", kOldest, device.id, architecture),
        "leave out --dependent-launch");
  if (compilation.architecture() < kOldest)
    throw Error(fmt::format("dependent launches need code for sm_{} or later, {} makes it for sm_{}", kOldest,
                            compilation.compiler().id, compilation.architecture()),
                "leave out --dependent-launch, or use an NVRTC that knows the device's architecture");
}

/// clang's PTX is made that of sm_90 (ptx_target.h); NVRTC writes it for architectures it knows.
void require_clusters(const KernelPlan& kernel, const Compilation& compilation) {
  if (kernel.launch.cluster == 1 || compilation.compiler().kind == CompilerKind::kClang ||
      compilation.architecture() >= kClusterArchitecture)
    return;
  throw Error(
      fmt::format("kernel {} is launched in clusters, which need code for sm_{} or later; {} makes it for "
                  "sm_{}",
                  kernel.id, kClusterArchitecture, compilation.compiler().id, compilation.architecture()),
      "plan with --set clusters=off, or use an NVRTC that knows the device's architecture, or clang");
}

std::string with_prelude(const std::string& cuda, const CompileOptions& options) {
  return cuda_prelude(cuda, options.fast_math) + cuda;
}

/// Every kernel passes f16 on with what NaN carries, where another may tell.
constexpr std::string_view kKeepNan =
    "#define sw_f16 sw_f16_and_nan\n"
    "#define sw_to_f16 sw_to_f16_and_nan\n";

}  // namespace

std::string kernel_and_plan(const FusionPlan& plan, const KernelPlan& kernel) {
  const KernelLaunch& launch = kernel.launch;
  return fmt::format(
      "{} {} (planner {} for {}; {} blocks of {} threads, {} bytes of shared memory, {} grid barriers)",
      kernel.id, kernel.name, plan.planner, plan.device, launch.grid, launch.block, launch.shared_bytes,
      launch.grid_barriers);
}

CompiledKernel compile_kernel(const std::string& cuda, const std::string& entry, const KernelLaunch& launch,
                              const Device& device, const CompileOptions& options) {
  CompiledKernel compiled;
  compiled.entry = entry;
  compiled.cuda = with_prelude(cuda, options);
  compiled.source_sha256 = sha256_hex(compiled.cuda);
  compiled.launch = launch;
  std::vector<Job> jobs{{entry, entry, compiled.cuda, {}, false, 0}};
  Compilation(device, options).run(jobs);
  take(jobs.front(), compiled);
  return compiled;
}

std::string compile_with_lines(const Graph& graph, const Device& device, const KernelPlan& kernel,
                               const CompileOptions& options) {
  CompileOptions only_ptx = options;
  only_ptx.ptxas = only_ptx.cubin = false;
  std::vector<Job> jobs{{kernel.id + " " + kernel.name,
                         kernel.name,
                         with_lines(to_cuda(graph, build_schedule(graph, kernel), false), options.fast_math),
                         {},
                         false,
                         0}};
  Compilation(device, only_ptx).run(jobs);
  return jobs.front().result.ptx;
}

Executable compile(const Graph& model, const Device& device, const FusionPlan& plan,
                   const CompileOptions& options) {
  if (plan.peer != nullptr)
    throw Error(
        plan.peer->dump, 0, 0,
        fmt::format("{} made the plan and its kernels: nothing of it is compiled here", plan.peer->title),
        "`stitchwork run` runs a dump");
  const Graph& graph = planned_graph(model, plan);
  const Compilation compilation(device, options);
  if (options.dependent_launch) require_dependent_launches(device, compilation);
  Executable executable;
  executable.plan = plan;
  executable.compiler = compilation.compiler().id;
  executable.architecture = compilation.architecture();

  const std::string_view conversions = tells_nans_apart(graph, DType::kF16) ? kKeepNan : "";
  const auto text_of = [&](const Schedule& kernel, bool canonical) {
    return with_prelude(
        fmt::format("{}{}", conversions, to_cuda(graph, kernel, canonical, options.dependent_launch)),
        options);
  };
  std::vector<Job> jobs;
  std::vector<std::size_t> job_of;
  std::map<std::string, std::size_t> known;  // layers of a model share their kernels
  for (const KernelPlan& kernel_plan : plan.kernels) {
    require_clusters(kernel_plan, compilation);
    const Schedule kernel = build_schedule(graph, kernel_plan);
    CompiledKernel compiled;
    compiled.entry = "k";
    compiled.cuda = text_of(kernel, false);
    compiled.arguments = kernel_arguments(kernel);
    compiled.table = kernel_table(kernel);
    compiled.launch = kernel.launch;
    compiled.dependent = options.dependent_launch;
    std::string source = text_of(kernel, true);
    compiled.source_sha256 = sha256_hex(source);
    const auto [it, inserted] = known.try_emplace(compiled.source_sha256, jobs.size());
    if (inserted)
      jobs.push_back({kernel_and_plan(plan, kernel_plan), compiled.entry, std::move(source), {}, false, 0});
    job_of.push_back(it->second);
    executable.kernels.push_back(std::move(compiled));
  }
  compilation.run(jobs);
  for (std::size_t k = 0; k < executable.kernels.size(); ++k) take(jobs[job_of[k]], executable.kernels[k]);
  for (const ComputationPlan& part : plan.computations)
    executable.computations.push_back(compile(entered(graph, part.computation), device, part.plan, options));
  return executable;
}

}  // namespace stitchwork
