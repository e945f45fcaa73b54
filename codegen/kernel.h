// CUDA C++ of a kernel, from its schedule.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "analysis/schedule/schedule.h"

namespace stitchwork {

/// CUDA C++ of one kernel, readable (`canonical` false: names from the graph, a comment a group) or canonical
/// (buffers and values renumbered, no comments; the text whose hash keys the kernel cache). Needs the prelude
/// in front. `dependent`: the kernel itself waits for those before it, so that its blocks may be started
/// while they end (programmatic dependent launch, sm_90 and later).
std::string to_cuda(const Graph& graph, const Schedule& kernel, bool canonical, bool dependent = false);

/// The device functions and macros that the CUDA C++ of a kernel relies on, to stand in front of it; includes
/// no CUDA header, serves NVRTC and clang. `fast_math`: CompileOptions.
std::string cuda_prelude(std::string_view kernel, bool fast_math = false);
/// Whether a source was given the prelude of fast math: the compilers take their options from it, and the
/// cache its key.
bool has_fast_math(std::string_view source);

/// A kernel's arguments in order: inputs (ascending by op), outputs (likewise), scratch if it has any, the
/// grid barrier's counter if it has barriers, its table (codegen/table.h) if it has one. Buffers that the
/// table has are no arguments.
struct KernelArgument {
  enum class Kind : std::uint8_t { kInput, kOutput, kScratch, kBarrier, kTable } kind = Kind::kInput;
  NodeId op = kNoNode;  ///< inputs and outputs: the op that owns the buffer
};
std::vector<KernelArgument> kernel_arguments(const Schedule& kernel);

}  // namespace stitchwork
