// What fits, what is best: the second half of deep/tuning.h.
#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <set>
#include <tuple>
#include <utility>

#include "analysis/facts/facts.h"
#include "analysis/planners/fusionstitching/deep/tuning.h"
#include "analysis/planners/fusionstitching/schedule_rules.h"
#include "core/base/arithmetic.h"
#include "core/base/at.h"
#include "core/base/error.h"
#include "core/base/sorted.h"

namespace stitchwork::fusionstitching::deep {
namespace {

/// Blocks of a kernel whose values go through shared memory: up to so many tasks verify shows that each takes
/// its own values alone, where that does not follow from the maps (analysis/schedule/locality.cpp).
constexpr std::int64_t kMostStitchedBlocks = 65536;
/// Sums of stored times within so much of the least are as good as equal.
/// A choice, not measured: ops' own kernels of a few microseconds repeat no better.
constexpr double kEqualSums = 1.02;
/// Choices that are compared by their kernels, and ops of all of these: what that takes of planning.
/// A choice, not measured: all sizes of a block of two schedules, and no second kernel of a packed training
/// step.
constexpr std::size_t kMostChoices = 2 * kBlockSizes.size(), kMostChoiceOps = 512;

}  // namespace

Fusion Tuner::with_maps(std::vector<NodeId> ops) const {
  Fusion fusion;
  std::sort(ops.begin(), ops.end());
  const astitch::Nodes& nodes = units_.nodes();
  std::vector<NodeId> open = ops;
  std::set<NodeId> all(ops.begin(), ops.end());
  while (!open.empty()) {
    const NodeId op = open.back();
    open.pop_back();
    for (const NodeId operand : nodes.node(op).operands)
      if (nodes[operand].transparent && !nodes[operand].immediate && all.insert(operand).second)
        open.push_back(operand);
  }
  fusion.ops.assign(all.begin(), all.end());
  for (const NodeId op : ops) {
    const auto& readers = units_.readers(op);
    if (units_.maps_to_result(op) >= 0 ||
        std::any_of(readers.begin(), readers.end(),
                    [&](const Contraction::Reader& r) { return !contains_sorted(ops, r.op); }))
      fusion.roots.push_back(op);
  }
  return fusion;
}

Fusion Tuner::fusion_of(const Tuned& tuned) const { return with_maps(tuned.ops); }

std::vector<Request> Tuner::requests_of(const Fusion& fusion,
                                        const std::map<NodeId, Schedule>& schedules) const {
  const auto chunk = [&](NodeId op) -> std::int64_t {
    const auto found = schedules.find(op);
    if (found == schedules.end()) return 0;
    const auto chunks = chunking(found->second, computation_.node(op).shape.dims);
    return chunks && chunks->one_range() ? chunks->elements() : 0;
  };
  return requests(computation_, fusion, chunk, users_);
}

SharingRules Tuner::sharing_rules() const {
  const InPlace in_place = [this](NodeId op, NodeId read, const IsShared& is_shared) {
    return is_elementwise_in_place(computation_, op, read, is_shared);
  };
  return {options_.shared_bytes, options_.shared_reuse, options_.size_shrinking, in_place};
}

bool Tuner::fits(const std::vector<NodeId>& ops, const Cut& total,
                 const std::function<std::optional<Schedule>(NodeId)>& schedule_of) const {
  if (total.requested == 0) return true;
  if (total.blocks > kMostStitchedBlocks || total.largest > options_.shared_bytes) return false;
  if (total.requested <= options_.shared_bytes) return true;
  if (options_.size_shrinking && total.required <= options_.shared_bytes) return true;
  std::map<NodeId, Schedule> schedules;
  for (const NodeId op : ops)
    if (const auto schedule = schedule_of(op)) schedules.emplace(op, *schedule);
  const Fusion fusion = with_maps(ops);
  return plan_shared(
             computation_, fusion, requests_of(fusion, schedules), [](NodeId) { return 0; }, sharing_rules())
      .fits;
}

Cut Tuner::total(const Tuned& tuned, const Extension::Part& part) const {
  const Cut& cut = tuned.cuts[part.cut];
  Cut sum{cut.root, cut.blocks, {}, cut.us, cut.requested, cut.required, cut.largest};
  for (std::size_t s = 0; s < sum.us.size(); ++s) sum.us[s] += part.us[s];
  sum.requested += part.requested;
  sum.required += part.required;
  sum.largest = std::max(sum.largest, part.largest);
  return sum;
}

/// Under each schedule that the fusion has left; what refuses the last that is not is remembered.
void Tuner::follow_cuts(const std::vector<Joining>& all, const Tuned& tuned, Extension& result) {
  for (std::size_t c = 0; c < tuned.cuts.size(); ++c) {
    Extension::Part part{c, {}, {}, 0, 0, 0};
    bool follows = true;
    for (std::size_t i = 0; i < all.size() && follows; ++i) {
      refuser_ = kNoNode;
      follows = add_op(all[i], tuned.cuts[c], part);
      if (!follows) refused_ = all[i].op;
    }
    if (follows) result.parts.push_back(std::move(part));
  }
}

/// The least sum that fits; what turns out not to fit falls away.
void Tuner::find_best(const Tuned& tuned, Extension& result) {
  std::vector<NodeId> all = tuned.ops;
  all.insert(all.end(), result.ops.begin(), result.ops.end());
  const int wanted = wanted_size(all);
  result.us = std::numeric_limits<double>::infinity();
  const auto us = [&](const Extension::Part& part) { return least(total(tuned, part).us, wanted); };
  while (!result.parts.empty()) {
    const auto best = std::min_element(result.parts.begin(), result.parts.end(),
                                       [&](const auto& a, const auto& b) { return us(a) < us(b); });
    const auto schedule_of = [&](NodeId op) { return schedule_in(op, tuned.cuts[best->cut], *best); };
    if (fits(all, total(tuned, *best), schedule_of)) {
      result.us = us(*best);
      return;
    }
    result.parts.erase(best);
  }
}

std::optional<Extension> Tuner::extend(NodeId fusion, const Tuned& tuned, NodeId producer, double producer_us,
                                       Verdict* why) {
  const InFusion inside = [&](NodeId op) {
    const NodeId unit = units_.unit_of(op);
    return unit == fusion || unit == producer;
  };
  Extension result;
  result.ops.assign(units_.ops(producer).rbegin(), units_.ops(producer).rend());
  std::vector<Joining> all;
  std::vector<std::vector<std::size_t>> places_before;
  bool few = true;
  for (std::size_t i = 0; i < result.ops.size(); ++i) {
    joining_[at(result.ops[i])] = static_cast<int>(i);
    all.push_back(joining(result.ops[i], inside));
    places_before.push_back(places_[at(result.ops[i])]);
    few = add_places(all.back()) && few;
  }
  if (few) follow_cuts(all, tuned, result);
  const std::size_t satisfiable = result.parts.size();
  find_best(tuned, result);
  for (const NodeId op : result.ops) joining_[at(op)] = -1;
  const double saved = device_.launch_us + device_.launch_gap_us;
  if (!result.parts.empty() && result.us <= tuned.us + producer_us + saved) return result;

  for (std::size_t i = 0; i < result.ops.size(); ++i) places_[at(result.ops[i])] = places_before[i];
  if (why == nullptr) return std::nullopt;
  if (!few) {
    *why = Verdict::no("fs18.kernel-limits", "loops would evaluate it at too many different indices");
  } else if (satisfiable == 0) {
    const std::string rule = refuser_ == kNoNode
                                 ? "its readers want different chunks, or its own are no range of elements"
                                 : rule_text(computation_, computation_.node(refuser_));
    *why = Verdict::no("fs18.no-schedule",
                       fmt::format("{} follows none of {} satisfiable schedules: {}",
                                   computation_.node(refused_).name, tuned.cuts.size(), rule));
  } else if (result.parts.empty()) {
    *why = Verdict::no(
        "fs18.shared-memory",
        fmt::format("a block's shared memory exceeds {} bytes under each of {} satisfiable schedules",
                    options_.shared_bytes, satisfiable));
  } else {
    *why = Verdict::no("fs18.not-optimized",
                       fmt::format("together {:.2f} us; apart {:.2f} + {:.2f} us, and {:.2f} us for a launch",
                                   result.us, tuned.us, producer_us, saved));
  }
  return std::nullopt;
}

void Tuner::join(Tuned& tuned, Extension extension) {
  for (const NodeId op : extension.ops) {
    place_[at(op)] = static_cast<int>(tuned.ops.size());
    tuned.ops.push_back(op);
  }
  std::vector<Cut> cuts;
  for (Extension::Part& part : extension.parts) {
    Cut& cut = cuts.emplace_back(std::move(tuned.cuts[part.cut]));
    cut.schedules.insert(cut.schedules.end(), part.schedules.begin(), part.schedules.end());
    for (std::size_t s = 0; s < cut.us.size(); ++s) cut.us[s] += part.us[s];
    cut.requested += part.requested;
    cut.required += part.required;
    cut.largest = std::max(cut.largest, part.largest);
  }
  tuned.cuts = std::move(cuts);
  tuned.us = extension.us;
}

std::vector<Tuning> Tuner::choices(const Tuned& tuned) {
  struct Choice {
    double us;
    std::int64_t waves, blocks;
    int size;
    std::size_t cut;
  };
  const int wanted = wanted_size(tuned.ops);
  std::vector<Choice> choices;
  for (std::size_t c = 0; c < tuned.cuts.size(); ++c)
    for (int s = 0; s < static_cast<int>(kBlockSizes.size()); ++s) {
      if (wanted >= 0 && s != wanted) continue;
      const Cut& cut = tuned.cuts[c];
      const auto size = static_cast<std::size_t>(s);
      const std::int64_t resident = std::int64_t{device_.sms} * device_.max_threads_per_sm();
      choices.push_back({cut.us[size], ceil_div(cut.blocks * kBlockSizes[size], resident), cut.blocks, s, c});
    }
  const auto order = [](const Choice& c) { return std::tuple(c.us, c.waves, -c.blocks, -c.size); };
  std::sort(choices.begin(), choices.end(),
            [&](const Choice& a, const Choice& b) { return order(a) < order(b); });
  std::vector<Tuning> result;
  for (const Choice& choice : choices) {
    const std::size_t made = result.size();
    // Of one op the library has timed the kernel itself.
    if (made > 0 && (!times_.by_library() || tuned.ops.size() == 1 || made == kMostChoices ||
                     (made + 1) * tuned.ops.size() > kMostChoiceOps))
      break;
    if (made > 0 && least(tuned.cuts[choice.cut].us, wanted) > kEqualSums * result.front().us) continue;
    const Cut& cut = tuned.cuts[choice.cut];
    const auto schedule_of = [&](NodeId op) {
      return cut.schedules[static_cast<std::size_t>(place_[at(op)])];
    };
    if (!fits(tuned.ops, cut, schedule_of)) continue;
    Tuning& tuning = result.emplace_back(Tuning{cut.blocks,
                                                choice.size,
                                                kBlockSizes[static_cast<std::size_t>(choice.size)],
                                                choice.us,
                                                cut.root,
                                                {}});
    tuning.fits_whole = cut.requested <= options_.shared_bytes;
    if (const auto* block = Constraints::find(options_.constraints.block, tuned.ops))
      tuning.threads = block->second;
    for (const NodeId op : tuned.ops)
      if (const auto schedule = schedule_of(op)) tuning.schedules.emplace(op, *schedule);
  }
  SW_CHECK(!result.empty(), "no schedule of the fusion of {} fits",
           computation_.node(tuned.ops.front()).name);
  return result;
}

bool Tuner::is_satisfiable(const Tuned& tuned, const Schedule& root) {
  const InFusion inside = [&](NodeId op) {
    return std::find(tuned.ops.begin(), tuned.ops.end(), op) != tuned.ops.end();
  };
  std::vector<NodeId> ops = tuned.ops;
  std::sort(ops.rbegin(), ops.rend());
  const std::int64_t blocks = blocks_of(root, computation_.node(tuned.seeds.front()).shape.dims);
  std::map<NodeId, Schedule> schedules;
  for (const NodeId seed : tuned.seeds) schedules.emplace(seed, root);
  for (const NodeId op : ops) {
    const Node& node = computation_.node(op);
    const std::vector<Path> paths = paths_to(op, inside);
    if (paths.empty()) {
      if (schedules.contains(op)) continue;
      const auto own = row_schedule(node.shape.dims, blocks);
      if (!own) return false;
      schedules.emplace(op, *own);
    }
    std::optional<Schedule> agreed;
    bool follows = true;
    for (const Path& path : paths) {
      const auto reader = schedules.find(path.reader);
      const auto given = reader == schedules.end() ? std::nullopt : follow(path, reader->second);
      follows = follows && given &&
                (!agreed || chunking(*agreed, node.shape.dims) == chunking(*given, node.shape.dims));
      if (!agreed) agreed = given;
    }
    if (follows && agreed) schedules.insert_or_assign(op, *agreed);
    if (!follows && !is_trivial(node, row_schedule(node.shape.dims, blocks).value_or(Schedule{})))
      return false;
  }
  return true;
}

}  // namespace stitchwork::fusionstitching::deep
