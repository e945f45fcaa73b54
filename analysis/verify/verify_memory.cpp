#include <algorithm>
#include <map>
#include <optional>
#include <utility>

#include "analysis/facts/facts.h"
#include "analysis/plan/assemble.h"
#include "analysis/schedule/launch.h"
#include "analysis/schedule/locality.h"
#include "analysis/schedule/steps.h"
#include "analysis/verify/verify_internal.h"
#include "core/base/sorted.h"

namespace stitchwork::verification {
namespace {

class MemoryCheck {
 public:
  MemoryCheck(const Computation& c, const KernelPlan& k, const KernelEvaluations& evaluated, Report& r)
      : computation_(c), kernel_(k), groups_(evaluated), report_(r) {
    for (std::size_t g = 0; g < kernel_.groups.size(); ++g)
      for (const NodeId op : materialised(kernel_.groups[g])) owner_[op] = g;
  }

  void check() {
    slots();
    scratch_size();
    scratch_overlaps();
    shared_overlaps();
  }

 private:
  void slots() {
    for (const auto& [op, g] : owner_) {
      const Group& group = kernel_.groups[g];
      const Extents domain = extents(group.mapping);
      const DType dtype = computation_.node(op).shape.dtype;
      const auto placed = groups_[g].placements->find(op);
      if (scheme_in_phase(kernel_, op) == Scheme::kRegional && placed != groups_[g].placements->end()) {
        const std::int64_t wide = placed->second.coverage == Coverage::kFull ? domain.cols : 1;
        require(op, kernel_.shared, "shared memory", task_rows(group.mapping) * wide * byte_size(dtype));
      }
      if (is_across(group, op)) {
        require(op, kernel_.scratch, "scratch", across_bytes(group.mapping, group.deal, dtype));
      } else if (leaves_partials(computation_, group, op)) {
        require(op, kernel_.scratch, "scratch", partials_bytes(group.mapping, dtype));
      } else if (scheme(op) == Scheme::kGlobal &&
                 !std::binary_search(kernel_.outputs.begin(), kernel_.outputs.end(), op)) {
        require(op, kernel_.scratch, "scratch", computation_.node(op).shape.byte_size());
      }
    }
  }

  void require(NodeId op, const std::vector<MemorySlot>& where, std::string_view what, std::int64_t bytes) {
    if (&where == &kernel_.scratch) scratch_needs_[op] = std::max(scratch_needs_[op], bytes);
    const auto slot =
        std::find_if(where.begin(), where.end(), [op](const MemorySlot& s) { return s.op == op; });
    const std::int64_t has = slot == where.end() ? 0 : slot->bytes;
    if (has < bytes)
      report_.add("slot", "kernel {}: {} ({}) needs {} bytes of {}, its slot has {}", kernel_.id, op_name(op),
                  name(scheme(op)), bytes, what, has);
  }

  /// Scratch holds its slots, and slots what they are for: a plan that somebody edited may not ask for any
  /// amount. Twice a value's size leaves room for any layout of it.
  void scratch_size() {
    // What cudaMalloc aligns to (CUDA C++ Programming Guide, "Device Memory Accesses"), a slot.
    constexpr std::int64_t kScratchSlack = 256;
    std::int64_t needed = 0;
    for (const MemorySlot& slot : kernel_.scratch) {
      const std::int64_t own = slot.op == kNoNode ? 0 : computation_.node(slot.op).shape.byte_size();
      const std::int64_t most = std::max(2 * scratch_needs_[slot.op], own) + kScratchSlack;
      if (slot.bytes > most || slot.bytes < 0)
        report_.add("slot", "kernel {}: the scratch of {} has {} bytes, at most {} are of use", kernel_.id,
                    slot_name(slot), slot.bytes, most);
      needed += std::clamp<std::int64_t>(slot.bytes, 0, most) + kScratchSlack;
    }
    if (kernel_.launch.scratch_bytes > needed)
      report_.add("slot", "kernel {}: {} bytes of scratch, its slots take at most {}", kernel_.id,
                  kernel_.launch.scratch_bytes, needed);
  }

  const std::string& slot_name(const MemorySlot& slot) const {
    static const std::string workspace = "the workspace";
    return slot.op == kNoNode ? workspace : op_name(slot.op);
  }

  static bool apart(const MemorySlot& a, const MemorySlot& b) {
    return a.offset + a.bytes <= b.offset || b.offset + b.bytes <= a.offset;
  }

  /// Scratch: two values lie in one place while neither is needed in a level of the other.
  void scratch_overlaps() {
    const std::map<NodeId, Interval> lives = scratch_lifetimes();
    const auto lifetime = [&](NodeId op) { return lives.at(op); };
    const std::vector<MemorySlot>& slots = kernel_.scratch;
    for (std::size_t a = 0; a < slots.size(); ++a)
      for (std::size_t b = a + 1; b < slots.size(); ++b) {
        if (apart(slots[a], slots[b]) || !owner_.contains(slots[a].op) || !owner_.contains(slots[b].op))
          continue;
        const Interval x = lifetime(slots[a].op), y = lifetime(slots[b].op);
        if (x.lo <= y.hi && y.lo <= x.hi)
          report_.add("slot", "kernel {}: {} and {} share scratch while both are needed", kernel_.id,
                      slot_name(slots[a]), slot_name(slots[b]));
      }
  }

  /// The levels in which a stored value is needed. Who folds partials reads the reduction's initial value, or
  /// what that is computed from, too; an output's partials are folded a level later.
  std::map<NodeId, Interval> scratch_lifetimes() const {
    std::map<NodeId, Interval> lives;
    for (const auto& [op, g] : owner_) lives[op] = {level(op), level(op)};
    const auto until = [&](NodeId op, std::int64_t last) { lives[op].hi = std::max(lives[op].hi, last); };
    for (const GroupEvaluations& group : groups_)
      for (const Evaluation& e : group.values)
        if (e.load && lives.contains(e.op)) until(e.op, level(e.root));
    for (auto it = owner_.rbegin(); it != owner_.rend(); ++it) {  // what folds others' values first
      const auto& [op, g] = *it;
      const Group& group = kernel_.groups[g];
      const bool reduced = is_reduction(computation_.node(op));
      if (!reduced || (!is_across(group, op) && !combines_partials(group.mapping))) continue;
      if (std::binary_search(kernel_.outputs.begin(), kernel_.outputs.end(), op)) until(op, level(op) + 1);
      std::vector<NodeId> open;
      if (const NodeId from = initial_value(computation_.node(op)); from != kNoNode) open.push_back(from);
      while (!open.empty()) {
        const NodeId read = open.back();
        open.pop_back();
        if (!kernel_.schemes.contains(read)) continue;
        if (lives.contains(read)) until(read, lives.at(op).hi);
        const bool in_place = scheme(read) == Scheme::kLocal || scheme(read) == Scheme::kRecomputed;
        if (!in_place && lives.contains(read)) continue;
        const std::vector<NodeId>& operands = computation_.node(read).operands;
        open.insert(open.end(), operands.begin(), operands.end());
      }
    }
    return lives;
  }

  /// The steps of one task loop in which bytes of shared memory are needed.
  struct Need {
    int level = 0, lane = 0, loop = 0;
    int first = 0, last = 0;
    std::string steps;  ///< in words
  };

  Need need(const TaskSteps& steps, NodeId op, int last, std::string in_words) const {
    const TaskSteps::Made& made = steps.at(op);
    return {level(op), lane(op), steps.loop(made.group), made.step, last, std::move(in_words)};
  }

  std::vector<Need> needs_of(const TaskSteps& steps, const MemorySlot& slot) const {
    if (slot.op != kNoNode) {
      if (!owner_.contains(slot.op)) return {};
      const TaskSteps::Made& made = steps.at(slot.op);
      return {need(steps, slot.op, made.last,
                   made.last_reader == kNoNode
                       ? fmt::format("made in step {}, read by none", made.step)
                       : fmt::format("made in step {}, read by {} in step {}", made.step,
                                     op_name(made.last_reader), made.last))};
    }
    std::vector<Need> all;
    for (const auto& [op, g] : owner_) {
      // Accumulators across the rows use it behind the tasks, folds in a loop of their own.
      if (!reduces_cols(computation_, op, kernel_.groups[g])) continue;
      const DType dtype = computation_.node(op).shape.dtype;
      if (reduction_workspace_bytes(kernel_.groups[g].mapping, kernel_.launch.block, dtype) == 0) continue;
      const int step = steps.at(op).step;
      all.push_back(need(steps, op, step, fmt::format("{} reduces in step {}", op_name(op), step)));
    }
    return all;
  }

  void shared_overlaps() {
    const TaskSteps steps = task_steps(computation_, kernel_);
    const std::vector<MemorySlot>& slots = kernel_.shared;
    std::vector<std::optional<std::vector<Need>>> known(slots.size());
    const auto needs = [&](std::size_t s) -> const std::vector<Need>& {
      if (!known[s]) known[s] = needs_of(steps, slots[s]);
      return *known[s];
    };
    for (std::size_t a = 0; a < slots.size(); ++a)
      for (std::size_t b = a + 1; b < slots.size(); ++b)
        if (!apart(slots[a], slots[b])) shared_clash(steps, slots[a], needs(a), slots[b], needs(b));
  }

  /// What is needed in another phase, or by another loop or lane, is not in the block at the same time.
  void shared_clash(const TaskSteps& steps, const MemorySlot& a, const std::vector<Need>& needs_of_a,
                    const MemorySlot& b, const std::vector<Need>& needs_of_b) {
    for (const Need& x : needs_of_a)
      for (const Need& y : needs_of_b) {
        if (x.level != y.level || x.lane != y.lane || x.loop != y.loop) continue;
        if (x.first > y.last || y.first > x.last) continue;
        const Verdict placed = x.first <= y.first ? takes_over(steps, a, b) : takes_over(steps, b, a);
        if (placed) continue;
        report_.add("slot", "kernel {}: {} ({}) and {} ({}) share shared memory while both are needed{}",
                    kernel_.id, slot_name(a), x.steps, slot_name(b), y.steps,
                    placed.why.empty() ? "" : ": " + placed.why);
        return;
      }
  }

  /// Whether `later` may lie where `earlier` does, though its step still reads that.
  Verdict takes_over(const TaskSteps& steps, const MemorySlot& earlier, const MemorySlot& later) const {
    if (earlier.op == kNoNode || later.op == kNoNode || earlier.offset != later.offset)
      return Verdict::no("", "");
    return in_place(computation_, kernel_, groups_, steps, earlier.op, later.op);
  }

  const std::string& op_name(NodeId op) const { return computation_.node(op).name; }
  Scheme scheme(NodeId op) const { return kernel_.schemes.at(op); }
  int level(NodeId op) const { return kernel_.levels.at(op); }
  int lane(NodeId op) const { return kernel_.groups[owner_.at(op)].lane; }

  const Computation& computation_;
  const KernelPlan& kernel_;
  const KernelEvaluations& groups_;
  Report& report_;
  std::map<NodeId, std::size_t> owner_;           ///< group that materialises the op
  std::map<NodeId, std::int64_t> scratch_needs_;  ///< bytes
};

}  // namespace

void check_memory(const Computation& computation, const KernelPlan& kernel,
                  const KernelEvaluations& evaluated, Report& report) {
  MemoryCheck(computation, kernel, evaluated, report).check();
}

}  // namespace stitchwork::verification
