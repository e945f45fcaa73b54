// A compiled plan: kernels as PTX, library calls, buffers and their order. What a backend runs.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "analysis/plan/plan.h"
#include "codegen/kernel.h"
#include "codegen/table.h"

namespace stitchwork {

struct CompiledKernel {
  std::string entry;          ///< the name in the PTX
  std::string cuda;           ///< readable source, prelude included
  std::string source_sha256;  ///< of the canonical source
  std::string ptx;
  std::string cubin;                        ///< machine code, if asked for and the compiler makes it
  int registers = 0;                        ///< ptxas; 0 if not found
  std::optional<std::int64_t> spill_bytes;  ///< ptxas; empty if not found
  using Argument = KernelArgument;
  std::vector<Argument> arguments;  ///< device pointers, in order
  KernelTable table;                ///< to be written where an argument asks for it
  KernelLaunch launch;              ///< shared_bytes: all of it dynamic shared memory
  bool dependent = false;           ///< it waits for earlier kernels itself (CompileOptions)
  bool from_cache = false;
  double compile_ms =
      0;  ///< wall time of the compiler and ptxas, or of reading the cache; equal kernels share one
};

struct Executable {
  FusionPlan plan;
  std::vector<CompiledKernel> kernels;   ///< by index of plan.kernels
  std::vector<Executable> computations;  ///< by index of plan.computations
  std::vector<Decision> checks;          ///< what compile_settled found of registers and residency, and did
  std::string compiler;                  ///< "NVRTC 13.0", "clang 14.0.6"
  int architecture = 0;                  ///< 75
};

struct CompileOptions {
  std::string compiler;   ///< "", "nvrtc" or "clang"; "" picks NVRTC when found
  std::string cache_dir;  ///< "" = ${XDG_CACHE_HOME:-~/.cache}/stitchwork/kernels; "none" = no cache
  bool ptxas = true;      ///< run ptxas for registers and spills when found
  bool cubin = false;     ///< machine code too, where the compiler knows the device's architecture
  /// Approximate division, square root, exp, log and tanh of f32 (and 16-bit floats, computed in it), of
  /// which subnormal numbers are zero. NaN and infinities stay what they are; sums keep their order.
  bool fast_math = false;
  /// Kernels wait for earlier ones themselves, for programmatic dependent launches: sm_90 and later.
  bool dependent_launch = false;
};

/// Lowers, prints, compiles (in parallel, cached by canonical source). Throws Error naming an op that can
/// only be planned (scatter, a reduction by several operations, elements no kernel computes), with the
/// compiler's log where compilation fails or no compiler is found, and where dependent launches are asked for
/// of a device or a compiler without them.
Executable compile(const Graph& graph, const Device& device, const FusionPlan& plan,
                   const CompileOptions& options = {});

/// "k2 y (planner xla for t4; 64 blocks of 256 threads, 1024 bytes of shared memory, 0 grid barriers)": as
/// errors name a kernel.
std::string kernel_and_plan(const FusionPlan& plan, const KernelPlan& kernel);

/// One kernel given as CUDA C++ (without the prelude): what a backend needs beside the plan's kernels. It is
/// compiled and cached like those.
CompiledKernel compile_kernel(const std::string& cuda, const std::string& entry, const KernelLaunch& launch,
                              const Device& device, const CompileOptions& options = {});

}  // namespace stitchwork
