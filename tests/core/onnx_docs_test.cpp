// docs/onnx.md lists the operators that are read.
#include <gtest/gtest.h>

#include <algorithm>

#include "core/base/file.h"
#include "core/onnx/operators.h"

namespace stitchwork {
namespace TEST_FILE {

TEST(OnnxDocs, TheTableOfOperatorsIsThePagesTable) {
  const std::string page = read_file(STITCHWORK_SOURCE_DIR "/docs/onnx.md");
  const auto rows = onnx_reader::all_operators();
  for (const onnx_reader::OperatorRow* row : rows) {
    const std::string name = fmt::format("{}{}{}", row->domain, row->domain.empty() ? "" : ".", row->name);
    EXPECT_NE(page.find(fmt::format("\n| `{}` | {} |", name, row->since)), std::string::npos)
        << name << " is missing";
  }
  std::size_t listed = 0;
  for (auto at = page.find("\n| `"); at != std::string::npos; at = page.find("\n| `", at + 1)) ++listed;
  EXPECT_EQ(listed, rows.size()) << "the page lists operators that are not read";
}

}  // namespace TEST_FILE
}  // namespace stitchwork
