#include "analysis/forms/search.h"

#include <fmt/format.h>

#include <algorithm>
#include <functional>
#include <iterator>
#include <limits>
#include <map>
#include <set>
#include <utility>

#include "analysis/forms/across.h"
#include "analysis/judge/judge.h"
#include "analysis/schedule/tiles.h"
#include "analysis/stitching/launch.h"
#include "analysis/stitching/mapping_tuned.h"

namespace stitchwork::astitch {
namespace {

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

/// "256 blocks of 256 threads, 1 grid barrier: row_pack 512x512: ..."; the mapping of its largest group.
std::string launch_text(const KernelPlan& kernel) {
  const auto elements = [](const Group& group) { return extents(group.mapping).elements(); };
  const auto largest =
      std::max_element(kernel.groups.begin(), kernel.groups.end(),
                       [&](const Group& a, const Group& b) { return elements(a) < elements(b); });
  const int barriers = kernel.launch.grid_barriers;
  return fmt::format("{} blocks of {} threads, {} grid barrier{}: {}", kernel.launch.grid,
                     kernel.launch.block, barriers, barriers == 1 ? "" : "s",
                     to_text(largest->mapping, largest->deal));
}

bool sums_across(const KernelPlan& kernel) {
  return std::any_of(kernel.groups.begin(), kernel.groups.end(),
                     [](const Group& group) { return !group.across.empty(); });
}

bool copies_ahead(const KernelPlan& kernel) {
  return std::any_of(kernel.groups.begin(), kernel.groups.end(),
                     [](const Group& group) { return copy_depth(group.mapping) > 0; });
}

/// Not through tiles, where vectors are those of shared memory.
bool moves_in_vectors(const KernelPlan& kernel) {
  return std::any_of(kernel.groups.begin(), kernel.groups.end(), [](const Group& group) {
    return vectors(group.mapping).width > 1 && !is_staged(group.mapping);
  });
}

class Search {
 public:
  Search(const Nodes& nodes, const StitchOp& op, const Device& device, const Options& options)
      : nodes_(nodes), op_(op), device_(device), options_(options), order_{options.judge->resolution()} {
    searched_.candidate = op;
  }

  Searched run() {
    offer_rows({});
    const int alone = found_.front();
    const std::set<NodeId> across = reductions_across(nodes_, op_, options_);
    if (!across.empty() && kernels(alone).size() == 1) {  // a kernel that was cut has planned its parts
      offer_across({.across = across});
      offer_launches(across);
    }
    if (options_.wide_vectors && options_.tuned && device_.vector_bytes() > kVectorBytes)
      offer_wide_vectors(best());
    const int chosen = best();
    Recorder record = recorder();
    record_across(across, chosen, record);
    return take(chosen, record);
  }

 private:
  Recorder recorder() const { return Recorder(options_.record_decisions); }
  const Attempt& attempt(int at) const { return searched_.attempts.at(static_cast<std::size_t>(at)); }
  const std::vector<KernelPlan>& kernels(int at) const { return attempt(at).kernels; }
  const Worth& worth_of(int at) {
    worths_.resize(searched_.attempts.size());
    std::optional<Worth>& known = worths_[static_cast<std::size_t>(at)];
    if (!known) known = options_.judge->worth(*nodes_.graph, device_, kernels(at));
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

  /// The form, or where that is refused the first after it that is not.
  int settle(const Form& form) {
    bool waits = form.mappings.waits;
    int at = tried(form);
    std::vector<Decision> refusals;
    while (attempt(at).misfit != Misfit::kNone) {
      refusals.insert(refusals.end(), attempt(at).decisions.begin(), attempt(at).decisions.end());
      at = tried(in_place_of(attempt(at), waits));
    }
    refusals_.emplace(at, std::move(refusals));
    return at;
  }

  /// What it settles to is one of those that may be taken, if it does what its form is for.
  int offer(const Form& form) {
    const int at = settle(form);
    const bool one = kernels(at).size() == 1;
    const bool fits = form.across.empty() ||
                      (one && sums_across(kernels(at)[0]) && accumulators_fit(nodes_, kernels(at)[0]));
    if (fits && std::find(found_.begin(), found_.end(), at) == found_.end()) found_.push_back(at);
    return at;
  }

  /// Where long rows stay in shared memory one by one, the stitch op without that too: other groups have
  /// fewer blocks then, and what the mapping of the largest reduction does not see, reductions in one pass
  /// and what stays in registers, decides.
  void offer_rows(Form form) {
    const int at = offer(form);
    if (kernels(at).size() != 1 || !stages_single_rows(kernels(at)[0])) return;
    offer_larger_blocks(form, kernels(at)[0].launch);
    form.mappings.single_rows = false;
    offer(form);
  }

  /// Rows that stay in shared memory one by one leave an SM a block or two. Where these have few threads, one
  /// of twice as many is tried: what the largest reduction takes alone tells neither from the other, the
  /// estimate of the whole kernel does.
  void offer_larger_blocks(Form form, const KernelLaunch& launch) {
    // A choice, not measured: with half an SM's threads its warps hide each other's latency.
    constexpr int kShare = 2;  // of the threads that an SM holds
    if (launch.grid_barriers > 0 || form.mappings.launch ||
        2 * launch.block > device_.max_threads_per_block ||
        launch.block * launch.blocks_per_sm * kShare >= device_.max_threads_per_sm())
      return;
    form.mappings.launch = TunedLaunch{2 * launch.block, 1, launch.cluster};
    offer(form);
  }

  /// The form with partials across rows whose accumulators fit a thread's registers, in as many blocks an SM
  /// as then remain.
  void offer_across(Form form) {
    const bool wanted = Constraints::find(options_.constraints.residency, op_.members) != nullptr;
    for (;;) {
      const int at = settle(form);
      if (kernels(at).size() != 1 || !sums_across(kernels(at)[0])) return;
      const Verdict fits = accumulators_fit(nodes_, kernels(at)[0]);
      if (fits) return offer_rows(form);
      without_across_ = fits;
      const int fewer = kernels(at)[0].launch.blocks_per_sm / 2;
      if (wanted || form.mappings.launch || fewer < 1) return;
      form.max_blocks_per_sm = fewer;
    }
  }

  /// The best so far in vectors as wide as the device moves at a time: fewer instructions, and each thread
  /// has fewer and longer runs of elements, which not every kernel is faster with. Where times are not told
  /// apart they stay as they are.
  void offer_wide_vectors(int narrow) {
    if (kernels(narrow).size() != 1 || !moves_in_vectors(kernels(narrow)[0])) return;
    Form form = attempt(narrow).form;
    form.mappings.vector_bytes = device_.vector_bytes();
    const int wide = offer(form);
    const bool faster = worth_of(wide).us * (1 + order_.resolution) < worth_of(narrow).us;
    if (attempt(wide).form.mappings.vector_bytes > kVectorBytes && !faster) std::erase(found_, wide);
  }

  /// The same by every launch that devices with asynchronous copies or clusters may have, in place of the one
  /// that the largest reduction alone asks for: rows copied ahead want few blocks an SM, and where a cluster
  /// shares them its blocks' threads have so many fewer accumulators.
  void offer_launches(const std::set<NodeId>& across) {
    const Constraints& wanted = options_.constraints;
    const bool copies = options_.async_copies && options_.tiles && has_async_copies(device_);
    if (!options_.tuned || !options_.adaptive_mapping ||
        Constraints::find(wanted.block, op_.members) != nullptr)
      return;
    const auto* residency = Constraints::find(wanted.residency, op_.members);
    for (const TunedLaunch& launch :
         waiting_launches(device_, residency == nullptr ? 0 : residency->second)) {
      if (launch.cluster > 1 ? !options_.clusters : !copies) continue;
      Form form{.across = across};
      form.mappings.launch = launch;
      form.mappings.waits = true;
      offer_across(form);
    }
    leave_to_copies();
  }

  /// Of two forms with sums across the rows whose times are not told apart the one that copies rows ahead
  /// keeps more in flight: loads through registers wait for them, and spill.
  void leave_to_copies() {
    const auto copies = [this](int at) { return copies_ahead(kernels(at)[0]); };
    double least = std::numeric_limits<double>::infinity();
    for (const int at : found_)
      if (sums_across(kernels(at)[0]) && copies(at)) least = std::min(least, worth_of(at).us);
    std::erase_if(found_, [&](int at) {
      return sums_across(kernels(at)[0]) && !copies(at) && least < worth_of(at).us * (1 + order_.resolution);
    });
  }

  /// The first of the one order among those that may be taken and `is`; -1: there is none.
  int best(const std::function<bool(int)>& is = [](int) { return true; }) {
    std::vector<int> forms;
    std::copy_if(found_.begin(), found_.end(), std::back_inserter(forms), is);
    if (forms.size() < 2) return forms.empty() ? -1 : forms.front();  // nobody is asked what it is worth
    std::vector<Worth> worths;
    std::vector<PlanJudge::Kernels> of;
    for (const int at : forms) {
      worths.push_back(worth_of(at));
      of.emplace_back(kernels(at));
    }
    return forms[options_.judge->best(*nodes_.graph, device_, worths, of)];
  }

  /// Whether sums across the rows go with them, and the times that say so.
  void record_across(const std::set<NodeId>& across, int chosen, Recorder& record) {
    if (!record.enabled() || across.empty() || kernels(chosen).size() != 1) return;
    const auto with = [this](int at) { return kernels(at).size() == 1 && sums_across(kernels(at)[0]); };
    const int crossing = best(with), apart = best([&](int at) { return !with(at); });
    Verdict verdict = without_across_;
    if (crossing >= 0) {
      const std::string why =
          across_numbers(nodes_, kernels(crossing)[0], worth_of(crossing).us, worth_of(apart).us);
      verdict =
          with(chosen) ? Verdict::yes("astitch.across-rows", why) : Verdict::no("astitch.across-rows", why);
    }
    for (const NodeId id : across) record.add("merging", nodes_.name(id), "", [&] { return verdict; });
  }

  /// What is worth recording of an attempt beside the one that is taken.
  Verdict verdict_of(int at, int chosen) {
    if (attempt(at).misfit != Misfit::kNone) return attempt(at).fits;
    if (kernels(at).size() != 1)
      return Verdict::no("form.cut", fmt::format("cut into {} kernels", kernels(at).size()));
    const Worth taken = worth_of(chosen), worth = worth_of(at);
    std::string why = fmt::format("{:.2f} us, {:.0f} DRAM sectors, {:.0f} L2 sectors, {}", worth.us,
                                  worth.dram_sectors, worth.l2_sectors, launch_text(kernels(at)[0]));
    if (at == chosen) return Verdict::yes("form.taken", std::move(why));
    const std::int64_t bucket = order_.bucket(worth.us), least = order_.bucket(taken.us);
    return Verdict::no(bucket > least   ? "form.slower"
                       : bucket < least ? "form.no-sure-gain"
                                        : "form.as-fast",
                       std::move(why));
  }

  /// Every form once, that gives a kernel of its own. Of a stitch op that was cut its parts have theirs.
  void record_forms(int chosen, Recorder& record) {
    if (!record.enabled() || kernels(chosen).size() != 1) return;
    const std::string& subject = nodes_.name(kernels(chosen)[0].groups.back().dominant);
    const std::string taken = verdict_of(chosen, chosen).why;
    std::set<std::string> told;
    for (int at = 0; at < static_cast<int>(searched_.attempts.size()); ++at) {
      Verdict verdict = verdict_of(at, chosen);
      const bool completed = attempt(at).misfit == Misfit::kNone;
      if (completed && at != chosen && (verdict.why == taken || !told.insert(verdict.why).second)) continue;
      record.add(kFormStep, subject, to_text(nodes_, attempt(at).form), [&] { return verdict; });
    }
  }

  /// `record`: of the search.
  Searched take(int chosen, Recorder& record) {
    record_forms(chosen, record);
    searched_.chosen = chosen;
    searched_.offered = found_;
    searched_.decisions = attempt(chosen).decisions;
    Recorder refused = recorder();
    refused.append(refusals_.at(chosen));
    refused.append(record.take());
    std::vector<Decision> own = refused.take();
    std::move(own.begin(), own.end(), std::back_inserter(searched_.decisions));
    return std::move(searched_);
  }

  const Nodes& nodes_;
  const StitchOp& op_;
  const Device& device_;
  const Options& options_;
  Order order_;
  Searched searched_;
  std::vector<std::optional<Worth>> worths_;       ///< by attempt
  std::vector<int> found_;                         ///< attempts that may be taken, each once
  std::map<int, std::vector<Decision>> refusals_;  ///< on the way to an attempt
  Verdict without_across_ = Verdict::no("astitch.across-rows", "no group's rows hold what it reduces");
};

}  // namespace

Searched search(const Nodes& nodes, const StitchOp& op, const Device& device, const Options& options) {
  return Search(nodes, op, device, options).run();
}

}  // namespace stitchwork::astitch
