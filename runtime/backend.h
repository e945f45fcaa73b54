// Where an executable runs: device memory, launches and library calls, of the simulator or of a GPU.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "codegen/executable.h"
#include "codegen/gemm/tiled_product.h"
#include "simulator/simulator.h"

namespace stitchwork {

using DeviceAddress = std::uint64_t;

/// How a number was obtained; it never loses that label.
/// Sampled is simulated, a few waves of blocks in place of all.
enum class Method : std::uint8_t { kModelled, kSimulated, kSampled, kMeasured, kImported };
std::string_view name(Method method);

/// How device memory is used, which says what may share bytes with it where steps are repeated.
enum class MemoryUse : std::uint8_t {
  kValue,   ///< of steps; whoever releases it knows that none of them runs any more (BufferLife)
  kSource,  ///< a parameter, constant, table, barrier or value made once: written once, and found so by steps
            ///< that are repeated
  kStep,    ///< of one step: steps of another stream have their own
};

/// When a launch or call is asked for its time after the run, `id` names it.
struct Timed {
  double us = 0;
  std::size_t id = 0;
  std::string by;  ///< of a library call: what made it, and why not another: "cuBLAS"
  // Of a library call that the simulator made.
  bool sampled = false;
  sim::SanitizerCounts sanitized;
};

/// Where a library call reads and writes. `transposed`: the dimensions of the transpose of its product that
/// it stores; empty: the product itself. `bias`, `addend`, `relu`: what it does to a product or convolution
/// then (analysis/plan/epilogue.h).
struct LibraryCall {
  std::vector<DeviceAddress> operands;
  DeviceAddress result = 0;
  std::vector<std::int64_t> transposed;
  std::optional<DeviceAddress> bias, addend;
  bool relu = false;
  std::optional<TiledProduct>
      by;  ///< the kernel of ours that makes the product; nothing: as the backend does
};

/// A program's steps from the first to the last, repeated without the host in between.
struct Repeated {
  int times = 0;
  double stream_us = 0;            ///< median of a pass; steps launched one by one
  std::optional<double> graph_us;  ///< likewise, as a CUDA graph; empty where it cannot be captured
  /// Where steps are timed in their pass: of the whole with an event behind each step, median; and of the
  /// pass that took it when each step of the plan had ended, from the pass's beginning.
  double points_us = 0;
  std::vector<double> ends_us;
};

/// What one launch did.
struct Launched {
  sim::Counters counters;  ///< all zero where the method is not simulated
  int registers = 0;
  std::optional<std::int64_t> spill_bytes;
  Timed time;
  KernelTime parts;  ///< what the time is made of; all zero where the method is not simulated
  std::vector<NotModelled> not_modelled;  ///< what that leaves out; empty likewise
  bool sampled = false;                   ///< a few waves of blocks stand for all
  double bytes_in_flight = 0;             ///< an SM; 0 where the method is not simulated
  sim::SanitizerCounts sanitized;
  std::vector<sim::Finding> findings;
  std::vector<sim::LineCounters> lines;  ///< of its PTX, where asked for
};

/// The host was about to read device bytes that nothing has written, or what a kernel of a library call did
/// was wrong. Thrown by backends that know; it ends the run as a finding in a kernel does.
struct HostReadError {
  sim::Finding finding;
};

class Backend {
 public:
  virtual ~Backend() = default;
  /// Of the times of its launches.
  virtual Method method() const = 0;

  /// Before the steps of a program: what the one before left is forgotten, its memory given back.
  virtual void begin_program() {}

  /// Whether launches compute all their results. Where not, library calls are not made, and no output is
  /// read.
  virtual bool computes_results() const { return true; }

  /// Whose launches, calls, copies and memsets those until the next call are: step `index` of the plan, on
  /// `stream`, behind the steps `waits` of other streams. They are done now, one after the other in the order
  /// of these calls; a backend that repeats them does it on streams. Of loops and branches alone the step
  /// that runs them is told. `once`: they are no part of what is repeated.
  virtual void begin_step(std::size_t index, int stream, std::span<const int> waits, bool once) {
    static_cast<void>(index), static_cast<void>(stream), static_cast<void>(waits), static_cast<void>(once);
  }

  /// 256-byte aligned, contents undefined; `name` appears in errors and findings. Throws Error when the
  /// device has no memory left.
  virtual DeviceAddress allocate(std::size_t bytes, const std::string& name,
                                 MemoryUse use = MemoryUse::kValue) = 0;
  virtual void release(DeviceAddress address) = 0;
  virtual void write(DeviceAddress address, std::span<const std::byte> data) = 0;
  /// Throws HostReadError, as copy does.
  virtual void read(DeviceAddress address, std::span<std::byte> data) = 0;
  virtual void clear(DeviceAddress address, std::size_t bytes) = 0;
  virtual void copy(DeviceAddress to, DeviceAddress from, std::size_t bytes) = 0;

  /// Runs `kernel` with these pointers. Throws Error naming it where it cannot be launched.
  virtual Launched launch(const CompiledKernel& kernel, std::span<const DeviceAddress> arguments) = 0;

  /// Whether library calls are made where launches do not compute all their results, for their times.
  virtual bool times_calls() const { return false; }
  /// Makes the library call of `node`, or nothing where the backend does not know it and the CPU reference
  /// has to make it.
  virtual std::optional<Timed> call(const Computation& computation, const Node& node,
                                    const LibraryCall& call) {
    static_cast<void>(computation), static_cast<void>(node), static_cast<void>(call);
    return std::nullopt;
  }

  /// Called when the steps of the whole program have run and before its results are read: repeats them, where
  /// times come from that. `whole`: the host took no part in them.
  virtual void settle(bool whole) { static_cast<void>(whole); }
  /// After settle: the time of a launch or call, in us.
  virtual double time_us(const Timed& timed) const { return timed.us; }
  /// After settle: of the whole program, where that was repeated.
  virtual std::optional<Repeated> repeated() const { return std::nullopt; }

  /// Whether what is written once (parameters, constants, tables, barriers) keeps its place until the run
  /// ends, so that its launches can be repeated.
  virtual bool keeps_sources() const { return false; }
};

}  // namespace stitchwork
