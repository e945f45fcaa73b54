#include <algorithm>
#include <map>
#include <utility>

#include "analysis/assemble.h"
#include "analysis/facts.h"
#include "analysis/launch.h"
#include "analysis/verify_internal.h"
#include "core/sorted.h"

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
    scratch_overlaps();
    shared_overlaps();
  }

 private:
  void slots() {
    for (const auto& [op, g] : owner_) {
      const ThreadMapping& m = kernel_.groups[g].mapping;
      const int element = byte_size(computation_.node(op).shape.dtype);
      const auto placed = groups_[g].placements.find(op);
      if (scheme_in_phase(kernel_, op) == Scheme::kRegional && placed != groups_[g].placements.end()) {
        const std::int64_t wide = placed->second.coverage == Coverage::kFull ? m.cols : 1;
        require(op, kernel_.shared, "shared memory", m.rows_per_block * wide * element);
      }
      if (is_across(kernel_.groups[g], op)) {
        require(op, kernel_.scratch, "scratch", across_bytes(m, computation_.node(op).shape.dtype));
      } else if (m.combine == Combine::kPartials && reduces_domain(computation_, op, m)) {
        require(op, kernel_.scratch, "scratch", partials_bytes(m, computation_.node(op).shape.dtype));
      } else if (scheme(op) == Scheme::kGlobal &&
                 !std::binary_search(kernel_.outputs.begin(), kernel_.outputs.end(), op)) {
        require(op, kernel_.scratch, "scratch", computation_.node(op).shape.byte_size());
      }
    }
  }

  void require(NodeId op, const std::vector<MemorySlot>& where, std::string_view what, std::int64_t bytes) {
    const auto slot =
        std::find_if(where.begin(), where.end(), [op](const MemorySlot& s) { return s.op == op; });
    const std::int64_t has = slot == where.end() ? 0 : slot->bytes;
    if (has < bytes)
      report_.add("slot", "kernel {}: {} ({}) needs {} bytes of {}, its slot has {}", kernel_.id, op_name(op),
                  name(scheme(op)), bytes, what, has);
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
      const bool reduced = def(computation_.node(op).op).cls == OpClass::kReduce;
      if (!reduced || (!is_across(group, op) && group.mapping.combine != Combine::kPartials)) continue;
      if (std::binary_search(kernel_.outputs.begin(), kernel_.outputs.end(), op)) until(op, level(op) + 1);
      std::vector<NodeId> open{computation_.node(op).operands.at(1)};
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
    int level = 0, lane = 0;
    std::size_t loop = 0;  ///< a group of the loop
    int first = 0, last = 0;
    std::string steps;  ///< in words
  };

  /// A task's steps, as generated code has them: an op that reads a value of shared memory comes a step, and
  /// so a block barrier, after the op that makes it. Groups that do so run in one loop.
  void shared_overlaps() {
    std::map<NodeId, int> step;
    std::map<NodeId, std::pair<int, NodeId>> last;  // step and name of a value's last reader
    std::vector<std::size_t> loop(groups_.size());
    for (std::size_t g = 0; g < loop.size(); ++g) loop[g] = g;
    for (const NodeId op : materialised(kernel_)) {
      const std::size_t g = owner_.at(op);
      const std::vector<NodeId> reads = shared_reads(op);
      for (const NodeId value : reads) {
        step[op] = std::max(step[op], step[value] + 1);
        const std::size_t from = loop[g], to = loop[owner_.at(value)];
        std::replace(loop.begin(), loop.end(), from, to);
      }
      for (const NodeId value : reads) last[value] = std::max(last[value], std::pair(step[op], op));
    }
    const auto need = [&](NodeId op, int first, int end, std::string steps) {
      return Need{level(op), lane(op), loop[owner_.at(op)], first, end, std::move(steps)};
    };
    const auto needs_of = [&](const MemorySlot& slot) -> std::vector<Need> {
      if (slot.op != kNoNode) {
        if (!owner_.contains(slot.op)) return {};
        const int made = step[slot.op];
        const auto read = last.find(slot.op);
        if (read == last.end())
          return {need(slot.op, made, made, fmt::format("made in step {}, read by none", made))};
        return {need(slot.op, made, read->second.first,
                     fmt::format("made in step {}, read by {} in step {}", made, op_name(read->second.second),
                                 read->second.first))};
      }
      std::vector<Need> all;
      for (const auto& [op, g] : owner_) {
        const ThreadMapping& mapping = kernel_.groups[g].mapping;
        // Accumulators across the rows use it behind the tasks, folds in a loop of their own.
        if (!reduces_cols(computation_, op, kernel_.groups[g])) continue;
        if (reduction_workspace_bytes(mapping, kernel_.launch.block, computation_.node(op).shape.dtype) == 0)
          continue;
        all.push_back(
            need(op, step[op], step[op], fmt::format("{} reduces in step {}", op_name(op), step[op])));
      }
      return all;
    };
    const std::vector<MemorySlot>& slots = kernel_.shared;
    for (std::size_t a = 0; a < slots.size(); ++a)
      for (std::size_t b = a + 1; b < slots.size(); ++b)
        if (!apart(slots[a], slots[b]))
          shared_clash(slots[a], needs_of(slots[a]), slots[b], needs_of(slots[b]));
  }

  /// What is needed in another phase, or by another loop or lane, is not in the block at the same time.
  void shared_clash(const MemorySlot& a, const std::vector<Need>& of_a, const MemorySlot& b,
                    const std::vector<Need>& of_b) {
    for (const Need& x : of_a)
      for (const Need& y : of_b) {
        if (x.level != y.level || x.lane != y.lane || x.loop != y.loop) continue;
        if (x.first > y.last || y.first > x.last) continue;
        report_.add("slot", "kernel {}: {} ({}) and {} ({}) share shared memory while both are needed",
                    kernel_.id, slot_name(a), x.steps, slot_name(b), y.steps);
        return;
      }
  }

  /// The values of shared memory that `root` reads, through what its group computes for it.
  std::vector<NodeId> shared_reads(NodeId root) const {
    std::vector<NodeId> found, seen, open{root};
    while (!open.empty()) {
      const NodeId op = open.back();
      open.pop_back();
      for (const NodeId operand : computation_.node(op).operands) {
        if (!kernel_.schemes.contains(operand) || contains_sorted(seen, operand)) continue;
        insert_sorted(seen, operand);
        const bool in_place = scheme(operand) == Scheme::kLocal || scheme(operand) == Scheme::kRecomputed;
        const bool stored = owner_.contains(operand) && !in_place;
        if (stored && level(operand) != level(root)) continue;  // an earlier phase's
        const Scheme had = scheme_in_phase(kernel_, operand);
        if (had == Scheme::kRegional && owner_.contains(operand))
          found.push_back(operand);
        else if (had != Scheme::kGlobal)
          open.push_back(operand);
      }
    }
    return found;
  }

  const std::string& op_name(NodeId op) const { return computation_.node(op).name; }
  Scheme scheme(NodeId op) const { return kernel_.schemes.at(op); }
  int level(NodeId op) const { return kernel_.levels.at(op); }
  int lane(NodeId op) const { return kernel_.groups[owner_.at(op)].lane; }

  const Computation& computation_;
  const KernelPlan& kernel_;
  const KernelEvaluations& groups_;
  Report& report_;
  std::map<NodeId, std::size_t> owner_;  ///< group that materialises the op
};

}  // namespace

void check_memory(const Computation& computation, const KernelPlan& kernel,
                  const KernelEvaluations& evaluated, Report& report) {
  MemoryCheck(computation, kernel, evaluated, report).check();
}

}  // namespace stitchwork::verification
