// The ONNX project's node tests down the whole road: read, planned by AStitch's planner, compiled, run in the
// simulator, and right.
#include <gtest/gtest.h>

#include <atomic>
#include <map>
#include <mutex>
#include <thread>

#include "analysis/planners/planner.h"
#include "codegen/compile/compiler.h"
#include "codegen/compile/process.h"
#include "codegen/executable.h"
#include "core/passes/passes.h"
#include "runtime/run.h"
#include "tests/support/onnx_cases.h"

namespace stitchwork {
namespace TEST_FILE {

/// The types most models compute in; the others take other paths in the printer of kernels, which
/// tests/codegen loops over.
bool is_common(DType type) {
  return type == DType::kF32 || type == DType::kS32 || type == DType::kS64 || type == DType::kPred;
}

bool is_common(const Shape& shape) {
  return shape.is_tuple ? std::ranges::all_of(shape.elements, [](const Shape& s) { return is_common(s); })
                        : is_common(shape.dtype);
}

/// A case whose every value is of those types, with something left to compute; nothing where it is not one.
std::optional<OnnxCaseGraph> usable(const OnnxCase& test) {
  try {
    OnnxCaseGraph read = read_onnx_case(test);
    read.graph = canonicalize(read.graph);
    const auto& nodes = read.graph.entry_computation().nodes;
    if (!std::ranges::all_of(nodes, [](const Node& n) { return is_common(n.shape); })) return std::nullopt;
    if (std::ranges::none_of(nodes,
                             [](const Node& n) { return def(n.op).execution == Execution::kGenerated; }))
      return std::nullopt;
    return read;
  } catch (const Error&) {
    return std::nullopt;  // refused: tests/core/onnx_conformance_test.cpp says why
  }
}

class OnnxSimulated : public ::testing::Test {
 protected:
  /// "" if the outputs are ONNX's.
  std::string outcome(const OnnxCaseGraph& test) {
    const Device& target = device("v100");
    const FusionPlan plan = make_plan(test.graph, target, "astitch");
    CompileOptions options;
    options.ptxas = false;
    options.cache_dir = kernels_.path().string();
    const RunResult run =
        run_simulated(test.graph, target, compile(test.graph, target, plan, options), test.inputs);
    if (!run.findings.empty())
      return fmt::format("{} in {}: {}", name(run.findings[0].kind), run.findings[0].kernel,
                         run.findings[0].message);
    return onnx_difference(run.outputs, test.outputs);
  }

  void work(const std::string& folder, const std::vector<std::string>& names) {
    for (std::size_t i = next_++; i < names.size() && agreed_ < kWanted; i = next_++) {
      const std::optional<OnnxCaseGraph> test = usable(OnnxCase(folder, names[i]));
      if (!test) continue;
      std::string problem;
      bool refused = false;
      try {
        problem = outcome(*test);
      } catch (const Error& error) {
        problem = error.message();
        refused = true;
      }
      if (problem.empty()) ++agreed_;
      const std::lock_guard lock(mutex_);
      if (refused) refused_[names[i]] = problem;
      if (!refused && !problem.empty()) wrong_[names[i]] = problem;
    }
  }

  static constexpr int kWanted = 340;  ///< cases; more of them find little and take time
  std::atomic<std::size_t> next_ = 0;
  std::atomic<int> agreed_ = 0;
  std::mutex mutex_;
  std::map<std::string, std::string> refused_, wrong_;
  const TemporaryFolder kernels_;
};

TEST_F(OnnxSimulated, NodeTestsAgreeWithOnnx) {
  const std::string folder = onnx_cases_folder();
  if (folder.empty()) GTEST_SKIP() << "the ONNX node tests are not here (docs/onnx.md)";
  if (!find_nvrtc() && !find_clang()) GTEST_SKIP() << "neither NVRTC nor clang is installed";
  std::vector<std::string> names = onnx_case_names(folder);
  // Every family early: the order of names would leave the second half of the alphabet out.
  std::ranges::stable_sort(names, {},
                           [](const std::string& name) { return std::hash<std::string>{}(name) % 97; });
  std::thread other([&] { work(folder, names); });
  work(folder, names);
  other.join();
  for (const auto& [name, problem] : wrong_) ADD_FAILURE() << name << ": " << problem;
  for (const auto& [name, problem] : refused_) fmt::print("refused {}: {}\n", name, problem);
  fmt::print("{} cases agree, {} refused, {} wrong\n", agreed_.load(), refused_.size(), wrong_.size());
  if (std::getenv("STITCHWORK_ONNX_CASES") == nullptr) {
    EXPECT_GE(agreed_.load(), 300);
  }
}

}  // namespace TEST_FILE
}  // namespace stitchwork
