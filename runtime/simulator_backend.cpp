#include "runtime/simulator_backend.h"

#include "simulator/machine/device_memory.h"

namespace stitchwork {

SimulatorBackend::SimulatorBackend(const Device& device, sim::CacheMode cache,
                                   const sim::Sanitizers& sanitize, int host_threads, bool sampled,
                                   bool lines)
    : device_(device), tiled_(std::in_place, device), memory_(sanitize.init) {
  if (cache == sim::CacheMode::kWarm) l2_ = sim::make_l2_state(device);
  options_.cache = cache;
  options_.l2 = l2_.get();
  options_.host_threads = host_threads;
  options_.sanitize = sanitize;
  options_.sampled = sampled;
  options_.lines = lines;
}

void SimulatorBackend::make_products_by(const std::optional<TiledProduct>& product,
                                        const CompileOptions& compile) {
  products_ = product;
  tiled_.emplace(device_, compile);
}

std::optional<Timed> SimulatorBackend::call(const Computation& computation, const Node& node,
                                            const LibraryCall& call) {
  const std::optional<TiledProduct>& by = call.by ? call.by : products_;
  if (!by || node.op != Op::kDot || call.bias || call.addend || call.relu) return std::nullopt;
  const std::optional<TypedGemm> product = typed_gemm(computation, node, call.transposed);
  if (!product || !makes_product(product->operands, product->result)) return std::nullopt;
  const std::size_t left = product->gemm.exchanged ? 1 : 0;
  const std::vector<Launched> launched = make_product(
      *this, *tiled_, *product, *by, {call.operands[left], call.operands[1 - left], call.result});
  Timed timed;
  timed.by = name(*by);
  timed.us = product_us(device_, launched);
  for (const Launched& one : launched) {
    if (!one.findings.empty()) throw HostReadError{one.findings[0]};
    timed.sampled = timed.sampled || one.sampled;
    timed.sanitized += one.sanitized;
  }
  return timed;
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
