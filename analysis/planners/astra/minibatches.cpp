#include "analysis/planners/astra/minibatches.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <numeric>
#include <set>

#include "analysis/judge/library_cost.h"
#include "analysis/plan/step_order.h"
#include "analysis/planners/astra/planner.h"
#include "analysis/verify/verify.h"
#include "core/base/at.h"
#include "core/base/error.h"

namespace stitchwork::astra {
namespace {

PlanOptions resolved(std::string_view planner_name, const PlanOptions& options) {
  const Planner& row = planner(planner_name);
  if (!explores(row)) {
    std::vector<std::string_view> known;
    for (const Planner& p : planners())
      if (explores(p)) known.push_back(p.name);
    throw Error(fmt::format("planner {} has nothing to explore", row.name),
                fmt::format("known that do: {}", fmt::join(known, ", ")));
  }
  if (!options.edits.empty())
    throw Error(fmt::format("planner {} takes no overrides", row.name), "leave them out");
  PlanOptions result = options;
  result.knobs = resolve_knobs(row, options);
  return result;
}

/// Whether steps are dealt to streams in these bindings.
bool binds_epochs(const Bindings& bindings) { return bindings.contains(StreamTrials::epoch_name(0, 0)); }

std::string group_name(const StrategyGroup& group) { return fmt::format("g{}", group.number); }

}  // namespace

bool explores(const Planner& row) { return row.rewrite == rewrite_astra; }

double trials_of_plan(const Graph& model, const Device& device, const FusionPlan& plan) {
  PlanOptions options = as_planned(plan, false);
  options.knobs = resolve_knobs(planner(plan.planner), options);
  ProductTrials products(model, device, options);
  products.price(0);
  const int streams = std::stoi(options.knobs.at("streams"));
  double epochs = 0;
  if (streams > 1) epochs = trials(StreamTrials(planned_graph(model, plan), device, plan, streams).tree());
  return trials(products.tree()) + epochs * static_cast<double>(products.tree().options.size());
}

MiniBatches::MiniBatches(const Graph& model, const Device& device, std::string planner,
                         const PlanOptions& options, StepTimes times, std::optional<ProductKernels> kernels)
    : model_(model),
      device_(device),
      planner_(std::move(planner)),
      options_(resolved(planner_, options)),
      times_(std::move(times)),
      kernels_(std::move(kernels)),
      streams_(std::stoi(options_.knobs.at("streams"))),
      products_(model, device, options_, kernels_ ? kernels_->names : std::vector<std::string>()) {
  products_.price(0);
  tree_ = products_.tree();
}

MiniBatches::MiniBatches(const Graph& model, const Device& device, std::string planner,
                         const PlanOptions& options, RunPass pass, std::vector<std::string> kernels,
                         double margin)
    : model_(model),
      device_(device),
      planner_(std::move(planner)),
      options_(resolved(planner_, options)),
      pass_(std::move(pass)),
      margin_(margin),
      streams_(std::stoi(options_.knobs.at("streams"))),
      products_(model, device, options_, kernels) {
  products_.price(0);
  tree_ = products_.tree();
}

bool MiniBatches::next(const ProfileIndex& index, Bindings& bindings) {
  return astra::next(tree(index), kBucket, index, bindings, margin_);
}

const TreeNode& MiniBatches::tree(const ProfileIndex& index) {
  if (streams_ == 1) return tree_;
  for (std::size_t s = 0; s < tree_.options.size(); ++s) {
    if (settled_.contains(s)) continue;
    Bindings bindings;
    const std::string context = fmt::format("{}/strategy={}", kBucket, tree_.options[s]);
    if (!astra::next(tree_.children[s].children[0], context, index, bindings, margin_)) break;
    bindings["strategy"] = tree_.options[s];
    Instance found = instance(bindings);
    const Graph& graph = planned_graph(model_, found.plan);
    found.streams.emplace(graph, device_, found.plan, streams_);
    tree_.children[s].children[1] = found.streams->tree();
    settled_.emplace(s, std::move(found));
  }
  return tree_;
}

std::size_t MiniBatches::strategy_of(const Bindings& bindings) const {
  const auto found = std::find(tree_.options.begin(), tree_.options.end(), bindings.at("strategy"));
  SW_CHECK(found != tree_.options.end(), "no strategy {}", bindings.at("strategy"));
  return static_cast<std::size_t>(found - tree_.options.begin());
}

MiniBatches::Instance& MiniBatches::instance(const Bindings& bindings) {
  const std::size_t s = strategy_of(bindings);
  std::string key = tree_.options[s];
  for (const StrategyGroup& group : products_.space().strategies.list[s].groups)
    key += fmt::format(" {}={}", group_name(group), bindings.at(group_name(group)));
  if (const auto known = settled_.find(s); known != settled_.end() && known->second.key == key)
    return known->second;
  if (!last_ || last_->key != key) {
    last_.emplace(make_instance(bindings));
    last_->key = std::move(key);
  }
  return *last_;
}

MiniBatches::Instance MiniBatches::make_instance(const Bindings& bindings) const {
  Instance made;
  PlanOptions options = options_;
  options.knobs["streams"] = "1";
  Recorder unrecorded(false);
  options.rewrites = products_.joined(strategy_of(bindings), bindings, unrecorded).steps;
  made.plan = make_plan(model_, device_, planner_, options);
  const Graph& graph = planned_graph(model_, made.plan);
  made.kernels = step_kernels(graph, device_, made.plan, evaluations(graph.entry_computation(), made.plan));
  find_calls(bindings, made);
  share_kernels(made);
  return made;
}

/// Only of what is run: a plan that is known to be best is not timed to be written.
void MiniBatches::time(Instance& made) const {
  if (!made.us.empty() || made.plan.steps.empty()) return;
  made.us = times_(made.plan);
  SW_CHECK(made.us.size() == made.plan.steps.size(), "{} times of {} steps", made.us.size(),
           made.plan.steps.size());
}

/// Which steps make the calls of each group, and the products in none.
void MiniBatches::find_calls(const Bindings& bindings, Instance& made) const {
  std::map<NodeId, std::size_t> step_of;  // by dot of the model
  for (std::size_t i = 0; i < made.plan.steps.size(); ++i) {
    if (made.plan.steps[i].kind != StepKind::kLibrary) continue;
    for (const NodeId op : made.plan.steps[i].nodes)
      for (const NodeId dot : model_ops(made.plan, op)) step_of.emplace(dot, i);
  }
  const auto add = [&](const std::string& group, const std::string& call, const std::vector<NodeId>& dots) {
    std::set<std::size_t> steps;
    for (const NodeId dot : dots)
      if (const auto step = step_of.find(dot); step != step_of.end()) steps.insert(step->second);
    made.steps[call].assign(steps.begin(), steps.end());
    made.groups[group].push_back(call);
  };
  const std::size_t s = strategy_of(bindings);
  std::set<NodeId> grouped;
  for (const StrategyGroup& group : products_.space().strategies.list[s].groups) {
    const std::string name = group_name(group), chunk = bindings.at(name);
    const std::vector<PricedCall>& calls = products_.prices().calls(s, group.number, chunk);
    for (std::size_t c = 0; c < calls.size(); ++c) {
      add(name, fmt::format("{}/{}/{}", name, chunk, c), calls[c].dots);
      grouped.insert(calls[c].dots.begin(), calls[c].dots.end());
    }
  }
  for (const NodeId dot : products_.space().products.dots)
    if (const std::string name = product_name(model_.entry_computation(), dot); !grouped.contains(dot))
      add(name, name, {dot});
}

/// A kernel, copy or memset is divided equally among the groups that it comes before or behind.
void MiniBatches::share_kernels(Instance& made) const {
  std::map<std::size_t, std::string> group_of;  // by step
  for (const auto& [group, calls] : made.groups)
    for (const std::string& call : calls)
      for (const std::size_t step : made.steps.at(call)) group_of[step] = group;
  const auto dependences = step_dependences(planned_graph(model_, made.plan), made.plan);
  for (std::size_t step = 0; step < dependences.size(); ++step)
    for (const int before : dependences[step]) {
      const auto own = group_of.find(step), other = group_of.find(at(before));
      if (own != group_of.end() && other == group_of.end()) made.beside[at(before)].insert(own->second);
      if (own == group_of.end() && other != group_of.end()) made.beside[step].insert(other->second);
    }
}

/// By call.
std::map<std::string, double> MiniBatches::around_us(const Instance& of,
                                                     const std::vector<double>& step_us) const {
  std::map<std::string, double> us;
  for (const auto& [step, groups] : of.beside)
    for (const std::string& group : groups) {
      const std::vector<std::string>& calls = of.groups.at(group);
      for (const std::string& call : calls)
        us[call] += step_us[step] / static_cast<double>(groups.size()) / static_cast<double>(calls.size());
    }
  return us;
}

double MiniBatches::product_us(const Instance& of, std::size_t step, const std::string& kernel) const {
  const Computation& computation = planned_graph(model_, of.plan).entry_computation();
  const std::vector<NodeId>& call = of.plan.steps[step].nodes;
  if (kernels_) return kernels_->us(computation, call, kernel);
  const Node& node = computation.node(call.front());
  const auto product = matrix_product(computation, node, options_.tf32);
  SW_CHECK(product.has_value(), "{} is no product", node.name);
  return library_us(device_, *product, kernel);
}

/// By step, of the products of calls; "": a library's own choice. Products that no variable has, as those of
/// a batch, are by the default.
std::vector<std::string> MiniBatches::kernels_of(const Instance& of, const Bindings& bindings) const {
  std::vector<std::string> kernels(of.plan.steps.size());
  const Computation& computation = planned_graph(model_, of.plan).entry_computation();
  const bool ours = default_kernel() != kLibraryKernel;
  for (std::size_t step = 0; ours && step < kernels.size(); ++step)
    if (const PlanStep& s = of.plan.steps[step];
        s.kind == StepKind::kLibrary && computation.node(s.nodes.front()).op == Op::kDot)
      kernels[step] = default_kernel();
  for (const auto& [call, steps] : of.steps)
    if (const std::string& kernel = bindings.at(call); kernel != default_kernel())
      for (const std::size_t step : steps) kernels[step] = kernel;
  return kernels;
}

std::vector<double> MiniBatches::times_of(const Instance& of, const Bindings& bindings) const {
  std::vector<double> us = of.us;
  const std::vector<std::string> kernels = kernels_of(of, bindings);
  for (std::size_t step = 0; step < us.size(); ++step)
    if (!kernels[step].empty()) us[step] = product_us(of, step, kernels[step]);
  return us;
}

/// Of the mini-batch, and of its epochs where steps are on streams.
double MiniBatches::whole_us(const Instance& of, const Bindings& bindings, const std::vector<double>& step_us,
                             std::map<std::string, double>* epochs) const {
  if (binds_epochs(bindings)) {
    SW_CHECK(of.streams.has_value(), "streams are bound before products are settled");
    const auto spans = of.streams->spans(of.streams->dealt(bindings), with_times(of.kernels, step_us));
    if (epochs != nullptr) epochs->merge(of.streams->epoch_us(spans));
    return last_end_us(spans);
  }
  double whole = 0;
  for (std::size_t step = 0; step < step_us.size(); ++step)
    whole += step_us[step] + (step > 0 ? device_.launch_gap_us : 0);
  return whole;
}

MiniBatches::Took MiniBatches::timed(Instance& of, const Bindings& bindings) const {
  time(of);
  Took took;
  const std::vector<double> alone = times_of(of, bindings);
  took.whole_us = whole_us(of, bindings, alone, &took.epochs);
  for (const double us : alone) took.step_us.push_back(us + device_.launch_gap_us);
  return took;
}

MiniBatches::Took MiniBatches::measured(const Instance& of, const Bindings& bindings) const {
  const Ordered run = ordered(of, bindings);
  check(run.plan);
  const Pass pass = pass_(run.plan);
  Took took{std::vector<double>(run.order.size()), {}, pass.whole_us};
  std::vector<StreamSpan> spans(run.order.size());
  std::map<int, double> ended;  // by stream
  for (std::size_t i = 0; i < run.order.size(); ++i) {
    double& last = ended[run.plan.steps[i].stream];
    const double end = i < pass.ends_us.size() ? std::max(last, pass.ends_us[i]) : last;
    spans[at(run.order[i])] = {last, end};
    took.step_us[at(run.order[i])] = end - last;
    last = end;
  }
  if (binds_epochs(bindings)) took.epochs = of.streams->epoch_us(spans);
  return took;
}

std::map<std::string, double> MiniBatches::run(const Bindings& bindings) {
  Instance& of = instance(bindings);
  Took took = pass_ ? measured(of, bindings) : timed(of, bindings);
  const std::map<std::string, double> around = around_us(of, took.step_us);
  std::map<std::string, double> us = std::move(took.epochs);
  for (const auto& [group, calls] : of.groups) {
    double sum = 0;
    for (const std::string& call : calls) {
      const auto beside = around.find(call);
      double& own = us[call] = beside == around.end() ? 0 : beside->second;
      for (const std::size_t step : of.steps.at(call)) own += took.step_us[step];
      sum += own;
    }
    us[group] = sum;
  }
  us["strategy"] = took.whole_us;
  return us;
}

double MiniBatches::us_of_steps(const Bindings& bindings) {
  Instance& of = instance(bindings);
  time(of);
  return whole_us(of, bindings, of.us, nullptr);
}

MiniBatches::Ordered MiniBatches::ordered(const Instance& of, const Bindings& bindings) const {
  Ordered run{of.plan, std::vector<int>(of.plan.steps.size())};
  std::iota(run.order.begin(), run.order.end(), 0);
  FusionPlan& plan = run.plan;
  if (kernels_ || pass_) {
    const std::vector<std::string> kernels = kernels_of(of, bindings);
    for (std::size_t step = 0; step < plan.steps.size(); ++step)
      if (kernels[step] != kLibraryKernel) plan.steps[step].variant = kernels[step];
  }
  if (!binds_epochs(bindings)) return run;
  SW_CHECK(of.streams.has_value(), "streams are bound before products are settled");
  Dealt dealt = of.streams->dealt(bindings);
  if (std::all_of(dealt.stream.begin(), dealt.stream.end(), [](int stream) { return stream == 0; }))
    return run;
  std::vector<double> us;
  for (const PlanStep& step : plan.steps) us.push_back(step.predicted_us);
  reorder(plan, dealt);
  plan.predicted_us = last_end_us(of.streams->spans(dealt, with_times(of.kernels, us)));
  plan.options.erase("streams");
  if (options_.knobs.at("streams") != default_value(planner(planner_), "streams"))
    plan.options["streams"] = options_.knobs.at("streams");
  run.order = std::move(dealt.order);
  return run;
}

FusionPlan MiniBatches::plan(const Bindings& bindings) {
  FusionPlan plan = ordered(instance(bindings), bindings).plan;
  check(plan);
  return plan;
}

void MiniBatches::check(const FusionPlan& plan) const {
  const std::vector<Verdict> problems = verify(model_, device_, plan);
  SW_CHECK(problems.empty(), "an explored plan is invalid: {} [{}]", problems[0].why, problems[0].rule);
}

}  // namespace stitchwork::astra
