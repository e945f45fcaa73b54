#include "analysis/astitch/one_pass.h"

#include <fmt/format.h>

#include <algorithm>
#include <vector>

#include "analysis/assemble.h"
#include "analysis/evaluations.h"
#include "analysis/launch.h"
#include "analysis/one_pass.h"
#include "analysis/schedule/layout.h"
#include "analysis/stages.h"
#include "core/sorted.h"
#include "occupancy_model/hardware.h"
#include "occupancy_model/occupancy.h"

namespace stitchwork::astitch {
namespace {

/// Instructions an element (docs/timing.md): a pass of its own loads, addresses, computes and adds; gathered,
/// it is compared or averaged, and added.
constexpr double kPassInstructions = 10, kGatherInstructions = 9;

class Gathering {
 public:
  Gathering(const Graph& graph, const Device& device, KernelPlan& kernel, Group& group)
      : graph_(graph),
        computation_(graph.entry_computation()),
        device_(device),
        kernel_(kernel),
        group_(group) {}

  void run(Recorder& recorder) {
    if (group_.mapping.staged) return;  // its rows stay on chip
    for (const NodeId op : materialised(group_)) {
      if (!can_gather(graph_, kernel_, group_, op)) continue;
      const Verdict verdict = judge(op);
      recorder.add("mapping", computation_.node(op).name, computation_.node(group_.dominant).name,
                   [&] { return verdict; });
      if (verdict) insert_sorted(group_.one_pass, op);
    }
  }

 private:
  Verdict judge(NodeId op) const {
    const OnePassForm form = *one_pass_form(graph_, op);
    const ThreadMapping& m = group_.mapping;
    const DType dtype = computation_.node(form.x).shape.dtype;
    const std::int64_t elements = Layout(m, kernel_.launch.block).elements();
    const std::int64_t registers = elements * ((byte_size(dtype) + kRegisterBytes - 1) / kRegisterBytes);
    const std::int64_t kept = registers_to_keep_in(kernel_.launch);
    if (registers <= kept)
      return Verdict::no("astitch.one-pass",
                         fmt::format("the row stays on chip: {} registers a thread of {}", registers, kept));
    if (const NodeId other = passes_anyway(op, form); other != kNoNode)
      return Verdict::no("astitch.one-pass",
                         fmt::format("{} passes over the row all the same", computation_.node(other).name));
    const double bytes = row_bytes(op, form);
    const double all = bytes * static_cast<double>(m.rows);
    const int blocks =
        std::max(1, occupancy(device_, kernel_.launch.block, std::max(1, kernel_.launch.register_bound),
                              kernel_.launch.shared_bytes)
                        .blocks_per_sm);
    const double resident =
        bytes * static_cast<double>(m.rows_per_block) *
        static_cast<double>(std::min<std::int64_t>(kernel_.launch.grid, std::int64_t{blocks} * device_.sms));
    const bool from_l2 = resident <= static_cast<double>(device_.l2_bytes);
    const double dram_us = all / (device_.dram_efficiency * device_.dram_gb_s * 1e3);
    const double again_us = from_l2 ? all / (device_.l2_gb_s * 1e3) : dram_us;
    const double an_instruction = static_cast<double>(m.rows * m.cols) / kWarp / device_.sm_partitions /
                                  (device_.sms * device_.clock_ghz * 1e3);
    const double apart = std::max(dram_us, kPassInstructions * an_instruction) +
                         std::max(again_us, kPassInstructions * an_instruction);
    const double together = std::max(dram_us, (kPassInstructions + kGatherInstructions) * an_instruction);
    const std::string why = fmt::format(
        "{} registers a thread of {}: {:.2f} us in one pass, {:.2f} us in two, the second from {}", registers,
        kept, together, apart, from_l2 ? "L2" : "DRAM");
    return together < apart ? Verdict::yes("astitch.one-pass", why) : Verdict::no("astitch.one-pass", why);
  }

  /// What takes up the elements behind the same reduction, and not behind `op`: the pass is made for it.
  NodeId passes_anyway(NodeId op, const OnePassForm& form) const {
    const int level = kernel_.levels.at(op);
    const Stages stages(computation_, kernel_, level);
    const std::vector<NodeId> waits = stages.shared_reads(form.c);
    const GroupEvaluations found = evaluations(computation_, kernel_, group_);
    for (const NodeId other : materialised(group_)) {
      if (other == op || kernel_.levels.at(other) != level || contains_sorted(group_.one_pass, other))
        continue;
      const auto placed = found.placements.find(other);
      const bool elements = reduces_cols(computation_, other, group_) || is_across(group_, other) ||
                            (placed != found.placements.end() && placed->second.coverage == Coverage::kFull);
      if (!elements) continue;
      const std::vector<NodeId> behind = ancestors(other, stages);
      const bool waits_too =
          std::any_of(waits.begin(), waits.end(), [&](NodeId w) { return contains_sorted(behind, w); });
      if (waits_too && !contains_sorted(behind, op)) return other;
    }
    return kNoNode;
  }

  /// The values of shared memory that an op of the phase is computed from, whatever lies between.
  std::vector<NodeId> ancestors(NodeId op, const Stages& stages) const {
    std::vector<NodeId> found, open{op};
    while (!open.empty()) {
      const NodeId at = open.back();
      open.pop_back();
      for (const NodeId operand : computation_.node(at).operands)
        for (const NodeId read : stages.shared_reads(operand))
          if (!contains_sorted(found, read)) {
            insert_sorted(found, read);
            open.push_back(read);
          }
    }
    return found;
  }

  /// Of the arrays of elements that x is computed from.
  double row_bytes(NodeId op, const OnePassForm& form) const {
    const std::int64_t elements = group_.mapping.rows * group_.mapping.cols;
    const Stages stages(computation_, kernel_, kernel_.levels.at(op));
    std::vector<NodeId> seen, open{form.x};
    double bytes = 0;
    while (!open.empty()) {
      const NodeId at = open.back();
      open.pop_back();
      if (contains_sorted(seen, at)) continue;
      insert_sorted(seen, at);
      const Node& node = computation_.node(at);
      if (stages.is_here(at))
        open.insert(open.end(), node.operands.begin(), node.operands.end());
      else if (!node.shape.is_tuple && node.shape.elements_count() == elements)
        bytes += static_cast<double>(byte_size(node.shape.dtype));
    }
    return bytes * static_cast<double>(group_.mapping.cols);
  }

  const Graph& graph_;
  const Computation& computation_;
  const Device& device_;
  const KernelPlan& kernel_;
  Group& group_;
};

}  // namespace

void gather_in_one_pass(const Graph& graph, const Device& device, const Options& options, KernelPlan& kernel,
                        Recorder& recorder) {
  if (!options.one_pass || !options.tuned) return;
  for (Group& group : kernel.groups) Gathering(graph, device, kernel, group).run(recorder);
}

}  // namespace stitchwork::astitch
