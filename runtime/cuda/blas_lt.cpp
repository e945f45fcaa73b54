#include "runtime/cuda/blas_lt.h"

#include <dlfcn.h>

#include <type_traits>

#include "core/base/error.h"

namespace stitchwork::cuda {
namespace {

using Descriptor = BlasLtFunctions::Descriptor;
using Destroy = int (*)(Descriptor);
struct DestroyDescriptor {
  Destroy destroy;
  void operator()(Descriptor descriptor) const { destroy(descriptor); }
};
using OwnedDescriptor = std::unique_ptr<void, DestroyDescriptor>;

}  // namespace

int blas::type_of(DType dtype) {
  switch (dtype) {
    case DType::kF32:
      return 0;
    case DType::kF64:
      return 1;
    case DType::kF16:
      return 2;
    case DType::kBF16:
      return 14;
    default:
      return -1;
  }
}

BlasLt::BlasLt(const BlasLtFunctions& functions, std::string path)
    : functions_(functions), path_(std::move(path)) {
  const int status = functions_.create(&handle_);
  if (status != 0)
    throw Error(fmt::format("{}: cublasLtCreate failed: {}", path_, functions_.status(status)));
}

BlasLt::~BlasLt() {
  if (handle_ != nullptr) functions_.destroy(handle_);
}

std::unique_ptr<BlasLt> BlasLt::load() {
  for (const char* name : {"libcublasLt.so.13", "libcublasLt.so.12", "libcublasLt.so.11", "libcublasLt.so"}) {
    void* const library = ::dlopen(name, RTLD_NOW | RTLD_LOCAL);
    if (library == nullptr) continue;
    BlasLtFunctions functions;
    const auto bind = [&](auto& function, const char* symbol) {
      function = reinterpret_cast<std::remove_reference_t<decltype(function)>>(::dlsym(library, symbol));
      return function != nullptr;
    };
    if (bind(functions.create, "cublasLtCreate") && bind(functions.destroy, "cublasLtDestroy") &&
        bind(functions.status, "cublasLtGetStatusString") &&
        bind(functions.product_create, "cublasLtMatmulDescCreate") &&
        bind(functions.product_destroy, "cublasLtMatmulDescDestroy") &&
        bind(functions.product_set, "cublasLtMatmulDescSetAttribute") &&
        bind(functions.matrix_create, "cublasLtMatrixLayoutCreate") &&
        bind(functions.matrix_destroy, "cublasLtMatrixLayoutDestroy") &&
        bind(functions.matrix_set, "cublasLtMatrixLayoutSetAttribute") &&
        bind(functions.multiply, "cublasLtMatmul"))
      return std::make_unique<BlasLt>(functions, name);
    ::dlclose(library);
  }
  return nullptr;
}

void BlasLt::multiply(Stream stream, const Gemm& g, DType operands, DType result, Pointer a, Pointer b,
                      Pointer c, const Added& added, int compute, const std::string& what) {
  const auto check = [&](int status, const char* call) {
    if (status != 0) throw Error(fmt::format("{}: {} failed: {}", what, call, functions_.status(status)));
  };
  const Gemm::Loop loop = g.batch.empty() ? Gemm::Loop{} : g.batch.back();
  const auto matrix = [&](DType dtype, std::int64_t rows, std::int64_t cols, std::int64_t stride,
                          std::int64_t apart) {
    Descriptor made = nullptr;
    check(functions_.matrix_create(&made, blas::type_of(dtype), static_cast<std::uint64_t>(rows),
                                   static_cast<std::uint64_t>(cols), stride),
          "cublasLtMatrixLayoutCreate");
    OwnedDescriptor owned(made, DestroyDescriptor{functions_.matrix_destroy});
    const auto count = static_cast<std::int32_t>(loop.extent);
    check(functions_.matrix_set(made, blas::kBatchCount, &count, sizeof count),
          "cublasLtMatrixLayoutSetAttribute");
    check(functions_.matrix_set(made, blas::kBatchStride, &apart, sizeof apart),
          "cublasLtMatrixLayoutSetAttribute");
    return owned;
  };
  Descriptor made = nullptr;
  check(functions_.product_create(&made, compute, blas::type_of(DType::kF32)), "cublasLtMatmulDescCreate");
  const OwnedDescriptor product(made, DestroyDescriptor{functions_.product_destroy});
  const auto set = [&](int attribute, const auto& value) {
    check(functions_.product_set(made, attribute, &value, sizeof value), "cublasLtMatmulDescSetAttribute");
  };
  // It counts by columns, as cuBLAS does: B is its first matrix.
  const bool a_by_rows = g.a_col == 1, b_by_rows = g.b_col == 1;
  set(blas::kTransposeA, std::int32_t{b_by_rows ? blas::kNotTransposed : blas::kTransposed});
  set(blas::kTransposeB, std::int32_t{a_by_rows ? blas::kNotTransposed : blas::kTransposed});
  const std::uint32_t epilogue =
      (added.bias != 0 ? blas::kEpilogueBias : 0) | (added.relu ? blas::kEpilogueRelu : 0);
  if (epilogue != 0) set(blas::kEpilogue, epilogue);
  if (added.bias != 0) {
    set(blas::kBiasPointer, reinterpret_cast<const void*>(added.bias));
    set(blas::kBiasType, std::int32_t{blas::type_of(result)});
  }
  const OwnedDescriptor first =
      b_by_rows ? matrix(operands, g.n, g.k, g.b_row, loop.b) : matrix(operands, g.k, g.n, g.b_col, loop.b);
  const OwnedDescriptor second =
      a_by_rows ? matrix(operands, g.k, g.m, g.a_row, loop.a) : matrix(operands, g.m, g.k, g.a_col, loop.a);
  const OwnedDescriptor out = matrix(result, g.n, g.m, g.c_row, loop.c);
  const float one = 1, beta = added.addend != 0 ? 1.0F : 0.0F;
  const auto pointer = [](Pointer address) { return reinterpret_cast<void*>(address); };
  check(functions_.multiply(handle_, made, &one, pointer(b), first.get(), pointer(a), second.get(), &beta,
                            pointer(added.addend != 0 ? added.addend : c), out.get(), pointer(c), out.get(),
                            nullptr, nullptr, 0, stream),
        "cublasLtMatmul");
}

}  // namespace stitchwork::cuda
