#include "codegen/kernel.h"

#include <algorithm>

#include "codegen/table.h"

namespace stitchwork {

std::vector<KernelArgument> kernel_arguments(const Schedule& kernel) {
  std::vector<KernelArgument> arguments;
  const KernelTable table = kernel_table(kernel);
  for (const MemorySpace space : {MemorySpace::kGlobalInput, MemorySpace::kGlobalOutput}) {
    const std::size_t first = arguments.size();
    for (std::size_t b = 0; b < kernel.buffers.size(); ++b) {
      const Buffer& buffer = kernel.buffers[b];
      if (buffer.space != space || table.holds[b]) continue;
      arguments.push_back(
          {space == MemorySpace::kGlobalInput ? KernelArgument::Kind::kInput : KernelArgument::Kind::kOutput,
           buffer.op});
    }
    std::sort(arguments.begin() + static_cast<std::ptrdiff_t>(first), arguments.end(),
              [](const KernelArgument& a, const KernelArgument& b) { return a.op < b.op; });
  }
  if (kernel.launch.scratch_bytes > 0) arguments.push_back({KernelArgument::Kind::kScratch, kNoNode});
  if (kernel.launch.grid_barriers > 0) arguments.push_back({KernelArgument::Kind::kBarrier, kNoNode});
  if (!table.bytes.empty()) arguments.push_back({KernelArgument::Kind::kTable, kNoNode});
  return arguments;
}

}  // namespace stitchwork
