// What threads of a block find in its shared memory: the passive block-locality check (AStitch section 4.3)
// and in-place reuse (FusionStitching 2019, Algorithm 4), by index maps. verify and planners ask the same.
#pragma once

#include <cstddef>

#include "analysis/schedule/evaluations.h"
#include "analysis/schedule/steps.h"

namespace stitchwork {

/// Whether every element of `e.op`, a Regional value that group `producer` of the kernel makes, which a task
/// of group `reader` needs for `e` is made by the same task: in the same block, and in the same turn of it.
/// The verdict says what is not: "but ...".
Verdict block_local(const Computation& computation, const KernelPlan& kernel,
                    const KernelEvaluations& evaluated, std::size_t reader, std::size_t producer,
                    const Evaluation& e);

/// Whether `op` may lie in shared memory where `value` does, though the step that makes it reads `value`: no
/// other step reads `value` then or later, and each thread reads there only the elements that it alone
/// writes. Both are Regional values of one phase; their slots must begin at one byte. `steps`:
/// task_steps(kernel).
Verdict in_place(const Computation& computation, const KernelPlan& kernel, const KernelEvaluations& evaluated,
                 const TaskSteps& steps, NodeId value, NodeId op);

}  // namespace stitchwork
