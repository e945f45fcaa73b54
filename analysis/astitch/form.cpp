#include "analysis/astitch/form.h"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <utility>

#include "analysis/astitch/across.h"
#include "analysis/astitch/equal_ops.h"
#include "analysis/astitch/lanes.h"
#include "analysis/astitch/launch.h"
#include "analysis/astitch/mapping_tuned.h"
#include "analysis/astitch/one_pass.h"
#include "analysis/astitch/residence.h"
#include "analysis/astitch/sharing.h"
#include "analysis/astitch/staging.h"
#include "analysis/astitch/stitch.h"
#include "analysis/astitch/transposes.h"
#include "analysis/astitch/vectors.h"
#include "analysis/astitch/wanted.h"
#include "analysis/clusters.h"
#include "analysis/cost.h"
#include "analysis/tiles.h"
#include "core/interrupt.h"

namespace stitchwork::astitch {
namespace {

/// Rounds of amendments; each adds at least one op, few graphs need more than two.
constexpr int kMaxRounds = 12;

/// A stitch op after all passes but memory and launch.
struct Stitched {
  Body body;
  Candidates candidates;
  std::vector<OpGroup> groups;
  Finalization finalization;
};

Stitched run_once(const Nodes& nodes, const StitchOp& op, const Options& options, const MappingLimits& limits,
                  const Amendments& amendments, const std::set<NodeId>& global,
                  const std::set<NodeId>& across, Recorder& recorder) {
  Stitched result;
  result.body = make_body(nodes, op);
  result.candidates = find_candidates(result.body, amendments, recorder);
  result.candidates.across = across;
  result.groups = form_groups(result.body, result.candidates, limits, options.dominant_merging, recorder);
  if (options.proactive_locality) {
    result.groups = adapt_groups(result.body, result.candidates, std::move(result.groups),
                                 options.dominant_merging, recorder);
  }
  result.finalization = finalize(result.body, result.candidates, result.groups, global, recorder);
  return result;
}

/// So far beyond a kernel's limits that amendments would not bring it back: it will be cut, and its parts
/// find amendments of their own.
bool far_beyond_limits(const Nodes& nodes, const Stitched& stitched, const Options& options) {
  constexpr int kFar = 2;
  return bodies(nodes, stitched.groups) > kFar * options.max_groups ||
         stitched.finalization.grid_barriers + 1 > kFar * options.max_phases;
}

/// The passes, again with what each round has learned; scalars that crowd their readers become wanted Global.
/// Decisions are those of the rounds taken.
Stitched run_passes(const Nodes& nodes, const StitchOp& op, const Device& device, const Options& options,
                    const MappingLimits& limits, WantedSchemes& wanted, const std::set<NodeId>& across,
                    Recorder& recorder) {
  Amendments amendments = wanted.amendments;
  std::vector<Decision> decisions;
  const auto run = [&] {
    interruption_point();
    Recorder round(recorder.enabled());
    Stitched result = run_once(nodes, op, options, limits, amendments, wanted.global, across, round);
    decisions = round.take();
    return result;
  };
  Stitched result = run();
  if (options.constraints.together.empty() && far_beyond_limits(nodes, result, options)) {
    recorder.append(std::move(decisions));
    return result;
  }
  for (int round = 1; round < kMaxRounds; ++round) {
    if (!amend(result.body, result.candidates, result.groups, result.finalization, device, amendments,
               recorder)) {
      break;
    }
    result = run();
  }
  bool crowded = false;
  for (const NodeId id : crowding_scalars(result.body, result.groups, result.finalization, device)) {
    if (wanted.regional.contains(id)) continue;
    crowded = wanted.global.insert(id).second || crowded;
  }
  if (crowded) result = run();
  if (result.finalization.grid_barriers > 0) {
    std::set<NodeId> promotions =
        promotions_to_try(result.body, result.candidates, result.groups, result.finalization);
    for (const NodeId id : amendments.inlined) promotions.erase(id);
    if (!promotions.empty()) {
      const double before = scheme_cost_us(result.body, result.groups, result.finalization, device);
      amendments.promoted.insert(promotions.begin(), promotions.end());
      std::vector<Decision> kept = std::exchange(decisions, {});
      Stitched trial = run();
      const double after = scheme_cost_us(trial.body, trial.groups, trial.finalization, device);
      for (const NodeId id : promotions) {
        recorder.add("dominants", nodes.name(id), "", [&] {
          const std::string why =
              fmt::format("stored {:.2f} us, inlined {:.2f} us in barriers and traffic", after, before);
          return after < before ? Verdict::yes("astitch.store-shared", why)
                                : Verdict::no("astitch.store-shared", why);
        });
      }
      if (after < before) {
        result = std::move(trial);
      } else {
        decisions = std::move(kept);
      }
    }
  }
  recorder.append(std::move(decisions));
  return result;
}

KernelPlan to_kernel(const Stitched& stitched) {
  KernelPlan kernel;
  std::set<NodeId> ops;
  for (const std::size_t g : stitched.finalization.order) {
    const OpGroup& group = stitched.groups[g];
    Group result;
    result.dominant = group.dominant;
    for (const NodeId id : group.materialised) {
      if (id != group.dominant) result.sub_dominants.push_back(id);
      if (is_across(group, id)) result.across.push_back(id);
    }
    result.ops = group.ops;
    result.mapping = group.mapping;
    result.lane = group.lane;
    result.first_block = group.first_block;
    ops.insert(group.ops.begin(), group.ops.end());
    kernel.groups.push_back(std::move(result));
  }
  kernel.ops.assign(ops.begin(), ops.end());
  kernel.outputs.assign(stitched.body.outputs.begin(), stitched.body.outputs.end());
  kernel.schemes = stitched.finalization.schemes;
  kernel.levels = stitched.finalization.levels;
  kernel.in_phase = stitched.finalization.in_phase;
  return kernel;
}

/// The members a first kernel computes when one is too large: a prefix of a topological order, so that the
/// rest never feeds it.
std::vector<NodeId> first_part(const Stitched& stitched, const Options& options) {
  const auto& levels = stitched.finalization.levels;
  if (stitched.finalization.grid_barriers < options.max_phases) {
    // Too many groups: half of the candidates each.
    auto middle = stitched.candidates.kinds.begin();
    std::advance(middle, static_cast<std::ptrdiff_t>(stitched.candidates.kinds.size() / 2));
    std::vector<NodeId> part;
    for (const NodeId id : stitched.body.members) {
      if (id < middle->first) part.push_back(id);
    }
    return part;
  }
  // Too many phases: the first ones, with what they inline.
  std::set<NodeId> part;
  for (const OpGroup& group : stitched.groups) {
    std::vector<NodeId> stack;
    for (const NodeId id : group.materialised) {
      if (levels.at(id) < options.max_phases - 1) stack.push_back(id);
    }
    while (!stack.empty()) {
      const NodeId id = stack.back();
      stack.pop_back();
      if (!stitched.body.contains(id) || !part.insert(id).second) continue;
      const auto& operands = stitched.body.nodes->node(id).operands;
      stack.insert(stack.end(), operands.begin(), operands.end());
    }
  }
  std::vector<NodeId> result;
  for (const NodeId id : part) {
    if (stitched.body.members.contains(id)) result.push_back(id);
  }
  return result;
}

/// Whether a cut of `op` behind `part` would part two ops that an override wants in one kernel.
bool separates(const Constraints& constraints, const StitchOp& op, const std::vector<NodeId>& part) {
  return std::any_of(constraints.together.begin(), constraints.together.end(), [&](const auto& pair) {
    const auto in = [](const std::vector<NodeId>& ids, NodeId id) {
      return std::binary_search(ids.begin(), ids.end(), id);
    };
    return in(op.members, pair.first) && in(op.members, pair.second) &&
           in(part, pair.first) != in(part, pair.second);
  });
}

}  // namespace

std::vector<KernelPlan> plan_form(const Nodes& nodes, const StitchOp& op, const Device& device,
                                  const Options& options, const std::set<NodeId>& across, Recorder& recorder,
                                  WideForms forms) {
  const int accumulators = accumulators_of(nodes, across);
  Recorder attempt(recorder.enabled());
  WantedSchemes wanted = wanted_schemes(op, options.constraints);
  if (!options.data_reuse) {
    std::set_difference(op.members.begin(), op.members.end(), wanted.regional.begin(), wanted.regional.end(),
                        std::inserter(wanted.global, wanted.global.end()));
  }
  MappingLimits limits = mapping_limits(nodes, op, device, options, forms.waits, accumulators, forms);
  Stitched stitched = run_passes(nodes, op, device, options, limits, wanted, across, attempt);
  if (!limits.one_wave && limits.cluster > 1 && stitched.finalization.grid_barriers > 0) {
    // Something of the row would have to go from block to block after all.
    attempt.take();
    forms.clusters = false;
    limits = mapping_limits(nodes, op, device, options, false, accumulators, forms);
    stitched = run_passes(nodes, op, device, options, limits, wanted, across, attempt);
  }
  if (!limits.one_wave && stitched.finalization.grid_barriers > 0) {
    attempt.take();
    limits = mapping_limits(nodes, op, device, options, true, accumulators, forms);
    stitched = run_passes(nodes, op, device, options, limits, wanted, across, attempt);
  }

  const int phases = stitched.finalization.grid_barriers + 1;
  const int groups = bodies(nodes, stitched.groups);
  if (phases > options.max_phases || groups > options.max_groups) {
    const std::vector<NodeId> part = first_part(stitched, options);
    if (!part.empty() && part.size() < op.members.size() && !separates(options.constraints, op, part)) {
      recorder.add("scope", nodes.name(part.back()), "", [&] {
        return Verdict::no("astitch.kernel-limits",
                           fmt::format("{} groups in {} phases, {} in {} allowed: the kernel is cut here",
                                       groups, phases, options.max_groups, options.max_phases));
      });
      std::vector<NodeId> rest;
      std::set_difference(op.members.begin(), op.members.end(), part.begin(), part.end(),
                          std::back_inserter(rest));
      std::vector<KernelPlan> kernels;
      for (const auto& members : {part, rest}) {
        for (const StitchOp& smaller : connected_parts(nodes, members)) {
          for (KernelPlan& kernel : plan_stitch_op(nodes, smaller, device, options, recorder)) {
            kernels.push_back(std::move(kernel));
          }
        }
      }
      return kernels;
    }
  }
  recorder.append(attempt.take());
  KernelPlan kernel;
  std::vector<OpGroup> unplaced = stitched.groups;

  // Shared memory: demote until it fits; every demotion may move ops to later phases.
  std::set<NodeId> global = wanted.global;
  Recorder memory_decisions(false);  // of the last round
  for (;;) {
    stitched.groups = assign_lanes(stitched.body, unplaced, stitched.finalization, device, limits, recorder);
    kernel = to_kernel(stitched);
    memory_decisions = Recorder(recorder.enabled());
    plan_launch(stitched.body, stitched.groups, stitched.finalization, device, options, limits, kernel,
                memory_decisions);
    const bool staged = std::any_of(kernel.groups.begin(), kernel.groups.end(),
                                    [](const Group& group) { return group.mapping.staged; });
    Verdict stages = staged ? stage_rows(*nodes.computation, kernel) : Verdict::yes();
    if (staged && stages) bound_launch(device, options, limits, kernel.launch);
    const Verdict fits = fits_device(kernel, device, limits);
    if (staged && stages && !fits) stages = fits;
    if (!stages) {
      recorder.add("mapping", nodes.name(kernel.groups.back().dominant), "", [&] { return stages; });
      (stages_single_rows(kernel) ? forms.single_rows : forms.staging) = false;
      return plan_form(nodes, op, device, options, across, recorder, forms);
    }
    if (fits) break;
    if (kernel.launch.cluster > 1) {
      recorder.add("mapping", nodes.name(kernel.groups.back().dominant), "", [&] { return fits; });
      forms.clusters = forms.waits = false;
      forms.launch.reset();
      return plan_form(nodes, op, device, options, across, recorder, forms);
    }
    if (std::any_of(kernel.groups.begin(), kernel.groups.end(), [](const Group& group) {
          return group.mapping.kind == MappingKind::kColumn && group.mapping.vector > 1;
        })) {
      recorder.add("mapping", nodes.name(kernel.groups.back().dominant), "", [&] { return fits; });
      forms.column_vectors = false;
      return plan_form(nodes, op, device, options, across, recorder, forms);
    }
    const auto demoted =
        cheapest_demotion(stitched.body, stitched.groups, stitched.finalization, wanted.regional);
    if (!demoted && !wanted.regional.empty()) refuse_regional(nodes, wanted.regional, fits);
    if (!demoted) break;
    recorder.add("memory", nodes.name(*demoted), "", [&] { return fits; });
    global.insert(*demoted);
    Recorder silent(false);
    stitched.finalization = finalize(stitched.body, stitched.candidates, unplaced, global, silent);
    if (!limits.one_wave && stitched.finalization.grid_barriers > 0) {
      // Its barriers ask for mappings that keep to one wave.
      global = wanted.global;
      limits = mapping_limits(nodes, op, device, options, true, accumulators, forms);
      stitched = run_passes(nodes, op, device, options, limits, wanted, across, silent);
      unplaced = stitched.groups;
    }
  }
  recorder.append(memory_decisions.take());
  if (limits.tuned_for != nullptr) {
    settle_registers(device, options, kernel.launch);
    settle_vectors(*nodes.computation, device, kernel);
    turn_through_tiles(*nodes.graph, device, options, kernel, recorder);
    gather_in_one_pass(*nodes.graph, device, options, kernel, recorder);
  }
  const auto residents = keep_residents(*nodes.graph, device, options, wanted.schemes, kernel, recorder);
  drop_unread_tiles(*nodes.computation, kernel);
  require_residents(nodes, kernel, wanted.schemes, residents);
  require_schemes(stitched.body, stitched.candidates, stitched.groups, stitched.finalization, wanted.schemes);
  recorder.add("launch", nodes.name(kernel.groups.back().dominant), "", [&] {
    return Verdict::yes(
        "astitch.assume-relax-apply",
        fmt::format("{} blocks of {} threads, {} registers a thread, {} bytes shared, {} barriers",
                    kernel.launch.grid, kernel.launch.block, kernel.launch.register_bound,
                    kernel.launch.shared_bytes, kernel.launch.grid_barriers));
  });
  std::vector<KernelPlan> kernels;
  kernels.push_back(std::move(kernel));
  return kernels;
}

}  // namespace stitchwork::astitch
