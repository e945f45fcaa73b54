#include "codegen/compile/compiler.h"

#include <algorithm>
#include <cstdlib>
#include <sstream>

#include "analysis/schedule/clusters.h"
#include "codegen/compile/lines.h"
#include "codegen/compile/together.h"
#include "codegen/kernel.h"
#include "core/base/error.h"

namespace stitchwork {

PtxCompiler find_compiler(const std::string& requested) {
  if (!requested.empty() && requested != "nvrtc" && requested != "clang")
    throw Error(fmt::format("unknown compiler '{}'", requested), "known: nvrtc, clang");
  if (requested != "clang")
    if (const auto nvrtc = find_nvrtc()) return *nvrtc;
  if (requested == "nvrtc")
    throw Error("NVRTC not found", "install the CUDA toolkit and set CUDA_HOME, or use --compiler clang");
  if (const auto clang = find_clang()) return *clang;
  // Kernels compiled elsewhere are in the cache under their compiler's name (scripts/bundle).
  if (const char* by = std::getenv("STITCHWORK_COMPILED_BY");
      by != nullptr && *by != '\0' && requested.empty())
    return PtxCompiler{CompilerKind::kNvrtc, by, ""};
  throw Error("no PTX compiler found", "install clang (apt install clang), or the CUDA toolkit for NVRTC");
}

int compile_architecture(const PtxCompiler& compiler, const Device& device) {
  // sm_70 brought acquire loads and nanosleep, which the grid barrier uses.
  const int wanted = std::max(70, device.cc_major * 10 + device.cc_minor);
  if (compiler.path.empty()) return wanted;
  if (compiler.kind == CompilerKind::kNvrtc) return nvrtc_architecture(compiler, wanted);
  return std::min(wanted, 75);  // PTX 6.3, the newest every clang from 14 on writes without a toolkit
}

std::string compile_ptx(const PtxCompiler& compiler, const std::string& source, int architecture) {
  if (compiler.path.empty())
    throw Error(fmt::format("no PTX compiler found, and a kernel is not among those compiled by {} for sm_{}",
                            compiler.id, architecture),
                "install clang (apt install clang), or the CUDA toolkit for NVRTC");
  return compiler.kind == CompilerKind::kNvrtc ? nvrtc_compile(compiler, source, architecture, false).ptx
                                               : clang_compile(compiler, source, architecture);
}

std::vector<std::optional<std::string>> compile_together(const PtxCompiler& compiler,
                                                         const std::vector<std::string_view>& sources,
                                                         const std::string& entry, int architecture) {
  std::vector<std::optional<std::string>> nothing(sources.size());
  if (compiler.kind != CompilerKind::kNvrtc || compiler.path.empty() || sources.empty()) return nothing;
  const bool fast = has_fast_math(sources.front());
  if (std::ranges::any_of(sources, [&](std::string_view source) {
        return tells_lines(source) || has_fast_math(source) != fast;
      }))
    return nothing;
  try {
    const Code code = nvrtc_compile(compiler, joined(sources, entry), architecture, false);
    return separated(code.ptx, sources, entry);
  } catch (const Error&) {
    return nothing;
  }
}

bool compiles_for(const PtxCompiler& compiler, const Device& device) {
  return compiler.kind == CompilerKind::kNvrtc && !compiler.path.empty() &&
         compile_architecture(compiler, device) == device.cc_major * 10 + device.cc_minor;
}

Code compile_code(const PtxCompiler& compiler, const std::string& source, int architecture) {
  SW_CHECK(compiler.kind == CompilerKind::kNvrtc && !compiler.path.empty());
  return nvrtc_compile(compiler, source, architecture, true);
}

std::string first_error(const std::string& log) {
  std::istringstream lines(log);
  std::string first, line;
  while (std::getline(lines, line)) {
    if (line.find("error") != std::string::npos) return line;
    if (first.empty()) first = line;
  }
  return first;
}

}  // namespace stitchwork
