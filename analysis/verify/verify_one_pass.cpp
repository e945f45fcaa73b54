#include "analysis/schedule/one_pass.h"
#include "analysis/verify/verify_internal.h"
#include "core/base/sorted.h"

namespace stitchwork::verification {

void check_one_pass(const Graph& graph, const KernelPlan& kernel, Report& report) {
  for (const Group& group : kernel.groups)
    for (const NodeId op : group.one_pass)
      if (const Verdict verdict = can_gather(graph, kernel, group, op); !verdict)
        report.add("one-pass", "kernel {}: {}: it has no earlier pass to be gathered in", kernel.id,
                   verdict.why);
}

}  // namespace stitchwork::verification
