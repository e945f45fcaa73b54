// The op table: one row an op. Everything that asks "what is this op?" asks `def(op)`.
//
// To add an op, see CONTRIBUTING.md ("Add an op"): an enumerator here, a row in op_table.cpp, nothing else.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "core/graph/shape.h"

namespace stitchwork {

/// HLO opcodes. The order is the order of the table (statically asserted).
enum class Op : std::uint8_t {
  // sources
  kParameter,
  kConstant,
  kIota,
  kRng,
  kRngBitGenerator,
  kRngGetAndUpdateState,
  kPartitionId,
  kReplicaId,
  // element-wise, unary
  kAbs,
  kNegate,
  kSign,
  kFloor,
  kCeil,
  kRoundNearestAfz,
  kRoundNearestEven,
  kNot,
  kPopcnt,
  kClz,
  kIsFinite,
  kReal,
  kImag,
  kConvert,
  kBitcastConvert,
  kCopy,
  kReducePrecision,
  kOptimizationBarrier,
  kDomain,
  kExp,
  kExpm1,
  kLog,
  kLog1p,
  kTanh,
  kLogistic,
  kSqrt,
  kRsqrt,
  kCbrt,
  kSin,
  kCos,
  kTan,
  kErf,
  kSinh,
  kCosh,
  kAsin,
  kAcos,
  kAsinh,
  kAcosh,
  kAtanh,
  // element-wise, binary and ternary
  kAdd,
  kSubtract,
  kMultiply,
  kMultiplyHigh,
  kDivide,
  kRemainder,
  kMaximum,
  kMinimum,
  kPower,
  kAtan2,
  kAnd,
  kOr,
  kXor,
  kShiftLeft,
  kShiftRightLogical,
  kShiftRightArithmetic,
  kCompare,
  kComplex,
  kSelect,
  kClamp,
  kStochasticConvert,
  kMap,
  // shape and layout: only index maps
  kBroadcast,
  kReshape,
  kDynamicReshape,
  kBitcast,
  kTranspose,
  kSlice,
  kReverse,
  kConcatenate,
  kConcatInPlace,  ///< whose operands lie beside each other already (core/passes/lay_beside.h)
  kPad,
  // data-dependent indices
  kGather,
  kDynamicSlice,
  kDynamicUpdateSlice,
  kUpdateInPlace,  ///< of a plan's loop bodies alone (core/passes/in_place.h)
  kScatter,
  // reductions and windows
  kReduce,
  kReduceWindow,
  kSelectAndScatter,
  kBatchNormTraining,
  kBatchNormInference,
  kBatchNormGrad,
  // library
  kDot,
  kRaggedDot,
  kScaledDot,
  kConvolution,
  kSort,
  kFft,
  kCholesky,
  kTriangularSolve,
  kTopK,
  kScan,
  // structure
  kTuple,
  kGetTupleElement,
  kCall,
  kFusion,
  kWhile,
  kConditional,
  kCustomCall,
  kAfterAll,
  kAddDependency,
  kAllReduce,
  kAllGather,
  kReduceScatter,
  kAllToAll,
  kCollectivePermute,
  kCollectiveBroadcast,
  kRaggedAllToAll,
  kInfeed,
  kOutfeed,
  kSend,
  kSendDone,
  kRecv,
  kRecvDone,
  kGetDimensionSize,
  kSetDimensionSize,
  // asynchronous pairs: what starts an op, what waits for it (core/passes/passes.h join_async)
  kAsyncStart,
  kAsyncUpdate,
  kAsyncDone,
  kCopyStart,
  kCopyDone,
  kAllReduceStart,
  kAllReduceDone,
  kAllGatherStart,
  kAllGatherDone,
  kCollectivePermuteStart,
  kCollectivePermuteDone,
  kCount,
};

/// What an op is to a planner (AStitch section 2.1).
enum class OpClass : std::uint8_t {
  kSource,            ///< parameter, constant, iota, rng
  kLightElementwise,  ///< add, select, compare, convert, divide ...
  kHeavyElementwise,  ///< exp, log, tanh, power, ... (the list of docs/planners/astitch.md)
  kBroadcast,
  kLayout,  ///< reshape, transpose, slice, pad, concatenate, reverse: maps, no arithmetic
  kGather,  ///< gather, dynamic-slice, dynamic-update-slice: maps with runtime variables
  kReduce,  ///< reduce
  kWindow,  ///< reduce-window, select-and-scatter
  kScatter,
  kLinear,  ///< dot, convolution: compute-intensive
  kSort,
  kStructure,  ///< tuple, get-tuple-element, call, while, ...
  kOpaque,     ///< custom-call, collectives, infeed, ...
};

/// How an op comes to be executed (docs/architecture.md).
enum class Execution : std::uint8_t {
  kNone,       ///< no code: parameter, constant, tuple, get-tuple-element, bitcast, shape-only reshape
  kGenerated,  ///< our kernels
  kLibrary,    ///< dot, convolution, sort, fft...: cuBLAS and friends; a CPU library in simulated runs
  kControl,    ///< call, while, conditional, fusion: names other computations
  kOpaque,     ///< plans but does not run
};

/// Operand element types an element-wise op accepts (select's predicate aside); `kAny` elsewhere.
enum class Domain : std::uint8_t {
  kAny,
  kNumeric,   ///< integers, floats, complex; and pred, where add is or, multiply is and (as in XLA)
  kSigned,    ///< signed integers, floats, complex
  kFloat,     ///< floats and complex
  kReal,      ///< floats only
  kOrdered,   ///< everything but complex
  kIntegral,  ///< integers
  kBits,      ///< integers and pred
};

struct Node;
class Graph;

struct OpDef {
  Op op;
  std::string_view name;  ///< HLO opcode
  OpClass cls;
  Execution execution;
  std::int8_t min_operands;
  std::int8_t max_operands;  ///< -1: any number
  /// CUDA expression of one element with $0, $1, ... for the operands, computing in float (f16/bf16 are
  /// widened by the printer), or "" where the printer has its own code (compare, convert, layout, ...).
  /// `cuda_int` is used for integers and pred where it differs; there operands have the C++ type of their
  /// dtype and the result is converted back to it. $i may occur more than once: operands are named values.
  /// For f64 the printer drops the final f of a called name (expf( -> exp(); nothing else differs.
  /// Names starting with sw_ are helpers of the kernel prelude, templates over the operand's type T:
  ///   sw_max, sw_min   NaN if either operand is NaN (HLO), else the larger, smaller
  ///   sw_div, sw_rem   integers; x/0 = -1 (all ones), x%0 = x, INT_MIN/-1 = INT_MIN, INT_MIN%-1 = 0
  ///   sw_powi          integer power by squaring, wrapping; a negative exponent gives 1 for base 1, +-1 for
  ///                    base -1, else 0
  ///   sw_not           ! for bool, ~ otherwise
  ///   sw_shl, sw_shrl, sw_shra   shifts within T's width; an amount outside [0, width) gives 0, 0, and the
  ///                    sign in every bit
  ///   sw_popc, sw_clz  within T's width (sw_clz(0) = width)
  std::string_view cuda;
  std::string_view cuda_int;
  /// Instructions an element costs on the device, order of magnitude (heavy ops ~ 20-40); the basis of the
  /// "cost times replication" rule (docs/planners/astitch.md) and of the modelled time.
  std::int16_t instructions;
  bool commutative;
  Domain domain = Domain::kAny;
  /// Each element of the result is an element of an operand (operands of indices, conditions and tokens
  /// aside), which one never depends on the values of those elements: what is done to every element may be
  /// done before or after.
  bool moves_elements = false;
};

const OpDef& def(Op op);
std::span<const OpDef> op_table();
std::optional<Op> op_from_name(std::string_view hlo_name);

inline bool is_elementwise(Op op) {
  return def(op).cls == OpClass::kLightElementwise || def(op).cls == OpClass::kHeavyElementwise;
}

/// The shape HLO semantics give `node` (its op and attributes) for operands of these shapes. Layouts are
/// default. Throws Error (message only, no position: the reader adds it) where operands or attributes do not
/// fit.
Shape infer_shape(const Graph& graph, const Node& node, std::span<const Shape* const> operands);

}  // namespace stitchwork
