#include "core/base/format.h"

#include <gtest/gtest.h>

namespace stitchwork {
namespace TEST_FILE {

TEST(Format, CommasSeparateThousands) {
  EXPECT_EQ(with_commas(0), "0");
  EXPECT_EQ(with_commas(999), "999");
  EXPECT_EQ(with_commas(1000), "1,000");
  EXPECT_EQ(with_commas(-1234567), "-1,234,567");
}

TEST(Format, BytesAreBinaryUnits) {
  EXPECT_EQ(human_bytes(0), "0 B");
  EXPECT_EQ(human_bytes(1023), "1023 B");
  EXPECT_EQ(human_bytes(1536), "1.5 KiB");
  EXPECT_EQ(human_bytes(3.0 * 1024 * 1024 * 1024), "3.0 GiB");
}

}  // namespace TEST_FILE
}  // namespace stitchwork
