// Times of library calls that multiply: matrix products and convolutions (as implicit matrix products), by
// element type and shape. Method "modelled".
#pragma once

#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "core/graph/dtype.h"
#include "occupancy_model/device.h"

namespace stitchwork {

/// Peaks by element type as vendors state them, beside Device::fp32_tflops: dense, two operations a
/// multiply-add, accumulated in at least f32 (s32 of integers); 0: the device has no such unit.
struct ProductUnits {
  double fp64_tflops = 0;  ///< multiply-add units
  double tensor_fp16_tflops = 0, tensor_bf16_tflops = 0, tensor_tf32_tflops = 0, tensor_fp64_tflops = 0;
  double int8_tops = 0;          ///< tensor cores, or four-way integer dot products
  double fma_efficiency = 1;     ///< of the peak, what library kernels sustain on multiply-add units
  double tensor_efficiency = 1;  ///< the same of tensor cores and int8_tops
};

/// Of a device's file; of one whose file has no "products" those of fp32 alone.
ProductUnits product_units(const Device& device);

/// Throws Error if the device has no tensor cores for TF32.
void require_tf32(const Device& device);

/// The "products" of one description, if it has them; throws Error with file and key.
std::optional<ProductUnits> parse_product_units(std::string_view json, const std::string& origin);

/// `batch` products of an m x k matrix by a k x n one. A convolution is one of output positions x (kernel
/// positions x input features) by that x output features, a batch element for each group of features.
struct MatrixProduct {
  double batch = 1, m = 1, n = 1, k = 1;
  DType operands = DType::kF32;
  /// A narrower type that holds the operands' values, as where they were widened from it. cuBLAS computes f32
  /// buffers of such values in that type (CUBLAS_COMPUTE_32F_FAST_16F and _FAST_16BF), here without loss.
  std::optional<DType> values = std::nullopt;
  bool allow_tf32 =
      false;         ///< f32 operands may be rounded to 10 bits of mantissa (cuBLAS's and cuDNN's setting)
  double bytes = 0;  ///< of operands and result
};

/// What a product's time is made of: launch + max(latency + compute, memory).
struct LibraryTime {
  double total_us = 0;
  double launch_us = 0, latency_us = 0, compute_us = 0, memory_us = 0;
  std::string_view unit;       ///< "fp32", "fp16 tensor cores", ...
  double peak_tflops = 0;      ///< of the unit, as the vendor states it
  double efficiency = 0;       ///< of that, what library kernels sustain
  int tile_m = 0, tile_n = 0;  ///< outputs of a thread block
  int split_k =
      1;  ///< thread blocks that share a tile's k; more than one add their partial sums through memory
  double tiles = 0;   ///< thread blocks
  double rounds = 0;  ///< tiles of the SM that has most
};

/// The least over the units that compute the type, the tiles and the splits of k that libraries have. Tiles
/// at the edges cost whole ones, and the last round of tiles a whole one. A tile's step along k takes the
/// larger of its multiply-adds at the SM's sustained rate and its operands at 64 bytes a clock from L2.
LibraryTime library_time(const Device& device, const MatrixProduct& product);

/// A kernel of a library by its tile, as explorations name it; it does not split k.
struct LibraryKernel {
  std::string_view name;  ///< "128x128"
  int tile_m = 0, tile_n = 0;
};
/// Those that explorations try beside what the library would take by itself (docs/planners/astra.md).
std::span<const LibraryKernel> library_kernels();

/// The same of this kernel alone.
LibraryTime library_time(const Device& device, const MatrixProduct& product, const LibraryKernel& kernel);

/// "1 x 25600x3072x768 f16 on fp16 tensor cores: 112.0 TFLOPS x 0.66, ..."
std::string to_text(const MatrixProduct& product, const LibraryTime& time);

}  // namespace stitchwork
