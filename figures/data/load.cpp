#include "figures/data/load.h"

#include <dlfcn.h>

#include <filesystem>
#include <map>

namespace stitchwork {
namespace fs = std::filesystem;

std::string find_module(const std::string& file) {
  std::error_code ignored;
  const fs::path program = fs::read_symlink("/proc/self/exe", ignored);
  for (const fs::path& folder : {program.parent_path(), fs::path(STITCHWORK_MODULE_FOLDER)})
    if (fs::exists(folder / file, ignored)) return (folder / file).string();
  return {};
}

void* load_symbol(const std::string& module, const char* name) {
  static std::map<std::string, void*> loaded;
  const auto [found, fresh] = loaded.emplace(module, nullptr);
  if (fresh && !module.empty()) found->second = ::dlopen(module.c_str(), RTLD_NOW | RTLD_LOCAL);
  return found->second == nullptr ? nullptr : ::dlsym(found->second, name);
}

}  // namespace stitchwork
