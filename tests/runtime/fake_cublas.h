// cuBLAS without a GPU: products are computed element by element in the memory of the GPU that the driver of
// fake_cuda.h has.
#pragma once

#include <memory>
#include <optional>

#include "core/graph/literal.h"
#include "runtime/cuda/blas.h"
#include "tests/runtime/fake_cuda.h"

namespace stitchwork::testing {

/// A value in the GPU's memory of one of cuBLAS's and cuDNN's element types, as double.
inline Literal scalar_of(DType dtype) {
  Shape shape;
  shape.dtype = dtype;
  return Literal::zeros(shape);
}
inline double load_value(DType dtype, sim::DeviceAddress address) {
  Literal value = scalar_of(dtype);
  fake_gpu()->memory.read(address, value.bytes);
  return value.get_double(0);
}
inline void store_value(DType dtype, sim::DeviceAddress address, double number) {
  Literal value = scalar_of(dtype);
  value.set_double(0, number);
  fake_gpu()->memory.write(address, value.bytes);
}

/// Of cudaDataType_t.
inline std::optional<DType> blas_type(int type) {
  switch (type) {
    case 0:
      return DType::kF32;
    case 1:
      return DType::kF64;
    case 2:
      return DType::kF16;
    case 14:
      return DType::kBF16;
    default:
      return std::nullopt;
  }
}

/// cublasGemmStridedBatchedEx as its documentation has it: columns first; the operands of one type, the
/// result of the same or, of f16 and bf16, of f32.
inline std::unique_ptr<cu::Blas> fake_blas() {
  cu::BlasFunctions f;
  f.create = [](void** handle) -> int {
    if (fails("blas_create")) return 1;
    count_live("blas", 1);
    return *handle = fake_gpu(), 0;
  };
  f.destroy = [](void*) -> int { return give_back("blas_destroy", "blas"); };
  f.set_stream = [](void*, cu::Stream) -> int { return fails("blas_set_stream") ? 1 : 0; };
  f.status = [](int) -> const char* { return "CUBLAS_STATUS_FAKE"; };
  f.gemm = [](void*, int a_op, int b_op, int m, int n, int k, const void* alpha, const void* a, int a_type,
              int a_ld, long long a_stride, const void* b, int b_type, int b_ld, long long b_stride,
              const void* beta, void* c, int c_type, int c_ld, long long c_stride, int batch, int compute,
              int) -> int {
    if (fails("gemm")) return 13;
    const std::optional<DType> from = blas_type(a_type), to = blas_type(c_type);
    const bool wide = from == DType::kF64;
    const bool narrow = from == DType::kF16 || from == DType::kBF16;
    if (!from || !to || b_type != a_type || (to != from && !(narrow && to == DType::kF32)) ||
        (compute == 70) != wide)
      return 15;  // CUBLAS_STATUS_NOT_SUPPORTED
    const auto factor = [&](const void* at) {
      return wide ? *static_cast<const double*>(at) : static_cast<double>(*static_cast<const float*>(at));
    };
    if (factor(alpha) != 1 || factor(beta) != 0) return 7;
    const bool a_fits = a_ld >= (a_op == 0 ? m : k), b_fits = b_ld >= (b_op == 0 ? k : n);
    if (!a_fits || !b_fits || c_ld < m) return 7;  // CUBLAS_STATUS_INVALID_VALUE
    enqueue([=, operands = *from, result = *to] {
      const auto at = [](const void* base, DType dtype, long long index) {
        return reinterpret_cast<sim::DeviceAddress>(base) +
               static_cast<std::uint64_t>(index * static_cast<long long>(byte_size(dtype)));
      };
      const auto load = [&](const void* base, long long index) {
        return load_value(operands, at(base, operands, index));
      };
      for (int p = 0; p < batch; ++p)
        for (int j = 0; j < n; ++j)
          for (int i = 0; i < m; ++i) {
            double sum = 0;
            for (int l = 0; l < k; ++l)
              sum += load(a, p * a_stride + (a_op == 0 ? i + static_cast<long long>(l) * a_ld
                                                       : l + static_cast<long long>(i) * a_ld)) *
                     load(b, p * b_stride + (b_op == 0 ? l + static_cast<long long>(j) * b_ld
                                                       : j + static_cast<long long>(l) * b_ld));
            store_value(result, at(c, result, p * c_stride + i + static_cast<long long>(j) * c_ld), sum);
          }
      fake_gpu()->clock_us += 5;
    });
    return 0;
  };
  return std::make_unique<cu::Blas>(f, "fake");
}

}  // namespace stitchwork::testing
