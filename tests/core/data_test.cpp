#include "core/base/data.h"

#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>

namespace stitchwork {
namespace TEST_FILE {

namespace fs = std::filesystem;

TEST(Data, ABuildHasItsSourcesData) {
  EXPECT_EQ(data_folder("datasets"), fs::canonical(STITCHWORK_SOURCE_DIR "/datasets"));
  EXPECT_EQ(data_folder("experiments"), fs::canonical(STITCHWORK_SOURCE_DIR "/experiments"));
}

TEST(Data, AVariableNamesAnotherFolderEvenOneThatIsNotThere) {
  ::setenv("STITCHWORK_SAMPLES", "/nonexistent/samples", 1);
  EXPECT_EQ(data_folder("samples"), "/nonexistent/samples");
  ::setenv("STITCHWORK_SAMPLES", "", 1);
  EXPECT_NE(data_folder("samples"), "");
  ::unsetenv("STITCHWORK_SAMPLES");
}

TEST(Data, WhatIsNowhereIsNamedAsTheInstallationWouldHaveIt) {
  const fs::path folder = data_folder("samples");
  EXPECT_TRUE(folder.is_absolute()) << folder;
  EXPECT_TRUE(folder.string().ends_with("share/stitchwork/samples")) << folder;
  EXPECT_EQ(module_file("stitchwork_nothing.so"), "");
}

}  // namespace TEST_FILE
}  // namespace stitchwork
