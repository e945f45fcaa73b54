#include "analysis/schedule/row_results.h"

#include <algorithm>
#include <map>
#include <vector>

#include "analysis/schedule/launch.h"

namespace stitchwork {
namespace {

bool in_shared(const Schedule& kernel, int buffer) {
  return buffer >= 0 && kernel.buffers[static_cast<std::size_t>(buffer)].space == MemorySpace::kShared;
}

/// The row of the task: where one value a row lies.
bool is_row(const IndexExpr& offset, const Layout& layout) {
  return offset == IndexExpr::dim(0) || (layout.rows == 1 && offset == IndexExpr::value(0));
}

class RowKeeper {
 public:
  RowKeeper(const Computation& computation, Schedule& kernel, TaskLoop& loop)
      : computation_(computation), kernel_(kernel), loop_(loop) {}

  void run() {
    for (std::size_t s = 0; s < loop_.steps.size(); ++s) {
      Step& step = loop_.steps[s];
      if (!packs_rows(step.mapping) || step.layout.turns > 1) continue;
      take_up(step);
      for (Root& root : step.roots) keep(s, root);
    }
    if (!loop_.row_results.empty()) find_stages();
    load_ahead();
  }

 private:
  struct Made {
    int result = -1;  ///< index into TaskLoop::row_results
    Mapping mapping;
  };

  /// What the step reads from registers; one over rows is then run by all threads of each.
  void take_up(Step& step) {
    for (const int v : step.order) {
      Value& value = step.values[static_cast<std::size_t>(v)];
      const auto made = results_.find(value.buffer);
      if (made == results_.end() || !reads_row(step, value, made->second.mapping)) continue;
      value.row_result = made->second.result;
      value.buffer = -1;
      step.by_all = step.rows;
    }
  }

  /// Loops of loads are for one thread.
  static bool may_run_by_all(const Step& step) {
    return std::none_of(step.order.begin(), step.order.end(), [&](int v) {
      const ValueKind kind = step.values[static_cast<std::size_t>(v)].kind;
      return kind == ValueKind::kFold || kind == ValueKind::kInnerReduce;
    });
  }

  static bool reads_row(const Step& step, const Value& value, const Mapping& writer) {
    return writer == step.mapping && (!step.rows || may_run_by_all(step)) && value.kind == ValueKind::kLoad &&
           value.local && value.scope < 0 && value.depth <= 1 && is_row(value.offset, step.layout) &&
           value.at.map.constraints.empty();
  }

  /// Whether one root alone writes the buffer, one value a row.
  bool has_one_writer(int buffer) const {
    int writers = 0;
    for (const Step& step : loop_.steps)
      for (const Root& root : step.roots)
        for (const Target& target : root.targets)
          if (target.buffer == buffer) writers += is_row(target.offset, step.layout) ? 1 : 2;
    return writers == 1;
  }

  /// Gives the root a row result if a later step can read it, and takes it from shared memory if all can.
  void keep(std::size_t s, Root& root) {
    Step& step = loop_.steps[s];
    const bool of_row = root.store == StoreKind::kElement && step.rows && may_run_by_all(step);
    if (root.store != StoreKind::kReduce && !of_row) return;
    const auto target = std::find_if(root.targets.begin(), root.targets.end(),
                                     [&](const Target& t) { return in_shared(kernel_, t.buffer); });
    if (target == root.targets.end() || !has_one_writer(target->buffer)) return;
    const int buffer = target->buffer;
    const Made made{static_cast<int>(loop_.row_results.size()), step.mapping};
    bool some = false, all = true;
    for (std::size_t later = 0; later < loop_.steps.size(); ++later) {
      const Step& reader = loop_.steps[later];
      for (const int v : reader.order) {
        const Value& value = reader.values[static_cast<std::size_t>(v)];
        if (value.buffer != buffer) continue;
        const bool may = later > s && reads_row(reader, value, made.mapping);
        some = some || may;
        all = all && may;
      }
    }
    if (!some) return;
    root.row_result = made.result;
    results_[buffer] = made;
    loop_.row_results.push_back({root.op, computation_.node(root.op).shape.dtype});
    step.by_all = step.rows;
    if (!all) return;
    root.targets.erase(target);
    kernel_.buffers[static_cast<std::size_t>(buffer)].elements = 0;
  }

  // ---- values of a row that wait for nothing

  bool waits_for_nothing(const Step& step, const Value& value) const {
    return step.layout.turns == 1 && (!step.rows || step.by_all) && value.kind == ValueKind::kLoad &&
           value.row_result < 0 && value.buffer >= 0 && value.scope < 0 && value.depth == 1 &&
           value.at.runtime.empty() && value.at.map.constraints.empty() && value.at.map.symbols.empty() &&
           kernel_.buffers[static_cast<std::size_t>(value.buffer)].space == MemorySpace::kGlobalInput;
  }

  /// Has the first step of a task load what later ones read of each row (the labels of a loss), beside its
  /// elements: no round trip to memory behind the row's reductions.
  void load_ahead() {
    const auto front = std::find_if(loop_.steps.begin(), loop_.steps.end(), [](const Step& step) {
      return !step.turned && packs_rows(step.mapping);
    });
    if (front == loop_.steps.end() || (front->rows && !front->by_all)) return;
    std::map<std::pair<NodeId, IndexMap>, int> ahead;
    for (auto step = std::next(front); step != loop_.steps.end(); ++step) {
      if (step->turned || !(step->mapping == front->mapping)) continue;
      for (const int v : step->order) {
        Value& value = step->values[static_cast<std::size_t>(v)];
        if (!waits_for_nothing(*step, value)) continue;
        const auto [place, added] =
            ahead.try_emplace({value.op, value.at.map}, static_cast<int>(loop_.row_results.size()));
        if (added) {
          loop_.row_results.push_back({value.op, computation_.node(value.op).shape.dtype});
          const auto there = std::find_if(front->order.begin(), front->order.end(), [&](int w) {
            const Value& other = front->values[static_cast<std::size_t>(w)];
            return waits_for_nothing(*front, other) && other.op == value.op && other.at.map == value.at.map;
          });
          if (there != front->order.end()) {
            front->values[static_cast<std::size_t>(*there)].row_place = place->second;
          } else {
            Value load = value;
            load.row_place = place->second;
            front->order.insert(front->order.begin(), static_cast<int>(front->values.size()));
            front->values.push_back(std::move(load));
          }
        }
        value.row_result = place->second;
        value.buffer = -1;
      }
    }
  }

  struct Range {
    std::int64_t from = 0, to = 0;
    bool workspace = false;
    int staged = -1;  ///< the group whose threads take each its own elements of a staged tile
  };
  struct Touched {
    std::vector<Range> read, written;
  };

  Touched touched(const Step& step) const {
    const auto range = [&](int b) {
      const Buffer& buffer = kernel_.buffers[static_cast<std::size_t>(b)];
      return Range{buffer.offset, buffer.offset + buffer.bytes(), false,
                   buffer.tile && step.layout.in_tile ? step.group : -1};
    };
    Touched result;
    for (const int v : step.order)
      if (const Value& value = step.values[static_cast<std::size_t>(v)]; in_shared(kernel_, value.buffer))
        result.read.push_back(range(value.buffer));
    for (const Root& root : step.roots) {
      for (const Target& target : root.targets)
        if (in_shared(kernel_, target.buffer)) result.written.push_back(range(target.buffer));
      if (root.store == StoreKind::kElement || root.store == StoreKind::kAcross ||
          root.store == StoreKind::kGather)
        continue;
      if (reduction_workspace_bytes(step.mapping, kernel_.launch.block, DType::kF32) > 0)
        result.written.push_back(
            {kernel_.workspace_offset, kernel_.workspace_offset + kernel_.workspace_bytes, true});
    }
    return result;
  }

  /// Whether one writes what another thread of the other touches. Reductions of different steps part among
  /// themselves in the workspace.
  static bool meet(const std::vector<Range>& written, const std::vector<Range>& others) {
    return std::any_of(written.begin(), written.end(), [&](const Range& a) {
      return std::any_of(others.begin(), others.end(), [&](const Range& b) {
        const bool own = a.staged >= 0 && a.staged == b.staged;
        return a.from < b.to && b.from < a.to && !(a.workspace && b.workspace) && !own;
      });
    });
  }

  void find_stages() {
    std::vector<Touched> all;
    for (const Step& step : loop_.steps) all.push_back(touched(step));
    for (std::size_t later = 0; later < all.size(); ++later) {
      int& stage = loop_.steps[later].stage;
      stage = later == 0 ? 0 : loop_.steps[later - 1].stage;
      for (std::size_t earlier = 0; earlier < later; ++earlier)
        if (meet(all[earlier].written, all[later].read) || meet(all[earlier].written, all[later].written) ||
            meet(all[later].written, all[earlier].read))
          stage = std::max(stage, loop_.steps[earlier].stage + 1);
    }
  }

  const Computation& computation_;
  Schedule& kernel_;
  TaskLoop& loop_;
  std::map<int, Made> results_;  ///< by buffer of shared memory
};

}  // namespace

void keep_row_results(const Computation& computation, Schedule& kernel) {
  for (Phase& phase : kernel.phases)
    for (TaskLoop& loop : phase.loops)
      if (loop.entries.empty()) RowKeeper(computation, kernel, loop).run();
}

}  // namespace stitchwork
