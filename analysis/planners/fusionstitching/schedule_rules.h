// Table 1 of FusionStitching 2018 (section 4.2): how a schedule of an op's output becomes one of an operand,
// of the same number of blocks, such that a block's chunk needs the operand's same chunk alone. One function
// an op class; analysis/planners/fusionstitching/locality.h is the rule for ops that the table does not have.
#pragma once

#include <optional>
#include <string>

#include "analysis/planners/fusionstitching/schedule.h"
#include "core/graph/graph.h"

namespace stitchwork::fusionstitching {

/// The operand's schedule; none where the table refuses, or has no rule. One block passes everything, except
/// through a dot, whose rule knows Row of its batch dims alone.
std::optional<Schedule> pass(const Computation& computation, const Node& node, int operand,
                             const Schedule& schedule);

/// Element-wise, transpose, reduce, dot, reshape, broadcast: ops of which Table 1 has a row.
bool has_rule(const Node& node);

/// Which rule refused, in words: "reduce of dims 3..4 passes Row left of dim 3 and Column right of dim 4".
std::string rule_text(const Computation& computation, const Node& node);

}  // namespace stitchwork::fusionstitching
