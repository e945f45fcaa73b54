#include "analysis/judge/value.h"

#include <algorithm>
#include <cmath>

#include "analysis/facts/facts.h"
#include "core/graph/float_semantics.h"
#include "core/index/index_map.h"

namespace stitchwork {
namespace {

/// Of the instructions of an op that takes several, those of the fp32 units; the others compare, select,
/// convert and take apart. Of issue slots, measured in the simulator: 0.50 (erf, maximum) to 0.80
/// (exponential), power 0.72, divide 0.55.
constexpr double kFp32Share = 0.66;
/// Computes the address of the first of the loads or stores of one array that a thread has in flight
/// together; the others are at constant distances.
/// Derived from the code printed: one 64-bit multiply-add.
constexpr double kAddressInstructions = 1;
/// Of a result in a 16-bit float, which is computed in f32: rounded, and widened again.
/// Derived from the code printed: two conversions.
constexpr double kRoundingInstructions = 2;

double instructions_of(const Computation& computation, const Node& node) {
  if (node.op == Op::kDivide && is_floating(node.shape.dtype)) {
    const Node* by = &computation.node(node.operands[1]);
    while (by->op == Op::kBroadcast) by = &computation.node(by->operands[0]);
    int exponent = 0;
    if (by->op == Op::kConstant && by->shape.elements_count() == 1 &&
        std::abs(std::frexp(by->attrs.literal->get_double(0), &exponent)) == 0.5)
      return def(Op::kMultiply).instructions;
  }
  return def(node.op).instructions;
}

}  // namespace

double& arithmetic(ThreadWork& work, DType dtype) {
  if (dtype == DType::kF64) return work.fp64_warp_instructions;
  return is_floating(dtype) ? work.fp32_warp_instructions : work.int32_warp_instructions;
}

ThreadWork work_of_op(const Computation& computation, const Node& node) {
  ThreadWork work;
  const double instructions = instructions_of(computation, node);
  work.warp_instructions = instructions;
  if (!is_elementwise(node.op)) return work;
  const bool floating = is_floating(node.shape.dtype);
  arithmetic(work, node.shape.dtype) =
      floating && instructions > 1 ? kFp32Share * instructions : instructions;
  const bool narrow = floating && byte_size(node.shape.dtype) < 4;
  if (narrow && node.op != Op::kConvert && !is_exact(node.op))
    work.warp_instructions += kRoundingInstructions;
  if (floating && def(node.op).cls == OpClass::kHeavyElementwise) work.mufu_warp_instructions = 1;
  return work;
}

ThreadWork work_of_access(double together) {
  ThreadWork work;
  work.ldst_warp_instructions = 1;
  work.warp_instructions = 1 + kAddressInstructions / together;
  return work;
}

double share_us(const Device& device, const ThreadWork& warp, double warps, double bytes) {
  // Nanoseconds of a microsecond, because clocks are in GHz and bandwidth in GB/s.
  constexpr double kNanoseconds = 1e3;
  const double clocks = issue_clocks(device, warp * (warps / device.sms));
  return std::max(clocks / (device.clock_ghz * kNanoseconds),
                  bytes / (device.dram_gb_s * device.dram_efficiency * kNanoseconds));
}

}  // namespace stitchwork
