#include "analysis/schedule/check.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>

#include "analysis/launch.h"

namespace stitchwork {
namespace {

/// Bytes of shared memory that a step reads or writes.
struct Use {
  std::int64_t from = 0, to = 0;
  bool writes = false;
  /// The reduction workspace: reductions part among themselves there.
  bool workspace = false;
  /// The group whose threads take each its own elements of a staged tile, or -1.
  int own = -1;
  std::string what;

  bool clashes(const Use& other) const {
    if (!writes && !other.writes) return false;
    if (workspace && other.workspace) return false;
    if (own >= 0 && own == other.own) return false;
    return from < other.to && other.from < to;
  }
};

class Check {
 public:
  Check(const Graph& graph, const Schedule& schedule)
      : computation_(graph.entry_computation()), schedule_(schedule) {}

  std::vector<std::string> run() {
    for (const Phase& phase : schedule_.phases) {
      std::set<int> written;  // scratch, in this phase: behind the next grid barrier
      for (const TaskLoop& loop : phase.loops) {
        hazards(loop);
        flow(loop);
        for (const Step& step : loop.steps)
          for (const Root& root : step.roots) written.merge(buffers_of(root));
        for (const AcrossRows& across : loop.across) written.insert(across.partials);
        for (const LoopEntry& entry : loop.entries)
          written.insert(entry.buffers.begin(), entry.buffers.end());
      }
      for (const int b : written)
        if (b >= 0 && buffer(b).space == MemorySpace::kScratch) scratch_.insert(b);
    }
    return std::move(problems_);
  }

 private:
  const Buffer& buffer(int b) const { return schedule_.buffers[static_cast<std::size_t>(b)]; }
  const std::string& name(NodeId op) const { return computation_.node(op).name; }
  bool is_shared(int b) const { return b >= 0 && buffer(b).space == MemorySpace::kShared; }

  template <typename... Args>
  void add(fmt::format_string<Args...> format, Args&&... args) {
    problems_.push_back(fmt::format(format, std::forward<Args>(args)...));
  }

  static std::set<int> buffers_of(const Root& root) {
    std::set<int> result;
    for (const Target& target : root.targets) result.insert(target.buffer);
    return result;
  }

  static std::string text(const std::vector<Step>& steps, std::size_t s) {
    return fmt::format("step {} (stage {})", s, steps[s].stage);
  }

  std::vector<Use> uses(const Step& step) const {
    std::vector<Use> result;
    const auto touch = [&](int b, bool writes) {
      if (!is_shared(b)) return;
      const Buffer& at = buffer(b);
      const int own = at.tile && step.layout.in_tile ? step.group : -1;
      result.push_back({at.offset, at.offset + at.bytes(), writes, false, own, name(at.op)});
    };
    for (const int v : step.order) touch(step.values[static_cast<std::size_t>(v)].buffer, false);
    for (const Root& root : step.roots) {
      for (const Target& target : root.targets) touch(target.buffer, true);
      const bool combines = root.store == StoreKind::kReduce || root.store == StoreKind::kPartial ||
                            root.store == StoreKind::kAtomic;
      const DType dtype = computation_.node(root.op).shape.dtype;
      if (const std::int64_t bytes = reduction_workspace_bytes(step.mapping, schedule_.launch.block, dtype);
          combines && bytes > 0)
        result.push_back({schedule_.workspace_offset, schedule_.workspace_offset + bytes, true, true, -1,
                          fmt::format("the workspace of {}", name(root.op))});
    }
    return result;
  }

  /// Steps of one stage run behind no barrier of the block.
  void hazards(const TaskLoop& loop) {
    std::vector<std::vector<Use>> all;
    for (const Step& step : loop.steps) all.push_back(uses(step));
    for (std::size_t later = 0; later < all.size(); ++later) {
      if (later > 0 && loop.steps[later].stage < loop.steps[later - 1].stage)
        add("{} comes behind {}", text(loop.steps, later), text(loop.steps, later - 1));
      for (std::size_t earlier = 0; earlier < later; ++earlier) {
        if (loop.steps[earlier].stage < loop.steps[later].stage) continue;
        for (const Use& a : all[earlier])
          for (const Use& b : all[later])
            if (a.clashes(b))
              add("{} {} {} and {} {} {} in the same bytes of shared memory, and no barrier lies between",
                  text(loop.steps, earlier), a.writes ? "writes" : "reads", a.what, text(loop.steps, later),
                  b.writes ? "writes" : "reads", b.what);
      }
    }
  }

  /// What a step takes up was left there by an earlier one.
  void flow(const TaskLoop& loop) {
    std::set<int> shared, rows, gathered;
    for (std::size_t s = 0; s < loop.steps.size(); ++s) {
      const Step& step = loop.steps[s];
      std::set<int> kept;
      for (const int v : step.order) {
        const Value& value = step.values[static_cast<std::size_t>(v)];
        const auto missing = [&](std::string_view where) {
          add("{} reads {} from {}, where no step before it put it", text(loop.steps, s), name(value.op),
              where);
        };
        if (is_shared(value.buffer) && !shared.contains(value.buffer)) missing("shared memory");
        if (value.buffer >= 0 && buffer(value.buffer).space == MemorySpace::kScratch &&
            !scratch_.contains(value.buffer))
          missing("scratch");
        if (value.row_result >= 0 && !rows.contains(value.row_result)) missing("a register of the row");
        if (value.restored >= 0 && !kept_.contains(value.restored)) missing("registers");
        if (value.kept >= 0) kept.insert(value.kept);
        if (value.row_place >= 0) rows.insert(value.row_place);
      }
      kept_.merge(kept);
      for (const Root& root : step.roots) {
        for (const int b : buffers_of(root))
          if (is_shared(b)) shared.insert(b);
        if (root.row_result >= 0) rows.insert(root.row_result);
        if (root.store == StoreKind::kGather) gathered.insert(root.gathered);
        if (root.store == StoreKind::kReduce && root.gathered >= 0 && !gathered.contains(root.gathered))
          add("{} takes up what was gathered for {}, and no step before it gathers it", text(loop.steps, s),
              name(root.op));
      }
    }
  }

  const Computation& computation_;
  const Schedule& schedule_;
  std::set<int> kept_;     ///< indices into Schedule::kept
  std::set<int> scratch_;  ///< buffers written by earlier phases
  std::vector<std::string> problems_;
};

}  // namespace

std::vector<std::string> schedule_problems(const Graph& graph, const Schedule& schedule) {
  return Check(graph, schedule).run();
}

}  // namespace stitchwork
