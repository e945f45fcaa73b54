#include "core/base/memory.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <zlib.h>

#include <filesystem>
#include <new>
#include <vector>

#include "core/base/error.h"
#include "core/base/file.h"
#include "tests/support/limited.h"

namespace stitchwork {
namespace TEST_FILE {

using ::testing::HasSubstr;
using testing::limited;

TEST(Memory, TheLimitOfTheProcessIsSeen) {
  EXPECT_GT(available_memory(), 0);
  const int seen = limited(256 << 20, [] {
    const std::int64_t left = available_memory();
    return left > (128 << 20) && left <= (256 << 20) ? 0 : 1;
  });
  EXPECT_EQ(seen, 0);
}

TEST(Memory, WhatIsNotThereIsRefusedWithBothNumbers) {
  EXPECT_NO_THROW(require_memory(1, "this", ""));
  try {
    require_memory(1e18, "the run", "take a smaller one");
    FAIL() << "admitted";
  } catch (const Error& e) {
    EXPECT_THAT(e.message(), HasSubstr("the run: 909494.7 TiB of memory needed, "));
    EXPECT_THAT(e.message(), HasSubstr(" available"));
    EXPECT_EQ(e.hint(), "take a smaller one");
  }
}

TEST(Memory, ItsEndIsAnExceptionAndNoAbort) {
  const int code = limited(64 << 20, [] {
    try {
      std::vector<std::vector<char>> all;
      for (;;) all.emplace_back(1 << 20, 'x');
    } catch (const std::bad_alloc&) {
      return 7;
    }
  });
  EXPECT_EQ(code, 7);
}

TEST(Memory, APageOfGzipDoesNotTakeItAll) {
  const std::string path = ::testing::TempDir() + "/bomb.hlo.gz";
  const gzFile file = gzopen(path.c_str(), "wb9");
  const std::vector<char> zeros(1 << 20, ' ');
  for (int i = 0; i < 600; ++i) gzwrite(file, zeros.data(), static_cast<unsigned>(zeros.size()));
  gzclose(file);
  ASSERT_LT(std::filesystem::file_size(path), 1u << 20);
  const int code = limited(std::int64_t{256} << 20, [&] {
    try {
      read_decompressed(path, ".hlo");
    } catch (const Error& e) {
      return std::string(e.what()).find("of memory") == std::string::npos ? 2 : 7;
    }
    return 1;
  });
  EXPECT_EQ(code, 7);
}

}  // namespace TEST_FILE
}  // namespace stitchwork
