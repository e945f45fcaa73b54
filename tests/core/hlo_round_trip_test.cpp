// Every committed dataset, and text written by hand: read, printed and read again it is the same graph.
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <sstream>

#include "core/hlo_text.h"

namespace stitchwork {
namespace {

std::string file_text(const std::filesystem::path& path) {
  std::ostringstream out;
  out << std::ifstream(path).rdbuf();
  return out.str();
}

std::vector<std::string> dataset_paths() {
  std::vector<std::string> paths;
  const std::filesystem::path folder = STITCHWORK_SOURCE_DIR "/datasets";
  if (std::filesystem::is_directory(folder)) {
    for (const auto& entry : std::filesystem::directory_iterator(folder)) {
      if (entry.path().extension() == ".hlo") paths.push_back(entry.path());
    }
  }
  std::ranges::sort(paths);
  return paths;
}

class HloDataset : public testing::TestWithParam<std::string> {};

TEST_P(HloDataset, PrintsToTextThatReadsAsTheSameGraph) {
  const Graph graph = read_graph(GetParam());
  const std::string printed = to_text(graph);
  const Graph again = parse_hlo(printed, "printed.hlo");
  EXPECT_TRUE(equal(graph, again));
  EXPECT_EQ(printed, to_text(again));
  validate(graph);
}

TEST_P(HloDataset, PrintsByteForByteWhatJaxExported) {
  const std::string text = file_text(GetParam());
  if (text.find("entry_computation_layout") == std::string::npos) {
    GTEST_SKIP() << GetParam() << " is written by hand, not exported";
  }
  EXPECT_EQ(to_text(read_graph(GetParam())), text);
}

INSTANTIATE_TEST_SUITE_P(Datasets, HloDataset, testing::ValuesIn(dataset_paths()),
                         [](const auto& info) { return std::filesystem::path(info.param).stem().string(); });
GTEST_ALLOW_UNINSTANTIATED_PARAMETERIZED_TEST(HloDataset);

}  // namespace
}  // namespace stitchwork
