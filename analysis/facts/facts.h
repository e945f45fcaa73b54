// What planners ask of a graph: which ops make kernels, which are only names, what a reduction looks like.
#pragma once

#include <cstdint>
#include <vector>

#include "core/graph/graph.h"
#include "core/index/index_map.h"

namespace stitchwork {

/// What an op is to a plan.
enum class PlanRole : std::uint8_t {
  kSource,   ///< parameter, constant: a buffer or an immediate, no step
  kAlias,    ///< bitcast, shape-only reshape, tuple, get-tuple-element: another name of its operand's buffer
             ///< when it stands between things that are not generated; inside a stitched kernel it is only an
             ///< index map
  kMemory,   ///< generated: becomes part of a kernel
  kLibrary,  ///< dot, convolution, sort, scatter, ...: a library call
  kOpaque,   ///< control flow, variadic reduction (the evaluator runs them), custom call (does not run): a
             ///< library step of its own
};
PlanRole plan_role(const Node& node);

/// Scalar constants (and broadcasts and reshapes of them) cost nothing: they are immediates in every kernel
/// that reads them, also where some kernel materialises them for a library call or a graph result.
bool is_immediate(const Computation& computation, NodeId node);

/// The size of a reduction's domain: [rows, cols] as Mapping has it.
struct ReductionSize {
  std::int64_t rows = 1, cols = 1;
  bool row_reduce =
      true;  ///< the minor-most dimension of extent > 1 is reduced: adjacent threads read adjacent cols
};
ReductionSize reduction_size(const Computation& computation, NodeId reduce);

/// A reduction's domain, with its maps.
struct ReductionShape : ReductionSize {
  /// Maps (row, col) to the index of the reduced operand.
  IndexMap input_map;
  /// Maps (row, col) to the index of the reduce's result (uses only d0).
  IndexMap output_map;
};
ReductionShape reduction_shape(const Computation& computation, NodeId reduce);

}  // namespace stitchwork
