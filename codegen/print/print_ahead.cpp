// Tiles that are filled ahead: what a task's steps ask for in asynchronous copies, and wait for.
#include <fmt/format.h>

#include <algorithm>
#include <set>

#include "analysis/schedule/tiles.h"
#include "codegen/print/print_kernel.h"
#include "core/base/error.h"

namespace stitchwork {
namespace {

bool is_copied(const Step& step) { return step.filling == Filling::kAhead; }

const Step& first_copied(const TaskLoop& loop) {
  const auto found = std::find_if(loop.steps.begin(), loop.steps.end(), is_copied);
  SW_CHECK(found != loop.steps.end(), "a loop copies nothing");
  return *found;
}

/// Bytes from one stage of a tile to the next.
std::int64_t stage_bytes(const Buffer& buffer) {
  return buffer.stage_elements * byte_size(buffer.shape.dtype);
}

}  // namespace

void KernelPrinter::print_steps_of(const TaskLoop& loop, Filling filling) {
  const Step* before = nullptr;
  for (const Step& step : loop.steps)
    if (step.filling == filling) print_step(loop, step, before);
}

/// Asks for the tiles of the block's task `ahead`, if it has that many: those of that stage. A thread's group
/// of copies may be empty.
void KernelPrinter::ask_for(const TaskLoop& loop, const std::string& ahead, const std::string& stage,
                            bool in_task) {
  const PlaceNames outside = places_;
  out_.block();
  out_.line(fmt::format("const {} ahead = {};", index_, ahead));
  out_.open(fmt::format("if ({}ahead < end_task)", loop.bulk ? "thread == 0 && " : ""));
  if (in_task && stores_in_bulk(loop))
    out_.line(
        fmt::format("sw_wait_for_stores_read();{}", remark("of the task before, from the tiles asked for")));
  out_.line(fmt::format("const int its_stage = {};", stage));
  declare_stage(loop, "its_stage", Filling::kAhead);
  if (loop.bulk) places_.mbarrier = mbarrier(loop, "its_stage");
  out_.line(fmt::format("const {} task = ahead;", index_));
  print_steps_of(loop, Filling::kAhead);
  out_.close();
  if (!loop.bulk) out_.line("sw_commit_copies();");
  out_.close();
  places_ = outside;
}

/// The tiles that a task's steps of this filling name; those of the block take the stages in turn.
void KernelPrinter::declare_stage(const TaskLoop& loop, const std::string& stage, Filling filling) {
  std::set<int> named;
  for (const Step& step : loop.steps) {
    if (step.filling != filling) continue;
    for (const Value& value : step.values) named.insert(value.buffer);
    for (const Root& root : step.roots)
      for (const Target& target : root.targets) named.insert(target.buffer);
  }
  for (const int b : named) {
    if (b < 0 || buffer(b).stages < 2) continue;
    const std::string all = place(b);
    place(b) = names_.make(computation_.node(buffer(b).op).name, "b", suffix(buffer(b)));
    out_.line(fmt::format("{}* const {} = {} + {} * {};", element_type(buffer(b)), place(b), all, stage,
                          buffer(b).stage_elements));
  }
}

/// What is asked for before a block's first task of several. Of bulk copies all know the mbarriers then.
void KernelPrinter::ask_for_first(const TaskLoop& loop) {
  if (loop.stages == 0) return;
  if (loop.stages == 2) ask_for(loop, "first_task", "0", false);
  if (loop.stages > 2) {
    out_.open(fmt::format("for (int n = 0; n < {}; ++n)", loop.stages - 1));
    ask_for(loop, "first_task + n", "n", false);
    out_.close();
  }
  if (std::any_of(loop.steps.begin(), loop.steps.end(),
                  [](const Step& step) { return step.filling == Filling::kOnce; })) {
    out_.block();
    out_.line(fmt::format("const {} task = first_task;", index_));
    print_steps_of(loop, Filling::kOnce);
    out_.close();
  }
  if (loop.bulk) barrier();
}

/// What a task asks for: tiles of one ahead of it, or its own.
void KernelPrinter::ask_in_task(const TaskLoop& loop) {
  if (loop.stages == 0) return;
  if (loop.stages > 1) {
    ask_for(loop, fmt::format("task + {}", loop.stages - 1),
            fmt::format("stage > 0 ? stage - 1 : {}", loop.stages - 1), true);
    declare_stage(loop, "stage", Filling::kInTask);
  } else {
    if (loop.bulk) places_.mbarrier = mbarrier(loop, "");
    out_.open(loop.bulk ? "if (thread == 0)" : "");
    if (stores_in_bulk(loop) && loop.most_tasks() > 1) out_.line("sw_wait_for_stores_read();");
    print_steps_of(loop, Filling::kAhead);
    out_.close();
    if (!loop.bulk) out_.line("sw_commit_copies();");
  }
  if (loop.most_tasks() == 1) print_steps_of(loop, Filling::kOnce);
}

// ---- in bulk: one thread asks, all wait at the mbarrier of the task's stage

std::string KernelPrinter::mbarrier(const TaskLoop& loop, const std::string& stage) const {
  const std::int64_t apart = stage_bytes(buffer(first_copied(loop).roots.front().targets.front().buffer));
  return loop.stages > 1 ? fmt::format("copied + {} * {}", stage, apart) : "copied";
}

void KernelPrinter::for_mbarriers(const TaskLoop& loop, std::string_view call, const std::string& further) {
  if (loop.stages > 1) out_.open(fmt::format("for (int n = 0; n < {}; ++n)", loop.stages));
  out_.line(fmt::format("{}({}{});", call, mbarrier(loop, "n"), further));
  if (loop.stages > 1) out_.close();
}

void KernelPrinter::begin_copies(const TaskLoop& loop) {
  if (!loop.bulk) return;
  const int first = first_copied(loop).roots.front().targets.front().buffer;
  const auto copies = std::count_if(loop.steps.begin(), loop.steps.end(), is_copied);
  if (!canonical_)
    out_.line(
        "// An mbarrier behind each task's elements: whether all that is copied for the task has come.");
  out_.line(fmt::format("const unsigned copied = sw_shared_place({}) + {};", place(first),
                        stage_bytes(buffer(first)) - kBulkUnit));
  out_.open("if (thread == 0)");
  for_mbarriers(loop, "sw_init_mbarrier", fmt::format(", {}", copies));
  out_.line("sw_fence_mbarriers();");
  out_.close();
}

/// Later loops may have other things in these bytes.
void KernelPrinter::end_copies(const TaskLoop& loop, bool behind_barrier) {
  if (!behind_barrier) barrier();
  out_.open("if (thread == 0)");
  for_mbarriers(loop, "sw_end_mbarrier", "");
  out_.close();
}

/// For this task's copies, and for what is no vector at the ends of arrays.
void KernelPrinter::wait_for_bulk(const TaskLoop& loop) {
  out_.line(fmt::format("sw_wait_for_bulk({}, {});", mbarrier(loop, "stage"),
                        loop.most_tasks() > 1 ? "parity" : "0"));
  const auto has_rest = [](const Step& step) {
    return is_copied(step) && step.layout.rows % step.layout.width != 0;
  };
  if (std::none_of(loop.steps.begin(), loop.steps.end(), has_rest)) return;
  if (!canonical_) out_.line("// What fills no unit of a copy at the ends of arrays.");
  out_.open(fmt::format("if (task == {})", loop.deal.tasks - 1));
  for (const Step& step : loop.steps)
    if (has_rest(step))
      StepPrinter(graph_, kernel_, loop, step, rows_name(loop, step), places_, names_, canonical_, out_,
                  parts_, shared_)
          .print_rest();
  out_.line("__syncthreads();");
  out_.close();
}

/// The bytes of a tile, of all its stages.
std::pair<std::int64_t, std::int64_t> KernelPrinter::bytes_of(const Buffer& tile) {
  return {tile.offset, tile.offset + std::max(tile.bytes(), tile.stages * stage_bytes(tile))};
}

/// Whether copies come to some of these bytes.
bool KernelPrinter::meets_copies(const TaskLoop& loop, const Buffer& stored) const {
  const auto [first, end] = bytes_of(stored);
  return stored.space == MemorySpace::kShared &&
         std::any_of(loop.steps.begin(), loop.steps.end(), [&, first = first, end = end](const Step& step) {
           if (!is_copied(step)) return false;
           const auto [begins, ends] = bytes_of(buffer(step.roots.front().targets.front().buffer));
           return first < ends && begins < end;
         });
}

/// Whether ordinary stores of a task go where copies of later ones come.
bool KernelPrinter::stores_over_copies(const TaskLoop& loop) const {
  return std::any_of(loop.steps.begin(), loop.steps.end(), [&](const Step& step) {
    return !is_copied(step) && std::any_of(step.roots.begin(), step.roots.end(), [&](const Root& root) {
      return std::any_of(root.targets.begin(), root.targets.end(),
                         [&](const Target& target) { return meets_copies(loop, buffer(target.buffer)); });
    });
  });
}

// ---- results in bulk, by the thread that asks for copies

bool KernelPrinter::stores_in_bulk(const TaskLoop& loop) {
  return std::any_of(loop.steps.begin(), loop.steps.end(), [](const Step& step) { return step.in_bulk; });
}

/// Behind the barrier before its results' copies a task reads and stores nothing more. Where these lie in
/// tiles that are asked for again, who asks waits until they are read; else all wait, as the next task stores
/// there.
void KernelPrinter::end_task_of_bulk(const TaskLoop& loop) {
  const int last = loop.steps.back().stage;
  const bool asked_for = std::all_of(loop.steps.begin(), loop.steps.end(), [&](const Step& step) {
    return step.stage != last ||
           (step.in_bulk && std::all_of(step.roots.begin(), step.roots.end(), [&](const Root& root) {
              const Buffer& tile = buffer(step.values[static_cast<std::size_t>(root.value)].buffer);
              return meets_copies(loop, tile);
            }));
  });
  if (asked_for) return;
  out_.line("if (thread == 0) sw_wait_for_stores_read();");
  barrier();
}

/// Behind a block's tasks. What the kernel's later phases read is to be there.
void KernelPrinter::wait_for_stores(const TaskLoop& loop) {
  const std::vector<TaskLoop>& last = kernel_.phases.back().loops;
  const bool of_last = &loop >= last.data() && &loop < last.data() + last.size();
  out_.line(fmt::format("if (thread == 0) sw_wait_for_stores{}();", of_last ? "_read" : ""));
}

}  // namespace stitchwork
