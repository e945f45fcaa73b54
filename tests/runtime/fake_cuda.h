// A CUDA driver without a GPU: kernels run in the PTX simulator, calls are recorded, handles that were not
// given back are counted, and any call can be made to fail.
#pragma once

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "core/graph/literal.h"
#include "occupancy_model/occupancy.h"
#include "runtime/cuda/backend.h"
#include "simulator/simulator.h"
#include "tests/runtime/fake_streams.h"

namespace stitchwork::testing {

namespace cu = stitchwork::cuda;

/// Results of cuda.h. A call that was asked to fail gives the last, CUDA_ERROR_UNKNOWN.
inline constexpr cu::Result kIllegalAddress = 700, kLaunchTimeout = 702, kMisalignedAddress = 716,
                            kLaunchFailed = 719, kCooperativeLaunchTooLarge = 720, kAskedFor = 999;

struct FakeGpu {
  Device device;  ///< what the driver says it is
  std::size_t memory_bytes = std::size_t{1} << 30;
  std::map<std::string, int> fail_at;  ///< by member of Driver: the call (from 1) from which on it fails
  cu::Result failure = kAskedFor;      ///< and its result
  int dnn_algorithm = 1;               ///< of the fake cuDNN, which may be taken

  std::map<std::string, int> calls;    ///< by member of Driver
  std::map<std::string, int> live;     ///< handles not given back, by what they are: "module"; none are 0
  std::vector<sim::Finding> findings;  ///< what the simulator found in kernels
  cu::Result broken = cu::kSuccess;    ///< since then every call gives it, as a context with an error does
  std::vector<std::string> launched;   ///< "cooperative 147x1024", "dependent ..." or "plain ..."
  std::size_t allocated = 0;
  double elapsed_us = 0;  ///< of the work between the two last events

  // Behind the handles.
  sim::DeviceMemory memory;
  std::map<cu::Pointer, std::size_t> buffers;
  std::map<cu::Pointer, std::size_t> uploads;  ///< bytes that the host wrote, by address
  struct Kernel {
    ptx::Module module;
    std::string entry;
  };
  std::vector<std::unique_ptr<Kernel>> kernels;
  FakeStreams streams;
  std::vector<std::unique_ptr<FakeEvent>> events;
  double clock_us = 0;
};

inline FakeGpu*& fake_gpu() {
  static FakeGpu* gpu = nullptr;
  return gpu;
}

/// Counts the call; what it fails with, if it is to.
inline cu::Result refused(const char* member) {
  FakeGpu& gpu = *fake_gpu();
  const int n = ++gpu.calls[member];
  const auto at = gpu.fail_at.find(member);
  return at != gpu.fail_at.end() && n >= at->second ? gpu.failure : gpu.broken;
}
inline bool fails(const char* member) { return refused(member) != cu::kSuccess; }
#define FAKE_CALL(member) \
  if (const cu::Result refusal = refused(#member); refusal != cu::kSuccess) return refusal

/// A handle is given out (1) or back (-1).
inline void count_live(const std::string& kind, int change) {
  FakeGpu& gpu = *fake_gpu();
  if ((gpu.live[kind] += change) == 0) gpu.live.erase(kind);
}
/// Gives back a handle of `kind`, which never fails.
inline cu::Result give_back(const char* member, const char* kind) {
  ++fake_gpu()->calls[member];
  count_live(kind, -1);
  return cu::kSuccess;
}

/// What a launch that went wrong leaves the context with.
inline cu::Result result_of(sim::FindingKind kind) {
  switch (kind) {
    case sim::FindingKind::kOutOfBounds:
    case sim::FindingKind::kNullPointer:
      return kIllegalAddress;
    case sim::FindingKind::kMisaligned:
      return kMisalignedAddress;
    case sim::FindingKind::kGridDeadlock:
    case sim::FindingKind::kLivelock:
      return kLaunchTimeout;
    default:
      return kLaunchFailed;
  }
}

inline const char* result_name(cu::Result result) {
  switch (result) {
    case cu::kOutOfMemory:
      return "CUDA_ERROR_OUT_OF_MEMORY";
    case kIllegalAddress:
      return "CUDA_ERROR_ILLEGAL_ADDRESS";
    case kLaunchTimeout:
      return "CUDA_ERROR_LAUNCH_TIMEOUT";
    case kMisalignedAddress:
      return "CUDA_ERROR_MISALIGNED_ADDRESS";
    case kLaunchFailed:
      return "CUDA_ERROR_LAUNCH_FAILED";
    case kCooperativeLaunchTooLarge:
      return "CUDA_ERROR_COOPERATIVE_LAUNCH_TOO_LARGE";
    default:
      return "CUDA_ERROR_FAKE";
  }
}

/// What the driver says that a thread takes: the PTX's estimate within __launch_bounds__.
inline int registers_of(const FakeGpu::Kernel& kernel) {
  const ptx::KernelInfo& info = *kernel.module.kernel(kernel.entry);
  if (info.max_threads == 0) return info.estimated_registers;
  const std::int64_t threads = std::int64_t{std::max(info.min_blocks_per_sm, 1)} * info.max_threads;
  const std::int64_t bound = fake_gpu()->device.registers_per_sm / threads / 8 * 8;
  return static_cast<int>(std::clamp<std::int64_t>(bound, 16, std::max(16, info.estimated_registers)));
}
/// Blocks that an SM holds, and that the GPU holds in whole clusters.
inline int blocks_of_sm(const FakeGpu::Kernel& kernel, int threads, std::size_t shared) {
  const std::int64_t bytes =
      static_cast<std::int64_t>(shared) + kernel.module.kernel(kernel.entry)->static_shared_bytes;
  return occupancy(fake_gpu()->device, threads, registers_of(kernel), bytes).blocks_per_sm;
}
inline std::int64_t blocks_held(const FakeGpu::Kernel& kernel, int threads, std::size_t shared) {
  const Device& device = fake_gpu()->device;
  const int an_sm = blocks_of_sm(kernel, threads, shared);
  const auto cluster = static_cast<int>(kernel.module.kernel(kernel.entry)->cluster[0]);
  return cluster > 1 ? clusters_per_wave(device, an_sm, cluster) * cluster : std::int64_t{an_sm} * device.sms;
}

/// Streams are handles by number.
inline int number_of(cu::Stream stream) { return static_cast<int>(reinterpret_cast<std::uintptr_t>(stream)); }

/// Of a library, whose calls go to one stream: two streams would share its workspace.
struct FakeHandle {
  cu::Stream stream = nullptr;
  bool take(cu::Stream given) {
    if (stream == nullptr) stream = given;
    return stream == given;
  }
};

inline void enqueue(cu::Stream stream, std::function<void()> work) {
  fake_gpu()->streams.put(number_of(stream),
                          {.run = std::move(work), .records = nullptr, .waits = nullptr, .number = 0});
}

/// All memory but what the host has written: what a pass reads it has to have made itself.
inline void forget() {
  FakeGpu& gpu = *fake_gpu();
  std::map<cu::Pointer, std::vector<std::byte>> kept;
  for (const auto& [at, bytes] : gpu.uploads) {
    std::vector<std::byte>& values = kept[at];
    values.resize(bytes);
    gpu.memory.read(at, values);
  }
  for (const auto& [at, bytes] : gpu.buffers) gpu.memory.fill(at, bytes, std::byte{0xff});
  for (const auto& [at, values] : kept) gpu.memory.write(at, values);
}

inline cu::Result fake_launch(cu::Function function, unsigned grid, unsigned block, unsigned shared,
                              cu::Stream stream, void** arguments, const char* how) {
  FakeGpu& gpu = *fake_gpu();
  const auto& kernel = *reinterpret_cast<FakeGpu::Kernel*>(function);
  sim::Launch launch;
  launch.kernel = kernel.entry;
  launch.grid = {grid, 1, 1};
  launch.block = {block, 1, 1};
  launch.dynamic_shared_bytes = shared;
  const std::size_t count = kernel.module.kernel(kernel.entry)->parameters.size();
  for (std::size_t i = 0; i < count; ++i) {
    sim::DeviceAddress address = 0;
    std::memcpy(&address, arguments[i], sizeof address);
    launch.arguments.push_back(sim::Argument::pointer(address));
  }
  gpu.launched.push_back(fmt::format("{} {}x{}", how, grid, block));
  enqueue(stream, [&gpu, &kernel, launch] {
    if (gpu.broken != cu::kSuccess) return;
    const sim::LaunchResult ran = sim::run(kernel.module, launch, gpu.memory, gpu.device, {});
    gpu.clock_us += ran.time_us;
    if (ran.findings.empty()) return;
    gpu.broken = result_of(ran.findings[0].kind);  // told at the next call, as a GPU's errors are
    gpu.findings.insert(gpu.findings.end(), ran.findings.begin(), ran.findings.end());
  });
  return cu::kSuccess;
}

/// Its functions act on `gpu`, which outlives them; one at a time.
inline std::shared_ptr<const cu::Driver> fake_driver(FakeGpu& gpu) {
  fake_gpu() = &gpu;
  gpu.streams.clock_us = &gpu.clock_us;
  gpu.streams.before_graph = forget;
  auto driver = std::make_shared<cu::Driver>();
  cu::Driver& d = *driver;
  d.init = [](unsigned) -> cu::Result { return cu::kSuccess; };
  d.driver_version = [](int* version) -> cu::Result {
    FAKE_CALL(driver_version);
    return *version = 13000, cu::kSuccess;
  };
  d.error_name = [](cu::Result result, const char** text) -> cu::Result {
    return *text = result_name(result), cu::kSuccess;
  };
  d.error_text = [](cu::Result result, const char** text) -> cu::Result {
    return *text = result == kAskedFor ? "as asked for" : "found by the simulator", cu::kSuccess;
  };
  d.device_count = [](int* count) -> cu::Result {
    FAKE_CALL(device_count);
    return *count = 1, cu::kSuccess;
  };
  d.device_get = [](cu::DeviceId* id, int index) -> cu::Result {
    FAKE_CALL(device_get);
    return *id = index, cu::kSuccess;
  };
  d.device_name = [](char* text, int size, cu::DeviceId) -> cu::Result {
    FAKE_CALL(device_name);
    std::strncpy(text, fake_gpu()->device.name.c_str(), static_cast<std::size_t>(size) - 1);
    return cu::kSuccess;
  };
  d.device_attribute = [](int* value, int which, cu::DeviceId) -> cu::Result {
    FAKE_CALL(device_attribute);
    const Device& device = fake_gpu()->device;
    *value = which == cu::kComputeMajor           ? device.cc_major
             : which == cu::kComputeMinor         ? device.cc_minor
             : which == cu::kMultiprocessorCount  ? device.sms
             : which == cu::kClockKilohertz       ? static_cast<int>(1e6 * device.clock_ghz)
             : which == cu::kMemoryClockKilohertz ? 877'000
                                                  : static_cast<int>(device.l2_bytes);
    return cu::kSuccess;
  };
  d.device_uuid = [](unsigned char* uuid, cu::DeviceId) -> cu::Result {
    for (unsigned char i = 0; i < 16; ++i) uuid[i] = i;
    return cu::kSuccess;
  };
  d.device_memory = [](std::size_t* bytes, cu::DeviceId) -> cu::Result {
    FAKE_CALL(device_memory);
    return *bytes = fake_gpu()->memory_bytes, cu::kSuccess;
  };
  d.context_retain = [](cu::Context* context, cu::DeviceId) -> cu::Result {
    FAKE_CALL(context_retain);
    *context = reinterpret_cast<cu::Context>(fake_gpu());
    count_live("context", 1);
    return cu::kSuccess;
  };
  d.context_release = [](cu::DeviceId) -> cu::Result { return give_back("context_release", "context"); };
  d.context_set = [](cu::Context) -> cu::Result {
    FAKE_CALL(context_set);
    return cu::kSuccess;
  };
  d.memory_info = [](std::size_t* left, std::size_t* all) -> cu::Result {
    *all = fake_gpu()->memory_bytes;
    *left = *all - fake_gpu()->allocated;
    return cu::kSuccess;
  };
  d.allocate = [](cu::Pointer* address, std::size_t bytes) -> cu::Result {
    FAKE_CALL(allocate);
    FakeGpu& g = *fake_gpu();
    if (g.allocated + bytes > g.memory_bytes) return cu::kOutOfMemory;
    g.allocated += bytes;
    *address = g.memory.allocate(bytes, "pool");
    g.buffers[*address] = bytes;
    count_live("allocation", 1);
    return cu::kSuccess;
  };
  d.release = [](cu::Pointer address) -> cu::Result {
    FakeGpu& g = *fake_gpu();
    const std::size_t bytes = g.buffers.at(address);
    g.allocated -= bytes;
    g.uploads.erase(g.uploads.lower_bound(address), g.uploads.lower_bound(address + bytes));
    g.buffers.erase(address);
    g.memory.release(address);
    return give_back("release", "allocation");
  };
  d.write = [](cu::Pointer to, const void* from, std::size_t bytes) -> cu::Result {
    FAKE_CALL(write);
    fake_gpu()->memory.write(to, {static_cast<const std::byte*>(from), bytes});
    std::size_t& uploaded = fake_gpu()->uploads[to];
    uploaded = std::max(uploaded, bytes);
    return cu::kSuccess;
  };
  d.read = [](void* to, cu::Pointer from, std::size_t bytes) -> cu::Result {
    FAKE_CALL(read);
    fake_gpu()->memory.read(from, {static_cast<std::byte*>(to), bytes});
    return cu::kSuccess;
  };
  d.copy = [](cu::Pointer to, cu::Pointer from, std::size_t bytes, cu::Stream stream) -> cu::Result {
    FAKE_CALL(copy);
    enqueue(stream, [=] {
      std::vector<std::byte> values(bytes);
      fake_gpu()->memory.read(from, values);
      fake_gpu()->memory.write(to, values);
    });
    return cu::kSuccess;
  };
  d.fill = [](cu::Pointer to, unsigned char value, std::size_t bytes, cu::Stream stream) -> cu::Result {
    FAKE_CALL(fill);
    enqueue(stream, [=] { fake_gpu()->memory.fill(to, bytes, std::byte{value}); });
    return cu::kSuccess;
  };
  d.module_load = [](cu::Module* module, const void* image, unsigned, int*, void** values) -> cu::Result {
    if (const cu::Result refusal = refused("module_load"); refusal != cu::kSuccess) {
      std::strcpy(static_cast<char*>(values[0]), "ptxas fatal : as asked for\nmore");
      return refusal;
    }
    FakeGpu& g = *fake_gpu();
    if (std::string_view(static_cast<const char*>(image), 4) ==
        "\x7f"
        "ELF") {  // machine code: of another GPU
      ++g.calls["machine_code"];
      return cu::kNoBinaryForGpu;
    }
    g.kernels.push_back(std::make_unique<FakeGpu::Kernel>(
        FakeGpu::Kernel{ptx::parse(static_cast<const char*>(image), "loaded.ptx"), ""}));
    *module = reinterpret_cast<cu::Module>(g.kernels.back().get());
    count_live("module", 1);
    return cu::kSuccess;
  };
  d.module_unload = [](cu::Module) -> cu::Result { return give_back("module_unload", "module"); };
  d.module_function = [](cu::Function* function, cu::Module module, const char* entry) -> cu::Result {
    FAKE_CALL(module_function);
    reinterpret_cast<FakeGpu::Kernel*>(module)->entry = entry;
    *function = reinterpret_cast<cu::Function>(module);
    return cu::kSuccess;
  };
  d.function_attribute = [](int* value, int, cu::Function function) -> cu::Result {
    FAKE_CALL(function_attribute);
    return *value = registers_of(*reinterpret_cast<FakeGpu::Kernel*>(function)), cu::kSuccess;
  };
  d.function_set = [](cu::Function, int, int) -> cu::Result {
    FAKE_CALL(function_set);
    return cu::kSuccess;
  };
  d.resident_blocks = [](int* blocks, cu::Function function, int threads, std::size_t shared) -> cu::Result {
    FAKE_CALL(resident_blocks);
    *blocks = blocks_of_sm(*reinterpret_cast<FakeGpu::Kernel*>(function), threads, shared);
    return cu::kSuccess;
  };
  d.launch = [](cu::Function f, unsigned grid, unsigned, unsigned, unsigned block, unsigned, unsigned,
                unsigned shared, cu::Stream stream, void** arguments, void**) -> cu::Result {
    FAKE_CALL(launch);
    return fake_launch(f, grid, block, shared, stream, arguments, "plain");
  };
  d.launch_cooperative = [](cu::Function f, unsigned grid, unsigned, unsigned, unsigned block, unsigned,
                            unsigned, unsigned shared, cu::Stream stream, void** arguments) -> cu::Result {
    FAKE_CALL(launch_cooperative);
    if (grid > blocks_held(*reinterpret_cast<FakeGpu::Kernel*>(f), static_cast<int>(block), shared))
      return kCooperativeLaunchTooLarge;
    return fake_launch(f, grid, block, shared, stream, arguments, "cooperative");
  };
  d.launch_with = [](const cu::LaunchConfig* config, cu::Function f, void** arguments, void**) -> cu::Result {
    FAKE_CALL(launch_with);
    if (config->attributes_count != 1 || config->attributes[0].id != cu::kProgrammaticStreamSerialization ||
        config->attributes[0].value != 1 ||
        config->grid_y * config->grid_z * config->block_y * config->block_z != 1)
      return 1;  // CUDA_ERROR_INVALID_VALUE
    return fake_launch(f, config->grid_x, config->block_x, config->shared_bytes, config->stream, arguments,
                       "dependent");
  };
  d.resident_clusters = [](int* clusters, cu::Function function,
                           const cu::LaunchConfig* config) -> cu::Result {
    FAKE_CALL(resident_clusters);
    if (config->attributes_count != 1 || config->attributes[0].id != cu::kClusterDimension) return 1;
    const int an_sm = blocks_of_sm(*reinterpret_cast<FakeGpu::Kernel*>(function),
                                   static_cast<int>(config->block_x), config->shared_bytes);
    *clusters = static_cast<int>(
        clusters_per_wave(fake_gpu()->device, an_sm, static_cast<int>(config->attributes[0].extents[0])));
    return cu::kSuccess;
  };
  d.stream_create = [](cu::Stream* stream, unsigned) -> cu::Result {
    FAKE_CALL(stream_create);
    *stream = reinterpret_cast<cu::Stream>(static_cast<std::uintptr_t>(fake_gpu()->streams.create()));
    count_live("stream", 1);
    return cu::kSuccess;
  };
  d.stream_wait = [](cu::Stream stream) -> cu::Result {
    FAKE_CALL(stream_wait);
    if (!fake_gpu()->streams.drain(number_of(stream))) return kLaunchTimeout;
    return fake_gpu()->broken;
  };
  d.stream_destroy = [](cu::Stream stream) -> cu::Result {
    fake_gpu()->streams.destroy(number_of(stream));
    return give_back("stream_destroy", "stream");
  };
  d.stream_wait_event = [](cu::Stream stream, cu::Event event, unsigned) -> cu::Result {
    FAKE_CALL(stream_wait_event);
    if (std::exchange(fake_gpu()->streams.idle, false)) forget();  // a pass on streams begins
    fake_gpu()->streams.wait(number_of(stream), reinterpret_cast<const FakeEvent*>(event));
    return cu::kSuccess;
  };
  d.event_create = [](cu::Event* event, unsigned) -> cu::Result {
    FAKE_CALL(event_create);
    fake_gpu()->events.push_back(std::make_unique<FakeEvent>());
    *event = reinterpret_cast<cu::Event>(fake_gpu()->events.back().get());
    count_live("event", 1);
    return cu::kSuccess;
  };
  d.event_record = [](cu::Event event, cu::Stream stream) -> cu::Result {
    FAKE_CALL(event_record);
    fake_gpu()->streams.record(number_of(stream), reinterpret_cast<FakeEvent*>(event));
    return cu::kSuccess;
  };
  d.event_elapsed = [](float* ms, cu::Event begin, cu::Event end) -> cu::Result {
    FAKE_CALL(event_elapsed);
    const auto us = [](cu::Event event) { return reinterpret_cast<const FakeEvent*>(event)->us; };
    *ms = static_cast<float>(1e-3 * (us(end) - us(begin)));
    return cu::kSuccess;
  };
  d.event_destroy = [](cu::Event) -> cu::Result { return give_back("event_destroy", "event"); };
  d.capture_begin = [](cu::Stream stream, int) -> cu::Result {
    FAKE_CALL(capture_begin);
    fake_gpu()->streams.begin_capture(number_of(stream));
    return cu::kSuccess;
  };
  d.capture_end = [](cu::Stream, cu::Graph* graph) -> cu::Result {
    const bool joined = fake_gpu()->streams.end_capture();
    FAKE_CALL(capture_end);
    if (!joined) return 904;  // CUDA_ERROR_STREAM_CAPTURE_UNJOINED
    *graph = reinterpret_cast<cu::Graph>(fake_gpu());
    count_live("graph", 1);
    return cu::kSuccess;
  };
  d.graph_instantiate = [](cu::GraphExec* ready, cu::Graph, unsigned long long) -> cu::Result {
    FAKE_CALL(graph_instantiate);
    *ready = reinterpret_cast<cu::GraphExec>(fake_gpu());
    count_live("graph exec", 1);
    return cu::kSuccess;
  };
  d.graph_launch = [](cu::GraphExec, cu::Stream stream) -> cu::Result {
    FAKE_CALL(graph_launch);
    fake_gpu()->streams.launch_graph(number_of(stream));
    return cu::kSuccess;
  };
  d.graph_exec_destroy = [](cu::GraphExec) -> cu::Result {
    return give_back("graph_exec_destroy", "graph exec");
  };
  d.graph_destroy = [](cu::Graph) -> cu::Result { return give_back("graph_destroy", "graph"); };
  return driver;
}

}  // namespace stitchwork::testing
