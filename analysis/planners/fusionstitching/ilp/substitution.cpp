#include "analysis/planners/fusionstitching/ilp/substitution.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <set>

#include "analysis/schedule/launch.h"
#include "analysis/stitching/equal_ops.h"

namespace stitchwork::fusionstitching {
namespace {

/// A run of fusible ops in the partition's order that grows until something forbids the next op.
class Segment {
 public:
  Segment(const Ops& ops, int max_ops, const Constraints& constraints)
      : ops_(ops), max_ops_(max_ops), constraints_(constraints) {}

  /// Why `id` cannot be in it.
  Verdict takes(NodeId id) const {
    for (const auto& [a, b] : constraints_.apart) {
      const NodeId other = a == id ? b : b == id ? a : kNoNode;
      if (other != kNoNode && inside_.contains(other))
        return Verdict::no("override.forbid_merge",
                           fmt::format("an override keeps {} and {} apart", ops_.name(a), ops_.name(b)));
    }
    astitch::CodeSize more;
    more.add((*ops_.nodes)[id].code);
    if (size_.with(more) > max_ops_)
      return Verdict::no("fs19.kernel-limits", fmt::format("more than {} ops that need code", max_ops_));
    std::size_t pointers = inputs_.size() + open_.size() + 1;
    for (const BufferRead& read : ops_[id].reads)
      pointers += !inside_.contains(read.buffer) && !inputs_.contains(read.buffer) ? 1 : 0;
    if (pointers > kMostPointerArguments)
      return Verdict::no("fs19.kernel-limits", fmt::format("more than {} buffers", kMostPointerArguments));
    return Verdict::yes();
  }

  void add(NodeId id) {
    size_.add((*ops_.nodes)[id].code);
    for (const BufferRead& read : ops_[id].reads)
      if (!inside_.contains(read.buffer)) inputs_.insert(read.buffer);
    for (const NodeId producer : ops_[id].producers)
      if (const auto open = open_.find(producer); open != open_.end() && --open->second == 0)
        open_.erase(open);
    inside_.insert(id);
    // Never zero where it has to be stored anyway: one reader more than it has.
    open_[id] = static_cast<int>(ops_[id].consumers.size()) + (ops_[id].result ? 1 : 0);
  }

  std::vector<NodeId> take() {
    std::vector<NodeId> result(inside_.begin(), inside_.end());
    inside_.clear();
    inputs_.clear();
    open_.clear();
    size_ = {};
    return result;
  }

 private:
  const Ops& ops_;
  const int max_ops_;
  const Constraints& constraints_;
  std::set<NodeId> inside_, inputs_;
  std::map<NodeId, int> open_;  ///< members that somebody outside may read, with so many readers outside
  astitch::CodeSize size_;
};

}  // namespace

std::vector<Pattern> substitution_patterns(const Ops& ops, const Partition& partition,
                                           const SubstitutionOptions& options, const Constraints& constraints,
                                           Recorder& recorder) {
  std::vector<Pattern> patterns;
  const auto add = [&](std::vector<NodeId> segment) {
    if (options.packing) {
      if (segment.size() > 1) patterns.push_back({std::move(segment), PatternSource::kSubstitution});
      return;
    }
    for (std::vector<NodeId>& part : components(ops, segment))
      if (part.size() > 1) patterns.push_back({std::move(part), PatternSource::kSubstitution});
  };
  for (int k = 0; k < kPartitionSteps; ++k) {
    Segment segment(ops, options.max_ops, constraints);
    for (const NodeId id : partition.order) {
      const StepFacts& facts = ops[id];
      if (static_cast<int>(partition[id]) <= k) {
        add(segment.take());
        continue;
      }
      if (!facts.fusible) continue;  // a name that nothing behind it reads
      if (const Verdict verdict = segment.takes(id); !verdict) {
        add(segment.take());
        recorder.add("patterns", ops.name(id), "", [&] {
          return Verdict::no(verdict.rule, fmt::format("the segment of {} ends before it: {}",
                                                       name(static_cast<PartitionStep>(k)), verdict.why));
        });
      }
      segment.add(id);
    }
    add(segment.take());
  }
  remove_doubles(patterns);
  return patterns;
}

}  // namespace stitchwork::fusionstitching
