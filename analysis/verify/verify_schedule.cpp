#include "analysis/schedule/check.h"
#include "analysis/verify/verify_internal.h"
#include "core/base/error.h"

namespace stitchwork::verification {

void check_schedule(const Graph& graph, const KernelPlan& kernel, Report& report) {
  try {
    for (const std::string& problem : schedule_problems(graph, build_schedule(graph, kernel)))
      report.add("schedule", "kernel {}: {}", kernel.id, problem);
  } catch (const InternalError& error) {  // no schedule follows from the plan
    report.add("schedule", "kernel {}: {}", kernel.id, error.what());
  } catch (const Error&) {  // it is planned and explained alone: compiling it says which op is not computed
  }
}

}  // namespace stitchwork::verification
