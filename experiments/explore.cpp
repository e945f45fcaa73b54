#include "experiments/explore.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <nlohmann/json.hpp>

#include "analysis/planners/astra/minibatches.h"
#include "core/base/error.h"
#include "core/base/sha256.h"
#include "core/hlo/hlo_text.h"
#include "experiments/minibatch_runner.h"
#include "experiments/product_kernels.h"

namespace stitchwork {
namespace {

using astra::TreeNode;

constexpr const char* kNoTimes = "known: modelled, simulated, measured";
/// By so much an option has to be faster than another to be taken for it, of measured times: medians of three
/// passes on one GPU differ by about as much.
/// A choice, not measured here; the design of the exploration asks for it.
constexpr double kMeasuredMargin = 0.01;

std::string times_name(const TrialSpec& trial) {
  if (trial.backend == "model") return "modelled";
  if (trial.backend == "sim") return trial.sampled ? "sampled" : "simulated";
  if (trial.backend == "cuda") return "measured";
  throw Error(fmt::format("backend {} has no times to explore", trial.backend), kNoTimes);
}

void write_tree(const TreeNode& node, std::string& text) {
  text += fmt::format("{} {}", static_cast<int>(node.mode), node.name);
  for (const std::string& option : node.options) text += " " + option;
  text += "(";
  for (const TreeNode& child : node.children) write_tree(child, text);
  text += ")";
}

/// Whether all products of a mini-batch are by kernels of ours.
Verdict own_products(const Model& model, const TrialSpec& trial) {
  if (trial.backend != "sim") return Verdict::no("tiled.others", "");
  return all_tiled(model.graph, trial.planner, trial.options);
}

/// That products are tried by where mini-batches are run as a whole: the library's choice first, where there
/// is one, and ours where they make all products.
std::vector<std::string> measured_kernels(const Model& model, const TrialSpec& trial, bool has_blas) {
  const bool ours = all_tiled(model.graph, trial.planner, trial.options).ok;
  std::vector<std::string> kernels;
  if (has_blas || !ours) kernels.emplace_back(astra::kLibraryKernel);
  if (ours)
    for (const std::string& kernel : tiled_kernel_names()) kernels.push_back(kernel);
  return kernels;
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
                                const std::string& products, const std::optional<cuda::Gpu>& gpu,
                                const std::string& state) {
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
  if (gpu) {
    identity.emplace_back("GPU", gpu->name);
    identity.emplace_back("driver", fmt::to_string(gpu->driver_version));
    identity.emplace_back("repeats", fmt::to_string(trial.repeats));
    identity.emplace_back("convolutions", trial.convolutions);
  }
  identity.emplace_back("training", state.empty() ? "none" : fmt::format("{}, seed {}", state, trial.seed));
  std::string text;
  write_tree(tree, text);
  identity.emplace_back("space", sha256_hex(text).substr(0, 16));
  return identity;
}

}  // namespace

class Explorer::Impl {
 public:
  Impl(const Model& model, const ExploreOptions& options)
      : model_(model),
        options_(options),
        own_(own_products(model, options.trial)),
        simulated_(device(options.trial.device), options.trial.sampled, options.trial.check,
                   options.trial.compile) {
    const TrialSpec& trial = options.trial;
    if (trial.backend != "model") runner_.emplace(model, trial, options.driver, options.libraries);
    if (options.train) training_.emplace(model, trial.seed, *options.train);
    make_minibatches();
    result_.model = model.graph.source;
    result_.model_sha256 = model.graph.source_sha256;
    result_.device = device(trial.device).id;
    result_.planner = trial.planner;
    result_.times = times_name(trial);
    if (runner_) result_.gpu = runner_->gpu();
    if (training_) result_.state = training_->text();
    result_.method = method_of();
    result_.kernels = minibatches_->kernels();
    result_.why_library = own_.why;
    if (options.history.empty()) return;
    history_.emplace(
        ExplorationHistory::open(options.history,
                                 identity_of(model, trial, minibatches_->tree({}), own_ ? "tiled" : "library",
                                             result_.gpu, result_.state),
                                 options.resume));
    result_.minibatches = history_->minibatches();
    result_.resumed = result_.minibatches.size();
    index_ = history_->index();
    if (training_ && result_.resumed > 0) training_->restore(history_->state());
    for (std::size_t i = 0; i < result_.resumed; ++i) count(i);
  }

  bool step() {
    tell("planning");
    astra::Bindings bindings;
    if (minibatches_->next(index_, bindings)) return false;
    run_one(std::move(bindings));
    return true;
  }

  std::size_t minibatches() const { return result_.minibatches.size(); }
  Training* training() { return training_ ? &*training_ : nullptr; }

  Exploration finish() {
    astra::Bindings left;
    result_.done = minibatches_->next(index_, left);
    const TreeNode& tree = minibatches_->tree(index_);
    result_.trials = astra::trials(tree);
    result_.log10_configurations = astra::log10_configurations(tree);
    result_.strategies = tree.options.size();
    if (without_points_us_ > 0) result_.points_overhead = with_points_us_ / without_points_us_ - 1;
    if (result_.minibatches.empty()) return std::move(result_);
    const astra::Bindings& best = result_.minibatches[result_.best].bindings;
    result_.plan = minibatches_->plan(best);
    if (own_) result_.library_us = minibatches_->us_of_steps(best);
    return std::move(result_);
  }

 private:
  bool measures() const { return options_.trial.backend == "cuda"; }

  void make_minibatches() {
    const TrialSpec& trial = options_.trial;
    const Device& target = device(trial.device);
    if (measures())
      minibatches_.emplace(
          model_.graph, target, trial.planner, trial.options,
          [this](const FusionPlan& plan) { return measured(plan); },
          measured_kernels(model_, trial, runner_->has_blas()), kMeasuredMargin);
    else
      minibatches_.emplace(
          model_.graph, target, trial.planner, trial.options,
          [this](const FusionPlan& plan) { return step_times(plan); },
          own_ ? std::optional(tiled_kernels(simulated_)) : std::nullopt);
  }

  std::string method_of() const {
    if (result_.times == "modelled") return "modelled";
    if (result_.gpu) return fmt::format("measured on {}", result_.gpu->name);
    if (own_)
      return fmt::format("kernels and matrix products {}, other library calls modelled", result_.times);
    return fmt::format("kernels {}, library calls modelled", result_.times);
  }

  /// By step of a plan on one stream, products by the library or the default of ours: as `run` has them.
  std::vector<double> step_times(const FusionPlan& plan) {
    const TrialSpec& trial = options_.trial;
    std::vector<double> us;
    if (trial.backend == "model") {
      for (const PlanStep& step : plan.steps) us.push_back(step.predicted_us);
      return us;
    }
    // What is checked is made by one of our kernels where these are tried; its times are asked for elsewhere.
    const bool check = trial.check && !training_;
    FusionPlan made = plan;
    if (own_ && check) name_products(made);
    const RunResult run = runner_->run(made, fixed_inputs());
    if (check) compare(run, fixed_inputs());
    for (std::size_t i = 0; i < plan.steps.size(); ++i)
      us.push_back(plan.steps[i].kind == StepKind::kLibrary ? plan.steps[i].predicted_us
                                                            : run.steps[i].time_us);
    return us;
  }

  void name_products(FusionPlan& plan) const {
    const Computation& computation = planned_graph(model_.graph, plan).entry_computation();
    for (PlanStep& step : plan.steps)
      if (step.kind == StepKind::kLibrary && computation.node(step.nodes.front()).op == Op::kDot)
        step.variant = kDefaultTiled;
  }

  astra::Pass measured(const FusionPlan& plan) {
    const std::vector<Literal> drawn =
        training_ ? training_->inputs(result_.minibatches.size()) : std::vector<Literal>();
    const std::vector<Literal>& inputs = training_ ? drawn : fixed_inputs();
    RunResult run = runner_->run(plan, inputs);
    if (options_.trial.check) compare(run, inputs);
    const astra::Pass pass = measured_pass(model_, run);
    with_points_us_ += run.repeated->points_us;
    without_points_us_ += run.repeated->stream_us;
    made_ = std::move(run.outputs);
    return pass;
  }

  /// The mini-batch's, which its times are not of.
  void simulate(const astra::Bindings& bindings) {
    const std::vector<Literal> inputs = training_->inputs(result_.minibatches.size());
    RunResult run = runner_->run(minibatches_->plan(bindings), inputs);
    if (options_.trial.check) compare(run, inputs);
    made_ = std::move(run.outputs);
  }

  const std::vector<Literal>& fixed_inputs() {
    if (!inputs_) inputs_ = trial_inputs(model_, options_.trial);
    return *inputs_;
  }

  void compare(const RunResult& run, const std::vector<Literal>& inputs) {
    std::optional<Judge> drawn;
    if (training_)
      drawn.emplace(model_.graph, inputs, arithmetic_of(options_.trial));
    else if (!judge_)
      judge_.emplace(model_.graph, inputs, arithmetic_of(options_.trial));
    const CheckResult check = (training_ ? *drawn : *judge_).check(run.outputs);
    if (!check.ok)
      throw Error(model_.graph.source, 0, 0, "a mini-batch computes something else: " + check.message);
  }

  void run_one(astra::Bindings bindings) {
    tell("running");
    const std::map<std::string, double> us = minibatches_->run(bindings);
    astra::ProfileIndex news;
    std::vector<std::string> names;
    for (const auto& [name, key] : astra::keys(minibatches_->tree(index_), astra::kBucket, bindings))
      if (!index_.contains(key)) {
        news.emplace(key, us.at(name));
        names.push_back(name);
      }
    if (training_ && !measures()) simulate(bindings);
    MiniBatch minibatch{std::move(bindings), us.at("strategy"), "default", {}};
    if (!result_.minibatches.empty())
      minibatch.dimension = dimension_of(names, minibatch.bindings, minibatches_->default_kernel());
    std::vector<std::span<const std::byte>> state;
    if (training_) {
      minibatch.loss = training_->loss(made_);
      training_->step(made_);
      for (const auto& [parameter, value] : training_->state()) state.emplace_back(value.bytes);
    }
    if (history_) history_->add(minibatch, news, state);
    index_.insert(news.begin(), news.end());
    result_.minibatches.push_back(std::move(minibatch));
    count(result_.minibatches.size() - 1);
  }

  void count(std::size_t i) {
    const double margin = measures() ? kMeasuredMargin : 0;
    const MiniBatch& one = result_.minibatches[i];
    ++result_.by_dimension[one.dimension];
    if (one.us < result_.minibatches[result_.best].us * (1 - margin)) result_.best = i;
  }

  void tell(const std::string& what) const {
    if (!options_.progress) return;
    const bool any = !result_.minibatches.empty();
    options_.progress(result_.minibatches.size(), any ? result_.minibatches.back().us : 0,
                      any ? result_.minibatches[result_.best].us : 0, what);
  }

  const Model& model_;
  const ExploreOptions& options_;
  Verdict own_;  ///< whether all products are by our own kernels
  SimulatedProducts simulated_;
  std::optional<MiniBatchRunner> runner_;  ///< nothing: modelled
  std::optional<Training> training_;
  std::optional<astra::MiniBatches> minibatches_;
  std::optional<ExplorationHistory> history_;
  std::optional<std::vector<Literal>> inputs_;  ///< of mini-batches that train nothing
  std::optional<Judge> judge_;                  ///< likewise
  std::vector<Literal> made_;                   ///< by the mini-batch that was run last
  double with_points_us_ = 0, without_points_us_ = 0;
  astra::ProfileIndex index_;
  Exploration result_;
};

Explorer::Explorer(const Model& model, const ExploreOptions& options) {
  times_name(options.trial);
  if (options.train && options.trial.backend == "model")
    throw Error("modelled mini-batches train nothing: they are not run", "use --times simulated");
  impl_ = std::make_unique<Impl>(model, options);
}

Explorer::~Explorer() = default;
bool Explorer::step() { return impl_->step(); }
std::size_t Explorer::minibatches() const { return impl_->minibatches(); }
Training* Explorer::training() { return impl_->training(); }
Exploration Explorer::finish() { return impl_->finish(); }

Exploration explore(const Model& model, const ExploreOptions& options) {
  Explorer explorer(model, options);
  const std::size_t most = options.batches.value_or(std::numeric_limits<std::size_t>::max());
  for (std::size_t n = 0; n < most && explorer.step();) ++n;
  return explorer.finish();
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
  for (const MiniBatch& one : e.minibatches) {
    ordered_json& row = minibatches.emplace_back(ordered_json{{"us", one.us}, {"dimension", one.dimension}});
    if (one.loss) row["loss"] = *one.loss;
  }
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
          {"gpu", e.gpu ? ordered_json(e.gpu->name) : ordered_json()},
          {"points_overhead", e.points_overhead ? ordered_json(*e.points_overhead) : ordered_json()},
          {"training", e.state.empty() ? ordered_json() : ordered_json(e.state)},
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
