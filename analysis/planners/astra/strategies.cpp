#include "analysis/planners/astra/strategies.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <numeric>
#include <optional>
#include <set>

#include "analysis/facts/facts.h"
#include "analysis/planners/astra/fitting.h"
#include "core/base/at.h"
#include "core/base/error.h"

namespace stitchwork::astra {
namespace {

using Sets = std::vector<std::vector<int>>;

/// One step of Bron and Kerbosch's algorithm on the complement: `chosen` grows by each vertex of `open` that
/// none of its neighbours excludes.
class IndependentSets {
 public:
  IndependentSets(const Sets& adjacent, std::size_t most) : adjacent_(adjacent), most_(most) {}

  Sets find() {
    std::vector<int> all(adjacent_.size());
    std::iota(all.begin(), all.end(), 0);
    std::vector<int> chosen;
    extend(chosen, all, {});
    for (std::vector<int>& set : found_) std::sort(set.begin(), set.end());
    std::sort(found_.begin(), found_.end());
    return std::move(found_);
  }

 private:
  bool adjacent(int a, int b) const {
    return std::binary_search(adjacent_[at(a)].begin(), adjacent_[at(a)].end(), b);
  }
  std::vector<int> free_of(const std::vector<int>& list, int v) const {
    std::vector<int> result;
    for (const int u : list)
      if (u != v && !adjacent(u, v)) result.push_back(u);
    return result;
  }

  void extend(std::vector<int>& chosen, std::vector<int> open, std::vector<int> done) {
    if (found_.size() >= most_) return;
    if (open.empty()) {
      if (done.empty()) found_.push_back(chosen);
      return;
    }
    // The pivot with most compatible vertices: any maximal set has it or a vertex that it excludes.
    int pivot = open[0];
    std::size_t most = 0;
    for (const auto* list : {&open, &done})
      for (const int v : *list)
        if (const std::size_t compatible = free_of(open, v).size(); compatible >= most) {
          most = compatible;
          pivot = v;
        }
    for (const int v : std::vector<int>(open)) {
      if (v != pivot && !adjacent(v, pivot)) continue;
      chosen.push_back(v);
      extend(chosen, free_of(open, v), free_of(done, v));
      chosen.pop_back();
      std::erase(open, v);
      done.push_back(v);
    }
  }

  const Sets& adjacent_;
  std::size_t most_;
  Sets found_;
};

std::set<int> arrays_of_class(const FittedClass& fitted) {
  std::set<int> result;
  for (const PlacedGroup& group : fitted.groups)
    for (const int array : arrays_of(group)) result.insert(array);
  return result;
}

bool meet(const std::set<int>& a, const std::set<int>& b) {
  return std::any_of(a.begin(), a.end(), [&](int x) { return b.contains(x); });
}

/// By class those that it cannot be pinned with.
Sets conflicts(const std::vector<Pinnable>& arrays, const std::vector<FittedClass>& classes) {
  Sets result(classes.size());
  std::vector<std::set<int>> held;
  for (const FittedClass& c : classes) held.push_back(arrays_of_class(c));
  Pins pins(arrays);
  for (std::size_t a = 0; a < classes.size(); ++a)
    for (std::size_t b = a + 1; b < classes.size(); ++b) {
      if (!meet(held[a], held[b])) continue;
      std::vector<FittedClass> tried = classes;
      pins.undo(0);
      if (!fit(pins, tried, {static_cast<int>(a), static_cast<int>(b)})) continue;
      result[a].push_back(static_cast<int>(b));
      result[b].push_back(static_cast<int>(a));
    }
  return result;
}

/// Groups of a class that do not even fit beside each other become classes of their own.
void split_by_itself(const std::vector<Pinnable>& arrays, std::vector<FittedClass>& classes) {
  for (std::size_t c = 0; c < classes.size(); ++c) {
    Pins pins(arrays);
    FittedClass rest;
    std::erase_if(classes[c].groups, [&](const PlacedGroup& group) {
      if (pin(pins, group)) return false;
      rest.groups.push_back(group);
      return true;
    });
    if (classes[c].groups.empty()) {
      // A group that does not fit by itself: `strategies` leaves it unfused.
      classes[c].groups.push_back(rest.groups.front());
      rest.groups.erase(rest.groups.begin());
    }
    if (!rest.groups.empty()) classes.push_back(std::move(rest));
  }
}

class StrategyBuilder {
 public:
  StrategyBuilder(const Computation& computation, const std::vector<Pinnable>& arrays,
                  const std::vector<FusionGroup>& all)
      : computation_(computation), arrays_(arrays), all_(all) {}

  /// Of classes that fit together.
  Strategy build(std::vector<FittedClass> classes, const std::vector<int>& which) const {
    Pins pins(arrays_);
    SW_CHECK(!fit(pins, classes, which), "classes that fitted do not");
    std::vector<PlacedGroup> placed;
    for (const int c : which)
      placed.insert(placed.end(), classes[at(c)].groups.begin(), classes[at(c)].groups.end());
    std::sort(placed.begin(), placed.end(),
              [](const PlacedGroup& a, const PlacedGroup& b) { return a.number < b.number; });
    return laid_out(pins, placed);
  }

 private:
  Strategy laid_out(const Pins& pins, const std::vector<PlacedGroup>& placed) const {
    Strategy result;
    std::map<std::size_t, int> regions;
    std::map<std::pair<std::size_t, GridCell>, int> views;
    const auto view_of = [&](int array) {
      if (pins.together(array).size() < 2) return -1;
      const std::size_t grid = pins.grid_of(array);
      if (regions.try_emplace(grid, static_cast<int>(result.regions.size())).second)
        add_region(pins, pins.together(array), result, views);
      return views.at({grid, pins.cell_of(array)});
    };
    const auto views_of = [&](const std::vector<std::vector<int>>& side) {
      std::vector<std::vector<int>> list;
      for (const auto& arrays : side) {
        list.emplace_back();
        for (const int array : arrays) list.back().push_back(view_of(array));
      }
      return list;
    };
    std::set<int> fused;
    for (const PlacedGroup& group : placed) {
      StrategyGroup of{group.group, group.number, views_of(group.left), views_of(group.right), {}};
      for (const int array : group.result) of.result.push_back(view_of(array));
      result.saved_calls += group.group.products() - 1;
      fused.insert(group.number);
      result.groups.push_back(std::move(of));
    }
    for (std::size_t g = 0; g < all_.size(); ++g)
      if (all_[g].products() > 1 && !fused.contains(static_cast<int>(g)))
        result.unfused.push_back(static_cast<int>(g));
    return result;
  }

  void add_region(const Pins& pins, const std::vector<int>& together, Strategy& strategy,
                  std::map<std::pair<std::size_t, GridCell>, int>& views) const {
    std::map<int, std::int64_t> tops, lefts;
    for (const int array : together) {
      tops[pins.cell_of(array).row] = arrays_[at(array)].rows;
      lefts[pins.cell_of(array).col] = arrays_[at(array)].cols;
    }
    Region region{0, 0, computation_.node(arrays_[at(together[0])].op).shape.dtype, {}, true};
    for (auto& [row, height] : tops) region.rows += std::exchange(height, region.rows);
    for (auto& [col, width] : lefts) region.cols += std::exchange(width, region.cols);
    std::map<GridCell, int> by_cell;
    for (const int array : together) by_cell.try_emplace(pins.cell_of(array), array);
    for (const auto& [cell, array] : by_cell) {
      const Pinnable& pinned = arrays_[at(array)];
      const int view = static_cast<int>(strategy.views.size());
      strategy.views.push_back({pinned.op, static_cast<int>(strategy.regions.size()), tops.at(cell.row),
                                lefts.at(cell.col), pinned.rows, pinned.cols});
      region.views.push_back(view);
      region.source =
          region.source && (pinned.immediate || plan_role(computation_.node(pinned.op)) == PlanRole::kSource);
      views[{pins.grid_of(array), cell}] = view;
    }
    strategy.regions.push_back(std::move(region));
  }

  const Computation& computation_;
  const std::vector<Pinnable>& arrays_;
  const std::vector<FusionGroup>& all_;
};

}  // namespace

namespace {

/// Three classes may exclude each other where no two do: of a set that does not fit, a smallest part that
/// does not either loses one member or another.
class FittingSets {
 public:
  FittingSets(const std::vector<Pinnable>& arrays, const std::vector<FittedClass>& classes)
      : classes_(classes), pins_(arrays) {}

  void add(std::vector<int> set) {
    // A choice, not measured: each set that is looked at takes a fit, milliseconds on the largest model here.
    constexpr std::size_t kMostSets = 256;
    if (seen_.size() >= kMostSets || !seen_.insert(set).second) return;
    const auto failed = failing(set);
    if (!failed) {
      found_.insert(std::move(set));
      return;
    }
    std::vector<int> part(set.begin(), set.begin() + static_cast<std::ptrdiff_t>(*failed) + 1);
    for (std::size_t c = 0; c + 1 < part.size();) {
      std::vector<int> less = part;
      less.erase(less.begin() + static_cast<std::ptrdiff_t>(c));
      if (failing(less))
        part = std::move(less);
      else
        ++c;
    }
    for (const int c : part) {
      std::vector<int> less = set;
      std::erase(less, c);
      add(std::move(less));
    }
  }

  /// Those that are part of no other.
  Sets maximal() const {
    Sets result;
    for (const auto& set : found_)
      if (std::none_of(found_.begin(), found_.end(), [&](const auto& other) {
            return other.size() > set.size() &&
                   std::includes(other.begin(), other.end(), set.begin(), set.end());
          }))
        result.push_back(set);
    return result;
  }

 private:
  std::optional<std::size_t> failing(const std::vector<int>& set) {
    std::vector<FittedClass> tried = classes_;
    pins_.undo(0);
    return fit(pins_, tried, set);
  }

  const std::vector<FittedClass>& classes_;
  Pins pins_;
  std::set<std::vector<int>> seen_, found_;
};

}  // namespace

std::vector<std::vector<int>> maximal_independent_sets(const Sets& adjacent, std::size_t most) {
  return IndependentSets(adjacent, most).find();
}

Strategies strategies(const Computation& computation, const Products& products,
                      const std::vector<Ladder>& ladders, const std::vector<FusionGroup>& groups,
                      Recorder& recorder) {
  // Sets that are looked at. A choice, not measured: classes are few, and a hundred sets more than one asks
  // for.
  constexpr std::size_t kMostSets = 1024;
  const ClassedGroups all = classed(computation, products, ladders, groups);
  std::vector<FittedClass> classes;
  for (const GroupClass& of : all.list) classes.push_back({of.groups});
  split_by_itself(all.arrays, classes);
  const std::vector<int> fitting = give_up_offending(computation, all.arrays, classes, recorder);
  Strategies result;
  result.classes = static_cast<int>(classes.size());
  const StrategyBuilder builder(computation, all.arrays, groups);
  if (fitting.size() == classes.size()) {
    result.list.push_back(builder.build(classes, fitting));
    return result;
  }
  const Sets excluded = conflicts(all.arrays, classes);
  for (const auto& list : excluded) result.conflicts += static_cast<int>(list.size());
  result.conflicts /= 2;
  FittingSets sets(all.arrays, classes);
  for (const auto& set : maximal_independent_sets(excluded, kMostSets)) sets.add(set);
  for (const auto& set : sets.maximal()) result.list.push_back(builder.build(classes, set));
  std::stable_sort(result.list.begin(), result.list.end(),
                   [](const Strategy& a, const Strategy& b) { return a.saved_calls > b.saved_calls; });
  if (result.list.size() > kMostStrategies) {
    result.left_out = static_cast<int>(result.list.size() - kMostStrategies);
    result.list.resize(kMostStrategies);
  }
  for (const int g : result.list[0].unfused)
    recorder.add("astra.allocation", computation.node(groups[at(g)].to(0, 0).op).name, "", [&] {
      return Verdict::no(
          "astra.strategies",
          fmt::format("its arrays lie otherwise in the first of {} strategies", result.list.size()));
    });
  return result;
}

}  // namespace stitchwork::astra
