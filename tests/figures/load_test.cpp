// Modules that are missing or do not load are told apart, in the loader's own words.
#include "figures/data/load.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "core/base/error.h"
#include "core/base/file.h"

namespace stitchwork {
namespace TEST_FILE {

using ::testing::HasSubstr;

std::string refusal(const std::string& file, const char* name = "function") {
  try {
    module_function(file, name, "graphs are drawn");
    return {};
  } catch (const Error& error) {
    return error.what();
  }
}

TEST(Modules, OneThatIsNotThereIsSaidToBePartOfABuildWithQt) {
  EXPECT_EQ(refusal("stitchwork_nothing.so"),
            "graphs are drawn by stitchwork_nothing.so, which is not installed; it is part of the package "
            "stitchwork-gui, and of a build with Qt 6 (-DSTITCHWORK_GUI=ON)");
  EXPECT_THAT(refusal("/nonexistent/module.so"), HasSubstr("which does not exist"));
}

TEST(Modules, OneThatDoesNotLoadSaysWhatTheLoaderSays) {
  const std::string file = ::testing::TempDir() + "stitchwork_broken.so";
  write_file(file,
             "this is no library, and longer than the header of one would be: " + std::string(100, 'x'));
  EXPECT_THAT(refusal(file), HasSubstr("cannot be loaded: " + file + ": invalid ELF header"));
}

TEST(Modules, OneWithoutTheFunctionIsOfAnotherBuild) {
  EXPECT_THAT(refusal("/proc/self/exe", "stitchwork_no_such_function"), HasSubstr("cannot be loaded"));
  const char* const libc = "/lib/x86_64-linux-gnu/libm.so.6";
  if (load_module(libc).handle == nullptr) GTEST_SKIP() << libc << " is not where Debian has it";
  EXPECT_THAT(refusal(libc, "stitchwork_no_such_function"),
              HasSubstr("which is of another build: it has no stitchwork_no_such_function"));
}

}  // namespace TEST_FILE
}  // namespace stitchwork
