#include <algorithm>
#include <limits>
#include <map>

#include "codegen/kernel.h"
#include "codegen/lower_context.h"
#include "codegen/print_step.h"
#include "core/error.h"

namespace stitchwork {
namespace {

constexpr int kWarp = 32;

class KernelPrinter {
 public:
  KernelPrinter(const Graph& graph, const Kernel& kernel, bool canonical)
      : graph_(graph),
        computation_(graph.entry_computation()),
        kernel_(kernel),
        canonical_(canonical),
        names_(canonical),
        index_(kernel.wide_indices ? "long long" : "int") {}

  std::string print() {
    signature();
    out_.line("const int thread = threadIdx.x;");
    places();
    for (const Kept& kept : kernel_.kept) {
      places_.kept.push_back(names_.make(computation_.node(kept.op).name, "r", "_kept"));
      if (kept.shared_offset >= 0)
        out_.line(fmt::format("{0}* const {1} = ({0}*)(shared + {2});", storage_type(kept.dtype),
                              places_.kept.back(), kept.shared_offset));
      else
        out_.line(fmt::format("{} {}[{}];", value_type(kept.dtype), places_.kept.back(),
                              kept.tasks * kept.elements));
    }
    for (std::size_t p = 0; p < kernel_.phases.size(); ++p) {
      if (p > 0) {
        out_.line("sw_grid_barrier(barrier);");
        touched_.clear();
        shared_ = {};
      }
      for (const TaskLoop& loop : kernel_.phases[p].loops) print_loop(loop);
    }
    out_.close();
    return out_.take();
  }

 private:
  void signature() {
    const KernelLaunch& launch = kernel_.launch;
    places_.buffers.resize(kernel_.buffers.size());
    std::string parameters;
    const auto add = [&](const std::string& parameter) {
      parameters += (parameters.empty() ? "" : ", ") + parameter;
    };
    for (const KernelArgument& argument : kernel_arguments(kernel_)) {
      using Kind = KernelArgument::Kind;
      if (argument.kind == Kind::kScratch) add("unsigned char* scratch");
      if (argument.kind == Kind::kBarrier) add("unsigned long long* barrier");
      if (argument.kind != Kind::kInput && argument.kind != Kind::kOutput) continue;
      const bool input = argument.kind == Kind::kInput;
      for (std::size_t b = 0; b < kernel_.buffers.size(); ++b) {
        const Buffer& buffer = kernel_.buffers[b];
        const MemorySpace space = input ? MemorySpace::kGlobalInput : MemorySpace::kGlobalOutput;
        if (buffer.space != space || buffer.op != argument.op) continue;
        places_.buffers[b] = names_.make(computation_.node(buffer.op).name, "b");
        // Nothing the kernel writes overlaps its inputs; outputs may be read back after a barrier.
        const std::string_view type = storage_type(buffer.shape.dtype);
        add(input ? fmt::format("const {}* __restrict__ {}", type, places_.buffers[b])
                  : fmt::format("{}* {}", type, places_.buffers[b]));
      }
    }
    if (!canonical_)
      out_.line(fmt::format("// {}: grid {}, block {}, shared {} bytes, scratch {} bytes, {} grid barriers",
                            kernel_.name, launch.grid, launch.block, launch.shared_bytes,
                            launch.scratch_bytes, launch.grid_barriers));
    const std::string bounds = launch.blocks_per_sm > 0
                                   ? fmt::format("{}, {}", launch.block, launch.blocks_per_sm)
                                   : fmt::format("{}", launch.block);
    out_.open(fmt::format("extern \"C\" __global__ void __launch_bounds__({}) {}({})", bounds,
                          canonical_ ? "k" : kernel_.name, parameters));
  }

  void places() {
    if (kernel_.launch.shared_bytes > 0) out_.line("extern __shared__ __align__(16) unsigned char shared[];");
    for (std::size_t b = 0; b < kernel_.buffers.size(); ++b) {
      const Buffer& buffer = kernel_.buffers[b];
      const bool in_shared = buffer.space == MemorySpace::kShared;
      if (!in_shared && buffer.space != MemorySpace::kScratch) continue;
      places_.buffers[b] = names_.make(computation_.node(buffer.op).name, "b",
                                       in_shared ? "_shared" : (buffer.partials ? "_partials" : "_scratch"));
      // Partials are accumulators, not elements; those of pred stay bytes.
      const DType dtype = buffer.shape.dtype;
      const std::string_view type =
          buffer.partials && is_floating(dtype) ? value_type(dtype) : storage_type(dtype);
      out_.line(fmt::format("{0}* const {1} = ({0}*)({2} + {3});", type, places_.buffers[b],
                            in_shared ? "shared" : "scratch", buffer.offset));
    }
  }

  static bool uses_shared(const Kernel& kernel, const TaskLoop& loop) {
    for (const Step& step : loop.steps) {
      for (const Value& value : step.values)
        if (value.buffer >= 0 &&
            kernel.buffers[static_cast<std::size_t>(value.buffer)].space == MemorySpace::kShared)
          return true;
      for (const Root& root : step.roots) {
        if (root.store != StoreKind::kElement) return true;  // the workspace
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
      if (step.rows || step.mapping.kind != MappingKind::kRowPack || step.mapping.threads_per_row > kWarp)
        return false;
      return std::all_of(step.values.begin(), step.values.end(), [&](const Value& value) {
        return value.buffer < 0 || (value.local && value.depth > 0) ||
               kernel.buffers[static_cast<std::size_t>(value.buffer)].space != MemorySpace::kShared;
      });
    });
  }

  void barrier(bool of_warp = false) {
    out_.line(of_warp ? "sw_warp_barrier();" : "__syncthreads();");
    if (!of_warp) shared_ = {};
  }

  void print_loop(const TaskLoop& loop) {
    if (loop.tasks <= 0) return;
    const bool shared = uses_shared(kernel_, loop);
    // What an earlier loop of this phase on the same blocks still reads must not be overwritten.
    if (shared && std::any_of(touched_.begin(), touched_.end(),
                              [&](const TaskLoop* earlier) { return overlap(*earlier, loop); })) {
      barrier();
      touched_.clear();
    }
    if (shared) shared_ = {};
    const bool several = loop.tasks_per_block > 1, of_warp = within_warps(kernel_, loop);
    open_loop(loop);
    int stage = loop.steps.empty() ? 0 : loop.steps.front().stage;
    for (const Step& step : loop.steps) {
      if (step.stage != stage) barrier(of_warp);
      stage = step.stage;
      if (step.mapping.rows * step.mapping.cols == 0 && !has_empty_reduction(step)) continue;
      comment(step);
      out_.block();
      StepPrinter(graph_, kernel_, step, places_, names_, canonical_, out_, shared_).print();
      out_.close();
    }
    if (several && shared) barrier(of_warp);
    close_loop(loop);
    if (shared && (!several || of_warp)) touched_.push_back(&loop);
  }

  static bool overlap(const TaskLoop& a, const TaskLoop& b) {
    return a.first_block < b.first_block + b.blocks && b.first_block < a.first_block + a.blocks;
  }

  /// Rows without elements still reduce to their initial value.
  static bool has_empty_reduction(const Step& step) {
    return step.mapping.rows > 0 && step.mapping.cols == 0;
  }

  void open_loop(const TaskLoop& loop) {
    const std::int64_t v = loop.tasks_per_block;
    const std::string block = loop.first_block > 0 ? fmt::format("((int)blockIdx.x - {})", loop.first_block)
                                                   : std::string("(int)blockIdx.x");
    std::string inside;
    if (loop.first_block > 0) inside = fmt::format("{} >= 0", block);
    if (loop.first_block + loop.blocks < kernel_.launch.grid)
      inside += fmt::format("{}{} < {}", inside.empty() ? "" : " && ", block, loop.blocks);
    if (inside.empty())
      out_.block();
    else
      out_.open(fmt::format("if ({})", inside));
    if (v == 1) {
      out_.line(fmt::format("const {} task = {};", index_, block));
      return;
    }
    if (loop.tasks % loop.blocks == 0) {
      out_.line(fmt::format("const {} first_task = {}{} * {}, end_task = first_task + {};", index_,
                            kernel_.wide_indices ? "(long long)" : "", block, v, v));
    } else {
      // Block numbers times tasks may exceed 32 bits where neither does.
      const bool wide = loop.tasks * loop.blocks > std::numeric_limits<std::int32_t>::max();
      const auto share = [&](const std::string& b) {
        const std::string product = fmt::format("{}{} * {}", wide ? "(long long)" : "", b, loop.tasks);
        return fmt::format("{}({} / {})", wide && !kernel_.wide_indices ? "(int)" : "", product, loop.blocks);
      };
      out_.line(fmt::format("const {} first_task = {};", index_, share(block)));
      out_.line(fmt::format("const {} end_task = {};", index_, share(fmt::format("({} + 1)", block))));
    }
    if (!keeps_over_tasks(kernel_, loop)) {
      out_.open(fmt::format("for ({} task = first_task; task < end_task; ++task)", index_));
      return;
    }
    // Values kept for every task lie by its number in the block; arrays in registers need constant indices.
    out_.line(fmt::format("#pragma unroll {}", in_registers(loop) ? v : 1));
    out_.open(fmt::format("for (int turn = 0; turn < {}; ++turn)", v));
    out_.line(fmt::format("const {} task = first_task + turn;", index_));
    out_.open(loop.tasks % loop.blocks == 0 ? "" : "if (task < end_task)");
  }

  bool in_registers(const TaskLoop& loop) const {
    return std::any_of(kernel_.kept.begin(), kernel_.kept.end(), [&](const Kept& kept) {
      return kept.group >= 0 && kept.shared_offset < 0 &&
             std::any_of(loop.steps.begin(), loop.steps.end(),
                         [&](const Step& step) { return step.group == kept.group; });
    });
  }

  void close_loop(const TaskLoop& loop) {
    if (loop.tasks_per_block != 1 && keeps_over_tasks(kernel_, loop)) out_.close();
    if (loop.tasks_per_block != 1) out_.close();
    out_.close();
  }

  void comment(const Step& step) {
    if (canonical_) return;
    const Group& group = kernel_.groups[static_cast<std::size_t>(step.group)];
    std::string stored;
    for (const Root& root : step.roots)
      stored += (stored.empty() ? "" : ", ") + computation_.node(root.op).name;
    out_.line(fmt::format("// {} (group of {}; {})", stored, computation_.node(group.dominant).name,
                          to_text(group.mapping)));
  }

  const Graph& graph_;
  const Computation& computation_;
  const Kernel& kernel_;
  bool canonical_;
  Namer names_;
  const char* index_;
  Writer out_;
  PlaceNames places_;
  SharedState shared_;
  std::vector<const TaskLoop*> touched_;  ///< loops whose shared memory some block may still read
};

}  // namespace

std::string to_cuda(const Graph& graph, const Kernel& kernel, bool canonical) {
  return KernelPrinter(graph, kernel, canonical).print();
}

}  // namespace stitchwork
