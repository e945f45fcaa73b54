// The automatic planner (docs/planners/auto.md): plans as AStitch does, then gives every kernel the cheapest
// of its forms.
#include "analysis/planners/planner.h"

#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <set>
#include <unordered_map>

#include "analysis/forms/auto_forms.h"
#include "analysis/judge/cost.h"
#include "analysis/judge/library_cost.h"
#include "analysis/plan/assemble.h"
#include "analysis/plan/epilogue.h"
#include "analysis/planners/astitch/remote.h"
#include "analysis/planners/auto/base.h"
#include "analysis/planners/auto/epilogues.h"
#include "analysis/planners/auto/products.h"
#include "analysis/planners/auto/recompute.h"
#include "analysis/schedule/inlined_kernel.h"
#include "core/base/error.h"
#include "core/base/format.h"
#include "core/base/parallel.h"
#include "core/base/sorted.h"
#include "occupancy_model/errors.h"

namespace stitchwork {
namespace {

using automatic::Base;
using automatic::Planned;
using automatic::Recipe;
using automatic::Stitched;
using automatic::stitched_of;

/// Of a stitched kernel that is not in the plan what was recorded of its forms.
void forget_forms(const astitch::Nodes& nodes, const KernelPlan& kernel, std::vector<Decision>& decisions) {
  std::erase_if(decisions, [&](const Decision& d) {
    return d.step == kFormStep && std::any_of(kernel.ops.begin(), kernel.ops.end(),
                                              [&](NodeId id) { return nodes.name(id) == d.subject; });
  });
}

/// Of ops that calls compute what was recorded of their place in a kernel.
void forget_places(const astitch::Nodes& nodes, const std::vector<std::vector<NodeId>>& calls,
                   std::vector<Decision>& decisions) {
  std::set<std::string> names;
  for (const std::vector<NodeId>& call : calls)
    for (const NodeId op : call) names.insert(nodes.name(op));
  if (names.empty()) return;
  std::erase_if(decisions, [&](const Decision& d) { return d.step != "scope" && names.contains(d.subject); });
}

/// Of kernels in a stitched one's place: what each reads of the others, and that their form was chosen.
void record_cuts(const Graph& graph, const std::vector<KernelPlan>& kernels, const Verdict& why,
                 Recorder& recorder) {
  if (!recorder.enabled()) return;
  const Computation& computation = graph.entry_computation();
  std::set<NodeId> made;
  for (const KernelPlan& kernel : kernels) {
    const std::vector<NodeId> of = materialised(kernel);
    made.insert(of.begin(), of.end());
  }
  for (const KernelPlan& kernel : kernels)
    for (const NodeId op : kernel.ops)
      for (const NodeId operand : computation.node(op).operands)
        for (const NodeId value : values_read(computation, operand))
          if (made.contains(value) && !std::binary_search(kernel.ops.begin(), kernel.ops.end(), value))
            recorder.add("scope", computation.node(value).name, computation.node(op).name,
                         [&] { return why; });
}

/// Adds the kernels of `loose` whose values something reads and nothing else makes.
void add_missing(const Graph& graph, std::vector<KernelPlan> loose, std::vector<KernelPlan>& kernels) {
  std::set<NodeId> made;
  for (const KernelPlan& kernel : kernels) {
    const std::vector<NodeId> of = materialised(kernel);
    made.insert(of.begin(), of.end());
  }
  for (std::size_t k = 0; k < kernels.size(); ++k) {  // grows
    for (const NodeId read : kernel_reads(graph, kernels[k])) {
      if (made.contains(read)) continue;
      const auto found = std::find_if(loose.begin(), loose.end(), [&](const KernelPlan& kernel) {
        const std::vector<NodeId> of = materialised(kernel);
        return std::binary_search(of.begin(), of.end(), read);
      });
      if (found == loose.end()) continue;
      const std::vector<NodeId> of = materialised(*found);
      made.insert(of.begin(), of.end());
      kernels.push_back(std::move(*found));
      loose.erase(found);
    }
  }
}

/// What a call takes longer for its epilogue.
double epilogue_us(const Computation& computation, const Device& device, const std::vector<NodeId>& call,
                   bool tf32) {
  const auto with = matrix_product(computation, call, tf32);
  const auto without = matrix_product(computation, std::span(call).first(1), tf32);
  return library_time(device, *with).total_us - library_time(device, *without).total_us;
}

/// From now on the call makes what `nodes` had kernels make.
void leave_to_call(astitch::Nodes& nodes, const std::vector<NodeId>& call) {
  for (const NodeId op : call) {
    astitch::NodeFacts& facts = nodes.facts[static_cast<std::size_t>(op)];
    if (facts.role != PlanRole::kMemory || facts.transparent) continue;
    facts.role = PlanRole::kLibrary;
    facts.member = false;
  }
  for (const NodeId read : library_inputs(*nodes.computation, call))
    nodes.facts[static_cast<std::size_t>(read)].buffer_needed = true;
}

/// Of the kernel's ops as XLA's fusions; nothing where those lack a value.
std::optional<double> fusions_us(const astitch::Nodes& nodes, const Device& device,
                                 const astitch::Options& knobs, const Base::Kernel& kernel) {
  const Stitched stitched = stitched_of(nodes, device, knobs, kernel);
  const automatic::Form fusions = automatic::make_form(stitched, {.cut = Recipe::Cut::kXla});
  if (fusions.kernels.empty()) return std::nullopt;
  return us_of(stitched, fusions);
}

/// Leaves to library calls what they compute for less than kernels do, by more than the judge can be wrong;
/// what is left of a kernel has no fusions of XLA's to choose from. Returns those calls.
std::vector<std::vector<NodeId>> take_epilogues(astitch::Nodes& nodes, const Device& device,
                                                const astitch::Options& knobs, bool tf32, Base& base,
                                                Recorder& recorder) {
  const std::vector<automatic::Absorption> parts =
      automatic::absorptions(nodes, base.candidates(), knobs.constraints);
  std::vector<std::vector<Candidate>> candidates;
  for (const automatic::Absorption& part : parts) candidates.push_back({part.after});
  auto planned_parts = automatic::planned(nodes, candidates, device, knobs);
  std::vector<std::vector<NodeId>> calls;
  for (std::size_t first = 0, end = 0; first < parts.size(); first = end) {
    while (end < parts.size() && parts[end].kernel == parts[first].kernel) ++end;
    const Base::Kernel& kernel = base.kernels[static_cast<std::size_t>(parts[first].kernel)];
    const double stitched_us = knobs.judge->worth(*nodes.graph, device, {&kernel.plan, 1}).us;
    const double was = std::min(stitched_us, fusions_us(nodes, device, knobs, kernel).value_or(stitched_us));
    std::size_t best = end;
    double best_us = was;
    std::vector<double> us(end - first, was);
    for (std::size_t p = first; p < end; ++p) {
      if (!planned_parts[p]) continue;
      us[p - first] = 0;
      for (const Base::Kernel& left : *planned_parts[p])  // at most one
        us[p - first] += knobs.judge->worth(*nodes.graph, device, {&left.plan, 1}).us;
      for (const auto& call : parts[p].calls)
        us[p - first] += epilogue_us(*nodes.computation, device, call, tf32);
      if (us[p - first] < best_us) best_us = us[p - first], best = p;
    }
    const bool taken = best != end && best_us < (1 - kOtherForm) * stitched_us;
    const std::size_t told = best == end ? first : best;
    for (const std::vector<NodeId>& call : parts[told].calls)
      recorder.add("epilogue", nodes.name(call.back()), nodes.name(call.front()), [&] {
        std::string why =
            planned_parts[told]
                ? fmt::format("{}: {:.2f} us in the call, {:.2f} us in the kernel",
                              to_text(*nodes.computation, *epilogue_of(*nodes.computation, call)),
                              us[told - first], was)
                : "what is left is more than one kernel";
        return taken ? Verdict::yes("auto.epilogue", why) : Verdict::no("auto.epilogue", why);
      });
    if (!taken) continue;
    const int changed = parts[best].kernel;
    base.take({&changed, 1}, {&parts[best].after, 1}, *planned_parts[best]);
    calls.insert(calls.end(), parts[best].calls.begin(), parts[best].calls.end());
  }
  for (const std::vector<NodeId>& call : calls) leave_to_call(nodes, call);
  base.drop_empty();
  return calls;
}

/// Gives each kernel the cheapest of its forms. Kernels that are alike have the same recipe.
void choose_forms(const astitch::Nodes& nodes, const Device& device, const astitch::Options& knobs,
                  const std::vector<Base::Kernel*>& kernels, bool records) {
  automatic::KnownParts parts;
  const auto stitched = [&](std::size_t k) { return stitched_of(nodes, device, knobs, *kernels[k], &parts); };
  std::unordered_map<std::string, std::size_t> known;
  std::vector<std::size_t> first, distinct;  // by kernel: the first that is alike
  for (std::size_t k = 0; k < kernels.size(); ++k) {
    const Base::Kernel& one = *kernels[k];
    // Overrides tell kernels apart that are alike.
    std::string key = knobs.constraints.are_about(one.plan.ops) ? nodes.name(one.op.members.back())
                                                                : automatic::signature(stitched(k));
    if (!one.as_stitched) key += " again";
    first.push_back(known.emplace(std::move(key), k).first->second);
    if (first[k] == k) distinct.push_back(k);
  }
  parallel_for(distinct.size(), [&](std::size_t d) {
    const std::size_t k = distinct[d];
    Recorder recorder(records);
    kernels[k]->chosen.recipe = automatic::choose_recipe(stitched(k), recorder);
    kernels[k]->chosen.decisions = recorder.take();
  });
  for (std::size_t k = 0; k < kernels.size(); ++k)
    kernels[k]->chosen.recipe = kernels[first[k]]->chosen.recipe;
  parallel_for(kernels.size(), [&](std::size_t k) {
    kernels[k]->chosen.form = automatic::make_form(stitched(k), kernels[k]->chosen.recipe);
  });
}

/// Gives each kernel the cheapest of its forms and takes every recomputation that, in the forms that its
/// kernels have, is faster by more than the judge can be wrong.
void choose(const astitch::Nodes& nodes, const Device& device, const astitch::Options& knobs, Base& base,
            Recorder& recorder) {
  const std::string kStep = "recompute";
  std::vector<automatic::Recomputation> parts;
  if (knobs.recompute) parts = automatic::recomputations(nodes, base.candidates(), knobs.constraints);
  std::vector<std::vector<Candidate>> candidates;
  for (const automatic::Recomputation& part : parts) candidates.push_back(part.after);
  auto planned_parts = automatic::planned(nodes, candidates, device, knobs);
  std::vector<Base::Kernel*> all;
  for (Base::Kernel& kernel : base.kernels) all.push_back(&kernel);
  for (auto& part : planned_parts)
    if (part)
      for (Base::Kernel& kernel : *part) all.push_back(&kernel);
  choose_forms(nodes, device, knobs, all, recorder.enabled());
  for (std::size_t p = 0; p < parts.size(); ++p) {
    const automatic::Recomputation& part = parts[p];
    if (!planned_parts[p] || planned_parts[p]->empty()) continue;
    std::vector<Base::Kernel>& after = *planned_parts[p];
    double was = 0, is = 0;
    std::size_t launches_before = 0, launches_after = 0;
    const auto add = [&](const Base::Kernel& kernel, double& us, std::size_t& launches) {
      us += us_of(stitched_of(nodes, device, knobs, kernel), kernel.chosen.form);
      launches += kernel.chosen.form.kernels.size();
    };
    for (const int k : part.kernels) add(base.kernels[static_cast<std::size_t>(k)], was, launches_before);
    for (const Base::Kernel& kernel : after) add(kernel, is, launches_after);
    const bool taken = is < (1 - kOtherForm) * was;
    const auto why = [&] {
      return fmt::format("with {} computed again where read: {:.2f} us in {}, without {:.2f} us in {}",
                         counted(std::ssize(part.again), "value"), is, counted(launches_after, "launch"), was,
                         counted(launches_before, "launch"));
    };
    for (const NodeId value : part.again)
      recorder.add(kStep, nodes.name(value), "", [&] {
        return taken ? Verdict::yes("auto.recompute", why()) : Verdict::no("auto.recompute", why());
      });
    if (!taken) continue;
    for (const automatic::NewRead& read : part.new_reads)
      recorder.add(kStep, nodes.name(read.value), nodes.name(read.reader), [&] {
        return Verdict::no("auto.recompute", "read for what is computed again; " + why());
      });
    base.take(part.kernels, part.after, after);
  }
  base.drop_empty();
}

/// By AStitch's passes over these nodes, each kernel in the cheapest of its forms.
Planned planned_kernels(astitch::Nodes nodes, const Device& device, const astitch::Options& knobs,
                        bool tf32) {
  const Graph& graph = *nodes.graph;
  Recorder recorder(knobs.record_decisions), of_stitching(knobs.record_decisions);
  const astitch::Scope scope = astitch::find_scope(nodes, knobs.max_ops, of_stitching, knobs.constraints);
  FusionPlan plan =
      assemble(graph, device, "astitch", astitch::plan_scope(nodes, scope, device, knobs, of_stitching));
  plan.decisions = of_stitching.take();

  Base base(nodes, std::move(plan.kernels));
  std::vector<KernelPlan> loose;
  base.find_xla(nodes, knobs.constraints, loose);
  std::vector<std::vector<NodeId>> calls;
  if (knobs.epilogues) calls = take_epilogues(nodes, device, knobs, tf32, base, recorder);
  choose(nodes, device, knobs, base, recorder);
  for (const KernelPlan& kernel : base.gone) forget_forms(nodes, kernel, plan.decisions);
  forget_places(nodes, calls, plan.decisions);

  std::vector<KernelPlan> kernels, from_xla;
  for (Base::Kernel& kernel : base.kernels) {
    auto& [recipe, form, decisions] = kernel.chosen;
    recorder.append(std::move(decisions));
    if (recipe != Recipe{}) forget_forms(nodes, kernel.plan, plan.decisions);
    if (recorder.enabled()) {
      const double us = us_of(stitched_of(nodes, device, knobs, kernel), form);
      record_cuts(graph, form.kernels,
                  Verdict::no(form.rule, fmt::format("{}: {:.2f} us in {}, the least of the forms", form.name,
                                                     us, counted(std::ssize(form.kernels), "launch"))),
                  recorder);
    }
    auto& into = recipe.cut == Recipe::Cut::kXla ? from_xla : kernels;
    for (KernelPlan& made : form.kernels) into.push_back(std::move(made));
  }
  mark_recomputed(from_xla);
  for (KernelPlan& kernel : from_xla) kernels.push_back(std::move(kernel));
  const std::size_t chosen_kernels = kernels.size();
  add_missing(graph, std::move(loose), kernels);
  if (kernels.size() > chosen_kernels)
    record_cuts(graph, kernels,
                Verdict::no("auto.xla", "XLA's fusions compute it once for several of the kernels"),
                recorder);
  base.mark_computed_again(kernels);

  std::vector<Decision> more = recorder.take();
  plan.decisions.insert(plan.decisions.end(), more.begin(), more.end());
  return {std::move(kernels), std::move(calls), std::move(plan.decisions)};
}

/// Small products of a model that is planned a second time, with each a loop of a thread.
/// A choice, not measured: where there are more, it takes as long again and gains 4 % at the most.
constexpr std::size_t kFewProducts = 8;

/// Small products in kernels where that is faster; nothing changes where there are none, or an override
/// cannot be honoured so.
Planned with_products(const Graph& graph, const Device& device, const astitch::Options& knobs, bool tf32,
                      Planned without) {
  const std::vector<NodeId> products = automatic::small_products(graph, device);
  if (products.empty()) return without;
  std::vector<Planned> plans{std::move(without)};
  std::vector<std::int64_t> most_serial{0};
  if (products.size() <= kFewProducts) most_serial.push_back(kSerialProduct);
  try {
    for (const std::int64_t most : most_serial) {
      plans.push_back(planned_kernels(astitch::node_facts(graph, {products, most}), device, knobs, tf32));
      plans.back().how = most > 0 ? "as loops of a thread" : "as sums of several threads";
    }
  } catch (const Error&) {
    if (knobs.constraints.named().empty()) throw;
    return std::move(plans.front());
  }
  return automatic::cheaper_parts(astitch::node_facts(graph, {products}), device, *knobs.judge, tf32,
                                  std::move(plans));
}

/// By how much more than estimated kernels of these products take: of 68 of drawn shapes on a V100, an
/// A100 and an H200, simulated, at most 69 % (indices take instructions that the estimate does not know).
constexpr double kTemplateError = 0.7;

/// FusionStitching's kernels (2019) in place of those parts of the plan that they compute faster: its
/// templates keep the rows of a batch in a block, products of them among them. Knobs that both planners have
/// hold for both. Where a call of a product is beside them nothing changes; where overrides name
/// ops they are this plan's.
Planned with_templates(const Graph& graph, const Device& device, const astitch::Options& knobs,
                       const PlanOptions& options, Planned stitched) {
  std::vector<NodeId> products = automatic::streamed_products(graph, device);
  if (products.empty() || !knobs.constraints.named().empty()) return stitched;
  const Planner& row = planner("fusionstitching");
  PlanOptions of_row = options;
  std::erase_if(of_row.knobs,
                [&](const auto& knob) { return std::ranges::count(row.knobs, knob.first) == 0; });
  of_row.knobs = resolve_knobs(row, of_row);
  FusionPlan plan = plan_fusionstitching(graph, device, of_row);
  // What one of their kernels gives a product's call, or takes from one, is moved all the same.
  const Computation& computation = graph.entry_computation();
  for (const KernelPlan& kernel : plan.kernels) {
    if (std::ranges::none_of(products, [&](NodeId id) { return contains_sorted(kernel.ops, id); })) continue;
    const std::vector<NodeId> reads = kernel_reads(graph, kernel);
    for (const PlanStep& step : plan.steps) {
      if (step.kind != StepKind::kLibrary || !is_product(computation.node(step.nodes.front()))) continue;
      const std::vector<NodeId> given = library_inputs(computation, step.nodes);
      if (contains_sorted(reads, step.nodes.back()) ||
          std::ranges::any_of(kernel.outputs, [&](NodeId id) { return contains_sorted(given, id); }))
        return stitched;
    }
  }
  Planned templates{.kernels = std::move(plan.kernels),
                    .decisions = std::move(plan.decisions),
                    .how = "by FusionStitching's templates",
                    .error = kTemplateError};
  for (PlanStep& step : plan.steps)
    if (step.kind == StepKind::kLibrary && step.nodes.size() > 1)
      templates.calls.push_back(std::move(step.nodes));
  for (const std::vector<KernelPlan>* kernels : {&stitched.kernels, &templates.kernels})
    for (const KernelPlan& kernel : *kernels)
      std::ranges::copy_if(kernel.ops, std::back_inserter(products),
                           [&](NodeId id) { return is_product(graph.entry_computation().node(id)); });
  sort_unique(products);
  std::vector<Planned> plans;
  plans.push_back(std::move(stitched));
  plans.back().how = "stitched";
  plans.push_back(std::move(templates));
  return automatic::cheaper_parts(astitch::node_facts(graph, {products}), device, *knobs.judge, options.tf32,
                                  std::move(plans));
}

}  // namespace

FusionPlan plan_auto(const Graph& graph, const Device& device, const PlanOptions& options) {
  const astitch::Options knobs = astitch::read_options(graph, device, options);
  Planned made = planned_kernels(astitch::node_facts(graph), device, knobs, options.tf32);
  if (knobs.products) {
    made = with_products(graph, device, knobs, options.tf32, std::move(made));
    made = with_templates(graph, device, knobs, options, std::move(made));
  }
  FusionPlan plan = assemble(graph, device, "auto", std::move(made.kernels), std::move(made.calls));
  plan.decisions = std::move(made.decisions);
  return plan;
}

}  // namespace stitchwork
