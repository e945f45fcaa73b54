// XLA's classification of ops (docs/planners/xla.md): what is expensive, what a loop fusion may contain,
// which reductions get a tiled kernel. It differs from the op table's classes, which are AStitch's.
#pragma once

#include <cstdint>
#include <optional>

#include "core/graph/graph.h"

namespace stitchwork::xla {

/// Too costly to compute twice.
bool is_expensive(const Computation& computation, const Node& node);

/// A reduction with a tiled kernel of its own: the kept or the reduced dims are contiguous, and the reduced
/// extent a tile iterates over has at least 32 elements.
struct TiledReduction {
  bool row = true;         ///< row reduction: the minor-most part is reduced
  std::int64_t depth = 1;  ///< [depth, height, width]: row keeps height, column keeps depth and width
  std::int64_t height = 1;
  std::int64_t width = 1;
};
std::optional<TiledReduction> tiled_reduction(const Computation& computation, const Node& node);

/// May be part of a loop fusion. A tiled reduction may not; an untiled one is a loop inside each thread.
bool is_loop_fusible(const Computation& computation, const Node& node);

/// Computes each output element in a loop of its own: an untiled reduction or a reduce-window.
bool has_inner_loop(const Computation& computation, const Node& node);

/// `node` reads elements of operand `operand` more than once.
bool reuses_operand(const Computation& computation, const Node& node, int operand);

/// Another name of a parameter's or library call's result, or could be laid out so.
bool is_renamed_input(const Computation& computation, const Node& node);

/// At least two operands as large as the result: recomputing it in every user reads more than it saves.
bool reads_more_than_writes(const Computation& computation, const Node& node);

/// Shared memory XLA's emitter gives a tiled reduction.
std::int64_t tile_shared_bytes(const Computation& computation, const Node& node);

/// The dimension that varies fastest in memory comes from another one.
bool moves_minor_dimension(const Computation& computation, const Node& node);

bool is_scalar_constant(const Node& node);
/// One constant for all elements.
bool is_splat_constant(const Computation& computation, const Node& node);

}  // namespace stitchwork::xla
