#include "analysis/planners/fission/windows.h"

#include <algorithm>
#include <map>

#include "core/base/at.h"
#include "core/base/disjoint_sets.h"

namespace stitchwork::fission {
namespace {

/// Steps each op reads, by op; of ops that are no steps none.
std::vector<std::vector<NodeId>> steps_read(const astitch::Nodes& nodes) {
  std::vector<std::vector<NodeId>> result(nodes.facts.size());
  for (const Node& node : nodes.computation->nodes)
    if (astitch::is_step(nodes[node.id])) result[at(node.id)] = astitch::producers(nodes, node.id);
  return result;
}

/// Depth first from what nothing of the component reads: operands before readers, what belongs together side
/// by side.
std::vector<NodeId> ordered(const std::vector<NodeId>& component,
                            const std::vector<std::vector<NodeId>>& reads,
                            const std::vector<int>& component_of, int own) {
  std::vector<char> seen(component_of.size(), 0), read(component_of.size(), 0);
  for (const NodeId op : component)
    for (const NodeId producer : reads[at(op)]) read[at(producer)] = 1;
  std::vector<NodeId> result;
  std::vector<std::pair<NodeId, std::size_t>> open;
  for (const NodeId start : component) {
    if (read[at(start)] != 0) continue;
    open.emplace_back(start, 0);
    seen[at(start)] = 1;
    while (!open.empty()) {
      auto& [op, next] = open.back();
      if (next == reads[at(op)].size()) {
        result.push_back(op);
        open.pop_back();
        continue;
      }
      const NodeId producer = reads[at(op)][next++];
      if (component_of[at(producer)] != own || seen[at(producer)] != 0) continue;
      seen[at(producer)] = 1;
      open.emplace_back(producer, 0);
    }
  }
  return result;
}

/// Ends of the windows of a component: behind half a window or more, where fewest bytes cross.
std::vector<std::size_t> cuts(const astitch::Nodes& nodes, const std::vector<NodeId>& order,
                              const std::vector<std::vector<NodeId>>& reads) {
  std::map<NodeId, std::size_t> place, last;  // last: of its readers
  for (std::size_t i = 0; i < order.size(); ++i) place[order[i]] = i;
  for (std::size_t i = 0; i < order.size(); ++i)
    for (const NodeId producer : reads[at(order[i])])
      if (place.contains(producer)) last[producer] = std::max(last[producer], i);
  std::vector<std::int64_t> crossing(order.size() + 1, 0);  // by end, first as changes
  for (const auto& [op, reader] : last) {
    crossing[place[op] + 1] += nodes.bytes(op);
    crossing[reader + 1] -= nodes.bytes(op);
  }
  for (std::size_t i = 1; i < crossing.size(); ++i) crossing[i] += crossing[i - 1];
  std::vector<std::size_t> ends;
  constexpr auto kMost = static_cast<std::size_t>(kMostPrimitives);
  for (std::size_t begin = 0; begin < order.size(); begin = ends.back()) {
    std::size_t end = std::min(order.size(), begin + kMost);
    if (end < order.size())
      for (std::size_t e = end - 1; e >= begin + kMost / 2; --e)
        if (crossing[e] < crossing[end]) end = e;
    ends.push_back(end);
  }
  return ends;
}

Window window(const astitch::Nodes& nodes, std::vector<NodeId> ops,
              const std::vector<std::vector<NodeId>>& reads) {
  Window result;
  result.ops = std::move(ops);
  std::map<NodeId, int> place;
  for (int i = 0; i < result.size(); ++i) place[result.ops[at(i)]] = i;
  // Paths between primitives pass nodes between them alone.
  const NodeId first = place.begin()->first, last = place.rbegin()->first;
  std::vector<Mask> from(static_cast<std::size_t>(last - first + 1), 0);
  for (NodeId id = first; id <= last; ++id) {
    Mask& own = from[at(id - first)];
    for (const NodeId operand : nodes.node(id).operands)
      if (operand >= first) own |= from[at(operand - first)];
    if (const auto found = place.find(id); found != place.end()) own |= only(found->second);
  }
  for (const NodeId op : result.ops) {
    Mask producers = 0, outside = 0;
    for (const NodeId producer : reads[at(op)]) {
      const auto found = place.find(producer);
      if (found != place.end())
        producers |= only(found->second);
      else if (producer >= first)
        outside |= from[at(producer - first)];
    }
    result.producers.push_back(producers);
    result.ancestors.push_back(from[at(op - first)]);
    result.outside.push_back(outside);
  }
  return result;
}

}  // namespace

std::vector<Window> windows(const astitch::Nodes& nodes) {
  const std::vector<std::vector<NodeId>> reads = steps_read(nodes);
  DisjointSets<NodeId> sets;
  for (const Node& node : nodes.computation->nodes)
    for (const NodeId producer : reads[at(node.id)])
      if (nodes[node.id].member && nodes[producer].member) sets.join(node.id, producer);
  std::map<NodeId, std::vector<NodeId>> components;
  for (const Node& node : nodes.computation->nodes)
    if (nodes[node.id].member) components[sets.find(node.id)].push_back(node.id);

  std::vector<int> component_of(reads.size(), -1), window_of(reads.size(), -1);
  std::vector<Window> result;
  int number = 0;
  for (const auto& [root, component] : components) {
    for (const NodeId op : component) component_of[at(op)] = number;
    const std::vector<NodeId> order = ordered(component, reads, component_of, number);
    std::size_t begin = 0;
    for (const std::size_t end : cuts(nodes, order, reads)) {
      std::vector<NodeId> ops(order.begin() + static_cast<std::ptrdiff_t>(begin),
                              order.begin() + static_cast<std::ptrdiff_t>(end));
      for (const NodeId op : ops) window_of[at(op)] = static_cast<int>(result.size());
      result.push_back(window(nodes, std::move(ops), reads));
      result.back().component = number;
      begin = end;
    }
    ++number;
  }
  std::vector<char> needed(reads.size(), 0);
  for (std::size_t id = 0; id < reads.size(); ++id) {
    if (nodes.facts[id].buffer_needed) needed[id] = 1;
    for (const NodeId producer : reads[id])
      if (window_of[id] < 0 || window_of[id] != window_of[at(producer)]) needed[at(producer)] = 1;
  }
  for (Window& w : result)
    for (int i = 0; i < w.size(); ++i)
      if (needed[at(w.ops[at(i)])] != 0) w.required |= only(i);
  std::ranges::sort(result, {}, [](const Window& w) { return *std::ranges::min_element(w.ops); });
  return result;
}

}  // namespace stitchwork::fission
