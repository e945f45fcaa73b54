// The device code in front of kernels: one text for every compiler, including no CUDA header. A kernel gets
// what it uses of it (kernel.h, cuda_prelude).
#pragma once

#include <string_view>

namespace stitchwork {

/// What only clang needs: the CUDA keywords as attributes, thread indices, and the math functions NVRTC has
/// built in, as our own (guarded by the preprocessor; docs/codegen.md gives their accuracy).
std::string_view prelude_clang();
/// Those of them that take fewer instructions, with approximations, where a kernel is compiled with
/// CompileOptions::fast_math: they replace the others.
std::string_view prelude_fast();
/// Float64 math functions of the clang part.
std::string_view prelude_clang_double();
/// Float64 power and trigonometric functions for both compilers; follows the common part.
std::string_view prelude_double();
/// What every kernel relies on: conversions, HLO's integer semantics, reductions within a row or a column
/// tile, atomics, the grid barrier.
std::string_view prelude_common();
/// Asynchronous copies from global to shared memory; follows the common part.
std::string_view prelude_async();
/// The same in bulk, by one thread; follows the common part.
std::string_view prelude_bulk();
/// Reductions over the blocks of a thread block cluster; follows the common part.
std::string_view prelude_cluster();

}  // namespace stitchwork
