// A matrix product as it is written for Hopper (tests/simulator/cuda/hopper_gemm.cu, as nvcc 13.0 -O3
// -arch=sm_90a compiled it): right, clean, and its planted faults found.
#include <fmt/format.h>

#include <random>

#include "core/graph/literal.h"
#include "simulator/tensor_map.h"
#include "tests/simulator/sim_support.h"

namespace stitchwork::sim {
namespace TEST_FILE {

struct Size {
  std::uint32_t m = 256, n = 128, k = 320;
};

TensorMap map_of(DeviceAddress address, std::uint32_t rows, std::uint32_t columns) {
  TensorMap map;
  map.address = address;
  map.type = TensorElement::kF16;
  map.rank = 2;
  map.dims = {columns, rows, 1, 1, 1};
  map.strides = {columns * 2ull, 0, 0, 0};
  map.box = {64, 128, 1, 1, 1};
  map.swizzle = Swizzle::k128B;
  return map;
}

struct Ran {
  LaunchResult result;
  std::vector<float> c;
  std::vector<std::uint16_t> a, b;
  std::string text() const {
    return result.findings.empty()
               ? ""
               : std::string(name(result.findings[0].kind)) + ": " + result.findings[0].message;
  }
};

Ran multiply(const std::string& text, const Size& size, Sanitizers what, int host_threads = 0) {
  const ptx::Module module = ptx::parse(text, "hopper_gemm.ptx");
  std::mt19937_64 rng(1);
  const auto draw = [&](std::size_t count) {
    std::vector<std::uint16_t> values(count);
    for (auto& v : values) v = f32_to_f16(static_cast<float>(static_cast<int>(rng() % 17) - 8) / 8);
    return values;
  };
  Ran ran{{}, {}, draw(std::size_t{size.m} * size.k), draw(std::size_t{size.n} * size.k)};
  DeviceMemory memory(true);
  const DeviceAddress a = upload(memory, ran.a, "a"), b = upload(memory, ran.b, "b");
  const DeviceAddress c = memory.allocate(std::size_t{size.m} * size.n * 4, "c");
  Launch launch{.kernel = "hopper_gemm", .grid = {size.n / 128, size.m / 128, 1}, .block = {384, 1, 1}};
  launch.dynamic_shared_bytes = 6 * 16384;
  const auto bytes = [](const TensorMap& map) {
    const auto encoded = map.encode();
    return Argument{{encoded.begin(), encoded.end()}};
  };
  launch.arguments = {bytes(map_of(a, size.m, size.k)), bytes(map_of(b, size.n, size.k)),
                      Argument::pointer(c), Argument::i32(static_cast<int>(size.n)),
                      Argument::i32(static_cast<int>(size.k))};
  Options options;
  options.sanitize = what;
  options.host_threads = host_threads;
  options.max_warp_instructions = 10000000;
  ran.result = run(module, launch, memory, device("h100"), options);
  ran.c = download<float>(memory, c, std::size_t{size.m} * size.n);
  return ran;
}

constexpr Sanitizers kAll{.race = true, .init = true, .sync = true};

TEST(HopperProduct, IsRightAndClean) {
  for (const Sanitizers& what : {Sanitizers{}, kAll}) {
    const Size size;
    const Ran ran = multiply(fixture_text("hopper_gemm.ptx"), size, what);
    ASSERT_EQ(ran.text(), "");
    for (std::uint32_t i = 0; i < size.m; ++i)
      for (std::uint32_t j = 0; j < size.n; ++j) {
        double sum = 0;  // exact: products are multiples of 1/64
        for (std::uint32_t k = 0; k < size.k; ++k)
          sum += double{f16_to_f32(ran.a[std::size_t{i} * size.k + k])} *
                 f16_to_f32(ran.b[std::size_t{j} * size.k + k]);
        ASSERT_EQ(ran.c[std::size_t{i} * size.n + j], static_cast<float>(sum)) << i << " " << j;
      }
  }
}

TEST(HopperProduct, CountsWhatItMoves) {
  const Size size;
  const Ran ran = multiply(fixture_text("hopper_gemm.ptx"), size, {}),
            serial = multiply(fixture_text("hopper_gemm.ptx"), size, {}, 1);
  const Counters& c = ran.result.counters;
  EXPECT_EQ(c.tensor_multiply_adds, std::uint64_t{size.m} * size.n * size.k);
  EXPECT_EQ(c.bulk_copies, 2u * 2 * size.k / 64);
  EXPECT_EQ(c.bulk_sectors, 2u * 2 * 128 * size.k * 2 / 32);
  // B is read by both blocks, and from DRAM once.
  EXPECT_EQ(c.dram_read_transactions, (size.m + size.n) * size.k * 2 / 32);
  EXPECT_EQ(serial.result.counters.inst_executed, c.inst_executed);
  EXPECT_EQ(serial.result.counters.shared_wavefronts, c.shared_wavefronts);
  EXPECT_EQ(serial.result.time_us, ran.result.time_us);
  EXPECT_EQ(serial.c, ran.c);
}

std::string edited(std::string text, const std::string& part, const std::string& instead) {
  std::size_t at = text.find(part);
  if (at == std::string::npos) throw std::runtime_error("no " + part);
  for (; at != std::string::npos; at = text.find(part, at + instead.size()))
    text.replace(at, part.size(), instead);
  return text;
}

TEST(HopperProduct, PlantedFaultsAreFound) {
  const std::string good = fixture_text("hopper_gemm.ptx");
  const auto expect = [&](const std::string& part, const std::string& instead, const std::string& found) {
    const Ran ran = multiply(edited(good, part, instead), {.m = 128}, kAll);
    EXPECT_NE(ran.text().find(found), std::string::npos) << part << " -> " << instead << ": " << ran.text();
    EXPECT_FALSE(ran.result.findings.empty());
  };
  expect("wgmma.wait_group.sync.aligned 0;", "wgmma.wait_group.sync.aligned 1;", "race");
  expect("wgmma.fence.sync.aligned;", "", "before the first wgmma.fence");
  // A tile is asked for before its readers are done.
  expect("mbarrier.init.shared::cta.b64 [%r39]", "mbarrier.init.shared::cta.b64 [%r39+8]", "mbarrier");
}

}  // namespace TEST_FILE
}  // namespace stitchwork::sim
