#include "analysis/planners/fission/regions.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <set>

#include "analysis/plan/control_flow.h"
#include "analysis/planners/fission/extract.h"
#include "analysis/planners/fission/windows.h"
#include "core/base/at.h"
#include "core/base/disjoint_sets.h"
#include "core/base/sorted.h"
#include "core/hlo/hlo_text.h"
#include "core/substitute/derivation.h"

namespace stitchwork::fission {
namespace {

bool is_product_op(const Node& node) { return node.op == Op::kDot || node.op == Op::kConvolution; }

/// What an op reads through index maps: values, not names of them.
std::vector<NodeId> values_behind(const astitch::Nodes& nodes, NodeId id) {
  std::vector<NodeId> result, open = nodes.node(id).operands;
  while (!open.empty()) {
    const NodeId operand = open.back();
    open.pop_back();
    if (nodes[operand].immediate) continue;
    if (nodes[operand].transparent) {
      const auto& operands = nodes.node(operand).operands;
      open.insert(open.end(), operands.begin(), operands.end());
    } else {
      result.push_back(operand);
    }
  }
  sort_unique(result);
  return result;
}

class Finder {
 public:
  Finder(const Graph& graph, const std::string& computation)
      : nodes_(astitch::node_facts(graph)), name_(computation) {
    for (const Node& node : nodes_.computation->nodes) {
      if (!nodes_[node.id].member && !is_product_op(node)) continue;
      read_[node.id] = values_behind(nodes_, node.id);
      for (const NodeId value : read_[node.id]) readers_[value].push_back(node.id);
    }
  }

  std::vector<Region> run() {
    std::vector<std::vector<NodeId>> sets;
    for (const Window& window : windows(nodes_)) sets.push_back(with_products(window.ops));
    for (std::vector<NodeId>& products : product_groups()) sets.push_back(std::move(products));
    std::vector<Region> result;
    for (std::vector<NodeId>& set : sets) {
      sort_unique(set);
      const bool part = std::ranges::any_of(sets, [&](const std::vector<NodeId>& other) {
        return other.size() > set.size() && std::ranges::includes(other, set);
      });
      if (!part && std::ranges::any_of(set, [&](NodeId id) { return is_product_op(nodes_.node(id)); }))
        result.push_back(region(set));
    }
    return result;
  }

 private:
  std::vector<NodeId> with_products(std::vector<NodeId> set) const {
    const std::vector<NodeId> own = set;
    const auto add = [&](NodeId id) {
      if (is_product_op(nodes_.node(id))) set.push_back(id);
    };
    for (const NodeId id : own) {
      if (const auto read = read_.find(id); read != read_.end()) std::ranges::for_each(read->second, add);
      if (const auto by = readers_.find(id); by != readers_.end()) std::ranges::for_each(by->second, add);
    }
    return set;
  }

  /// Products that read each other, or one value that no kernel makes.
  std::vector<std::vector<NodeId>> product_groups() const {
    DisjointSets<NodeId> joined;
    for (const auto& [value, readers] : readers_) {
      NodeId first = is_product_op(nodes_.node(value)) ? value : kNoNode;
      if (nodes_[value].member) continue;
      for (const NodeId reader : readers) {
        if (!is_product_op(nodes_.node(reader))) continue;
        if (first != kNoNode) joined.join(first, reader);
        first = reader;
      }
    }
    std::map<NodeId, std::vector<NodeId>> groups;
    for (const auto& [id, read] : read_)
      if (is_product_op(nodes_.node(id))) groups[joined.find(id)].push_back(id);
    std::vector<std::vector<NodeId>> result;
    for (auto& [least, group] : groups)
      if (group.size() > 1 && group.size() <= static_cast<std::size_t>(kMostPrimitives))
        result.push_back(std::move(group));
    return result;
  }

  Region region(const std::vector<NodeId>& set) const {
    const std::vector<NodeId> ops = with_index_maps(nodes_, set);
    std::vector<NodeId> outputs;
    for (const NodeId id : ops) {
      const auto& users = nodes_[id].users;
      if (id == nodes_.computation->root ||
          std::ranges::any_of(users, [&](NodeId user) { return !contains_sorted(ops, user); }))
        outputs.push_back(id);
    }
    if (outputs.empty()) outputs.push_back(ops.back());
    Region result{name_, {}, extract(*nodes_.graph, ops, outputs), {}};
    Computation& entry = result.graph.computations.back();
    for (Node& node : entry.nodes) {
      result.names.push_back(node.name);
      node.name = fmt::format("n{}", node.id);
      node.metadata = {};
      node.line = 0;
    }
    result.graph.name = "region";
    result.text = to_text(result.graph) + weights_text(result.graph);
    return result;
  }

  astitch::Nodes nodes_;
  std::string name_;
  std::map<NodeId, std::vector<NodeId>> read_, readers_;
};

}  // namespace

std::string Region::in_model(const std::string& op) const {
  const std::size_t dot = std::min(op.find('.'), op.size());
  return names.at(static_cast<std::size_t>(std::stoul(op.substr(1, dot - 1)))) + op.substr(dot);
}

std::vector<Region> regions(const Graph& graph) {
  std::vector<Region> result;
  for (const ComputationId id : rewriting::running_computations(graph)) {
    const Graph own = id == graph.entry ? graph : with_entry(graph, id);
    for (Region& region : Finder(own, graph.computation(id).name).run()) result.push_back(std::move(region));
  }
  return result;
}

}  // namespace stitchwork::fission
