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
  // tests/core/data: exports that use every form of constant and attribute, an optimised dump, stack frames.
  for (const char* folder : {STITCHWORK_SOURCE_DIR "/datasets", STITCHWORK_SOURCE_DIR "/tests/core/data"}) {
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
  if (text.find(" -> ") != std::string::npos) GTEST_SKIP() << GetParam() << " is in the long form of dumps";
  EXPECT_EQ(to_text(read_graph(GetParam())), text);
}

INSTANTIATE_TEST_SUITE_P(Datasets, HloDataset, testing::ValuesIn(dataset_paths()),
                         [](const auto& info) { return std::filesystem::path(info.param).stem().string(); });

}  // namespace
}  // namespace stitchwork
