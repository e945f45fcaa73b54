#include "runtime/tiled_products.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "core/base/error.h"
#include "runtime/device_buffer.h"
#include "runtime/product_check.h"
#include "runtime/simulator_backend.h"

namespace stitchwork {
namespace {

std::size_t bytes_of(std::int64_t elements, DType type) {
  return static_cast<std::size_t>(std::max<std::int64_t>(1, elements * byte_size(type)));
}

/// What tells products apart whose times may differ.
std::vector<std::int64_t> numbers_of(const Gemm& gemm) {
  std::vector<std::int64_t> numbers = {gemm.m,     gemm.n,     gemm.k,     gemm.a_row,
                                       gemm.a_col, gemm.b_row, gemm.b_col, gemm.c_row};
  for (const Gemm::Loop& loop : gemm.batch)
    numbers.insert(numbers.end(), {loop.extent, loop.a, loop.b, loop.c});
  return numbers;
}

std::string what_of(const TypedGemm& product, const TiledProduct& by) {
  return fmt::format("{} of {}x{}x{} {}", name(by), product.gemm.m, product.gemm.n, product.gemm.k,
                     name(product.operands));
}

void require_clean(const std::vector<Launched>& launches, const std::string& what) {
  for (const Launched& launched : launches)
    if (!launched.findings.empty()) throw Error(fmt::format("{}: {}", what, launched.findings[0].message));
}

}  // namespace

std::optional<TypedGemm> typed_gemm(const Computation& computation, const Node& dot,
                                    std::span<const std::int64_t> transposed) {
  const Node &left = computation.node(dot.operands[0]), &right = computation.node(dot.operands[1]);
  if (left.shape.dtype != right.shape.dtype || !dot.attrs.dot) return std::nullopt;
  const std::optional<Gemm> gemm = gemm_of(dot, left, right, transposed);
  if (!gemm) return std::nullopt;
  return TypedGemm{*gemm, left.shape.dtype, dot.shape.dtype};
}

TiledKernels::TiledKernels(const Device& device, CompileOptions options, Edit edit)
    : device_(device), options_(std::move(options)), edit_(std::move(edit)) {}

const CompiledKernel& TiledKernels::kernel(const ProductLaunch& launch, const TypedGemm& product,
                                           const TiledProduct& by) {
  const std::string cuda = launch.folds ? fold_cuda(product.result)
                                        : tiled_product_cuda(by.tile, product.operands, product.result);
  const auto [found, fresh] = launched_.try_emplace({cuda, launch.launch.grid});
  if (!fresh) return found->second;
  auto compiled = compiled_.find(cuda);
  if (compiled == compiled_.end()) {
    const std::string entry = launch.folds ? "fold" : "tiled_product";
    const std::string source = edit_ ? edit_(entry, cuda) : cuda;
    compiled = compiled_.emplace(cuda, compile_kernel(source, entry, launch.launch, device_, options_)).first;
  }
  found->second = compiled->second;
  found->second.launch = launch.launch;
  return found->second;
}

std::vector<Launched> make_product(Backend& backend, TiledKernels& kernels, const TypedGemm& product,
                                   const TiledProduct& by, ProductAddresses at, bool accumulate) {
  std::optional<DeviceBuffer> partial;
  if (const std::int64_t bytes = partial_sum_bytes(product.gemm, by.split); bytes > 0)
    at.partial =
        partial
            .emplace(backend, static_cast<std::size_t>(bytes), "the product's partial sums", MemoryUse::kStep)
            .address();
  std::vector<Launched> launched;
  for (const ProductLaunch& one :
       product_launches(product.gemm, by, product.operands, product.result, at, accumulate))
    launched.push_back(backend.launch(kernels.kernel(one, product, by), one.arguments));
  return launched;
}

double product_us(const Device& device, std::span<const Launched> launched) {
  double us = 0;
  for (const Launched& one : launched) us += one.time.us;
  return us + device.launch_gap_us * static_cast<double>(std::max<std::size_t>(1, launched.size()) - 1);
}

ProductExtents extents_of(const Gemm& gemm) {
  ProductExtents last = {(gemm.m - 1) * gemm.a_row + (gemm.k - 1) * gemm.a_col,
                         (gemm.k - 1) * gemm.b_row + (gemm.n - 1) * gemm.b_col,
                         (gemm.m - 1) * gemm.c_row + gemm.n - 1};
  for (const Gemm::Loop& loop : gemm.batch) {
    last.a += (loop.extent - 1) * loop.a;
    last.b += (loop.extent - 1) * loop.b;
    last.c += (loop.extent - 1) * loop.c;
  }
  return {last.a + 1, last.b + 1, last.c + 1};
}

SimulatedProducts::SimulatedProducts(const Device& device, bool sampled, bool check, CompileOptions options)
    : device_(device), sampled_(sampled), check_(check), kernels_(device, std::move(options)) {}

double SimulatedProducts::us(const TypedGemm& product, const TiledProduct& by) {
  const Verdict made = makes_product(product.operands, product.result);
  if (!made) throw Error(made.why, "products of other types are library calls");
  const auto [found, fresh] =
      times_.try_emplace({numbers_of(product.gemm), product.operands, product.result, name(by)}, 0);
  if (!fresh) return found->second;
  if (check_) check(product, by);
  return found->second = simulate(product, by);
}

/// Of zeros: times do not depend on values.
double SimulatedProducts::simulate(const TypedGemm& product, const TiledProduct& by) {
  SimulatorBackend backend(device_, sim::CacheMode::kCold, {}, 0, sampled_);
  const ProductExtents extents = extents_of(product.gemm);
  const auto zeros = [&](std::int64_t elements, DType type, const char* name) {
    const std::size_t bytes = bytes_of(elements, type);
    DeviceBuffer buffer(backend, bytes, name);
    backend.clear(buffer.address(), bytes);
    return buffer;
  };
  const DeviceBuffer a = zeros(extents.a, product.operands, "A"), b = zeros(extents.b, product.operands, "B"),
                     c = zeros(extents.c, product.result, "C");
  const std::vector<Launched> launched =
      make_product(backend, kernels_, product, by, {a.address(), b.address(), c.address()});
  require_clean(launched, what_of(product, by));
  return product_us(device_, launched);
}

void SimulatedProducts::check(const TypedGemm& product, const TiledProduct& by) {
  SimulatorBackend backend(device_, sim::CacheMode::kCold, sim::parse_sanitizers("mem,race,sync,init"), 0);
  const std::string what = what_of(product, by);
  const Literal a = drawn_elements(extents_of(product.gemm).a, product.operands, 1),
                b = drawn_elements(extents_of(product.gemm).b, product.operands, 2);
  const auto uploaded = [&](const Literal& values, const char* name) {
    DeviceBuffer buffer(backend, values.bytes.size(), name);
    backend.write(buffer.address(), values.bytes);
    return buffer;
  };
  const DeviceBuffer on_a = uploaded(a, "A"), on_b = uploaded(b, "B");
  const Literal none = Literal::zeros(Shape::array(product.result, {extents_of(product.gemm).c}));
  const DeviceBuffer on_c = uploaded(none, "C");
  require_clean(
      make_product(backend, kernels_, product, by, {on_a.address(), on_b.address(), on_c.address()}), what);
  Literal c = none;
  backend.read(on_c.address(), c.bytes);
  const Verdict right = equal_elements(host_product(product.gemm, a, b, none), c);
  if (!right) throw Error(fmt::format("{}: {}", what, right.why));
}

}  // namespace stitchwork
