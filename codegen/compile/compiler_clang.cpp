#include <fstream>
#include <regex>
#include <sstream>

#include "codegen/compile/compiler.h"
#include "codegen/compile/lines.h"
#include "codegen/compile/process.h"
#include "codegen/compile/ptx_target.h"
#include "codegen/kernel.h"
#include "core/base/error.h"

namespace stitchwork {
namespace {

// Clang's version in Debian 12, the oldest that is tried.
constexpr int kOldestClang = 14;
// Clang's newest version when this was written, so that newer ones are found by their plain name.
constexpr int kNewestTried = 21;

std::optional<PtxCompiler> probe(const std::string& path) {
  const ProcessResult result = run_process({path, "--version"});
  static const std::regex version(R"(clang version (\d+)(\.\d+)*)");
  std::smatch match;
  if (result.exit_code != 0 || !std::regex_search(result.output, match, version)) return std::nullopt;
  if (std::stoi(match[1]) < kOldestClang) return std::nullopt;
  std::string id = match[0];
  id.replace(id.find(" version"), 8, "");
  return PtxCompiler{CompilerKind::kClang, id, path};
}

std::optional<PtxCompiler> search() {
  std::vector<std::string> names = {"clang"};
  for (int major = kNewestTried; major >= kOldestClang; --major)
    names.push_back(fmt::format("clang-{}", major));
  for (const std::string& name : names)
    if (const std::string path = find_program(name); !path.empty())
      if (auto found = probe(path)) return found;
  return std::nullopt;
}

}  // namespace

std::optional<PtxCompiler> find_clang() {
  static const std::optional<PtxCompiler> found = search();
  return found;
}

std::string clang_compile(const PtxCompiler& compiler, const std::string& source, int architecture) {
  const TemporaryFolder folder;
  const auto input = folder.path() / "kernel.cu", output = folder.path() / "kernel.ptx";
  std::ofstream(input, std::ios::binary) << source;
  const std::string lines = tells_lines(source) ? "-gline-directives-only" : "-g0";
  std::vector<std::string> command = {compiler.path,
                                      lines,
                                      "-x",
                                      "cuda",
                                      "--cuda-device-only",
                                      "-nocudainc",
                                      "-nocudalib",
                                      "-std=c++17",
                                      "-O3",
                                      "-fms-extensions",
                                      "-Wno-everything",
                                      "-Xclang",
                                      "-target-feature",
                                      "-Xclang",
                                      "+ptx63",
                                      fmt::format("--cuda-gpu-arch=sm_{}", architecture),
                                      "-S",
                                      "-o",
                                      output.string(),
                                      input.string()};
  if (has_fast_math(source))
    command.insert(command.end() - 1, {"-fcuda-flush-denormals-to-zero", "-mllvm", "-nvptx-prec-divf32=0"});
  const ProcessResult result = run_process(command);
  std::ifstream file(output, std::ios::binary);
  if (result.exit_code != 0 || !file)
    throw Error(
        fmt::format("{} cannot compile a generated kernel: {}", compiler.id, first_error(result.output)),
        "this is a defect of the code generator: please report it with the model and the plan");
  std::ostringstream ptx;
  ptx << file.rdbuf();
  return with_target(ptx.str(), source);
}

}  // namespace stitchwork
