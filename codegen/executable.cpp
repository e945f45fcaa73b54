#include "codegen/executable.h"

#include <algorithm>
#include <atomic>
#include <exception>
#include <thread>

#include "analysis/control_flow.h"
#include "codegen/cache.h"
#include "codegen/compiler.h"
#include "core/error.h"
#include "core/hlo_text.h"

namespace stitchwork {
namespace {

/// One source to compile, for all the kernels that have it.
struct Job {
  std::string source;
  CachedKernel result;
  bool from_cache = false;
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

  /// All jobs, over the host's cores. The first failure (by job) is thrown when all have ended.
  void run(std::vector<Job>& jobs) const {
    std::atomic<std::size_t> next = 0;
    std::vector<std::exception_ptr> failures(jobs.size());
    const auto work = [&] {
      for (std::size_t j = next++; j < jobs.size(); j = next++) try {
          run(jobs[j]);
        } catch (...) {
          failures[j] = std::current_exception();
        }
    };
    const std::size_t workers =
        std::min<std::size_t>(jobs.size(), std::max(1u, std::thread::hardware_concurrency()));
    std::vector<std::thread> threads;
    for (std::size_t t = 1; t < workers; ++t) threads.emplace_back(work);
    work();
    for (std::thread& thread : threads) thread.join();
    for (const std::exception_ptr& failure : failures)
      if (failure) std::rethrow_exception(failure);
  }

 private:
  void run(Job& job) const {
    const std::string key = KernelCache::key(job.source, compiler_, architecture_);
    if (auto cached = cache_.read(key); cached && (!cubin_ || !cached->cubin.empty())) {
      job.result = std::move(*cached);
      job.from_cache = true;
      if (job.result.use || ptxas_.empty()) return;
    } else if (cubin_) {
      Code code = compile_code(compiler_, job.source, architecture_);
      job.result.ptx = std::move(code.ptx);
      job.result.cubin = std::move(code.cubin);
    } else {
      job.result.ptx = compile_ptx(compiler_, job.source, architecture_);
    }
    if (!ptxas_.empty()) job.result.use = run_ptxas(ptxas_, job.result.ptx, architecture_);
    if (!job.from_cache || job.result.use) cache_.write(key, job.result);
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
  if (!job.result.use) return;
  compiled.registers = job.result.use->registers;
  compiled.spill_bytes = job.result.use->spill_bytes;
}

}  // namespace

CompiledKernel compile_kernel(const std::string& cuda, const std::string& entry, const KernelLaunch& launch,
                              const Device& device, const CompileOptions& options) {
  CompiledKernel compiled;
  compiled.entry = entry;
  compiled.cuda = std::string(cuda_prelude()) + cuda;
  compiled.source_sha256 = sha256_hex(compiled.cuda);
  compiled.launch = launch;
  std::vector<Job> jobs{{compiled.cuda, {}, false}};
  Compilation(device, options).run(jobs);
  take(jobs.front(), compiled);
  return compiled;
}

Executable compile(const Graph& graph, const Device& device, const FusionPlan& plan,
                   const CompileOptions& options) {
  const Compilation compilation(device, options);
  Executable executable;
  executable.plan = plan;
  executable.compiler = compilation.compiler().id;
  executable.architecture = compilation.architecture();

  const std::string prelude(cuda_prelude());
  std::vector<Job> jobs;
  std::vector<std::size_t> job_of;
  std::map<std::string, std::size_t> known;  // layers of a model share their kernels
  for (const KernelPlan& kernel_plan : plan.kernels) {
    const Kernel kernel = lower(graph, kernel_plan);
    CompiledKernel compiled;
    compiled.entry = "k";
    compiled.cuda = prelude + to_cuda(graph, kernel, false);
    compiled.arguments = kernel_arguments(kernel);
    compiled.table = kernel_table(kernel);
    compiled.launch = kernel.launch;
    std::string source = prelude + to_cuda(graph, kernel, true);
    compiled.source_sha256 = sha256_hex(source);
    const auto [it, inserted] = known.try_emplace(compiled.source_sha256, jobs.size());
    if (inserted) jobs.push_back({std::move(source), {}, false});
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
