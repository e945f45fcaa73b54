#include "analysis/judge/read_again.h"

#include <algorithm>
#include <map>
#include <set>

#include "analysis/facts/facts.h"
#include "analysis/plan/assemble.h"
#include "analysis/schedule/launch.h"
#include "analysis/schedule/layout.h"
#include "analysis/schedule/one_pass.h"
#include "analysis/schedule/stages.h"
#include "core/base/arithmetic.h"
#include "core/base/sorted.h"
#include "occupancy_model/l2.h"

namespace stitchwork {
namespace {

/// Rows that resident blocks go through again come from the L2 up to this share of it, and beyond that all
/// from DRAM: fitted to measured layer norms (docs/timing.md).
constexpr double kRowsOfL2 = 0.60, kRowsBeyondL2 = 1.40;
/// An SM's L1 and shared memory together are at least so much more than its most shared memory: 128 to 96 KB
/// on V100, 192 to 164 on A100, 256 to 228 on H100 (CUDA programming guide, compute capabilities).
constexpr std::int64_t kL1BesideShared = 28 * 1024;

/// Elements, and not what a row or a column has one of.
bool varies(const Evaluation& e) { return depends_on(e.map, 0) && depends_on(e.map, 1); }

/// An op that goes through the elements, or what is gathered of one on the way of another.
struct Passing {
  NodeId op = kNoNode;
  int level = 0, stage = 0;
};

class StepsOfValues {
 public:
  StepsOfValues(const Graph& graph, const KernelPlan& kernel, const Group& group,
                const GroupEvaluations& found)
      : graph_(graph),
        computation_(graph.entry_computation()),
        kernel_(kernel),
        group_(group),
        found_(found) {}

  std::vector<int> count() {
    std::vector<int> steps(found_.values.size(), 1);
    if (!packs_rows(group_.mapping) || extents(group_.mapping).cols < 2) return steps;
    const std::vector<std::size_t> again = not_kept();
    if (again.empty() && group_.one_pass.empty()) return steps;
    find_passing();
    for (const std::size_t v : again) steps[v] = std::max(1, steps_that_read(v));
    if (group_.one_pass.empty()) return steps;
    for (std::size_t v = 0; v < steps.size(); ++v) {
      const Evaluation& e = found_.values[v];
      if (!e.load && varies(e) && contains_sorted(group_.one_pass, e.root) && steps_that_read(v) == 0)
        steps[v] = 0;
    }
    return steps;
  }

 private:
  /// Elements that no register holds from step to step.
  std::vector<std::size_t> not_kept() const {
    std::vector<std::size_t> loads, computed;
    std::int64_t widest = 0;
    for (std::size_t v = 0; v < found_.values.size(); ++v) {
      const Evaluation& e = found_.values[v];
      if (e.resident || !varies(e)) continue;
      if (!e.load) {
        computed.push_back(v);
        continue;
      }
      if (contains_sorted(kernel_.ops, e.op) && reads_shared(kernel_, e.op, e.root)) continue;
      loads.push_back(v);
      if (!e.tile) widest = std::max(widest, registers(e.op));
    }
    std::int64_t room = registers_to_keep_in(kernel_.launch);
    for (const NodeId op : group_.across)
      room -= Layout(group_.mapping, kernel_.launch.block).elements() *
              (accumulator_bytes(computation_.node(op).shape.dtype) / kRegisterBytes);
    // One value made of all that is loaded may be what later steps read.
    if (widest <= room) std::erase_if(loads, [&](std::size_t v) { return !found_.values[v].tile; });
    // What is computed of rows in tiles is counted once: of layer norm's gradient of 4096x50257 bf16 on H200
    // that is 7 % above the simulator's issue slots, counting it in every step 28 %.
    if (loads.empty() || is_staged(group_.mapping)) return loads;
    std::erase_if(computed, [&](std::size_t v) { return registers(found_.values[v].op) <= room; });
    loads.insert(loads.end(), computed.begin(), computed.end());
    return loads;
  }

  std::int64_t registers(NodeId op) const {
    return registers_of_elements(group_, kernel_.launch.block, computation_.node(op).shape.dtype);
  }

  void find_passing() {
    std::vector<NodeId> gathered;
    std::map<int, int> first_reduction;  // its stage, by level
    for (const NodeId op : materialised(group_)) {
      const auto placed = found_.placements->find(op);
      const bool full = placed != found_.placements->end() && placed->second.coverage == Coverage::kFull;
      const bool reduces = reduces_cols(computation_, op, group_);
      if (contains_sorted(group_.one_pass, op)) {
        gathered.push_back(op);
        continue;
      }
      if (!full && !reduces && !is_across(group_, op)) continue;
      const int level = kernel_.levels.at(op), stage = stages_of(level).of(op);
      passing_.push_back({op, level, stage});
      if (!reduces) continue;
      const auto [first, added] = first_reduction.emplace(level, stage);
      first->second = std::min(first->second, stage);
    }
    for (const NodeId op : gathered) {
      const int level = kernel_.levels.at(op);
      if (const auto form = one_pass_form(graph_, op); form && first_reduction.contains(level))
        passing_.push_back({form->x, level, first_reduction.at(level)});
    }
  }

  int steps_that_read(std::size_t v) {
    const Evaluation& e = found_.values[v];
    const int level = kernel_.levels.at(e.root);
    std::set<int> steps;
    for (const Passing& by : passing_)
      if (by.level == level && stages_of(level).reads(by.op, e.op)) steps.insert(by.stage);
    return static_cast<int>(steps.size());
  }

  Stages& stages_of(int level) {
    return stages_.try_emplace(level, computation_, kernel_, level).first->second;
  }

  const Graph& graph_;
  const Computation& computation_;
  const KernelPlan& kernel_;
  const Group& group_;
  const GroupEvaluations& found_;
  std::vector<Passing> passing_;
  std::map<int, Stages> stages_;
};

}  // namespace

std::int64_t registers_of_elements(const Group& group, int block, DType dtype) {
  return Layout(group.mapping, block).elements() * ceil_div(byte_size(dtype), kRegisterBytes);
}

std::vector<int> steps_of_values(const Graph& graph, const KernelPlan& kernel, const Group& group,
                                 const GroupEvaluations& found) {
  return StepsOfValues(graph, kernel, group, found).count();
}

bool l1_holds(const Computation& computation, const Device& device, const KernelPlan& kernel,
              const Group& group, const GroupEvaluations& found, const std::vector<int>& steps, int blocks) {
  std::int64_t bytes = 0;
  for (std::size_t v = 0; v < steps.size(); ++v)
    if (found.values[v].load && steps[v] > 1 && !found.values[v].tile)
      bytes += byte_size(computation.node(found.values[v].op).shape.dtype);
  const std::int64_t at_once = std::max(1, blocks);
  return at_once * task_rows(group.mapping) * extents(group.mapping).cols / group.deal.cluster * bytes <=
         l1_room(device, kernel, blocks);
}

std::int64_t l1_room(const Device& device, const KernelPlan& kernel, int blocks) {
  return device.shared_bytes_per_sm + kL1BesideShared - std::max(1, blocks) * kernel.launch.shared_bytes;
}

double share_beyond_l2(const Device& device, double resident_bytes) {
  const double of_l2 =
      resident_bytes / static_cast<double>(std::max<std::int64_t>(1, l2_distinct_bytes(device)));
  return std::clamp((of_l2 - kRowsOfL2) / (kRowsBeyondL2 - kRowsOfL2), 0.0, 1.0);
}

}  // namespace stitchwork
