#include "occupancy_model/library.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <fstream>
#include <map>
#include <random>
#include <sstream>
#include <vector>

#include "core/base/error.h"

namespace stitchwork {
namespace TEST_FILE {

using ::testing::HasSubstr;

MatrixProduct product(DType type, double batch, double m, double n, double k) {
  return {.batch = batch,
          .m = m,
          .n = n,
          .k = k,
          .operands = type,
          .bytes = byte_size(type) * batch * (m * k + k * n + m * n)};
}

double total_us(const char* id, const MatrixProduct& p) { return library_time(device(id), p).total_us; }

TEST(LibraryTime, HalfPrecisionRunsOnTensorCoresWhereThereAreSome) {
  const MatrixProduct single = product(DType::kF32, 1, 25600, 3072, 768);
  const MatrixProduct half = product(DType::kF16, 1, 25600, 3072, 768);
  for (const char* id : {"v100", "t4", "a100", "h100", "h200", "l4", "b200", "rtx4090"})
    EXPECT_LT(total_us(id, half), 0.6 * total_us(id, single)) << id;
  EXPECT_EQ(library_time(device("p100-sxm2"), half).unit, "fp32");
  EXPECT_EQ(library_time(device("v100"), product(DType::kBF16, 1, 25600, 3072, 768)).unit, "fp32");
  EXPECT_EQ(library_time(device("a100"), product(DType::kBF16, 1, 25600, 3072, 768)).unit,
            "bf16 tensor cores");
}

/// The device's table says how much faster its units are; rounds, memory and launch only take from that.
/// Where they are no faster (RTX 4090: both peaks are 82.6 T/s) the library stays in fp32.
TEST(LibraryTime, RoundedProductsGainNoMoreThanTheirUnits) {
  std::mt19937 random(29);
  const auto extent = [&] { return std::floor(std::exp2(std::uniform_real_distribution<>(0, 13)(random))); };
  for (const Device& device : devices()) {
    const ProductUnits units = product_units(device);
    if (units.tensor_tf32_tflops == 0) continue;
    const double faster =
        units.tensor_tf32_tflops * units.tensor_efficiency / (device.fp32_tflops * units.fma_efficiency);
    const double gain = std::max(1.0, faster);
    for (int i = 0; i < 200; ++i) {
      MatrixProduct p = product(DType::kF32, i % 3 == 0 ? 8 : 1, extent(), extent(), extent());
      const double exact_us = library_time(device, p).total_us;
      p.allow_tf32 = true;
      const double rounded_us = library_time(device, p).total_us;
      EXPECT_LE(rounded_us, exact_us) << to_text(p, library_time(device, p));
      EXPECT_LE(exact_us, 1.0001 * gain * rounded_us) << to_text(p, library_time(device, p));
    }
    MatrixProduct large = product(DType::kF32, 1, 128.0 * 8 * device.sms, 4096, 16384);
    const LibraryTime exact = library_time(device, large);
    large.allow_tf32 = true;
    const LibraryTime rounded = library_time(device, large);
    EXPECT_EQ(rounded.unit, faster > 1 ? "tf32 tensor cores" : "fp32") << device.id;
    EXPECT_NEAR(exact.total_us / rounded.total_us, gain, 0.1 * gain) << to_text(large, rounded);
  }
}

TEST(LibraryTime, SinglePrecisionIsRoundedOnlyWhereThatIsAllowed) {
  MatrixProduct p = product(DType::kF32, 1, 8192, 8192, 8192);
  const double exact = total_us("a100", p);
  p.allow_tf32 = true;
  EXPECT_LT(total_us("a100", p), 0.25 * exact);
  EXPECT_EQ(library_time(device("v100"), p).unit, "fp32");
}

TEST(LibraryTime, DoublePrecisionIsSlowWhereItsUnitsAreFew) {
  const MatrixProduct p = product(DType::kF64, 1, 4096, 4096, 4096);
  EXPECT_GT(total_us("t4", p), 15 * total_us("v100", p));
  EXPECT_EQ(library_time(device("a100"), p).unit, "fp64 tensor cores");
}

/// 2 x 8192^3 operations at 15.7 TFLOPS x 0.80.
TEST(LibraryTime, LargeProductsTakeTheirUnitsSustainedRate) {
  EXPECT_NEAR(total_us("v100", product(DType::kF32, 1, 8192, 8192, 8192)) / 87540, 1, 0.03);
}

TEST(LibraryTime, TheLastRoundOfTilesCostsAWholeOne) {
  const auto compute_us = [](double batch) {
    return library_time(device("v100"), product(DType::kF32, batch, 128, 128, 1 << 20)).compute_us;
  };
  // 16 tiles of 32 x 32 for each, split eight ways along k: 80 SMs are full with one round for each 5/8.
  EXPECT_GT(compute_us(6), 1.05 * compute_us(5));
  const LibraryTime one = library_time(device("v100"), product(DType::kF32, 1, 32, 32, 4096));
  const LibraryTime ten = library_time(device("v100"), product(DType::kF32, 10, 32, 32, 4096));
  const LibraryTime eleven = library_time(device("v100"), product(DType::kF32, 11, 32, 32, 4096));
  EXPECT_EQ(one.tiles, 8);
  EXPECT_EQ(ten.tiles, 80);
  EXPECT_EQ(one.compute_us, ten.compute_us);
  EXPECT_GT(eleven.compute_us, ten.compute_us);
}

TEST(LibraryTime, SmallProductsTakeLaunchAndLatency) {
  const LibraryTime t = library_time(device("v100"), product(DType::kF32, 1, 8, 8, 8));
  EXPECT_LT(t.compute_us, 0.1 * t.total_us);
  EXPECT_NEAR(t.total_us, t.launch_us + t.latency_us, 0.1 * t.total_us);
}

TEST(LibraryTime, AMatrixTimesAVectorTakesTheMatrixsBytes) {
  const Device& d = device("v100");
  for (const DType type : {DType::kF32, DType::kF16}) {
    const MatrixProduct p = product(type, 1, 1, 16384, 8192);
    EXPECT_NEAR(library_time(d, p).total_us, d.launch_us + p.bytes / (d.dram_efficiency * d.dram_gb_s * 1e3),
                0.02 * library_time(d, p).total_us);
  }
}

TEST(LibraryTime, AnEmptyProductTakesALaunch) {
  const Device& d = device("v100");
  EXPECT_NEAR(library_time(d, product(DType::kF32, 1, 0, 16, 16)).total_us, d.launch_us, 1);
}

TEST(LibraryTime, OfEveryKernelIsTheFastestOfItsTileAtLeast) {
  for (const char* name : {"p100-sxm2", "v100-sxm2", "h200"})
    for (const double m : {1.0, 20.0, 700.0, 4096.0})
      for (const double k : {8.0, 650.0, 5000.0}) {
        const MatrixProduct product{.m = m, .n = 1500, .k = k, .bytes = 4 * (m * k + 1500 * k + 1500 * m)};
        for (const LibraryKernel& kernel : library_kernels()) {
          const LibraryTime time = library_time(device(name), product, kernel);
          EXPECT_EQ(time.tile_m, kernel.tile_m);
          EXPECT_EQ(time.tile_n, kernel.tile_n);
          EXPECT_LE(library_time(device(name), product).total_us, time.total_us);
        }
      }
}

TEST(LibraryTime, SaysWhatItIsMadeOf) {
  const MatrixProduct p = product(DType::kF16, 1, 25600, 3072, 768);
  const std::string text = to_text(p, library_time(device("v100"), p));
  EXPECT_THAT(text, HasSubstr("fp16 tensor cores of 125 T/s x 0.66"));
  EXPECT_THAT(text, HasSubstr("modelled"));
}

/// Multiply-adds a clock and SM are powers of two, so a typing error in a peak shows. H100's tensor cores and
/// B200 are stated at less than the boost clock.
TEST(ProductUnits, PeaksAreWholeNumbersOfMultiplyAddsAClock) {
  for (const Device& d : devices()) {
    const ProductUnits u = product_units(d);
    EXPECT_LT(u.fma_efficiency, 1) << d.id;
    for (const double peak : {d.fp32_tflops, u.fp64_tflops, u.tensor_fp16_tflops, u.tensor_bf16_tflops,
                              u.tensor_tf32_tflops, u.tensor_fp64_tflops, u.int8_tops}) {
      if (peak == 0) continue;
      const double a_clock = peak * 1e3 / (2 * d.sms * d.clock_ghz);
      const double share = a_clock / std::exp2(std::round(std::log2(a_clock)));
      EXPECT_GT(share, 0.92) << d.id << " " << peak;
      EXPECT_LT(share, 1.03) << d.id << " " << peak;
    }
  }
}

TEST(ProductUnits, WrongDescriptionsNameTheKey) {
  const auto message = [](const std::string& products) -> std::string {
    try {
      parse_product_units("{\"products\": " + products + "}", "x.json");
    } catch (const Error& error) {
      return error.what();
    }
    return "accepted";
  };
  const std::string two =
      R"("fp64_tflops": {"value": 1, "source": "s"}, "fma_efficiency": {"value": 0.8, "source": "s"})";
  EXPECT_EQ(message("{" + two + "}"), "accepted");
  EXPECT_THAT(message("3"), HasSubstr("products"));
  EXPECT_THAT(message("{}"), HasSubstr("fp64_tflops"));
  EXPECT_THAT(message("{" + two + R"(, "fp4_tflops": {"value": 1, "source": "s"}})"),
              HasSubstr("fp4_tflops"));
  EXPECT_THAT(message("{" + two + R"(, "int8_tops": {"value": 1, "source": "s"}})"),
              HasSubstr("tensor_efficiency"));
  EXPECT_FALSE(parse_product_units("{}", "x.json").has_value());
}

struct Measured {
  std::string device, type;
  MatrixProduct product;
  double us = 0, least_us = 0;
};

std::vector<Measured> measured_products() {
  std::ifstream file(STITCHWORK_SOURCE_DIR "/tests/occupancy_model/measured/products.csv");
  std::vector<Measured> rows;
  for (std::string line; std::getline(file, line);) {
    if (line.starts_with("#") || line.starts_with("device,")) continue;
    std::istringstream fields(line);
    std::vector<std::string> c(8);
    for (std::string& cell : c) std::getline(fields, cell, ',');
    rows.push_back({c[0], c[1],
                    product(dtype_from_name(c[1]).value(), std::stod(c[2]), std::stod(c[3]), std::stod(c[4]),
                            std::stod(c[5])),
                    std::stod(c[6]), std::stod(c[7])});
  }
  return rows;
}

/// Times from event to event hold the host's dispatch: the least time of any product stands for that and for
/// an empty kernel.
TEST(LibraryTime, IsNearMeasuredProducts) {
  const std::vector<Measured> rows = measured_products();
  ASSERT_GT(rows.size(), 280U);
  std::map<std::string, std::vector<double>> errors;
  for (const Measured& row : rows) {
    const LibraryTime t = library_time(device(row.device), row.product);
    errors[row.device + " " + row.type].push_back((t.total_us - t.launch_us + row.least_us) / row.us - 1);
  }
  for (auto& [what, list] : errors) {
    double bias = 0;
    for (double& e : list) {
      bias += e / static_cast<double>(list.size());
      e = std::abs(e);
    }
    std::ranges::sort(list);
    fmt::print(
        "{:<18} {:>3} products, modelled: median error {:.1f} %, 90 % below {:.1f} %, bias {:+.1f} %\n", what,
        list.size(), 100 * list[list.size() / 2], 100 * list[list.size() * 9 / 10], 100 * bias);
    EXPECT_LT(list[list.size() / 2], 0.30) << what;
  }
}

}  // namespace TEST_FILE
}  // namespace stitchwork
