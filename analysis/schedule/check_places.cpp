#include <fmt/format.h>

#include <map>
#include <set>

#include "analysis/plan/assemble.h"
#include "analysis/schedule/check.h"

namespace stitchwork {
namespace {

/// Whether what is read somewhere is what was put there, whether all of a loop's tasks are dealt, and whether
/// the kernel leaves its results.
class Places {
 public:
  Places(const Graph& graph, const Schedule& schedule)
      : computation_(graph.entry_computation()), schedule_(schedule) {}

  std::vector<std::string> run() {
    for (const Phase& phase : schedule_.phases)
      for (const TaskLoop& loop : phase.loops) {
        deals(loop);
        tiles(loop);
        for (const AcrossRows& across : loop.across) puts(across.op, across.partials);
        for (const LoopEntry& entry : loop.entries)
          for (const int b : entry.buffers) written_.insert(b);
        for (const Step& step : loop.steps) {
          for (const int v : step.order) takes(loop, step, step.values[static_cast<std::size_t>(v)]);
          for (const Root& root : step.roots) leaves(loop, step, root);
        }
      }
    room();
    return std::move(problems_);
  }

 private:
  const Buffer& buffer(int b) const { return schedule_.buffers[static_cast<std::size_t>(b)]; }
  const std::string& name(NodeId op) const { return computation_.node(op).name; }

  template <typename... Args>
  void add(fmt::format_string<Args...> format, Args&&... args) {
    problems_.push_back(fmt::format(format, std::forward<Args>(args)...));
  }

  /// A loop whose steps stand for several entries has the largest one's own deal.
  void deals(const TaskLoop& loop) {
    const auto check = [&](const Deal& deal) {
      if (deal.first_block % deal.cluster != 0)
        add("clusters of {} blocks begin at block {}", deal.cluster, deal.first_block);
      if (deal.first_block < 0 || deal.end_block() > schedule_.launch.grid)
        add("blocks {} to {} have tasks, of a grid of {}", deal.first_block, deal.end_block() - 1,
            schedule_.launch.grid);
    };
    check(loop.deal);
    for (const LoopEntry& entry : loop.entries) check(entry.deal);
    for (const Step& step : loop.steps)
      if (!step.turned && loop.deal.tasks != task_count(step.mapping))
        add("{} tasks are dealt of a step that has {}", loop.deal.tasks, task_count(step.mapping));
  }

  void tiles(const TaskLoop& loop) {
    bool ahead = false;
    for (const Step& step : loop.steps) {
      if (step.filling == Filling::kInTask) continue;
      ahead |= step.filling == Filling::kAhead;
      for (const Root& root : step.roots)
        for (const Target& target : root.targets)
          if (step.filling == Filling::kAhead && buffer(target.buffer).stages != loop.stages)
            add("tiles of {} are there for {} tasks and filled for {}", name(root.op),
                buffer(target.buffer).stages, loop.stages);
      if (step.filling != Filling::kOnce) continue;
      for (const int v : step.order)
        if (const Value& value = step.values[static_cast<std::size_t>(v)];
            value.kind == ValueKind::kLoad && !value.local && value.offset.uses_dim(0))
          add("{} is put into a tile once, and differs from task to task", name(value.op));
    }
    if (ahead != (loop.stages > 0))
      add("tiles are asked for {} tasks ahead, and {}", loop.stages,
          ahead ? "filled ahead" : "none is filled ahead");
  }

  void takes(const TaskLoop& loop, const Step& step, const Value& value) {
    if (value.buffer >= 0) {
      const Buffer& from = buffer(value.buffer);
      const bool given = from.space == MemorySpace::kGlobalInput;
      if (from.op != (given ? buffer_of(computation_, value.op) : value.op))
        add("{} is read where {} lies", name(value.op), name(from.op));
    }
    if (value.row_result >= 0) {
      of_row(loop, step, value.op, value.row_result);
      if (by_one(step))
        add("{} is in registers of a row's threads, and read by those of others", name(value.op));
    }
    if (value.row_place >= 0) of_row(loop, step, value.op, value.row_place);
    if (value.kept >= 0) {
      const Kept& place = schedule_.kept[static_cast<std::size_t>(value.kept)];
      if (place.op != value.op) add("{} is kept in the place of {}", name(value.op), name(place.op));
      if (step.layout.turns > 1) add("{} is kept of one row by threads that have several", name(value.op));
      kept_[value.kept] = {&loop, &step, &value};
    }
    if (value.restored >= 0) restores(loop, step, value);
  }

  void restores(const TaskLoop& loop, const Step& step, const Value& value) {
    const auto found = kept_.find(value.restored);
    if (found == kept_.end()) return;  // schedule_problems says so
    const Made& made = found->second;
    if (made.value->op != value.op || made.value->at.map != value.at.map)
      add("{} is taken up where another element of {} was kept", name(value.op), name(made.value->op));
    if (made.step->mapping != step.mapping)
      add("{} is taken up by threads that have other elements than those that kept it", name(value.op));
    if (made.loop != &loop && made.loop->entries.empty() && loop.entries.empty() &&
        (made.loop->deal.first_block != loop.deal.first_block ||
         made.loop->deal.blocks() != loop.deal.blocks()))
      add("{} is taken up in other blocks than those that kept it", name(value.op));
    const bool over_tasks = schedule_.kept[static_cast<std::size_t>(value.restored)].group >= 0;
    if (made.loop != &loop && !over_tasks && (made.loop->most_tasks() > 1 || loop.most_tasks() > 1))
      add("{} is taken up behind all tasks of a block, and kept of the last alone", name(value.op));
  }

  /// Rows that several threads share are dealt to one thread each, whichever.
  static bool by_one(const Step& step) {
    return step.rows && !step.by_all && step.layout.threads_a_row * step.layout.blocks > 1;
  }

  void of_row(const TaskLoop& loop, const Step& step, NodeId op, int place) {
    if (step.layout.turns > 1) add("{} has one register of a thread that has several rows", name(op));
    const NodeId there = loop.row_results[static_cast<std::size_t>(place)].op;
    if (there != op) add("{} and {} have one register of the row", name(op), name(there));
  }

  void leaves(const TaskLoop& loop, const Step& step, const Root& root) {
    for (const Target& target : root.targets) puts(root.op, target.buffer);
    if (root.row_result >= 0) {
      of_row(loop, step, root.op, root.row_result);
      if (by_one(step))
        add("{} is computed by one thread of the row, and all have it in a register", name(root.op));
    }
    const bool elsewhere = root.store == StoreKind::kAcross || root.store == StoreKind::kGather;
    if (root.targets.empty() && root.row_result < 0 && !elsewhere)
      add("{} is computed and left nowhere", name(root.op));
  }

  void puts(NodeId op, int b) {
    if (b < 0) return add("{} is put nowhere", name(op));
    written_.insert(b);
    if (buffer(b).op != op) add("{} is put where {} lies", name(op), name(buffer(b).op));
  }

  void room() {
    const std::int64_t end = schedule_.launch.shared_bytes;
    for (std::size_t b = 0; b < schedule_.buffers.size(); ++b) {
      const Buffer& at = schedule_.buffers[b];
      if (at.space == MemorySpace::kGlobalOutput && !written_.contains(static_cast<int>(b)))
        add("{} is stored by no step", name(at.op));
      if (at.space == MemorySpace::kShared && at.elements > 0 &&
          (at.offset < 0 || at.offset + at.bytes() > end))
        add("{} lies at bytes {} to {} of {} of shared memory", name(at.op), at.offset,
            at.offset + at.bytes(), end);
    }
    if (schedule_.workspace_bytes > 0 && schedule_.workspace_offset + schedule_.workspace_bytes > end)
      add("the workspace of reductions lies behind byte {} of shared memory", end);
  }

  /// What kept a value last.
  struct Made {
    const TaskLoop* loop;
    const Step* step;
    const Value* value;
  };

  const Computation& computation_;
  const Schedule& schedule_;
  std::map<int, Made> kept_;  ///< by index into Schedule::kept
  std::set<int> written_;     ///< buffers
  std::vector<std::string> problems_;
};

}  // namespace

std::vector<std::string> place_problems(const Graph& graph, const Schedule& schedule) {
  return Places(graph, schedule).run();
}

}  // namespace stitchwork
