// cuBLAS, loaded at run time.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "analysis/facts/gemm.h"
#include "runtime/cuda/blas_lt.h"
#include "runtime/cuda/driver.h"

namespace stitchwork::cuda {

/// The functions of cublas_v2.h that are used.
struct BlasFunctions {
  int (*create)(void**) = nullptr;
  int (*destroy)(void*) = nullptr;
  int (*set_stream)(void*, Stream) = nullptr;
  const char* (*status)(int) = nullptr;
  int (*gemm)(void*, int, int, int, int, int, const void*, const void*, int, int, long long, const void*, int,
              int, long long, const void*, void*, int, int, long long, int, int, int) = nullptr;
  int (*gemm_by_pointers)(void*, int, int, int, int, int, const void*, const void* const*, int, int,
                          const void* const*, int, int, const void*, void* const*, int, int, int, int,
                          int) = nullptr;
};

class Blas {
 public:
  /// libcublas.so.13, .12 or .11, or what $STITCHWORK_CUBLAS names; null where there is none. The context is
  /// current. Throws Error where the library fails.
  static std::unique_ptr<Blas> load();
  /// `lt`: makes calls that add something; null: there are none.
  Blas(const BlasFunctions& functions, std::string path, std::unique_ptr<BlasLt> lt);
  ~Blas();
  Blas(const Blas&) = delete;
  Blas& operator=(const Blas&) = delete;

  /// Whether products of these element types are made: f64; f32, f16, bf16 with sums in f32.
  static bool knows(DType operands, DType result);
  /// Whether calls may add to a product of f32, f16 or bf16.
  bool adds() const { return lt_ != nullptr; }
  /// Where the matrices of a product lie whose batch no stride goes through, all A, then all B, then all C:
  /// one call takes them from device memory. None of others.
  static std::vector<Pointer> matrices(const Gemm& gemm, DType operands, DType result, Pointer a, Pointer b,
                                       Pointer c);
  /// `tf32`: f32 operands may be rounded to 10 bits of mantissa. `table`: where the device has `matrices`; 0:
  /// the batch has one stride at most. `what` is named in errors.
  void multiply(Stream stream, const Gemm& gemm, DType operands, DType result, Pointer a, Pointer b,
                Pointer c, const Added& added, Pointer table, bool tf32, const std::string& what);

  const std::string& path() const { return path_; }

 private:
  BlasFunctions functions_;
  std::string path_;
  std::unique_ptr<BlasLt> lt_;
  void* handle_ = nullptr;
};

}  // namespace stitchwork::cuda
