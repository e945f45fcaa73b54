// Which products become one: explored over modelled times, then compared as whole plans.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <limits>
#include <optional>

#include "analysis/judge/library_cost.h"
#include "analysis/planners/astra/planner.h"
#include "analysis/planners/astra/product_trials.h"
#include "core/base/at.h"
#include "core/base/error.h"
#include "occupancy_model/library.h"

namespace stitchwork {
namespace astra {
namespace {

/// No bound: a tree of modelled times is explored to its end.
constexpr std::size_t kNoBudget = std::numeric_limits<std::size_t>::max();

class Chooser {
 public:
  Chooser(const Graph& model, const Device& device, const PlanOptions& options, Recorder& recorder)
      : model_(model),
        computation_(model.entry_computation()),
        device_(device),
        options_(options),
        recorder_(recorder),
        trials_(model, device, options),
        space_(trials_.space()),
        tree_options_(trials_.options()) {}

  rewriting::RewrittenGraph run() {
    if (recorder_.enabled()) recorder_.append(trials_.take_decisions());
    rewriting::RewrittenGraph best = rewriting::unchanged(model_);
    if (!trials_.any()) {
      record_nothing();
      return best;
    }
    const double alone_us = us(model_);
    Explored laid = explored(trials_, alone_us);
    if (tree_options_.appends) return taken(trials_, std::move(laid), alone_us).value_or(std::move(best));
    // What cannot lie beside the others is copied, which prices do not tell before the whole is planned.
    PlanOptions copying = options_;
    copying.knobs["views"] = "off";
    ProductTrials copied_trials(model_, device_, copying);
    Explored copied = explored(copied_trials, alone_us);
    const bool lies = laid.least_us() <= copied.least_us();
    recorder_.add("astra.views", computation_.node(computation_.root).name, "", [&] {
      const std::string why = fmt::format(
          "operands computed beside each other: {:.2f} us, copied there: {:.2f} us (whole plans, "
          "modelled)",
          laid.least_us(), copied.least_us());
      return lies ? Verdict::yes("astra.views", why) : Verdict::no("astra.slower", why);
    });
    return (lies ? taken(trials_, std::move(laid), alone_us)
                 : taken(copied_trials, std::move(copied), alone_us))
        .value_or(std::move(best));
  }

 private:
  /// The best of each strategy as a whole.
  struct Explored {
    std::size_t minibatches = 0;
    std::vector<double> whole_us;
    std::vector<Bindings> bindings;
    std::size_t best = 0;  ///< strategy
    rewriting::RewrittenGraph graph;
    double least_us() const { return whole_us.at(best); }
  };

  Explored explored(ProductTrials& trials, double alone_us) {
    trials.price(rest_us(alone_us));
    const CallPrices& prices = trials.prices();
    const TreeNode& tree = trials.tree();
    ProfileIndex index;
    Explored result;
    result.minibatches =
        explore(
            tree, "b0", index, [&](const Bindings& b) { return prices.measure(b); }, kNoBudget)
            .size();
    for (std::size_t s = 0; s < tree.options.size(); ++s) {
      Bindings bindings;
      SW_CHECK(next(tree.children[s], fmt::format("b0/strategy={}", tree.options[s]), index, bindings),
               "strategy {} is not explored", s);
      rewriting::RewrittenGraph graph = trials.joined(s, bindings, recorder_);
      result.whole_us.push_back(graph.steps.empty() ? alone_us : us(graph.graph));
      result.bindings.push_back(std::move(bindings));
      if (s > 0 && result.whole_us[s] >= result.least_us()) continue;
      result.best = s;
      result.graph = std::move(graph);
    }
    return result;
  }

  /// Nothing where every product by itself is as fast.
  std::optional<rewriting::RewrittenGraph> taken(const ProductTrials& trials, Explored of, double alone_us) {
    const bool faster = of.least_us() < alone_us;
    const TreeNode& tree = trials.tree();
    record_strategies(tree, of.minibatches, alone_us, of.whole_us, faster ? of.best : tree.options.size());
    record_groups(trials.prices(), of.best, faster, of.bindings[of.best]);
    if (!faster) return std::nullopt;
    return std::move(of.graph);
  }

  double us(const Graph& graph) const { return plan_elementwise(graph, device_, options_).predicted_us; }

  /// Of a mini-batch of so many us what is no product.
  double rest_us(double whole) const {
    for (const NodeId dot : space_.products.dots)
      if (const auto product = matrix_product(computation_, computation_.node(dot), options_.tf32))
        whole -= library_time(device_, *product).total_us + device_.launch_gap_us;
    return whole;
  }

  void record_nothing() {
    recorder_.add(kFusionStep, computation_.node(computation_.root).name, "", [&] {
      return Verdict::no(tree_options_.chunks ? "astra.no-groups" : "astra.off",
                         tree_options_.chunks ? fmt::format("of {} dots no two may be one product",
                                                            space_.products.dots.size())
                                              : "gemm_fusion=off: every product is a call of its own");
    });
  }

  void record_strategies(const TreeNode& tree, std::size_t minibatches, double alone_us,
                         const std::vector<double>& whole_us, std::size_t taken) {
    for (std::size_t s = 0; s < whole_us.size(); ++s)
      recorder_.add("astra.allocation", computation_.node(computation_.root).name, tree.options[s], [&] {
        const std::string why = fmt::format(
            "{} groups, the whole plan takes {:.2f} us (modelled), with every product by itself {:.2f}; {} "
            "mini-batches of modelled times, {:g} trials one by one",
            space_.strategies.list[s].groups.size(), whole_us[s], alone_us, minibatches, trials(tree));
        return s == taken ? Verdict::yes("astra.strategy", why) : Verdict::no("astra.slower", why);
      });
  }

  /// Of each product of a group, its chunk with the times of all.
  void record_groups(const CallPrices& prices, std::size_t s, bool taken, const Bindings& bindings) {
    if (!recorder_.enabled()) return;
    for (const StrategyGroup& group : space_.strategies.list[s].groups) {
      const std::string name = fmt::format("g{}", group.number);
      std::vector<std::pair<double, std::string>> times;
      for (const auto& [chunk, list] : prices.group(s, group.number)) {
        double sum = 0;
        for (const PricedCall& call : list)
          sum += *std::min_element(call.us.begin(), call.us.end()) + call.around_us;
        times.emplace_back(sum, chunk);
      }
      std::sort(times.begin(), times.end());
      std::string told;
      for (const auto& [us, chunk] : times)
        told += fmt::format("{}{} {:.2f} us", told.empty() ? "" : "; ", chunk, us);
      const std::string chunk = taken ? bindings.at(name) : "1x1x1";
      for (const PricedCall& call : prices.calls(s, group.number, chunk))
        for (const NodeId dot : call.dots) record_dot(group, call, dot, chunk, told);
    }
  }

  void record_dot(const StrategyGroup& group, const PricedCall& call, NodeId dot, const std::string& chunk,
                  const std::string& told) {
    const std::string root = computation_.node(space_.ladders[at(call.ladders[0])].root).name;
    recorder_.add("astra.chunk", computation_.node(dot).name, root, [&] {
      const FusionGroup& g = group.group;
      const std::string why = fmt::format(
          "group g{} of {}x{}x{} products in pieces of {} (lefts x rights x rungs; modelled, with "
          "operands appended and results copied: {})",
          group.number, g.m(), g.n(), g.k(), chunk, told);
      return call.dots.size() > 1 ? Verdict::yes("astra.fused", why) : Verdict::no("astra.chunk", why);
    });
    if (tree_options_.variants.size() == 1) return;
    recorder_.add("astra.kernel", computation_.node(dot).name, root, [&] {
      std::string why = "modelled, with a launch gap: ";
      for (std::size_t v = 0; v < call.us.size(); ++v)
        why += fmt::format("{}{} {:.2f} us", v == 0 ? "" : "; ", tree_options_.variants[v], call.us[v]);
      return Verdict::yes("astra.library", why + "; the library's estimate is its fastest kernel's");
    });
  }

  const Graph& model_;
  const Computation& computation_;
  const Device& device_;
  const PlanOptions& options_;
  Recorder& recorder_;
  ProductTrials trials_;
  const Space& space_;
  const TreeOptions& tree_options_;
};

}  // namespace
}  // namespace astra

rewriting::RewrittenGraph rewrite_astra(const Graph& model, const Device& device, const PlanOptions& options,
                                        Recorder& recorder) {
  return astra::Chooser(model, device, options, recorder).run();
}

}  // namespace stitchwork
