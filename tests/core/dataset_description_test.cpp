// The JSON beside every dataset speaks of the text that is there (datasets/README.md).
#include <fnmatch.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <set>
#include <string>
#include <vector>

#include "core/hlo/hlo_text.h"

namespace stitchwork {
namespace TEST_FILE {

namespace fs = std::filesystem;

const fs::path kFolder = STITCHWORK_SOURCE_DIR "/datasets";

std::vector<std::string> names() {
  std::vector<std::string> found;
  for (const auto& entry : fs::directory_iterator(kFolder))
    if (entry.path().extension() == ".json") found.push_back(entry.path().stem());
  std::ranges::sort(found);
  return found;
}

class DatasetDescription : public ::testing::TestWithParam<std::string> {
 protected:
  nlohmann::json description() const {
    return nlohmann::json::parse(std::ifstream(kFolder / (GetParam() + ".json")));
  }
  Graph graph() const { return read_graph(kFolder / description()["hlo"]["file"].get<std::string>()); }
};

TEST_P(DatasetDescription, HoldsTheHashOfTheText) {
  EXPECT_EQ(description()["name"], GetParam());
  const std::string file = description()["hlo"]["file"];
  EXPECT_TRUE(file == GetParam() + ".hlo" || file == GetParam() + ".hlo.gz") << file;
  EXPECT_EQ(description()["hlo"]["sha256"], graph().source_sha256);
}

TEST_P(DatasetDescription, CountsTheOpsAndTheBytesOfTheText) {
  const Graph graph = this->graph();
  std::size_t ops = 0;
  for (const Computation& computation : graph.computations) ops += computation.nodes.size();
  EXPECT_EQ(description()["ops"], ops);
  std::int64_t bytes = 0;
  const Computation& entry = graph.entry_computation();
  for (NodeId id : entry.parameters) bytes += entry.node(id).shape.byte_size();
  EXPECT_EQ(description()["parameter_bytes"], bytes);
}

TEST_P(DatasetDescription, SaysHowEveryParameterIsFilled) {
  const Graph graph = this->graph();
  const Computation& entry = graph.entry_computation();
  std::set<std::string> unused;
  const nlohmann::json document = description();
  for (const auto& [key, value] : document["inputs"].items()) unused.insert(key);
  for (NodeId id : entry.parameters) {
    bool filled = false;
    for (const auto& [key, value] : document["inputs"].items()) {
      if (fnmatch(key.c_str(), entry.node(id).name.c_str(), 0) != 0) continue;
      filled = true;
      unused.erase(key);
    }
    EXPECT_TRUE(filled) << entry.node(id).name;
  }
  EXPECT_TRUE(unused.empty()) << *unused.begin() << " names no parameter";
}

INSTANTIATE_TEST_SUITE_P(Datasets, DatasetDescription, ::testing::ValuesIn(names()),
                         [](const auto& info) { return info.param; });

TEST(GoldenTensors, BelongToADataset) {
  for (const auto& entry : fs::directory_iterator(kFolder / "golden")) {
    const fs::path folder = entry.path();
    const Graph graph = read_graph(kFolder / (folder.filename().string() + ".hlo"));
    for (std::size_t i = 0; i < graph.entry_computation().parameters.size(); ++i)
      EXPECT_TRUE(fs::exists(folder / ("in" + std::to_string(i) + ".npy"))) << folder << " " << i;
    EXPECT_TRUE(fs::exists(folder / "out0.npy")) << folder;
  }
}

}  // namespace TEST_FILE
}  // namespace stitchwork
