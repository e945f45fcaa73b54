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

}  // namespace stitchwork
