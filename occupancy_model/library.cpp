#include "occupancy_model/library.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <vector>

#include "occupancy_model/units.h"

namespace stitchwork {
namespace {

/// Bytes a clock that an SM takes in from L2, as in timing.cpp.
/// The same as in occupancy_model/timing.cpp.
constexpr double kL2BytesPerSmClock = 64;
/// k advances by so many elements at once: the k of a tile in the names of cuBLAS's and CUTLASS's fp32
/// kernels.
constexpr double kStepOfK = 8;
/// No split leaves fewer elements of k to a thread block.
/// A choice, not measured: eight steps of k hide the first operands' way.
constexpr double kLeastSplitK = 64;
/// Memory round trips that a thread block cannot hide: its first operands in, its results out.
/// Two, since neither its first loads nor its last stores have work to hide behind.
constexpr double kRoundTrips = 2;
// A choice, not measured: partial sums are f32.
constexpr double kPartialSumBytes = 4;

struct Tile {
  int m, n;
  bool tensor;  ///< tensor cores compute such tiles; those of one row or column are matrix-vector kernels
};
/// Tiles in the names of the kernels that cuBLAS 12.1 picked for 140,000 fp32 products on eight devices
/// (docs/timing.md), and one row or column.
constexpr Tile kTiles[] = {{256, 128, true}, {128, 256, true}, {128, 128, true}, {128, 64, true},
                           {64, 128, true},  {64, 64, true},   {128, 32, true},  {32, 128, true},
                           {32, 32, true},   {128, 1, false},  {1, 128, false}};
constexpr int kSplits[] = {1, 2, 4, 8};

struct ProductUnit {
  std::string_view name;
  double tflops, efficiency;
  bool tensor;
};

/// Those that compute products of the type with the result's precision: f16 and bf16 are accumulated in f32,
/// so where there are no tensor cores for them they are computed as f32.
std::vector<ProductUnit> units(const Device& device, const MatrixProduct& p) {
  const ProductUnits d = product_units(device);
  std::vector<ProductUnit> found;
  const auto tensor = [&](std::string_view name, double tflops) {
    if (tflops > 0) found.push_back({name, tflops, d.tensor_efficiency, true});
  };
  switch (p.values.value_or(p.operands)) {
    case DType::kF64:
    case DType::kC128:
      tensor("fp64 tensor cores", d.tensor_fp64_tflops);
      found.push_back({"fp64", d.fp64_tflops, d.fma_efficiency, false});
      return found;
    case DType::kF16:
      tensor("fp16 tensor cores", d.tensor_fp16_tflops);
      break;
    case DType::kBF16:
      tensor("bf16 tensor cores", d.tensor_bf16_tflops);
      break;
    case DType::kF32:
      if (p.allow_tf32) tensor("tf32 tensor cores", d.tensor_tf32_tflops);
      break;
    case DType::kS8:
    case DType::kU8:
      tensor("int8 dot products", d.int8_tops);
      break;
    default:
      break;
  }
  found.push_back({"fp32", device.fp32_tflops, d.fma_efficiency, false});
  return found;
}

/// Real multiply-adds of one of the type's.
double multiply_adds(DType type) { return type == DType::kC64 || type == DType::kC128 ? 4 : 1; }

LibraryTime time_of(const Device& device, const MatrixProduct& p, const ProductUnit& unit, const Tile& tile,
                    int split, double k) {
  const double element_bytes = std::max(1, byte_size(p.operands));
  const double dram_bytes_per_us = device.dram_efficiency * device.dram_gb_s * kNanosecondsPerMicrosecond;
  const double per_sm_us = unit.tflops * unit.efficiency * 1e6 / 2 / device.sms;  // multiply-adds
  LibraryTime t{.launch_us = device.launch_us,
                .latency_us = kRoundTrips * device.dram_latency_ns / kNanosecondsPerMicrosecond,
                .unit = unit.name,
                .peak_tflops = unit.tflops,
                .efficiency = unit.efficiency,
                .tile_m = tile.m,
                .tile_n = tile.n,
                .split_k = split};
  t.tiles = p.batch * std::ceil(p.m / tile.m) * std::ceil(p.n / tile.n) * split;
  t.rounds = std::ceil(t.tiles / device.sms);
  const double outputs = static_cast<double>(tile.m) * tile.n;
  const double step_us = std::max(outputs * multiply_adds(p.operands) / per_sm_us,
                                  (tile.m + tile.n) * element_bytes /
                                      (kL2BytesPerSmClock * device.clock_ghz * kNanosecondsPerMicrosecond));
  t.compute_us = t.rounds * k * step_us;
  const double partial_sums =
      split == 1 ? 0 : 2 * kPartialSumBytes * split * p.batch * p.m * p.n;  // written and read
  t.memory_us = (p.bytes + partial_sums) / dram_bytes_per_us;
  t.total_us = t.launch_us + std::max(t.latency_us + t.compute_us, t.memory_us);
  return t;
}

/// The least over units, tiles and splits; `kernel`: of it alone.
LibraryTime least(const Device& device, const MatrixProduct& p, const LibraryKernel* kernel) {
  LibraryTime best;
  for (const ProductUnit& unit : units(device, p))
    for (const Tile& tile : kTiles) {
      if (unit.tensor && !tile.tensor) continue;
      if (kernel != nullptr && (tile.m != kernel->tile_m || tile.n != kernel->tile_n)) continue;
      for (const int split : kSplits) {
        const double k = std::ceil(std::ceil(p.k / split) / kStepOfK) * kStepOfK;
        if (split > 1 && (k < kLeastSplitK || kernel != nullptr)) break;
        const LibraryTime t = time_of(device, p, unit, tile, split, k);
        if (best.total_us == 0 || t.total_us < best.total_us) best = t;
      }
    }
  return best;
}

/// Two, as the paper has two kernels beside cuBLAS's (Astra, Table 1): the coarse tile that has most reuse
/// and the fine one that fills the device with small products.
constexpr LibraryKernel kExplored[] = {{"128x128", 128, 128}, {"64x64", 64, 64}};

}  // namespace

LibraryTime library_time(const Device& device, const MatrixProduct& p) { return least(device, p, nullptr); }

LibraryTime library_time(const Device& device, const MatrixProduct& p, const LibraryKernel& kernel) {
  return least(device, p, &kernel);
}

std::span<const LibraryKernel> library_kernels() { return kExplored; }

std::string to_text(const MatrixProduct& p, const LibraryTime& t) {
  std::string text = fmt::format(
      "modelled {:.1f} us: {:.0f} x {:.0f}x{:.0f}x{:.0f} (m, n, k) {} on {} of {:g} T/s x {:g}, {:.0f} tiles "
      "of {}x{}",
      t.total_us, p.batch, p.m, p.n, p.k,
      p.values ? fmt::format("{} of {} values", name(p.operands), name(*p.values))
               : std::string(name(p.operands)),
      t.unit, t.peak_tflops, t.efficiency, t.tiles, t.tile_m, t.tile_n);
  if (t.split_k > 1) text += fmt::format(" (k split {} ways)", t.split_k);
  return text + fmt::format(
                    ", {:.0f} on the busiest SM: compute {:.1f} us + latency {:.1f} us, memory {:.1f} us, "
                    "launch {:.1f} us",
                    t.rounds, t.compute_us, t.latency_us, t.memory_us, t.launch_us);
}

}  // namespace stitchwork
