// A kernel's signature, its places in memory, its phases.
#include <fmt/ranges.h>

#include <algorithm>

#include "codegen/print/print_kernel.h"
#include "core/base/format.h"

namespace stitchwork {
namespace {

/// The first of an optimiser's hundreds.
std::string listed(std::vector<std::string> names) {
  // A choice, not measured: a comment of more is not read.
  constexpr std::size_t kMostNamed = 8;
  const std::size_t others = names.size() > kMostNamed ? names.size() - kMostNamed : 0;
  names.resize(names.size() - others);
  return fmt::format("{}{}", fmt::join(names, ", "), others > 0 ? fmt::format(" and {} others", others) : "");
}

bool in_bulk(const Phase& phase) {
  return std::any_of(phase.loops.begin(), phase.loops.end(), [](const TaskLoop& loop) { return loop.bulk; });
}

}  // namespace

std::string KernelPrinter::print() {
  signature();
  if (dependent_) wait_for_earlier_kernels();
  out_.line("const int thread = threadIdx.x;");
  if (table_.first_pointer >= 0)
    out_.line(fmt::format("void* const* const pointers = (void* const*)(table + {});", table_.first_pointer));
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
      // What earlier phases stored, in shared and in global memory, may be overwritten and read in bulk.
      if (std::any_of(kernel_.phases.begin() + static_cast<std::ptrdiff_t>(p), kernel_.phases.end(), in_bulk))
        out_.line("sw_fence_for_bulk();");
      out_.line("sw_grid_barrier(barrier);");
      touched_.clear();
      stored_.clear();
      shared_ = {};
    }
    if (!canonical_ && kernel_.phases.size() > 1)
      out_.line(fmt::format("// Phase {} of {}: {}", p + 1, kernel_.phases.size(),
                            listed(phase_names(kernel_.phases[p]))));
    for (const TaskLoop& loop : kernel_.phases[p].loops) print_loop(loop);
  }
  out_.close();
  return parts_.text.take() + bodies_.take() + out_.take();
}

/// Before anything is read or written in global memory: an earlier kernel may still read what this one
/// writes (buffers share bytes), and what the one before waited for has ended when that has. Later kernels
/// are let in from here on, when all blocks of this one have started: no more than two share the GPU (CUDA
/// C++ Programming Guide, "Programmatic Dependent Launch and Synchronization").
void KernelPrinter::wait_for_earlier_kernels() {
  out_.line(fmt::format("asm volatile(\"griddepcontrol.wait;\" ::: \"memory\");{}",
                        remark("until earlier kernels have ended and their results are seen")));
  out_.line(fmt::format("asm volatile(\"griddepcontrol.launch_dependents;\" ::: \"memory\");{}",
                        remark("the next kernel's blocks may start, and wait likewise")));
}

void KernelPrinter::signature() {
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
void KernelPrinter::heading() {
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

std::vector<std::string> KernelPrinter::phase_names(const Phase& phase) const {
  std::vector<std::string> result;
  for (const TaskLoop& loop : phase.loops)
    for (const Step& step : loop.steps)
      for (const Root& root : step.roots) result.push_back(computation_.node(root.op).name);
  return result;
}

void KernelPrinter::places() {
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

std::string_view KernelPrinter::suffix(const Buffer& buffer) {
  if (buffer.tile) return "_tile";
  if (buffer.space == MemorySpace::kShared) return "_shared";
  if (buffer.space == MemorySpace::kScratch) return buffer.partials ? "_partials" : "_scratch";
  return "";
}

/// Partials are accumulators, not elements; those of pred stay bytes.
std::string_view KernelPrinter::element_type(const Buffer& buffer) {
  const DType dtype = buffer.shape.dtype;
  return buffer.partials && is_floating(dtype) ? value_type(dtype) : storage_type(dtype);
}

/// "const float*", "float*": without a promise that nothing else names the same memory.
std::string KernelPrinter::pointer_type(const Buffer& buffer) {
  const bool input = buffer.space == MemorySpace::kGlobalInput;
  return fmt::format("{}{}*", input ? "const " : "", element_type(buffer));
}

/// Nothing the kernel writes overlaps its inputs; outputs may be read back after a barrier.
std::string KernelPrinter::parameter_text(int b) {
  const bool input = buffer(b).space == MemorySpace::kGlobalInput;
  return fmt::format("{}{} {}", pointer_type(buffer(b)), input ? " __restrict__" : "", place(b));
}

/// The pointers a loop needs of those that the table has.
void KernelPrinter::take_pointers(const TaskLoop& loop) {
  for (const int b : buffers_named(loop))
    if (const int p = table_.pointer_of[static_cast<std::size_t>(b)]; p >= 0)
      out_.line(fmt::format("{0} const {1} = ({0})pointers[{2}];", pointer_type(buffer(b)), place(b), p));
}

std::string to_cuda(const Graph& graph, const Schedule& kernel, bool canonical, bool dependent) {
  std::string text = KernelPrinter(graph, kernel, true, dependent).print();
  if (canonical) return text;
  const Identifiers printed = identifiers(text);
  return KernelPrinter(graph, kernel, false, dependent, &printed).print();
}

}  // namespace stitchwork
