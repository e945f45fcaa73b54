// Golden files: what a test prints, compared with tests/golden/NAME. `STITCHWORK_APPROVE=1 ctest -L unit`
// rewrites them; the diff belongs in the commit that caused it.
#pragma once

#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <string>

#include "core/file.h"

namespace stitchwork {

inline void expect_golden(const std::string& name, const std::string& text) {
  const std::string path = STITCHWORK_SOURCE_DIR "/tests/golden/" + name;
  if (std::getenv("STITCHWORK_APPROVE") != nullptr) {
    write_file(path, text);
    return;
  }
  ASSERT_TRUE(std::filesystem::exists(path)) << path << " is missing; STITCHWORK_APPROVE=1 writes it";
  EXPECT_EQ(read_file(path), text) << "STITCHWORK_APPROVE=1 accepts the change";
}

}  // namespace stitchwork
