#include "experiments/product_kernels.h"

#include <fmt/format.h>

#include "analysis/plan/epilogue.h"
#include "core/base/error.h"

namespace stitchwork {

Verdict all_tiled(const Graph& model, const std::string& planner_name, const PlanOptions& options) {
  const auto knobs = resolve_knobs(planner(planner_name), options);
  if (const auto elementwise = knobs.find("elementwise");
      elementwise != knobs.end() && elementwise->second == "auto")
    return Verdict::no("tiled.epilogue", "elementwise=auto has calls that add to their product");
  bool any = false;
  for (const Computation& computation : model.computations)
    for (const Node& node : computation.nodes) {
      if (node.op != Op::kDot) continue;
      any = true;
      if (&computation != &model.entry_computation())
        return Verdict::no("tiled.computation", fmt::format("{} is in a loop or branch", node.name));
      const std::optional<TypedGemm> product = typed_gemm(computation, node);
      if (!product)
        return Verdict::no("tiled.layout", fmt::format("the operands of {} lie in no matrices", node.name));
      if (Verdict made = makes_product(product->operands, product->result); !made) return made;
    }
  return any ? Verdict::yes() : Verdict::no("tiled.none", "the model has no matrix products");
}

std::vector<std::string> tiled_kernel_names() {
  std::vector<std::string> names = {kDefaultTiled};
  for (const TiledProduct& product : tiled_products())
    if (name(product) != kDefaultTiled) names.push_back(name(product));
  return names;
}

astra::ProductKernels tiled_kernels(SimulatedProducts& products) {
  astra::ProductKernels kernels;
  kernels.names = tiled_kernel_names();
  kernels.us = [&products](const Computation& computation, std::span<const NodeId> call,
                           const std::string& kernel) {
    const Node& dot = computation.node(call.front());
    std::vector<std::int64_t> transposed;
    if (call.size() > 1) {
      const std::optional<Epilogue> epilogue = epilogue_of(computation, call);
      SW_CHECK(
          epilogue && epilogue->bias == kNoNode && epilogue->addend == kNoNode && epilogue->relu == kNoNode,
          "the call of {} is more than a product", dot.name);
      if (epilogue->transpose != kNoNode) transposed = computation.node(epilogue->transpose).attrs.dimensions;
    }
    const std::optional<TypedGemm> product = typed_gemm(computation, dot, transposed);
    const std::optional<TiledProduct> by = tiled_product(kernel);
    SW_CHECK(product && by, "{} is made by no kernel {}", dot.name, kernel);
    return products.us(*product, *by);
  };
  return kernels;
}

}  // namespace stitchwork
