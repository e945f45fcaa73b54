#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <map>

#include "analysis/planners/astra/space.h"
#include "core/base/at.h"
#include "core/base/format.h"

namespace stitchwork::astra {
namespace {

std::string extents(const FusionGroup& group) {
  return fmt::format("{}x{}x{}", group.m(), group.n(), group.k());
}

class SpaceText {
 public:
  SpaceText(const Graph& graph, const Device& device, const FusionPlan& plan, const Space& space)
      : computation_(graph.entry_computation()), device_(device), plan_(plan), space_(space) {}

  std::string write() {
    write_summary();
    write_groups();
    write_strategies();
    write_epochs();
    write_refusals();
    return std::move(text_);
  }

 private:
  const std::string& name(NodeId op) const { return computation_.node(op).name; }

  /// "zi = dot.1 + dot.2", with the value that they are added to.
  std::string sum(int ladder) const {
    const Ladder& l = space_.ladders[at(ladder)];
    std::string text;
    for (const int rung : l.rungs)
      text += (text.empty() ? "" : " + ") + name(space_.products.list[at(rung)].dot);
    if (l.start != kNoNode) text += " onto " + name(l.start);
    return text == name(l.root) ? text : fmt::format("{} = {}", name(l.root), text);
  }

  void write_summary() {
    std::size_t in_ladders = 0, ladders = 0, fused = 0;
    std::map<std::string, int> by_extent;
    for (const Ladder& ladder : space_.ladders)
      if (ladder.rungs.size() > 1) {
        in_ladders += ladder.rungs.size();
        ++ladders;
      }
    for (const FusionGroup& group : space_.groups)
      if (group.products() > 1) {
        ++fused;
        ++by_extent[extents(group)];
      }
    text_ += fmt::format("{} of {} dots are products of two matrices, {} of them in {}\n",
                         space_.products.list.size(), space_.products.dots.size(), in_ladders,
                         counted(static_cast<long long>(ladders), "ladder"));
    text_ += fmt::format("{}, calls {} -> {} where all are whole",
                         counted(static_cast<long long>(fused), "fusion group"), space_.products.list.size(),
                         space_.groups.size());
    std::string list;
    for (const auto& [extent, count] : by_extent)
      list += fmt::format("{}{} : {}", list.empty() ? "" : ", ", extent, count);
    text_ += (list.empty() ? "" : "; lefts x rights x rungs " + list) + "\n";
  }

  void write_groups() {
    for (std::size_t g = 0; g < space_.groups.size(); ++g) {
      const FusionGroup& group = space_.groups[g];
      if (group.products() < 2) continue;
      text_ += fmt::format("\ngroup g{} {}: products {}x{}x{}\n", g, extents(group), group.left[0][0].free(),
                           group.right[0][0].free(), group.left[0][0].summed());
      for (const int ladder : group.ladders) text_ += "  " + sum(ladder) + "\n";
      const Chunks pieces = chunks(group, device_);
      text_ += "  chunks";
      for (const Chunk& chunk : pieces.list)
        text_ +=
            fmt::format(" {}x{}x{}:{}", chunk.size[kM], chunk.size[kN], chunk.size[kK], calls(group, chunk));
      text_ += " calls";
      if (pieces.out_of_range > 0) text_ += fmt::format("; {} refused (astra.range)", pieces.out_of_range);
      if (pieces.left_out > 0) text_ += fmt::format("; {} more", pieces.left_out);
      text_ += "\n";
    }
  }

  void write_strategies() {
    const Strategies& all = space_.strategies;
    text_ += fmt::format("\n{} (classes of groups {}, pairs that exclude each other {}{})\n",
                         all.list.size() == 1 ? "1 strategy" : fmt::format("{} strategies", all.list.size()),
                         all.classes, all.conflicts,
                         all.left_out > 0 ? fmt::format(", {} more strategies", all.left_out) : "");
    for (std::size_t s = 0; s < all.list.size(); ++s) {
      const Strategy& strategy = all.list[s];
      text_ += fmt::format("strategy s{}: saves {}", s, counted(strategy.saved_calls, "call"));
      for (std::size_t u = 0; u < strategy.unfused.size(); ++u)
        text_ += fmt::format("{} g{}", u == 0 ? "; unfused" : ",", strategy.unfused[u]);
      text_ += "\n";
      for (const StrategyGroup& group : strategy.groups)
        if (extents(group.group) != extents(space_.groups[at(group.number)]))
          text_ += fmt::format("  g{} as {}\n", group.number, extents(group.group));
      for (std::size_t r = 0; r < strategy.regions.size(); ++r) {
        const Region& region = strategy.regions[r];
        text_ += fmt::format("  r{} {}[{},{}]{}:", r, stitchwork::name(region.dtype), region.rows,
                             region.cols, region.source ? " source" : "");
        for (const int v : region.views)
          text_ += fmt::format(" {}@{},{}", name(strategy.views[at(v)].op), strategy.views[at(v)].row,
                               strategy.views[at(v)].col);
        text_ += "\n";
      }
    }
  }

  void write_epochs() {
    int epochs = 0;
    for (const SuperEpoch& part : space_.streams.super_epochs) epochs += static_cast<int>(part.epochs.size());
    text_ += fmt::format("\n{} of {} in {} and {} (modelled times)\n",
                         counted(static_cast<long long>(plan_.steps.size()), "step"), space_.plan,
                         counted(epochs, "epoch"),
                         counted(static_cast<long long>(space_.streams.super_epochs.size()), "super-epoch"));
    for (std::size_t p = 0; p < space_.streams.super_epochs.size(); ++p) {
      const SuperEpoch& part = space_.streams.super_epochs[p];
      text_ += fmt::format("super-epoch se{}: {:.1f} us\n", p, part.us);
      for (std::size_t e = 0; e < part.epochs.size(); ++e) {
        const Epoch& epoch = part.epochs[e];
        const std::size_t choices =
            stream_choices(epoch, space_.options.streams, behind_barrier(part, e)).size();
        text_ += fmt::format("  e{}: {:.1f} us, {} on {} streams{}\n", e, epoch.us,
                             counted(static_cast<long long>(choices), "choice"), space_.options.streams,
                             epoch.alone ? ", alone" : "");
        for (const StepClass& of : epoch.classes) {
          text_ += fmt::format("    {} x {:.1f} us:", of.steps.size(), of.us);
          for (const int s : of.steps) text_ += " " + plan_.steps[at(s)].id;
          text_ += "\n";
        }
      }
    }
  }

  void write_refusals() {
    std::map<std::string, std::vector<const Decision*>> rules;
    for (const Decision& decision : space_.decisions) rules[decision.verdict.rule].push_back(&decision);
    if (!rules.empty()) text_ += "\nrefused\n";
    for (const auto& [rule, list] : rules) {
      const Decision& first = *list[0];
      text_ += fmt::format("  {} {}: {}{}: {}{}\n", rule, list.size(), first.subject,
                           first.object.empty() ? "" : " and " + first.object, first.verdict.why,
                           list.size() > 1 ? ", .." : "");
    }
  }

  const Computation& computation_;
  const Device& device_;
  const FusionPlan& plan_;
  const Space& space_;
  std::string text_;
};

}  // namespace

std::string to_text(const Graph& model, const Device& device, const FusionPlan& plan, const Space& space) {
  return SpaceText(planned_graph(model, plan), device, plan, space).write();
}

}  // namespace stitchwork::astra
