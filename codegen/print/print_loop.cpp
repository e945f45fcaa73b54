// Loops over tasks: which block has which, the steps of one, barriers.
#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <map>

#include "analysis/schedule/launch.h"
#include "codegen/print/print_across.h"
#include "codegen/print/print_kernel.h"
#include "core/base/error.h"
#include "occupancy_model/hardware.h"

namespace stitchwork {
namespace {

bool uses_workspace(const Schedule& kernel, const Step& step, const Root& root) {
  return root.store != StoreKind::kElement && root.store != StoreKind::kAcross &&
         root.store != StoreKind::kGather &&
         reduction_workspace_bytes(step.mapping, kernel.launch.block, DType::kF32) > 0;
}

bool uses_shared(const Schedule& kernel, const TaskLoop& loop) {
  for (const Step& step : loop.steps) {
    for (const Value& value : step.values)
      if (value.buffer >= 0 &&
          kernel.buffers[static_cast<std::size_t>(value.buffer)].space == MemorySpace::kShared)
        return true;
    for (const Root& root : step.roots) {
      if (uses_workspace(kernel, step, root)) return true;
      for (const Target& target : root.targets)
        if (kernel.buffers[static_cast<std::size_t>(target.buffer)].space == MemorySpace::kShared)
          return true;
    }
  }
  return false;
}

/// Whether all that a loop's steps leave in shared memory is read by the warp that wrote it: rows of a warp
/// or less, readers that work on the same rows (what is read once a task is read by all warps), and values
/// that take over one another's bytes row for row.
bool within_warps(const Schedule& kernel, const TaskLoop& loop) {
  std::map<int, const Mapping*> written;  // buffers of shared memory
  for (const Step& step : loop.steps)
    for (const Root& root : step.roots)
      for (const Target& target : root.targets)
        if (kernel.buffers[static_cast<std::size_t>(target.buffer)].space == MemorySpace::kShared)
          written[target.buffer] = &step.mapping;
  for (const auto& [a, a_mapping] : written)
    for (const auto& [b, b_mapping] : written) {
      const Buffer &x = kernel.buffers[static_cast<std::size_t>(a)],
                   &y = kernel.buffers[static_cast<std::size_t>(b)];
      if (x.offset + x.bytes() <= y.offset || y.offset + y.bytes() <= x.offset) continue;
      if (x.offset != y.offset || x.bytes() != y.bytes() || !(*a_mapping == *b_mapping)) return false;
    }
  return std::all_of(loop.steps.begin(), loop.steps.end(), [&](const Step& step) {
    if ((step.rows && !step.by_all) || !packs_rows(step.mapping) || step.layout.threads_a_row > kWarp ||
        step.layout.turns > 1)
      return false;
    return std::all_of(step.values.begin(), step.values.end(), [&](const Value& value) {
      return value.buffer < 0 || (value.local && value.depth > 0) ||
             kernel.buffers[static_cast<std::size_t>(value.buffer)].space != MemorySpace::kShared;
    });
  });
}

bool overlap(const TaskLoop& a, const TaskLoop& b) {
  if (!a.entries.empty() || !b.entries.empty()) return true;
  return a.deal.first_block < b.deal.end_block() && b.deal.first_block < a.deal.end_block();
}

/// Rows without elements still reduce to their initial value.
bool has_empty_reduction(const Step& step) { return step.layout.rows > 0 && step.layout.cols == 0; }

}  // namespace

void KernelPrinter::barrier(bool of_warp) {
  out_.line(of_warp ? "sw_warp_barrier();" : "__syncthreads();");
  if (!of_warp) shared_.workspace = SharedState::kFree;
}

void KernelPrinter::print_loop(const TaskLoop& loop) {
  if (loop.deal.tasks == 0) return;
  const bool across = !loop.across.empty();  // its partials go through the workspace
  const bool shared = uses_shared(kernel_, loop) || across;
  // What an earlier loop of this phase on the same blocks still reads must not be overwritten.
  const auto meets = [&](const TaskLoop* earlier) { return overlap(*earlier, loop); };
  const bool meets_stored = loop.bulk && std::any_of(stored_.begin(), stored_.end(), meets);
  if (meets_stored) out_.line("sw_fence_for_bulk();");
  if (meets_stored || (shared && std::any_of(touched_.begin(), touched_.end(), meets))) {
    barrier();
    touched_.clear();
  }
  if (shared) shared_ = {};
  const bool several = loop.most_tasks() > 1;
  if (loop.entries.empty()) {
    open_range(loop);
    if (across && !canonical_) out_.line("// What the thread's columns come to, over all its rows.");
    declare_across(loop, places_, names_, computation_, out_);
    begin_copies(loop);
    open_tasks(loop);
    print_steps(loop, several && shared);
    if (several && keeps_over_tasks(kernel_, loop)) out_.close();
    if (several) out_.close();
    if (stores_in_bulk(loop)) wait_for_stores(loop);
    const bool ends_copies = loop.bulk && &loop != &kernel_.phases.back().loops.back();
    if (ends_copies) end_copies(loop, several && shared);
    if (across) {
      barrier();
      flush_across(kernel_, loop, places_, loop.deal.cluster > 1 ? "cluster" : block_text(loop), computation_,
                   out_);
    }
    out_.close();
  } else {
    print_shared_body(loop, several, shared);
  }
  if (shared && (!several || within_warps(kernel_, loop) || across || loop.bulk)) touched_.push_back(&loop);
  if (shared) stored_.push_back(&loop);
}

/// The steps of a task. What the next one overwrites in shared memory has been read if it `ends_apart`.
void KernelPrinter::print_steps(const TaskLoop& loop, bool ends_apart) {
  const bool of_warp = within_warps(kernel_, loop);
  places_.row_results.clear();
  for (const RowResult& result : loop.row_results) {
    places_.row_results.push_back(names_.make(computation_.node(result.op).name, "t", "_row"));
    out_.line(fmt::format("{} {};{}", value_type(result.dtype), places_.row_results.back(),
                          remark("all threads of a row have it")));
  }
  places_.gathered.clear();
  for (const Gathered& gathered : loop.gathered) {
    places_.gathered.push_back(names_.make(computation_.node(gathered.op).name, "g", "_gathered"));
    const bool exponentials = gathered.kind == OnePassKind::kExponentials;
    out_.line(fmt::format("{}<{}> {} = {{{}}};{}", exponentials ? "SwExponentials" : "SwSquares",
                          value_type(gathered.dtype), places_.gathered.back(),
                          exponentials ? neutral_text(Op::kMaximum, gathered.dtype) + ", 0" : "0, 0, 0",
                          remark(exponentials ? "about one of the largest the thread has seen"
                                              : "about the mean of what the thread has seen")));
  }
  arrive_in_cluster(loop);
  const PlaceNames outside = places_;
  ask_in_task(loop);
  bool waits = loop.stages > 0;                             // for this task's copies
  bool filled = loop.stages > 0 && loop.most_tasks() == 1;  // what others have done behind no barrier yet
  const auto wait = [&] {
    if (waits && !loop.bulk) out_.line(fmt::format("sw_wait_for_copies<{}>();", loop.stages - 1));
    if (!waits || !loop.bulk || filled) barrier(of_warp);
    if (waits && loop.bulk) wait_for_bulk(loop);
    waits = false;
  };
  const Step* before = nullptr;
  int stage = loop.steps.empty() ? 0 : loop.steps.front().stage;
  for (const Step& step : loop.steps) {
    if (step.stage != stage && step.stage == loop.steps.back().stage && stores_in_bulk(loop))
      out_.line("sw_fence_for_bulk();");
    if (step.stage != stage) wait();
    stage = step.stage;
    if (step.filling != Filling::kInTask) continue;
    filled = true;
    print_step(loop, step, before);
  }
  SW_CHECK(!waits, "no stage reads what was copied");
  if (ends_apart && stores_in_bulk(loop))
    end_task_of_bulk(loop);
  else if (ends_apart) {
    if (loop.bulk && stores_over_copies(loop)) out_.line("sw_fence_for_bulk();");
    barrier(of_warp);
  }
  places_ = outside;
}

void KernelPrinter::print_step(const TaskLoop& loop, const Step& step, const Step*& before) {
  if (step.layout.rows * step.layout.cols == 0 && !has_empty_reduction(step)) return;
  comment(step, before);
  before = &step;
  out_.block();
  StepPrinter(graph_, kernel_, loop, step, rows_name(loop, step), places_, names_, canonical_, out_, parts_,
              shared_)
      .print();
  out_.close();
}

/// What the step makes, and how its group is dealt to threads unless the step before is of the same.
void KernelPrinter::comment(const Step& step, const Step* before) {
  if (canonical_) return;
  const Group& group = kernel_.groups[static_cast<std::size_t>(step.group)];
  std::string text;
  for (const Root& root : step.roots) text += (text.empty() ? "" : ", ") + computation_.node(root.op).name;
  if (step.rows) text += step.by_all ? ", of each row by all its threads" : ", of each row by a thread";
  if (before == nullptr || before->group != step.group)
    text += fmt::format(" (group of {}; {})", computation_.node(group.dominant).name,
                        to_text(group.mapping, group.deal));
  out_.line("// " + text);
}

/// Where the blocks of a cluster run a task together: tells the others that this one has left the task
/// before, or has begun, and that its workspace may be written to. They wait for it only when they have
/// something to send.
void KernelPrinter::arrive_in_cluster(const TaskLoop& loop) {
  const bool reduces = std::any_of(loop.steps.begin(), loop.steps.end(), [&](const Step& step) {
    return std::any_of(step.roots.begin(), step.roots.end(),
                       [](const Root& root) { return root.store == StoreKind::kReduce; });
  });
  shared_.cluster_arrived = loop.deal.cluster > 1 && reduces;
  if (shared_.cluster_arrived)
    out_.line(fmt::format("sw_cluster_arrive();{}",
                          remark("the other blocks of the cluster may write to this one's workspace")));
}

/// The block's place in the loop's range.
std::string KernelPrinter::block_text(const TaskLoop& loop) {
  return loop.deal.first_block > 0 ? fmt::format("((int)blockIdx.x - {})", loop.deal.first_block)
                                   : std::string("(int)blockIdx.x");
}

void KernelPrinter::open_range(const TaskLoop& loop) {
  const std::string block = block_text(loop);
  std::string inside;
  if (loop.deal.first_block > 0) inside = fmt::format("{} >= 0", block);
  if (loop.deal.end_block() < kernel_.launch.grid)
    inside += fmt::format("{}{} < {}", inside.empty() ? "" : " && ", block, loop.deal.blocks());
  if (inside.empty())
    out_.block();
  else
    out_.open(fmt::format("if ({})", inside));
  take_pointers(loop);
}

void KernelPrinter::open_tasks(const TaskLoop& loop) {
  const std::int64_t v = loop.most_tasks(), takers = loop.deal.takers;
  std::string block = block_text(loop);
  if (loop.deal.cluster > 1) {
    out_.line(fmt::format("const int cluster = {0} / {1}, rank = {0} % {1};{2}", block, loop.deal.cluster,
                          remark("its blocks share each row")));
    block = "cluster";
  }
  if (v == 1) {
    out_.line(fmt::format("const {} task = {};", index_, block));
    return;
  }
  if (loop.deal.tasks % takers == 0) {
    out_.line(fmt::format("const {} first_task = {}{} * {}, end_task = first_task + {};", index_,
                          kernel_.wide_indices ? "(long long)" : "", block, v, v));
  } else {
    // Block numbers times tasks may exceed 32 bits where neither does.
    const bool wide = loop.deal.tasks * takers > std::numeric_limits<std::int32_t>::max();
    const auto share = [&](const std::string& b) {
      const std::string product = fmt::format("{}{} * {}", wide ? "(long long)" : "", b, loop.deal.tasks);
      return fmt::format("{}({} / {})", wide && !kernel_.wide_indices ? "(int)" : "", product, takers);
    };
    out_.line(fmt::format("const {} first_task = {};", index_, share(block)));
    out_.line(fmt::format("const {} end_task = {};", index_, share(fmt::format("({} + 1)", block))));
  }
  ask_for_first(loop);
  if (!keeps_over_tasks(kernel_, loop)) {
    std::string first, next;
    if (loop.bulk) {
      first += ", parity = 0";
      next += loop.stages > 1 ? fmt::format(", parity ^= stage == {}", loop.stages - 1) : ", parity ^= 1";
    }
    if (loop.stages > 1) {
      first += ", stage = 0";
      next += fmt::format(", stage = stage < {} ? stage + 1 : 0", loop.stages - 1);
    }
    if (loop.bulk && loop.stages > 1 && !canonical_)
      out_.line("// Stages take turns; when they begin again their mbarriers' phases have the other parity.");
    out_.open(fmt::format("for ({} task = first_task{}; task < end_task; ++task{})", index_, first, next));
    return;
  }
  // Values kept for every task lie by its number in the block; arrays in registers need constant indices.
  out_.line(fmt::format("#pragma unroll {}", in_registers(loop) ? v : 1));
  out_.open(fmt::format("for (int turn = 0; turn < {}; ++turn)", v));
  out_.line(fmt::format("const {} task = first_task + turn;", index_));
  if (loop.stages > 1) out_.line(fmt::format("const int stage = turn % {};", loop.stages));
  if (loop.bulk) out_.line(fmt::format("const int parity = turn / {} % 2;", loop.stages));
  out_.open(loop.deal.tasks % takers == 0 ? "" : "if (task < end_task)");
}

bool KernelPrinter::in_registers(const TaskLoop& loop) const {
  return std::any_of(kernel_.kept.begin(), kernel_.kept.end(), [&](const Kept& kept) {
    return kept.group >= 0 && kept.shared_offset < 0 &&
           std::any_of(loop.steps.begin(), loop.steps.end(),
                       [&](const Step& step) { return step.group == kept.group; });
  });
}

}  // namespace stitchwork
