#include "analysis/planners/astra/groups.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <set>
#include <tuple>

#include "analysis/facts/facts.h"
#include "core/base/arithmetic.h"
#include "core/base/at.h"
#include "core/base/error.h"

namespace stitchwork::astra {
namespace {

/// The sides of a list of operands, all of which lie alike.
using SideKey = std::vector<std::pair<NodeId, int>>;

SideKey key_of(const std::vector<Operand>& side) {
  SideKey key;
  for (const Operand& operand : side) key.emplace_back(operand.matrix.op, operand.contracted);
  return key;
}

std::vector<Operand> lefts(const Products& products, const Ladder& ladder) {
  std::vector<Operand> side;
  for (const int rung : ladder.rungs) side.push_back(products.list[at(rung)].left);
  return side;
}

std::vector<Operand> rights(const Products& products, const Ladder& ladder) {
  std::vector<Operand> side;
  for (const int rung : ladder.rungs) side.push_back(products.list[at(rung)].right);
  return side;
}

/// What all ladders of a block have in common.
using Likeness = std::tuple<int, DType, int, int, std::size_t, bool>;

Likeness likeness(const Computation& computation, const Products& products, const Ladder& ladder,
                  int provenance) {
  const Product& first = products.list[at(ladder.rungs[0])];
  return {provenance,
          computation.node(ladder.root).shape.dtype,
          first.left.contracted,
          first.right.contracted,
          ladder.rungs.size(),
          ladder.start != kNoNode};
}

/// Blocks of the ladders of one likeness that are joined by common sides.
class Blocks {
 public:
  Blocks(const Computation& computation, const Products& products, const std::vector<Ladder>& ladders,
         const std::vector<int>& alike, std::vector<FusionGroup>& found)
      : computation_(computation), products_(products), ladders_(ladders), found_(found) {
    std::map<SideKey, int> left_numbers, right_numbers;
    for (const int l : alike) {
      const std::vector<Operand> left = lefts(products_, ladders_[at(l)]);
      const std::vector<Operand> right = rights(products_, ladders_[at(l)]);
      const auto numbered = [](std::map<SideKey, int>& numbers, std::vector<std::vector<Operand>>& sides,
                               const std::vector<Operand>& side) {
        const auto [known, is_new] = numbers.try_emplace(key_of(side), static_cast<int>(sides.size()));
        if (is_new) sides.push_back(side);
        return known->second;
      };
      const int i = numbered(left_numbers, left_, left), j = numbered(right_numbers, right_, right);
      // The same products once more: by themselves.
      if (!ladder_.try_emplace({i, j}, l).second) add_block({i}, {j}, l);
    }
  }

  void find() {
    for (const auto& edges : components()) {
      std::set<std::pair<int, int>> open(edges.begin(), edges.end());
      std::vector<Block> blocks;
      while (!open.empty()) blocks.push_back(take_largest(open));
      join(blocks);
      for (const Block& block : blocks) add_block(block.lefts, block.rights);
    }
  }

 private:
  struct Block {
    std::vector<int> lefts, rights;
    std::size_t size() const { return lefts.size() * rights.size(); }
  };

  std::vector<std::vector<std::pair<int, int>>> components() const {
    std::vector<int> of(left_.size() + right_.size());
    for (std::size_t s = 0; s < of.size(); ++s) of[s] = static_cast<int>(s);
    const auto find = [&](int s) {
      while (of[at(s)] != s) s = of[at(s)] = of[at(of[at(s)])];
      return s;
    };
    for (const auto& [edge, ladder] : ladder_) {
      const int a = find(edge.first), b = find(edge.second + static_cast<int>(left_.size()));
      of[at(std::max(a, b))] = std::min(a, b);
    }
    std::map<int, std::vector<std::pair<int, int>>> edges;
    for (const auto& [edge, ladder] : ladder_) edges[find(edge.first)].push_back(edge);
    std::vector<std::vector<std::pair<int, int>>> result;
    for (auto& [root, list] : edges) result.push_back(std::move(list));
    return result;
  }

  /// What was taken in between may leave blocks of the same lefts, or the same rights: they are one.
  void join(std::vector<Block>& blocks) const {
    for (std::size_t a = 0; a < blocks.size(); ++a)
      for (std::size_t b = a + 1; b < blocks.size();) {
        Block both = blocks[a];
        const bool same_lefts = both.lefts == blocks[b].lefts;
        std::vector<int>& grows = same_lefts ? both.rights : both.lefts;
        const std::vector<int>& more = same_lefts ? blocks[b].rights : blocks[b].lefts;
        grows.insert(grows.end(), more.begin(), more.end());
        std::sort(grows.begin(), grows.end());
        const std::size_t size = both.size();
        if (same_lefts || both.rights == blocks[b].rights) keep_once(both);
        if ((!same_lefts && both.rights != blocks[b].rights) || both.size() < size) {
          ++b;
          continue;
        }
        blocks[a] = std::move(both);
        blocks.erase(blocks.begin() + static_cast<std::ptrdiff_t>(b));
        b = a + 1;
      }
  }

  Block take_largest(std::set<std::pair<int, int>>& open) const {
    std::map<int, std::vector<int>> of_left, of_right;
    for (const auto& [i, j] : open) {
      of_left[i].push_back(j);
      of_right[j].push_back(i);
    }
    std::map<std::vector<int>, std::vector<int>> same_rights, same_lefts;
    for (const auto& [i, js] : of_left) same_rights[js].push_back(i);
    for (const auto& [j, is] : of_right) same_lefts[is].push_back(j);
    Block best;
    const auto offer = [&](Block block) {
      if (best.size() == 0 || std::pair(block.size(), -first(block)) > std::pair(best.size(), -first(best)))
        best = std::move(block);
    };
    for (const auto& [js, is] : same_rights) offer({is, js});
    for (const auto& [is, js] : same_lefts) offer({is, js});
    if (best.size() > 1) keep_once(best);
    for (const int i : best.lefts)
      for (const int j : best.rights) open.erase({i, j});
    std::sort(best.lefts.begin(), best.lefts.end());
    std::sort(best.rights.begin(), best.rights.end());
    return best;
  }

  /// The root of its first ladder.
  NodeId first(const Block& block) const {
    NodeId least = ladders_.back().root;
    for (const int i : block.lefts)
      for (const int j : block.rights) least = std::min(least, ladders_[at(ladder_.at({i, j}))].root);
    return least;
  }

  /// Leaves out lists that hold an array of another list: an array has one place.
  void keep_once(Block& block) const {
    std::set<NodeId> held;
    const auto keep = [&](std::vector<int>& lists, const std::vector<std::vector<Operand>>& sides) {
      std::erase_if(lists, [&](int list) {
        for (const Operand& operand : sides[at(list)])
          if (!is_immediate(computation_, operand.matrix.op) && held.contains(operand.matrix.op)) return true;
        for (const Operand& operand : sides[at(list)]) held.insert(operand.matrix.op);
        return false;
      });
    };
    const int i = block.lefts[0], j = block.rights[0];
    keep(block.lefts, left_);
    keep(block.rights, right_);
    if (block.rights.empty()) block = {{i}, {j}};
  }

  void add_block(const std::vector<int>& is, const std::vector<int>& js, int only = -1) {
    FusionGroup group;
    group.extent = {static_cast<int>(is.size()), static_cast<int>(js.size()),
                    static_cast<int>(left_[at(is[0])].size())};
    for (const int i : is) group.left.push_back(left_[at(i)]);
    for (const int j : js) group.right.push_back(right_[at(j)]);
    for (const int i : is)
      for (const int j : js) {
        const int l = only >= 0 ? only : ladder_.at({i, j});
        group.ladders.push_back(l);
        group.result.push_back({ladders_[at(l)].root, left_[at(i)][0].free(), right_[at(j)][0].free()});
      }
    found_.push_back(std::move(group));
  }

  const Computation& computation_;
  const Products& products_;
  const std::vector<Ladder>& ladders_;
  std::vector<FusionGroup>& found_;
  std::vector<std::vector<Operand>> left_, right_;
  std::map<std::pair<int, int>, int> ladder_;
};

/// Of ladders with a common operand, those next to each other: why no product makes both.
void record_apart(const Computation& computation, const Products& products,
                  const std::vector<Ladder>& ladders, const std::vector<int>& provenance,
                  const std::vector<FusionGroup>& found, Recorder& recorder) {
  std::vector<int> group_of(ladders.size(), -1);
  for (std::size_t g = 0; g < found.size(); ++g)
    for (const int l : found[g].ladders) group_of[at(l)] = static_cast<int>(g);
  std::map<NodeId, int> last;
  for (std::size_t l = 0; l < ladders.size(); ++l)
    for (const int rung : ladders[l].rungs)
      for (const NodeId op :
           {products.list[at(rung)].left.matrix.op, products.list[at(rung)].right.matrix.op}) {
        const auto [before, is_new] = last.try_emplace(op, static_cast<int>(l));
        const int other = std::exchange(before->second, static_cast<int>(l));
        if (is_new || other == static_cast<int>(l) || group_of[l] == group_of[at(other)]) continue;
        recorder.add(kFusionStep, computation.node(ladders[l].root).name,
                     computation.node(ladders[at(other)].root).name, [&] {
                       const Verdict may =
                           may_share(computation, products, ladders, provenance, other, static_cast<int>(l));
                       if (!may) return may;
                       return Verdict::no(
                           "astra.other-block",
                           fmt::format("both read {}; each is in a larger block without the other",
                                       computation.node(op).name));
                     });
      }
}

}  // namespace

Verdict may_share(const Computation& computation, const Products& products,
                  const std::vector<Ladder>& ladders, const std::vector<int>& provenance, int a, int b) {
  const Likeness x = likeness(computation, products, ladders[at(a)], provenance[at(a)]);
  const Likeness y = likeness(computation, products, ladders[at(b)], provenance[at(b)]);
  if (std::get<0>(x) != std::get<0>(y))
    return Verdict::no("astra.provenance", "other products reach the one than reach the other");
  if (std::get<1>(x) != std::get<1>(y)) return Verdict::no("astra.dtype", "of two types");
  if (std::get<4>(x) != std::get<4>(y))
    return Verdict::no("astra.layout",
                       fmt::format("sums of {} and of {} products", std::get<4>(x), std::get<4>(y)));
  if (x != y) return Verdict::no("astra.layout", "their sides lie otherwise, or one is added to a value");
  return Verdict::yes();
}

std::vector<FusionGroup> groups(const Computation& computation, const Products& products,
                                const std::vector<Ladder>& ladders, const std::vector<int>& provenance,
                                Recorder& recorder) {
  std::map<Likeness, std::vector<int>> alike;
  for (std::size_t l = 0; l < ladders.size(); ++l)
    alike[likeness(computation, products, ladders[l], provenance[l])].push_back(static_cast<int>(l));
  std::vector<FusionGroup> found;
  for (const auto& [like, list] : alike) Blocks(computation, products, ladders, list, found).find();
  std::sort(found.begin(), found.end(), [](const FusionGroup& a, const FusionGroup& b) {
    return *std::min_element(a.ladders.begin(), a.ladders.end()) <
           *std::min_element(b.ladders.begin(), b.ladders.end());
  });
  if (recorder.enabled()) record_apart(computation, products, ladders, provenance, found, recorder);
  return found;
}

FusionGroup without(const FusionGroup& group, Axis axis, int place) {
  SW_CHECK(group.extent[axis] > 1, "a group of one member keeps it");
  FusionGroup result = group;
  --result.extent[axis];
  const auto drop = [&](auto& list) { list.erase(list.begin() + place); };
  if (axis == kM) drop(result.left);
  if (axis == kN) drop(result.right);
  if (axis == kK) {
    for (auto& side : result.left) drop(side);
    for (auto& side : result.right) drop(side);
    return result;
  }
  result.ladders.clear();
  result.result.clear();
  for (int i = 0; i < group.m(); ++i)
    for (int j = 0; j < group.n(); ++j) {
      if ((axis == kM ? i : j) == place) continue;
      result.ladders.push_back(group.ladder(i, j));
      result.result.push_back(group.to(i, j));
    }
  return result;
}

int calls(const FusionGroup& group, const Chunk& chunk) {
  int result = 1;
  for (const Axis axis : {kM, kN, kK}) result *= ceil_div(group.extent[axis], chunk.size[axis]);
  return result;
}

Chunks chunks(const FusionGroup& group, const Device& device) {
  // Section 4.8 bounds a group's size and gives no number. A choice, not measured: 8 waves of tiles leave a
  // fraction of a wave at the end, 64 x 64 being the smallest tile that libraries use for large products.
  constexpr std::int64_t kWaves = 8, kTile = 64;
  // A choice, not measured: each is a trial at least, and an axis of 35 members has 7 sizes.
  constexpr std::size_t kMost = 24;
  const auto sizes = [](int extent) {
    std::vector<int> list;
    for (int size = 1; size < extent; size *= 2) list.push_back(size);
    list.push_back(extent);
    return list;
  };
  const auto fills = [&](int cm, int cn) {
    std::int64_t rows = 0, cols = 0;
    for (int i = 0; i < cm; ++i) rows += group.left[at(i)][0].free();
    for (int j = 0; j < cn; ++j) cols += group.right[at(j)][0].free();
    return ceil_div(rows, kTile) * ceil_div(cols, kTile) >= kWaves * device.sms;
  };
  Chunks result;
  const std::vector<int> ms = sizes(group.m()), ns = sizes(group.n()), ks = sizes(group.k());
  for (std::size_t i = 0; i < ms.size(); ++i)
    for (std::size_t j = 0; j < ns.size(); ++j) {
      if ((i > 0 && fills(ms[i - 1], ns[j])) || (j > 0 && fills(ms[i], ns[j - 1]))) {
        result.out_of_range += static_cast<int>(ks.size());
        continue;
      }
      for (const int ck : ks) result.list.push_back({{ms[i], ns[j], ck}});
    }
  std::stable_sort(result.list.begin(), result.list.end(),
                   [&](const Chunk& a, const Chunk& b) { return calls(group, a) < calls(group, b); });
  if (result.list.size() > kMost) {
    result.left_out = static_cast<int>(result.list.size() - kMost);
    result.list.resize(kMost - 1);
    result.list.push_back({});
  }
  return result;
}

}  // namespace stitchwork::astra
