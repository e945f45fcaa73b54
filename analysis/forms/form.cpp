#include "analysis/forms/form.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <functional>
#include <iterator>
#include <utility>

#include "analysis/forms/across.h"
#include "analysis/forms/cut.h"
#include "analysis/forms/one_pass.h"
#include "analysis/forms/residence.h"
#include "analysis/forms/search.h"
#include "analysis/forms/staging.h"
#include "analysis/forms/transposes.h"
#include "analysis/forms/vectors.h"
#include "analysis/judge/cost.h"
#include "analysis/schedule/clusters.h"
#include "analysis/schedule/tiles.h"
#include "analysis/stitching/equal_ops.h"
#include "analysis/stitching/lanes.h"
#include "analysis/stitching/launch.h"
#include "analysis/stitching/mapping_tuned.h"
#include "analysis/stitching/sharing.h"
#include "analysis/stitching/wanted.h"
#include "core/base/format.h"
#include "core/base/interrupt.h"
#include "occupancy_model/errors.h"

namespace stitchwork::astitch {
namespace {

/// Rounds of amendments; each adds at least one op, few graphs need more than two.
/// A choice, not measured: it guards against a bug alone.
constexpr int kMaxRounds = 12;

/// The last pass, again with more values that are to be Global.
void finalize(Stitched& stitched, const std::vector<OpGroup>& groups, bool recording) {
  Recorder recorder(recording);
  stitched.finalization = finalize(stitched.body, stitched.candidates, groups, stitched.global, recorder);
  stitched.locality = recorder.take();
}

/// So far beyond a kernel's limits that amendments would not bring it back: it will be cut, and its parts
/// find amendments of their own.
bool far_beyond_limits(const Nodes& nodes, const Stitched& stitched, const Options& options) {
  // A choice, not measured: twice what is allowed is surely cut, whatever amendments follow.
  constexpr int kFar = 2;
  return bodies(nodes, stitched.groups) > kFar * options.max_groups ||
         stitched.finalization.grid_barriers + 1 > kFar * options.max_phases;
}

/// Of several decisions about the same in one step the last: rounds weigh an op again with other numbers.
void keep_last(std::vector<Decision>& decisions) {
  const auto same = [](const Decision& a, const Decision& b) {
    return a.step == b.step && a.subject == b.subject && a.object == b.object;
  };
  std::vector<Decision> kept;
  for (auto d = decisions.begin(); d != decisions.end(); ++d)
    if (std::none_of(d + 1, decisions.end(), [&](const Decision& later) { return same(*d, later); }))
      kept.push_back(std::move(*d));
  decisions = std::move(kept);
}

Group to_group(const OpGroup& group) {
  Group result;
  result.dominant = group.dominant;
  for (const NodeId id : group.materialised) {
    if (id != group.dominant) result.sub_dominants.push_back(id);
    if (is_across(group, id)) result.across.push_back(id);
  }
  result.ops = group.ops;
  result.mapping = group.mapping;
  result.deal = group.deal;
  result.lane = group.lane;
  return result;
}

KernelPlan to_kernel(const Stitched& stitched) {
  KernelPlan kernel;
  std::set<NodeId> ops;
  for (const std::size_t g : stitched.finalization.order) {
    const OpGroup& group = stitched.groups[g];
    ops.insert(group.ops.begin(), group.ops.end());
    kernel.groups.push_back(to_group(group));
  }
  kernel.ops.assign(ops.begin(), ops.end());
  kernel.outputs.assign(stitched.body.outputs.begin(), stitched.body.outputs.end());
  kernel.schemes = stitched.finalization.schemes;
  kernel.levels = stitched.finalization.levels;
  kernel.in_phase = stitched.finalization.in_phase;
  return kernel;
}

/// A kernel of the one group, with what that reads of the others.
KernelPlan alone(const Stitched& stitched, const OpGroup& group, int block) {
  const Finalization& from = stitched.finalization;
  KernelPlan kernel;
  kernel.groups = {to_group(group)};
  kernel.launch.block = block;
  kernel.launch.grid = group.deal.end_block();
  std::set<NodeId> ops(group.ops.begin(), group.ops.end());
  for (const NodeId id : group.ops)
    for (const NodeId operand : stitched.body.nodes->node(id).operands)
      if (from.schemes.contains(operand)) ops.insert(operand);
  kernel.ops.assign(ops.begin(), ops.end());
  for (const NodeId id : ops) {
    if (stitched.body.outputs.contains(id)) kernel.outputs.push_back(id);
    if (const auto scheme = from.schemes.find(id); scheme != from.schemes.end())
      kernel.schemes.insert(*scheme);
    if (const auto level = from.levels.find(id); level != from.levels.end()) kernel.levels.insert(*level);
    if (const auto had = from.in_phase.find(id); had != from.in_phase.end()) kernel.in_phase.insert(*had);
  }
  return kernel;
}

bool sums_in_vectors(const Group& group) {
  return is<mapping::Columns>(group.mapping) && vectors(group.mapping).width > 1;
}

/// Which choice to take back where a kernel does not fit the device, if one of them asked for the room.
Misfit misfit_of(const KernelPlan& kernel) {
  if (kernel.launch.cluster > 1) return Misfit::kClusterRoom;
  return std::any_of(kernel.groups.begin(), kernel.groups.end(), sums_in_vectors) ? Misfit::kColumnVectors
                                                                                  : Misfit::kNone;
}

/// The passes of one form, in order.
class Passes {
 public:
  Passes(const Nodes& nodes, const StitchOp& op, const Device& device, const Options& options,
         const Form& form)
      : nodes_(nodes), op_(op), device_(device), options_(options), across_(form.across) {
    wanted_ = wanted_schemes(op, options.constraints);
    if (!options.data_reuse)
      std::set_difference(op.members.begin(), op.members.end(), wanted_.regional.begin(),
                          wanted_.regional.end(), std::inserter(wanted_.global, wanted_.global.end()));
    limits_ = mapping_limits(nodes, op, device, options, accumulators_of(nodes, form.across), form.mappings);
  }

  const MappingLimits& limits() const { return limits_; }
  const WantedSchemes& wanted() const { return wanted_; }

  /// The passes, again with what each round has learned; scalars that crowd their readers become Global.
  /// Decisions are those of the round taken, and of the amendments before it.
  Stitched run() const {
    Amendments amendments = wanted_.amendments;
    if (!options_.scalars_stored)
      std::ranges::copy_if(op_.members, std::inserter(amendments.inlined, amendments.inlined.end()),
                           [&](NodeId id) {
                             return nodes_[id].elements == 1 && is_elementwise(nodes_.node(id).op) &&
                                    !amendments.promoted.contains(id);
                           });
    std::set<NodeId> global = wanted_.global;
    Recorder recorder(options_.record_decisions);  // of amendments
    const auto run = [&] { return run_once(amendments, global); };
    Stitched result = run();
    if (!options_.constraints.join(op_.members) && far_beyond_limits(nodes_, result, options_)) return result;
    const auto amended = [&] { return amend(result, device_, amendments, recorder); };
    const auto crowded = [&] {
      const std::size_t before = global.size();
      for (const NodeId id : crowding_scalars(result, device_))
        if (!wanted_.regional.contains(id)) global.insert(id);
      return global.size() > before;
    };
    // Scalars that have become Global may be better not stored at all, so rounds go on after them.
    for (int round = 1; round < kMaxRounds && amended(); ++round) result = run();
    if (crowded()) {
      result = run();
      for (int round = 1; round < kMaxRounds && (amended() || crowded()); ++round) result = run();
    }
    if (result.finalization.grid_barriers > 0) promote(amendments, run, result, recorder);
    std::vector<Decision> decisions = recorder.take();
    keep_last(decisions);
    std::move(result.decisions.begin(), result.decisions.end(), std::back_inserter(decisions));
    result.decisions = std::move(decisions);
    return result;
  }

  /// The kernel of groups that have no lanes yet, with its memory and launch.
  KernelPlan lay_out(Stitched& stitched, const std::vector<OpGroup>& unplaced, Recorder& recorder) const {
    stitched.groups = unplaced;
    stitched.groups =
        assign_lanes(stitched.body, unplaced, stitched.finalization, limits_, in_waves(stitched), recorder);
    KernelPlan kernel = to_kernel(stitched);
    plan_launch(stitched, device_, options_, limits_, kernel, recorder);
    return kernel;
  }

  /// Where mapping=tuned has its last word, and values that stay with their threads over a barrier.
  void refine(KernelPlan& kernel, Recorder& recorder) const {
    if (limits_.tuned_for != nullptr) {
      settle_registers(device_, options_, kernel.launch);
      settle_vectors(*nodes_.computation, device_, kernel, limits_.vector_bytes);
      part_diverging_vectors(*nodes_.graph, device_, kernel);
      turn_through_tiles(*nodes_.graph, device_, options_, kernel, recorder);
      gather_in_one_pass(*nodes_.graph, device_, options_, kernel, recorder);
    }
    const auto residents =
        keep_residents(*nodes_.graph, device_, options_, wanted_.schemes, kernel, recorder);
    drop_unread_tiles(*nodes_.computation, kernel);
    require_residents(nodes_, kernel, wanted_.schemes, residents);
  }

 private:
  Stitched run_once(const Amendments& amendments, const std::set<NodeId>& global) const {
    interruption_point();
    Stitched result;
    Recorder recorder(options_.record_decisions);
    result.body = make_body(nodes_, op_);
    result.candidates = find_candidates(result.body, amendments, recorder);
    result.candidates.across = across_;
    result.groups = form_groups(result.body, result.candidates, limits_, options_.dominant_merging, recorder);
    if (options_.proactive_locality) {
      result.groups = adapt_groups(result.body, result.candidates, std::move(result.groups),
                                   options_.dominant_merging, device_.sms, recorder);
    }
    result.decisions = recorder.take();
    result.global = global;
    finalize(result, result.groups, options_.record_decisions);
    return result;
  }

  /// By the estimate of the whole kernel, what it asks of shared memory not demoted.
  double estimated_us(Stitched stitched) const {
    Recorder silent(false);
    const KernelPlan kernel = lay_out(stitched, std::vector<OpGroup>(stitched.groups), silent);
    return kernel_cost(*nodes_.graph, device_, kernel).predicted_us;
  }

  /// Stores all that may keep what is computed from Global values within its blocks, if the kernel then is
  /// faster by more than forms are told apart. `run`: with the amendments.
  void promote(Amendments& amendments, const std::function<Stitched()>& run, Stitched& result,
               Recorder& recorder) const {
    std::set<NodeId> promotions = promotions_to_try(result);
    for (const NodeId id : amendments.inlined) promotions.erase(id);
    if (promotions.empty()) return;
    amendments.promoted.insert(promotions.begin(), promotions.end());
    Stitched trial = run();
    const auto crosses = [](const Stitched& of) {
      const auto global = std::ranges::count_if(
          of.finalization.schemes, [](const auto& scheme) { return scheme.second == Scheme::kGlobal; });
      return std::pair(of.finalization.grid_barriers, global);
    };
    if (crosses(trial) >= crosses(result)) return;  // no barrier and no traffic less
    const double before = estimated_us(result), after = estimated_us(trial);
    const bool faster = after < before * (1 - kResolution);
    for (const NodeId id : promotions)
      recorder.add("dominants", nodes_.name(id), "", [&] {
        const std::string why = fmt::format(
            "the kernel takes {:.2f} us with it stored, {:.2f} us with it inlined", after, before);
        return faster ? Verdict::yes("astitch.store-shared", why) : Verdict::no("astitch.store-shared", why);
      });
    if (faster) result = std::move(trial);
  }

  /// Of the stitch op's groups, none of which has lanes yet.
  WaveUs in_waves(const Stitched& stitched) const {
    return [&](std::size_t g) {
      const KernelPlan kernel = alone(stitched, stitched.groups[g], limits_.block);
      return wave_us(*nodes_.graph, device_, kernel, limits_.blocks_per_wave);
    };
  }

  const Nodes& nodes_;
  const StitchOp& op_;
  const Device& device_;
  const Options& options_;
  const std::set<NodeId>& across_;
  WantedSchemes wanted_;
  MappingLimits limits_;
};

}  // namespace

std::string to_text(const Nodes& nodes, const Form& form) {
  const WideForms& of = form.mappings;
  std::vector<std::string> parts;
  if (of.launch) {
    parts.push_back(fmt::format("{} threads", of.launch->block));
    if (of.launch->share > 1) parts.push_back(fmt::format("1/{} of an SM's blocks", of.launch->share));
    if (of.launch->cluster > 1) parts.push_back(fmt::format("clusters of {}", of.launch->cluster));
  }
  if (form.max_blocks_per_sm > 0)
    parts.push_back(fmt::format("{} an SM", counted(form.max_blocks_per_sm, "block")));
  if (of.waits) parts.emplace_back("waits");
  for (const NodeId id : form.across) parts.push_back("across " + nodes.name(id));
  if (!of.staging) parts.emplace_back("no tiles");
  if (!of.single_rows) parts.emplace_back("no single rows");
  if (!of.clusters) parts.emplace_back("no clusters");
  if (!of.column_vectors) parts.emplace_back("no column vectors");
  if (of.vector_bytes != kVectorBytes) parts.push_back(fmt::format("vectors of {} bytes", of.vector_bytes));
  return parts.empty() ? "by the rules" : fmt::format("{}", fmt::join(parts, ", "));
}

Attempt complete(const Nodes& nodes, const StitchOp& op, const Device& device, const Options& given,
                 const Form& form) {
  Options options = given;
  if (form.max_blocks_per_sm > 0) options.constraints.residency[op.members.front()] = form.max_blocks_per_sm;
  Attempt attempt;
  attempt.form = form;
  const auto refuse = [&](Misfit misfit, Verdict why, const KernelPlan* kernel = nullptr) {
    attempt.misfit = misfit;
    attempt.fits = std::move(why);
    if (kernel != nullptr && options.record_decisions)
      attempt.decisions = {{"mapping", nodes.name(kernel->groups.back().dominant), "", attempt.fits}};
    return std::move(attempt);
  };

  const Passes passes(nodes, op, device, options, form);
  const MappingLimits& limits = passes.limits();
  const WantedSchemes& wanted = passes.wanted();
  Stitched stitched = passes.run();
  const auto must_wait = [&] { return !limits.one_wave && stitched.finalization.grid_barriers > 0; };
  const auto needs_wave = [&] {
    return Verdict::no("form.needs-wave", fmt::format("it has {} grid barrier{}, and not one wave of blocks",
                                                      stitched.finalization.grid_barriers,
                                                      stitched.finalization.grid_barriers == 1 ? "" : "s"));
  };
  if (must_wait())
    return refuse(limits.cluster > 1 && form.mappings.clusters ? Misfit::kClusterBarrier : Misfit::kBarrier,
                  needs_wave());

  Recorder recorder(options.record_decisions);
  const int phases = stitched.finalization.grid_barriers + 1;
  const int groups = bodies(nodes, stitched.groups);
  if (phases > options.max_phases || groups > options.max_groups) {
    const std::vector<NodeId> part = first_part(stitched, options);
    if (!part.empty() && part.size() < op.members.size() && !separates(options.constraints, op, part)) {
      const auto cut_here = [&] {
        return Verdict::no("astitch.kernel-limits",
                           fmt::format("{} groups in {} phases, {} in {} allowed: the kernel is cut here",
                                       groups, phases, options.max_groups, options.max_phases));
      };
      for (const auto& [producer, consumer] : edges_across(nodes, op.members, part))
        recorder.add("scope", nodes.name(producer), nodes.name(consumer), cut_here);
      attempt.decisions = recorder.take();
      cut(nodes, op, device, options, part, attempt);
      return attempt;
    }
  }

  // Shared memory: demote until it fits; every demotion may move ops to later phases.
  KernelPlan kernel;
  const std::vector<OpGroup> unplaced = stitched.groups;
  Recorder demotions(options.record_decisions), layout(options.record_decisions);
  for (;;) {
    layout = Recorder(options.record_decisions);  // of the last round
    kernel = passes.lay_out(stitched, unplaced, layout);
    const bool staged = std::any_of(kernel.groups.begin(), kernel.groups.end(),
                                    [](const Group& group) { return is_staged(group.mapping); });
    Verdict stages = staged ? stage_rows(*nodes.computation, kernel) : Verdict::yes();
    if (staged && stages) bound_launch(device, options, limits, kernel.launch);
    const Verdict fits = fits_device(kernel, device, limits);
    if (staged && stages && !fits) stages = fits;
    if (!stages)
      return refuse(stages_single_rows(kernel) ? Misfit::kSingleRows : Misfit::kStaging, stages, &kernel);
    if (fits) break;
    if (const Misfit misfit = misfit_of(kernel); misfit != Misfit::kNone)
      return refuse(misfit, fits, &kernel);
    const auto demoted =
        cheapest_demotion(stitched.body, stitched.groups, stitched.finalization, wanted.regional);
    if (!demoted && !wanted.regional.empty()) refuse_regional(nodes, wanted.regional, fits);
    if (!demoted) break;
    demotions.add("memory", nodes.name(*demoted), "", [&] { return fits; });
    stitched.global.insert(*demoted);
    finalize(stitched, unplaced, options.record_decisions);
    // Its barriers ask for mappings that keep to one wave.
    if (must_wait()) return refuse(Misfit::kBarrier, needs_wave());
  }
  recorder.append(std::move(stitched.decisions));
  recorder.append(std::move(stitched.locality));
  recorder.append(demotions.take());
  recorder.append(layout.take());
  passes.refine(kernel, recorder);
  require_schemes(stitched.body, stitched.candidates, stitched.groups, stitched.finalization, wanted.schemes);
  recorder.add("launch", nodes.name(kernel.groups.back().dominant), "", [&] {
    return Verdict::yes(
        "astitch.assume-relax-apply",
        fmt::format("{} blocks of {} threads, {} registers a thread, {} bytes shared, {}", kernel.launch.grid,
                    kernel.launch.block, kernel.launch.register_bound, kernel.launch.shared_bytes,
                    counted(kernel.launch.grid_barriers, "barrier")));
  });
  attempt.decisions = recorder.take();
  attempt.kernels.push_back(std::move(kernel));
  return attempt;
}

}  // namespace stitchwork::astitch
