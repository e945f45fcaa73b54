#include "runtime/cuda/backend.h"

#include <algorithm>
#include <array>
#include <utility>

#include "core/base/error.h"

namespace stitchwork::cuda {
namespace {

/// Of one allocation of the pool, at least: few large ones.
constexpr std::uint64_t kChunkBytes = std::uint64_t{64} << 20;

/// With one attribute, which outlives it.
LaunchConfig launch_config(const KernelLaunch& launch, Stream stream, LaunchAttribute& attribute) {
  LaunchConfig config{};
  config.grid_x = static_cast<unsigned>(launch.grid);
  config.block_x = static_cast<unsigned>(launch.block);
  config.grid_y = config.grid_z = config.block_y = config.block_z = 1;
  config.shared_bytes = static_cast<unsigned>(launch.shared_bytes);
  config.stream = stream;
  config.attributes = &attribute;
  config.attributes_count = 1;
  return config;
}

}  // namespace

CudaBackend::CudaBackend(std::shared_ptr<const Driver> driver, const Device& device,
                         const CudaOptions& options, CudaLibraries libraries)
    : driver_(std::move(driver)),
      device_(device),
      options_(options),
      gpu_(cuda::gpu(*driver_, options.index)),
      libraries_(std::move(libraries)),
      tiled_(device, options.compile) {
  if (gpu_.cc_major != device.cc_major || gpu_.cc_minor != device.cc_minor || gpu_.sms != device.sms)
    throw Error(fmt::format("GPU {} is {} (sm_{}{}, {} SMs), the plan is for {} (sm_{}{}, {} SMs)",
                            options.index, gpu_.name, gpu_.cc_major, gpu_.cc_minor, gpu_.sms, device.id,
                            device.cc_major, device.cc_minor, device.sms),
                "name it with --device; `stitchwork devices` lists them");
  DeviceId id = 0;
  driver_->check(driver_->device_get(&id, options.index), "cuDeviceGet", gpu_.name);
  Context context = nullptr;
  driver_->check(driver_->context_retain(&context, id), "cuDevicePrimaryCtxRetain", gpu_.name);
  context_ = OwnedContext(*driver_, id);
  driver_->check(driver_->context_set(context), "cuCtxSetCurrent", gpu_.name);
  lane(0);
  for (OwnedEvent* made : {&begin_, &end_}) *made = make_event(kEventWithTiming);
  if (libraries_.blas) lane(0).blas = libraries_.blas();
}

Pool& CudaBackend::pool(MemoryUse use) {
  switch (use) {
    case MemoryUse::kSource:
      return sources_;
    case MemoryUse::kStep:
      return lane(lane_).memory;
    case MemoryUse::kValue:
      break;
  }
  return values_;
}

DeviceAddress CudaBackend::allocate(std::size_t bytes, const std::string& name, MemoryUse use) {
  Pool& pool = this->pool(use);
  if (const auto address = pool.take(bytes)) return *address;
  const std::uint64_t wanted = Pool::rounded(bytes);
  Pointer chunk = 0;
  Result result = kOutOfMemory;
  for (const std::uint64_t size : {std::max(wanted, kChunkBytes), wanted}) {
    result = driver_->allocate(&chunk, size);
    if (result != kSuccess) continue;
    allocations_.emplace_back(*driver_, chunk);
    pool.add(chunk, size);
    return *pool.take(bytes);
  }
  std::size_t left = 0, all = 0;
  driver_->memory_info(&left, &all);
  std::uint64_t used = values_.used() + sources_.used();
  for (const auto& lane : lanes_) used += lane->memory.used();
  throw Error(
      fmt::format("{}: {} bytes of device memory cannot be had: {}; {} of {} bytes are free, {} in use by "
                  "this run",
                  name, bytes, driver_->text(result), left, all, used),
      "use smaller inputs");
}

void CudaBackend::release(DeviceAddress address) {
  for (Pool* pool : {&sources_, &values_})
    if (pool->holds(address)) return pool->give_back(address);
  for (const auto& lane : lanes_)
    if (lane->memory.holds(address)) return lane->memory.give_back(address);
}

void CudaBackend::write(DeviceAddress address, std::span<const std::byte> data) {
  if (data.empty()) return;
  driver_->check(driver_->write(address, data.data(), data.size()), "cuMemcpyHtoD", "upload");
}

void CudaBackend::read(DeviceAddress address, std::span<std::byte> data) {
  wait("download");
  if (data.empty()) return;
  driver_->check(driver_->read(data.data(), address, data.size()), "cuMemcpyDtoH", "download");
}

void CudaBackend::clear(DeviceAddress address, std::size_t bytes) {
  if (bytes == 0) return;
  Step step;
  step.kind = Step::Kind::kClear;
  step.pointers = {address};
  step.bytes = bytes;
  step.what = fmt::format("memset of {} bytes", bytes);
  record(std::move(step));
}

void CudaBackend::copy(DeviceAddress to, DeviceAddress from, std::size_t bytes) {
  if (bytes == 0) return;
  Step step;
  step.kind = Step::Kind::kCopy;
  step.pointers = {to, from};
  step.bytes = bytes;
  step.what = fmt::format("copy of {} bytes", bytes);
  record(std::move(step));
}

OwnedModule CudaBackend::load_module(const CompiledKernel& kernel) {
  Module module = nullptr;
  std::array<char, 4096> log{};
  std::array<int, 2> options{kErrorLog, kErrorLogBytes};
  std::array<void*, 2> values{log.data(), reinterpret_cast<void*>(log.size())};
  Result result = kInvalidImage;
  for (const std::string* image : {&kernel.cubin, &kernel.ptx}) {
    if (image->empty()) continue;
    result = driver_->module_load(&module, image->c_str(), static_cast<unsigned>(options.size()),
                                  options.data(), values.data());
    if (result != kInvalidImage && result != kNoBinaryForGpu) break;  // else the PTX may do
  }
  if (result == kSuccess) return {*driver_, module};
  const std::string said(log.data());
  throw Error(fmt::format("cuModuleLoadDataEx failed: {}{}{}", driver_->text(result),
                          said.empty() ? "" : ": ", said.substr(0, said.find('\n'))));
}

const CudaBackend::Loaded& CudaBackend::load(const CompiledKernel& kernel) {
  const auto known = modules_.find(kernel.source_sha256);
  if (known != modules_.end()) return known->second;
  Loaded loaded;
  loaded.module = load_module(kernel);
  const auto attribute = [&](FunctionAttribute which) {
    int value = 0;
    driver_->check(driver_->function_attribute(&value, which, loaded.function), "cuFuncGetAttribute",
                   kernel.entry);
    return value;
  };
  driver_->check(driver_->module_function(&loaded.function, loaded.module.get(), kernel.entry.c_str()),
                 "cuModuleGetFunction", kernel.entry);
  loaded.registers = attribute(kRegisters);
  const KernelLaunch& launch = kernel.launch;
  if (launch.shared_bytes > device_.shared_bytes_per_block_default)
    driver_->check(
        driver_->function_set(loaded.function, kMaxDynamicSharedBytes, static_cast<int>(launch.shared_bytes)),
        "cuFuncSetAttribute", fmt::format("{} bytes of shared memory", launch.shared_bytes));
  driver_->check(
      driver_->resident_blocks(&loaded.resident_blocks, loaded.function, static_cast<int>(launch.block),
                               static_cast<std::size_t>(launch.shared_bytes)),
      "cuOccupancyMaxActiveBlocksPerMultiprocessor", kernel.entry);
  return modules_.emplace(kernel.source_sha256, std::move(loaded)).first->second;
}

std::int64_t CudaBackend::resident_blocks(const CompiledKernel& kernel, const Loaded& loaded) const {
  const int cluster = kernel.launch.cluster;
  // A driver that has not heard of clusters loads no kernel that asks for them.
  if (cluster == 1 || driver_->resident_clusters == nullptr)
    return std::int64_t{loaded.resident_blocks} * gpu_.sms;
  LaunchAttribute attribute{};
  attribute.id = kClusterDimension;
  attribute.extents[0] = static_cast<unsigned>(cluster);
  attribute.extents[1] = attribute.extents[2] = 1;
  const LaunchConfig config = launch_config(kernel.launch, lanes_[0]->stream.get(), attribute);
  int clusters = 0;
  driver_->check(driver_->resident_clusters(&clusters, loaded.function, &config),
                 "cuOccupancyMaxActiveClusters", kernel.entry);
  return std::int64_t{clusters} * cluster;
}

Launched CudaBackend::launch(const CompiledKernel& kernel, std::span<const DeviceAddress> arguments) {
  if (kernel.dependent && driver_->launch_with == nullptr)
    throw Error("dependent launches need a driver of CUDA 11.8 or later: this one has no cuLaunchKernelEx",
                "leave out --dependent-launch");
  const Loaded& loaded = load(kernel);
  const std::int64_t resident = kernel.launch.grid_barriers > 0 ? resident_blocks(kernel, loaded) : 0;
  if (kernel.launch.grid_barriers > 0 && kernel.launch.grid > resident) {
    const int cluster = kernel.launch.cluster;
    throw Error(
        fmt::format(
            "{} blocks wait for each other at grid barriers, but {} holds {} ({} an SM of {} threads, "
            "{} registers and {} bytes of shared memory, {} SMs{})",
            kernel.launch.grid, gpu_.name, resident, loaded.resident_blocks, kernel.launch.block,
            loaded.registers, kernel.launch.shared_bytes, gpu_.sms,
            cluster > 1 ? fmt::format("; in clusters of {}", cluster) : ""),
        cluster > 1 ? "plan with --set clusters=off"
                    : "the override `residency` leaves a block more registers");
  }
  Step step;
  step.kind = Step::Kind::kLaunch;
  step.kernel = &kernel;
  step.function = loaded.function;
  step.pointers.assign(arguments.begin(), arguments.end());
  step.what = fmt::format("{} blocks of {} threads, {} bytes of shared memory", kernel.launch.grid,
                          kernel.launch.block, kernel.launch.shared_bytes);
  Launched result;
  result.registers = loaded.registers;
  result.spill_bytes = kernel.spill_bytes;
  result.time = record(std::move(step));
  return result;
}

void CudaBackend::perform(const Step& step, const Lane& lane) {
  for (const Step& part : step.before) perform(part, lane);
  perform_alone(step, lane);
  for (const Step& part : step.after) perform(part, lane);
}

void CudaBackend::perform_alone(const Step& step, const Lane& lane) {
  const Stream stream = lane.stream.get();
  switch (step.kind) {
    case Step::Kind::kClear:
      driver_->check(driver_->fill(step.pointers[0], 0, step.bytes, stream), "cuMemsetD8Async", step.what);
      return;
    case Step::Kind::kCopy:
      driver_->check(driver_->copy(step.pointers[0], step.pointers[1], step.bytes, stream),
                     "cuMemcpyDtoDAsync", step.what);
      return;
    case Step::Kind::kProduct:
      lane.blas->multiply(stream, step.gemm, step.operands, step.result, step.pointers[0], step.pointers[1],
                          step.pointers[2], step.added, step.table, options_.tf32, step.what);
      return;
    case Step::Kind::kConvolution:
      lane.dnn->convolve(stream, *step.dnn,
                         {step.pointers[0], step.pointers[1], step.pointers[2], step.pointers[3], step.added},
                         step.what);
      return;
    case Step::Kind::kLaunch:
      break;
  }
  std::vector<void*> arguments;
  for (const DeviceAddress& pointer : step.pointers)
    arguments.push_back(const_cast<DeviceAddress*>(&pointer));  // the driver only reads them
  const KernelLaunch& launch = step.kernel->launch;
  const auto grid = static_cast<unsigned>(launch.grid), block = static_cast<unsigned>(launch.block),
             shared = static_cast<unsigned>(launch.shared_bytes);
  if (launch.grid_barriers > 0)
    driver_->check(
        driver_->launch_cooperative(step.function, grid, 1, 1, block, 1, 1, shared, stream, arguments.data()),
        "cuLaunchCooperativeKernel", step.what);
  else if (step.kernel->dependent)
    launch_dependent(step, lane, arguments);
  else
    driver_->check(
        driver_->launch(step.function, grid, 1, 1, block, 1, 1, shared, stream, arguments.data(), nullptr),
        "cuLaunchKernel", step.what);
}

void CudaBackend::launch_dependent(const Step& step, const Lane& lane, std::vector<void*>& arguments) {
  LaunchAttribute attribute{};
  attribute.id = kProgrammaticStreamSerialization;
  attribute.value = 1;
  const LaunchConfig config = launch_config(step.kernel->launch, lane.stream.get(), attribute);
  driver_->check(driver_->launch_with(&config, step.function, arguments.data(), nullptr), "cuLaunchKernelEx",
                 step.what);
}

Timed CudaBackend::record(Step step) {
  if (step.kind == Step::Kind::kProduct && !step.added)
    step.table = table_of(Blas::matrices(step.gemm, step.operands, step.result, step.pointers[0],
                                         step.pointers[1], step.pointers[2]),
                          step.what);
  const Stream stream = lanes_[0]->stream.get();
  driver_->check(driver_->event_record(begin_.get(), stream), "cuEventRecord", step.what);
  perform(step, *lanes_[0]);
  driver_->check(driver_->event_record(end_.get(), stream), "cuEventRecord", step.what);
  wait(step.what);
  const Timed timed{elapsed_us(end_), steps_.size(), {}};
  step.lane = lane_;
  step.planned = begun_step_.value_or(0);
  step.once = once_;
  step.waits = std::exchange(waits_, {});
  last_on_[lane_] = steps_.size();
  steps_.push_back(std::move(step));
  step_us_.push_back(timed.us);
  return timed;
}

}  // namespace stitchwork::cuda
