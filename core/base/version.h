// What was built: printed by --version, stored with every result.
#pragma once

#include <string>

namespace stitchwork {

struct Version {
  std::string version;
  std::string commit;  ///< short hash, "unknown" outside a git checkout
  bool dirty = false;
  std::string compiler;  ///< that built the program
};
const Version& version();

/// 12 hexadecimal digits that change with every source that plans, code, simulation and timing follow from
/// (scripts/results_version.cmake). Numbers of different versions are not of one kind.
const std::string& results_version();

}  // namespace stitchwork
