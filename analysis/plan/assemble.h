// From kernels to a plan: the part every planner shares.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "analysis/plan/plan.h"

namespace stitchwork {

/// Orders kernels, library calls, copies and memsets topologically (ties by node id), names and numbers the
/// kernels, fills `outputs`, counts, model, device and planner. `kernels` need ops, groups, schemes, levels
/// and launch. Every kMemory node not only used as an immediate must be in some kernel, or in one of `calls`:
/// library calls of several ops (analysis/plan/epilogue.h).
FusionPlan assemble(const Graph& graph, const Device& device, std::string planner,
                    std::vector<KernelPlan> kernels, std::vector<std::vector<NodeId>> calls = {});

/// Whether kernels and calls wait for each other in no circle, so that assemble can order them.
bool can_be_ordered(const Graph& graph, std::vector<KernelPlan> kernels,
                    std::vector<std::vector<NodeId>> calls = {});

/// The values a kernel reads from device memory: operands of its ops that it does not compute itself and that
/// are not immediates, ascending; aliases resolved to the op that owns the buffer.
std::vector<NodeId> kernel_inputs(const Graph& graph, const KernelPlan& kernel);

/// The op whose buffer holds `node`'s values outside kernels. It follows kAlias ops to the op they rename, so
/// an alias is never materialised: a kernel that ends in a reshape materialises the reshape's operand. Tuples
/// and elements of tuples that something else made are their own.
NodeId buffer_of(const Computation& computation, NodeId node);

/// The op that owns the memory in which `node`'s values lie outside kernels: `buffer_of`, and of an update in
/// place the array that it updates (core/passes/in_place.h).
NodeId storage_of(const Computation& computation, NodeId node);

/// The op that owns that memory where arrays share it: `storage_of`, and of a block the op whose buffer is
/// the matrix that it lies in (core/passes/lay_beside.h).
NodeId memory_of(const Computation& computation, NodeId node);

/// The ops a kernel or a group materialises: dominants and sub-dominants, ascending.
std::vector<NodeId> materialised(const KernelPlan& kernel);
std::vector<NodeId> materialised(const Group& group);

/// The ops whose buffers hold `node`'s values: `buffer_of` followed through tuples and concatenations in
/// place, ascending.
std::vector<NodeId> values_read(const Computation& computation, NodeId node);

/// `values_read` of every input of a kernel: whose steps come before it (an input may be an element of a
/// tuple).
std::vector<NodeId> kernel_reads(const Graph& graph, const KernelPlan& kernel);

/// `values_read` of every operand of a library call, copy or opaque op.
std::vector<NodeId> library_inputs(const Computation& computation, const Node& node);
/// The same of a call of several ops, but for what it computes itself.
std::vector<NodeId> library_inputs(const Computation& computation, std::span<const NodeId> call);

}  // namespace stitchwork
