// Matrix products by our own tiled kernels (codegen/gemm), on any backend, and their times in the simulator.
#pragma once

#include <functional>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "codegen/gemm/tiled_product.h"
#include "runtime/backend.h"

namespace stitchwork {

/// A product to make and the element types of its operands and result.
struct TypedGemm {
  Gemm gemm;
  DType operands = DType::kF32, result = DType::kF32;
};

/// The product of a dot; `transposed` as gemm_of has it. Nothing where its operands lie in no matrices.
std::optional<TypedGemm> typed_gemm(const Computation& computation, const Node& dot,
                                    std::span<const std::int64_t> transposed = {});

/// The kernels for one device, each compiled when it is first asked for. The device outlives this.
class TiledKernels {
 public:
  /// What is compiled of a kernel's source, for tests of broken ones.
  using Edit = std::function<std::string(const std::string& entry, const std::string& cuda)>;
  explicit TiledKernels(const Device& device, CompileOptions options = {}, Edit edit = {});
  /// What carries out one launch of a product; keeps its place as long as this is there.
  const CompiledKernel& kernel(const ProductLaunch& launch, const TypedGemm& product, const TiledProduct& by);

 private:
  const Device& device_;
  CompileOptions options_;
  Edit edit_;
  std::map<std::string, CompiledKernel> compiled_;                           ///< by source
  std::map<std::pair<std::string, std::int64_t>, CompiledKernel> launched_;  ///< and blocks
};

/// Makes C = A B, or C + A B, in device memory; what each launch did, in order. Partial sums have memory of
/// their own (at.partial is not looked at). Throws Error as Backend::launch does.
std::vector<Launched> make_product(Backend& backend, TiledKernels& kernels, const TypedGemm& product,
                                   const TiledProduct& by, ProductAddresses at, bool accumulate = false);

/// Of these launches with the gaps between them.
double product_us(const Device& device, std::span<const Launched> launched);

/// Elements of A, B and C from the first to the last that the product reads or writes.
struct ProductExtents {
  std::int64_t a = 0, b = 0, c = 0;
};
ProductExtents extents_of(const Gemm& gemm);

/// Simulated times of products on one device, each found once and kept. The device outlives this.
class SimulatedProducts {
 public:
  /// `sampled`: a few waves of blocks stand for all (sim::Options::sampled); exact otherwise. `check`: each
  /// product is also made whole, of drawn operands and under all sanitizers, and compared with the host's.
  SimulatedProducts(const Device& device, bool sampled, bool check = false, CompileOptions options = {});

  /// All its launches with the gaps between them, us. Throws Error where the types have no such product
  /// (makes_product), and where a check finds something wrong.
  double us(const TypedGemm& product, const TiledProduct& by);

  std::size_t simulated() const { return times_.size(); }  ///< different products

 private:
  using Key = std::tuple<std::vector<std::int64_t>, DType, DType, std::string>;
  double simulate(const TypedGemm& product, const TiledProduct& by);
  void check(const TypedGemm& product, const TiledProduct& by);

  const Device& device_;
  bool sampled_, check_;
  TiledKernels kernels_;
  std::map<Key, double> times_;
};

}  // namespace stitchwork
