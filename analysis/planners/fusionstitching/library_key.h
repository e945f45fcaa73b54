// Keys of the performance library: FusionStitching 2018, section 4.4, "opcode, shape, split_dim, sword,
// sched_type, thread block size" and what is special to the op. As text they are what a library is looked up
// by; what they say suffices to make the op's kernel alone (one_op.h).
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "analysis/planners/fusionstitching/schedule.h"
#include "core/graph/graph.h"

namespace stitchwork::fusionstitching {

/// The op of a key. Beyond the paper: the element type, and operands where they are not all of the result's
/// shape.
struct KeyOp {
  Op op = Op::kCopy;
  std::string kind;                ///< of a reduce "add", of a comparison "LT"; else ""
  Shape shape;                     ///< of a reduce its operand's; else the result's
  std::vector<std::int64_t> dims;  ///< reduced, or of a transpose the permutation
  DotDims dot;
  std::vector<Shape> operands;  ///< of those that are not all of the result's shape; none of reduces and
                                ///< transposes
  bool operator==(const KeyOp&) const = default;
};

/// What a key says.
struct LibraryKey {
  KeyOp op;
  Schedule schedule;  ///< of chunks that are ranges, Row
  int threads = 32;   ///< of a block
  int warps = 1;      ///< of a row of a reduction
  bool operator==(const LibraryKey&) const = default;
};

/// Dims of the op's result.
Dims result_dims(const KeyOp& op);

/// None of ops that a kernel of our own does not compute alone, and of those that need more to be told than
/// a key says: windows, reductions by several operations, reduced precision.
std::optional<KeyOp> key_op(const Graph& graph, const Computation& computation, const Node& node);

/// The schedule that keys name for all that make the same chunks; none of chunks that are no range of
/// elements, which no loop of ours deals with.
std::optional<Schedule> key_schedule(const Dims& dims, const Schedule& schedule);

/// "reduce.add f32[16,64,64]{2}", "divide f32[64,96]", "compare.LT pred[64] f32[64] f32[64]",
/// "transpose f32[96,64]{1,0}", "dot f32[2,8,8]{0|0|2|1} f32[2,8,64] f32[2,64,8]" (batch dims left and right,
/// contracted dims left and right).
std::string to_text(const KeyOp& op);
/// That and " row 0/16 t256 w4": schedule, threads, and of reductions the warps of a row.
std::string to_text(const LibraryKey& key);

/// Reads what to_text prints. Throws Error naming the key and what is wrong with it: unknown ops and element
/// types, schedules that do not divide, threads that are no multiple of 32 in [32, 1024].
LibraryKey parse_library_key(std::string_view text);

}  // namespace stitchwork::fusionstitching
