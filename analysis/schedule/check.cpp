#include "analysis/schedule/check.h"

#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <set>

#include "analysis/schedule/launch.h"

namespace stitchwork {
namespace {

/// Bytes of shared memory that a step reads or writes.
struct Use {
  std::int64_t from = 0, to = 0;
  bool writes = false;
  /// The reduction workspace: reductions part among themselves there.
  bool workspace = false;
  /// The group whose threads take each its own elements of a staged tile, or -1: of tiles in the same bytes
  /// a thread has the same ones.
  int own = -1;
  std::string what;
  /// Where it is one element of each that one thread alone has in the step: its place in bytes, a function of
  /// the task, the row in it and the col.
  std::optional<IndexExpr> element;

  bool clashes(const Use& other) const {
    if (!writes && !other.writes) return false;
    if (workspace && other.workspace) return false;
    if (own >= 0 && own == other.own && from == other.from && to == other.to) return false;
    return from < other.to && other.from < to;
  }
  /// In one step: a thread reads its element before it writes there.
  bool in_place(const Use& other) const {
    return writes != other.writes && element && element == other.element;
  }
};

class Check {
 public:
  Check(const Graph& graph, const Schedule& schedule)
      : computation_(graph.entry_computation()), schedule_(schedule) {}

  std::vector<std::string> run() {
    for (const Phase& phase : schedule_.phases) {
      std::set<int> written;  // in this phase: to be read behind the next grid barrier
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
        if (is_written(b)) global_.insert(b);
    }
    return std::move(problems_);
  }

 private:
  const Buffer& buffer(int b) const { return schedule_.buffers[static_cast<std::size_t>(b)]; }
  const std::string& name(NodeId op) const { return computation_.node(op).name; }
  /// Of device memory, by this kernel.
  bool is_written(int b) const {
    return b >= 0 &&
           (buffer(b).space == MemorySpace::kScratch || buffer(b).space == MemorySpace::kGlobalOutput);
  }
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

  static bool is_filled_once(const TaskLoop& loop, int b) {
    return std::any_of(loop.steps.begin(), loop.steps.end(), [&](const Step& step) {
      return step.filling == Filling::kOnce &&
             std::any_of(step.roots.begin(), step.roots.end(),
                         [&](const Root& root) { return buffers_of(root).contains(b); });
    });
  }

  static std::string text(const std::vector<Step>& steps, std::size_t s) {
    return fmt::format("step {} (stage {})", s, steps[s].stage);
  }

  /// Of what each thread has for itself in the step's rows and cols: Use::element of element `offset`, in
  /// which d0 is the row in the task (`local`) or in the domain.
  std::optional<IndexExpr> own_element(const Step& step, int b, const IndexExpr& offset, bool local,
                                       std::int64_t task_offset) const {
    const Layout& layout = step.layout;
    if (step.turned || layout.blocks > 1 || layout.segments > 1 || (step.rows && step.by_all)) return {};
    IndexMap of_task;  // (task, row in it, col) -> (row, col)
    of_task.dims = {task_count(step.mapping), layout.task_rows, std::max<std::int64_t>(1, layout.cols)};
    of_task.results = {local ? IndexExpr::dim(1) : IndexExpr::dim(0) * layout.task_rows + IndexExpr::dim(1),
                       IndexExpr::dim(2)};
    IndexMap place;
    place.dims = {local ? layout.task_rows : layout.rows, of_task.dims[2]};
    place.results = {offset};
    const IndexMap element = compose(of_task, place);
    const Buffer& at = buffer(b);
    return simplify((element.results[0] - IndexExpr::dim(0) * task_offset) * byte_size(at.shape.dtype) +
                        IndexExpr::value(at.offset),
                    element);
  }

  std::optional<IndexExpr> own_element(const Step& step, const Value& value) const {
    const IndexMap& map = value.at.map;
    const bool alone =
        step.rows || is<mapping::Elements>(step.mapping) || is<mapping::OneThread>(step.mapping);
    if (!is_shared(value.buffer) || value.scope >= 0 || value.depth < (alone ? 1 : 2) ||
        !map.constraints.empty() || !map.runtime.empty() || !map.symbols.empty())
      return {};
    return own_element(step, value.buffer, value.offset, value.local, value.local ? 0 : value.task_offset);
  }

  std::vector<Use> uses(const Step& step) const {
    std::vector<Use> result;
    const auto touch = [&](int b, bool writes, std::optional<IndexExpr> element) {
      if (!is_shared(b)) return;
      const Buffer& at = buffer(b);
      const int own = at.tile && step.layout.in_tile ? step.group : -1;
      result.push_back(
          {at.offset, at.offset + at.bytes(), writes, false, own, name(at.op), std::move(element)});
    };
    for (const int v : step.order) {
      const Value& value = step.values[static_cast<std::size_t>(v)];
      touch(value.buffer, false, own_element(step, value));
    }
    for (const Root& root : step.roots) {
      for (const Target& target : root.targets)
        touch(target.buffer, true,
              root.store == StoreKind::kElement && is_shared(target.buffer)
                  ? own_element(step, target.buffer, target.offset, true, 0)
                  : std::nullopt);
      const bool combines = root.store == StoreKind::kReduce || root.store == StoreKind::kPartial ||
                            root.store == StoreKind::kAtomic;
      const DType dtype = computation_.node(root.op).shape.dtype;
      if (const std::int64_t bytes = reduction_workspace_bytes(step.mapping, schedule_.launch.block, dtype);
          combines && bytes > 0)
        result.push_back({schedule_.workspace_offset, schedule_.workspace_offset + bytes, true, true, -1,
                          fmt::format("the workspace of {}", name(root.op)), std::nullopt});
    }
    return result;
  }

  /// Steps of one stage run behind no barrier of the block.
  void hazards(const TaskLoop& loop) {
    std::vector<std::vector<Use>> all;
    for (const Step& step : loop.steps) all.push_back(uses(step));
    for (std::size_t later = 0; later < all.size(); ++later) {
      for (std::size_t u = 0; u < all[later].size(); ++u)
        for (std::size_t w = 0; w < u; ++w)
          if (all[later][w].clashes(all[later][u]) && !all[later][w].in_place(all[later][u]))
            add("{} has {} and {} in the same bytes of shared memory", text(loop.steps, later),
                all[later][w].what, all[later][u].what);
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

  /// What a step takes up was left there by an earlier one, and nothing else since: in a block's first task,
  /// and in those behind it, which find what was put into tiles once.
  void flow(const TaskLoop& loop) {
    std::set<int> shared;
    flow(loop, shared, false);
    if (loop.most_tasks() > 1) flow(loop, shared, true);
  }

  void flow(const TaskLoop& loop, std::set<int>& shared, bool again) {
    std::set<int> rows, gathered;
    if (again)  // what a task leaves is not the next one's
      std::erase_if(shared, [&](int b) { return !is_filled_once(loop, b); });
    for (std::size_t s = 0; s < loop.steps.size(); ++s) {
      const Step& step = loop.steps[s];
      if (again && step.filling == Filling::kOnce) continue;
      std::set<int> kept;
      for (const int v : step.order) {
        const Value& value = step.values[static_cast<std::size_t>(v)];
        const auto missing = [&](std::string_view where) {
          add("{} reads {} from {}, where no step before it put it", text(loop.steps, s), name(value.op),
              where);
        };
        if (is_shared(value.buffer) && !shared.contains(value.buffer)) missing("shared memory");
        if (is_written(value.buffer) && value.restored < 0 && value.row_result < 0 &&
            !global_.contains(value.buffer))
          missing(buffer(value.buffer).space == MemorySpace::kScratch ? "scratch" : "an output");
        if (value.row_result >= 0 && !rows.contains(value.row_result)) missing("a register of the row");
        if (value.restored >= 0 && !kept_.contains(value.restored)) missing("registers");
        if (value.kept >= 0) kept.insert(value.kept);
        if (value.row_place >= 0) rows.insert(value.row_place);
      }
      kept_.merge(kept);
      const auto overwrite = [&](std::int64_t from, std::int64_t to) {
        std::erase_if(shared, [&](int b) {
          return buffer(b).offset < to && from < buffer(b).offset + buffer(b).bytes();
        });
      };
      for (const Use& use : uses(step))
        if (use.workspace) overwrite(use.from, use.to);
      for (const Root& root : step.roots) {
        for (const int b : buffers_of(root)) {
          if (!is_shared(b)) continue;
          overwrite(buffer(b).offset, buffer(b).offset + buffer(b).bytes());
          shared.insert(b);
        }
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
  std::set<int> kept_;    ///< indices into Schedule::kept
  std::set<int> global_;  ///< buffers of scratch and results, written by earlier phases
  std::vector<std::string> problems_;
};

}  // namespace

std::vector<std::string> schedule_problems(const Graph& graph, const Schedule& schedule) {
  std::vector<std::string> problems = Check(graph, schedule).run();
  for (std::string& problem : place_problems(graph, schedule)) problems.push_back(std::move(problem));
  return problems;
}

}  // namespace stitchwork
