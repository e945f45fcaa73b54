// Every call to the driver, cuBLAS and cuDNN that the backend makes, failing one by one: each is one error in
// one line, or is done without, and leaves no handle behind.
#include <gmock/gmock.h>

#include <iostream>
#include <set>

#include "tests/runtime/fake_cudnn.h"
#include "tests/runtime/on_fake_gpu.h"

namespace stitchwork {
namespace TEST_FILE {

using ::testing::HasSubstr;
using ::testing::IsEmpty;

/// Calls that give back have nobody to tell; the loader makes the first and asks about errors.
const std::set<std::string>& never_failing() {
  static const std::set<std::string> names{
      "init",          "error_name",     "error_text",    "context_release",    "release",
      "module_unload", "stream_destroy", "event_destroy", "graph_exec_destroy", "graph_destroy",
      "blas_destroy"};
  return names;
}
bool gives_back(const std::string& call) {
  return never_failing().contains(call) || call.find("destroy") != call.npos || call == "machine_code";
}
/// Without which a run goes on: it has no time of a CUDA graph, or makes convolutions by patches.
bool is_done_without(const std::string& call) {
  return call.starts_with("capture_") || call == "graph_instantiate" || call.starts_with("dnn_") ||
         call == "memory_info";
}

struct Case {
  const char* device;
  const char* planner;
  std::string text;
  bool dependent = false;
};

class Injection {
 public:
  explicit Injection(const Case& of)
      : target_(device(of.device)),
        graph_(testing::graph_of(of.text)),
        compiling_(testing::compile_options()) {
    compiling_.dependent_launch = of.dependent;
    executable_ = compile(graph_, target_, make_plan(graph_, target_, of.planner), compiling_);
    inputs_ = generate_inputs(graph_, 0);
  }

  /// Runs; what the error says, or "".
  std::string run(testing::FakeGpu& gpu) {
    return testing::refusal([&] {
      cuda::CudaOptions options{.repeats = 1, .compile = testing::compile_options()};
      cuda::CudaBackend backend(testing::fake_driver(gpu), target_, options,
                                {testing::fake_blas, testing::fake_dnn});
      repeated_.reset();
      repeated_ = run_on(backend, graph_, target_, executable_, inputs_).repeated;
    });
  }
  /// Whether the last run that ended timed a CUDA graph too.
  bool timed_graph() const { return repeated_ && repeated_->graph_us; }

  /// With little memory and L2 cache, which is overwritten before each step.
  testing::FakeGpu gpu() const {
    testing::FakeGpu gpu{.device = target_, .memory_bytes = std::size_t{16} << 20};
    gpu.device.l2_bytes = 1 << 20;
    return gpu;
  }

 private:
  const Device& target_;
  Graph graph_;
  CompileOptions compiling_;
  Executable executable_;
  std::vector<Literal> inputs_;
  std::optional<Repeated> repeated_;
};

TEST(CudaErrors, EachCallThatFailsIsOneErrorAndLeavesNothingBehind) {
  SKIP_WITHOUT_COMPILER();
  std::vector<Case> cases{
      {"v100", "unfused",
       "HloModule m\nENTRY main {\n  a = f32[4,6] parameter(0)\n  b = f32[6,3] parameter(1)\n"
       "  d = f32[4,3] dot(a, b), lhs_contracting_dims={1}, rhs_contracting_dims={0}\n"
       "  t = f32[4,3] tanh(d)\n  ROOT c = f32[4,3] copy(t)\n}\n"},
      {"v100", "unfused",
       "HloModule m\nENTRY main {\n  a = f32[1,2,5,5] parameter(0)\n  w = f32[3,2,2,2] parameter(1)\n"
       "  c = f32[1,3,4,4] convolution(a, w), window={size=2x2}, dim_labels=bf01_oi01->bf01\n"
       "  ROOT n = f32[1,3,4,4] negate(c)\n}\n"},
      {"v100", "astitch", to_text(testing::dataset("rotary_tiny"))},
      {"v100", "astra-fks",  // two streams, one of which waits for the other
       "HloModule m\nENTRY main {\n  a = f32[8,9] parameter(0)\n  u = f32[9,10] parameter(1)\n"
       "  v = f32[10,8] parameter(2)\n  b = f32[8,12] parameter(3)\n  w = f32[12,7] parameter(4)\n"
       "  x = f32[7,6] parameter(5)\n"
       "  p = f32[8,10] dot(a, u), lhs_contracting_dims={1}, rhs_contracting_dims={0}\n"
       "  p2 = f32[8,8] dot(p, v), lhs_contracting_dims={1}, rhs_contracting_dims={0}\n"
       "  q = f32[8,7] dot(b, w), lhs_contracting_dims={1}, rhs_contracting_dims={0}\n"
       "  q2 = f32[8,6] dot(q, x), lhs_contracting_dims={1}, rhs_contracting_dims={0}\n"
       "  ROOT r = f32[8,6] dot(p2, q2), lhs_contracting_dims={1}, rhs_contracting_dims={0}\n}\n"},
  };
  if (find_nvrtc())
    cases.push_back({"h200", "unfused",
                     "HloModule m\nENTRY main {\n  a = f32[64] parameter(0)\n  ROOT t = f32[64] tanh(a)\n}\n",
                     true});
  std::set<std::string> failed;
  int runs = 0;
  for (const Case& one : cases) {
    Injection injection(one);
    testing::FakeGpu whole = injection.gpu();
    ASSERT_EQ(injection.run(whole), "") << one.text;
    ASSERT_THAT(whole.live, IsEmpty());
    ASSERT_TRUE(injection.timed_graph());
    for (const auto& [call, times] : whole.calls) {
      if (gives_back(call)) continue;
      for (int n = 1; n <= times; ++n) {
        SCOPED_TRACE(
            fmt::format("{} at its call {} of {}, {} on {}", call, n, times, one.planner, one.device));
        testing::FakeGpu gpu = injection.gpu();
        gpu.fail_at[call] = n;
        const std::string said = injection.run(gpu);
        ++runs;
        failed.insert(call);
        EXPECT_THAT(gpu.live, IsEmpty());
        EXPECT_EQ(gpu.allocated, 0u);
        EXPECT_EQ(said.find('\n'), std::string::npos) << said;
        // While steps are captured, a call that fails is one that cannot be captured.
        if (said.empty())
          EXPECT_TRUE(is_done_without(call) || !injection.timed_graph());
        else
          EXPECT_THAT(said, HasSubstr("_FAKE"));
      }
    }
  }
  std::cout << fmt::format("{} calls failed in {} runs: {}\n", failed.size(), runs, fmt::join(failed, " "));
#define STITCHWORK_EXPECT_FAILED(member, symbol, parameters) \
  if (!never_failing().contains(#member)) all.insert(#member);
  std::set<std::string> all;
  STITCHWORK_CUDA_DRIVER(STITCHWORK_EXPECT_FAILED)
#undef STITCHWORK_EXPECT_FAILED
  for (const char* rare : {"memory_info", "function_set"}) all.erase(rare);  // below
  for (const std::string& call : all) EXPECT_TRUE(failed.contains(call)) << call << " was never called";
}

/// What is asked only when memory runs out.
TEST(CudaErrors, TheMemoryThatIsLeftMayBeUnknown) {
  SKIP_WITHOUT_COMPILER();
  Injection injection(
      {"v100", "unfused",
       "HloModule m\nENTRY main {\n  a = f32[64] parameter(0)\n  ROOT t = f32[64] tanh(a)\n}\n"});
  testing::FakeGpu gpu = injection.gpu();
  gpu.memory_bytes = 100;
  gpu.fail_at["memory_info"] = 1;
  EXPECT_THAT(injection.run(gpu), HasSubstr("bytes of device memory cannot be had"));
  EXPECT_THAT(gpu.live, IsEmpty());
}

/// More shared memory than a kernel has without asking.
TEST(CudaErrors, SharedMemoryThatIsNotGivenIsOneErrorAndLeavesNothingBehind) {
  SKIP_WITHOUT_COMPILER();
  testing::FakeGpu gpu{device("v100")};
  const Graph graph = testing::dataset("softmax_tiny");
  Executable executable =
      compile(graph, gpu.device, make_plan(graph, gpu.device, "astitch"), testing::compile_options());
  for (CompiledKernel& kernel : executable.kernels)
    kernel.launch.shared_bytes = gpu.device.shared_bytes_per_block_default + 1024;
  gpu.fail_at["function_set"] = 1;
  EXPECT_THAT(testing::refusal([&] {
                cuda::CudaBackend backend(testing::fake_driver(gpu), gpu.device, {.repeats = 0}, {});
                run_on(backend, graph, gpu.device, executable, generate_inputs(graph, 0));
              }),
              HasSubstr("bytes of shared memory: cuFuncSetAttribute failed: CUDA_ERROR_FAKE"));
  EXPECT_THAT(gpu.live, IsEmpty());
}

}  // namespace TEST_FILE
}  // namespace stitchwork
