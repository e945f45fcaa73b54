#include "runtime/simulated_judge.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <utility>

#include "analysis/plan/assemble.h"
#include "core/base/error.h"
#include "core/index/buffer.h"
#include "runtime/device_buffer.h"
#include "runtime/simulator_backend.h"

namespace stitchwork {
namespace {

/// One launch on memory of its own.
Launched launch_alone(Backend& backend, const Computation& computation, const CompiledKernel& kernel) {
  std::map<NodeId, DeviceBuffer> buffers;
  const LaunchMemory memory = lay_out(backend, kernel, [&](NodeId op) {
    const NodeId owner = memory_of(computation, op);
    if (const auto known = buffers.find(owner); known != buffers.end()) return known->second.address();
    const Node& node = computation.node(owner);
    const auto bytes = static_cast<std::size_t>(std::max<std::int64_t>(1, buffer_shape(node).byte_size()));
    const DeviceBuffer& buffer = buffers.try_emplace(owner, backend, bytes, node.name).first->second;
    backend.clear(buffer.address(), bytes);
    return buffer.address();
  });
  return backend.launch(kernel, memory.arguments);
}

std::string key_of(const Device& device, const CompiledKernel& kernel) {
  const KernelLaunch& l = kernel.launch;
  return fmt::format("{} {} {} {} {} {}", device.id, kernel.source_sha256, l.grid, l.block, l.cluster,
                     l.shared_bytes);
}

}  // namespace

SimulatedJudge::SimulatedJudge(CompileOptions options) : options_(std::move(options)) {}

double SimulatedJudge::resolution() const {
  // A choice, not measured: two samples of one kernel's blocks are equal, so this breaks ties alone.
  constexpr double kSampled = 0.01;
  return kSampled;
}

KernelWorth SimulatedJudge::kernel(const Graph& graph, const Device& device, const KernelPlan& kernel) const {
  FusionPlan alone;
  alone.planner = "judged";
  alone.device = device.id;
  alone.kernels = {kernel};
  const Executable executable = compile(graph, device, alone, options_);
  const CompiledKernel& compiled = executable.kernels.at(0);
  return cache_.get(key_of(device, compiled), [&] {
    SimulatorBackend backend(device, sim::CacheMode::kCold, {}, 0, true);
    const Launched launched = launch_alone(backend, graph.entry_computation(), compiled);
    if (!launched.findings.empty())
      throw Error(fmt::format("kernel {}: {}", kernel_and_plan(alone, kernel), launched.findings[0].message));
    const sim::Counters& c = launched.counters;
    return KernelWorth{launched.time.us,
                       static_cast<double>(c.dram_read_transactions + c.dram_write_transactions),
                       static_cast<double>(c.l2_read_sectors + c.l2_write_sectors)};
  });
}

}  // namespace stitchwork
