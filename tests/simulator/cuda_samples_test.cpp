// Kernels in the manner of NVIDIA's samples (tests/simulator/cuda/samples.cu) as nvcc compiles them for three
// generations: right against the host, and clean under every sanitizer.
#include <algorithm>
#include <map>
#include <numeric>

#include "tests/simulator/cuda_sources.h"
#include "tests/simulator/sim_support.h"

namespace stitchwork::sim {
namespace TEST_FILE {

struct Target {
  int sm;
  const char* device;
};

class CudaSample : public ::testing::TestWithParam<Target> {
 protected:
  static const ptx::Module& module() {
    static std::map<int, ptx::Module> modules;
    const int sm = GetParam().sm;
    const auto known = modules.find(sm);
    if (known != modules.end()) return known->second;
    const std::string command = fmt::format("nvcc -ptx -O3 -std=c++17 -lineinfo -arch=sm_{}", sm);
    return modules.emplace(sm, compiled("samples", command)).first->second;
  }
  void SetUp() override {
    if (!on_path("nvcc")) GTEST_SKIP() << "nvcc is not installed";
  }

  /// Without and with sanitizers; `arguments` are made anew for each, `out` is read back after the last.
  template <class Make>
  void run_clean(const std::string& kernel, std::uint32_t blocks, std::uint32_t threads, Make arguments) {
    for (const bool sanitized : {false, true}) {
      memory = DeviceMemory(true);
      Launch launch{.kernel = kernel, .grid = {blocks, 1, 1}, .block = {threads, 1, 1}};
      launch.arguments = arguments();
      Options options;
      if (sanitized) options.sanitize = {.race = true, .init = true, .sync = true};
      const LaunchResult r = run(module(), launch, memory, device(GetParam().device), options);
      ASSERT_TRUE(r.findings.empty()) << kernel << " line " << r.findings[0].ptx_line << " ("
                                      << r.findings[0].cuda_location << "): " << r.findings[0].message;
    }
  }
  template <class T>
  Argument give(const std::vector<T>& data, DeviceAddress* address = nullptr) {
    const DeviceAddress a = upload(memory, data, "data");
    if (address != nullptr) *address = a;
    return Argument::pointer(a);
  }
  DeviceMemory memory;
  DeviceAddress out = 0, also = 0;
};

std::vector<int> numbers(std::size_t count, int range = 100000) {
  std::vector<int> x(count);
  std::uint32_t state = 99;
  for (int& v : x) {
    state = state * 1664525u + 1013904223u;
    v = static_cast<int>(state >> 8) % range - range / 4;
  }
  return x;
}

TEST_P(CudaSample, TheLastBlockAddsUpWhatTheOthersPublished) {
  const auto x = numbers(20000);
  run_clean("threadfence_sum", 40, 256, [&] {
    return std::vector{give(x), give(std::vector<int>(40), &out), Argument::i32(20000)};
  });
  EXPECT_EQ(download<int>(memory, out, 1)[0], std::accumulate(x.begin(), x.end(), 0));
}

TEST_P(CudaSample, MaximaOfBucketsAreGatheredByWarps) {
  const auto x = numbers(2048);
  const int buckets = 7;
  run_clean("bucket_maxima", 8, 256, [&] {
    return std::vector{give(x), give(std::vector<int>(buckets, -1000000), &out), Argument::i32(buckets)};
  });
  std::vector<int> most(buckets, -1000000);
  for (const int v : x)
    most[static_cast<std::size_t>((v & 0xffff) % buckets)] =
        std::max(most[static_cast<std::size_t>((v & 0xffff) % buckets)], v);
  EXPECT_EQ(download<int>(memory, out, buckets), most);
}

TEST_P(CudaSample, LanesOfABucketAreNumberedOnce) {
  const auto x = numbers(1024);
  const int buckets = 5;
  run_clean("bucket_ranks", 4, 256, [&] {
    return std::vector{give(x), give(std::vector<int>(buckets), &out),
                       give(std::vector<int>(buckets * 256), &also), Argument::i32(buckets)};
  });
  std::vector<int> counts(buckets), seen(buckets * 256);
  for (const int v : x)
    if (v & 1) {
      const int bucket = (v & 0xffff) % buckets;
      ++seen[static_cast<std::size_t>(bucket * 256 + counts[static_cast<std::size_t>(bucket)]++ % 256)];
    }
  EXPECT_EQ(download<int>(memory, out, buckets), counts);
  EXPECT_EQ(download<int>(memory, also, seen.size()), seen);
}

TEST_P(CudaSample, TilesOfMoreThanAWarpAddUp) {
  const auto x = numbers(1024);
  run_clean("wide_tiles", 4, 256, [&] { return std::vector{give(x), give(std::vector<int>(16), &out)}; });
  const auto got = download<int>(memory, out, 16);
  for (std::size_t t = 0; t < 16; ++t)
    EXPECT_EQ(got[t], std::accumulate(x.begin() + static_cast<std::ptrdiff_t>(64 * t),
                                      x.begin() + static_cast<std::ptrdiff_t>(64 * t + 64), 0))
        << t;
}

TEST_P(CudaSample, ScansOfTilesGoOnWhereThreadsHaveEnded) {
  const int n = 501;
  const auto x = numbers(n);
  run_clean("tile_scan", 4, 128, [&] {
    return std::vector{give(x), give(std::vector<int>(n), &out), Argument::i32(n)};
  });
  const auto got = download<int>(memory, out, n);
  for (std::size_t i = 0, sum = 0; i < n; ++i) {
    sum = (i % 16 == 0 ? 0 : sum) + static_cast<std::size_t>(x[i]);
    ASSERT_EQ(got[i], static_cast<int>(sum)) << i;
  }
}

TEST_P(CudaSample, FunctionsAreCalledThroughPointers) {
  auto x = numbers(256);
  for (int& v : x) v = std::abs(v);
  run_clean("by_pointer", 2, 128, [&] { return std::vector{give(x), give(std::vector<int>(256), &out)}; });
  const auto got = download<int>(memory, out, 256);
  for (std::size_t i = 0; i < 256; ++i) {
    const int b = static_cast<int>(i % 7);
    EXPECT_EQ(got[i], x[i] % 3 == 0 ? x[i] + b : x[i] % 3 == 1 ? x[i] * b : std::max(x[i], b)) << i;
  }
}

TEST_P(CudaSample, AStencilCopiesItsNextTileMeanwhile) {
  const int tiles = 3;
  std::vector<float> x(2 * tiles * 256);
  for (std::size_t i = 0; i < x.size(); ++i) x[i] = static_cast<float>(i * 7 % 101);
  run_clean("stencil", 2, 256, [&] {
    return std::vector{give(x), give(std::vector<float>(x.size()), &out), Argument::i32(tiles)};
  });
  const auto got = download<float>(memory, out, x.size());
  for (std::size_t i = 0; i < x.size(); ++i) {
    float sum = 0;
    for (int k = -2; k <= 2; ++k) {
      const int at = static_cast<int>(i % 256) + k;
      if (at >= 0 && at < 256) sum += x[i - i % 256 + static_cast<std::size_t>(at)];
    }
    ASSERT_EQ(got[i], sum) << i;
  }
}

TEST_P(CudaSample, BarriersOfLibcuxxWaitForCopies) {
  const auto x = numbers(1024);
  run_clean("reversed", 2, 128, [&] { return std::vector{give(x), give(std::vector<int>(1024), &out)}; });
  const auto got = download<int>(memory, out, 1024);
  for (std::size_t i = 0; i < 1024; ++i) ASSERT_EQ(got[i], x[i / 512 * 512 + 511 - i % 512]) << i;
}

TEST_P(CudaSample, DoublesAreMultipliedByTensorCores) {
  if (GetParam().sm < 80) GTEST_SKIP() << "sm_80 has them first";
  const int k = 20;
  std::vector<double> a(8 * k), b(8 * k);
  for (std::size_t i = 0; i < a.size(); ++i)
    a[i] = static_cast<double>(i % 13) / 4, b[i] = static_cast<double>(i % 11) - 5;
  run_clean("double_product", 1, 32, [&] {
    return std::vector{give(a), give(b), give(std::vector<double>(64), &out), Argument::i32(k)};
  });
  const auto got = download<double>(memory, out, 64);
  for (std::size_t row = 0; row < 8; ++row)
    for (std::size_t column = 0; column < 8; ++column) {
      double sum = 0;
      for (std::size_t at = 0; at < k; ++at) sum += a[row * k + at] * b[column * k + at];
      ASSERT_EQ(got[row * 8 + column], sum);
    }
}

INSTANTIATE_TEST_SUITE_P(Targets, CudaSample,
                         ::testing::Values(Target{75, "t4"}, Target{80, "a100-sxm-80"}, Target{90, "h100"}),
                         [](const auto& info) { return fmt::format("sm_{}", info.param.sm); });

}  // namespace TEST_FILE
}  // namespace stitchwork::sim
