#include "runtime/cuda/blas.h"

#include <dlfcn.h>

#include <algorithm>
#include <cstdlib>
#include <tuple>
#include <utility>
#include <vector>

#include "core/base/error.h"

namespace stitchwork::cuda {

Blas::Blas(const BlasFunctions& functions, std::string path, std::unique_ptr<BlasLt> lt)
    : functions_(functions), path_(std::move(path)), lt_(std::move(lt)) {
  const int status = functions_.create(&handle_);
  if (status != 0) throw Error(fmt::format("{}: cublasCreate failed: {}", path_, functions_.status(status)));
}

Blas::~Blas() {
  if (handle_ != nullptr) functions_.destroy(handle_);
}

std::unique_ptr<Blas> Blas::load() {
  std::vector<std::string> names{"libcublas.so.13", "libcublas.so.12", "libcublas.so.11", "libcublas.so"};
  if (const char* named = std::getenv("STITCHWORK_CUBLAS")) names = {named};
  for (const std::string& name : names) {
    void* const library = ::dlopen(name.c_str(), RTLD_NOW | RTLD_LOCAL);
    if (library == nullptr) continue;
    BlasFunctions functions;
    const auto bind = [&](auto& function, const char* symbol) {
      function = reinterpret_cast<std::remove_reference_t<decltype(function)>>(::dlsym(library, symbol));
      return function != nullptr;
    };
    if (bind(functions.create, "cublasCreate_v2") && bind(functions.destroy, "cublasDestroy_v2") &&
        bind(functions.set_stream, "cublasSetStream_v2") && bind(functions.status, "cublasGetStatusString") &&
        bind(functions.gemm, "cublasGemmStridedBatchedEx") &&
        bind(functions.gemm_by_pointers, "cublasGemmBatchedEx"))
      return std::make_unique<Blas>(functions, name, BlasLt::load());
    ::dlclose(library);
  }
  return nullptr;
}

bool Blas::knows(DType operands, DType result) {
  if (blas::type_of(operands) < 0 || blas::type_of(result) < 0) return false;
  return operands == result || (result == DType::kF32 && operands != DType::kF64);
}

std::vector<Pointer> Blas::matrices(const Gemm& g, DType operands, DType result, Pointer a, Pointer b,
                                    Pointer c) {
  if (g.batch.size() <= 1) return {};
  std::vector<Pointer> all;
  for (const auto& [base, dtype, stride] : {std::tuple{a, operands, &Gemm::Loop::a},
                                            {b, operands, &Gemm::Loop::b},
                                            {c, result, &Gemm::Loop::c}}) {
    std::vector<Pointer> ends{base};
    for (const Gemm::Loop& loop : g.batch) {
      std::vector<Pointer> next;
      for (const Pointer from : ends)
        for (std::int64_t i = 0; i < loop.extent; ++i)
          next.push_back(from + static_cast<Pointer>(i * (loop.*stride) * byte_size(dtype)));
      ends = std::move(next);
    }
    all.insert(all.end(), ends.begin(), ends.end());
  }
  return all;
}

void Blas::multiply(Stream stream, const Gemm& g, DType operands, DType result, Pointer a, Pointer b,
                    Pointer c, const Added& added, Pointer table, bool tf32, const std::string& what) {
  const auto check = [&](int status, const char* call) {
    if (status != 0) throw Error(fmt::format("{}: {} failed: {}", what, call, functions_.status(status)));
  };
  check(functions_.set_stream(handle_, stream), "cublasSetStream");
  const bool wide = operands == DType::kF64;
  const double one_wide = 1, zero_wide = 0;
  const float one = 1, zero = 0;
  const void* const alpha = wide ? static_cast<const void*>(&one_wide) : &one;
  const void* const beta = wide ? static_cast<const void*>(&zero_wide) : &zero;
  const int compute = wide                              ? blas::kCompute64F
                      : tf32 && operands == DType::kF32 ? blas::kCompute32FFastTf32
                                                        : blas::kCompute32F;
  const auto pointer = [](Pointer address) { return reinterpret_cast<void*>(address); };
  if (added) return lt_->multiply(stream, g, operands, result, a, b, c, added, compute, what);
  const auto narrow = [&](std::int64_t value) {
    if (value > INT32_MAX)
      throw Error(fmt::format("{}: an extent of {} is more than cuBLAS takes", what, value));
    return static_cast<int>(value);
  };
  // cuBLAS counts by columns: it is given the product of the transposed matrices, B's first.
  const bool a_by_rows = g.a_col == 1, b_by_rows = g.b_col == 1;
  const int b_across = b_by_rows ? blas::kNotTransposed : blas::kTransposed,
            a_across = a_by_rows ? blas::kNotTransposed : blas::kTransposed;
  const int m = narrow(g.m), n = narrow(g.n), k = narrow(g.k);
  const int b_stride = narrow(b_by_rows ? g.b_row : g.b_col),
            a_stride = narrow(a_by_rows ? g.a_row : g.a_col), c_stride = narrow(g.c_row);
  const int of = blas::type_of(operands), to = blas::type_of(result);
  if (table == 0) {
    const Gemm::Loop loop = g.batch.empty() ? Gemm::Loop{} : g.batch.back();
    check(functions_.gemm(handle_, b_across, a_across, n, m, k, alpha, pointer(b), of, b_stride, loop.b,
                          pointer(a), of, a_stride, loop.a, beta, pointer(c), to, c_stride, loop.c,
                          narrow(loop.extent), compute, blas::kDefaultAlgorithm),
          "cublasGemmStridedBatchedEx");
    return;
  }
  std::int64_t count = 1;
  for (const Gemm::Loop& loop : g.batch) count *= loop.extent;
  const auto list = [&](std::int64_t which) {
    return reinterpret_cast<void**>(table + static_cast<Pointer>(which * count) * sizeof(Pointer));
  };
  check(functions_.gemm_by_pointers(handle_, b_across, a_across, n, m, k, alpha, list(1), of, b_stride,
                                    list(0), of, a_stride, beta, list(2), to, c_stride, narrow(count),
                                    compute, blas::kDefaultAlgorithm),
        "cublasGemmBatchedEx");
}

}  // namespace stitchwork::cuda
