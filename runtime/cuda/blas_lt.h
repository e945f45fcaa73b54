// cuBLASLt, loaded at run time: products with additions in the same call.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>

#include "analysis/facts/gemm.h"
#include "core/graph/dtype.h"
#include "runtime/cuda/added.h"
#include "runtime/cuda/driver.h"

namespace stitchwork::cuda {

// Values of library_types.h, cublas_api.h and cublasLt.h.
namespace blas {
inline constexpr int kCompute32F = 68, kCompute64F = 70, kCompute32FFastTf32 = 77;
inline constexpr int kNotTransposed = 0, kTransposed = 1, kDefaultAlgorithm = -1;
inline constexpr int kTransposeA = 3, kTransposeB = 4, kEpilogue = 7, kBiasPointer = 8,
                     kBiasType = 26;                                  ///< attributes of a product
inline constexpr int kBatchCount = 5, kBatchStride = 6;               ///< attributes of a matrix
inline constexpr std::uint32_t kEpilogueRelu = 2, kEpilogueBias = 4;  ///< or both

/// cudaDataType_t; -1 of types that cuBLAS has not.
int type_of(DType dtype);
}  // namespace blas

/// The functions of cublasLt.h that are used. `Descriptor` is a matrix layout or a product.
struct BlasLtFunctions {
  using Descriptor = void*;
  int (*create)(void**) = nullptr;
  int (*destroy)(void*) = nullptr;
  const char* (*status)(int) = nullptr;
  int (*product_create)(Descriptor*, int, int) = nullptr;
  int (*product_destroy)(Descriptor) = nullptr;
  int (*product_set)(Descriptor, int, const void*, std::size_t) = nullptr;
  int (*matrix_create)(Descriptor*, int, std::uint64_t, std::uint64_t, std::int64_t) = nullptr;
  int (*matrix_destroy)(Descriptor) = nullptr;
  int (*matrix_set)(Descriptor, int, const void*, std::size_t) = nullptr;
  int (*multiply)(void*, Descriptor, const void*, const void*, Descriptor, const void*, Descriptor,
                  const void*, const void*, Descriptor, void*, Descriptor, const void*, void*, std::size_t,
                  Stream) = nullptr;
};

class BlasLt {
 public:
  /// libcublasLt.so.13, .12 or .11; null where there is none. The context is current. Throws Error where the
  /// library fails.
  static std::unique_ptr<BlasLt> load();
  BlasLt(const BlasLtFunctions& functions, std::string path);
  ~BlasLt();
  BlasLt(const BlasLt&) = delete;
  BlasLt& operator=(const BlasLt&) = delete;

  /// One call: the products of the innermost loop of `gemm`'s batch, and what is added to each. `compute`: of
  /// blas::.
  void multiply(Stream stream, const Gemm& gemm, DType operands, DType result, Pointer a, Pointer b,
                Pointer c, const Added& added, int compute, const std::string& what);

 private:
  BlasLtFunctions functions_;
  std::string path_;
  void* handle_ = nullptr;
};

}  // namespace stitchwork::cuda
