#include "runtime/device_buffer.h"

#include <cstring>

namespace stitchwork {
namespace {

/// The kernel's table, with the addresses its buffers have in this run.
DeviceBuffer write_table(Backend& backend, const CompiledKernel& kernel, DeviceAddress scratch,
                         const BufferAddress& buffer) {
  std::vector<std::byte> bytes = kernel.table.bytes;
  for (const KernelTable::Pointer& pointer : kernel.table.pointers) {
    const bool in_scratch = pointer.kind == KernelArgument::Kind::kScratch;
    const DeviceAddress to =
        (in_scratch ? scratch : buffer(pointer.op)) + static_cast<std::uint64_t>(pointer.offset);
    std::memcpy(bytes.data() + pointer.at, &to, sizeof to);
  }
  DeviceBuffer table(backend, bytes.size(), kernel.entry + ".table", MemoryUse::kSource);
  backend.write(table.address(), bytes);
  return table;
}

}  // namespace

LaunchMemory lay_out(Backend& backend, const CompiledKernel& kernel, const BufferAddress& buffer) {
  LaunchMemory memory;
  for (const CompiledKernel::Argument& argument : kernel.arguments) {
    using Kind = CompiledKernel::Argument::Kind;
    switch (argument.kind) {
      case Kind::kInput:
      case Kind::kOutput:
        memory.arguments.push_back(buffer(argument.op));
        break;
      case Kind::kScratch:
        memory.scratch.emplace(backend, static_cast<std::size_t>(kernel.launch.scratch_bytes),
                               kernel.entry + ".scratch", MemoryUse::kStep);
        memory.arguments.push_back(memory.scratch->address());
        break;
      case Kind::kTable:
        memory.written.push_back(
            write_table(backend, kernel, memory.scratch ? memory.scratch->address() : 0, buffer));
        memory.arguments.push_back(memory.written.back().address());
        break;
      case Kind::kBarrier:
        memory.written.emplace_back(backend, 8, kernel.entry + ".grid_barrier", MemoryUse::kSource);
        memory.arguments.push_back(memory.written.back().address());
        backend.write(memory.arguments.back(), std::vector<std::byte>(8));
        break;
    }
  }
  return memory;
}

}  // namespace stitchwork
