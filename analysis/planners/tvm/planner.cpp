// TVM's fusion of this graph (docs/planners/tvm.md): post-dominators, the partition, a kernel a function.
#include "analysis/planners/planner.h"

#include "analysis/plan/assemble.h"
#include "analysis/planners/tvm/functions.h"
#include "analysis/schedule/inlined_kernel.h"

namespace stitchwork {

FusionPlan plan_tvm(const Graph& graph, const Device& device, const PlanOptions& options) {
  const Computation& computation = graph.entry_computation();
  Recorder recorder(options.record_decisions);
  std::vector<tvm::Function> functions = tvm::functions(computation, recorder);
  if (options.knobs.at("duplicate_cheap") == "on")
    functions = tvm::duplicate_cheap(computation, std::move(functions), recorder);

  std::vector<KernelPlan> kernels;
  for (const tvm::Function& function : functions) kernels.push_back(tvm::kernel_of(computation, function));
  mark_recomputed(kernels);
  FusionPlan plan = assemble(graph, device, "tvm", std::move(kernels));
  plan.decisions = recorder.take();
  return plan;
}

}  // namespace stitchwork
