#include "analysis/planners/astra/product_trials.h"

#include <fmt/format.h>

#include "core/base/sorted.h"
#include "core/passes/lay_beside.h"
#include "core/substitute/derivation.h"
#include "core/substitute/rule.h"
#include "core/substitute/view.h"
#include "occupancy_model/library.h"

namespace stitchwork::astra {
namespace {

constexpr std::string_view kJoiningRule = "fuse-products", kPlacingRule = "concat-in-place";

TreeOptions product_tree_options(const Computation& computation, const Space& space,
                                 const PlanOptions& options, const std::vector<std::string>& kernels) {
  TreeOptions result;
  result.chunks = options.knobs.at("gemm_fusion") == "on";
  result.allocations = options.knobs.at("allocations") == "on";
  result.partial_sums = false;  // the adds stay in kernels
  result.streams = 1;
  result.appends = options.knobs.at("views") == "off";
  if (!kernels.empty())
    result.variants = kernels;
  else
    for (const LibraryKernel& kernel : library_kernels()) result.variants.emplace_back(kernel.name);
  if (options.knobs.at("gemm_kernels") == "off") result.variants.resize(1);
  // Sums of 16-bit products are rounded elsewhere when one call makes them, and may differ by more than the
  // check of results allows where they cancel (docs/rewriting.md).
  for (const Product& product : space.products.list)
    if (byte_size(computation.node(product.dot).shape.dtype) < 4) result.sums = false;
  return result;
}

}  // namespace

ProductTrials::ProductTrials(const Graph& model, const Device& device, const PlanOptions& options,
                             const std::vector<std::string>& kernels)
    : model_(model),
      computation_(model.entry_computation()),
      device_(device),
      tf32_(options.tf32),
      space_(enumerate(model, FusionPlan{})),
      tree_options_(product_tree_options(computation_, space_, options, kernels)),
      priced_options_(product_tree_options(computation_, space_, options, {})) {}

void ProductTrials::price(double rest_us) {
  prices_.emplace(model_, device_, space_, priced_options_, tf32_, rest_us);
  tree_ = space_tree(model_, device_, FusionPlan{}, space_, tree_options_);
}

rewriting::RewrittenGraph ProductTrials::joined(std::size_t strategy, const Bindings& bindings,
                                                Recorder& recorder) const {
  std::vector<rewriting::Place> places;
  const rewriting::Rule& rule = rewriting::rule_named(kJoiningRule);
  const rewriting::View view(model_, model_.entry);
  for (const StrategyGroup& group : space_.strategies.list[strategy].groups)
    for (const PricedCall& call :
         prices_->calls(strategy, group.number, bindings.at(fmt::format("g{}", group.number)))) {
      const std::vector<NodeId> ops = fused_ops(space_, call);
      if (ops.empty()) continue;
      if (!rule.find_all(view, ops)) {
        recorder.add(kFusionStep, computation_.node(ops.back()).name, "", [] {
          return Verdict::no("astra.no-grid", "fuse-products does not hold at the pieces of its group");
        });
        continue;
      }
      places.emplace_back();
      for (const NodeId op : ops) places.back().push_back(computation_.node(op).name);
    }
  rewriting::Derivation derivation(model_);
  if (places.empty()) return derivation.result();
  derivation.apply_at(rule, computation_.name, std::move(places));
  if (!tree_options_.appends) lay_operands_beside(derivation);
  return derivation.result();
}

/// Operands that products have appended are computed where they have them, as far as they can be.
void ProductTrials::lay_operands_beside(rewriting::Derivation& derivation) const {
  const Computation& joined = derivation.result().graph.entry_computation();
  std::vector<NodeId> operands;
  for (const Node& node : joined.nodes)
    if (node.op == Op::kDot && computation_.find(node.name) == kNoNode)
      for (const NodeId operand : node.operands)
        if (joined.node(operand).op == Op::kConcatenate) operands.push_back(operand);
  sort_unique(operands);
  rewriting::Place names;
  for (const NodeId id : concats_in_place(joined, std::move(operands))) names.push_back(joined.node(id).name);
  if (!names.empty())
    derivation.apply_at(rewriting::rule_named(kPlacingRule), computation_.name, {std::move(names)});
}

}  // namespace stitchwork::astra
