// Any text is read or refused with a place; what is read runs, for a bounded number of instructions, or ends
// with a finding or a refusal: no crash, no hang, no memory beyond what a block may have.
#include <cstdint>
#include <cstdlib>

#include "core/base/error.h"
#include "simulator/simulator.h"

namespace stitchwork::sim {
namespace {

constexpr std::uint64_t kWarpInstructions = 20000;

/// Pointers for parameters of 8 bytes, a small number for others: kernels get as far as they can.
Argument argument_of(const ptx::ParameterInfo& parameter, DeviceAddress buffer) {
  Argument a = parameter.bytes == 8 ? Argument::pointer(buffer) : Argument::i32(64);
  a.bytes.resize(parameter.bytes);
  return a;
}

void run_kernels(const ptx::Module& module) {
  for (const ptx::KernelInfo& kernel : module.kernels()) {
    DeviceMemory memory;
    const DeviceAddress buffer = memory.adopt(std::vector<std::byte>(4096), "buffer");
    Launch launch{.kernel = kernel.name, .grid = {2, 1, 1}, .block = {48, 2, 1}};
    for (const ptx::ParameterInfo& p : kernel.parameters) launch.arguments.push_back(argument_of(p, buffer));
    Options options;
    options.host_threads = 1;
    options.max_warp_instructions = kWarpInstructions;
    try {
      run(module, launch, memory, device("v100"), options);
    } catch (const Error& error) {
      if (error.message().find("internal check failed") != std::string::npos) std::abort();
    }
    if (!kernel.uses_clusters && kernel.needs_sm == 0) continue;
    // In pairs of blocks, and with the sanitizers, which follow what these do with each other's memory, and
    // what mbarriers and bulk copies do.
    if (kernel.uses_clusters && !kernel.explicit_cluster) launch.cluster = Dim3{2, 1, 1};
    DeviceMemory tracked(true);
    const DeviceAddress zeros = tracked.adopt(std::vector<std::byte>(4096), "zeros");
    launch.arguments.clear();
    for (const ptx::ParameterInfo& p : kernel.parameters) launch.arguments.push_back(argument_of(p, zeros));
    try {
      options.sanitize = {.race = true, .init = true};
      run(module, launch, tracked, device("h100"), options);
    } catch (const Error& error) {
      if (error.message().find("internal check failed") != std::string::npos) std::abort();
    }
  }
}

void read(std::string_view text) {
  try {
    run_kernels(ptx::parse(text, "fuzz.ptx"));
  } catch (const Error& error) {
    // Bad input has a place, and is never this program's mistake.
    if (error.line() == 0 || error.message().find("internal check failed") != std::string::npos) std::abort();
  }
}

}  // namespace
}  // namespace stitchwork::sim

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  stitchwork::sim::read({reinterpret_cast<const char*>(data), size});
  return 0;
}
