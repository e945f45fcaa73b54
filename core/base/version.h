// What was built: printed by --version, stored with every result.
#pragma once

#include <string>

namespace stitchwork {

struct Version {
  std::string version;    ///< of the release that this is or leads to: "0.1.0"
  std::string described;  ///< with what came after it: "0.1.0+12.g1a2b3c4" (cmake/describe.cmake)
  std::string commit;     ///< short hash, "unknown" outside a git checkout and an archive of one
  bool dirty = false;
  std::string compiler;  ///< that built the program
};
const Version& version();

/// 12 hexadecimal digits that change with every source that plans, code, simulation and timing follow from
/// (scripts/results_version.cmake). Numbers of different versions are not of one kind.
const std::string& results_version();
/// The same of the sources that make PTX and machine code of CUDA C++ (codegen/compile).
const std::string& compile_version();

}  // namespace stitchwork
