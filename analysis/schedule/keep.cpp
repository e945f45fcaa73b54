#include "analysis/schedule/keep.h"

#include <algorithm>
#include <map>

#include "analysis/schedule/branches.h"
#include "analysis/schedule/context.h"
#include "analysis/schedule/launch.h"
#include "analysis/schedule/layout.h"
#include "core/base/error.h"

namespace stitchwork {
namespace {

class Keeper {
 public:
  Keeper(const Graph& graph, Schedule& kernel)
      : computation_(graph.entry_computation()), kernel_(kernel), block_(kernel.launch.block) {
    budget_ = registers_to_keep_in(kernel.launch);
    planned_ = kernel.kept.size();
    for (const Kept& kept : kernel.kept)
      if (kept.shared_offset < 0) always_ += kept.tasks * kept.elements * registers_of(kept.dtype);
    std::size_t steps = 0;
    for (const Phase& phase : kernel.phases)
      for (const TaskLoop& loop : phase.loops) steps += loop.steps.size();
    taken_.assign(steps, 0);
  }

  void run() {
    for (Phase& phase : kernel_.phases)
      for (TaskLoop& loop : phase.loops) {
        loop_ = &loop;
        for (const AcrossRows& across : loop.across)
          for (std::size_t s = 0; s < loop.steps.size(); ++s)
            taken_[number_ + s] +=
                across.layout.elements() * (accumulator_bytes(computation_.node(across.op).shape.dtype) / 4);
        for (Step& step : loop.steps) {
          visit(step);
          ++number_;
        }
      }
    number_ = 0;
    for (Phase& phase : kernel_.phases)
      for (TaskLoop& loop : phase.loops) {
        load_ahead(loop, true);
        number_ -= loop.steps.size();
        load_ahead(loop, false);
      }
  }

 private:
  using Key = std::pair<NodeId, IndexMap>;
  struct Producer {
    const TaskLoop* loop = nullptr;
    Step* step = nullptr;
    int value = -1;
    std::size_t number = 0;  ///< of the step, in the order of the kernel
  };

  static std::int64_t registers_of(DType dtype) {
    return (byte_size(dtype) + kRegisterBytes - 1) / kRegisterBytes;
  }

  /// Where the plan keeps this value of a step for all of a block's tasks; -1: it does not, or the loop is of
  /// several groups.
  int planned(const TaskLoop& loop, const Step& step, const Value& value) const {
    if (!loop.entries.empty()) return -1;
    for (std::size_t k = 0; k < planned_; ++k) {
      const Kept& kept = kernel_.kept[k];
      if (kept.group == step.group && kept.op == value.op && kept.map == value.at.map)
        return static_cast<int>(k);
    }
    return -1;
  }

  static Key key(const Value& value) { return {value.op, value.at.map}; }

  void visit(Step& step) {
    step_ = &step;
    visited_.assign(step.values.size(), false);
    for (const Root& root : step.roots) {
      if (root.value >= 0) visit(root.value);
      if (root.initial >= 0) visit(root.initial);
      if (root.slice >= 0) visit(root.slice);
    }
    const Branches branches = find_branches(computation_, step);
    for (int v : step.order) {
      const Value& value = at(v);
      const bool always = branches.of[static_cast<std::size_t>(v)] < 0;
      if (always && keepable(value) && value.restored < 0)
        producers_[key(value)].push_back({loop_, step_, v, number_});
    }
  }

  Value& at(int v) { return step_->values[static_cast<std::size_t>(v)]; }

  bool keepable(const Value& value) const {
    const bool elementwise = is<mapping::Elements>(step_->mapping);
    if (step_->rows || step_->turned || value.scope >= 0 || value.depth < (elementwise ? 1 : 2)) return false;
    if (step_->layout.turns > 1) return false;  // a thread's registers are those of one row
    // The elements of a serial row are not unrolled.
    if (as<mapping::OneThread>(step_->mapping) != nullptr) return false;
    return value.kind != ValueKind::kConstant && value.kind != ValueKind::kIndex &&
           value.kind != ValueKind::kSlice;
  }

  /// Puts `root` into the step's order, behind what it is made of. Chains of values are as long as the graph:
  /// those begun stand on a stack.
  void visit(int root) {
    struct Begun {
      int value;
      std::vector<int> needs;
      std::size_t next = 0;
    };
    std::vector<Begun> open;
    const auto begin = [&](int v) {
      if (visited_[static_cast<std::size_t>(v)]) return;
      visited_[static_cast<std::size_t>(v)] = true;
      open.push_back({v, keepable(at(v)) && restore(v) ? std::vector<int>() : needs(at(v))});
    };
    begin(root);
    while (!open.empty()) {
      if (Begun& top = open.back(); top.next < top.needs.size()) {
        begin(top.needs[top.next++]);
      } else {
        step_->order.push_back(top.value);
        open.pop_back();
      }
    }
  }

  static std::vector<int> needs(const Value& value) {
    std::vector<int> result = value.at.runtime;
    for (const Access& guard : value.guards)
      result.insert(result.end(), guard.runtime.begin(), guard.runtime.end());
    result.insert(result.end(), value.arguments.begin(), value.arguments.end());
    return result;
  }

  bool restore(int v) {
    const auto found = producers_.find(key(at(v)));
    if (found == producers_.end()) return false;
    for (const Producer& producer : found->second) {
      const bool same_loop = producer.loop == loop_;
      const bool resident =
          producer.loop->most_tasks() == 1 && loop_->most_tasks() == 1 && same_blocks(producer, v);
      const bool over_tasks = producer.step->group == step_->group && planned(*loop_, *step_, at(v)) >= 0 &&
                              producer.loop->entries.empty();
      if (!(same_loop || resident || over_tasks) || !(producer.step->mapping == step_->mapping)) continue;
      if (!keep(producer)) continue;
      at(v).restored = producer.step->values[static_cast<std::size_t>(producer.value)].kept;
      return true;
    }
    return false;
  }

  /// Whether each block that runs this loop has run the producer's, and for the same op.
  bool same_blocks(const Producer& producer, int v) const {
    const TaskLoop &earlier = *producer.loop, &later = *loop_;
    if (earlier.entries.empty() || later.entries.empty())
      return earlier.entries.empty() && later.entries.empty() &&
             earlier.deal.first_block == later.deal.first_block;
    const std::size_t made = place(earlier, *producer.step, producer.value), read = place(later, *step_, v);
    std::int64_t end = 0;
    return std::equal(earlier.entries.begin(), earlier.entries.end(), later.entries.begin(),
                      later.entries.end(), [&](const LoopEntry& a, const LoopEntry& b) {
                        const bool alone = a.deal.first_block >= end;  // the only entry of its blocks
                        end = a.deal.end_block();
                        return alone && a.deal.first_block == b.deal.first_block &&
                               end == b.deal.end_block() && a.ops[made] == b.ops[read];
                      });
  }

  /// Index into LoopEntry::ops.
  static std::size_t place(const TaskLoop& loop, const Step& step, int value) {
    std::size_t before = 0;
    for (const Step& other : loop.steps) {
      if (&other == &step) break;
      before += other.values.size();
    }
    return before + static_cast<std::size_t>(value);
  }

  bool keep(const Producer& producer) {
    Value& made = producer.step->values[static_cast<std::size_t>(producer.value)];
    if (made.kept < 0) {
      if (const int place = planned(*producer.loop, *producer.step, made); place >= 0) made.kept = place;
    }
    if (made.kept >= 0 && static_cast<std::size_t>(made.kept) < planned_) return true;
    const DType dtype = computation_.node(made.op).shape.dtype;
    const std::int64_t elements = step_->layout.elements();
    const std::size_t from = made.kept >= 0 ? last_reader_.at(made.kept) : producer.number;
    if (!take(from, elements * registers_of(dtype))) return false;
    if (made.kept < 0) {
      made.kept = static_cast<int>(kernel_.kept.size());
      kernel_.kept.push_back({made.op, dtype, elements, 1, -1, -1, {}});
    }
    last_reader_[made.kept] = number_;
    return true;
  }

  /// Registers from step `from` to this one, if the budget has them in between. A value that a step reads for
  /// the last time leaves its registers, element by element, to one that the step makes.
  bool take(std::size_t from, std::int64_t registers) {
    for (std::size_t s = from; s < number_; ++s)
      if (always_ + taken_[s] + registers > budget_) return false;
    for (std::size_t s = from; s < number_; ++s) taken_[s] += registers;
    return true;
  }

  // ---- loads of later steps that wait for nothing

  /// Of the domain's own elements (`of_rows`) or the same in all rows, from what the kernel does not write.
  bool waits_for_nothing(const Step& step, const Value& value, bool of_rows) const {
    return packs_rows(step.mapping) && step.layout.turns == 1 && !step.rows && !step.turned &&
           value.kind == ValueKind::kLoad && value.scope < 0 && value.restored < 0 && value.depth == 2 &&
           value.at.runtime.empty() && value.at.map.constraints.empty() && value.at.map.symbols.empty() &&
           value.offset.uses_dim(0) == of_rows &&
           kernel_.buffers[static_cast<std::size_t>(value.buffer)].space == MemorySpace::kGlobalInput;
  }

  /// Has the first step of a task load what later ones would ask for behind its reductions, where the
  /// registers are left over: a round trip to memory a task, not one a step.
  void load_ahead(TaskLoop& loop, bool of_rows) {
    const std::size_t first = number_;
    number_ += loop.steps.size();
    if (!loop.entries.empty()) return;  // their values are counted
    const auto front = std::find_if(loop.steps.begin(), loop.steps.end(),
                                    [](const Step& step) { return !step.rows && !step.turned; });
    if (front == loop.steps.end()) return;
    const std::size_t from = first + static_cast<std::size_t>(front - loop.steps.begin());
    const std::size_t end = number_;
    std::map<Key, int> ahead;  // places in Schedule::kept
    for (number_ = from + 1; number_ < end; ++number_) {
      Step& step = loop.steps[number_ - first];
      if (!(step.mapping == front->mapping)) continue;
      for (const int v : step.order) {
        Value& value = step.values[static_cast<std::size_t>(v)];
        if (!waits_for_nothing(step, value, of_rows)) continue;
        const bool there = std::any_of(front->order.begin(), front->order.end(), [&](int w) {
          return key(front->values[static_cast<std::size_t>(w)]) == key(value);
        });
        const auto place = ahead.find(key(value));
        if (there && place == ahead.end()) continue;  // it had no registers to stay in
        // What stays for steps behind this one is loaded into the place where it stays.
        if (value.kept >= 0 && (place != ahead.end() || static_cast<std::size_t>(value.kept) < planned_))
          continue;
        const DType dtype = computation_.node(value.op).shape.dtype;
        const std::int64_t elements = step.layout.elements();
        const std::size_t since = place == ahead.end() ? from : last_reader_.at(place->second);
        if (!take(since, elements * registers_of(dtype))) continue;
        int kept = place == ahead.end() ? value.kept : place->second;
        if (kept < 0) {
          kept = static_cast<int>(kernel_.kept.size());
          kernel_.kept.push_back({value.op, dtype, elements, 1, -1, -1, {}});
        }
        if (place == ahead.end()) {
          ahead[key(value)] = kept;
          Value load = value;
          load.kept = kept;
          // Rows come from furthest: what they have in common is asked for behind them.
          const auto behind = std::find_if(front->order.rbegin(), front->order.rend(), [&](int w) {
                                return front->values[static_cast<std::size_t>(w)].kind == ValueKind::kLoad;
                              }).base();
          front->order.insert(of_rows ? front->order.begin() : behind,
                              static_cast<int>(front->values.size()));
          front->values.push_back(std::move(load));
        }
        last_reader_[kept] = std::max(last_reader_[kept], number_);
        value.kept = -1;
        value.restored = kept;
      }
    }
    number_ = end;
  }

  const Computation& computation_;
  Schedule& kernel_;
  int block_;
  std::int64_t budget_ = 0;
  std::size_t planned_ = 0;                 ///< so many first places of Schedule::kept are the plan's
  std::int64_t always_ = 0;                 ///< registers that the plan's take
  std::vector<std::int64_t> taken_;         ///< others, between each step and the next
  std::map<int, std::size_t> last_reader_;  ///< by kept place, so far: the number of the step
  std::size_t number_ = 0;                  ///< of the step at hand
  TaskLoop* loop_ = nullptr;
  Step* step_ = nullptr;
  std::vector<bool> visited_;
  std::map<Key, std::vector<Producer>> producers_;
};

}  // namespace

void keep_values(const Graph& graph, Schedule& kernel) { Keeper(graph, kernel).run(); }

}  // namespace stitchwork
