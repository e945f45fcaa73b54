#include "codegen/prelude.h"

#include <string>

#include "codegen/kernel.h"

namespace stitchwork {

std::string_view cuda_prelude() {
  static const std::string text = std::string(prelude_clang()) + std::string(prelude_clang_double()) +
                                  std::string(prelude_common()) + std::string(prelude_async()) +
                                  std::string(prelude_cluster()) + std::string(prelude_double());
  return text;
}

}  // namespace stitchwork
