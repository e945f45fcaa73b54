#include "codegen/compile/ptxas.h"

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <regex>

#include "codegen/compile/process.h"
#include "codegen/compile/ptx_target.h"
#include "codegen/compile/together.h"
#include "core/base/error.h"
#include "core/base/format.h"

namespace stitchwork {
namespace fs = std::filesystem;
namespace {

/// Of every device from compute capability 5.0 on (CUDA C++ Programming Guide, technical specifications).
constexpr std::int64_t kRegistersPerSm = 65536;

}  // namespace

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

std::optional<RegisterUse> parse_ptxas(const std::string& log, std::string_view entry) {
  constexpr std::string_view kBegin = "Compiling entry function '";
  const std::size_t at = log.find(fmt::format("{}{}'", kBegin, entry));
  if (at == std::string::npos) return std::nullopt;
  return parse_ptxas(log.substr(at, log.find(kBegin, at + kBegin.size()) - at));
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

namespace {

/// `ptxas -v` of a text, and what it says.
ProcessResult assemble(const std::string& ptxas, const std::string& ptx, int architecture) {
  const TemporaryFolder folder;
  const fs::path file = folder.path() / "kernel.ptx";
  std::ofstream(file, std::ios::binary) << ptx;
  return run_process({ptxas, "-v", fmt::format("-arch=sm_{}", architecture), "-o",
                      (folder.path() / "kernel.cubin").string(), file.string()});
}

}  // namespace

std::optional<RegisterUse> run_ptxas(const std::string& ptxas, const std::string& ptx, int architecture) {
  architecture = std::max(architecture, least_architecture(ptx));
  const ProcessResult result = assemble(ptxas, bounded_registers(ptx), architecture);
  static const std::regex too_much(R"(uses (too (?:much|many) .* max\)))");
  if (std::smatch match; std::regex_search(result.output, match, too_much))
    throw Error(fmt::format("it uses {} on sm_{}", match[1].str(), architecture),
                "plan it with fewer values in shared memory, or in smaller kernels (--override)");
  if (result.exit_code != 0) return std::nullopt;
  return parse_ptxas(result.output);
}

std::vector<std::optional<RegisterUse>> run_ptxas_together(const std::string& ptxas,
                                                           const std::vector<std::string>& ptx,
                                                           std::string_view entry, int architecture) {
  std::vector<std::optional<RegisterUse>> uses(ptx.size());
  PtxTogether together(entry);
  std::vector<std::size_t> taken;
  for (std::size_t i = 0; i < ptx.size(); ++i)
    if (least_architecture(ptx[i]) <= architecture && together.add(bounded_registers(ptx[i])))
      taken.push_back(i);
  if (taken.size() < 2) return uses;
  const ProcessResult result = assemble(ptxas, together.text(), architecture);
  if (result.exit_code != 0) return uses;
  for (std::size_t k = 0; k < taken.size(); ++k) uses[taken[k]] = parse_ptxas(result.output, entry_name(k));
  return uses;
}

}  // namespace stitchwork
