// Library steps of a run: a call of one op, or of a product or convolution with its epilogue.
#pragma once

#include <optional>
#include <vector>

#include "runtime/backend.h"
#include "runtime/run_values.h"

namespace stitchwork {

/// Made by the backend; nothing where that has no such call. Throws Error where the step names a kernel of
/// ours that does not make its product.
std::optional<Timed> made_call(const Computation& computation, const PlanStep& step, RunValues& values,
                               Backend& backend);

/// What it gives, by the CPU reference.
Literal computed_call(const Graph& graph, const std::vector<NodeId>& call, RunValues& held);

}  // namespace stitchwork
