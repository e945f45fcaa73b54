#include "analysis/planners/fusionstitching/ilp/template_kernel.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <optional>

#include "analysis/judge/cost.h"
#include "analysis/planners/fusionstitching/ilp/template_text.h"
#include "analysis/planners/fusionstitching/ilp/templates.h"
#include "analysis/schedule/propagation.h"
#include "core/base/error.h"
#include "core/base/sorted.h"

namespace stitchwork::fusionstitching {
namespace {

/// The schedules of a template as loops of the pattern's kernel.
class Lowering {
 public:
  Lowering(const Ops& ops, const std::vector<NodeId>& pattern, const std::string& text)
      : ops_(ops),
        computation_(*ops.nodes->computation),
        schedules_(parse_template(computation_, text)),
        fusion_(fusion_of(ops, pattern)) {
    check();
  }

  Stitched run(int cta_size, const IlpOptions& options) const {
    Stitched result;
    result.fusion = fusion_;
    result.block = cta_size;
    std::vector<Loop> loops;
    for (const OpSchedule& schedule : schedules_)
      loops.push_back({schedule.op, {}, dealt_of(computation_, schedule, cta_size), 0});
    const std::vector<Request> asked = requests_of(loops);
    join_rows(loops);
    result.loops = std::move(loops);
    result.slots = slots(result, asked, options);
    return result;
  }

 private:
  /// That the kernel holds all ops of the template is required of patterns (required.h).
  void check() {
    for (const OpSchedule& schedule : schedules_) {
      const std::string& name = ops_.name(schedule.op);
      if (scheduled_.contains(schedule.op))
        throw Error("template", schedule.line, schedule.column, fmt::format("{} has two schedules", name));
      scheduled_[schedule.op] = &schedule;
    }
    for (const NodeId root : fusion_.roots)
      if (!scheduled_.contains(root))
        throw Error("template", schedules_.back().line, schedules_.back().column,
                    fmt::format("{} has no schedule: the kernel stores it in global memory", ops_.name(root)),
                    "add one behind the last");
  }

  /// Bytes of what is marked S, in blocks of its own chunks.
  std::vector<Request> requests_of(const std::vector<Loop>& loops) const {
    std::vector<Request> asked;
    for (const Loop& loop : loops) {
      const OpSchedule& schedule = *scheduled_.at(loop.dominant);
      if (!schedule.shared) continue;
      const std::int64_t chunk = task_rows(loop.dealt.mapping);
      asked.push_back({loop.dominant, RequestClass::kMust,
                       chunk * byte_size(computation_.node(loop.dominant).shape.dtype)});
    }
    std::sort(asked.begin(), asked.end(), [](const Request& a, const Request& b) { return a.op < b.op; });
    return asked;
  }

  /// Of the kernel's loops, where they may lie in place of each other.
  Slots slots(const Stitched& kernel, const std::vector<Request>& asked, const IlpOptions& options) const {
    Slots result = shared_slots(ops_, kernel, asked, options);
    if (result.bytes > options.shared_bytes)
      throw Error("template", schedules_.front().line, schedules_.front().column,
                  fmt::format("its values take {} bytes of shared memory, {} are allowed", result.bytes,
                              options.shared_bytes),
                  "mark fewer with S, or take smaller tiles of blocks");
    return result;
  }

  /// Element-wise ops that warps have rows of are computed in the loop of a reduction of these rows.
  void join_rows(std::vector<Loop>& loops) const {
    for (std::size_t r = 0; r < loops.size(); ++r) {
      if (!is<mapping::Lanes>(loops[r].dealt.mapping)) continue;
      const auto placed = propagate(computation_, loops[r].dominant, loops[r].dealt.mapping, fusion_.ops);
      const Loop leader = loops[r];
      std::vector<NodeId> joined = leader.sub_dominants;
      std::erase_if(loops, [&](const Loop& loop) {
        const auto at = placed->find(loop.dominant);
        const bool lies = loop.dominant != leader.dominant && at != placed->end() &&
                          joins(leader, loop, at->second.coverage);
        if (lies) insert_sorted(joined, loop.dominant);
        return lies;
      });
      const auto own = std::find_if(loops.begin(), loops.end(),
                                    [&](const Loop& loop) { return loop.dominant == leader.dominant; });
      own->sub_dominants = std::move(joined);
      r = static_cast<std::size_t>(own - loops.begin());
    }
  }

  bool joins(const Loop& leader, const Loop& loop, Coverage coverage) const {
    const OpSchedule& schedule = *scheduled_.at(loop.dominant);
    const bool warps =
        std::any_of(schedule.dims.begin(), schedule.dims.end(), [](const Attribute& attribute) {
          return std::any_of(attribute.begin(), attribute.end(),
                             [](const Tiles& t) { return t.level == Level::kWarp; });
        });
    if (!warps || loop.dealt.deal.blocks() != leader.dealt.deal.blocks()) return false;
    if (coverage == Coverage::kRows && is<mapping::Lanes>(loop.dealt.mapping))
      return loop.dealt.mapping == leader.dealt.mapping;
    return coverage == Coverage::kFull && is<mapping::Elements>(loop.dealt.mapping);
  }

  const Ops& ops_;
  const Computation& computation_;
  const std::vector<OpSchedule> schedules_;
  const Fusion fusion_;
  std::map<NodeId, const OpSchedule*> scheduled_;
};

}  // namespace

KernelPlan template_kernel(const Ops& ops, const std::vector<NodeId>& pattern, const std::string& text,
                           const IlpOptions& options) {
  const Lowering lowering(ops, pattern, text);
  std::vector<int> sizes(kCtaSizes.begin(), kCtaSizes.end());
  if (const auto* wanted = Constraints::find(options.constraints.block, pattern)) sizes = {wanted->second};
  std::optional<KernelPlan> best;
  double best_us = 0;
  for (const int size : sizes) {
    KernelPlan kernel = stitched_kernel(*ops.nodes->computation, lowering.run(size, options));
    const double us = kernel_cost(*ops.nodes->graph, *ops.device, kernel).predicted_us;
    if (best && us >= best_us) continue;
    best_us = us;
    best = std::move(kernel);
  }
  return std::move(*best);
}

}  // namespace stitchwork::fusionstitching
