#include "analysis/planners/astra/group_classes.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <numeric>
#include <tuple>

#include "analysis/facts/facts.h"
#include "core/base/at.h"
#include "core/base/disjoint_sets.h"

namespace stitchwork::astra {
namespace {

using Side = std::vector<std::vector<int>>;
/// A dimension of an array; groups identify those that run over the same elements.
using Dimension = std::pair<int, int>;

PlacedGroup numbered(const Computation& computation, const FusionGroup& group, int number,
                     std::map<NodeId, int>& numbers, std::vector<Pinnable>& arrays) {
  PlacedGroup placed{group, {}, {}, {}, number};
  const auto number_of = [&](const Matrix& matrix) {
    const bool immediate = is_immediate(computation, matrix.op);
    const int next = static_cast<int>(arrays.size());
    if (!immediate) {
      const auto [known, is_new] = numbers.try_emplace(matrix.op, next);
      if (!is_new) return known->second;
    }
    arrays.push_back({matrix.op, matrix.rows, matrix.cols, immediate});
    return next;
  };
  const auto side = [&](const std::vector<std::vector<Operand>>& operands) {
    Side result;
    for (const auto& list : operands) {
      result.emplace_back();
      for (const Operand& operand : list) result.back().push_back(number_of(operand.matrix));
    }
    return result;
  };
  placed.left = side(group.left);
  placed.right = side(group.right);
  for (const Matrix& matrix : group.result) placed.result.push_back(number_of(matrix));
  return placed;
}

int left_side(const PlacedGroup& g) { return g.group.left[0][0].contracted; }
int right_side(const PlacedGroup& g) { return g.group.right[0][0].contracted; }

void join_labels(DisjointSets<Dimension>& labels, const PlacedGroup& g) {
  const int d = left_side(g), e = right_side(g);
  for (int q = 0; q < g.group.k(); ++q) {
    const Dimension summed{g.left[0][at(q)], d};
    for (const auto& list : g.left) labels.join(summed, {list[at(q)], d});
    for (const auto& list : g.right) labels.join(summed, {list[at(q)], e});
  }
  for (int i = 0; i < g.group.m(); ++i) {
    const Dimension rows{g.left[at(i)][0], 1 - d};
    for (const int array : g.left[at(i)]) labels.join(rows, {array, 1 - d});
    for (int j = 0; j < g.group.n(); ++j) labels.join(rows, {g.array_to(i, j), 0});
  }
  for (int j = 0; j < g.group.n(); ++j) {
    const Dimension cols{g.right[at(j)][0], 1 - e};
    for (const int array : g.right[at(j)]) labels.join(cols, {array, 1 - e});
    for (int i = 0; i < g.group.m(); ++i) labels.join(cols, {g.array_to(i, j), 1});
  }
}

/// The label of a member along an axis.
Dimension label_of(const DisjointSets<Dimension>& labels, const PlacedGroup& g, Axis axis, int place) {
  if (axis == kM) return labels.find({g.left[at(place)][0], 1 - left_side(g)});
  if (axis == kN) return labels.find({g.right[at(place)][0], 1 - right_side(g)});
  return labels.find({g.left[0][at(place)], left_side(g)});
}

/// By label the first op of whose array it is a dimension: states of time step 0, which are constants, come
/// first.
std::map<Dimension, NodeId> first_ops(const DisjointSets<Dimension>& labels,
                                      const std::vector<Pinnable>& arrays) {
  std::map<Dimension, NodeId> result;
  for (std::size_t a = 0; a < arrays.size(); ++a)
    for (const int d : {0, 1}) {
      const auto [first, is_new] = result.try_emplace(labels.find({static_cast<int>(a), d}), arrays[a].op);
      first->second = std::min(first->second, arrays[a].op);
    }
  return result;
}

PlacedGroup ordered(const DisjointSets<Dimension>& labels, const std::map<Dimension, NodeId>& first,
                    const std::vector<Pinnable>& arrays, PlacedGroup group) {
  for (const Axis axis : {kM, kN, kK}) {
    std::vector<int> order(at(group.group.extent[axis]));
    std::iota(order.begin(), order.end(), 0);
    const auto key = [&](int place) {
      NodeId least = arrays[0].op;
      for (std::size_t a = 0; const int array : arrays_at(group, axis, place))
        least = a++ == 0 ? arrays[at(array)].op : std::min(least, arrays[at(array)].op);
      const Dimension label = label_of(labels, group, axis, place);
      return std::tuple(first.at(label), label, least);
    };
    std::stable_sort(order.begin(), order.end(), [&](int a, int b) { return key(a) < key(b); });
    group = reordered(group, axis, order);
  }
  return group;
}

std::string class_key(const Computation& computation, const Products& products,
                      const std::vector<Ladder>& ladders, const FusionGroup& group) {
  const Ladder& first = ladders[at(group.ladders[0])];
  std::string key = fmt::format("{}x{}x{} {} {} ", group.m(), group.n(), group.k(),
                                group.left[0][0].contracted, group.right[0][0].contracted);
  for (const auto* side : {&group.left, &group.right})
    for (const auto& list : *side)
      for (const Operand& o : list) key += fmt::format("{},{} ", o.matrix.rows, o.matrix.cols);
  const Node& dot = computation.node(products.list[at(first.rungs[0])].dot);
  return key + fmt::format("{} {} ", first.start != kNoNode, static_cast<int>(dot.shape.dtype)) +
         scope_without_numbers(dot.metadata.op_name);
}

}  // namespace

std::string scope_without_numbers(const std::string& op_name) {
  std::string result = op_name;
  std::erase_if(result, [](char c) { return c >= '0' && c <= '9'; });
  return result;
}

ClassedGroups classed(const Computation& computation, const Products& products,
                      const std::vector<Ladder>& ladders, const std::vector<FusionGroup>& groups) {
  ClassedGroups result;
  std::map<NodeId, int> numbers;
  std::vector<PlacedGroup> placed;
  DisjointSets<Dimension> labels;
  for (std::size_t g = 0; g < groups.size(); ++g) {
    if (groups[g].products() < 2) continue;
    placed.push_back(numbered(computation, groups[g], static_cast<int>(g), numbers, result.arrays));
    join_labels(labels, placed.back());
  }
  const std::map<Dimension, NodeId> first = first_ops(labels, result.arrays);
  std::map<std::string, std::size_t> known;
  for (const PlacedGroup& group : placed) {
    const auto [number, is_new] =
        known.try_emplace(class_key(computation, products, ladders, group.group), result.list.size());
    if (is_new) result.list.emplace_back();
    GroupClass& of = result.list[number->second];
    of.saved += group.group.products() - 1;
    of.groups.push_back(ordered(labels, first, result.arrays, group));
  }
  std::stable_sort(result.list.begin(), result.list.end(),
                   [](const GroupClass& a, const GroupClass& b) { return a.saved > b.saved; });
  return result;
}

PlacedGroup reordered(const PlacedGroup& group, Axis axis, const std::vector<int>& order) {
  PlacedGroup result = group;
  const auto permute = [&](auto& to, const auto& from) {
    for (std::size_t p = 0; p < order.size(); ++p) to[p] = from[at(order[p])];
  };
  if (axis == kK) {
    for (auto* sides : {&result.left, &result.right})
      for (auto& list : *sides) permute(list, std::vector<int>(list));
    for (auto* sides : {&result.group.left, &result.group.right})
      for (auto& list : *sides) permute(list, std::vector<Operand>(list));
    return result;
  }
  permute(axis == kM ? result.left : result.right, axis == kM ? group.left : group.right);
  permute(axis == kM ? result.group.left : result.group.right,
          axis == kM ? group.group.left : group.group.right);
  const int n = group.group.n();
  for (int i = 0; i < group.group.m(); ++i)
    for (int j = 0; j < n; ++j) {
      const std::size_t from = at(axis == kM ? order[at(i)] * n + j : i * n + order[at(j)]),
                        to = at(i * n + j);
      result.result[to] = group.result[from];
      result.group.result[to] = group.group.result[from];
      result.group.ladders[to] = group.group.ladders[from];
    }
  return result;
}

PlacedGroup without(const PlacedGroup& group, Axis axis, int place) {
  PlacedGroup result{without(group.group, axis, place), group.left, group.right, {}, group.number};
  if (axis == kM) result.left.erase(result.left.begin() + place);
  if (axis == kN) result.right.erase(result.right.begin() + place);
  if (axis == kK)
    for (auto* sides : {&result.left, &result.right})
      for (auto& list : *sides) list.erase(list.begin() + place);
  for (int i = 0; i < group.group.m(); ++i)
    for (int j = 0; j < group.group.n(); ++j)
      if (axis == kK || (axis == kM ? i : j) != place) result.result.push_back(group.array_to(i, j));
  return result;
}

std::vector<int> arrays_at(const PlacedGroup& group, Axis axis, int place) {
  if (axis == kM) return group.left[at(place)];
  if (axis == kN) return group.right[at(place)];
  std::vector<int> result;
  for (const auto* side : {&group.left, &group.right})
    for (const auto& list : *side) result.push_back(list[at(place)]);
  return result;
}

std::vector<int> arrays_of(const PlacedGroup& group) {
  std::vector<int> result = group.result;
  for (const auto* side : {&group.left, &group.right})
    for (const auto& list : *side) result.insert(result.end(), list.begin(), list.end());
  return result;
}

bool pin(Pins& pins, const PlacedGroup& g) {
  const std::size_t mark = pins.mark();
  const int m = g.group.m(), n = g.group.n(), k = g.group.k();
  bool ok = true;
  const auto side = [&](const Side& lists, int contracted) {
    for (std::size_t i = 0; i < lists.size(); ++i)
      for (int q = 0; ok && q < k; ++q) {
        if (q > 0) ok = pins.pin(lists[i][at(q - 1)], lists[i][at(q)], contracted);
        if (ok && i > 0) ok = pins.pin(lists[i - 1][at(q)], lists[i][at(q)], 1 - contracted);
      }
  };
  side(g.left, left_side(g));
  side(g.right, right_side(g));
  for (int i = 0; i < m; ++i)
    for (int j = 0; ok && j < n; ++j) {
      if (i > 0) ok = pins.pin(g.array_to(i - 1, j), g.array_to(i, j), 0);
      if (ok && j > 0) ok = pins.pin(g.array_to(i, j - 1), g.array_to(i, j), 1);
    }
  if (!ok) pins.undo(mark);
  return ok;
}

}  // namespace stitchwork::astra
