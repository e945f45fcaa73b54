// What planners ask of a graph: which ops make kernels, which are only names, what a reduction looks like.
#pragma once

#include <cstdint>
#include <optional>
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
  kLibrary,  ///< dot, convolution, sort, scatter, ...: a library call; a product (below) where no kernel
             ///< lists it
  kOpaque,   ///< control flow, variadic reduction (the evaluator runs them), custom call (does not run): a
             ///< library step of its own
};
PlanRole plan_role(const Node& node);

/// A dot of numbers. A kernel that lists it computes it, as a sum of products over the contracted dimensions
/// (FusionStitching 2018, section 3.2, and 2019, section 4.1, fuse such); where none does it is a library
/// call.
bool is_product(const Node& node);

/// Contracted elements up to which a thread computes an element of a product: FusionStitching 2019, section
/// 5.2, "either thread or block compositions, depending on the reduction dimension size", names no size.
/// A choice, not measured: then a warp's lanes have four each of a longer one.
inline constexpr std::int64_t kSerialProduct = 128;

/// Whether a kernel can compute the op: what is generated, other names of it, products.
bool is_for_kernels(const Node& node);

/// Whether the op is only another view of its operand: kernels repeat it where they need it.
bool is_index_map(const Node& node);

/// A reduce of one array, or a product: what a kernel's threads accumulate.
bool is_reduction(const Node& node);
/// The operands of a reduction whose elements it accumulates are its first so many: one, of a product both.
int reduced_operands(const Node& node);
/// The value that a reduce starts from; kNoNode of a product, which starts from none.
NodeId initial_value(const Node& node);
/// The operation by which a reduction accumulates: that of `simple_reducer`, of a product kAdd.
std::optional<Op> reducer_of(const Graph& graph, const Node& node);

/// Whether atomics can add up the partial results of a reduction: sums from zero of types with an atomic add.
bool adds_atomically(const Graph& graph, const Node& node);

/// Scalar constants (and broadcasts and reshapes of them) cost nothing: they are immediates in every kernel
/// that reads them, also where some kernel materialises them for a library call or a graph result.
bool is_immediate(const Computation& computation, NodeId node);

/// The size of a reduction's domain: [rows, cols] as Mapping has it. Of a product rows are the elements of
/// its result, cols those that are contracted.
struct ReductionSize {
  std::int64_t rows = 1, cols = 1;
  /// The minor-most dimension of extent > 1 is reduced, of a product in both operands: adjacent threads read
  /// adjacent cols.
  bool row_reduce = true;
};
ReductionSize reduction_size(const Computation& computation, NodeId reduce);

/// A reduction's domain, with its maps.
struct ReductionShape : ReductionSize {
  /// Maps (row, col) to the index of the reduced operand; of a product, its first.
  IndexMap input_map;
  /// Maps (row, col) to the index of the reduce's result (uses only d0).
  IndexMap output_map;
};
ReductionShape reduction_shape(const Computation& computation, NodeId reduce);

}  // namespace stitchwork
