// Models as torch.onnx.export writes them, by its older exporter (script) and its newer one (dynamo), give
// what PyTorch computes. How they were made: tests/core/data/torch_models.py.
#include <gtest/gtest.h>

#include <filesystem>

#include "core/evaluate/inputs.h"
#include "core/evaluate/judge.h"
#include "core/hlo/npy.h"
#include "core/onnx/onnx.h"
#include "core/passes/passes.h"

namespace stitchwork {
namespace TEST_FILE {

const std::string kFolder = STITCHWORK_SOURCE_DIR "/tests/core/data/";

/// NAME.KIND0.npy, NAME.KIND1.npy, ...
std::vector<Literal> arrays(const std::string& name, const std::string& kind) {
  std::vector<Literal> found;
  for (int i = 0;; ++i) {
    const std::string path = kFolder + name + "." + kind + std::to_string(i) + ".npy";
    if (!std::filesystem::exists(path)) return found;
    found.push_back(read_npy(path));
  }
}

void expect_what_torch_computes(const std::string& name, const OnnxOptions& options) {
  const std::vector<Literal> inputs = arrays(name, "in"), outputs = arrays(name, "out");
  ASSERT_FALSE(outputs.empty());
  for (const char* exporter : {"script", "dynamo"}) {
    const Graph graph = canonicalize(read_onnx(kFolder + name + "_" + exporter + ".onnx.gz", options));
    const CheckResult check = Judge(graph, inputs).check(outputs);
    EXPECT_TRUE(check.ok) << name << " " << exporter << ": " << check.message;
  }
}

TEST(OnnxTorch, ATransformerEncoderWithAMaskOverTokensOfOpenLength) {
  OnnxOptions options;
  options.dims = {{"batch", 3}, {"sequence", 7}};
  expect_what_torch_computes("torch_encoder", options);
}

TEST(OnnxTorch, ConvolutionsThenABidirectionalLstmOfTwoLayers) {
  expect_what_torch_computes("torch_tagger", {});
}

}  // namespace TEST_FILE
}  // namespace stitchwork
