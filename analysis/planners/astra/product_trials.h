// A model's products joined, as the bindings of its groups say.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "analysis/plan/recorder.h"
#include "analysis/planners/astra/prices.h"
#include "analysis/planners/planner.h"
#include "core/substitute/derivation.h"

namespace stitchwork::astra {

class ProductTrials {
 public:
  /// `options`: every knob of the row, resolved. `kernels`: of products, the default first; empty: those of
  /// the library. Only the first is tried where the knob gemm_kernels is off. Model, device and options
  /// outlive this.
  ProductTrials(const Graph& model, const Device& device, const PlanOptions& options,
                const std::vector<std::string>& kernels = {});
  ProductTrials(const ProductTrials&) = delete;  // the prices refer to the space
  ProductTrials& operator=(const ProductTrials&) = delete;

  const Space& space() const { return space_; }
  const TreeOptions& options() const { return tree_options_; }
  /// Whether there is anything to join.
  bool any() const { return tree_options_.chunks && !space_.strategies.list[0].groups.empty(); }
  /// Takes the refusals of the enumeration, once.
  std::vector<Decision> take_decisions() { return std::move(space_.decisions); }

  /// Prices calls and makes the tree. `rest_us`: of a mini-batch, what is no product. Prices are the
  /// library's whatever kernels there are.
  void price(double rest_us);
  const CallPrices& prices() const { return *prices_; }
  /// A fork over strategies; the products of the first where there is nothing to join.
  const TreeNode& tree() const { return tree_; }

  /// Steps are fuse-products, and concat-in-place where the knob `views` is on; none where every product is
  /// by itself.
  rewriting::RewrittenGraph joined(std::size_t strategy, const Bindings& bindings, Recorder& recorder) const;

 private:
  void lay_operands_beside(rewriting::Derivation& derivation) const;

  const Graph& model_;
  const Computation& computation_;
  const Device& device_;
  bool tf32_;
  Space space_;
  TreeOptions tree_options_, priced_options_;
  std::optional<CallPrices> prices_;
  TreeNode tree_;
};

}  // namespace stitchwork::astra
