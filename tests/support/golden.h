// Golden files: tests/golden/NAME holds the text a test expects. With STITCHWORK_APPROVE=1 in the environment
// (scripts/approve-goldens) a difference is written into the file instead of failing.
#pragma once

#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <string>

#include "core/base/file.h"

namespace stitchwork {

inline void expect_golden(const std::string& file_name, const std::string& actual) {
  const std::string path = std::string(STITCHWORK_SOURCE_DIR) + "/tests/golden/" + file_name;
  if (const char* approve = std::getenv("STITCHWORK_APPROVE"); approve && std::string(approve) == "1") {
    if (!std::filesystem::exists(path) || read_file(path) != actual) write_file(path, actual);
    return;
  }
  ASSERT_TRUE(std::filesystem::exists(path)) << path << " is missing; scripts/approve-goldens writes it:\n"
                                             << actual;
  EXPECT_EQ(read_file(path), actual) << "differs from " << path
                                     << "; scripts/approve-goldens takes the new text over";
}

}  // namespace stitchwork
