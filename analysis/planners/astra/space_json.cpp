#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "analysis/planners/astra/space.h"
#include "core/base/at.h"

namespace stitchwork::astra {
namespace {

using Json = nlohmann::ordered_json;

Json extents_json(const FusionGroup& group) { return {group.m(), group.n(), group.k()}; }

Json products_json(const Computation& computation, const Space& space) {
  Json list = Json::array();
  for (const Product& p : space.products.list)
    list.push_back({{"dot", computation.node(p.dot).name},
                    {"result", computation.node(p.result).name},
                    {"left", computation.node(p.left.matrix.op).name},
                    {"right", computation.node(p.right.matrix.op).name},
                    {"m", p.m()},
                    {"n", p.n()},
                    {"k", p.k()}});
  return list;
}

Json ladders_json(const Computation& computation, const Space& space) {
  Json list = Json::array();
  for (std::size_t l = 0; l < space.ladders.size(); ++l) {
    const Ladder& ladder = space.ladders[l];
    Json dots = Json::array();
    for (const int rung : ladder.rungs)
      dots.push_back(computation.node(space.products.list[at(rung)].dot).name);
    list.push_back(
        {{"root", computation.node(ladder.root).name},
         {"dots", dots},
         {"start", ladder.start == kNoNode ? Json(nullptr) : Json(computation.node(ladder.start).name)},
         {"provenance", space.provenance[l]}});
  }
  return list;
}

Json groups_json(const Device& device, const Space& space) {
  Json list = Json::array();
  for (std::size_t g = 0; g < space.groups.size(); ++g) {
    const FusionGroup& group = space.groups[g];
    if (group.products() < 2) continue;
    const Chunks pieces = chunks(group, device);
    Json sizes = Json::array();
    for (const Chunk& chunk : pieces.list)
      sizes.push_back(
          {{"size", {chunk.size[kM], chunk.size[kN], chunk.size[kK]}}, {"calls", calls(group, chunk)}});
    list.push_back({{"id", fmt::format("g{}", g)},
                    {"extents", extents_json(group)},
                    {"ladders", group.ladders},
                    {"chunks", sizes},
                    {"chunks_out_of_range", pieces.out_of_range},
                    {"chunks_left_out", pieces.left_out}});
  }
  return list;
}

Json strategy_json(const Computation& computation, const Strategy& strategy) {
  Json groups = Json::array(), unfused = Json::array(), regions = Json::array();
  for (const StrategyGroup& group : strategy.groups)
    groups.push_back({{"id", fmt::format("g{}", group.number)}, {"extents", extents_json(group.group)}});
  for (const int g : strategy.unfused) unfused.push_back(fmt::format("g{}", g));
  for (std::size_t r = 0; r < strategy.regions.size(); ++r) {
    const Region& region = strategy.regions[r];
    Json views = Json::array();
    for (const int v : region.views) {
      const View& view = strategy.views[at(v)];
      views.push_back({{"op", computation.node(view.op).name},
                       {"row", view.row},
                       {"col", view.col},
                       {"rows", view.rows},
                       {"cols", view.cols}});
    }
    regions.push_back({{"id", fmt::format("r{}", r)},
                       {"dtype", name(region.dtype)},
                       {"rows", region.rows},
                       {"cols", region.cols},
                       {"source", region.source},
                       {"views", views}});
  }
  return {
      {"saved_calls", strategy.saved_calls}, {"groups", groups}, {"unfused", unfused}, {"regions", regions}};
}

Json streams_json(const FusionPlan& plan, const Space& space) {
  Json parts = Json::array();
  for (const SuperEpoch& part : space.streams.super_epochs) {
    Json epochs = Json::array();
    for (std::size_t e = 0; e < part.epochs.size(); ++e) {
      const Epoch& epoch = part.epochs[e];
      Json classes = Json::array();
      for (const StepClass& of : epoch.classes) {
        Json steps = Json::array();
        for (const int s : of.steps) steps.push_back(plan.steps[at(s)].id);
        classes.push_back({{"steps", steps}, {"us", of.us}});
      }
      epochs.push_back(
          {{"us", epoch.us},
           {"alone", epoch.alone},
           {"choices", stream_choices(epoch, space.options.streams, behind_barrier(part, e)).size()},
           {"classes", classes}});
    }
    parts.push_back({{"us", part.us}, {"epochs", epochs}});
  }
  return parts;
}

}  // namespace

Json space_json(const Graph& model, const Device& device, const FusionPlan& plan, const Space& space) {
  const Computation& computation = planned_graph(model, plan).entry_computation();
  Json strategies = Json::array(), refused = Json::array();
  for (const Strategy& strategy : space.strategies.list)
    strategies.push_back(strategy_json(computation, strategy));
  for (const Decision& decision : space.decisions)
    refused.push_back({{"step", decision.step},
                       {"subject", decision.subject},
                       {"object", decision.object},
                       {"rule", decision.verdict.rule},
                       {"why", decision.verdict.why}});
  return {{"method", "modelled"},
          {"streams", space.options.streams},
          {"dots", space.products.dots.size()},
          {"products", products_json(computation, space)},
          {"ladders", ladders_json(computation, space)},
          {"groups", groups_json(device, space)},
          {"strategies", strategies},
          {"strategies_left_out", space.strategies.left_out},
          {"super_epochs", streams_json(plan, space)},
          {"refused", refused}};
}

}  // namespace stitchwork::astra
