#include "analysis/planners/fusionstitching/ilp/packing.h"

#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <numeric>

#include "analysis/judge/cost_within.h"
#include "analysis/planners/fusionstitching/ilp/alike.h"
#include "analysis/verify/verify.h"
#include "core/base/sorted.h"

namespace stitchwork::fusionstitching {
namespace {

constexpr double kNoLimit = std::numeric_limits<double>::infinity();

/// One kernel of several: the blocks of each behind those before, loops over the same elements as one.
class Pack {
 public:
  /// `merge`: loops over as many elements of different components are one.
  explicit Pack(bool merge) : merge_(merge) {}

  void add(const Template& part) {
    std::int64_t end = first_block_;
    const bool merges = part.composition == Composition::kThread;
    const std::size_t others = flat_.size();  // loops of other components
    std::vector<bool> joined(others, false);
    for (Loop loop : part.stitched.loops) {
      if (Loop* known = merges && merge_ ? alike(loop, joined) : nullptr) {
        insert_sorted(known->sub_dominants, loop.dominant);
        for (const NodeId op : loop.sub_dominants) insert_sorted(known->sub_dominants, op);
        continue;
      }
      loop.lane = lane_;
      loop.dealt.deal.first_block = first_block_;
      end = std::max(end, loop.dealt.deal.end_block());
      // Loops that exchange nothing need not follow each other.
      if (merges) next_lane(end);
      all_.loops.push_back(std::move(loop));
      if (merges && is<mapping::Elements>(all_.loops.back().dealt.mapping))
        flat_.push_back(all_.loops.size() - 1);
    }
    if (!merges) next_lane(end);
    for (const NodeId op : part.stitched.fusion.ops) insert_sorted(all_.fusion.ops, op);
    for (const NodeId op : part.stitched.fusion.roots) insert_sorted(all_.fusion.roots, op);
    const auto& slots = part.stitched.slots;
    all_.slots.slots.insert(all_.slots.slots.end(), slots.slots.begin(), slots.slots.end());
    all_.slots.bytes = std::max(all_.slots.bytes, slots.bytes);
    all_.block = part.stitched.block;
  }

  Stitched take() {
    std::sort(all_.slots.slots.begin(), all_.slots.slots.end(),
              [](const Slot& a, const Slot& b) { return a.op < b.op; });
    return std::move(all_);
  }

 private:
  void next_lane(std::int64_t end) {
    if (end == first_block_) return;
    first_block_ = end;
    ++lane_;
  }

  /// A loop of other components over as many elements, which no other loop of this one has joined: two that
  /// are apart in one component have no place in each other's domain.
  Loop* alike(const Loop& loop, std::vector<bool>& joined) {
    const auto* elements = std::get_if<mapping::Elements>(&loop.dealt.mapping);
    if (elements == nullptr) return nullptr;
    for (std::size_t f = 0; f < joined.size(); ++f) {
      Loop& known = all_.loops[flat_[f]];
      if (joined[f] || std::get<mapping::Elements>(known.dealt.mapping) != *elements) continue;
      joined[f] = true;
      return &known;
    }
    return nullptr;
  }

  const bool merge_;
  Stitched all_;
  std::vector<std::size_t> flat_;  ///< loops over elements that values of other components may join
  std::int64_t first_block_ = 0;
  int lane_ = 0;
};

/// A loop of one block that has fewer threads than the loop has elements.
bool has_one_block(const Template& of, int cta_size) {
  return std::ranges::any_of(of.stitched.loops, [&](const Loop& loop) {
    return loop.dealt.deal.blocks() == 1 && extents(loop.dealt.mapping).elements() > cta_size;
  });
}

}  // namespace

Packer::Packer(const Ops& ops, const IlpOptions& options) : ops_(ops), options_(options) {}

Packer::Chosen Packer::choose(const Fusion& component, const Templates& templates, int cta_size,
                              double most_us) {
  const astitch::Nodes& nodes = *ops_.nodes;
  // Loops of outputs are sound as they are made.
  const bool given = templates.all.size() == 1 && templates.all[0].composition == Composition::kThread;
  if (templates.all.empty() || given) return {given ? 0 : -1, 0, {}, kNoLimit};
  const std::string key =
      fmt::format("{} threads: ", cta_size) + pattern_key(nodes, component.ops, component.roots);
  {
    const std::lock_guard lock(mutex_);
    const auto known = known_.find(key);
    if (known != known_.end() && (known->second.index >= 0 || known->second.most_us >= most_us))
      return known->second;
  }
  const Chosen best = find_fastest(templates, most_us);
  const std::lock_guard lock(mutex_);
  return known_.insert_or_assign(key, best).first->second;
}

Packer::Chosen Packer::find_fastest(const Templates& templates, double most_us) const {
  const astitch::Nodes& nodes = *ops_.nodes;
  // Few loops are soon estimated, and what is slower than they are need not be to its end.
  std::vector<int> order(templates.all.size());
  std::iota(order.begin(), order.end(), 0);
  std::ranges::stable_sort(
      order, {}, [&](int t) { return templates.all[static_cast<std::size_t>(t)].stitched.loops.size(); });
  Chosen best{.us = most_us, .most_us = kNoLimit};
  int last_refused = -1;
  for (const int t : order) {
    const auto made =
        evaluated_within_maps(*nodes.computation, templates.all[static_cast<std::size_t>(t)].stitched);
    const auto refuse = [&](Verdict why) {
      if (t > last_refused) best.refused = std::move(why);
      last_refused = std::max(last_refused, t);
    };
    if (const auto* too_often = std::get_if<NodeId>(&made)) {
      refuse(too_many_maps(ops_, *too_often));
      continue;
    }
    const auto& [kernel, found] = std::get<EvaluatedKernel>(made);
    const auto us = us_within(*nodes.graph, *ops_.device, kernel, found, best.us);
    if (!us) best.most_us = most_us;
    if (!us || (best.index >= 0 && *us == best.us && t > best.index)) continue;
    if (const auto problems = verify_values(*nodes.graph, *ops_.device, kernel, found); !problems.empty()) {
      refuse(Verdict::no("fs19.layout", problems.front().why));
      continue;
    }
    best.index = t;
    best.us = *us;
  }
  return best;
}

PackedKernel Packer::pack(const std::vector<Fusion>& parts, int cta_size, double most_us) {
  const astitch::Nodes& nodes = *ops_.nodes;
  PackedKernel result;
  std::vector<Template> chosen_parts;
  for (const Fusion& part : parts) {
    const Templates templates = find_templates(ops_, part, cta_size, options_);
    const Chosen chosen = choose(part, templates, cta_size, parts.size() == 1 ? most_us : kNoLimit);
    if (chosen.index < 0) {
      result.made = templates.all.empty() ? templates.made : chosen.refused;
      return result;
    }
    const Template& of = templates.all[static_cast<std::size_t>(chosen.index)];
    result.one_block = result.one_block || has_one_block(of, cta_size);
    chosen_parts.push_back(of);
    result.us = chosen.us;
  }
  const auto packed = [&](bool merge) {
    Pack all(merge);
    for (const Template& part : chosen_parts) all.add(part);
    return all.take();
  };
  // A template that is more than loops of outputs was estimated as a kernel when it was chosen.
  if (chosen_parts.size() == 1 && chosen_parts[0].composition != Composition::kThread) {
    result.whole = packed(true);
    return result;
  }
  EvaluatedKernel of_all;
  std::vector<Verdict> problems;
  const auto make = [&](bool merge) {
    result.whole = packed(merge);
    auto made = evaluated_within_maps(*nodes.computation, *result.whole);
    if (const auto* too_often = std::get_if<NodeId>(&made)) {
      problems = {too_many_maps(ops_, *too_often)};
      return;
    }
    of_all = std::get<EvaluatedKernel>(std::move(made));
    problems = verify_values(*nodes.graph, *ops_.device, of_all.kernel, of_all.found);
    if (problems.empty() && chosen_parts.size() > 1 && !is_sound(*nodes.graph, of_all.kernel))
      problems.push_back(Verdict::no("fs19.layout", "a value lies where one is read that it is not made of"));
  };
  make(true);
  // Components that evaluate the same index maps may have no place in each other's domain.
  if (chosen_parts.size() > 1 && !problems.empty()) make(false);
  if (!problems.empty()) {
    const Verdict& problem = problems.front();
    result.made = problem.rule == "fs19.maps" ? problem : Verdict::no("fs19.layout", problem.why);
    result.whole.reset();
    return result;
  }
  result.us = kernel_cost(*nodes.graph, *ops_.device, of_all.kernel, of_all.found).predicted_us;
  return result;
}

bool Packer::may_have_one_block(const std::vector<Fusion>& parts, const std::vector<int>& sizes) const {
  return std::ranges::any_of(sizes, [&](int size) {
    return std::ranges::any_of(parts, [&](const Fusion& part) {
      return std::ranges::any_of(find_templates(ops_, part, size, options_).all,
                                 [&](const Template& of) { return has_one_block(of, size); });
    });
  });
}

PackedKernel Packer::pack(const std::vector<NodeId>& pattern, bool timed) {
  std::vector<Fusion> parts;
  for (const std::vector<NodeId>& component : components(ops_, pattern))
    parts.push_back(fusion_of(ops_, component));
  std::vector<int> sizes(kCtaSizes.begin(), kCtaSizes.end());
  if (const auto* wanted = Constraints::find(options_.constraints.block, pattern)) sizes = {wanted->second};
  {
    const std::lock_guard lock(mutex_);
    if (const auto known = best_size_.find(pattern); known != best_size_.end()) sizes = {known->second};
  }
  std::erase_if(sizes, [&](int size) { return size > ops_.device->max_threads_per_block; });
  // Whether there is a kernel is known by the first, and of one block is then none.
  const bool any = !timed && !may_have_one_block(parts, sizes);
  PackedKernel best;
  for (const int size : sizes) {
    PackedKernel of_size = pack(parts, size, best.whole ? best.us : kNoLimit);
    if (best.whole && !(of_size.whole && of_size.us < best.us)) continue;
    best = std::move(of_size);
    if (!best.whole) continue;
    if (any) return best;
    const std::lock_guard lock(mutex_);
    best_size_[pattern] = size;
  }
  if (!best.whole && best.made.ok) best.made = Verdict::no("fs19.layout", "no template");
  return best;
}

}  // namespace stitchwork::fusionstitching
