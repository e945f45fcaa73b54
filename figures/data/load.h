// Parts of the program that need Qt are modules, loaded when they are first wanted.
#pragma once

#include <string>

namespace stitchwork {

/// A module: a path, or the name of one that is installed (core/base/data.h).
struct Module {
  void* handle = nullptr;
  std::string problem;  ///< why there is none, in a line: it is not there, or what the loader says
  std::string hint;     ///< what to do about that
};

/// Loaded at most once, and never unloaded; safe to call from several threads.
const Module& load_module(const std::string& file);

/// A function of the module. Throws Error with the module's problem, as "WHAT by FILE, which ...", and its
/// hint.
void* module_function(const std::string& file, const char* name, const std::string& what);

}  // namespace stitchwork
