// Parts of the program that need Qt are modules, loaded when they are first wanted.
#pragma once

#include <string>

namespace stitchwork {

/// A module beside the program, else where the build left it: `file` is its name, for example
/// "stitchwork_figures.so". Empty where there is none.
std::string find_module(const std::string& file);

/// A function of a module; null where the module or the function is missing; dlerror says why. Modules stay
/// loaded.
void* load_symbol(const std::string& module, const char* name);

}  // namespace stitchwork
