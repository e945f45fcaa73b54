// Each fault of a simulated program is found, once, where it is.
#include <functional>

#include "core/base/error.h"
#include "tests/simulator/sim_support.h"

namespace stitchwork::sim {
namespace TEST_FILE {

using ::testing::Test;

Finding only_finding(const std::string& file, const std::string& kernel, Dim3 grid, Dim3 block,
                     const std::function<std::vector<Argument>(DeviceMemory&)>& arguments,
                     Options options = {}) {
  const ptx::Module module = fixture(file);
  DeviceMemory memory;
  Launch launch{.kernel = kernel, .grid = grid, .block = block};
  launch.arguments = arguments(memory);
  const LaunchResult r = run(module, launch, memory, device("v100"), options);
  if (r.findings.size() != 1) {
    ADD_FAILURE() << r.findings.size() << " findings";
    return {};
  }
  return r.findings[0];
}

TEST(Findings, OutOfBoundsNamesTheAllocationAndTheArithmetic) {
  const Finding f = only_finding("faults.ptx", "overrun", {4, 1, 1}, {64, 1, 1}, [](DeviceMemory& m) {
    return std::vector{Argument::pointer(m.allocate(1024, "activations")), Argument::i32(100)};
  });
  EXPECT_EQ(f.kind, FindingKind::kOutOfBounds);
  EXPECT_EQ(f.message, "writes 4 bytes at activations+1024, past its 1024 bytes");
  EXPECT_EQ(f.kernel, "overrun");
  EXPECT_EQ(f.block.x, 2u);  // 100 + 2 * 64 + 28 = 256
  EXPECT_EQ(f.thread.x, 28u);
  EXPECT_TRUE(f.cuda_location.starts_with("kernels.cu:")) << f.cuda_location;
  EXPECT_GT(f.ptx_line, 0);
}
TEST(Findings, TheLowestBlockIsReportedWhateverTheHostThreads) {
  for (int threads : {1, 2, 3}) {
    Options options;
    options.host_threads = threads;
    const Finding f = only_finding(
        "faults.ptx", "overrun", {2048, 1, 1}, {64, 1, 1},
        [](DeviceMemory& m) {
          return std::vector{Argument::pointer(m.allocate(4096 * 4, "x")), Argument::i32(0)};
        },
        options);
    EXPECT_EQ(f.block.x, 64u) << threads;
  }
}
TEST(Findings, AnAccessBelowTheStartIsFoundToo) {
  const Finding f = only_finding("faults.ptx", "overrun", {1, 1, 1}, {32, 1, 1}, [](DeviceMemory& m) {
    return std::vector{Argument::pointer(m.allocate(1024, "x") - 8), Argument::i32(0)};
  });
  EXPECT_EQ(f.message, "writes 4 bytes at x-8, before its start");
}
TEST(Findings, MisalignedAccess) {
  const Finding f = only_finding("faults.ptx", "misaligned", {1, 1, 1}, {32, 1, 1}, [](DeviceMemory& m) {
    return std::vector{Argument::pointer(m.allocate(1024, "x"))};
  });
  EXPECT_EQ(f.kind, FindingKind::kMisaligned);
}
TEST(Findings, NullPointer) {
  const Finding f = only_finding("faults.ptx", "null_read", {1, 1, 1}, {32, 1, 1}, [](DeviceMemory& m) {
    return std::vector{Argument::pointer(0), Argument::pointer(m.allocate(1024, "y"))};
  });
  EXPECT_EQ(f.kind, FindingKind::kNullPointer);
}
TEST(Findings, SharedMemoryOverrun) {
  const Finding f = only_finding("faults.ptx", "shared_overrun", {1, 1, 1}, {32, 1, 1}, [](DeviceMemory& m) {
    return std::vector{Argument::pointer(upload(m, std::vector<float>(32, 5.0f), "x"))};
  });
  EXPECT_EQ(f.kind, FindingKind::kOutOfBounds);
  EXPECT_EQ(f.thread.x, 27u);
  EXPECT_EQ(f.message, "writes 4 bytes at shared memory offset 128, past the 128 bytes this block has");
}
TEST(Findings, DivergentBarrier) {
  const Finding f =
      only_finding("faults.ptx", "divergent_barrier", {1, 1, 1}, {64, 1, 1},
                   [](DeviceMemory& m) { return std::vector{Argument::pointer(m.allocate(1024, "x"))}; });
  EXPECT_EQ(f.kind, FindingKind::kDivergentBarrier);
  EXPECT_EQ(f.thread.x, 16u);
}
TEST(Findings, BarrierThatCanNeverFill) {
  const Finding f =
      only_finding("faults.ptx", "mismatched_barrier", {1, 1, 1}, {64, 1, 1},
                   [](DeviceMemory& m) { return std::vector{Argument::pointer(m.allocate(1024, "x"))}; });
  EXPECT_EQ(f.kind, FindingKind::kBarrierMismatch);
  EXPECT_NE(f.message.find("wants 64 threads; 32 wait there"), std::string::npos) << f.message;
}
TEST(Findings, GridBarrierOfMoreBlocksThanAreResidentIsADeadlock) {
  auto arguments = [](DeviceMemory& m) {
    const DeviceAddress x = m.allocate(4096, "x");
    m.fill(x, 4096, std::byte{0});
    return std::vector{Argument::pointer(upload(m, std::vector<std::uint64_t>(1), "counter")),
                       Argument::pointer(x), Argument::pointer(m.allocate(4096, "y")),
                       Argument::pointer(m.allocate(4096, "z")), Argument::i32(1024)};
  };
  const Finding f = only_finding("grid_barrier.ptx", "phases", {161, 1, 1}, {1024, 1, 1}, arguments);
  EXPECT_EQ(f.kind, FindingKind::kGridDeadlock);
  EXPECT_NE(f.message.find("the grid has 161 blocks, 160 (2 an SM on 80 SMs) are resident"),
            std::string::npos)
      << f.message;
}
TEST(Findings, PollingAFlagNobodySetsIsALivelock) {
  const Finding f = only_finding("faults.ptx", "spin", {1, 1, 1}, {32, 1, 1}, [](DeviceMemory& m) {
    return std::vector{Argument::pointer(upload(m, std::vector<int>(1), "flag")),
                       Argument::pointer(m.allocate(1024, "x"))};
  });
  EXPECT_EQ(f.kind, FindingKind::kLivelock);
}
TEST(Findings, ALoopWithoutEndIsALivelock) {
  Options options;
  options.max_warp_instructions = 100000;
  const Finding f = only_finding(
      "faults.ptx", "spin_on_register", {1, 1, 1}, {1, 1, 1},
      [](DeviceMemory& m) {
        return std::vector{Argument::pointer(upload(m, std::vector<int>(2), "x")), Argument::i32(1)};
      },
      options);
  EXPECT_EQ(f.kind, FindingKind::kLivelock);
  EXPECT_NE(f.message.find("100000"), std::string::npos);
}
TEST(Findings, TrapIsReportedWithItsThread) {
  const ptx::Module module =
      ptx::parse(wrap_ptx("mov.u32 %r1, %tid.x;\nsetp.eq.u32 %p1, %r1, 5;\n@%p1 trap;\nret;"), "t.ptx");
  DeviceMemory memory;
  Launch launch{.kernel = "k", .grid = {}, .block = {32, 1, 1}};
  launch.arguments = {Argument::pointer(0), Argument::pointer(0)};
  const LaunchResult r = run(module, launch, memory, device("v100"), {});
  ASSERT_EQ(r.findings.size(), 1u);
  EXPECT_EQ(r.findings[0].kind, FindingKind::kTrap);
  EXPECT_EQ(r.findings[0].thread.x, 5u);
  EXPECT_EQ(r.findings[0].ptx_line, 14);
}

}  // namespace TEST_FILE
}  // namespace stitchwork::sim
