#include "analysis/forms/residence.h"

#include <fmt/format.h>

#include <algorithm>
#include <tuple>
#include <utility>
#include <vector>

#include "analysis/facts/facts.h"
#include "analysis/judge/cost.h"
#include "analysis/judge/sketch.h"
#include "analysis/plan/assemble.h"
#include "analysis/schedule/evaluations.h"
#include "analysis/schedule/launch.h"
#include "analysis/schedule/layout.h"
#include "core/base/arithmetic.h"
#include "core/base/format.h"
#include "occupancy_model/hardware.h"
#include "occupancy_model/occupancy.h"

namespace stitchwork::astitch {
namespace {

/// A value that a group's threads could keep.
struct ResidentValue {
  NodeId op = kNoNode;
  std::size_t group = 0;
  int level = 0;        ///< that makes it
  bool needed = false;  ///< a later phase needs it for something that is not itself a candidate
};

class Residents {
 public:
  Residents(const Graph& graph, const Device& device, const std::map<NodeId, Scheme>& wanted,
            KernelPlan& kernel)
      : graph_(graph),
        computation_(graph.entry_computation()),
        device_(device),
        wanted_(wanted),
        kernel_(kernel) {}

  std::map<NodeId, Verdict> run(Recorder& recorder) {
    const KernelEvaluations found = evaluations(computation_, kernel_);
    std::vector<ResidentValue> all;
    for (std::size_t g = 0; g < kernel_.groups.size(); ++g) collect(g, found[g], all);
    std::sort(all.begin(), all.end(),
              [&](const ResidentValue& a, const ResidentValue& b) { return rank(a) < rank(b); });
    const bool several_tasks = std::any_of(all.begin(), all.end(), [&](const ResidentValue& c) {
      return kernel_.groups[c.group].deal.most_tasks() > 1;
    });
    double us = several_tasks ? kernel_cost(graph_, device_, kernel_, found).predicted_us : 0;
    for (const ResidentValue& candidate : all) {
      const Verdict verdict = keep(candidate, us);
      reasons_[candidate.op] = verdict;
      recorder.add("memory", name(candidate.op), name(kernel_.groups[candidate.group].dominant),
                   [&] { return verdict; });
    }
    return std::move(reasons_);
  }

 private:
  const std::string& name(NodeId op) const { return computation_.node(op).name; }

  bool is_wanted(NodeId op) const {
    const auto scheme = wanted_.find(op);
    return scheme != wanted_.end() && scheme->second == Scheme::kResident;
  }

  /// What overrides want first, then what saves most bytes.
  std::tuple<bool, std::int64_t, NodeId> rank(const ResidentValue& c) const {
    return {!is_wanted(c.op), -computation_.node(c.op).shape.byte_size(), c.op};
  }

  /// Loads, and what is computed element by element; index maps are walked through.
  bool computes(const Evaluation& e) const {
    const Node& node = computation_.node(e.op);
    return e.load || (is_elementwise(node.op) && def(node.op).instructions > 0);
  }

  /// Whether a thread has the element: `e` lies in the group's domain one to one.
  static bool is_own_element(const GroupEvaluations& found, const Evaluation& e) {
    const auto placed = found.placements->find(e.op);
    return placed != found.placements->end() && placed->second.coverage == Coverage::kFull &&
           placed->second.map == e.map;
  }

  void collect(std::size_t g, const GroupEvaluations& found, std::vector<ResidentValue>& all) const {
    const Group& group = kernel_.groups[g];
    if (is<mapping::OneThread>(group.mapping)) return;
    std::map<NodeId, int> first;  // the phase that has each own element first
    for (const Evaluation& e : found.values) {
      if (!is_own_element(found, e) || !computes(e)) continue;
      const auto [at, fresh] = first.emplace(e.op, level(e));
      if (!fresh) at->second = std::min(at->second, level(e));
    }
    std::map<NodeId, ResidentValue> kept;
    const auto again = [&](const Evaluation& e) {
      const auto made = first.find(e.op);
      return made != first.end() && is_own_element(found, e) && level(e) > made->second;
    };
    for (const Evaluation& e : found.values) {
      if (!again(e)) continue;
      ResidentValue& candidate =
          kept.try_emplace(e.op, ResidentValue{e.op, g, first.at(e.op), false}).first->second;
      int by = e.by;
      while (by >= 0 && !computes(found.values[static_cast<std::size_t>(by)]))
        by = found.values[static_cast<std::size_t>(by)].by;
      candidate.needed |= by < 0 || !again(found.values[static_cast<std::size_t>(by)]);
    }
    for (const auto& [op, candidate] : kept)
      if (is_wanted(op) || (candidate.needed && !wanted_.contains(op))) all.push_back(candidate);
  }

  int level(const Evaluation& e) const { return kernel_.levels.at(e.root); }

  Verdict keep(const ResidentValue& candidate, double& us) {
    const Group& group = kernel_.groups[candidate.group];
    const std::int64_t tasks = group.deal.most_tasks();
    const DType dtype = computation_.node(candidate.op).shape.dtype;
    const int block = kernel_.launch.block;
    const std::int64_t registers = resident_registers(group, block, dtype);
    const std::int64_t free = registers_to_keep_in(kernel_.launch) - registers_;
    const std::string elements = fmt::format("{} of {} a thread", counted(tasks, "task"),
                                             counted(Layout(group.mapping, block).elements(), "element"));
    if (tasks == 1) {
      // Nothing to plan: the block's only task keeps its values as long as registers last.
      return Verdict{registers <= free, "astitch.resident",
                     fmt::format("{}: {} registers of {}", elements, registers, free)};
    }
    const std::int64_t bytes = resident_shared_bytes(group, block, dtype);
    Residence residence{candidate.op, group.dominant, candidate.level, false, 0, kRegisterBytes * registers};
    KernelPlan trial = kernel_;
    if (tasks > kMostUnrolledTasks || registers > free) {
      residence.shared = true;
      residence.offset = round_up(kernel_.launch.shared_bytes, kSharedAlignment);
      residence.bytes = bytes;
      trial.launch.shared_bytes = residence.offset + bytes;
      if (!holds_as_many_blocks(trial.launch.shared_bytes))
        return Verdict::no("astitch.resident",
                           fmt::format("{}: {} registers of {}, {} bytes of shared memory beside {}",
                                       elements, registers, free, bytes, kernel_.launch.shared_bytes));
    }
    trial.resident.insert(
        std::upper_bound(trial.resident.begin(), trial.resident.end(), residence,
                         [](const Residence& a, const Residence& b) { return a.op < b.op; }),
        residence);
    drop_scratch(candidate.op, trial);
    const double trial_us = kernel_cost(graph_, device_, trial).predicted_us;
    const std::string where = residence.shared ? fmt::format("{} bytes of shared memory", bytes)
                                               : fmt::format("{} registers of {}", registers, free);
    const std::string why = fmt::format("{} in {}: {:.2f} us, {:.2f} us if loaded or computed again",
                                        elements, where, trial_us, us);
    if (trial_us > us && !is_wanted(candidate.op)) return Verdict::no("astitch.resident", why);
    kernel_ = std::move(trial);
    us = trial_us;
    if (!residence.shared) registers_ += registers;
    return Verdict::yes("astitch.resident", why);
  }

  /// Whether an SM still holds the blocks it does, within what a block may have.
  bool holds_as_many_blocks(std::int64_t shared_bytes) const {
    if (shared_bytes > device_.shared_bytes_per_block_default) return false;
    return occupancy(device_, kernel_.launch.block, std::max(1, kernel_.launch.register_bound), shared_bytes)
               .blocks_per_sm >= kernel_.launch.blocks_per_sm;
  }

  /// A value that is not stored, or that nobody but its own threads reads in later phases, is Resident.
  void drop_scratch(NodeId op, KernelPlan& kernel) const {
    const auto scheme = kernel.schemes.find(op);
    if (scheme == kernel.schemes.end()) return;  // an input
    if (scheme->second != Scheme::kGlobal) {
      // Outputs that others read compute it for themselves all the same.
      const std::vector<NodeId> made = materialised(kernel);
      if (!std::binary_search(made.begin(), made.end(), op)) scheme->second = Scheme::kResident;
      return;
    }
    for (const GroupEvaluations& group : evaluations(computation_, kernel))
      for (const Evaluation& e : group.values)
        if (e.op == op && e.load && !e.resident && !reads_shared(kernel, op, e.root)) return;
    scheme->second = Scheme::kResident;
    erase_slot(op, kernel);
  }

  static void erase_slot(NodeId op, KernelPlan& kernel) {
    std::erase_if(kernel.scratch, [op](const MemorySlot& slot) { return slot.op == op; });
    kernel.launch.scratch_bytes = 0;
    for (const MemorySlot& slot : kernel.scratch)
      kernel.launch.scratch_bytes = std::max(kernel.launch.scratch_bytes, slot.offset + slot.bytes);
  }

  const Graph& graph_;
  const Computation& computation_;
  const Device& device_;
  const std::map<NodeId, Scheme>& wanted_;
  KernelPlan& kernel_;
  std::int64_t registers_ = 0;  ///< taken
  std::map<NodeId, Verdict> reasons_;
};

}  // namespace

std::map<NodeId, Verdict> keep_residents(const Graph& graph, const Device& device, const Options& options,
                                         const std::map<NodeId, Scheme>& wanted, KernelPlan& kernel,
                                         Recorder& recorder) {
  if (kernel.launch.grid_barriers == 0) return {};
  if (!options.data_reuse || !options.residence) {  // values go from phase to phase through global memory
    std::map<NodeId, Verdict> reasons;
    for (const auto& [id, scheme] : wanted)
      reasons.emplace(
          id, Verdict::no("astitch.resident", fmt::format("the knob {} is off",
                                                          options.data_reuse ? "residence" : "data_reuse")));
    return reasons;
  }
  return Residents(graph, device, wanted, kernel).run(recorder);
}

}  // namespace stitchwork::astitch
