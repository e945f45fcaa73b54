#include "codegen/compile/compiler.h"

#include <algorithm>
#include <fstream>
#include <regex>
#include <sstream>

#include "analysis/schedule/clusters.h"
#include "codegen/compile/lines.h"
#include "codegen/compile/process.h"
#include "codegen/compile/ptx_target.h"
#include "codegen/compile/together.h"
#include "codegen/kernel.h"
#include "core/base/error.h"

namespace stitchwork {
namespace fs = std::filesystem;
namespace {

/// Of every device from compute capability 5.0 on (CUDA C++ Programming Guide, technical specifications).
constexpr std::int64_t kRegistersPerSm = 65536;

}  // namespace

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

std::string find_ptxas() {
  std::vector<fs::path> folders;
  if (const char* home = std::getenv("CUDA_HOME")) folders.push_back(fs::path(home) / "bin");
  folders.emplace_back("/usr/local/cuda/bin");
  return find_program("ptxas", folders);
}

std::optional<RegisterUse> parse_ptxas(const std::string& log) {
  static const std::regex registers(R"(Used (\d+) registers)");
  static const std::regex spills(R"((\d+) bytes spill stores, (\d+) bytes spill loads)");
  static const std::regex shared(R"((\d+) bytes smem)");
  RegisterUse use;
  std::smatch match;
  if (!std::regex_search(log, match, registers)) return std::nullopt;
  use.registers = std::stoi(match[1]);
  if (std::regex_search(log, match, spills)) use.spill_bytes = std::stoll(match[1]) + std::stoll(match[2]);
  if (std::regex_search(log, match, shared)) use.shared_bytes = std::stoll(match[1]);
  return use;
}

std::string bounded_registers(const std::string& ptx) {
  static const std::regex threads(R"(\.maxntid\s+(\d+))");
  static const std::regex blocks(R"(\.minnctapersm\s+(\d+))");
  std::smatch thread_count, block_count;
  if (!std::regex_search(ptx, thread_count, threads) || !std::regex_search(ptx, block_count, blocks))
    return ptx;
  const std::int64_t resident =
      std::max<std::int64_t>(1, std::stoll(thread_count[1]) * std::stoll(block_count[1]));
  // Registers are allotted to warps in units of 256, eight a thread (CUDA's occupancy calculator).
  const std::int64_t registers = std::clamp<std::int64_t>(kRegistersPerSm / resident / 8 * 8, 16, 255);
  return std::regex_replace(ptx, blocks, fmt::format(".maxnreg {}", registers),
                            std::regex_constants::format_first_only);
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

std::optional<RegisterUse> run_ptxas(const std::string& ptxas, const std::string& ptx, int architecture) {
  const TemporaryFolder folder;
  const fs::path file = folder.path() / "kernel.ptx";
  std::ofstream(file, std::ios::binary) << bounded_registers(ptx);
  architecture = std::max(architecture, least_architecture(ptx));
  const ProcessResult result = run_process({ptxas, "-v", fmt::format("-arch=sm_{}", architecture), "-o",
                                            (folder.path() / "kernel.cubin").string(), file.string()});
  static const std::regex too_much(R"(uses (too (?:much|many) .* max\)))");
  if (std::smatch match; std::regex_search(result.output, match, too_much))
    throw Error(fmt::format("it uses {} on sm_{}", match[1].str(), architecture),
                "plan it with fewer values in shared memory, or in smaller kernels (--override)");
  if (result.exit_code != 0) return std::nullopt;
  return parse_ptxas(result.output);
}

}  // namespace stitchwork
