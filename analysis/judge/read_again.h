// Rows that several steps of a task go through, and of which a thread's registers do not hold its part.
#pragma once

#include <vector>

#include "analysis/plan/plan.h"
#include "analysis/schedule/evaluations.h"

namespace stitchwork {

/// Registers of a thread for its elements of a value of this type.
std::int64_t registers_of_elements(const Group& group, int block, DType dtype);

/// Of each value of the group: in how many steps of its phase it is loaded, from memory
/// (analysis/schedule/keep.h keeps what fits) or its tile, or computed. In one, but for elements of row_pack
/// groups; what is kept across grid barriers does not count again. A reduction gathered in an earlier pass
/// asks for its x there and for nothing else, so what it alone is made of counts in none.
std::vector<int> steps_of_values(const Graph& graph, const KernelPlan& kernel, const Group& group,
                                 const GroupEvaluations& found);

/// Whether the L1 has the rows that the `blocks` of an SM are at, as far as they are loaded again: what their
/// shared memory leaves of it.
bool l1_holds(const Computation& computation, const Device& device, const KernelPlan& kernel,
              const Group& group, const GroupEvaluations& found, const std::vector<int>& steps, int blocks);

/// Bytes of the L1 that the shared memory of the `blocks` of an SM leaves, at least.
std::int64_t l1_room(const Device& device, const KernelPlan& kernel, int blocks);

/// Of what is loaded again of so many bytes of rows, those that all resident blocks are at: what the L2 does
/// not hold.
double share_beyond_l2(const Device& device, double resident_bytes);

}  // namespace stitchwork
