// Whole files: what a path leads to is written, and stays what it is.
#include "core/base/file.h"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>
#include <thread>

#include "core/base/error.h"

namespace stitchwork {
namespace TEST_FILE {

namespace fs = std::filesystem;

class Files : public ::testing::Test {
 protected:
  void SetUp() override {
    folder_ = fs::path(::testing::TempDir()) /
              ("files_" + std::string(::testing::UnitTest::GetInstance()->current_test_info()->name()));
    fs::remove_all(folder_);
    fs::create_directories(folder_ / "elsewhere");
  }
  void TearDown() override { fs::remove_all(folder_); }
  std::string path(const std::string& name) const { return (folder_ / name).string(); }
  std::size_t entries() const {
    return static_cast<std::size_t>(std::distance(fs::directory_iterator(folder_), {}));
  }
  static std::string refused(const std::string& file) {
    try {
      write_file(file, "text");
    } catch (const Error& e) {
      return e.what();
    }
    return "";
  }
  fs::path folder_;
};

TEST_F(Files, LinksStayAndWhatTheyLeadToIsWritten) {
  write_file(path("elsewhere/a"), "old");
  fs::create_symlink("elsewhere/a", path("link"));
  fs::create_symlink(path("link"), path("of_link"));
  write_file(path("of_link"), "new");
  EXPECT_EQ(read_file(path("elsewhere/a")), "new");
  fs::create_symlink("elsewhere/b", path("to_nothing"));
  write_file(path("to_nothing"), "made");
  EXPECT_EQ(read_file(path("elsewhere/b")), "made");
  for (const char* link : {"link", "of_link", "to_nothing"}) EXPECT_TRUE(fs::is_symlink(path(link))) << link;
}

TEST_F(Files, LinksInACircleAreRefused) {
  fs::create_symlink("b", path("a"));
  fs::create_symlink("a", path("b"));
  EXPECT_THAT(refused(path("a")), ::testing::HasSubstr("cannot be written"));
  EXPECT_TRUE(fs::is_symlink(path("a")) && fs::is_symlink(path("b")));
}

TEST_F(Files, APipeIsWrittenToAndStays) {
  ASSERT_EQ(::mkfifo(path("pipe").c_str(), 0600), 0);
  std::string came;
  std::thread reader([&] { came = read_file(path("pipe")); });
  write_file(path("pipe"), "through");
  if (!fs::is_fifo(path("pipe"))) {  // the reader would wait for ever
    reader.detach();
    FAIL() << "replaced";
  }
  reader.join();
  EXPECT_EQ(came, "through");
}

TEST_F(Files, AFullDeviceIsAnError) {
  if (!fs::is_character_file("/dev/full")) GTEST_SKIP() << "no /dev/full";
  fs::create_symlink("/dev/full", path("full"));
  EXPECT_THAT(refused(path("full")), ::testing::HasSubstr("No space left on device"));
  EXPECT_TRUE(fs::is_symlink(path("full")));
  EXPECT_TRUE(fs::is_character_file("/dev/full"));
}

TEST_F(Files, AMinusNamesNoFile) {
  EXPECT_EQ(refused("-"), "-: names no file; standard output is /dev/stdout; a file of that name is ./-");
  EXPECT_FALSE(fs::exists("-"));
}

TEST_F(Files, WhatCannotBeWrittenIsKnownBefore) {
  write_file(path("a"), "text");
  for (const char* good : {"a", "new", "elsewhere/b"}) EXPECT_NO_THROW(require_writable(path(good))) << good;
  EXPECT_NO_THROW(require_writable("/dev/null"));
  fs::create_symlink("nowhere/b", path("astray"));
  for (const char* bad : {"nowhere/b", "a/b", "elsewhere", "astray"}) {
    std::string said;
    try {
      require_writable(path(bad));
    } catch (const Error& e) {
      said = e.what();
    }
    EXPECT_NE(said, "") << bad;
    EXPECT_EQ(said, refused(path(bad))) << bad;
  }
  EXPECT_EQ(read_file(path("a")), "text");
  EXPECT_FALSE(fs::exists(path("new")));
}

TEST_F(Files, AFolderIsNoFile) {
  EXPECT_THAT(refused(path("elsewhere")), ::testing::HasSubstr("is a folder; name a file in it"));
  EXPECT_EQ(entries(), 1u);
}

}  // namespace TEST_FILE
}  // namespace stitchwork
