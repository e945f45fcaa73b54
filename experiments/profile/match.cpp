#include "experiments/profile/match.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <set>
#include <unordered_map>

#include "core/base/format.h"
#include "core/base/sorted.h"
#include "experiments/metrics.h"
#include "experiments/profile/kernel_names.h"

namespace stitchwork {
namespace {

/// What stitchwork calls every kernel that it runs itself (codegen/print: the canonical form).
constexpr std::string_view kCanonicalKernel = "k";

/// Ratios have none (docs/store.md), nor has what is of a thread.
bool has_sum(const std::string& counter) {
  const auto known = std::ranges::find(metrics(), counter, &Metric::name);
  return known != metrics().end() && known->unit != "1" && counter != "registers";
}

/// A name that events share, and what it stands for.
struct ProfiledName {
  ProfileMatch match;
  std::int64_t events = 0;
};

std::string identity_of(const std::string& kernel, const std::string& instruction, const std::string& op,
                        const std::string& grid, const std::string& block) {
  return fmt::format("{}\n{}\n{}\n{}\n{}", kernel, instruction, op, grid, block);
}

class ProfileMatcher {
 public:
  ProfileMatcher(const Profile& profile, const Model& model, const OpTrace& trace, const FusionPlan& plan)
      : profile_(profile), model_(model), plan_(plan), names_(model, trace, plan) {}

  ProfileComparison run(std::optional<std::int64_t> given) {
    choose_device();
    choose_module();
    for (const ProfileEvent* e : events_) {
      if (e->kind == ProfileKind::kTransfer) continue;
      const auto [at, fresh] =
          identities_.try_emplace(identity_of(e->kernel, e->instruction, e->op, e->grid, e->block));
      if (fresh) at->second.match = by_name(*e);
      ++at->second.events;
    }
    result_.iterations =
        find_iterations(events_, {given, most_iterations(), profile_.steps, profile_.clock}, profile_.file);
    for (const ProfileLaunch& l : launches())
      result_.matches.push_back(
          identities_.at(identity_of(l.kernel, l.instruction, l.op, l.grid, l.block)).match);
    by_launch_order();
    by_inductor_number();
    by_product_order(false);
    by_product_order(true);
    by_number();
    put_steps();
    count();
    return std::move(result_);
  }

 private:
  const std::vector<ProfileLaunch>& launches() const { return result_.iterations.launches; }

  /// One GPU: that with most events. Others do the same, or something else.
  void choose_device() {
    const int taken = busiest_device(profile_);
    for (const ProfileEvent& e : profile_.events)
      if (e.device == taken)
        events_.push_back(&e);
      else
        ++result_.other_devices[e.device];
  }

  /// One module: the model's, else the one of most instructions of the model, else of most events.
  void choose_module() {
    std::map<std::string, std::pair<std::size_t, std::size_t>> modules;  // instructions known, events
    for (const ProfileEvent* e : events_) {
      if (e->module.empty()) continue;
      auto& [known, all] = modules[e->module];
      ++all;
      if (!e->instruction.empty() && names_.instruction(e->instruction) != nullptr) ++known;
    }
    if (modules.empty()) return;
    const auto named = modules.find(model_.graph.name);
    const auto most = std::ranges::max_element(modules, {}, [](const auto& m) { return m.second; });
    result_.module = (named != modules.end() ? named : most)->first;
    std::erase_if(events_, [&](const ProfileEvent* e) {
      if (e->module.empty() || e->module == result_.module) return false;
      ++result_.other_modules[e->module];
      return true;
    });
  }

  ProfileMatch by_name(const ProfileEvent& e) const {
    const auto found = [](ProfileRule rule, const NamedOps& ops) { return ProfileMatch{rule, ops, {}, {}}; };
    if (!e.instruction.empty())
      if (const NamedOps* ops = names_.instruction(e.instruction))
        return found(ProfileRule::kInstruction, *ops);
    if (e.kind == ProfileKind::kKernel) {
      const std::string function = function_name(e.kernel);
      if (const NamedOps* ops = names_.own_kernel(function, e.grid, e.block))
        return found(ProfileRule::kOwnKernel, *ops);
      // What is a C++ function with its types is nobody's op, should it be called like one.
      if (const NamedOps* ops = names_.xla_kernel(function);
          ops != nullptr && (ops->fusion || function == e.kernel))
        return found(ProfileRule::kKernelName, *ops);
    }
    if (!e.op.empty())
      if (const NamedOps* ops = names_.framework_op(e.op)) return found(ProfileRule::kOpName, *ops);
    return {};
  }

  /// Names of the entry are launched once an iteration: the number that most of them have. Without such
  /// names, as often as our own kernels are so many as the plan's, or those of libraries as the products.
  std::optional<std::int64_t> most_iterations() const {
    std::map<std::int64_t, std::size_t> numbers;
    std::int64_t products = 0, ours = 0;
    for (const auto& [key, identity] : identities_) {
      const ProfileMatch& m = identity.match;
      const std::string kernel = key.substr(0, key.find('\n'));
      if (m.rule != ProfileRule::kNone && m.rule != ProfileRule::kOpName && m.stands_for.body < 0)
        ++numbers[identity.events];
      if (m.rule != ProfileRule::kNone) continue;
      if (is_library_product(kernel) && !ends_product(kernel)) products += identity.events;
      if (function_name(kernel) == kCanonicalKernel) ours += identity.events;
    }
    if (!numbers.empty())
      return std::ranges::max_element(numbers, {}, [](const auto& n) { return n.second; })->first;
    const auto times = [](std::int64_t events, std::size_t wanted) -> std::optional<std::int64_t> {
      const auto each = static_cast<std::int64_t>(wanted);
      if (each == 0 || events == 0 || events % each != 0) return std::nullopt;
      return events / each;
    };
    if (plan_.computations.empty())
      if (const auto iterations = times(ours, plan_.kernels.size())) return iterations;
    if (names_.products_in_loops()) return std::nullopt;
    return times(products, names_.products(false).size() + names_.products(true).size());
  }

  bool is_free(std::size_t launch) const { return result_.matches[launch].rule == ProfileRule::kNone; }
  void match(std::size_t launch, ProfileRule rule, const NamedOps& ops) {
    result_.matches[launch] = {rule, ops, {}, {}};
  }

  /// Our own kernels are all called alike: those of the entry, if every launch is as planned.
  void by_launch_order() {
    std::vector<std::size_t> ours;
    for (std::size_t i = 0; i < launches().size(); ++i)
      if (is_free(i) && function_name(launches()[i].kernel) == kCanonicalKernel) ours.push_back(i);
    if (ours.empty()) return;
    std::vector<const NamedOps*> planned;
    for (const NamedOps& kernel : names_.own_kernels())
      if (kernel.body < 0) planned.push_back(&kernel);
    bool same = plan_.computations.empty() && planned.size() == ours.size();
    for (std::size_t i = 0; same && i < ours.size(); ++i) {
      const ProfileLaunch& l = launches()[ours[i]];
      // One kernel is like another that is called k: only its launch tells it.
      same = !l.grid.empty() && !l.block.empty() && names_.launched_so(*planned[i], l.grid, l.block);
    }
    for (std::size_t i = 0; i < ours.size(); ++i) {
      if (same)
        match(ours[i], ProfileRule::kLaunchOrder, *planned[i]);
      else
        result_.matches[ours[i]].why =
            fmt::format("a kernel of stitchwork run, but launches are not this plan's {}",
                        counted(static_cast<long long>(planned.size()), "kernel"));
    }
  }

  /// Inductor numbers the kernels of a module, so that another compilation of the same graph, with more words
  /// in its names or other blocks, has the same numbers: if each is of the same kind, they are the same. A
  /// number that two kernels have is of two modules, as of a step forward and backward.
  void by_inductor_number() {
    std::vector<std::size_t> theirs;
    std::map<int, InductorName> launched;
    bool same = true;
    for (std::size_t i = 0; i < launches().size(); ++i)
      if (const auto called = inductor_name(function_name(launches()[i].kernel))) {
        same = same && launched.try_emplace(called->number, *called).first->second == *called;
        if (is_free(i)) theirs.push_back(i);
      }
    if (theirs.empty()) return;
    std::map<int, const NamedOps*> planned;
    for (const NamedOps& kernel : names_.own_kernels())
      if (const auto called = inductor_name(kernel.name)) {
        const auto at = launched.find(called->number);
        same = same && at != launched.end() && is_same_kernel(at->second, *called);
        planned.emplace(called->number, &kernel);
      }
    same = same && planned.size() == launched.size();
    for (const std::size_t i : theirs) {
      if (same)
        match(i, ProfileRule::kInductorNumber,
              *planned.at(inductor_name(function_name(launches()[i].kernel))->number));
      else
        result_.matches[i].why =
            planned.empty()
                ? "a kernel of Inductor, whose ops a dump of it tells (--plan DUMP, docs/peers.md)"
                : "a kernel of Inductor, but the dump's differ in number or kind, or several modules have "
                  "launches";
    }
  }

  void by_product_order(bool convolutions) {
    std::set<std::pair<int, NodeId>> taken;
    for (const ProfileMatch& m : result_.matches)
      for (const NodeId op : m.stands_for.ops) taken.insert({m.stands_for.body, op});
    std::vector<const NamedOps*> products;
    for (const NamedOps& p : names_.products(convolutions))
      if (!taken.contains({-1, p.ops.front()})) products.push_back(&p);
    std::vector<std::size_t> kernels;
    std::map<std::size_t, std::size_t> ends;  // by launch, the number of its product
    for (std::size_t i = 0; i < launches().size(); ++i) {
      const std::string& kernel = launches()[i].kernel;
      if (!is_free(i) || !is_library_product(kernel) || is_convolution(kernel) != convolutions) continue;
      if (!ends_product(kernel))
        kernels.push_back(i);
      else if (!kernels.empty())
        ends[i] = kernels.size() - 1;
    }
    if (kernels.empty()) return;
    const char* what = convolutions ? "convolution" : "matrix product";
    if (kernels.size() == products.size() && !names_.products_in_loops()) {
      for (std::size_t i = 0; i < kernels.size(); ++i)
        match(kernels[i], ProfileRule::kProductOrder, *products[i]);
      for (const auto& [launch, product] : ends)
        match(launch, ProfileRule::kProductOrder, *products[product]);
      return;
    }
    const std::string why =
        names_.products_in_loops()
            ? fmt::format("a {} of a library; loops of the model have some, so their order says nothing",
                          what)
            : fmt::format("one of {} of a library an iteration, the model has {} without a kernel",
                          counted(static_cast<long long>(kernels.size()), what), products.size());
    for (const std::size_t launch : kernels) result_.matches[launch].why = why;
    for (const auto& [launch, product] : ends) result_.matches[launch].why = why;
  }

  /// Names that differ in their numbers alone, as many as the model has and the profile has not named.
  void by_number() {
    std::set<std::string> taken;
    for (const ProfileMatch& m : result_.matches)
      if (m.rule != ProfileRule::kNone) taken.insert(m.stands_for.name);
    std::map<std::string, std::vector<std::size_t>> stems;
    for (std::size_t i = 0; i < launches().size(); ++i) {
      const ProfileLaunch& l = launches()[i];
      if (!is_free(i) || l.kind != ProfileKind::kKernel || !result_.matches[i].why.empty()) continue;
      const std::string called = l.instruction.empty() ? function_name(l.kernel) : l.instruction;
      stems[without_number(called)].push_back(i);
    }
    for (const auto& [stem, free] : stems) {
      std::vector<const NamedOps*> left;
      for (const NamedOps* ops : names_.alike(stem + "_0"))
        if (!taken.contains(ops->name) && (ops->fusion || !launches()[free.front()].instruction.empty()))
          left.push_back(ops);
      const bool same = left.size() == free.size();
      std::vector<std::string> others;
      for (std::size_t i = 0; i < std::min<std::size_t>(3, left.size()); ++i) others.push_back(left[i]->name);
      for (std::size_t i = 0; i < free.size(); ++i) {
        const ProfileLaunch& l = launches()[free[i]];
        if (same) {
          match(free[i], ProfileRule::kRenumbered, *left[i]);
          continue;
        }
        std::string& why = result_.matches[free[i]].why;
        why = l.instruction.empty() ? "nothing of the model or plan is called so"
                                    : fmt::format("the model has no instruction {}", l.instruction);
        if (!left.empty())
          why += fmt::format("; renamed? it has {} that nothing stands for, {} here are called so",
                             fmt::join(others, ", "), free.size());
      }
    }
    for (std::size_t i = 0; i < launches().size(); ++i)
      if (is_free(i) && result_.matches[i].why.empty())
        result_.matches[i].why =
            launches()[i].kind == ProfileKind::kKernel
                ? "nothing of the model or plan is called so"
                : fmt::format("a {} whose op the profile does not name", name(launches()[i].kind));
  }

  /// Steps by op, of one computation's plan.
  std::vector<std::vector<int>> steps_by_op(int body) const {
    const FusionPlan& plan = body_plan(plan_, body);
    std::vector<std::vector<int>> of(
        body_computation(planned_graph(model_.graph, plan_), plan_, body).nodes.size());
    for (std::size_t s = 0; s < plan.steps.size(); ++s) {
      const PlanStep& step = plan.steps[s];
      const bool kernel = step.kind == StepKind::kKernel;
      for (const NodeId op : kernel ? plan.kernels[static_cast<std::size_t>(step.kernel)].ops : step.nodes)
        of[static_cast<std::size_t>(op)].push_back(static_cast<int>(s));
    }
    return of;
  }

  /// The steps that evaluate all of the ops, of several the one that gives the last one's value; else all
  /// that evaluate some.
  std::vector<int> steps_of(const NamedOps& named, const std::vector<std::vector<int>>& by_op) const {
    if (named.step >= 0) return {named.step};
    std::vector<int> all, some;
    bool any = false;
    NodeId last = kNoNode;
    for (const NodeId op : named.ops) {
      const std::vector<int>& its = by_op[static_cast<std::size_t>(op)];
      if (its.empty()) continue;  // constants, other names of a value
      std::vector<int> both;
      if (any)
        std::ranges::set_intersection(all, its, std::back_inserter(both));
      else
        both = its;
      all = std::move(both);
      for (const int step : its) insert_sorted(some, step);
      any = true;
      last = op;
    }
    if (all.empty()) return some;
    const FusionPlan& plan = body_plan(plan_, named.body);
    for (const int s : all) {
      const PlanStep& step = plan.steps[static_cast<std::size_t>(s)];
      if (step.kind == StepKind::kKernel &&
          contains_sorted(plan.kernels[static_cast<std::size_t>(step.kernel)].outputs, last))
        return {s};
    }
    return {all.front()};
  }

  void put_steps() {
    std::vector<std::size_t> first;  // of each body's steps
    std::vector<std::vector<std::vector<int>>> by_op;
    for (int body = -1; body < static_cast<int>(plan_.computations.size()); ++body) {
      first.push_back(result_.steps.size());
      by_op.push_back(steps_by_op(body));
      const FusionPlan& plan = body_plan(plan_, body);
      for (std::size_t s = 0; s < plan.steps.size(); ++s)
        result_.steps.push_back({body, static_cast<int>(s), plan.steps[s].predicted_us, {}, {}, {}});
    }
    for (std::size_t i = 0; i < result_.matches.size(); ++i) {
      ProfileMatch& m = result_.matches[i];
      if (m.rule == ProfileRule::kNone) continue;
      const auto body = static_cast<std::size_t>(m.stands_for.body + 1);
      m.steps = steps_of(m.stands_for, by_op[body]);
      if (m.steps.size() == 1)
        result_.steps[first[body] + static_cast<std::size_t>(m.steps.front())].launches.push_back(i);
    }
    for (ProfiledStep& step : result_.steps) put_times(step);
  }

  /// Of one run: in loops a name is launched once a run.
  void put_times(ProfiledStep& step) const {
    std::map<std::string, std::pair<double, std::size_t>> of;  // by what it stands for: time, runs
    std::map<std::string, std::pair<double, std::size_t>> counters;
    bool timed = !step.launches.empty();
    std::set<std::string> runs;
    for (const std::size_t i : step.launches) {
      const ProfileLaunch& l = launches()[i];
      auto& [us, times] = of[fmt::format("{}\n{}", l.kernel, result_.matches[i].stands_for.name)];
      us += l.mean_us;
      ++times;
      timed = timed && l.timed;
      for (const auto& [counter, value] : l.counters) {
        counters[counter].first += value;
        ++counters[counter].second;
      }
    }
    double us = 0;
    for (const auto& [name, sum] : of)
      us += step.body < 0 ? sum.first : sum.first / static_cast<double>(sum.second);
    if (timed) step.imported_us = us;
    for (const auto& [counter, sum] : counters)
      if (sum.second == step.launches.size() && step.body < 0 && (sum.second == 1 || has_sum(counter)))
        step.counters[counter] = sum.first;
  }

  void count() {
    std::map<std::pair<int, std::string>, std::vector<std::size_t>> by_name;
    for (std::size_t i = 0; i < launches().size(); ++i) {
      const ProfileLaunch& l = launches()[i];
      const double us =
          l.mean_us * static_cast<double>(l.samples) / static_cast<double>(result_.iterations.iterations);
      result_.total_us += us;
      const ProfileMatch& m = result_.matches[i];
      if (m.rule == ProfileRule::kNone) continue;
      result_.matched_us += us;
      ++result_.matched;
      by_name[{m.stands_for.body, m.stands_for.name}].push_back(i);
    }
    for (const auto& [of, its] : by_name) {
      std::set<std::string> kernels;
      for (const std::size_t i : its) kernels.insert(launches()[i].kernel);
      if (its.size() > 1 && (of.first < 0 || kernels.size() > 1))
        result_.duplicated.emplace_back(of.second, its);
    }
    for (std::size_t s = 0; s < result_.steps.size(); ++s) {
      const ProfiledStep& at = result_.steps[s];
      const PlanStep& step = body_plan(plan_, at.body).steps[static_cast<std::size_t>(at.step)];
      const bool covered = std::ranges::any_of(result_.matches, [&](const ProfileMatch& m) {
        return m.stands_for.body == at.body && std::ranges::find(m.steps, at.step) != m.steps.end();
      });
      if (step.kind != StepKind::kControl && !covered) result_.missing.push_back(s);
    }
  }

  const Profile& profile_;
  const Model& model_;
  const FusionPlan& plan_;
  ModelNames names_;
  std::vector<const ProfileEvent*> events_;
  std::unordered_map<std::string, ProfiledName> identities_;
  ProfileComparison result_;
};

}  // namespace

std::string_view name(ProfileRule rule) {
  constexpr auto kNames =
      std::to_array<std::string_view>({"", "instruction", "own kernel", "kernel name", "op name",
                                       "launch order", "inductor number", "product order", "renumbered"});
  return kNames[static_cast<std::size_t>(rule)];
}

ProfileComparison compare_profile(const Profile& profile, const Model& model, const OpTrace& trace,
                                  const FusionPlan& plan, std::optional<std::int64_t> iterations) {
  return ProfileMatcher(profile, model, trace, plan).run(iterations);
}

}  // namespace stitchwork
