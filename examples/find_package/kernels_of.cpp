// kernels_of MODEL.hlo [PLANNER] [DEVICE]: the kernels that a planner makes of a model, and their modelled
// times.
#include <cstdio>

#include "analysis/planners/planner.h"
#include "core/base/error.h"
#include "core/hlo/hlo_text.h"
#include "core/passes/passes.h"
#include "occupancy_model/device.h"

int main(int argc, char** argv) {
  using namespace stitchwork;
  if (argc < 2) return std::fprintf(stderr, "kernels_of MODEL.hlo [PLANNER] [DEVICE]\n"), 2;
  try {
    const Graph graph = canonicalize(read_graph(argv[1]));
    const Device& card = device(argc > 3 ? argv[3] : "v100");
    const FusionPlan plan = make_plan(graph, card, argc > 2 ? argv[2] : "astitch");
    const Computation& planned =
        planned_graph(graph, plan).entry_computation();  // what it was rewritten to, if it was
    for (const KernelPlan& kernel : plan.kernels) {
      std::printf("%s %s: %lld blocks of %d threads, %.1f us modelled\n", kernel.id.c_str(),
                  kernel.name.c_str(), static_cast<long long>(kernel.launch.grid), kernel.launch.block,
                  kernel.predicted_us);
      for (const NodeId op : kernel.ops) std::printf("  %s\n", planned.node(op).name.c_str());
    }
  } catch (const Error& error) {
    std::fprintf(stderr, "kernels_of: %s\n", error.what());
    return 1;
  }
}
