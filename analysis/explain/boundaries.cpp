#include "analysis/explain/boundaries.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <mutex>
#include <set>
#include <span>
#include <unordered_map>

#include "analysis/facts/facts.h"
#include "analysis/plan/assemble.h"
#include "analysis/plan/traffic.h"
#include "core/base/sorted.h"

namespace stitchwork {
namespace {

bool reads(const Computation& computation, NodeId op, NodeId value) {
  const auto& operands = computation.node(op).operands;
  return std::any_of(operands.begin(), operands.end(), [&](NodeId operand) {
    return contains_sorted(values_read(computation, operand), value);
  });
}

/// The first of a kernel's ops that computes with a value; one that only reads it by an index map if none
/// does.
NodeId reader_of(const Computation& computation, const std::vector<NodeId>& ops, NodeId value) {
  std::set<NodeId> views{value};
  NodeId first = kNoNode;
  for (const NodeId op : ops) {
    const auto reads_view = [&](NodeId operand) {
      return std::ranges::any_of(values_read(computation, operand),
                                 [&](NodeId value_read) { return views.contains(value_read); });
    };
    if (std::ranges::none_of(computation.node(op).operands, reads_view)) continue;
    if (!is_index_map(computation.node(op))) return op;
    views.insert(op);
    if (first == kNoNode) first = op;
  }
  return first == kNoNode ? ops.front() : first;
}

/// Steps of planners whose decisions are about the subject and everything that reads it: XLA's fusion merger
/// and its priority fusion move a fusion into all its users or none, TVM's partition an op with all paths to
/// where they meet.
bool is_about_all_readers(std::string_view step) {
  return step == "fusion-merger" || step == "priority-fusion" || step == "partition";
}

/// What a library call might compute beside its op.
bool is_about_epilogue(std::string_view rule) {
  return rule == "tvm.library-epilogue" || rule == "auto.epilogue";
}

/// Refusals after which a later pass of the same planner decides.
bool defers(std::string_view rule) {
  return rule == "xla.several-users" || rule == "xla.producer-is-a-fusion";
}

/// How close a decision comes to the boundary between two kernels; 0: it is about something else.
class Closeness {
 public:
  Closeness(const PlanView& view, const FusionPlan& plan, const StepBoundary& at)
      : at_(at),
        from_(plan.kernels[static_cast<std::size_t>(plan.steps[static_cast<std::size_t>(at.from)].kernel)]),
        to_(plan.kernels[static_cast<std::size_t>(plan.steps[static_cast<std::size_t>(at.to)].kernel)]),
        computation_(view.computation()) {}

  int of(const Decision& d, NodeId subject, NodeId object) const {
    if (d.verdict.ok || !decides_kernels(d.step) || is_about_siblings(d.verdict.rule) || subject == object)
      return 0;
    const int close = about(d.step, subject, object);
    return close > 1 && defers(d.verdict.rule) ? 1 : close;
  }

  /// All that may come close, ascending: those that name first an op of either kernel, or the value.
  std::vector<std::size_t> decisions(const PlanView& view) const {
    std::vector<std::size_t> result;
    const auto add = [&](std::span<const std::size_t> more) {
      result.insert(result.end(), more.begin(), more.end());
    };
    for (const KernelPlan* kernel : {&from_, &to_})
      for (const NodeId op : kernel->ops) add(view.decisions_of(op));
    add(view.decisions_of_value(at_.value));
    sort_unique(result);
    return result;
  }

 private:
  int about(std::string_view step, NodeId subject, NodeId object) const {
    if (step == "recompute")  // what it is computed again from, and the first that reads it
      return subject == at_.value && object != kNoNode && contains_sorted(to_.ops, object) ? 6 : 0;
    if (step == "patterns")  // from its last op to its first
      return object != kNoNode && contains_sorted(to_.ops, subject) && contains_sorted(from_.ops, object) ? 3
                                                                                                          : 0;
    const bool all_readers = is_about_all_readers(step);
    // A value and its names end together: the last name in a kernel is what was refused.
    if (all_readers && subject != kNoNode && buffer_of(computation_, subject) == at_.value) return 5;
    if (subject == kNoNode || !contains_sorted(from_.ops, subject)) return 0;
    if (object == kNoNode) return all_readers ? 2 : 0;
    if (!contains_sorted(to_.ops, object)) return 0;
    // The reader itself, which the value's kernel may compute again for others.
    if (subject == at_.value && object == at_.reader) return 6;
    if (contains_sorted(from_.ops, object)) return 0;
    // What both kernels compute was not kept apart, but a fusion whose index maps are computed again was.
    if (contains_sorted(to_.ops, subject)) return step == "subgraph" ? 2 : 0;
    if (subject == at_.value) return object == at_.reader || reads(computation_, object, at_.value) ? 6 : 5;
    return object == at_.reader ? 4 : 3;
  }

  const StepBoundary& at_;
  const KernelPlan &from_, &to_;
  const Computation& computation_;
};

Decision made(const PlanView& view, const StepBoundary& at, std::string rule, std::string why) {
  return {"boundary", view.name(at.value), at.reader == kNoNode ? std::string() : view.name(at.reader),
          Verdict::no(std::move(rule), std::move(why))};
}

/// What a step that is no kernel ends kernels by.
std::pair<std::string, std::string> ending(const Computation& computation, const PlanStep& step) {
  const Node& node = computation.node(step.nodes.front());
  switch (step.kind) {
    case StepKind::kCopy:
      return {"boundary.copy", fmt::format("{} is a copy in device memory, no kernel", step.id)};
    case StepKind::kControl:
      return node.op == Op::kWhile
                 ? std::pair<std::string, std::string>{"boundary.loop",
                                                       fmt::format("{} is a loop: what it reads and gives "
                                                                   "lies in device memory",
                                                                   node.name)}
                 : std::pair<std::string, std::string>{"boundary.branch",
                                                       fmt::format("{} is a branch: what it reads and gives "
                                                                   "lies in device memory",
                                                                   node.name)};
    default:
      return plan_role(node) == PlanRole::kLibrary
                 ? std::pair<std::string, std::string>{"boundary.library-call",
                                                       fmt::format("a library call ends the kernel: {} is "
                                                                   "computed by one",
                                                                   node.name)}
                 : std::pair<std::string, std::string>{
                       "boundary.opaque-call",
                       fmt::format("{} is a {}, which no kernel computes", node.name, def(node.op).name)};
  }
}

/// Why a call does not compute what the kernel that reads it does, where its planner thought of it.
const Decision* library_epilogue(const PlanView& view, const FusionPlan& plan, const StepBoundary& at) {
  const PlanStep& to = plan.steps[static_cast<std::size_t>(at.to)];
  if (to.kind != StepKind::kKernel) return nullptr;
  const Decision* found = nullptr;  // the last
  for (const NodeId op : plan.kernels[static_cast<std::size_t>(to.kernel)].ops)
    for (const std::size_t d : view.decisions_of(op))
      if (const Decision& decision = view.decisions()[d];
          !decision.verdict.ok && is_about_epilogue(decision.verdict.rule) &&
          view.about(d).second == at.value && (found == nullptr || found < &decision))
        found = &decision;
  return found;
}

/// Why the kernels around a product do not compute it, where their planner thought of it.
const Decision* product_apart(const PlanView& view, const PlanStep& step) {
  if (step.kind != StepKind::kLibrary) return nullptr;
  for (const std::size_t d : view.decisions_of(step.nodes.front()))
    if (const Decision& decision = view.decisions()[d];
        !decision.verdict.ok && decision.verdict.rule == "auto.product")
      return &decision;
  return nullptr;
}

/// The steps that read what each makes; -1: the result.
struct StepReaders {
  std::once_flag made;
  std::unordered_map<int, std::vector<int>> of;
};

/// A step on a path between the two kernels that leaves both: one kernel would wait for itself there.
std::optional<int> step_between(const PlanView& view, const FusionPlan& plan, const StepBoundary& at) {
  auto& readers = view.derived.get<StepReaders>();
  std::call_once(readers.made, [&] {
    for (const StepBoundary& b : boundaries(view.graph(), plan)) readers.of[b.from].push_back(b.to);
  });
  const auto readers_of = [&](int step) -> std::span<const int> {
    const auto found = readers.of.find(step);
    return found == readers.of.end() ? std::span<const int>() : found->second;
  };
  std::vector<int> open;
  std::unordered_map<int, int> first;  // by step that is reached: the path's first step behind `from`
  for (const int next : readers_of(at.from))
    if (next != at.to && first.emplace(next, next).second) open.push_back(next);
  while (!open.empty()) {
    const int step = open.back();
    open.pop_back();
    // Steps are in an order in which nothing is read before it is made.
    if (step >= at.to) continue;
    for (const int next : readers_of(step)) {
      if (next == at.to) return first[step];
      if (first.emplace(next, first[step]).second) open.push_back(next);
    }
  }
  return std::nullopt;
}

/// FusionStitching's program chooses among patterns: nothing is decided about a pair of ops.
Decision outvoted(const PlanView& view, const StepBoundary& at) {
  std::string why = "no pattern that was taken holds both";
  for (const NodeId op : {at.reader, at.value})
    for (const std::size_t d : view.decisions_of(op))  // the best of those not taken comes first
      if (view.decisions()[d].verdict.rule == "fs19.outvoted")
        return made(view, at, "fs19.outvoted",
                    fmt::format("{}; the best other of {} was {}", why, view.name(op),
                                view.decisions()[d].verdict.why));
  return made(view, at, "fs19.not-found", why + ", and none was found");
}

/// Between two of a compiler's kernels: its module says what it did, not why.
Decision compilers_own(const PlanView& view, const FusionPlan& plan, const StepBoundary& at) {
  const auto what = [&](int step) {
    const KernelPlan& kernel =
        plan.kernels[static_cast<std::size_t>(plan.steps[static_cast<std::size_t>(step)].kernel)];
    std::string kind = kernel.code->kind;
    if (kernel.code->product) kind += kind.empty() ? "a matrix product" : " with a matrix product";
    return kind.empty() ? kernel.name : fmt::format("{} ({})", kernel.name, kind);
  };
  return made(
      view, at, "peer.decision",
      fmt::format("{} has {} and {} apart; why is not known", plan.peer->title, what(at.from), what(at.to)));
}

/// Between two kernels where no refusal is recorded of.
Decision undecided(const PlanView& view, const FusionPlan& plan, const StepBoundary& at) {
  if (plan.peer != nullptr) return compilers_own(view, plan, at);
  const auto between = plan.options.find("elementwise");  // Astra's: who planned the kernels
  if (plan.planner == "unfused" || (between != plan.options.end() && between->second == "unfused"))
    return made(view, at, "unfused.one-op-a-kernel", "every op is a kernel of its own");
  if (plan.planner == "eager")
    return made(view, at, "eager.no-fusion", "an op, or a function of the library, is a kernel of its own");
  // Where a fusion had no form, kernels were made of its parts.
  if (plan.planner == "imported" || plan.planner == "xla-today") {
    const auto origin = [&](NodeId op) {
      const std::span<const std::size_t> of = view.decisions_of(op);
      return of.empty() ? std::string("an op outside fusions") : view.decisions()[of.back()].verdict.why;
    };
    return made(view, at, plan.planner == "imported" ? "imported.as-compiled" : "xla-today.parts",
                fmt::format("{}: {}; {}: {}", view.name(at.value), origin(at.value), view.name(at.reader),
                            origin(at.reader)));
  }
  std::vector<NodeId> open = view.computation().node(at.reader).operands;
  while (!open.empty()) {
    const Node& node = view.computation().node(open.back());
    open.pop_back();
    if (plan_role(node) != PlanRole::kAlias) continue;
    if (node.op == Op::kOptimizationBarrier)
      return made(view, at, "boundary.optimization-barrier",
                  fmt::format("{} is between them: nothing is fused across it", node.name));
    open.insert(open.end(), node.operands.begin(), node.operands.end());
  }
  if (const std::optional<int> between = step_between(view, plan, at)) {
    const NodeId op = op_of(plan, plan.steps[static_cast<std::size_t>(*between)]);
    return made(view, at, "boundary.cycle",
                fmt::format("{} lies between them: one kernel of both would wait for itself", view.name(op)));
  }
  // The program's own decision is about the root.
  if (std::ranges::any_of(view.decisions_of(view.computation().root),
                          [&](std::size_t d) { return view.decisions()[d].step == "ilp"; }))
    return outvoted(view, at);
  for (const NodeId op : {at.value, at.reader})
    if (const Shape& shape = view.computation().node(op).shape;
        !shape.is_tuple && shape.elements_count() == 0)
      return made(view, at, "boundary.no-elements",
                  fmt::format("{} has no elements: nothing is computed in its kernel", view.name(op)));
  return made(view, at, "boundary.not-recorded",
              "the plan has no decision about it: it was edited, or made by another version");
}

/// Later in the plan's record, about the same two ops or, by a pass that moves an op into all its readers,
/// about the first.
bool decided_later(const PlanView& view, std::size_t refusal) {
  const auto [subject, object] = view.about(refusal);
  if (subject == kNoNode) return false;
  return std::ranges::any_of(view.decisions_of(subject), [&, object = object](std::size_t d) {
    const Decision& later = view.decisions()[d];
    return d > refusal && decides_kernels(later.step) &&
           (view.about(d).second == object || (later.object.empty() && is_about_all_readers(later.step)));
  });
}

}  // namespace

std::vector<StepBoundary> boundaries(const Graph& model, const FusionPlan& plan) {
  const Graph& graph = planned_graph(model, plan);
  const Computation& computation = graph.entry_computation();
  std::unordered_map<NodeId, int> makers;
  for (std::size_t s = 0; s < plan.steps.size(); ++s) {
    const PlanStep& step = plan.steps[s];
    if (step.kind == StepKind::kMemset) continue;
    const std::span<const NodeId> stored = step.kind == StepKind::kKernel
                                               ? plan.kernels[static_cast<std::size_t>(step.kernel)].outputs
                                               : results_of(plan, step);
    for (const NodeId op : stored) makers.emplace(op, static_cast<int>(s));
  }
  std::vector<StepBoundary> result;
  const auto add = [&](NodeId value, NodeId reader, int to) {
    const auto maker = makers.find(value);
    if (maker != makers.end() && maker->second != to) result.push_back({value, reader, maker->second, to});
  };
  for (std::size_t s = 0; s < plan.steps.size(); ++s) {
    const PlanStep& step = plan.steps[s];
    if (step.kind == StepKind::kMemset) continue;
    if (step.kind == StepKind::kKernel) {
      const KernelPlan& kernel = plan.kernels[static_cast<std::size_t>(step.kernel)];
      for (const NodeId value : kernel_reads(graph, kernel))
        if (makers.contains(value))
          add(value, reader_of(computation, kernel.ops, value), static_cast<int>(s));
      continue;
    }
    for (const NodeId op : step.nodes)
      for (const NodeId value : library_inputs(computation, computation.node(op)))
        if (std::ranges::find(step.nodes, value) == step.nodes.end()) add(value, op, static_cast<int>(s));
  }
  for (const NodeId value : values_read(computation, computation.root)) add(value, kNoNode, -1);
  return result;
}

NodeId op_of(const FusionPlan& plan, const PlanStep& step) {
  return step.kind == StepKind::kKernel ? plan.kernels[static_cast<std::size_t>(step.kernel)].outputs.back()
                                        : step.nodes.front();
}

bool decides_kernels(std::string_view step) {
  constexpr std::array<std::string_view, 14> kSteps = {
      "priority-fusion",     "xla-today", "scope",     "instruction-fusion", "fusion-merger",
      "multi-output-fusion", "partition", "functions", "imported",           "subgraph",
      "elementwise",         "patterns",  "program",   "recompute"};
  return std::find(kSteps.begin(), kSteps.end(), step) != kSteps.end();
}

bool is_about_siblings(std::string_view rule) {
  return rule.starts_with("xla.sibling") || rule.starts_with("astitch.remote") || rule == "fs18.footprint" ||
         rule == "fs18.too-large-to-pack";
}

bool decided(const PlanView& view, std::size_t d) {
  const Decision& decision = view.decisions()[d];
  if (!decides_kernels(decision.step)) return true;
  const auto [subject, object] = view.about(d);
  const bool joined = !decision.verdict.ok && subject != kNoNode && object != kNoNode && subject != object &&
                      !view.kernels_of(object).empty() && view.shares_kernel(subject, object);
  return !joined && !defers(decision.verdict.rule) && !decided_later(view, d);
}

Decision why_apart(const PlanView& view, const FusionPlan& plan, const StepBoundary& boundary) {
  const PlanStep& from = plan.steps[static_cast<std::size_t>(boundary.from)];
  if (boundary.to < 0)
    return made(view, boundary, "boundary.result", "it is a result, which is stored whatever else reads it");
  const PlanStep& to = plan.steps[static_cast<std::size_t>(boundary.to)];
  for (const PlanStep* step : {&from, &to}) {
    if (step->kind == StepKind::kKernel) continue;
    if (const Decision* epilogue = library_epilogue(view, plan, boundary)) return *epilogue;
    if (const Decision* product = product_apart(view, *step)) return *product;
    auto [rule, why] = ending(view.computation(), *step);
    return made(view, boundary, std::move(rule), std::move(why));
  }
  const Closeness closeness(view, plan, boundary);
  const Decision* best = nullptr;
  int closest = 1;
  for (const std::size_t d : closeness.decisions(view)) {
    const auto [subject, object] = view.about(d);
    const int close = closeness.of(view.decisions()[d], subject, object);
    if (close < closest) continue;
    best = &view.decisions()[d];
    closest = close;
  }
  return best == nullptr ? undecided(view, plan, boundary) : *best;
}

std::optional<Decision> why_together(const PlanView& view, NodeId producer, NodeId consumer) {
  const auto closeness_of = [&](NodeId a, NodeId b) {
    if (a == producer && b == consumer) return 4;
    if (a == producer && view.share_a_kernel(b, consumer)) return 3;
    if (b == consumer && view.share_a_kernel(a, producer)) return 2;
    return view.share_a_kernel(a, producer) && view.share_a_kernel(b, consumer) ? 1 : 0;
  };
  std::vector<std::size_t> near;  // those that name first an op of a kernel of either
  const auto add = [&](NodeId op) {
    const std::span<const std::size_t> of = view.decisions_of(op);
    near.insert(near.end(), of.begin(), of.end());
  };
  for (const NodeId end : {producer, consumer}) {
    add(end);
    for (const std::size_t k : view.kernels_of(end)) std::ranges::for_each(view.ops(k), add);
  }
  sort_unique(near);
  const Decision* best = nullptr;
  int closest = 0;
  for (const std::size_t d : near) {
    const Decision& decision = view.decisions()[d];
    if (!decision.verdict.ok || !decides_kernels(decision.step)) continue;
    const auto [subject, object] = view.about(d);
    const int close = std::max(closeness_of(subject, object), closeness_of(object, subject));
    if (close <= closest) continue;
    best = &decision;
    closest = close;
  }
  return best == nullptr ? std::nullopt : std::optional(*best);
}

}  // namespace stitchwork
