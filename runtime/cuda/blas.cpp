#include "runtime/cuda/blas.h"

#include <dlfcn.h>

#include <algorithm>
#include <cstdlib>
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
        bind(functions.gemm, "cublasGemmStridedBatchedEx"))
      return std::make_unique<Blas>(functions, name, BlasLt::load());
    ::dlclose(library);
  }
  return nullptr;
}

bool Blas::knows(DType operands, DType result) {
  if (blas::type_of(operands) < 0 || blas::type_of(result) < 0) return false;
  return operands == result || (result == DType::kF32 && operands != DType::kF64);
}

void Blas::multiply(Stream stream, const Gemm& g, DType operands, DType result, Pointer a, Pointer b,
                    Pointer c, const Added& added, bool tf32, const std::string& what) {
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
  // cuBLAS counts by columns: it is given the product of the transposed matrices, B's first.
  const bool a_by_rows = g.a_col == 1, b_by_rows = g.b_col == 1;
  const Gemm::Loop inner = g.batch.empty() ? Gemm::Loop{} : g.batch.back();
  const std::size_t loops = g.batch.empty() ? 0 : g.batch.size() - 1;
  const auto bytes = [](DType dtype, std::int64_t elements) {
    return static_cast<Pointer>(elements * byte_size(dtype));
  };
  const auto narrow = [&](std::int64_t value) {
    if (value > INT32_MAX)
      throw Error(fmt::format("{}: an extent of {} is more than cuBLAS takes", what, value));
    return static_cast<int>(value);
  };
  std::vector<std::int64_t> index(loops, 0);
  for (;;) {
    Pointer at_a = a, at_b = b, at_c = c;
    for (std::size_t l = 0; l < loops; ++l) {
      at_a += bytes(operands, index[l] * g.batch[l].a);
      at_b += bytes(operands, index[l] * g.batch[l].b);
      at_c += bytes(result, index[l] * g.batch[l].c);
    }
    const auto there = [&](Pointer of) { return of == 0 ? of : of + (at_c - c); };
    const auto pointer = [](Pointer address) { return reinterpret_cast<void*>(address); };
    if (added)
      lt_->multiply(stream, g, operands, result, at_a, at_b, at_c, {added.bias, there(added.addend)}, compute,
                    what);
    else
      check(functions_.gemm(handle_, b_by_rows ? blas::kNotTransposed : blas::kTransposed,
                            a_by_rows ? blas::kNotTransposed : blas::kTransposed, narrow(g.n), narrow(g.m),
                            narrow(g.k), alpha, pointer(at_b), blas::type_of(operands),
                            narrow(b_by_rows ? g.b_row : g.b_col), inner.b, pointer(at_a),
                            blas::type_of(operands), narrow(a_by_rows ? g.a_row : g.a_col), inner.a, beta,
                            pointer(at_c), blas::type_of(result), narrow(g.c_row), inner.c,
                            narrow(inner.extent), compute, blas::kDefaultAlgorithm),
            "cublasGemmStridedBatchedEx");
    std::size_t l = loops;
    while (l-- > 0) {
      if (++index[l] < g.batch[l].extent) break;
      index[l] = 0;
    }
    if (l == static_cast<std::size_t>(-1)) return;
  }
}

}  // namespace stitchwork::cuda
