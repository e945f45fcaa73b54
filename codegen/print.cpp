#include <fmt/ranges.h>

#include <algorithm>
#include <limits>
#include <map>
#include <set>

#include "analysis/launch.h"
#include "codegen/kernel.h"
#include "codegen/lower_context.h"
#include "codegen/print_across.h"
#include "codegen/print_step.h"
#include "codegen/table.h"
#include "core/error.h"
#include "core/format.h"

namespace stitchwork {
namespace {

constexpr int kWarp = 32;

class KernelPrinter {
 public:
  KernelPrinter(const Graph& graph, const Kernel& kernel, bool canonical, bool dependent)
      : graph_(graph),
        computation_(graph.entry_computation()),
        kernel_(kernel),
        canonical_(canonical),
        dependent_(dependent),
        names_(canonical),
        index_(kernel.wide_indices ? "long long" : "int"),
        table_(kernel_table(kernel)) {}

  std::string print() {
    signature();
    if (dependent_) wait_for_earlier_kernels();
    out_.line("const int thread = threadIdx.x;");
    if (table_.first_pointer >= 0)
      out_.line(
          fmt::format("void* const* const pointers = (void* const*)(table + {});", table_.first_pointer));
    places();
    for (const Kept& kept : kernel_.kept) {
      places_.kept.push_back(names_.make(computation_.node(kept.op).name, "r", "_kept"));
      const std::string note =
          remark(fmt::format("{} of the thread's elements{}", computation_.node(kept.op).name,
                             kept.tasks > 1 ? ", of all its tasks" : ""));
      if (kept.shared_offset >= 0)
        out_.line(fmt::format("{0}* const {1} = ({0}*)(shared + {2});{3}", storage_type(kept.dtype),
                              places_.kept.back(), kept.shared_offset, note));
      else
        out_.line(fmt::format("{} {}[{}];{}", value_type(kept.dtype), places_.kept.back(),
                              kept.tasks * kept.elements, note));
    }
    for (std::size_t p = 0; p < kernel_.phases.size(); ++p) {
      if (p > 0) {
        out_.line("sw_grid_barrier(barrier);");
        touched_.clear();
        shared_ = {};
      }
      if (!canonical_ && kernel_.phases.size() > 1)
        out_.line(fmt::format("// Phase {} of {}: {}", p + 1, kernel_.phases.size(),
                              listed(phase_names(kernel_.phases[p]))));
      for (const TaskLoop& loop : kernel_.phases[p].loops) print_loop(loop);
    }
    out_.close();
    return bodies_.take() + out_.take();
  }

 private:
  /// Before anything is read or written in global memory: an earlier kernel may still read what this one
  /// writes (buffers share bytes), and what the one before waited for has ended when that has. Later kernels
  /// are let in from here on, when all blocks of this one have started: no more than two share the GPU (CUDA
  /// C++ Programming Guide, "Programmatic Dependent Launch and Synchronization").
  void wait_for_earlier_kernels() {
    out_.line(fmt::format("asm volatile(\"griddepcontrol.wait;\" ::: \"memory\");{}",
                          remark("until earlier kernels have ended and their results are seen")));
    out_.line(fmt::format("asm volatile(\"griddepcontrol.launch_dependents;\" ::: \"memory\");{}",
                          remark("the next kernel's blocks may start, and wait likewise")));
  }

  void signature() {
    const KernelLaunch& launch = kernel_.launch;
    places_.buffers.resize(kernel_.buffers.size());
    std::string parameters;
    const std::string separator = canonical_ ? ", " : ",\n    ";
    const auto add = [&](const std::string& parameter) {
      parameters += (parameters.empty() ? (canonical_ ? "" : "\n    ") : separator) + parameter;
    };
    for (const KernelArgument& argument : kernel_arguments(kernel_)) {
      using Kind = KernelArgument::Kind;
      if (argument.kind == Kind::kScratch) add("unsigned char* scratch");
      if (argument.kind == Kind::kBarrier) add("unsigned long long* barrier");
      if (argument.kind == Kind::kTable) add("const unsigned char* __restrict__ table");
      if (argument.kind != Kind::kInput && argument.kind != Kind::kOutput) continue;
      const bool input = argument.kind == Kind::kInput;
      for (std::size_t b = 0; b < kernel_.buffers.size(); ++b) {
        const Buffer& buffer = kernel_.buffers[b];
        const MemorySpace space = input ? MemorySpace::kGlobalInput : MemorySpace::kGlobalOutput;
        if (buffer.space != space || buffer.op != argument.op) continue;
        places_.buffers[b] = names_.make(computation_.node(buffer.op).name, "b");
        add(parameter_text(static_cast<int>(b)));
      }
    }
    if (!canonical_) heading();
    const std::string bounds = launch.blocks_per_sm > 0
                                   ? fmt::format("{}, {}", launch.block, launch.blocks_per_sm)
                                   : fmt::format("{}", launch.block);
    const std::string cluster = launch.cluster > 1 ? fmt::format("SW_CLUSTER({}) ", launch.cluster) : "";
    out_.open(fmt::format("extern \"C\" __global__ void {}__launch_bounds__({}) {}({})", cluster, bounds,
                          canonical_ ? "k" : kernel_.name, parameters));
  }

  /// What the kernel is launched with, takes and gives.
  void heading() {
    const KernelLaunch& launch = kernel_.launch;
    out_.line(fmt::format("// {}: grid {}, block {}, shared {} bytes, scratch {} bytes, {}{}", kernel_.name,
                          launch.grid, launch.block, launch.shared_bytes, launch.scratch_bytes,
                          counted(launch.grid_barriers, "grid barrier"),
                          launch.cluster > 1 ? fmt::format(", clusters of {} blocks", launch.cluster) : ""));
    for (const auto& [space, verb] :
         {std::pair{MemorySpace::kGlobalInput, "reads"}, std::pair{MemorySpace::kGlobalOutput, "writes"}}) {
      std::vector<std::string> names;
      for (const Buffer& buffer : kernel_.buffers)
        if (buffer.space == space)
          names.push_back(fmt::format("{} {}", computation_.node(buffer.op).name, to_text(buffer.shape)));
      if (!names.empty()) out_.line(fmt::format("// {} {}", verb, listed(std::move(names))));
    }
  }

  /// The first of an optimiser's hundreds.
  static std::string listed(std::vector<std::string> names) {
    constexpr std::size_t kMostNamed = 8;
    const std::size_t others = names.size() > kMostNamed ? names.size() - kMostNamed : 0;
    names.resize(names.size() - others);
    return fmt::format("{}{}", fmt::join(names, ", "),
                       others > 0 ? fmt::format(" and {} others", others) : "");
  }

  /// "  // text"; nothing in canonical form.
  std::string remark(const std::string& text) const { return canonical_ ? "" : "  // " + text; }

  std::vector<std::string> phase_names(const Phase& phase) const {
    std::vector<std::string> result;
    for (const TaskLoop& loop : phase.loops)
      for (const Step& step : loop.steps)
        for (const Root& root : step.roots) result.push_back(computation_.node(root.op).name);
    return result;
  }

  void places() {
    if (kernel_.launch.shared_bytes > 0) out_.line("extern __shared__ __align__(16) unsigned char shared[];");
    for (std::size_t b = 0; b < kernel_.buffers.size(); ++b) {
      const Buffer& buffer = kernel_.buffers[b];
      const bool in_shared = buffer.space == MemorySpace::kShared;
      if (table_.holds[b] || (!in_shared && buffer.space != MemorySpace::kScratch)) continue;
      if (in_shared && buffer.elements == 0) continue;
      const bool staged = buffer.stages > 1;  // each task has its part (declare_stages)
      places_.buffers[b] =
          names_.make(computation_.node(buffer.op).name, "b", staged ? "_tiles" : suffix(buffer));
      out_.line(fmt::format("{0}* const {1} = ({0}*)({2} + {3});", element_type(buffer), places_.buffers[b],
                            in_shared ? "shared" : "scratch", buffer.offset));
    }
    for (std::size_t b = 0; b < kernel_.buffers.size(); ++b)
      if (table_.pointer_of[b] >= 0)
        places_.buffers[b] = names_.make(computation_.node(kernel_.buffers[b].op).name, "b");
  }

  const Buffer& buffer(int b) const { return kernel_.buffers[static_cast<std::size_t>(b)]; }
  std::string& place(int b) { return places_.buffers[static_cast<std::size_t>(b)]; }

  static std::string_view suffix(const Buffer& buffer) {
    if (buffer.tile) return "_tile";
    if (buffer.space == MemorySpace::kShared) return "_shared";
    if (buffer.space == MemorySpace::kScratch) return buffer.partials ? "_partials" : "_scratch";
    return "";
  }

  /// Partials are accumulators, not elements; those of pred stay bytes.
  static std::string_view element_type(const Buffer& buffer) {
    const DType dtype = buffer.shape.dtype;
    return buffer.partials && is_floating(dtype) ? value_type(dtype) : storage_type(dtype);
  }

  /// "const float*", "float*": without a promise that nothing else names the same memory.
  static std::string pointer_type(const Buffer& buffer) {
    const bool input = buffer.space == MemorySpace::kGlobalInput;
    return fmt::format("{}{}*", input ? "const " : "", element_type(buffer));
  }

  /// Nothing the kernel writes overlaps its inputs; outputs may be read back after a barrier.
  std::string parameter_text(int b) {
    const bool input = buffer(b).space == MemorySpace::kGlobalInput;
    return fmt::format("{}{} {}", pointer_type(buffer(b)), input ? " __restrict__" : "", place(b));
  }

  /// The pointers a loop needs of those that the table has.
  void take_pointers(const TaskLoop& loop) {
    for (const int b : buffers_named(loop))
      if (const int p = table_.pointer_of[static_cast<std::size_t>(b)]; p >= 0)
        out_.line(fmt::format("{0} const {1} = ({0})pointers[{2}];", pointer_type(buffer(b)), place(b), p));
  }

  static bool uses_workspace(const Kernel& kernel, const Step& step, const Root& root) {
    return root.store != StoreKind::kElement && root.store != StoreKind::kAcross &&
           root.store != StoreKind::kGather &&
           reduction_workspace_bytes(step.mapping, kernel.launch.block, DType::kF32) > 0;
  }

  static bool uses_shared(const Kernel& kernel, const TaskLoop& loop) {
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
  static bool within_warps(const Kernel& kernel, const TaskLoop& loop) {
    std::map<int, const ThreadMapping*> written;  // buffers of shared memory
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
      if ((step.rows && !step.by_all) || step.mapping.kind != MappingKind::kRowPack ||
          step.mapping.threads_per_row > kWarp)
        return false;
      return std::all_of(step.values.begin(), step.values.end(), [&](const Value& value) {
        return value.buffer < 0 || (value.local && value.depth > 0) ||
               kernel.buffers[static_cast<std::size_t>(value.buffer)].space != MemorySpace::kShared;
      });
    });
  }

  void barrier(bool of_warp = false) {
    out_.line(of_warp ? "sw_warp_barrier();" : "__syncthreads();");
    if (!of_warp) shared_.workspace = SharedState::kFree;
  }

  void print_loop(const TaskLoop& loop) {
    if (loop.tasks <= 0) return;
    const bool across = !loop.across.empty();  // its partials go through the workspace
    const bool shared = uses_shared(kernel_, loop) || across;
    // What an earlier loop of this phase on the same blocks still reads must not be overwritten.
    if (shared && std::any_of(touched_.begin(), touched_.end(),
                              [&](const TaskLoop* earlier) { return overlap(*earlier, loop); })) {
      barrier();
      touched_.clear();
    }
    if (shared) shared_ = {};
    const bool several = loop.tasks_per_block > 1;
    if (loop.entries.empty()) {
      open_range(loop);
      if (across && !canonical_) out_.line("// What the thread's columns come to, over all its rows.");
      declare_across(loop, places_, names_, computation_, out_);
      open_tasks(loop);
      print_steps(loop, several && shared);
      if (several && keeps_over_tasks(kernel_, loop)) out_.close();
      if (several) out_.close();
      if (across) {
        barrier();
        flush_across(kernel_, loop, places_, loop.cluster > 1 ? "cluster" : block_text(loop), computation_,
                     out_);
      }
      out_.close();
    } else {
      print_shared_body(loop, several, shared);
    }
    if (shared && (!several || within_warps(kernel_, loop) || across)) touched_.push_back(&loop);
  }

  /// The steps of a task. What the next one overwrites in shared memory has been read if it `ends_apart`.
  void print_steps(const TaskLoop& loop, bool ends_apart) {
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
    bool waits = loop.stages > 0;  // for this task's copies
    if (waits) {
      if (loop.stages > 1) {
        ask_for(loop, fmt::format("task + {}", loop.stages - 1),
                fmt::format("stage > 0 ? stage - 1 : {}", loop.stages - 1));
        declare_stage(loop, "stage", Filling::kInTask);
      } else {
        print_steps_of(loop, Filling::kAhead);
        out_.line("sw_commit_copies();");
      }
      if (loop.tasks_per_block == 1) print_steps_of(loop, Filling::kOnce);
    }
    const auto wait = [&] {
      if (waits) out_.line(fmt::format("sw_wait_for_copies<{}>();", loop.stages - 1));
      waits = false;
    };
    const Step* before = nullptr;
    int stage = loop.steps.empty() ? 0 : loop.steps.front().stage;
    for (const Step& step : loop.steps) {
      if (step.stage != stage) {
        wait();
        barrier(of_warp);
      }
      stage = step.stage;
      if (step.filling == Filling::kInTask) print_step(loop, step, before);
    }
    wait();
    if (ends_apart) barrier(of_warp);
    places_ = outside;
  }

  void print_step(const TaskLoop& loop, const Step& step, const Step*& before) {
    if (step.mapping.rows * step.mapping.cols == 0 && !has_empty_reduction(step)) return;
    comment(step, before);
    before = &step;
    out_.block();
    StepPrinter(graph_, kernel_, loop, step, rows_name(loop, step), places_, names_, canonical_, out_,
                shared_)
        .print();
    out_.close();
  }

  // ---- tiles that are filled ahead

  void print_steps_of(const TaskLoop& loop, Filling filling) {
    const Step* before = nullptr;
    for (const Step& step : loop.steps)
      if (step.filling == filling) print_step(loop, step, before);
  }

  /// Asks for the tiles of the block's task `ahead`, if it has that many: those of that stage. The group of
  /// copies may be empty.
  void ask_for(const TaskLoop& loop, const std::string& ahead, const std::string& stage) {
    const PlaceNames outside = places_;
    out_.block();
    out_.line(fmt::format("const {} ahead = {};", index_, ahead));
    out_.open("if (ahead < end_task)");
    out_.line(fmt::format("const int its_stage = {};", stage));
    declare_stage(loop, "its_stage", Filling::kAhead);
    out_.line(fmt::format("const {} task = ahead;", index_));
    print_steps_of(loop, Filling::kAhead);
    out_.close();
    out_.line("sw_commit_copies();");
    out_.close();
    places_ = outside;
  }

  /// The tiles that a task's steps of this filling name; those of the block take the stages in turn.
  void declare_stage(const TaskLoop& loop, const std::string& stage, Filling filling) {
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

  /// What is asked for before a block's first task of several.
  void ask_for_first(const TaskLoop& loop) {
    if (loop.stages == 0) return;
    if (loop.stages > 1) {
      out_.open(fmt::format("for (int n = 0; n < {}; ++n)", loop.stages - 1));
      ask_for(loop, "first_task + n", "n");
      out_.close();
    }
    if (std::none_of(loop.steps.begin(), loop.steps.end(),
                     [](const Step& step) { return step.filling == Filling::kOnce; }))
      return;
    out_.block();
    out_.line(fmt::format("const {} task = first_task;", index_));
    print_steps_of(loop, Filling::kOnce);
    out_.close();
  }

  /// Where the blocks of a cluster run a task together: tells the others that this one has left the task
  /// before, or has begun, and that its workspace may be written to. They wait for it only when they have
  /// something to send.
  void arrive_in_cluster(const TaskLoop& loop) {
    const bool reduces = std::any_of(loop.steps.begin(), loop.steps.end(), [&](const Step& step) {
      return std::any_of(step.roots.begin(), step.roots.end(),
                         [](const Root& root) { return root.store == StoreKind::kReduce; });
    });
    shared_.cluster_arrived = loop.cluster > 1 && reduces;
    if (shared_.cluster_arrived)
      out_.line(fmt::format("sw_cluster_arrive();{}",
                            remark("the other blocks of the cluster may write to this one's workspace")));
  }

  static bool overlap(const TaskLoop& a, const TaskLoop& b) {
    if (!a.entries.empty() || !b.entries.empty()) return true;
    return a.first_block < b.first_block + b.blocks && b.first_block < a.first_block + a.blocks;
  }

  /// Rows without elements still reduce to their initial value.
  static bool has_empty_reduction(const Step& step) {
    return step.mapping.rows > 0 && step.mapping.cols == 0;
  }

  /// The block's place in the loop's range.
  static std::string block_text(const TaskLoop& loop) {
    return loop.first_block > 0 ? fmt::format("((int)blockIdx.x - {})", loop.first_block)
                                : std::string("(int)blockIdx.x");
  }

  void open_range(const TaskLoop& loop) {
    const std::string block = block_text(loop);
    std::string inside;
    if (loop.first_block > 0) inside = fmt::format("{} >= 0", block);
    if (loop.first_block + loop.blocks < kernel_.launch.grid)
      inside += fmt::format("{}{} < {}", inside.empty() ? "" : " && ", block, loop.blocks);
    if (inside.empty())
      out_.block();
    else
      out_.open(fmt::format("if ({})", inside));
    take_pointers(loop);
  }

  void open_tasks(const TaskLoop& loop) {
    const std::int64_t v = loop.tasks_per_block, takers = loop.blocks / loop.cluster;
    std::string block = block_text(loop);
    if (loop.cluster > 1) {
      out_.line(fmt::format("const int cluster = {0} / {1}, rank = {0} % {1};{2}", block, loop.cluster,
                            remark("its blocks share each row")));
      block = "cluster";
    }
    if (v == 1) {
      out_.line(fmt::format("const {} task = {};", index_, block));
      return;
    }
    if (loop.tasks % takers == 0) {
      out_.line(fmt::format("const {} first_task = {}{} * {}, end_task = first_task + {};", index_,
                            kernel_.wide_indices ? "(long long)" : "", block, v, v));
    } else {
      // Block numbers times tasks may exceed 32 bits where neither does.
      const bool wide = loop.tasks * takers > std::numeric_limits<std::int32_t>::max();
      const auto share = [&](const std::string& b) {
        const std::string product = fmt::format("{}{} * {}", wide ? "(long long)" : "", b, loop.tasks);
        return fmt::format("{}({} / {})", wide && !kernel_.wide_indices ? "(int)" : "", product, takers);
      };
      out_.line(fmt::format("const {} first_task = {};", index_, share(block)));
      out_.line(fmt::format("const {} end_task = {};", index_, share(fmt::format("({} + 1)", block))));
    }
    ask_for_first(loop);
    if (!keeps_over_tasks(kernel_, loop)) {
      if (loop.stages < 2)
        out_.open(fmt::format("for ({} task = first_task; task < end_task; ++task)", index_));
      else
        out_.open(
            fmt::format("for ({0} task = first_task, stage = 0; task < end_task; ++task, stage = stage < "
                        "{1} ? stage + 1 : 0)",
                        index_, loop.stages - 1));
      return;
    }
    // Values kept for every task lie by its number in the block; arrays in registers need constant indices.
    out_.line(fmt::format("#pragma unroll {}", in_registers(loop) ? v : 1));
    out_.open(fmt::format("for (int turn = 0; turn < {}; ++turn)", v));
    out_.line(fmt::format("const {} task = first_task + turn;", index_));
    if (loop.stages > 1) out_.line(fmt::format("const int stage = turn % {};", loop.stages));
    out_.open(loop.tasks % takers == 0 ? "" : "if (task < end_task)");
  }

  bool in_registers(const TaskLoop& loop) const {
    return std::any_of(kernel_.kept.begin(), kernel_.kept.end(), [&](const Kept& kept) {
      return kept.group >= 0 && kept.shared_offset < 0 &&
             std::any_of(loop.steps.begin(), loop.steps.end(),
                         [&](const Step& step) { return step.group == kept.group; });
    });
  }

  // ---- loops with entries

  /// What the rows of a step are called in a body that entries share; "" where they are known.
  std::string rows_name(const TaskLoop& loop, const Step& step) const {
    if (loop.entries.empty()) return "";
    const int field = layout_->rows_field[static_cast<std::size_t>(&step - loop.steps.data())];
    return field < 0 ? "" : field_names_[static_cast<std::size_t>(field)];
  }

  /// One body for all entries, a function above the kernel; here, the loop over a block's entries.
  void print_shared_body(const TaskLoop& loop, bool several_tasks, bool shared) {
    layout_ = &table_.loops[next_table_++];
    const std::string& first = computation_.node(loop.steps.front().roots.front().op).name;
    const std::string entry_type = names_.make(first, "E", "_entry");
    const std::string body = names_.make(first, "f", "_body");
    const PlaceNames outside = places_;
    field_names_.clear();
    for (const EntryField& field : layout_->fields) field_names_.push_back(field_name(loop, field));

    std::swap(out_, bodies_);
    print_entry_type(loop, entry_type);
    open_body(loop, entry_type, body, shared);
    open_entry_tasks(loop);
    print_steps(loop, shared && (several_tasks || !layout_->one_a_block));
    if (several_tasks) out_.close();
    out_.close();
    out_.line("");
    std::swap(out_, bodies_);
    places_ = outside;
    call_body(loop, entry_type, body, shared);
  }

  std::string field_name(const TaskLoop& loop, const EntryField& field) {
    using Kind = EntryField::Kind;
    switch (field.kind) {
      case Kind::kPointer:
      case Kind::kSharedOffset: {
        const Buffer& own = buffer(loop.own_buffers[static_cast<std::size_t>(field.index)]);
        return names_.make(computation_.node(own.op).name, "b", suffix(own));
      }
      case Kind::kRows:
        return field.index == 0 ? "rows" : fmt::format("rows_{}", field.index + 1);
      case Kind::kTasks:
        return "tasks";
      case Kind::kBlocks:
        return "blocks";
      case Kind::kFirstBlock:
        return "first_block";
    }
    return "";
  }

  std::string field_type(const TaskLoop& loop, const EntryField& field) const {
    if (field.kind == EntryField::Kind::kPointer)
      return pointer_type(buffer(loop.own_buffers[static_cast<std::size_t>(field.index)]));
    return field.wide ? "long long" : "int";
  }

  void print_entry_type(const TaskLoop& loop, const std::string& type) {
    using Kind = EntryField::Kind;
    if (!canonical_)
      out_.line(fmt::format("// {} groups of {} share a body; what each has of its own:", loop.entries.size(),
                            kernel_.name));
    out_.open(fmt::format("struct {}", type));
    for (std::size_t f = 0; f < layout_->fields.size(); ++f) {
      const EntryField& field = layout_->fields[f];
      std::string note;
      if (field.kind == Kind::kSharedOffset) note = "  // bytes into shared memory";
      if (field.kind == Kind::kFirstBlock)
        note = "  // it has the tasks of blocks [first_block, first_block + blocks)";
      out_.line(fmt::format("{} {};{}", field_type(loop, field), field_names_[f], canonical_ ? "" : note));
    }
    out_.close(";");
  }

  /// What the body takes beside the entry: the places all entries have in common.
  std::vector<std::string> common_places(const TaskLoop& loop, bool shared, bool declared) {
    std::vector<std::string> texts;
    if (shared) texts.emplace_back(declared ? "unsigned char* shared" : "shared");
    for (const int b : buffers_named(loop)) {
      const bool input = buffer(b).space == MemorySpace::kGlobalInput;
      const bool argument = input && table_.pointer_of[static_cast<std::size_t>(b)] < 0;
      texts.push_back(
          declared ? (argument ? parameter_text(b) : fmt::format("{} {}", pointer_type(buffer(b)), place(b)))
                   : place(b));
    }
    std::set<int> kept;
    for (const Step& step : loop.steps)
      for (const int v : step.order) {
        const Value& value = step.values[static_cast<std::size_t>(v)];
        if (value.kept >= 0) kept.insert(value.kept);
        if (value.restored >= 0) kept.insert(value.restored);
      }
    for (const int k : kept) {
      const Kept& value = kernel_.kept[static_cast<std::size_t>(k)];
      const std::string& name = places_.kept[static_cast<std::size_t>(k)];
      texts.push_back(declared ? fmt::format("{} (&{})[{}]", value_type(value.dtype), name, value.elements)
                               : name);
    }
    return texts;
  }

  void open_body(const TaskLoop& loop, const std::string& type, const std::string& body, bool shared) {
    using Kind = EntryField::Kind;
    std::string parameters = fmt::format("const {}& entry, int block", type);
    for (const std::string& text : common_places(loop, shared, true)) parameters += ", " + text;
    out_.open(fmt::format("static __device__ __forceinline__ void {}({})", body, parameters));
    out_.line("const int thread = threadIdx.x;");
    for (std::size_t f = 0; f < layout_->fields.size(); ++f) {
      const EntryField& field = layout_->fields[f];
      const std::string& name = field_names_[f];
      if (field.kind == Kind::kPointer || field.kind == Kind::kSharedOffset)
        place(loop.own_buffers[static_cast<std::size_t>(field.index)]) = name;
      if (field.kind == Kind::kSharedOffset) {
        const std::string_view element =
            element_type(buffer(loop.own_buffers[static_cast<std::size_t>(field.index)]));
        out_.line(fmt::format("{0}* const {1} = ({0}*)(shared + entry.{1});", element, name));
      } else if (field.kind == Kind::kPointer || field.kind == Kind::kRows) {
        out_.line(fmt::format("{}{} {} = entry.{};", field.kind == Kind::kRows ? "const " : "",
                              field_type(loop, field) + (field.kind == Kind::kPointer ? " const" : ""), name,
                              name));
      }
    }
  }

  /// As open_tasks: balanced shares of an entry's tasks.
  void open_entry_tasks(const TaskLoop& loop) {
    if (loop.tasks_per_block == 1) {
      out_.line(fmt::format("const {} task = block;", index_));
      return;
    }
    const bool wide = std::any_of(loop.entries.begin(), loop.entries.end(), [](const LoopEntry& entry) {
      return entry.tasks * entry.blocks > std::numeric_limits<std::int32_t>::max();
    });
    const auto share = [&](const char* block) {
      return fmt::format("({})({}{} * entry.tasks / entry.blocks)", index_, wide ? "(long long)" : "", block);
    };
    out_.line(fmt::format("const {0} first_task = {1}, end_task = {2};", index_, share("block"),
                          share("(block + 1)")));
    out_.open(fmt::format("for ({} task = first_task; task < end_task; ++task)", index_));
  }

  void call_body(const TaskLoop& loop, const std::string& type, const std::string& body, bool shared) {
    std::string arguments;
    for (const std::string& text : common_places(loop, shared, false)) arguments += ", " + text;
    out_.block();
    take_pointers(loop);
    out_.line(fmt::format("const {0}* const entries = (const {0}*)(table + {1});", type, layout_->entries));
    const std::string first = fmt::format("((const int*)(table + {}))[blockIdx.x]", layout_->first_entries);
    if (layout_->one_a_block) {
      out_.line(fmt::format("const int e = {};", first));
      out_.open(fmt::format("if (e < {})", loop.entries.size()));
      out_.line(fmt::format("{}(entries[e], (int)blockIdx.x - entries[e].first_block{});", body, arguments));
    } else {
      out_.open(fmt::format("for (int e = {}; e < {}; ++e)", first, loop.entries.size()));
      out_.line("const int block = (int)blockIdx.x - entries[e].first_block;");
      out_.line("if (block < 0 || block >= entries[e].blocks) break;");
      out_.line(fmt::format("{}(entries[e], block{});", body, arguments));
    }
    out_.close();
    out_.close();
  }

  /// What the step makes, and how its group is dealt to threads unless the step before is of the same.
  void comment(const Step& step, const Step* before) {
    if (canonical_) return;
    const Group& group = kernel_.groups[static_cast<std::size_t>(step.group)];
    std::string text;
    for (const Root& root : step.roots) text += (text.empty() ? "" : ", ") + computation_.node(root.op).name;
    if (step.rows) text += step.by_all ? ", of each row by all its threads" : ", of each row by a thread";
    if (before == nullptr || before->group != step.group)
      text +=
          fmt::format(" (group of {}; {})", computation_.node(group.dominant).name, to_text(group.mapping));
    out_.line("// " + text);
  }

  const Graph& graph_;
  const Computation& computation_;
  const Kernel& kernel_;
  bool canonical_, dependent_;
  Namer names_;
  const char* index_;
  KernelTable table_;
  Writer out_, bodies_;
  PlaceNames places_;
  std::size_t next_table_ = 0;            ///< the next of table_.loops
  const LoopTable* layout_ = nullptr;     ///< of the loop being printed, if it has entries
  std::vector<std::string> field_names_;  ///< likewise
  SharedState shared_;
  std::vector<const TaskLoop*> touched_;  ///< loops whose shared memory some block may still read
};

}  // namespace

std::string to_cuda(const Graph& graph, const Kernel& kernel, bool canonical, bool dependent) {
  return KernelPrinter(graph, kernel, canonical, dependent).print();
}

}  // namespace stitchwork
