#include "analysis/astitch/search.h"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <utility>

#include "analysis/astitch/across.h"
#include "analysis/astitch/mapping_tuned.h"
#include "analysis/judge/order.h"
#include "analysis/tiles.h"
#include "occupancy_model/errors.h"

namespace stitchwork::astitch {
namespace {

constexpr Order kOrder{kResolution};

/// Rows of a cluster that sums across them want at least. With three to seven of 30,000 columns, partials are
/// a good part of the rows' bytes, and nothing hides a row's latencies (64x30000 on H200: 15 us simulated for
/// 9.7).
constexpr std::int64_t kRowsAPartial = 8;

/// The form to try where `refused` is: without the choice it does not fit. `waits`: as was wanted at first;
/// one that a barrier asked for may need none without that choice.
Form in_place_of(const Attempt& refused, bool& waits) {
  Form form = refused.form;
  WideForms& mappings = form.mappings;
  switch (refused.misfit) {
    case Misfit::kNone:
      return form;
    case Misfit::kBarrier:
      mappings.waits = true;
      return form;
    case Misfit::kClusterBarrier:
      mappings.clusters = false;
      return form;
    case Misfit::kClusterRoom:
      mappings.clusters = waits = false;
      mappings.launch.reset();
      break;
    case Misfit::kSingleRows:
      mappings.single_rows = false;
      break;
    case Misfit::kStaging:
      mappings.staging = false;
      break;
    case Misfit::kColumnVectors:
      mappings.column_vectors = false;
      break;
  }
  mappings.waits = waits;
  return form;
}

class Search {
 public:
  Search(const Nodes& nodes, const StitchOp& op, const Device& device, const Options& options)
      : nodes_(nodes), op_(op), device_(device), options_(options) {
    searched_.candidate = op;
  }

  Searched run() {
    Recorder apart = recorder();
    const int alone = rows({}, apart);
    const std::set<NodeId> across = reductions_across(nodes_, op_, options_);
    if (across.empty() || kernels(alone).size() != 1)  // a kernel that was cut has planned its parts
      return take(alone, apart);
    Recorder together = recorder();
    Verdict verdict = Verdict::no("astitch.across-rows", "no group's rows hold what it reduces");
    int crossing = across_rows({.across = across}, together, verdict);
    crossing = launch_across(across, crossing, together);
    if (crossing >= 0) {
      const double with = worth_of(crossing).us, without = worth_of(alone).us;
      const std::string why = across_numbers(nodes_, kernels(crossing)[0], with, without);
      verdict = with < without * (1 - kPartialsGain) ? Verdict::yes("astitch.across-rows", why)
                                                     : Verdict::no("astitch.across-rows", why);
    }
    Recorder& taken = verdict ? together : apart;
    for (const NodeId id : across) taken.add("merging", nodes_.name(id), "", [&] { return verdict; });
    return take(verdict ? crossing : alone, taken);
  }

 private:
  Recorder recorder() const { return Recorder(options_.record_decisions); }
  const Attempt& attempt(int at) const { return searched_.attempts.at(static_cast<std::size_t>(at)); }
  const std::vector<KernelPlan>& kernels(int at) const { return attempt(at).kernels; }
  const Worth& worth_of(int at) {
    worths_.resize(searched_.attempts.size());
    std::optional<Worth>& known = worths_[static_cast<std::size_t>(at)];
    if (!known) known = worth(*nodes_.graph, device_, kernels(at));
    return *known;
  }

  int tried(const Form& form) {
    auto& attempts = searched_.attempts;
    const auto known =
        std::find_if(attempts.begin(), attempts.end(), [&](const Attempt& a) { return a.form == form; });
    if (known != attempts.end()) return static_cast<int>(known - attempts.begin());
    attempts.push_back(complete(nodes_, op_, device_, options_, form));
    return static_cast<int>(attempts.size()) - 1;
  }

  /// The form, or where that is refused the first after it that is not. Refusals are recorded.
  int settle(const Form& form, Recorder& refusals) {
    bool waits = form.mappings.waits;
    int at = tried(form);
    while (attempt(at).misfit != Misfit::kNone) {
      refusals.append(attempt(at).decisions);
      at = tried(in_place_of(attempt(at), waits));
    }
    return at;
  }

  /// Rows that stay in shared memory one by one leave an SM a block or two. Where these have few threads, one
  /// of twice as many is tried: what the largest reduction takes alone tells neither from the other, the
  /// estimate of the whole kernel does.
  int larger_blocks(Form form, int best, Recorder& record) {
    constexpr int kShare = 2;  // of the threads that an SM holds
    const KernelLaunch& launch = kernels(best)[0].launch;
    if (launch.grid_barriers > 0 || form.mappings.launch ||
        2 * launch.block > device_.max_threads_per_block ||
        launch.block * launch.blocks_per_sm * kShare >= device_.max_threads_per_sm())
      return best;
    form.mappings.launch = TunedLaunch{2 * launch.block, 1, launch.cluster};
    Recorder own = recorder();
    const int larger = settle(form, own);
    const auto& made = kernels(larger);
    if (made.size() != 1 || !stages_single_rows(made[0]) || made[0].launch.grid_barriers > 0 ||
        !kOrder.before(worth_of(larger), worth_of(best)))
      return best;
    record = std::move(own);
    return larger;
  }

  /// Where its long rows stay in shared memory one by one, the stitch op is planned without that too: other
  /// groups have fewer blocks then, and what the mapping of the largest reduction does not see, reductions in
  /// one pass and what stays in registers, decides.
  int rows(Form form, Recorder& record) {
    Recorder staged = recorder();
    int with = settle(form, staged);
    if (kernels(with).size() != 1 || !stages_single_rows(kernels(with)[0])) {
      record.append(staged.take());
      return with;
    }
    with = larger_blocks(form, with, staged);
    Recorder apart = recorder();
    form.mappings.single_rows = false;
    const int without = settle(form, apart);
    const Worth staged_worth = worth_of(with), other = worth_of(without);
    const bool faster = kOrder.before(staged_worth, other);
    record.append(faster ? staged.take() : apart.take());
    record.add("mapping", nodes_.name(kernels(with)[0].groups.back().dominant), "", [&] {
      const std::string why =
          fmt::format("rows that stay in shared memory one by one {:.2f} us, others {:.2f} us",
                      staged_worth.us, other.us);
      return faster ? Verdict::yes("astitch.staged", why) : Verdict::no("astitch.staged", why);
    });
    return faster ? with : without;
  }

  /// The form with partials across rows whose accumulators fit a thread's registers, in as many blocks an SM
  /// as then remain; -1 where no group takes such a reduction.
  int across_rows(Form form, Recorder& record, Verdict& refused) {
    const bool wanted = Constraints::find(options_.constraints.residency, op_.members) != nullptr;
    for (;;) {
      Recorder own = recorder();
      const int at = rows(form, own);
      if (kernels(at).size() != 1) return -1;
      const auto& groups = kernels(at)[0].groups;
      if (std::all_of(groups.begin(), groups.end(), [](const Group& group) { return group.across.empty(); }))
        return -1;
      refused = accumulators_fit(nodes_, kernels(at)[0]);
      if (refused) {
        record.append(own.take());
        return at;
      }
      const int fewer = kernels(at)[0].launch.blocks_per_sm / 2;
      if (wanted || form.mappings.launch || fewer < 1) return -1;
      form.max_blocks_per_sm = fewer;
    }
  }

  /// The same by every launch that devices with asynchronous copies or clusters may have, in place of the one
  /// that the largest reduction alone asks for: rows copied ahead want few blocks an SM, and where a cluster
  /// shares them its blocks' threads have so many fewer accumulators. `best` is what they are compared with;
  /// returns what is best. Of clusters with too few rows none is.
  int launch_across(const std::set<NodeId>& across, int best, Recorder& record) {
    const Constraints& wanted = options_.constraints;
    const bool copies = options_.async_copies && options_.tiles && has_async_copies(device_);
    if (!options_.tuned || !options_.adaptive_mapping ||
        Constraints::find(wanted.block, op_.members) != nullptr)
      return best;
    const auto* residency = Constraints::find(wanted.residency, op_.members);
    const auto has_few_rows = [](const Group& group) {
      return !group.across.empty() && group.deal.most_tasks() < kRowsAPartial;
    };
    for (const TunedLaunch& launch :
         waiting_launches(device_, residency == nullptr ? 0 : residency->second)) {
      if (launch.cluster > 1 ? !options_.clusters : !copies) continue;
      Recorder own = recorder();
      Verdict fits = Verdict::yes();
      Form form{.across = across};
      form.mappings.launch = launch;
      form.mappings.waits = true;
      const int at = across_rows(form, own, fits);
      if (at < 0) continue;
      const KernelPlan& kernel = kernels(at)[0];
      if (kernel.launch.cluster != launch.cluster ||
          (launch.cluster > 1 && std::any_of(kernel.groups.begin(), kernel.groups.end(), has_few_rows)))
        continue;
      // The estimate knows what is in flight of copies better than of loads through registers.
      const bool copied = std::any_of(kernel.groups.begin(), kernel.groups.end(),
                                      [](const Group& group) { return copy_depth(group.mapping) > 0; });
      if (best >= 0 && (!copied || !kOrder.before(worth_of(at), worth_of(best)))) continue;
      best = at;
      std::swap(record, own);
    }
    return best;
  }

  Searched take(int chosen, Recorder& record) {
    searched_.chosen = chosen;
    searched_.decisions = attempt(chosen).decisions;
    std::vector<Decision> own = record.take();
    std::move(own.begin(), own.end(), std::back_inserter(searched_.decisions));
    return std::move(searched_);
  }

  const Nodes& nodes_;
  const StitchOp& op_;
  const Device& device_;
  const Options& options_;
  Searched searched_;
  std::vector<std::optional<Worth>> worths_;  ///< by attempt
};

}  // namespace

Searched search(const Nodes& nodes, const StitchOp& op, const Device& device, const Options& options) {
  return Search(nodes, op, device, options).run();
}

}  // namespace stitchwork::astitch
