#include "codegen/compile/disassemble.h"

#include <filesystem>

#include "codegen/compile/compiler.h"
#include "codegen/compile/process.h"
#include "codegen/compile/ptxas.h"
#include "core/base/error.h"
#include "core/base/file.h"

namespace stitchwork {
namespace fs = std::filesystem;

Disassembler find_disassembler() {
  const std::string ptxas = find_ptxas();
  if (ptxas.empty()) return {};
  return {ptxas, find_program("nvdisasm", {fs::path(ptxas).parent_path()})};
}

std::string disassembled(const Disassembler& tools, const std::string& ptx, int architecture) {
  SW_CHECK(tools.there());
  const TemporaryFolder folder;
  const std::string source = (folder.path() / "kernel.ptx").string(),
                    code = (folder.path() / "kernel.cubin").string();
  write_file(source, bounded_registers(ptx));
  const auto run = [](const std::vector<std::string>& arguments) {
    ProcessResult result = run_process(arguments);
    if (result.exit_code != 0)
      throw Error(fmt::format("{}: {}", arguments.front(), first_error(result.output)));
    return std::move(result.output);
  };
  run({tools.ptxas, fmt::format("-arch=sm_{}", architecture), "-o", code, source});
  return run({tools.nvdisasm, code});
}

}  // namespace stitchwork
