// Every committed dataset, and text written by hand: read, printed and read again it is the same graph.
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <sstream>

#include "core/hlo/hlo_text.h"

namespace stitchwork {
namespace TEST_FILE {

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

/// Those in the form in which the printer writes too: exported short, neither by hand nor a long dump.
std::vector<std::string> short_form_paths() {
  std::vector<std::string> paths = dataset_paths();
  std::erase_if(paths, [](const std::string& path) {
    const std::string text = file_text(path);
    return text.find("entry_computation_layout") == std::string::npos ||
           text.find("ENTRY %") != std::string::npos;
  });
  return paths;
}

std::string stem(const ::testing::TestParamInfo<std::string>& info) {
  return std::filesystem::path(info.param).stem().string();
}

class HloRoundTrip : public ::testing::TestWithParam<std::string> {};

TEST_P(HloRoundTrip, PrintsToTextThatReadsAsTheSameGraph) {
  const Graph graph = read_graph(GetParam());
  const std::string printed = to_text(graph);
  const Graph again = parse_hlo(printed, "printed.hlo");
  EXPECT_TRUE(equal(graph, again));
  EXPECT_EQ(printed, to_text(again));
  validate(graph);
}
INSTANTIATE_TEST_SUITE_P(Files, HloRoundTrip, ::testing::ValuesIn(dataset_paths()), stem);

class HloExport : public ::testing::TestWithParam<std::string> {};

TEST_P(HloExport, IsPrintedByteForByte) { EXPECT_EQ(to_text(read_graph(GetParam())), file_text(GetParam())); }
INSTANTIATE_TEST_SUITE_P(Files, HloExport, ::testing::ValuesIn(short_form_paths()), stem);

}  // namespace TEST_FILE
}  // namespace stitchwork
