// The planner of FusionStitching 2019 (docs/planners/fusionstitching.md): patterns, scores, an integer
// program, and a kernel of every pattern that it takes.
#include "analysis/planners/planner.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>

#include "analysis/judge/cost.h"
#include "analysis/plan/assemble.h"
#include "analysis/planners/fusionstitching/alone.h"
#include "analysis/planners/fusionstitching/ilp/alike.h"
#include "analysis/planners/fusionstitching/ilp/choose.h"
#include "analysis/planners/fusionstitching/ilp/packing.h"
#include "analysis/planners/fusionstitching/ilp/required.h"
#include "analysis/planners/fusionstitching/ilp/template_kernel.h"
#include "analysis/planners/fusionstitching/ilp/tuned.h"
#include "analysis/verify/verify.h"
#include "core/base/at.h"
#include "core/base/error.h"
#include "core/base/parallel.h"
#include "core/base/sorted.h"

namespace stitchwork {
namespace fusionstitching {
namespace {

std::string names(const Ops& ops, const std::vector<NodeId>& pattern) {
  // Long patterns are told by their ends.
  if (pattern.size() > 8)
    return fmt::format("{} ops from {} to {}", pattern.size(), ops.name(pattern.front()),
                       ops.name(pattern.back()));
  std::string text;
  for (const NodeId id : pattern) text += (text.empty() ? "" : ", ") + ops.name(id);
  return text;
}

/// What was found out about patterns, for decisions.
using Found = std::map<int, PatternScore>;

void record(const Ops& ops, const std::vector<Pattern>& patterns, const Choice& choice, const Scores& scores,
            const Found& found, Recorder& recorder) {
  if (!recorder.enabled()) return;
  std::vector<std::vector<int>> outvoted(ops.size());
  for (int p = 0; p < static_cast<int>(patterns.size()); ++p) {
    const bool chosen = std::binary_search(choice.patterns.begin(), choice.patterns.end(), p);
    const Pattern& pattern = patterns[at(p)];
    if (const auto score = found.find(p); score != found.end() && (chosen || score->second.us < 0)) {
      const Verdict& made = score->second.made;
      const std::string why =
          fmt::format("{} ({}): {}", names(ops, pattern.ops), name(pattern.source), to_text(score->second));
      recorder.add("patterns", ops.name(pattern.ops.back()), ops.name(pattern.ops.front()), [&] {
        return chosen ? Verdict::yes("fs19.pattern", why)
                      : Verdict::no(made ? "fs19.negative" : made.rule, why);
      });
    }
    if (!chosen && scores.us[at(p)] >= 0)
      for (const NodeId id : pattern.ops) outvoted[static_cast<std::size_t>(id)].push_back(p);
  }
  for (NodeId id = 0; id < static_cast<NodeId>(ops.size()); ++id) {
    std::vector<int>& best = outvoted[static_cast<std::size_t>(id)];
    std::stable_sort(best.begin(), best.end(),
                     [&](int a, int b) { return scores.us[at(a)] > scores.us[at(b)]; });
    if (best.size() > 3) best.resize(3);  // the three best of each op
    for (const int p : best)
      recorder.add("patterns", ops.name(id), "", [&] {
        return Verdict::no("fs19.outvoted",
                           fmt::format("{}: {}{:.3f} us", names(ops, patterns[at(p)].ops),
                                       scores.exact[at(p)] ? "" : "at most ", scores.us[at(p)]));
      });
  }
  const std::string subject = ops.name(ops.nodes->computation->root);
  for (const Cycle& cycle : choice.cycles)
    recorder.add("ilp", ops.name(cycle.path.front()), "",
                 [&] { return Verdict::no("fs19.cycle", to_text(ops, cycle)); });
  if (!choice.limit.empty())
    recorder.add("ilp", subject, "", [&] { return Verdict::no("fs19.solver-limit", choice.limit); });
  recorder.add("ilp", subject, "", [&] {
    return Verdict::yes(
        "fs19.ilp",
        fmt::format("{} patterns, {} rows, {} rounds, {} nodes: {} patterns save {:.3f} us", patterns.size(),
                    choice.rows, choice.rounds, choice.nodes, choice.patterns.size(), choice.us));
  });
}

/// Whether something other than kernels that evaluate it again reads an index map's buffer.
bool is_needed(const Ops& ops, const std::vector<bool>& in_pattern, NodeId id) {
  if (!(*ops.nodes)[id].transparent || ops[id].result) return true;
  return std::any_of(ops[id].consumers.begin(), ops[id].consumers.end(), [&](NodeId consumer) {
    return !is_product(ops[consumer].kind) || !in_pattern[static_cast<std::size_t>(consumer)];
  });
}

/// A lone copy is a step of its own, but for one of an index map, which has no buffer.
bool copies_a_buffer(const astitch::Nodes& nodes, NodeId id) {
  const Node& node = nodes.node(id);
  if (node.op != Op::kCopy) return false;
  const NodeId read = buffer_of(*nodes.computation, node.operands.at(0));
  return nodes[read].role != PlanRole::kMemory || nodes[read].member;
}

/// What is to be one kernel: taken patterns, then ops that none has.
std::vector<std::vector<NodeId>> find_parts(const Ops& ops, const std::vector<Pattern>& patterns,
                                            const Choice& choice) {
  std::vector<bool> in_pattern(ops.size(), false);
  std::vector<std::vector<NodeId>> parts;
  for (const int p : choice.patterns) {
    parts.push_back(patterns[at(p)].ops);
    for (const NodeId id : patterns[at(p)].ops) in_pattern[static_cast<std::size_t>(id)] = true;
  }
  for (NodeId id = 0; id < static_cast<NodeId>(ops.size()); ++id) {
    if (in_pattern[static_cast<std::size_t>(id)] || !(*ops.nodes)[id].member) continue;
    if (!copies_a_buffer(*ops.nodes, id) && is_needed(ops, in_pattern, id)) parts.push_back({id});
  }
  return parts;
}

/// Products evaluate index maps again in their kernels. Those that another kernel stores are read there where
/// what they are made of is in no buffer; elsewhere they are not, as that would add what a kernel waits for.
/// The facts by which kernels are made.
astitch::Nodes with_stored_maps(const Ops& ops, const std::vector<Pattern>& patterns, const Choice& choice) {
  astitch::Nodes nodes = *ops.nodes;
  std::map<NodeId, int> owner, stored;
  for (const int p : choice.patterns) {
    for (const NodeId id : patterns[at(p)].ops) owner.emplace(id, p);
    for (const NodeId id : outputs_of(ops, patterns[at(p)].ops)) stored.emplace(id, p);
  }
  const auto is_made_of_unstored = [&](NodeId map) {
    std::vector<NodeId> open{map};
    while (!open.empty()) {
      const NodeId id = open.back();
      open.pop_back();
      for (const NodeId operand : ops.nodes->node(id).operands) {
        if ((*ops.nodes)[operand].immediate) continue;
        if ((*ops.nodes)[operand].transparent)
          open.push_back(operand);
        else if (owner.contains(operand) && !stored.contains(operand))
          return true;
      }
    }
    return false;
  };
  for (const int p : choice.patterns)
    for (const NodeId id : evaluated_ops(*ops.nodes, patterns[at(p)].ops))
      if (const auto by = stored.find(id); by != stored.end() && by->second != p && is_made_of_unstored(id))
        nodes.facts[static_cast<std::size_t>(id)].transparent = false;
  return nodes;
}

/// The kernel of a part: the fastest by the estimate of what the knobs allow.
KernelPlan make_kernel(const Ops& ops, const std::vector<NodeId>& part, Packer& packer,
                       const IlpOptions& options) {
  if (const auto* wanted = Constraints::find(options.constraints.templates, part))
    return template_kernel(ops, part, wanted->second, options);
  const bool alone = part.size() == 1;
  const bool wants_block = Constraints::find(options.constraints.block, part) != nullptr;
  if (alone && (!ops[part.front()].fusible || (!options.tuned && !wants_block)))
    return kernel_alone(*ops.nodes, *ops.device, part.front());
  PackedKernel packed = packer.pack(part);
  if (alone && !packed.whole) return kernel_alone(*ops.nodes, *ops.device, part.front());
  SW_CHECK(packed.whole.has_value(), "a pattern that was taken has no kernel: {}", packed.made.why);
  KernelPlan best = stitched_kernel(*ops.nodes->computation, *packed.whole);
  double us = packed.us;
  const auto offer = [&](std::optional<KernelPlan> kernel) {
    if (!kernel) return;
    const double other = modelled_us(ops, *kernel);
    if (other >= us) return;
    us = other;
    best = std::move(*kernel);
  };
  if (alone && !wants_block) offer(kernel_alone(*ops.nodes, *ops.device, part.front()));
  if (options.tuned) {
    offer(tuned_kernel(ops, part, options));
    offer(summed_kernel(ops, part));
    const KernelEvaluations found = evaluations(*ops.nodes->computation, best);
    best = with_vectors(*ops.nodes->graph, *ops.device, best, found).value_or(std::move(best));
  }
  return best;
}

/// Parts that are alike have kernels that are alike, unless overrides tell them apart.
std::vector<KernelPlan> make_kernels(const Ops& ops, const std::vector<std::vector<NodeId>>& parts,
                                     Packer& packer, const IlpOptions& options) {
  std::vector<std::vector<NodeId>> evaluated;
  std::vector<std::size_t> first(parts.size()), distinct;  // by part: the first that is alike
  std::map<std::string, std::size_t> known;
  for (std::size_t k = 0; k < parts.size(); ++k) {
    const bool isolated = parts[k].size() == 1 && !ops[parts[k].front()].fusible;
    evaluated.push_back(isolated ? parts[k] : evaluated_ops(*ops.nodes, parts[k]));
    first[k] = k;
    if (!isolated && !options.constraints.are_about(evaluated[k]))
      first[k] =
          known.emplace(pattern_key(*ops.nodes, evaluated[k], outputs_of(ops, parts[k])), k).first->second;
    if (first[k] == k) distinct.push_back(k);
  }
  std::vector<KernelPlan> kernels(parts.size());
  parallel_for(distinct.size(), [&](std::size_t d) {
    kernels[distinct[d]] = make_kernel(ops, parts[distinct[d]], packer, options);
  });
  for (std::size_t k = 0; k < parts.size(); ++k)
    if (first[k] != k)
      kernels[k] = renamed(*ops.nodes->computation, kernels[first[k]], evaluated[first[k]], evaluated[k]);
  return kernels;
}

/// A template that somebody wrote may be none that verify admits.
void require_sound(const Graph& graph, const Device& device, const FusionPlan& plan,
                   const IlpOptions& options) {
  if (options.constraints.templates.empty()) return;
  for (const Verdict& problem : verify(graph, device, plan)) {
    throw Error("template", 1, 1, problem.why, fmt::format("refused by {}", problem.rule));
  }
}

}  // namespace
}  // namespace fusionstitching

FusionPlan plan_fusionstitching(const Graph& graph, const Device& device, const PlanOptions& options) {
  using namespace fusionstitching;
  const IlpOptions knobs = read_ilp_options(graph, device, options);
  const astitch::Nodes nodes = astitch::node_facts(graph);
  const Ops ops = find_ops(nodes, device, knobs.products);
  Recorder recorder(options.record_decisions);
  const Required required = required_sets(ops, knobs.constraints);
  const Partitions partitions = find_partitions(ops, recorder);
  std::vector<Pattern> patterns = find_patterns(ops, partitions, knobs, required, recorder);

  Packer packer(ops, knobs);
  Scorer scorer(ops, patterns, knobs.score, knobs.launch, knobs.constraints,
                [&](const std::vector<NodeId>& pattern, bool timed) {
                  const PackedKernel packed = packer.pack(pattern, timed);
                  KernelEstimate estimate{packed.made, packed.us, packed.one_block};
                  if (!packed.made || !knobs.tuned) return estimate;
                  if (const auto summed = summed_kernel(ops, pattern)) {
                    estimate.us = std::min(packed.us, modelled_us(ops, *summed));
                    estimate.one_block = false;
                  }
                  return estimate;
                });
  Scores scores;
  // What overrides require is taken though it saves nothing, if there is a kernel of it.
  const auto is_required = [&](const Pattern& pattern) {
    return std::ranges::any_of(required,
                               [&](const auto& set) { return contains_sorted(pattern.ops, set.front()); });
  };
  for (const Pattern& pattern : patterns) {
    const double most = scorer.upper_bound(pattern.ops);
    scores.us.push_back(is_required(pattern) ? std::max(0.0, most) : most);
  }
  scores.exact.assign(patterns.size(), false);
  Found found;
  scores.evaluate = [&](const std::vector<int>& which) {
    std::vector<const Pattern*> asked;
    for (const int p : which) asked.push_back(&patterns[at(p)]);
    std::vector<double> us;
    std::vector<PatternScore> exact = scorer.exact(asked);
    for (std::size_t i = 0; i < which.size(); ++i) {
      const bool taken = exact[i].made && is_required(*asked[i]);
      us.push_back(taken ? std::max(0.0, exact[i].us) : exact[i].us);
      if (recorder.enabled()) found[which[i]] = std::move(exact[i]);
    }
    return us;
  };
  const Choice choice = choose(ops, partitions, knobs, required, patterns, scorer, scores);
  record(ops, patterns, choice, scores, found, recorder);
  const astitch::Nodes stored = with_stored_maps(ops, patterns, choice);
  Ops of_kernels = ops;
  of_kernels.nodes = &stored;
  Packer kernels_packer(of_kernels, knobs);
  const bool same = std::ranges::equal(nodes.facts, stored.facts, {}, &astitch::NodeFacts::transparent,
                                       &astitch::NodeFacts::transparent);
  FusionPlan plan = assemble(
      graph, device, "fusionstitching",
      make_kernels(of_kernels, find_parts(ops, patterns, choice), same ? packer : kernels_packer, knobs));
  require_sound(graph, device, plan, knobs);
  plan.decisions = recorder.take();
  return plan;
}

}  // namespace stitchwork
