#include <array>
#include <unordered_map>

#include "core/base/error.h"
#include "core/graph/op.h"

namespace stitchwork {
namespace {

using enum OpClass;
using E = Execution;
using D = Domain;

// Heavy element-wise ops: AStitch section 2.1 and docs/planners/astitch.md; divide is light.
// `instructions` are the machine instructions of the fp32 code, by the simulator's issue slots of kernels
// that do little else (docs/timing.md); of what is not generated an order of magnitude.
constexpr std::array kTable = {
    // op, HLO name, class, execution, operands min, max, CUDA float, CUDA integer, instructions, commutative,
    // domain, moves elements
    OpDef{Op::kParameter, "parameter", kSource, E::kNone, 0, 0, "", "", 0, false},
    OpDef{Op::kConstant, "constant", kSource, E::kNone, 0, 0, "", "", 0, false},
    OpDef{Op::kIota, "iota", kSource, E::kGenerated, 0, 0, "", "", 1, false},
    OpDef{Op::kRng, "rng", kSource, E::kOpaque, 1, -1, "", "", 40, false},
    OpDef{Op::kRngBitGenerator, "rng-bit-generator", kSource, E::kLibrary, 1, 1, "", "", 40, false},
    OpDef{Op::kRngGetAndUpdateState, "rng-get-and-update-state", kSource, E::kOpaque, 0, 0, "", "", 0, false},
    OpDef{Op::kPartitionId, "partition-id", kSource, E::kOpaque, 0, 0, "", "", 0, false},
    OpDef{Op::kReplicaId, "replica-id", kSource, E::kOpaque, 0, 0, "", "", 0, false},

    OpDef{Op::kAbs, "abs", kLightElementwise, E::kGenerated, 1, 1, "fabsf($0)", "($0 < 0 ? -$0 : $0)", 1,
          false, D::kSigned},
    OpDef{Op::kNegate, "negate", kLightElementwise, E::kGenerated, 1, 1, "(-$0)", "", 1, false, D::kNumeric},
    OpDef{Op::kSign, "sign", kLightElementwise, E::kGenerated, 1, 1,
          "($0 > 0 ? 1.0f : ($0 < 0 ? -1.0f : $0))", "(($0 > 0) - ($0 < 0))", 4, false, D::kSigned},
    OpDef{Op::kFloor, "floor", kLightElementwise, E::kGenerated, 1, 1, "floorf($0)", "", 1, false, D::kReal},
    OpDef{Op::kCeil, "ceil", kLightElementwise, E::kGenerated, 1, 1, "ceilf($0)", "", 1, false, D::kReal},
    OpDef{Op::kRoundNearestAfz, "round-nearest-afz", kLightElementwise, E::kGenerated, 1, 1, "roundf($0)", "",
          3, false, D::kReal},
    OpDef{Op::kRoundNearestEven, "round-nearest-even", kLightElementwise, E::kGenerated, 1, 1, "rintf($0)",
          "", 1, false, D::kReal},
    OpDef{Op::kNot, "not", kLightElementwise, E::kGenerated, 1, 1, "sw_not($0)", "", 1, false, D::kBits},
    OpDef{Op::kPopcnt, "popcnt", kLightElementwise, E::kGenerated, 1, 1, "sw_popc($0)", "", 1, false,
          D::kIntegral},
    OpDef{Op::kClz, "count-leading-zeros", kLightElementwise, E::kGenerated, 1, 1, "sw_clz($0)", "", 2, false,
          D::kIntegral},
    OpDef{Op::kIsFinite, "is-finite", kLightElementwise, E::kGenerated, 1, 1, "(($0 - $0) == 0)", "", 2,
          false, D::kReal},
    OpDef{Op::kReal, "real", kLightElementwise, E::kGenerated, 1, 1, "$0", "", 0, false, D::kFloat},
    OpDef{Op::kImag, "imag", kLightElementwise, E::kGenerated, 1, 1, "0.0f", "", 0, false, D::kFloat},
    OpDef{Op::kConvert, "convert", kLightElementwise, E::kGenerated, 1, 1, "", "", 1, false},
    OpDef{Op::kBitcastConvert, "bitcast-convert", kLightElementwise, E::kGenerated, 1, 1, "", "", 0, false},
    OpDef{Op::kCopy, "copy", kLightElementwise, E::kGenerated, 1, 1, "$0", "", 0, false, D::kAny, true},
    OpDef{Op::kReducePrecision, "reduce-precision", kLightElementwise, E::kGenerated, 1, 1, "", "", 4, false,
          D::kReal},
    OpDef{Op::kOptimizationBarrier, "opt-barrier", kStructure, E::kNone, 1, 1, "", "", 0, false, D::kAny,
          true},
    OpDef{Op::kDomain, "domain", kStructure, E::kNone, 1, 1, "", "", 0, false, D::kAny, true},
    OpDef{Op::kExp, "exponential", kHeavyElementwise, E::kGenerated, 1, 1, "expf($0)", "", 11, false,
          D::kFloat},
    OpDef{Op::kExpm1, "exponential-minus-one", kHeavyElementwise, E::kGenerated, 1, 1, "expm1f($0)", "", 33,
          false, D::kFloat},
    OpDef{Op::kLog, "log", kHeavyElementwise, E::kGenerated, 1, 1, "logf($0)", "", 28, false, D::kFloat},
    OpDef{Op::kLog1p, "log-plus-one", kHeavyElementwise, E::kGenerated, 1, 1, "log1pf($0)", "", 29, false,
          D::kFloat},
    OpDef{Op::kTanh, "tanh", kHeavyElementwise, E::kGenerated, 1, 1, "tanhf($0)", "", 18, false, D::kFloat},
    OpDef{Op::kLogistic, "logistic", kHeavyElementwise, E::kGenerated, 1, 1, "(1.0f / (1.0f + expf(-$0)))",
          "", 23, false, D::kFloat},
    OpDef{Op::kSqrt, "sqrt", kHeavyElementwise, E::kGenerated, 1, 1, "sqrtf($0)", "", 12, false, D::kFloat},
    OpDef{Op::kRsqrt, "rsqrt", kHeavyElementwise, E::kGenerated, 1, 1, "rsqrtf($0)", "", 5, false, D::kFloat},
    OpDef{Op::kCbrt, "cbrt", kHeavyElementwise, E::kGenerated, 1, 1, "cbrtf($0)", "", 20, false, D::kReal},
    OpDef{Op::kSin, "sine", kHeavyElementwise, E::kGenerated, 1, 1, "sinf($0)", "", 26, false, D::kFloat},
    OpDef{Op::kCos, "cosine", kHeavyElementwise, E::kGenerated, 1, 1, "cosf($0)", "", 27, false, D::kFloat},
    OpDef{Op::kTan, "tan", kHeavyElementwise, E::kGenerated, 1, 1, "tanf($0)", "", 29, false, D::kFloat},
    OpDef{Op::kErf, "erf", kHeavyElementwise, E::kGenerated, 1, 1, "erff($0)", "", 24, false, D::kReal},
    // The functions without a CUDA expression are written by others (core/passes/passes.h expand).
    OpDef{Op::kSinh, "sinh", kHeavyElementwise, E::kOpaque, 1, 1, "", "", 40, false, D::kFloat},
    OpDef{Op::kCosh, "cosh", kHeavyElementwise, E::kOpaque, 1, 1, "", "", 40, false, D::kFloat},
    OpDef{Op::kAsin, "asin", kHeavyElementwise, E::kOpaque, 1, 1, "", "", 35, false, D::kFloat},
    OpDef{Op::kAcos, "acos", kHeavyElementwise, E::kOpaque, 1, 1, "", "", 35, false, D::kFloat},
    OpDef{Op::kAsinh, "asinh", kHeavyElementwise, E::kOpaque, 1, 1, "", "", 40, false, D::kFloat},
    OpDef{Op::kAcosh, "acosh", kHeavyElementwise, E::kOpaque, 1, 1, "", "", 40, false, D::kFloat},
    OpDef{Op::kAtanh, "atanh", kHeavyElementwise, E::kOpaque, 1, 1, "", "", 40, false, D::kFloat},

    OpDef{Op::kAdd, "add", kLightElementwise, E::kGenerated, 2, 2, "($0 + $1)", "", 1, true, D::kNumeric},
    OpDef{Op::kSubtract, "subtract", kLightElementwise, E::kGenerated, 2, 2, "($0 - $1)", "", 1, false,
          D::kNumeric},
    OpDef{Op::kMultiply, "multiply", kLightElementwise, E::kGenerated, 2, 2, "($0 * $1)", "", 1, true,
          D::kNumeric},
    OpDef{Op::kMultiplyHigh, "mulhi", kLightElementwise, E::kOpaque, 2, 2, "", "", 4, true, D::kIntegral},
    OpDef{Op::kDivide, "divide", kLightElementwise, E::kGenerated, 2, 2, "($0 / $1)", "sw_div($0, $1)", 11,
          false, D::kNumeric},
    OpDef{Op::kRemainder, "remainder", kLightElementwise, E::kGenerated, 2, 2, "fmodf($0, $1)",
          "sw_rem($0, $1)", 16, false, D::kNumeric},
    OpDef{Op::kMaximum, "maximum", kLightElementwise, E::kGenerated, 2, 2, "sw_max($0, $1)", "", 4, true,
          D::kOrdered},
    OpDef{Op::kMinimum, "minimum", kLightElementwise, E::kGenerated, 2, 2, "sw_min($0, $1)", "", 4, true,
          D::kOrdered},
    OpDef{Op::kPower, "power", kHeavyElementwise, E::kGenerated, 2, 2, "sw_powf($0, $1)", "sw_powi($0, $1)",
          87, false, D::kNumeric},
    OpDef{Op::kAtan2, "atan2", kHeavyElementwise, E::kGenerated, 2, 2, "atan2f($0, $1)", "", 46, false,
          D::kFloat},
    OpDef{Op::kAnd, "and", kLightElementwise, E::kGenerated, 2, 2, "($0 & $1)", "", 1, true, D::kBits},
    OpDef{Op::kOr, "or", kLightElementwise, E::kGenerated, 2, 2, "($0 | $1)", "", 1, true, D::kBits},
    OpDef{Op::kXor, "xor", kLightElementwise, E::kGenerated, 2, 2, "($0 ^ $1)", "", 1, true, D::kBits},
    OpDef{Op::kShiftLeft, "shift-left", kLightElementwise, E::kGenerated, 2, 2, "sw_shl($0, $1)", "", 2,
          false, D::kIntegral},
    OpDef{Op::kShiftRightLogical, "shift-right-logical", kLightElementwise, E::kGenerated, 2, 2,
          "sw_shrl($0, $1)", "", 2, false, D::kIntegral},
    OpDef{Op::kShiftRightArithmetic, "shift-right-arithmetic", kLightElementwise, E::kGenerated, 2, 2,
          "sw_shra($0, $1)", "", 2, false, D::kIntegral},
    OpDef{Op::kCompare, "compare", kLightElementwise, E::kGenerated, 2, 2, "", "", 1, false},
    OpDef{Op::kComplex, "complex", kLightElementwise, E::kOpaque, 2, 2, "", "", 0, false, D::kReal},
    OpDef{Op::kSelect, "select", kLightElementwise, E::kGenerated, 3, 3, "($0 ? $1 : $2)", "", 1, false,
          D::kAny, true},
    OpDef{Op::kClamp, "clamp", kLightElementwise, E::kGenerated, 3, 3, "sw_min(sw_max($1, $0), $2)", "", 8,
          false, D::kOrdered},
    OpDef{Op::kStochasticConvert, "stochastic-convert", kOpaque, E::kOpaque, 2, 2, "", "", 4, false},
    OpDef{Op::kMap, "map", kLightElementwise, E::kControl, 1, -1, "", "", 4, false},

    OpDef{Op::kBroadcast, "broadcast", OpClass::kBroadcast, E::kGenerated, 1, 1, "", "", 0, false, D::kAny,
          true},
    OpDef{Op::kReshape, "reshape", kLayout, E::kNone, 1, 1, "", "", 0, false, D::kAny, true},
    OpDef{Op::kDynamicReshape, "dynamic-reshape", kOpaque, E::kOpaque, 1, -1, "", "", 0, false},
    OpDef{Op::kBitcast, "bitcast", kLayout, E::kNone, 1, 1, "", "", 0, false, D::kAny, true},
    OpDef{Op::kTranspose, "transpose", kLayout, E::kGenerated, 1, 1, "", "", 0, false, D::kAny, true},
    OpDef{Op::kSlice, "slice", kLayout, E::kGenerated, 1, 1, "", "", 0, false, D::kAny, true},
    OpDef{Op::kReverse, "reverse", kLayout, E::kGenerated, 1, 1, "", "", 0, false, D::kAny, true},
    OpDef{Op::kConcatenate, "concatenate", kLayout, E::kGenerated, 1, -1, "", "", 2, false, D::kAny, true},
    OpDef{Op::kConcatInPlace, "concat-in-place", kLayout, E::kLibrary, 1, -1, "", "", 0, false, D::kAny,
          true},
    OpDef{Op::kPad, "pad", kLayout, E::kGenerated, 2, 2, "", "", 3, false, D::kAny, true},

    OpDef{Op::kGather, "gather", OpClass::kGather, E::kGenerated, 2, 2, "", "", 8, false, D::kAny, true},
    OpDef{Op::kDynamicSlice, "dynamic-slice", OpClass::kGather, E::kGenerated, 1, -1, "", "", 4, false,
          D::kAny, true},
    OpDef{Op::kDynamicUpdateSlice, "dynamic-update-slice", OpClass::kGather, E::kGenerated, 2, -1, "", "", 4,
          false, D::kAny, true},
    OpDef{Op::kUpdateInPlace, "update-in-place", OpClass::kGather, E::kGenerated, 1, -1, "", "", 4, false,
          D::kAny, true},
    OpDef{Op::kScatter, "scatter", OpClass::kScatter, E::kLibrary, 3, -1, "", "", 8, false},

    OpDef{Op::kReduce, "reduce", OpClass::kReduce, E::kGenerated, 2, -1, "", "", 2, false},
    OpDef{Op::kReduceWindow, "reduce-window", kWindow, E::kGenerated, 2, -1, "", "", 4, false},
    OpDef{Op::kSelectAndScatter, "select-and-scatter", kWindow, E::kLibrary, 3, 3, "", "", 8, false},
    OpDef{Op::kBatchNormTraining, "batch-norm-training", kOpaque, E::kOpaque, 3, 3, "", "", 8, false},
    OpDef{Op::kBatchNormInference, "batch-norm-inference", kOpaque, E::kOpaque, 5, 5, "", "", 8, false},
    OpDef{Op::kBatchNormGrad, "batch-norm-grad", kOpaque, E::kOpaque, 5, 5, "", "", 8, false},

    OpDef{Op::kDot, "dot", kLinear, E::kLibrary, 2, 2, "$0 * $1", "", 2, false},
    OpDef{Op::kRaggedDot, "ragged-dot", kLinear, E::kLibrary, 3, 3, "", "", 2, false},
    OpDef{Op::kScaledDot, "scaled-dot", kLinear, E::kOpaque, 4, 4, "", "", 2, false},
    OpDef{Op::kConvolution, "convolution", kLinear, E::kLibrary, 2, 2, "", "", 2, false},
    OpDef{Op::kSort, "sort", OpClass::kSort, E::kLibrary, 1, -1, "", "", 20, false},
    OpDef{Op::kFft, "fft", kOpaque, E::kLibrary, 1, 1, "", "", 20, false},
    OpDef{Op::kCholesky, "cholesky", kOpaque, E::kLibrary, 1, 1, "", "", 20, false},
    OpDef{Op::kTriangularSolve, "triangular-solve", kOpaque, E::kLibrary, 2, 2, "", "", 20, false},
    OpDef{Op::kTopK, "topk", OpClass::kSort, E::kLibrary, 1, 1, "", "", 20, false},
    OpDef{Op::kScan, "scan", kOpaque, E::kOpaque, 0, -1, "", "", 0, false},

    OpDef{Op::kTuple, "tuple", kStructure, E::kNone, 0, -1, "", "", 0, false},
    OpDef{Op::kGetTupleElement, "get-tuple-element", kStructure, E::kNone, 1, 1, "", "", 0, false},
    OpDef{Op::kCall, "call", kStructure, E::kControl, 0, -1, "", "", 0, false},
    OpDef{Op::kFusion, "fusion", kStructure, E::kControl, 0, -1, "", "", 0, false},
    OpDef{Op::kWhile, "while", kStructure, E::kControl, 1, 1, "", "", 0, false},
    OpDef{Op::kConditional, "conditional", kStructure, E::kControl, 2, -1, "", "", 0, false},
    OpDef{Op::kCustomCall, "custom-call", kOpaque, E::kOpaque, 0, -1, "", "", 0, false},
    OpDef{Op::kAfterAll, "after-all", kStructure, E::kNone, 0, -1, "", "", 0, false},
    OpDef{Op::kAddDependency, "add-dependency", kStructure, E::kNone, 2, 2, "", "", 0, false, D::kAny, true},
    OpDef{Op::kAllReduce, "all-reduce", kOpaque, E::kOpaque, 1, -1, "", "", 0, false},
    OpDef{Op::kAllGather, "all-gather", kOpaque, E::kOpaque, 1, -1, "", "", 0, false},
    OpDef{Op::kReduceScatter, "reduce-scatter", kOpaque, E::kOpaque, 1, -1, "", "", 0, false},
    OpDef{Op::kAllToAll, "all-to-all", kOpaque, E::kOpaque, 1, -1, "", "", 0, false},
    OpDef{Op::kCollectivePermute, "collective-permute", kOpaque, E::kOpaque, 1, -1, "", "", 0, false},
    OpDef{Op::kCollectiveBroadcast, "collective-broadcast", kOpaque, E::kOpaque, 1, -1, "", "", 0, false},
    OpDef{Op::kRaggedAllToAll, "ragged-all-to-all", kOpaque, E::kOpaque, 6, 6, "", "", 0, false},
    OpDef{Op::kInfeed, "infeed", kOpaque, E::kOpaque, 1, 1, "", "", 0, false},
    OpDef{Op::kOutfeed, "outfeed", kOpaque, E::kOpaque, 2, 2, "", "", 0, false},
    OpDef{Op::kSend, "send", kOpaque, E::kOpaque, 2, 2, "", "", 0, false},
    OpDef{Op::kSendDone, "send-done", kOpaque, E::kOpaque, 1, 1, "", "", 0, false},
    OpDef{Op::kRecv, "recv", kOpaque, E::kOpaque, 1, 1, "", "", 0, false},
    OpDef{Op::kRecvDone, "recv-done", kOpaque, E::kOpaque, 1, 1, "", "", 0, false},
    OpDef{Op::kGetDimensionSize, "get-dimension-size", kSource, E::kGenerated, 1, 1, "", "", 0, false},
    OpDef{Op::kSetDimensionSize, "set-dimension-size", kOpaque, E::kOpaque, 2, 2, "", "", 0, false},
    OpDef{Op::kAsyncStart, "async-start", kOpaque, E::kOpaque, 0, -1, "", "", 0, false},
    OpDef{Op::kAsyncUpdate, "async-update", kOpaque, E::kOpaque, 1, 1, "", "", 0, false},
    OpDef{Op::kAsyncDone, "async-done", kOpaque, E::kOpaque, 1, 1, "", "", 0, false},
    OpDef{Op::kCopyStart, "copy-start", kOpaque, E::kOpaque, 1, 1, "", "", 0, false},
    OpDef{Op::kCopyDone, "copy-done", kOpaque, E::kOpaque, 1, 1, "", "", 0, false},
    OpDef{Op::kAllReduceStart, "all-reduce-start", kOpaque, E::kOpaque, 1, -1, "", "", 0, false},
    OpDef{Op::kAllReduceDone, "all-reduce-done", kOpaque, E::kOpaque, 1, 1, "", "", 0, false},
    OpDef{Op::kAllGatherStart, "all-gather-start", kOpaque, E::kOpaque, 1, -1, "", "", 0, false},
    OpDef{Op::kAllGatherDone, "all-gather-done", kOpaque, E::kOpaque, 1, 1, "", "", 0, false},
    OpDef{Op::kCollectivePermuteStart, "collective-permute-start", kOpaque, E::kOpaque, 1, -1, "", "", 0,
          false},
    OpDef{Op::kCollectivePermuteDone, "collective-permute-done", kOpaque, E::kOpaque, 1, 1, "", "", 0, false},
};

constexpr bool in_enum_order() {
  for (std::size_t i = 0; i < kTable.size(); ++i)
    if (kTable[i].op != static_cast<Op>(i)) return false;
  return true;
}
static_assert(kTable.size() == static_cast<std::size_t>(Op::kCount), "every op has a row");
static_assert(in_enum_order(), "rows are in the order of the enumeration");

}  // namespace

const OpDef& def(Op op) {
  SW_CHECK(op < Op::kCount, "op number {}", static_cast<int>(op));
  return kTable[static_cast<std::size_t>(op)];
}

std::span<const OpDef> op_table() { return kTable; }

std::optional<Op> op_from_name(std::string_view hlo_name) {
  static const auto by_name = [] {
    std::unordered_map<std::string_view, Op> map;
    for (const OpDef& row : kTable) map.emplace(row.name, row.op);
    return map;
  }();
  const auto found = by_name.find(hlo_name);
  return found == by_name.end() ? std::nullopt : std::optional(found->second);
}

}  // namespace stitchwork
