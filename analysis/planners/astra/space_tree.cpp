#include "analysis/planners/astra/space_tree.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>

#include "core/base/at.h"

namespace stitchwork::astra {
namespace {

class TreeWriter {
 public:
  TreeWriter(const Computation& computation, const Device& device, const Space& space,
             const TreeOptions& options)
      : computation_(computation), device_(device), space_(space), options_(options) {}

  TreeNode of_strategies() const {
    std::vector<std::string> names;
    std::vector<TreeNode> children;
    for (std::size_t s = 0; s < (options_.allocations ? space_.strategies.list.size() : 1); ++s) {
      names.push_back(fmt::format("s{}", s));
      children.push_back(
          prefix({products_of(space_.strategies.list[s]), stream_tree(space_.streams, options_.streams)}));
    }
    return fork("strategy", std::move(names), std::move(children));
  }

 private:
  TreeNode products_of(const Strategy& strategy) const {
    std::vector<TreeNode> children;
    std::set<NodeId> grouped;
    for (const StrategyGroup& group : strategy.groups) {
      for (const int l : space_.groups[at(group.number)].ladders)
        for (const int rung : space_.ladders[at(l)].rungs) grouped.insert(space_.products.list[at(rung)].dot);
      children.push_back(of_group(strategy, group));
    }
    for (const NodeId dot : space_.products.dots)
      if (!grouped.contains(dot))
        children.push_back(variable(product_name(computation_, dot), options_.variants));
    return parallel(std::move(children));
  }

  TreeNode of_group(const Strategy& strategy, const StrategyGroup& group) const {
    const std::vector<Chunk> sizes = offered_chunks(group.group, device_, options_);
    std::vector<std::string> names;
    std::vector<TreeNode> children;
    for (const Chunk& size : sizes) {
      const std::size_t count =
          fused_calls(space_.products, space_.ladders, space_.groups[at(group.number)], strategy, group, size)
              .size();
      std::vector<TreeNode> calls;
      for (std::size_t c = 0; c < count; ++c)
        calls.push_back(
            variable(fmt::format("g{}/{}/{}", group.number, to_text(size), c), options_.variants));
      names.push_back(to_text(size));
      children.push_back(parallel(std::move(calls)));
    }
    return fork(fmt::format("g{}", group.number), std::move(names), std::move(children));
  }

  const Computation& computation_;
  const Device& device_;
  const Space& space_;
  const TreeOptions& options_;
};

}  // namespace

std::string to_text(const Chunk& chunk) {
  return fmt::format("{}x{}x{}", chunk.size[kM], chunk.size[kN], chunk.size[kK]);
}

std::string product_name(const Computation& computation, NodeId dot) {
  return "dot:" + computation.node(dot).name;
}

TreeNode stream_tree(const StreamSpace& space, int streams) {
  std::vector<TreeNode> parts;
  for (std::size_t p = 0; p < space.super_epochs.size(); ++p) {
    const SuperEpoch& part = space.super_epochs[p];
    std::vector<TreeNode> epochs;
    for (std::size_t e = 0; e < part.epochs.size(); ++e) {
      std::vector<std::string> counts;
      for (const StreamCounts& choice : stream_choices(part.epochs[e], streams, behind_barrier(part, e)))
        counts.push_back(to_text(choice));
      epochs.push_back(variable(fmt::format("se{}/e{}", p, e), std::move(counts)));
    }
    parts.push_back(prefix(std::move(epochs)));
  }
  return parallel(std::move(parts));
}

std::vector<Chunk> offered_chunks(const FusionGroup& group, const Device& device,
                                  const TreeOptions& options) {
  if (!options.chunks) return {Chunk{}};
  std::vector<Chunk> sizes = chunks(group, device).list;
  std::stable_partition(sizes.begin(), sizes.end(), [](const Chunk& chunk) { return chunk == Chunk{}; });
  if (!options.partial_sums)
    std::erase_if(
        sizes, [&](const Chunk& chunk) { return chunk.size[kK] > 1 && chunk.size[kK] < group.extent[kK]; });
  if (!options.sums) std::erase_if(sizes, [](const Chunk& chunk) { return chunk.size[kK] > 1; });
  return sizes;
}

TreeNode space_tree(const Graph& model, const Device& device, const FusionPlan& plan, const Space& space,
                    const TreeOptions& options) {
  return TreeWriter(planned_graph(model, plan).entry_computation(), device, space, options).of_strategies();
}

}  // namespace stitchwork::astra
