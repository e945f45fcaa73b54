#include "core/base/data.h"

#include <sys/auxv.h>

#include <algorithm>
#include <cctype>
#include <cstdlib>
#include <vector>

namespace stitchwork {
namespace {

namespace fs = std::filesystem;

/// The running program's file; where there is no /proc, as it was called.
fs::path program_file() {
  std::error_code error;
  if (fs::path file = fs::read_symlink("/proc/self/exe", error); !error) return file;
  const auto called = ::getauxval(AT_EXECFN);
  if (called == 0) return {};
  fs::path file = fs::canonical(reinterpret_cast<const char*>(called), error);
  return error ? fs::path() : file;
}

/// Candidates for a folder of an installation: `relative` is from the program's folder, `configured`
/// absolute.
std::vector<fs::path> installed(const char* relative, const char* configured) {
  std::vector<fs::path> folders;
  if (const fs::path program = program_file(); !program.empty())
    folders.push_back((program.parent_path() / relative).lexically_normal());
  folders.emplace_back(configured);
  return folders;
}

std::string variable(std::string name) {
  std::ranges::transform(name, name.begin(), [](unsigned char c) { return std::toupper(c); });
  return "STITCHWORK_" + name;
}

}  // namespace

fs::path data_folder(const std::string& name) {
  if (const char* given = std::getenv(variable(name).c_str()); given != nullptr && *given != '\0')
    return given;
  fs::path folder;
  std::error_code ignored;
  for (const fs::path& data : installed(STITCHWORK_DATA_FROM_PROGRAM, STITCHWORK_DATA_CONFIGURED)) {
    folder = data / name;
    // As it is called where it lies: a build has links to its sources.
    if (const fs::path real = fs::canonical(folder, ignored); !ignored) return real;
  }
  return folder;
}

fs::path module_file(const std::string& file) {
  std::error_code ignored;
  for (const fs::path& modules : installed(STITCHWORK_MODULES_FROM_PROGRAM, STITCHWORK_MODULES_CONFIGURED))
    if (fs::exists(modules / file, ignored)) return modules / file;
  return {};
}

}  // namespace stitchwork
