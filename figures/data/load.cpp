#include "figures/data/load.h"

#include <dlfcn.h>

#include <filesystem>
#include <map>
#include <mutex>

#include "core/base/data.h"
#include "core/base/error.h"

namespace stitchwork {
namespace {

namespace fs = std::filesystem;

bool is_path(const std::string& file) { return file.find('/') != std::string::npos; }

std::string find_module(const std::string& file) {
  std::error_code ignored;
  if (is_path(file)) return fs::exists(file, ignored) ? file : std::string();
  return module_file(file).string();
}

Module load(const std::string& file) {
  const std::string path = find_module(file);
  if (path.empty())
    return {nullptr, is_path(file) ? "does not exist" : "is not installed",
            "it is part of the package stitchwork-gui, and of a build with Qt 6 (-DSTITCHWORK_GUI=ON)"};
  if (void* handle = ::dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL)) return {handle, {}, {}};
  const char* why = ::dlerror();
  return {nullptr, fmt::format("cannot be loaded: {}", why == nullptr ? "the loader does not say why" : why),
          "install Qt 6 (Debian: libqt6widgets6 and libqt6svg6), or build where the program is to run"};
}

}  // namespace

const Module& load_module(const std::string& file) {
  static std::mutex mutex;
  static std::map<std::string, Module> loaded;
  const std::lock_guard lock(mutex);
  const auto known = loaded.find(file);
  return known != loaded.end() ? known->second : loaded.emplace(file, load(file)).first->second;
}

void* module_function(const std::string& file, const char* name, const std::string& what) {
  const Module& module = load_module(file);
  if (module.handle == nullptr)
    throw Error(fmt::format("{} by {}, which {}", what, file, module.problem), module.hint);
  void* const function = ::dlsym(module.handle, name);
  if (function == nullptr)
    throw Error(fmt::format("{} by {}, which is of another build: it has no {}", what, file, name),
                "build program and module together");
  return function;
}

}  // namespace stitchwork
