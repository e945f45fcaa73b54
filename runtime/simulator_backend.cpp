#include "runtime/simulator_backend.h"

#include "simulator/machine/device_memory.h"

namespace stitchwork {

SimulatorBackend::SimulatorBackend(const Device& device, sim::CacheMode cache,
                                   const sim::Sanitizers& sanitize, int host_threads, bool sampled,
                                   bool lines)
    : device_(device), memory_(sanitize.init) {
  if (cache == sim::CacheMode::kWarm) l2_ = sim::make_l2_state(device);
  options_.cache = cache;
  options_.l2 = l2_.get();
  options_.host_threads = host_threads;
  options_.sanitize = sanitize;
  options_.sampled = sampled;
  options_.lines = lines;
}

DeviceAddress SimulatorBackend::allocate(std::size_t bytes, const std::string& name, MemoryUse) {
  return memory_.allocate(bytes, name);
}

void SimulatorBackend::release(DeviceAddress address) { memory_.release(address); }

void SimulatorBackend::write(DeviceAddress address, std::span<const std::byte> data) {
  memory_.write(address, data);
}

void SimulatorBackend::read(DeviceAddress address, std::span<std::byte> data) {
  require_written(address, data.size());
  memory_.read(address, data);
}

void SimulatorBackend::require_written(DeviceAddress address, std::size_t bytes) {
  const std::optional<std::string> wrong = sim::unwritten(memory_, address, bytes);
  if (!wrong) return;
  sim::Finding finding;
  finding.kind = sim::FindingKind::kUninitialisedRead;
  finding.kernel = "the host";
  finding.message = *wrong;
  throw HostReadError{std::move(finding)};
}

void SimulatorBackend::clear(DeviceAddress address, std::size_t bytes) {
  memory_.fill(address, bytes, std::byte{0});
}

void SimulatorBackend::copy(DeviceAddress to, DeviceAddress from, std::size_t bytes) {
  require_written(from, bytes);
  std::vector<std::byte> values(bytes);
  memory_.read(from, values);
  memory_.write(to, values);
}

Launched SimulatorBackend::launch(const CompiledKernel& kernel, std::span<const DeviceAddress> arguments) {
  auto module = modules_.find(kernel.source_sha256);
  if (module == modules_.end())
    module = modules_.emplace(kernel.source_sha256, ptx::parse(kernel.ptx, kernel.entry + ".ptx")).first;
  sim::Launch launch;
  launch.kernel = kernel.entry;
  launch.grid = {static_cast<std::uint32_t>(kernel.launch.grid), 1, 1};
  launch.block = {static_cast<std::uint32_t>(kernel.launch.block), 1, 1};
  launch.dynamic_shared_bytes = static_cast<std::uint32_t>(kernel.launch.shared_bytes);
  for (const DeviceAddress address : arguments) launch.arguments.push_back(sim::Argument::pointer(address));
  sim::Options options = options_;
  options.registers_per_thread = kernel.registers;
  const auto run = [&] { return sim::run(module->second, launch, memory_, device_, options); };
  sim::LaunchResult ran;
  try {
    ran = run();
  } catch (const sim::CannotSample&) {
    options.sampled = false;
    ran = run();
  }
  Launched result;
  result.registers = kernel.registers > 0 ? kernel.registers : ran.counters.registers;
  result.counters = ran.counters;
  result.spill_bytes = kernel.spill_bytes;
  result.time.us = ran.time_us;
  result.parts = ran.time;
  ran.timed.spill_bytes = static_cast<double>(kernel.spill_bytes.value_or(0));
  result.not_modelled = not_modelled(device_, ran.timed);
  result.sampled = ran.sampled;
  result.bytes_in_flight = ran.bytes_in_flight;
  result.sanitized = ran.sanitized;
  result.findings = std::move(ran.findings);
  result.lines = std::move(ran.lines);
  return result;
}

}  // namespace stitchwork
