// The device code in front of every kernel: one text for every compiler, including no CUDA header.
#pragma once

#include <string_view>

namespace stitchwork {

/// What only clang needs: the CUDA keywords as attributes, thread indices, and the math functions NVRTC has
/// built in, as our own (guarded by the preprocessor; docs/codegen.md gives their accuracy).
std::string_view prelude_clang();
/// Float64 math functions of the clang part.
std::string_view prelude_clang_double();
/// Float64 power and trigonometric functions for both compilers; follows the common part.
std::string_view prelude_double();
/// What every kernel relies on: conversions, HLO's integer semantics, reductions within a row or a column
/// tile, atomics, the grid barrier.
std::string_view prelude_common();
/// Asynchronous copies from global to shared memory; follows the common part.
std::string_view prelude_async();
/// Reductions over the blocks of a thread block cluster; follows the common part.
std::string_view prelude_cluster();

}  // namespace stitchwork
