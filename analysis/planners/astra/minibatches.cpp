#include "analysis/planners/astra/minibatches.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
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

const TreeNode& MiniBatches::tree(const ProfileIndex& index) {
  if (streams_ == 1) return tree_;
  for (std::size_t s = 0; s < tree_.options.size(); ++s) {
    if (settled_.contains(s)) continue;
    Bindings bindings;
    const std::string context = fmt::format("{}/strategy={}", kBucket, tree_.options[s]);
    if (!next(tree_.children[s].children[0], context, index, bindings)) break;
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
  return made;
}

/// Only of what is run: a plan that is known to be best is not timed to be written.
void MiniBatches::time(Instance& made) const {
  if (!made.us.empty() || made.plan.steps.empty()) return;
  made.us = times_(made.plan);
  SW_CHECK(made.us.size() == made.plan.steps.size(), "{} times of {} steps", made.us.size(),
           made.plan.steps.size());
  share_kernels(made);
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
  std::map<std::size_t, std::set<std::string>> beside;
  const auto dependences = step_dependences(planned_graph(model_, made.plan), made.plan);
  for (std::size_t step = 0; step < dependences.size(); ++step)
    for (const int before : dependences[step]) {
      const auto own = group_of.find(step), other = group_of.find(at(before));
      if (own != group_of.end() && other == group_of.end()) beside[at(before)].insert(own->second);
      if (own == group_of.end() && other != group_of.end()) beside[step].insert(other->second);
    }
  for (const auto& [step, groups] : beside)
    for (const std::string& group : groups) {
      const std::vector<std::string>& calls = made.groups.at(group);
      for (const std::string& call : calls)
        made.around_us[call] += (made.us[step] + device_.launch_gap_us) / static_cast<double>(groups.size()) /
                                static_cast<double>(calls.size());
    }
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

/// By step, calls by the kernels that the bindings name; products that no variable has, as those of a batch,
/// by the default.
std::vector<double> MiniBatches::times_of(const Instance& of, const Bindings& bindings) const {
  std::vector<double> us = of.us;
  const Computation& computation = planned_graph(model_, of.plan).entry_computation();
  std::vector<const std::string*> kernel_of(us.size(), nullptr);
  for (std::size_t step = 0; kernels_ && step < us.size(); ++step)
    if (const PlanStep& s = of.plan.steps[step];
        s.kind == StepKind::kLibrary && computation.node(s.nodes.front()).op == Op::kDot)
      kernel_of[step] = &default_kernel();
  for (const auto& [call, steps] : of.steps)
    if (const std::string& kernel = bindings.at(call); kernel != default_kernel())
      for (const std::size_t step : steps) kernel_of[step] = &kernel;
  for (std::size_t step = 0; step < us.size(); ++step)
    if (kernel_of[step] != nullptr) us[step] = product_us(of, step, *kernel_of[step]);
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

std::map<std::string, double> MiniBatches::run(const Bindings& bindings) {
  Instance& of = instance(bindings);
  time(of);
  const std::vector<double> step_us = times_of(of, bindings);
  std::map<std::string, double> us;
  for (const auto& [group, calls] : of.groups) {
    double sum = 0;
    for (const std::string& call : calls) {
      const auto around = of.around_us.find(call);
      double& own = us[call] = around == of.around_us.end() ? 0 : around->second;
      for (const std::size_t step : of.steps.at(call)) own += step_us[step] + device_.launch_gap_us;
      sum += own;
    }
    us[group] = sum;
  }
  us["strategy"] = whole_us(of, bindings, step_us, &us);
  return us;
}

double MiniBatches::us_of_steps(const Bindings& bindings) {
  Instance& of = instance(bindings);
  time(of);
  return whole_us(of, bindings, of.us, nullptr);
}

FusionPlan MiniBatches::plan(const Bindings& bindings) {
  const Instance& of = instance(bindings);
  FusionPlan plan = of.plan;
  if (binds_epochs(bindings)) {
    SW_CHECK(of.streams.has_value(), "streams are bound before products are settled");
    const Dealt dealt = of.streams->dealt(bindings);
    if (std::any_of(dealt.stream.begin(), dealt.stream.end(), [](int stream) { return stream > 0; })) {
      std::vector<double> us;
      for (const PlanStep& step : plan.steps) us.push_back(step.predicted_us);
      reorder(plan, dealt);
      plan.predicted_us = last_end_us(of.streams->spans(dealt, with_times(of.kernels, us)));
      plan.options.erase("streams");
      if (options_.knobs.at("streams") != default_value(planner(planner_), "streams"))
        plan.options["streams"] = options_.knobs.at("streams");
    }
  }
  const std::vector<Verdict> problems = verify(model_, device_, plan);
  SW_CHECK(problems.empty(), "an explored plan is invalid: {} [{}]", problems[0].why, problems[0].rule);
  return plan;
}

}  // namespace stitchwork::astra
