// The PTX simulator as a backend.
#pragma once

#include <map>
#include <optional>

#include "runtime/backend.h"
#include "runtime/tiled_products.h"

namespace stitchwork {

class SimulatorBackend final : public Backend {
 public:
  SimulatorBackend(const Device& device, sim::CacheMode cache, const sim::Sanitizers& sanitize,
                   int host_threads, bool sampled = false, bool lines = false);

  /// Matrix products of library calls that name no kernel of ours are made by this one, simulated like
  /// others, where it makes them (makes_product, nothing added to them); else, and without, the CPU reference
  /// makes them.
  void make_products_by(const std::optional<TiledProduct>& product, const CompileOptions& compile);

  Method method() const override { return Method::kSimulated; }
  bool computes_results() const override { return !options_.sampled; }
  DeviceAddress allocate(std::size_t bytes, const std::string& name, MemoryUse use) override;
  void release(DeviceAddress address) override;
  void write(DeviceAddress address, std::span<const std::byte> data) override;
  void read(DeviceAddress address, std::span<std::byte> data) override;
  void clear(DeviceAddress address, std::size_t bytes) override;
  void copy(DeviceAddress to, DeviceAddress from, std::size_t bytes) override;
  Launched launch(const CompiledKernel& kernel, std::span<const DeviceAddress> arguments) override;
  bool times_calls() const override { return products_.has_value(); }
  std::optional<Timed> call(const Computation& computation, const Node& node,
                            const LibraryCall& call) override;

 private:
  /// Throws HostReadError where some of the bytes were never written, if the memory tracks that.
  void require_written(DeviceAddress address, std::size_t bytes);

  const Device& device_;
  std::optional<TiledProduct> products_;
  std::optional<TiledKernels> tiled_;  ///< always there
  sim::Options options_;
  sim::L2StatePtr l2_;
  sim::DeviceMemory memory_;
  std::map<std::string, ptx::Module> modules_;  ///< by source
};

}  // namespace stitchwork
