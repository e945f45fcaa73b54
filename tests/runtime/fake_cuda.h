// A CUDA driver and cuBLAS without a GPU: kernels run in the PTX simulator, calls are recorded, and any of
// them can be made to fail.
#pragma once

#include <fmt/format.h>

#include <cstring>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "occupancy_model/occupancy.h"
#include "runtime/cuda/backend.h"
#include "simulator/simulator.h"

namespace stitchwork::testing {

namespace cu = stitchwork::cuda;

struct FakeGpu {
  Device device;  ///< what the driver says it is
  std::size_t memory_bytes = std::size_t{1} << 30;
  std::map<std::string, int> fail_at;  ///< by member of Driver: the call (from 1) from which on it fails
  cu::Result failure = 700;            ///< and its result

  std::map<std::string, int> calls;   ///< by member of Driver
  std::vector<std::string> launched;  ///< "cooperative 147x1024", "dependent ..." or "plain ..."
  std::size_t allocated = 0;
  double elapsed_us = 0;  ///< of the work between the two last events

  // Behind the handles.
  sim::DeviceMemory memory;
  std::map<cu::Pointer, std::size_t> buffers;
  struct Kernel {
    ptx::Module module;
    std::string entry;
  };
  std::vector<std::unique_ptr<Kernel>> kernels;
  bool capturing = false;
  std::vector<std::function<void()>> captured, graph;
  double clock_us = 0, event_us[2] = {0, 0};
  int events = 0;
};

inline FakeGpu*& fake_gpu() {
  static FakeGpu* gpu = nullptr;
  return gpu;
}

/// Counts the call; whether it is to fail.
inline bool fails(const char* member) {
  FakeGpu& gpu = *fake_gpu();
  const int n = ++gpu.calls[member];
  const auto at = gpu.fail_at.find(member);
  return at != gpu.fail_at.end() && n >= at->second;
}
#define FAKE_CALL(member) \
  if (fails(#member)) return fake_gpu()->failure

/// Runs now, or is captured.
inline void enqueue(std::function<void()> work) {
  FakeGpu& gpu = *fake_gpu();
  if (gpu.capturing)
    gpu.captured.push_back(std::move(work));
  else
    work();
}

inline cu::Result fake_launch(cu::Function function, unsigned grid, unsigned block, unsigned shared,
                              void** arguments, const char* how) {
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
  enqueue([&gpu, &kernel, launch] {
    const sim::LaunchResult ran = sim::run(kernel.module, launch, gpu.memory, gpu.device, {});
    gpu.clock_us += ran.time_us;
  });
  return cu::kSuccess;
}

/// Its functions act on `gpu`, which outlives them; one at a time.
inline std::shared_ptr<const cu::Driver> fake_driver(FakeGpu& gpu) {
  fake_gpu() = &gpu;
  auto driver = std::make_shared<cu::Driver>();
  cu::Driver& d = *driver;
  d.init = [](unsigned) -> cu::Result { return cu::kSuccess; };
  d.driver_version = [](int* version) -> cu::Result { return *version = 13000, cu::kSuccess; };
  d.error_name = [](cu::Result, const char** text) -> cu::Result { return *text = "CUDA_ERROR_FAKE", 0; };
  d.error_text = [](cu::Result, const char** text) -> cu::Result { return *text = "as asked for", 0; };
  d.device_count = [](int* count) -> cu::Result { return *count = 1, cu::kSuccess; };
  d.device_get = [](cu::DeviceId* id, int index) -> cu::Result { return *id = index, cu::kSuccess; };
  d.device_name = [](char* text, int size, cu::DeviceId) -> cu::Result {
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
    return *bytes = fake_gpu()->memory_bytes, cu::kSuccess;
  };
  d.context_retain = [](cu::Context* context, cu::DeviceId) -> cu::Result {
    FAKE_CALL(context_retain);
    *context = reinterpret_cast<cu::Context>(fake_gpu());
    return cu::kSuccess;
  };
  d.context_release = [](cu::DeviceId) -> cu::Result { return ++fake_gpu()->calls["context_release"], 0; };
  d.context_set = [](cu::Context) -> cu::Result { return cu::kSuccess; };
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
    return cu::kSuccess;
  };
  d.release = [](cu::Pointer address) -> cu::Result {
    FakeGpu& g = *fake_gpu();
    ++g.calls["release"];
    g.allocated -= g.buffers.at(address);
    g.memory.release(address);
    return cu::kSuccess;
  };
  d.write = [](cu::Pointer to, const void* from, std::size_t bytes) -> cu::Result {
    FAKE_CALL(write);
    fake_gpu()->memory.write(to, {static_cast<const std::byte*>(from), bytes});
    return cu::kSuccess;
  };
  d.read = [](void* to, cu::Pointer from, std::size_t bytes) -> cu::Result {
    FAKE_CALL(read);
    fake_gpu()->memory.read(from, {static_cast<std::byte*>(to), bytes});
    return cu::kSuccess;
  };
  d.copy = [](cu::Pointer to, cu::Pointer from, std::size_t bytes, cu::Stream) -> cu::Result {
    FAKE_CALL(copy);
    enqueue([=] {
      std::vector<std::byte> values(bytes);
      fake_gpu()->memory.read(from, values);
      fake_gpu()->memory.write(to, values);
    });
    return cu::kSuccess;
  };
  d.fill = [](cu::Pointer to, unsigned char value, std::size_t bytes, cu::Stream) -> cu::Result {
    FAKE_CALL(fill);
    enqueue([=] { fake_gpu()->memory.fill(to, bytes, std::byte{value}); });
    return cu::kSuccess;
  };
  d.module_load = [](cu::Module* module, const void* image, unsigned, int*, void** values) -> cu::Result {
    if (fails("module_load")) {
      std::strcpy(static_cast<char*>(values[0]), "ptxas fatal : as asked for\nmore");
      return fake_gpu()->failure;
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
    return cu::kSuccess;
  };
  d.module_unload = [](cu::Module) -> cu::Result { return ++fake_gpu()->calls["module_unload"], 0; };
  d.module_function = [](cu::Function* function, cu::Module module, const char* entry) -> cu::Result {
    FAKE_CALL(module_function);
    reinterpret_cast<FakeGpu::Kernel*>(module)->entry = entry;
    *function = reinterpret_cast<cu::Function>(module);
    return cu::kSuccess;
  };
  d.function_attribute = [](int* value, int, cu::Function) -> cu::Result { return *value = 32, 0; };
  d.function_set = [](cu::Function, int, int) -> cu::Result {
    FAKE_CALL(function_set);
    return cu::kSuccess;
  };
  d.resident_blocks = [](int* blocks, cu::Function, int threads, std::size_t) -> cu::Result {
    FAKE_CALL(resident_blocks);
    *blocks = fake_gpu()->device.max_threads_per_sm() / threads;
    return cu::kSuccess;
  };
  d.launch = [](cu::Function f, unsigned grid, unsigned, unsigned, unsigned block, unsigned, unsigned,
                unsigned shared, cu::Stream, void** arguments, void**) -> cu::Result {
    FAKE_CALL(launch);
    return fake_launch(f, grid, block, shared, arguments, "plain");
  };
  d.launch_cooperative = [](cu::Function f, unsigned grid, unsigned, unsigned, unsigned block, unsigned,
                            unsigned, unsigned shared, cu::Stream, void** arguments) -> cu::Result {
    FAKE_CALL(launch_cooperative);
    return fake_launch(f, grid, block, shared, arguments, "cooperative");
  };
  d.launch_with = [](const cu::LaunchConfig* config, cu::Function f, void** arguments, void**) -> cu::Result {
    FAKE_CALL(launch_with);
    if (config->attributes_count != 1 || config->attributes[0].id != cu::kProgrammaticStreamSerialization ||
        config->attributes[0].value != 1 ||
        config->grid_y * config->grid_z * config->block_y * config->block_z != 1)
      return 1;  // CUDA_ERROR_INVALID_VALUE
    return fake_launch(f, config->grid_x, config->block_x, config->shared_bytes, arguments, "dependent");
  };
  d.resident_clusters = [](int* clusters, cu::Function, const cu::LaunchConfig* config) -> cu::Result {
    FAKE_CALL(resident_clusters);
    if (config->attributes_count != 1 || config->attributes[0].id != cu::kClusterDimension) return 1;
    const Device& device = fake_gpu()->device;
    *clusters = static_cast<int>(
        clusters_per_wave(device, device.max_threads_per_sm() / static_cast<int>(config->block_x),
                          static_cast<int>(config->attributes[0].extents[0])));
    return cu::kSuccess;
  };
  d.stream_create = [](cu::Stream* stream, unsigned) -> cu::Result {
    FAKE_CALL(stream_create);
    *stream = reinterpret_cast<cu::Stream>(fake_gpu());
    return cu::kSuccess;
  };
  d.stream_wait = [](cu::Stream) -> cu::Result {
    FAKE_CALL(stream_wait);
    return cu::kSuccess;
  };
  d.stream_destroy = [](cu::Stream) -> cu::Result { return ++fake_gpu()->calls["stream_destroy"], 0; };
  d.event_create = [](cu::Event* event, unsigned) -> cu::Result {
    FAKE_CALL(event_create);
    *event = reinterpret_cast<cu::Event>(&fake_gpu()->event_us[fake_gpu()->events++ % 2]);
    return cu::kSuccess;
  };
  d.event_record = [](cu::Event event, cu::Stream) -> cu::Result {
    FAKE_CALL(event_record);
    *reinterpret_cast<double*>(event) = fake_gpu()->clock_us;
    return cu::kSuccess;
  };
  d.event_elapsed = [](float* ms, cu::Event begin, cu::Event end) -> cu::Result {
    FAKE_CALL(event_elapsed);
    *ms = static_cast<float>(1e-3 * (*reinterpret_cast<double*>(end) - *reinterpret_cast<double*>(begin)));
    return cu::kSuccess;
  };
  d.event_destroy = [](cu::Event) -> cu::Result { return ++fake_gpu()->calls["event_destroy"], 0; };
  d.capture_begin = [](cu::Stream, int) -> cu::Result {
    FAKE_CALL(capture_begin);
    fake_gpu()->capturing = true;
    fake_gpu()->captured.clear();
    return cu::kSuccess;
  };
  d.capture_end = [](cu::Stream, cu::Graph* graph) -> cu::Result {
    fake_gpu()->capturing = false;
    FAKE_CALL(capture_end);
    *graph = reinterpret_cast<cu::Graph>(fake_gpu());
    return cu::kSuccess;
  };
  d.graph_instantiate = [](cu::GraphExec* ready, cu::Graph, unsigned long long) -> cu::Result {
    FAKE_CALL(graph_instantiate);
    fake_gpu()->graph = fake_gpu()->captured;
    *ready = reinterpret_cast<cu::GraphExec>(fake_gpu());
    return cu::kSuccess;
  };
  d.graph_launch = [](cu::GraphExec, cu::Stream) -> cu::Result {
    FAKE_CALL(graph_launch);
    for (const auto& work : fake_gpu()->graph) work();
    return cu::kSuccess;
  };
  d.graph_exec_destroy = [](cu::GraphExec) -> cu::Result {
    return ++fake_gpu()->calls["graph_exec_destroy"], 0;
  };
  d.graph_destroy = [](cu::Graph) -> cu::Result { return ++fake_gpu()->calls["graph_destroy"], 0; };
  return driver;
}

/// cublasGemmStridedBatchedEx of f32 and f64 as its documentation has it: columns first.
inline std::unique_ptr<cu::Blas> fake_blas() {
  cu::BlasFunctions f;
  f.create = [](void** handle) -> int { return *handle = fake_gpu(), fails("blas_create") ? 1 : 0; };
  f.destroy = [](void*) -> int { return 0; };
  f.set_stream = [](void*, cu::Stream) -> int { return 0; };
  f.status = [](int) -> const char* { return "CUBLAS_STATUS_FAKE"; };
  f.gemm = [](void*, int a_op, int b_op, int m, int n, int k, const void* alpha, const void* a, int a_type,
              int a_ld, long long a_stride, const void* b, int, int b_ld, long long b_stride,
              const void* beta, void* c, int, int c_ld, long long c_stride, int batch, int, int) -> int {
    if (fails("gemm")) return 13;
    const bool wide = a_type == 1;
    const auto factor = [&](const void* at) {
      return wide ? *static_cast<const double*>(at) : static_cast<double>(*static_cast<const float*>(at));
    };
    if (factor(alpha) != 1 || factor(beta) != 0) return 7;
    const bool a_fits = a_ld >= (a_op == 0 ? m : k), b_fits = b_ld >= (b_op == 0 ? k : n);
    if (!a_fits || !b_fits || c_ld < m) return 7;  // CUBLAS_STATUS_INVALID_VALUE
    enqueue([=] {
      sim::DeviceMemory& memory = fake_gpu()->memory;
      const auto load = [&](const void* base, long long index) {
        const auto at =
            reinterpret_cast<sim::DeviceAddress>(base) + static_cast<std::uint64_t>(index * (wide ? 8 : 4));
        double d = 0;
        float s = 0;
        if (wide)
          memory.read(at, std::as_writable_bytes(std::span(&d, 1)));
        else
          memory.read(at, std::as_writable_bytes(std::span(&s, 1)));
        return wide ? d : static_cast<double>(s);
      };
      for (int p = 0; p < batch; ++p)
        for (int j = 0; j < n; ++j)
          for (int i = 0; i < m; ++i) {
            double sum = 0;
            for (int l = 0; l < k; ++l)
              sum += load(a, p * a_stride + (a_op == 0 ? i + static_cast<long long>(l) * a_ld
                                                       : l + static_cast<long long>(i) * a_ld)) *
                     load(b, p * b_stride + (b_op == 0 ? l + static_cast<long long>(j) * b_ld
                                                       : j + static_cast<long long>(l) * b_ld));
            const auto at = reinterpret_cast<sim::DeviceAddress>(c) +
                            static_cast<std::uint64_t>((p * c_stride + i + static_cast<long long>(j) * c_ld) *
                                                       (wide ? 8 : 4));
            const auto narrow = static_cast<float>(sum);
            if (wide)
              memory.write(at, std::as_bytes(std::span(&sum, 1)));
            else
              memory.write(at, std::as_bytes(std::span(&narrow, 1)));
          }
      fake_gpu()->clock_us += 5;
    });
    return 0;
  };
  return std::make_unique<cu::Blas>(f, "fake");
}

}  // namespace stitchwork::testing
