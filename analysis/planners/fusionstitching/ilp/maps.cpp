#include "analysis/planners/fusionstitching/ilp/maps.h"

#include <algorithm>
#include <boost/container_hash/hash.hpp>
#include <cstddef>
#include <map>
#include <variant>

#include "analysis/planners/fusionstitching/ilp/pattern.h"
#include "analysis/planners/fusionstitching/ilp/templates.h"
#include "analysis/planners/fusionstitching/kernel.h"
#include "analysis/schedule/evaluations.h"
#include "core/base/sorted.h"

namespace stitchwork::fusionstitching {
namespace {

/// What has a loop of its own: outputs, and reductions and products that others read.
std::vector<NodeId> looped(const Computation& computation, const Fusion& fusion) {
  std::vector<NodeId> result = fusion.roots;
  for (const NodeId op : fusion.ops)
    for (const NodeId operand : computation.node(op).operands)
      if (contains_sorted(fusion.ops, operand) && is_reduced(computation.node(operand)))
        insert_sorted(result, operand);
  return result;
}

/// Whether every op is read by few ways that index maps may differ by: then there are as few index maps.
bool has_few_ways(const Computation& computation, const Fusion& fusion) {
  const std::vector<NodeId> loops = looped(computation, fusion);
  std::map<NodeId, std::vector<std::size_t>> ways;  // of each op, numbered by hashes
  constexpr auto kMost = static_cast<std::size_t>(kMostMaps);
  for (auto op = fusion.ops.rbegin(); op != fusion.ops.rend(); ++op) {
    const Node& node = computation.node(*op);
    std::vector<std::size_t>& of_op = ways[*op];
    if (contains_sorted(loops, *op))
      of_op.push_back(boost::hash_range(node.shape.dims.begin(), node.shape.dims.end()));
    sort_unique(of_op);
    if (of_op.size() > kMost) return false;
    for (std::size_t i = 0; i < node.operands.size(); ++i) {
      const NodeId operand = node.operands[i];
      if (!contains_sorted(fusion.ops, operand)) continue;
      if (is_reduced(computation.node(operand))) continue;  // read from its loop
      const bool same = is_elementwise(node.op) && computation.node(operand).shape.dims == node.shape.dims;
      for (std::size_t way : of_op) {
        if (!same) boost::hash_combine(way, boost::hash_value(std::pair(*op, i)));
        ways[operand].push_back(way);
      }
    }
  }
  return true;
}

}  // namespace

bool is_within_maps(const Ops& ops, const std::vector<NodeId>& pattern, const IlpOptions& options) {
  const Computation& computation = *ops.nodes->computation;
  return std::ranges::all_of(components(ops, pattern), [&](const std::vector<NodeId>& component) {
    const Fusion fusion = fusion_of(ops, component);
    if (has_few_ways(computation, fusion)) return true;
    const Templates templates = find_templates(ops, fusion, kCtaSizes.front(), options);
    if (templates.all.empty()) return templates.made.rule != "fs19.maps";
    return std::ranges::any_of(templates.all, [&](const Template& of) {
      return std::holds_alternative<EvaluatedKernel>(evaluated_within_maps(computation, of.stitched));
    });
  });
}

std::vector<std::vector<NodeId>> cut_within_maps(const Ops& ops, const std::vector<NodeId>& pattern,
                                                 const IlpOptions& options) {
  std::vector<std::vector<NodeId>> pieces;
  for (auto first = pattern.begin(); first != pattern.end();) {
    const auto piece = [&](std::ptrdiff_t size) { return std::vector<NodeId>(first, first + size); };
    std::ptrdiff_t fits = 1, least = pattern.end() - first;  // the least size that does not
    if (is_within_maps(ops, piece(least), options)) fits = least;
    while (fits + 1 < least) {
      const std::ptrdiff_t middle = (fits + least) / 2;
      (is_within_maps(ops, piece(middle), options) ? fits : least) = middle;
    }
    pieces.push_back(piece(fits));
    first += fits;
  }
  return pieces;
}

}  // namespace stitchwork::fusionstitching
