// PTX compilers: NVRTC, found at run time where a CUDA toolkit or its run-time package is installed, else
// clang.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "occupancy_model/device.h"

namespace stitchwork {

enum class CompilerKind : std::uint8_t { kNvrtc, kClang };

struct PtxCompiler {
  CompilerKind kind = CompilerKind::kNvrtc;
  std::string id;    ///< "NVRTC 13.0", "clang 14.0.6": part of the kernel cache's key
  std::string path;  ///< of the library or the program
};

/// NVRTC's library: searched in $CUDA_HOME, /usr/local/cuda*, then where the dynamic loader looks.
std::optional<PtxCompiler> find_nvrtc();
/// A clang of at least version 14, `clang` or `clang-NN` in PATH.
std::optional<PtxCompiler> find_clang();
/// By CompileOptions::compiler: "" (NVRTC if found, else clang), "nvrtc", "clang". Throws Error with what to
/// install.
PtxCompiler find_compiler(const std::string& requested);

/// The architecture to compile for: the device's, or the nearest the compiler knows from above ("75" for a
/// V100 under NVRTC 13, which has dropped 70), and at least 70 (acquire loads); the newest it knows for
/// devices beyond it.
int compile_architecture(const PtxCompiler& compiler, const Device& device);

/// PTX of `source` (prelude included). Throws Error with the compiler's first error. Safe to call from
/// several threads.
std::string compile_ptx(const PtxCompiler& compiler, const std::string& source, int architecture);

/// Of several sources, each of which declares one kernel, `entry`: the texts that compile_ptx gives of each,
/// in a third of the time, by compiling them as one program. nullopt where that cannot be (an error in one of
/// them, clang, what separated() does not know): compile_ptx says what is wrong.
std::vector<std::optional<std::string>> compile_together(const PtxCompiler& compiler,
                                                         const std::vector<std::string_view>& sources,
                                                         const std::string& entry, int architecture);

/// The same, and the machine code of that architecture: a driver older than the compiler takes it, and spends
/// no time on compiling.
struct Code {
  std::string ptx, cubin;
};
Code compile_code(const PtxCompiler& compiler, const std::string& source, int architecture);
/// Whether compile_code makes machine code that `device` executes: NVRTC, which still knows its architecture.
bool compiles_for(const PtxCompiler& compiler, const Device& device);

/// The first line of a compiler's log that tells of an error; the first line if none does.
std::string first_error(const std::string& log);

// The two compilers, one file each.
int nvrtc_architecture(const PtxCompiler& compiler, int wanted);
Code nvrtc_compile(const PtxCompiler& compiler, const std::string& source, int architecture, bool cubin);
std::string clang_compile(const PtxCompiler& compiler, const std::string& source, int architecture);

}  // namespace stitchwork
