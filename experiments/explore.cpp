#include "experiments/explore.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <nlohmann/json.hpp>

#include "analysis/planners/astra/minibatches.h"
#include "core/base/error.h"
#include "core/base/sha256.h"
#include "core/hlo/hlo_text.h"
#include "experiments/product_kernels.h"

namespace stitchwork {
namespace {

using astra::TreeNode;

constexpr const char* kNoTimes = "known: modelled, simulated";

std::string times_name(const TrialSpec& trial) {
  if (trial.backend == "model") return "modelled";
  if (trial.backend == "sim") return trial.sampled ? "sampled" : "simulated";
  throw Error(fmt::format("backend {} has no times to explore", trial.backend), kNoTimes);
}

void write_tree(const TreeNode& node, std::string& text) {
  text += fmt::format("{} {}", static_cast<int>(node.mode), node.name);
  for (const std::string& option : node.options) text += " " + option;
  text += "(";
  for (const TreeNode& child : node.children) write_tree(child, text);
  text += ")";
}

/// By step, as `run` has it. `products`: tiled kernels are tried, so that what is checked is made by one of
/// them; its times are asked for elsewhere.
std::vector<double> timed(const Model& model, const TrialSpec& trial, const FusionPlan& plan, bool products) {
  std::vector<double> us;
  if (trial.backend == "model") {
    for (const PlanStep& step : plan.steps) us.push_back(step.predicted_us);
    return us;
  }
  TrialSpec spec = trial;
  spec.plan = plan;
  if (products && trial.check) spec.products = kDefaultTiled;
  const TrialResult result = run_trial(model, spec);
  if (result.check && !result.check->ok)
    throw Error(model.graph.source, 0, 0, "a mini-batch computes something else: " + result.check->message);
  for (std::size_t i = 0; i < plan.steps.size(); ++i)
    us.push_back(plan.steps[i].kind == StepKind::kLibrary ? plan.steps[i].predicted_us
                                                          : result.run.steps[i].time_us);
  return us;
}

/// What of the tree has been run for the first time.
std::string dimension_of(const std::vector<std::string>& names, const astra::Bindings& bindings,
                         const std::string& default_kernel) {
  bool kernels = false, streams = false;
  for (const std::string& name : names) {
    const bool epoch = name.starts_with("se") && name.find("/e") != std::string::npos;
    const bool call =
        name.starts_with("dot:") || (name.starts_with("g") && name.find('/') != std::string::npos);
    if (call && bindings.at(name) == default_kernel) return "fusion";
    kernels = kernels || call;
    streams = streams || epoch;
  }
  return kernels ? "kernels" : streams ? "streams" : "allocations";
}

ExplorationIdentity identity_of(const Model& model, const TrialSpec& trial, const TreeNode& tree,
                                const std::string& products) {
  ExplorationIdentity identity = {{"times", times_name(trial)},
                                  {"device", device(trial.device).id},
                                  {"model", model.graph.source_sha256},
                                  {"planner", trial.planner},
                                  {"results version", trial.results}};
  for (const auto& [name, value] : resolve_knobs(planner(trial.planner), trial.options))
    identity.emplace_back(name, value);
  identity.emplace_back("tf32", trial.options.tf32 ? "on" : "off");
  if (trial.backend == "sim") {
    identity.emplace_back("seed", fmt::to_string(trial.seed));
    identity.emplace_back("products", products);
    identity.emplace_back("cache", trial.cache == sim::CacheMode::kCold ? "cold" : "warm");
  }
  std::string text;
  write_tree(tree, text);
  identity.emplace_back("space", sha256_hex(text).substr(0, 16));
  return identity;
}

class Explorer {
 public:
  Explorer(const Model& model, const ExploreOptions& options)
      : options_(options),
        own_(options.trial.backend == "sim"
                 ? all_tiled(model.graph, options.trial.planner, options.trial.options)
                 : Verdict::no("tiled.modelled", "")),
        simulated_(device(options.trial.device), options.trial.sampled, options.trial.check,
                   options.trial.compile),
        minibatches_(
            model.graph, device(options.trial.device), options.trial.planner, options.trial.options,
            [this, &model](const FusionPlan& plan) { return timed(model, options_.trial, plan, own_.ok); },
            own_ ? std::optional(tiled_kernels(simulated_)) : std::nullopt) {
    result_.model = model.graph.source;
    result_.model_sha256 = model.graph.source_sha256;
    result_.device = device(options.trial.device).id;
    result_.planner = options.trial.planner;
    result_.times = times_name(options.trial);
    result_.method = method_of();
    result_.kernels = minibatches_.kernels();
    result_.why_library = own_.why;
    if (options.history.empty()) return;
    history_.emplace(ExplorationHistory::open(
        options.history, identity_of(model, options.trial, minibatches_.tree({}), own_ ? "tiled" : "library"),
        options.resume));
    result_.minibatches = history_->minibatches();
    result_.resumed = result_.minibatches.size();
    index_ = history_->index();
    for (std::size_t i = 0; i < result_.resumed; ++i) count(i);
  }

  Exploration run() {
    const std::size_t budget = options_.batches.value_or(std::numeric_limits<std::size_t>::max());
    for (std::size_t n = 0; n < budget; ++n) {
      tell("planning");
      const TreeNode& tree = minibatches_.tree(index_);
      astra::Bindings bindings;
      if (astra::next(tree, astra::kBucket, index_, bindings)) break;
      run_one(tree, std::move(bindings));
    }
    astra::Bindings left;
    const TreeNode& tree = minibatches_.tree(index_);
    result_.done = astra::next(tree, astra::kBucket, index_, left);
    result_.trials = astra::trials(tree);
    result_.log10_configurations = astra::log10_configurations(tree);
    result_.strategies = tree.options.size();
    if (result_.minibatches.empty()) return std::move(result_);
    const astra::Bindings& best = result_.minibatches[result_.best].bindings;
    result_.plan = minibatches_.plan(best);
    if (own_) result_.library_us = minibatches_.us_of_steps(best);
    return std::move(result_);
  }

 private:
  std::string method_of() const {
    if (result_.times == "modelled") return "modelled";
    if (own_)
      return fmt::format("kernels and matrix products {}, other library calls modelled", result_.times);
    return fmt::format("kernels {}, library calls modelled", result_.times);
  }

  void run_one(const TreeNode& tree, astra::Bindings bindings) {
    tell("running");
    const std::map<std::string, double> us = minibatches_.run(bindings);
    astra::ProfileIndex news;
    std::vector<std::string> names;
    for (const auto& [name, key] : astra::keys(tree, astra::kBucket, bindings))
      if (!index_.contains(key)) {
        news.emplace(key, us.at(name));
        names.push_back(name);
      }
    MiniBatch minibatch{std::move(bindings), us.at("strategy"), "default"};
    if (!result_.minibatches.empty())
      minibatch.dimension = dimension_of(names, minibatch.bindings, minibatches_.default_kernel());
    if (history_) history_->add(minibatch, news);
    index_.insert(news.begin(), news.end());
    result_.minibatches.push_back(std::move(minibatch));
    count(result_.minibatches.size() - 1);
  }

  void count(std::size_t i) {
    const MiniBatch& one = result_.minibatches[i];
    ++result_.by_dimension[one.dimension];
    if (one.us < result_.minibatches[result_.best].us) result_.best = i;
  }

  void tell(const std::string& what) const {
    if (!options_.progress) return;
    const bool any = !result_.minibatches.empty();
    options_.progress(result_.minibatches.size(), any ? result_.minibatches.back().us : 0,
                      any ? result_.minibatches[result_.best].us : 0, what);
  }

  const ExploreOptions& options_;
  Verdict own_;  ///< whether products are by our own kernels
  SimulatedProducts simulated_;
  astra::MiniBatches minibatches_;
  std::optional<ExplorationHistory> history_;
  astra::ProfileIndex index_;
  Exploration result_;
};

}  // namespace

Exploration explore(const Model& model, const ExploreOptions& options) {
  times_name(options.trial);
  return Explorer(model, options).run();
}

Figure trajectory(const Exploration& e) {
  Figure figure;
  figure.id = "trajectory";
  figure.title =
      fmt::format("Exploration of {} by {} on {}: each mini-batch's time", e.model, e.planner, e.device);
  figure.kind = FigureKind::kPoints;
  figure.width = FigureWidth::kPage;
  figure.x.label = "mini-batch";
  figure.y.label = fmt::format("us ({})", e.times);
  const std::vector<std::pair<std::string, std::string>> dimensions = {
      {"default", "default"}, {"fusion", "fusion"},           {"kernels", "kernels"},
      {"streams", "streams"}, {"allocations", "allocations"},
  };
  FigureSeries best{.name = "best so far", .style = 0};
  best.method = e.times;
  double least = std::numeric_limits<double>::infinity();
  for (std::size_t i = 0; i < e.minibatches.size(); ++i) {
    least = std::min(least, e.minibatches[i].us);
    best.x.push_back(static_cast<double>(i + 1));
    best.y.emplace_back(least);
  }
  int style = 1;
  for (const auto& [dimension, name] : dimensions) {
    FigureSeries points{.name = name, .style = style++, .mark = FigureMark::kPoints};
    points.method = e.times;
    for (std::size_t i = 0; i < e.minibatches.size(); ++i)
      if (e.minibatches[i].dimension == dimension) {
        points.x.push_back(static_cast<double>(i + 1));
        points.y.emplace_back(e.minibatches[i].us);
      }
    if (!points.x.empty()) figure.series.push_back(std::move(points));
  }
  figure.series.push_back(std::move(best));
  figure.provenance = {{"model", e.model_sha256},
                       {"device", e.device},
                       {"planner", e.planner},
                       {"version", results_version()}};
  return figure;
}

nlohmann::ordered_json exploration_json(const Exploration& e) {
  using nlohmann::ordered_json;
  ordered_json minibatches = ordered_json::array(), dimensions = ordered_json::object(), best;
  for (const MiniBatch& one : e.minibatches)
    minibatches.push_back({{"us", one.us}, {"dimension", one.dimension}});
  for (const char* dimension : {"default", "fusion", "kernels", "streams", "allocations"}) {
    const auto found = e.by_dimension.find(dimension);
    dimensions[dimension] = found == e.by_dimension.end() ? 0 : found->second;
  }
  if (!e.minibatches.empty())
    best = {{"minibatch", e.best + 1},
            {"bindings", e.minibatches[e.best].bindings},
            {"library_us", e.library_us ? ordered_json(*e.library_us) : ordered_json()},
            {"counts",
             {{"memory_kernels", e.plan.counts.memory_kernels},
              {"library_calls", e.plan.counts.library_calls},
              {"copies", e.plan.counts.copies},
              {"memsets", e.plan.counts.memsets}}}};
  const auto us_of = [&](std::size_t i) {
    return e.minibatches.empty() ? ordered_json() : ordered_json(e.minibatches[i].us);
  };
  return {{"schema", "stitchwork.exploration/1"},
          {"model", {{"path", e.model}, {"sha256", e.model_sha256}}},
          {"device", e.device},
          {"planner", e.planner},
          {"times", e.times},
          {"method", e.method},
          {"product_kernels", e.kernels},
          {"why_library", e.why_library.empty() ? ordered_json() : ordered_json(e.why_library)},
          {"done", e.done},
          {"resumed", e.resumed},
          {"by_dimension", dimensions},
          {"first_us", us_of(0)},
          {"best_us", us_of(e.best)},
          {"last_us", us_of(e.minibatches.empty() ? 0 : e.minibatches.size() - 1)},
          {"trials", e.trials},
          {"log10_configurations", e.log10_configurations},
          {"strategies", e.strategies},
          {"best", best},
          {"minibatches", minibatches}};
}

}  // namespace stitchwork
