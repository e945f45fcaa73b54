#include "analysis/astitch/stitch.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "analysis/astitch/across.h"
#include "analysis/astitch/form.h"
#include "analysis/astitch/mapping_tuned.h"
#include "analysis/astitch/staging.h"
#include "analysis/cost.h"
#include "analysis/tiles.h"

namespace stitchwork::astitch {
namespace {

/// What partials across rows have to gain: estimates of forms so different are not closer (docs/timing.md),
/// and the other form needs no partials.
constexpr double kSurelyFaster = 0.05;
/// Of two forms that the model hardly tells apart the one with so many sectors of requests less is taken.
constexpr double kFewerSectors = 0.02;
/// Rows of a cluster that sums across them want at least. With three to seven of 30,000 columns, partials are
/// a good part of the rows' bytes, and nothing hides a row's latencies (64x30000 on H200: 15 us simulated for
/// 9.7).
constexpr std::int64_t kRowsAPartial = 8;
/// What forms are compared by.
struct FormCost {
  double us = 0, sectors = 0;  ///< sectors: of all requests of global memory

  /// `alike`: by how much it has to be faster where it asks for about as many sectors.
  bool beats(const FormCost& other, double alike) const {
    if (sectors < other.sectors * (1 - kFewerSectors)) return us < other.us * (1 + kIndifference);
    if (other.sectors < sectors * (1 - kFewerSectors)) return us < other.us * (1 - kIndifference);
    return us < other.us * (1 - alike);
  }
};

FormCost form_cost(const Nodes& nodes, const Device& device, const std::vector<KernelPlan>& kernels) {
  FormCost cost;
  for (const KernelPlan& kernel : kernels) {
    const KernelCost of = kernel_cost(*nodes.graph, device, kernel);
    cost.us += of.predicted_us;
    cost.sectors += of.work.l2_sectors;
  }
  return cost;
}

/// Rows that stay in shared memory one by one leave an SM a block or two. Where these have few threads, one
/// of twice as many is tried: what the largest reduction takes alone tells neither from the other, the
/// estimate of the whole kernel does.
void try_larger_blocks(const Nodes& nodes, const StitchOp& op, const Device& device, const Options& options,
                       const std::set<NodeId>& across, WideForms forms, std::vector<KernelPlan>& kernels,
                       Recorder& recorder) {
  constexpr int kShare = 2;  // of the threads that an SM holds
  const KernelLaunch& launch = kernels[0].launch;
  if (launch.grid_barriers > 0 || forms.launch || 2 * launch.block > device.max_threads_per_block ||
      launch.block * launch.blocks_per_sm * kShare >= device.max_threads_per_sm())
    return;
  forms.launch = TunedLaunch{2 * launch.block, 1, launch.cluster};
  Recorder attempt(recorder.enabled());
  std::vector<KernelPlan> larger = plan_form(nodes, op, device, options, across, attempt, forms);
  if (larger.size() != 1 || !stages_single_rows(larger[0]) || larger[0].launch.grid_barriers > 0 ||
      kernel_cost(*nodes.graph, device, larger[0]).predicted_us >=
          kernel_cost(*nodes.graph, device, kernels[0]).predicted_us * (1 - kIndifference))
    return;
  kernels = std::move(larger);
  recorder = std::move(attempt);
}

/// Where its long rows stay in shared memory one by one, the stitch op is planned without that too: other
/// groups have fewer blocks then, and what the mapping of the largest reduction does not see, reductions in
/// one pass and what stays in registers, decides.
std::vector<KernelPlan> plan_rows(const Nodes& nodes, const StitchOp& op, const Device& device,
                                  const Options& options, const std::set<NodeId>& across, Recorder& recorder,
                                  WideForms forms = {}) {
  Recorder staged(recorder.enabled());
  std::vector<KernelPlan> kernels = plan_form(nodes, op, device, options, across, staged, forms);
  if (kernels.size() != 1 || !stages_single_rows(kernels[0])) {
    recorder.append(staged.take());
    return kernels;
  }
  try_larger_blocks(nodes, op, device, options, across, forms, kernels, staged);
  Recorder apart(recorder.enabled());
  forms.single_rows = false;
  std::vector<KernelPlan> others = plan_form(nodes, op, device, options, across, apart, forms);
  const FormCost with = form_cost(nodes, device, kernels), without = form_cost(nodes, device, others);
  const bool faster = with.beats(without, kIndifference);
  recorder.append(faster ? staged.take() : apart.take());
  recorder.add("mapping", nodes.name(kernels[0].groups.back().dominant), "", [&] {
    const std::string why = fmt::format(
        "rows that stay in shared memory one by one {:.2f} us, others {:.2f} us", with.us, without.us);
    return faster ? Verdict::yes("astitch.staged", why) : Verdict::no("astitch.staged", why);
  });
  return faster ? kernels : others;
}

/// The form with partials across rows whose accumulators fit a thread's registers, in as many blocks an SM as
/// then remain; none where no group takes such a reduction.
std::vector<KernelPlan> plan_across(const Nodes& nodes, const StitchOp& op, const Device& device,
                                    Options options, const std::set<NodeId>& across, Recorder& recorder,
                                    WideForms forms, Verdict& refused) {
  const bool wanted = Constraints::find(options.constraints.residency, op.members) != nullptr;
  for (;;) {
    Recorder attempt(recorder.enabled());
    std::vector<KernelPlan> kernels = plan_rows(nodes, op, device, options, across, attempt, forms);
    if (kernels.size() != 1) return {};
    const auto& groups = kernels[0].groups;
    if (std::all_of(groups.begin(), groups.end(), [](const Group& group) { return group.across.empty(); }))
      return {};
    refused = accumulators_fit(nodes, kernels[0]);
    if (refused) {
      recorder.append(attempt.take());
      return kernels;
    }
    const int fewer = kernels[0].launch.blocks_per_sm / 2;
    if (wanted || forms.launch || fewer < 1) return {};
    options.constraints.residency[op.members.front()] = fewer;
  }
}

/// The same by every launch that devices with asynchronous copies or clusters may have, in place of the one
/// that the largest reduction alone asks for: rows copied ahead want few blocks an SM, and where a cluster
/// shares them its blocks' threads have so many fewer accumulators. `best` is what it is compared with, and
/// becomes what is best; of clusters with too few rows none is.
void launch_across(const Nodes& nodes, const StitchOp& op, const Device& device, const Options& options,
                   const std::set<NodeId>& across, std::vector<KernelPlan>& best, Recorder& recorder) {
  const Constraints& wanted = options.constraints;
  const bool copies = options.async_copies && options.tiles && has_async_copies(device);
  if (!options.tuned || !options.adaptive_mapping || Constraints::find(wanted.block, op.members) != nullptr)
    return;
  const auto* residency = Constraints::find(wanted.residency, op.members);
  const auto has_few_rows = [](const Group& group) {
    return !group.across.empty() && group.mapping.tasks_per_block < kRowsAPartial;
  };
  FormCost least = form_cost(nodes, device, best);
  for (const TunedLaunch& launch : waiting_launches(device, residency == nullptr ? 0 : residency->second)) {
    if (launch.cluster > 1 ? !options.clusters : !copies) continue;
    Recorder attempt(recorder.enabled());
    WideForms forms;
    forms.launch = launch;
    forms.waits = true;
    Verdict fits = Verdict::yes();
    std::vector<KernelPlan> kernels = plan_across(nodes, op, device, options, across, attempt, forms, fits);
    if (kernels.empty() || kernels[0].launch.cluster != launch.cluster ||
        (launch.cluster > 1 && std::any_of(kernels[0].groups.begin(), kernels[0].groups.end(), has_few_rows)))
      continue;
    // The estimate knows what is in flight of copies better than of loads through registers.
    const bool copied = std::any_of(kernels[0].groups.begin(), kernels[0].groups.end(),
                                    [](const Group& group) { return group.mapping.stages > 0; });
    const FormCost cost = form_cost(nodes, device, kernels);
    if (!best.empty() && (!copied || !cost.beats(least, 0))) continue;
    least = cost;
    best = std::move(kernels);
    std::swap(recorder, attempt);
  }
}

}  // namespace

std::vector<KernelPlan> plan_stitch_op(const Nodes& nodes, const StitchOp& op, const Device& device,
                                       const Options& options, Recorder& recorder) {
  Recorder apart(recorder.enabled());
  std::vector<KernelPlan> kernels = plan_rows(nodes, op, device, options, {}, apart);
  const std::set<NodeId> across = reductions_across(nodes, op, options);
  if (across.empty() || kernels.size() != 1) {  // a kernel that was cut has planned its parts
    recorder.append(apart.take());
    return kernels;
  }
  Recorder together(recorder.enabled());
  Verdict verdict = Verdict::no("astitch.across-rows", "no group's rows hold what it reduces");
  std::vector<KernelPlan> crossing =
      plan_across(nodes, op, device, options, across, together, WideForms{}, verdict);
  launch_across(nodes, op, device, options, across, crossing, together);
  if (!crossing.empty()) {
    const double with = kernel_cost(*nodes.graph, device, crossing[0]).predicted_us;
    const double without = kernel_cost(*nodes.graph, device, kernels[0]).predicted_us;
    const std::string why = across_numbers(nodes, crossing[0], with, without);
    verdict = with < without * (1 - kSurelyFaster) ? Verdict::yes("astitch.across-rows", why)
                                                   : Verdict::no("astitch.across-rows", why);
  }
  recorder.append(verdict ? together.take() : apart.take());
  for (const NodeId id : across) recorder.add("merging", nodes.name(id), "", [&] { return verdict; });
  return verdict ? crossing : kernels;
}

}  // namespace stitchwork::astitch
