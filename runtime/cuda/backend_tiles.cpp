// Matrix products by our own tiled kernels, in place of cuBLAS.
#include "runtime/cuda/backend.h"

namespace stitchwork::cuda {

std::optional<Timed> CudaBackend::multiply_by_tiles(const Node& dot, const Computation& computation,
                                                    const LibraryCall& call) {
  const std::optional<TiledProduct>& named = call.by ? call.by : options_.products;
  if (!named || call.bias || call.addend || call.relu) return std::nullopt;
  const TiledProduct& by = *named;
  const std::optional<TypedGemm> product = typed_gemm(computation, dot, call.transposed);
  if (!product || !makes_product(product->operands, product->result)) return std::nullopt;
  const std::size_t left = product->gemm.exchanged ? 1 : 0;
  ProductAddresses at{call.operands[left], call.operands[1 - left], call.result};
  if (const std::int64_t bytes = partial_sum_bytes(product->gemm, by.split); bytes > 0)
    at.partial = allocate(static_cast<std::size_t>(bytes), dot.name, MemoryUse::kStep);
  std::vector<Step> steps;
  for (const ProductLaunch& launch :
       product_launches(product->gemm, by, product->operands, product->result, at)) {
    Step& step = steps.emplace_back();
    step.kernel = &tiled_.kernel(launch, *product, by);
    step.function = load(*step.kernel).function;
    step.pointers = launch.arguments;
    step.what = dot.name;
  }
  Step first = std::move(steps.front());
  first.after.assign(std::make_move_iterator(steps.begin() + 1), std::make_move_iterator(steps.end()));
  Timed timed = record(std::move(first));
  timed.by = name(by);
  if (at.partial != 0) release(at.partial);
  return timed;
}

}  // namespace stitchwork::cuda
