#include "analysis/planners/fusionstitching/deep/subgraph_fusion.h"

#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <set>
#include <utility>

#include "analysis/planners/fusionstitching/deep/elementwise_fusion.h"
#include "core/base/error.h"
#include "core/base/interrupt.h"

namespace stitchwork::fusionstitching::deep {
namespace {

class Fusing {
 public:
  Fusing(Contraction& units, Tuner& tuner, const Options& options, Recorder& recorder)
      : units_(units), tuner_(tuner), options_(options), recorder_(recorder) {}

  std::map<NodeId, Tuned> run() {
    while (round()) {
    }
    for (const NodeId unit : units_.units())
      if (units_.is_fusible(unit) && !fusions_.contains(unit)) fusions_.emplace(unit, tuner_.seed({unit}));
    return std::move(fusions_);
  }

 private:
  bool round() {
    layers_ = find_layers(units_);
    unit_before_.assign(units_.nodes().facts.size(), kNoNode);
    for (const NodeId unit : units_.units())
      for (const NodeId op : units_.ops(unit)) unit_before_[static_cast<std::size_t>(op)] = unit;
    fused_.clear();
    bool any = false;
    for (int l = 0; l < static_cast<int>(layers_.layers.size()); ++l) {
      std::vector<NodeId> open;
      for (const NodeId unit : layers_.layers[static_cast<std::size_t>(l)])
        if (units_.unit_of(unit) == unit && units_.is_fusible(unit) && !fused_.contains(unit))
          open.push_back(unit);
      if (options_.elementwise_fusion) {
        const std::size_t before = open.size();
        open = pack_elementwise(units_, open, tuner_, options_.constraints, recorder_);
        any = any || open.size() < before;
      }
      for (const NodeId root : open) any = grow(root, l) || any;
    }
    return any;
  }

  int roof(int layer) const {
    return options_.roof == Roof::kLayer ? layers_.next_call[static_cast<std::size_t>(layer)]
                                         : std::numeric_limits<int>::max();
  }

  /// Spans are those of the round's beginning; what was fused since has that of its root.
  int span(NodeId unit) const { return layers_.of(unit); }

  const std::string& name(NodeId unit) const { return units_.nodes().name(unit); }

  bool grow(NodeId root, int layer) {
    interruption_point();
    const bool packed = units_.ops(root).size() > 1 && !fusions_.contains(root);
    std::set<std::pair<int, NodeId>> open;
    const auto add_producers = [&](NodeId of) {
      for (const NodeId unit : units_.producers(of))
        if (unit != root && span(unit) > layer && !given_up_.contains(unit)) open.insert({span(unit), unit});
    };
    given_up_.clear();
    add_producers(root);
    const bool known = fusions_.contains(root);
    if (!known && (packed || !open.empty())) fusions_.emplace(root, tuner_.seed(units_.ops(root)));
    recorder_.add("layers", name(root), "", [&] {
      return Verdict::yes("fs18.layer",
                          roof(layer) == std::numeric_limits<int>::max()
                              ? fmt::format("a root of layer {}", layer)
                              : fmt::format("a root of layer {}, below layer {}", layer, roof(layer)));
    });
    bool any = false;
    while (!open.empty()) {
      const NodeId unit = open.begin()->second;
      open.erase(open.begin());
      if (!fuse_if_consistent(root, layer, unit)) {
        given_up_.insert(unit);
        continue;
      }
      any = true;
      add_producers(unit);
      units_.merge(root, unit);
    }
    if (any || packed) fused_.insert(root);
    if (!any && !packed && !known) fusions_.erase(root);
    return any;
  }

  template <typename Why>
  bool refuse(NodeId root, NodeId unit, std::string_view rule, Why why) {
    recorder_.add("subgraph", name(unit), name(root), [&] { return Verdict::no(std::string(rule), why()); });
    return false;
  }

  /// The paper's `consistent`: if `unit` may be of the fusion of `root`, its schedules are from now on.
  bool fuse_if_consistent(NodeId root, int layer, NodeId unit) {
    if (span(unit) >= roof(layer))
      return refuse(root, unit, "fs18.roof", [&] {
        return fmt::format("layer {} is behind a layer with a library call", span(unit));
      });
    if (!units_.is_fusible(unit) || fused_.contains(unit))
      return refuse(root, unit, "fs18.user-given-up", [&] {
        return units_.is_fusible(unit) ? std::string("it is in a fusion of this round")
                                       : std::string("no kernel of ours computes it with others");
      });
    for (const NodeId op : units_.ops(unit))
      for (const Contraction::Reader& reader : units_.readers(op)) {
        const NodeId user = units_.unit_of(reader.op);
        if (user == root || user == unit || span(unit_before_[static_cast<std::size_t>(reader.op)]) <= layer)
          continue;
        return refuse(root, unit, "fs18.user-given-up",
                      [&] { return fmt::format("{}, which reads it, was given up", name(reader.op)); });
      }
    if (!may_share(root, unit)) return false;
    if (units_.reaches(unit, root))
      return refuse(root, unit, "fs18.cycle",
                    [] { return std::string("together they read and are read by what lies between"); });
    Verdict why;
    Tuned& tuned = fusions_.at(root);
    const auto known = fusions_.find(unit);
    const double alone = known != fusions_.end() ? known->second.us : tuner_.alone_us(unit);
    auto extension = tuner_.extend(root, tuned, unit, alone, recorder_.enabled() ? &why : nullptr);
    if (!extension) {
      recorder_.add("subgraph", name(unit), name(root), [&] { return why; });
      return false;
    }
    recorder_.add("subgraph", name(unit), name(root), [&] {
      return Verdict::yes("fs18.fused",
                          fmt::format("{} of {} schedules left, {:.2f} us", extension->parts.size(),
                                      tuned.cuts.size(), extension->us));
    });
    tuner_.join(tuned, std::move(*extension));
    if (known != fusions_.end()) fusions_.erase(known);
    return true;
  }

  /// What overrides and the size of a kernel say.
  bool may_share(NodeId root, NodeId unit) {
    const auto in = [&](NodeId of) { return [this, of](NodeId op) { return units_.unit_of(op) == of; }; };
    if (options_.constraints.keeps_apart(in(root), in(unit)))
      return refuse(root, unit, "override.forbid_merge",
                    [] { return std::string("an override keeps them apart"); });
    const auto* a = Constraints::find(options_.constraints.block, units_.ops(root));
    const auto* b = Constraints::find(options_.constraints.block, units_.ops(unit));
    if (a != nullptr && b != nullptr && a->second != b->second)
      return refuse(root, unit, "override.block", [&] {
        return fmt::format("overrides ask for blocks of {} and of {} threads", a->second, b->second);
      });
    const std::size_t ops = units_.ops(root).size() + units_.ops(unit).size();
    if (ops > static_cast<std::size_t>(options_.max_ops))
      return refuse(root, unit, "fs18.kernel-limits",
                    [&] { return fmt::format("{} ops, a kernel has at most {}", ops, options_.max_ops); });
    return true;
  }

  Contraction& units_;
  Tuner& tuner_;
  const Options& options_;
  Recorder& recorder_;
  Layers layers_;
  std::vector<NodeId> unit_before_;  ///< of an op when the round began
  std::map<NodeId, Tuned> fusions_;
  std::set<NodeId> fused_;     ///< in this round
  std::set<NodeId> given_up_;  ///< by the root that grows
};

}  // namespace

std::map<NodeId, Tuned> fuse(Contraction& units, Tuner& tuner, const Options& options, Recorder& recorder) {
  return Fusing(units, tuner, options, recorder).run();
}

std::string to_text(const Contraction& units, const std::map<NodeId, Tuned>& fusions) {
  std::string text;
  for (const auto& [unit, tuned] : fusions) {
    text += units.nodes().name(unit) + ":";
    for (const NodeId op : units.ops(unit)) text += " " + units.nodes().name(op);
    text += "\n";
  }
  return text;
}

}  // namespace stitchwork::fusionstitching::deep
