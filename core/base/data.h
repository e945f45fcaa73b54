// Where the files are that the program opens at run time: one answer for a build in its tree, for an
// installation and for one that was moved. A build's folder is laid out as an installation's prefix
// (cmake/layout.cmake).
#pragma once

#include <filesystem>
#include <string>

namespace stitchwork {

/// A folder of data: "datasets", "experiments". What the environment variable of that name says
/// (STITCHWORK_DATASETS) if it is set; else the first there is of share/stitchwork/NAME in the prefix that
/// the running program lies in and in the prefix configured. If none is there, the last, for the message of
/// whoever lists it.
std::filesystem::path data_folder(const std::string& name);

/// A module that the program loads, as "stitchwork_figures.so": lib/stitchwork/FILE of the same prefixes;
/// empty if neither has it.
std::filesystem::path module_file(const std::string& file);

}  // namespace stitchwork
