// cuBLAS without a GPU: products are computed element by element in the memory of the GPU that the driver of
// fake_cuda.h has.
#pragma once

#include <array>
#include <bit>
#include <cmath>
#include <cstring>
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

/// A matrix or a product of cuBLASLt.
struct FakeLtDescriptor {
  std::optional<DType> dtype;
  std::int64_t rows = 0, cols = 0, stride = 0, apart = 0;
  std::int32_t count = 1, transpose_a = 0, transpose_b = 0, bias_type = -1;
  std::uint32_t epilogue = 1;
  const void* bias = nullptr;

  sim::DeviceAddress at(const void* base, std::int64_t matrix, std::int64_t row, std::int64_t col) const {
    return reinterpret_cast<sim::DeviceAddress>(base) +
           static_cast<std::uint64_t>((matrix * apart + row + col * stride) *
                                      static_cast<std::int64_t>(byte_size(*dtype)));
  }
  int set(int attribute, const void* value, std::size_t size) {
    const auto take = [&](auto& field) {
      if (size != sizeof field) return 7;
      std::memcpy(&field, value, size);
      return 0;
    };
    switch (attribute) {
      case 3:
        return take(transpose_a);
      case 4:
        return take(transpose_b);
      case 5:
        return take(count);
      case 6:
        return take(apart);
      case 7:
        return take(epilogue);
      case 8:
        return take(bias);
      case 26:
        return take(bias_type);
      default:
        return 7;  // CUBLAS_STATUS_INVALID_VALUE
    }
  }
};

/// cublasLtMatmul as its documentation has it: columns first, D = A * B + beta * C, and a bias for each row.
inline std::unique_ptr<cu::BlasLt> fake_blas_lt() {
  using Descriptor = void*;
  cu::BlasLtFunctions f;
  f.create = [](void** handle) -> int {
    count_live("blas_lt", 1);
    return *handle = fake_gpu(), 0;
  };
  f.destroy = [](void*) -> int { return give_back("blas_lt_destroy", "blas_lt"); };
  f.status = [](int) -> const char* { return "CUBLAS_STATUS_FAKE"; };
  f.product_create = [](Descriptor* made, int compute, int scale) -> int {
    if ((compute != 68 && compute != 77) || scale != 0) return 15;  // CUBLAS_STATUS_NOT_SUPPORTED
    *made = new FakeLtDescriptor();
    count_live("lt_descriptor", 1);
    return 0;
  };
  f.matrix_create = [](Descriptor* made, int type, std::uint64_t rows, std::uint64_t cols,
                       std::int64_t stride) -> int {
    if (!blas_type(type) || stride < static_cast<std::int64_t>(rows)) return 7;
    auto* const matrix = new FakeLtDescriptor();
    matrix->dtype = blas_type(type);
    matrix->rows = static_cast<std::int64_t>(rows);
    matrix->cols = static_cast<std::int64_t>(cols);
    matrix->stride = stride;
    *made = matrix;
    count_live("lt_descriptor", 1);
    return 0;
  };
  f.product_destroy = f.matrix_destroy = [](Descriptor of) -> int {
    delete static_cast<FakeLtDescriptor*>(of);
    return give_back("lt_descriptor_destroy", "lt_descriptor");
  };
  f.product_set =
      f.matrix_set = [](Descriptor of, int attribute, const void* value, std::size_t size) -> int {
    return static_cast<FakeLtDescriptor*>(of)->set(attribute, value, size);
  };
  f.multiply = [](void*, Descriptor product_, const void* alpha, const void* a, Descriptor a_, const void* b,
                  Descriptor b_, const void* beta, const void* c, Descriptor c_, void* d, Descriptor d_,
                  const void*, void*, std::size_t, cu::Stream stream) -> int {
    if (fails("lt_multiply")) return 13;
    const auto of = [](Descriptor one) { return *static_cast<FakeLtDescriptor*>(one); };
    const FakeLtDescriptor product = of(product_), ma = of(a_), mb = of(b_), mc = of(c_), md = of(d_);
    const bool across_a = product.transpose_a != 0, across_b = product.transpose_b != 0;
    const std::int64_t m = across_a ? ma.cols : ma.rows, k = across_a ? ma.rows : ma.cols,
                       n = across_b ? mb.rows : mb.cols;
    const float factor = *static_cast<const float*>(beta);
    const bool biased = (product.epilogue & 4U) != 0, relu = (product.epilogue & 2U) != 0;
    if ((product.epilogue & ~6U) > 1) return 15;
    if (*static_cast<const float*>(alpha) != 1 || (factor != 0 && factor != 1)) return 7;
    if (k != (across_b ? mb.cols : mb.rows) || md.rows != m || md.cols != n || mc.rows != m || mc.cols != n)
      return 7;
    if (biased && (product.bias == nullptr || blas_type(product.bias_type) != md.dtype)) return 7;
    enqueue(stream, [=] {
      for (std::int64_t p = 0; p < md.count; ++p)
        for (std::int64_t j = 0; j < n; ++j)
          for (std::int64_t i = 0; i < m; ++i) {
            double sum = 0;
            for (std::int64_t l = 0; l < k; ++l)
              sum += load_value(*ma.dtype, across_a ? ma.at(a, p, l, i) : ma.at(a, p, i, l)) *
                     load_value(*mb.dtype, across_b ? mb.at(b, p, j, l) : mb.at(b, p, l, j));
            if (factor != 0) sum += load_value(*mc.dtype, mc.at(c, p, i, j));
            if (biased) sum += load_value(*md.dtype, md.at(product.bias, 0, i, 0));
            if (relu) sum = std::fmax(sum, 0);
            store_value(*md.dtype, md.at(d, p, i, j), sum);
          }
      fake_gpu()->clock_us += 5;
    });
    return 0;
  };
  return std::make_unique<cu::BlasLt>(f, "fake");
}

/// A matrix of cuBLAS: columns first, or transposed rows first.
struct FakeMatrix {
  sim::DeviceAddress base;
  bool transposed;
  int stride;
  sim::DeviceAddress at(DType dtype, int row, int col) const {
    const std::int64_t index =
        transposed ? col + std::int64_t{row} * stride : row + std::int64_t{col} * stride;
    return base + static_cast<std::uint64_t>(index * byte_size(dtype));
  }
};
inline void fake_product(DType operands, DType result, std::array<int, 3> mnk, const FakeMatrix& a,
                         const FakeMatrix& b, const FakeMatrix& c) {
  const auto [m, n, k] = mnk;
  for (int j = 0; j < n; ++j)
    for (int i = 0; i < m; ++i) {
      double sum = 0;
      for (int l = 0; l < k; ++l)
        sum += load_value(operands, a.at(operands, i, l)) * load_value(operands, b.at(operands, l, j));
      store_value(result, c.at(result, i, j), sum);
    }
}

/// cublasGemmStridedBatchedEx as its documentation has it: columns first; the operands of one type, the
/// result of the same or, of f16 and bf16, of f32.
inline std::unique_ptr<cu::Blas> fake_blas() {
  cu::BlasFunctions f;
  f.create = [](void** handle) -> int {
    if (fails("blas_create")) return 1;
    count_live("blas", 1);
    return *handle = new FakeHandle, 0;
  };
  f.destroy = [](void* handle) -> int {
    delete static_cast<FakeHandle*>(handle);
    return give_back("blas_destroy", "blas");
  };
  f.set_stream = [](void* handle, cu::Stream stream) -> int {
    return fails("blas_set_stream") || !static_cast<FakeHandle*>(handle)->take(stream) ? 1 : 0;
  };
  f.status = [](int) -> const char* { return "CUBLAS_STATUS_FAKE"; };
  f.gemm = [](void* handle, int a_op, int b_op, int m, int n, int k, const void* alpha, const void* a,
              int a_type, int a_ld, long long a_stride, const void* b, int b_type, int b_ld,
              long long b_stride, const void* beta, void* c, int c_type, int c_ld, long long c_stride,
              int batch, int compute, int) -> int {
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
    const auto of = [](const void* base, DType dtype, long long index) {
      return reinterpret_cast<sim::DeviceAddress>(base) +
             static_cast<std::uint64_t>(index * static_cast<long long>(byte_size(dtype)));
    };
    enqueue(static_cast<FakeHandle*>(handle)->stream, [=, operands = *from, result = *to] {
      for (int p = 0; p < batch; ++p)
        fake_product(operands, result, {m, n, k}, {of(a, operands, p * a_stride), a_op != 0, a_ld},
                     {of(b, operands, p * b_stride), b_op != 0, b_ld},
                     {of(c, result, p * c_stride), false, c_ld});
      fake_gpu()->clock_us += 5;
    });
    return 0;
  };
  f.gemm_by_pointers = [](void* handle, int a_op, int b_op, int m, int n, int k, const void* alpha,
                          const void* const* a, int a_type, int a_ld, const void* const* b, int b_type,
                          int b_ld, const void* beta, void* const* c, int c_type, int c_ld, int batch,
                          int compute, int) -> int {
    if (fails("gemm_by_pointers")) return 13;
    const std::optional<DType> from = blas_type(a_type), to = blas_type(c_type);
    if (!from || !to || b_type != a_type || (compute == 70) != (from == DType::kF64)) return 15;
    const auto factor = [&](const void* at) {
      return from == DType::kF64 ? *static_cast<const double*>(at)
                                 : static_cast<double>(*static_cast<const float*>(at));
    };
    if (factor(alpha) != 1 || factor(beta) != 0 || c_ld < m) return 7;
    enqueue(static_cast<FakeHandle*>(handle)->stream, [=, operands = *from, result = *to] {
      const auto nth = [](const void* list, int p) {  // lists lie on the device
        std::array<std::byte, sizeof(sim::DeviceAddress)> bytes{};
        fake_gpu()->memory.read(
            reinterpret_cast<sim::DeviceAddress>(list) + static_cast<std::uint64_t>(p) * bytes.size(), bytes);
        return std::bit_cast<sim::DeviceAddress>(bytes);
      };
      for (int p = 0; p < batch; ++p)
        fake_product(operands, result, {m, n, k}, {nth(a, p), a_op != 0, a_ld}, {nth(b, p), b_op != 0, b_ld},
                     {nth(c, p), false, c_ld});
      fake_gpu()->clock_us += 5;
    });
    return 0;
  };
  return std::make_unique<cu::Blas>(f, "fake", fake_blas_lt());
}

}  // namespace stitchwork::testing
