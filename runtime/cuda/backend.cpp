#include "runtime/cuda/backend.h"

#include <algorithm>
#include <array>
#include <functional>
#include <utility>

#include "core/base/arithmetic.h"
#include "core/base/error.h"

namespace stitchwork::cuda {
namespace {

/// Of one allocation of the pool, at least: few large ones.
constexpr std::uint64_t kChunkBytes = std::uint64_t{64} << 20;
/// Kernels are repeated for about so long, to be many times the events' resolution (0.5 us, CUDA driver API).
constexpr double kRepeatedUs = 2000;
constexpr int kMostRepeats = 500;

double median(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  const std::size_t n = values.size();
  return n == 0 ? 0 : n % 2 == 1 ? values[n / 2] : (values[n / 2 - 1] + values[n / 2]) / 2;
}

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

/// "GPU-01234567-89ab-cdef-0123-456789abcdef"
std::string uuid_text(const std::array<unsigned char, 16>& uuid) {
  std::string text = "GPU";
  for (std::size_t i = 0; i < uuid.size(); ++i)
    text += fmt::format("{}{:02x}", i == 0 || i == 4 || i == 6 || i == 8 || i == 10 ? "-" : "", uuid[i]);
  return text;
}

}  // namespace

Gpu gpu(const Driver& driver, int index) {
  int count = 0;
  driver.check(driver.device_count(&count), "cuDeviceGetCount", "CUDA driver");
  if (index < 0 || index >= count)
    throw Error(fmt::format("no GPU {}: there are {}", index, count), "they count from 0");
  DeviceId id = 0;
  driver.check(driver.device_get(&id, index), "cuDeviceGet", "GPU");
  Gpu gpu;
  std::array<char, 256> text{};
  driver.check(driver.device_name(text.data(), static_cast<int>(text.size()), id), "cuDeviceGetName", "GPU");
  gpu.name = text.data();
  const auto attribute = [&](DeviceAttribute which) {
    int value = 0;
    driver.check(driver.device_attribute(&value, which, id), "cuDeviceGetAttribute", gpu.name);
    return value;
  };
  gpu.cc_major = attribute(kComputeMajor);
  gpu.cc_minor = attribute(kComputeMinor);
  gpu.sms = attribute(kMultiprocessorCount);
  gpu.l2_bytes = attribute(kL2Bytes);
  std::size_t memory = 0;
  driver.check(driver.device_memory(&memory, id), "cuDeviceTotalMem", gpu.name);
  gpu.memory_bytes = static_cast<std::int64_t>(memory);
  driver.check(driver.driver_version(&gpu.driver_version), "cuDriverGetVersion", gpu.name);
  gpu.clock_kilohertz = attribute(kClockKilohertz);
  gpu.memory_clock_kilohertz = attribute(kMemoryClockKilohertz);
  if (std::array<unsigned char, 16> uuid{};
      driver.device_uuid != nullptr && driver.device_uuid(uuid.data(), id) == kSuccess)
    gpu.uuid = uuid_text(uuid);
  return gpu;
}

const Device& described(const Gpu& gpu) {
  const auto alike = [&](const Device& device) {
    const auto both = std::mismatch(device.name.begin(), device.name.end(), gpu.name.begin(), gpu.name.end());
    return both.first - device.name.begin();
  };
  const Device* best = nullptr;
  for (const Device& device : devices()) {
    if (device.cc_major != gpu.cc_major || device.cc_minor != gpu.cc_minor || device.sms != gpu.sms) continue;
    if (best == nullptr || alike(device) > alike(*best)) best = &device;
  }
  if (best == nullptr)
    throw Error(fmt::format("no device describes {} (sm_{}{}, {} SMs)", gpu.name, gpu.cc_major, gpu.cc_minor,
                            gpu.sms),
                "write one and name its folder in STITCHWORK_DEVICES (docs/gpu.md)");
  return *best;
}

Convolutions parse_convolutions(const std::string& word) {
  if (word == "auto") return Convolutions::kAuto;
  if (word == "cudnn") return Convolutions::kDnn;
  if (word == "patches") return Convolutions::kPatches;
  throw Error(fmt::format("convolutions cannot be made by '{}'", word), "known: auto, cudnn, patches");
}

CudaBackend::CudaBackend(std::shared_ptr<const Driver> driver, const Device& device,
                         const CudaOptions& options, CudaLibraries libraries)
    : driver_(std::move(driver)),
      device_(device),
      options_(options),
      gpu_(cuda::gpu(*driver_, options.index)),
      libraries_(std::move(libraries)) {
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
  Stream stream = nullptr;
  driver_->check(driver_->stream_create(&stream, kNonBlockingStream), "cuStreamCreate", gpu_.name);
  stream_ = OwnedStream(*driver_, stream);
  for (OwnedEvent* made : {&begin_, &end_}) {
    Event event = nullptr;
    driver_->check(driver_->event_create(&event, 0), "cuEventCreate", gpu_.name);
    *made = OwnedEvent(*driver_, event);
  }
  if (libraries_.blas) blas_ = libraries_.blas();
}

DeviceAddress CudaBackend::allocate(std::size_t bytes, const std::string& name, bool written_once) {
  Pool& pool = written_once ? sources_ : pool_;
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
  throw Error(
      fmt::format("{}: {} bytes of device memory cannot be had: {}; {} of {} bytes are free, {} in use by "
                  "this run",
                  name, bytes, driver_->text(result), left, all, pool_.used() + sources_.used()),
      "use smaller inputs");
}

void CudaBackend::release(DeviceAddress address) {
  (sources_.holds(address) ? sources_ : pool_).give_back(address);
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
  const LaunchConfig config = launch_config(kernel.launch, stream_.get(), attribute);
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

std::optional<Timed> CudaBackend::call(const Computation& computation, const Node& node,
                                       std::span<const DeviceAddress> operands, DeviceAddress result) {
  if (node.op != Op::kDot && node.op != Op::kConvolution) return std::nullopt;
  const Shape &lhs = computation.node(node.operands[0]).shape,
              &rhs = computation.node(node.operands[1]).shape;
  for (const Shape* shape : {&lhs, &rhs, &node.shape})
    if (shape->elements_count() == 0) return std::nullopt;
  return node.op == Op::kDot ? multiply(node, lhs, rhs, operands, result)
                             : convolve(node, lhs, rhs, operands, result);
}

std::optional<Timed> CudaBackend::multiply(const Node& dot, const Shape& lhs, const Shape& rhs,
                                           std::span<const DeviceAddress> operands, DeviceAddress result) {
  if (!multiplies(lhs, rhs, dot.shape)) return std::nullopt;
  const auto gemm = gemm_of(dot, lhs, rhs);
  if (!gemm) return std::nullopt;
  Step step;
  step.kind = Step::Kind::kProduct;
  step.pointers = {operands[0], operands[1], result};
  step.gemm = *gemm;
  step.operands = lhs.dtype;
  step.result = dot.shape.dtype;
  step.what = dot.name;
  Timed timed = record(std::move(step));
  timed.by = "cuBLAS";
  return timed;
}

bool CudaBackend::multiplies(const Shape& lhs, const Shape& rhs, const Shape& result) const {
  return blas_ != nullptr && lhs.dtype == rhs.dtype && Blas::knows(lhs.dtype, result.dtype);
}

std::optional<Timed> CudaBackend::convolve(const Node& node, const Shape& input, const Shape& weights,
                                           std::span<const DeviceAddress> operands, DeviceAddress result) {
  std::string why;
  if (options_.convolutions != Convolutions::kPatches) {
    DnnTerms terms;
    Dnn::Prepared prepared = prepare(node, input, weights, terms);
    if (prepared.verdict)
      return convolve_by_dnn(node, terms.convolution, std::move(prepared.plan), weights, operands, result);
    why = std::move(prepared.verdict.why);
    if (options_.convolutions == Convolutions::kDnn)
      throw Error(fmt::format("{}: cuDNN does not make it: {}", node.name, why),
                  "use --convolutions auto or patches");
  }
  std::optional<Timed> timed = convolve_by_patches(node, input, weights, operands, result);
  if (timed) timed->by = "cuBLAS over patches" + (why.empty() ? "" : ": " + why);
  return timed;
}

Dnn::Prepared CudaBackend::prepare(const Node& node, const Shape& input, const Shape& weights,
                                   DnnTerms& terms) {
  if (!std::exchange(dnn_asked_, true) && libraries_.dnn) dnn_ = libraries_.dnn();
  if (dnn_ == nullptr) return {Verdict::no("cudnn.absent", "there is no cuDNN"), nullptr};
  Dnn::Prepared prepared;
  for (const bool features_last : {true, false}) {  // what lies so is fastest as it lies
    terms = dnn_terms(node, input, weights, features_last);
    prepared.verdict = terms.verdict;
    if (terms.verdict) prepared = dnn_->prepare(terms.convolution, options_.tf32);
    if (prepared.verdict) break;
  }
  return prepared;
}

Timed CudaBackend::convolve_by_dnn(const Node& node, const DnnConvolution& terms,
                                   std::unique_ptr<DnnPlan> plan, const Shape& weights,
                                   std::span<const DeviceAddress> operands, DeviceAddress result) {
  Step step;
  step.kind = Step::Kind::kConvolution;
  step.what = node.name;
  step.dnn = dnn_plans_.emplace_back(std::move(plan)).get();
  const auto dense = gather(terms.weights, weights, operands[1], step);
  std::optional<DeviceAddress> workspace;
  if (const std::size_t bytes = step.dnn->workspace_bytes(); bytes > 0)
    workspace = allocate(bytes, node.name, false);
  step.pointers = {operands[0], dense.value_or(operands[1]), result, workspace.value_or(0)};
  const std::string by = fmt::format("cuDNN, {}", step.dnn->algorithm());
  Timed timed = record(std::move(step));
  timed.by = by;
  for (const auto& taken : {dense, workspace})
    if (taken) release(*taken);
  return timed;
}

std::optional<Timed> CudaBackend::convolve_by_patches(const Node& node, const Shape& input,
                                                      const Shape& weights,
                                                      std::span<const DeviceAddress> operands,
                                                      DeviceAddress result) {
  if (!multiplies(input, weights, node.shape)) return std::nullopt;
  const auto product = product_of(node, input, weights);
  if (!product) return std::nullopt;
  Step step;
  step.kind = Step::Kind::kProduct;
  step.gemm = product->gemm;
  step.operands = input.dtype;
  step.result = node.shape.dtype;
  step.what = node.name;
  const auto patches = gather(product->patches, input, operands[0], step);
  const auto dense = gather(product->weights, weights, operands[1], step);
  DeviceAddress a = patches.value_or(operands[0]), b = dense.value_or(operands[1]);
  if (!product->patches_first) std::swap(a, b);
  step.pointers = {a, b, result};
  const Timed timed = record(std::move(step));
  for (const auto& gathered : {patches, dense})
    if (gathered) release(*gathered);
  return timed;
}

std::optional<DeviceAddress> CudaBackend::gather(const Gather& gather, const Shape& source,
                                                 DeviceAddress from, Step& step) {
  if (gather.copies_nothing()) return std::nullopt;
  const std::string cuda = gather_cuda(gather, source.elements_count(), byte_size(source.dtype));
  const auto [known, fresh] = gathers_.try_emplace(cuda);
  if (fresh) {
    KernelLaunch launch;
    launch.block = kGatherBlock;
    launch.grid = std::min(ceil_div(gather.elements(), std::int64_t{kGatherBlock}),
                           std::int64_t{device_.max_blocks_per_sm} * device_.sms);
    known->second = compile_kernel(cuda, "gather", launch, device_, options_.compile);
  }
  Step copy;
  copy.kernel = &known->second;
  copy.function = load(known->second).function;
  const DeviceAddress to =
      allocate(static_cast<std::size_t>(gather.elements() * byte_size(source.dtype)), step.what, false);
  copy.pointers = {from, to};
  copy.what = step.what;
  step.before.push_back(std::move(copy));
  return to;
}

void CudaBackend::perform(const Step& step) {
  for (const Step& part : step.before) perform(part);
  switch (step.kind) {
    case Step::Kind::kClear:
      driver_->check(driver_->fill(step.pointers[0], 0, step.bytes, stream_.get()), "cuMemsetD8Async",
                     step.what);
      return;
    case Step::Kind::kCopy:
      driver_->check(driver_->copy(step.pointers[0], step.pointers[1], step.bytes, stream_.get()),
                     "cuMemcpyDtoDAsync", step.what);
      return;
    case Step::Kind::kProduct:
      blas_->multiply(stream_.get(), step.gemm, step.operands, step.result, step.pointers[0],
                      step.pointers[1], step.pointers[2], options_.tf32, step.what);
      return;
    case Step::Kind::kConvolution:
      dnn_->convolve(stream_.get(), *step.dnn, step.pointers[0], step.pointers[1], step.pointers[2],
                     step.pointers[3], step.what);
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
    driver_->check(driver_->launch_cooperative(step.function, grid, 1, 1, block, 1, 1, shared, stream_.get(),
                                               arguments.data()),
                   "cuLaunchCooperativeKernel", step.what);
  else if (step.kernel->dependent)
    launch_dependent(step, arguments);
  else
    driver_->check(driver_->launch(step.function, grid, 1, 1, block, 1, 1, shared, stream_.get(),
                                   arguments.data(), nullptr),
                   "cuLaunchKernel", step.what);
}

void CudaBackend::launch_dependent(const Step& step, std::vector<void*>& arguments) {
  LaunchAttribute attribute{};
  attribute.id = kProgrammaticStreamSerialization;
  attribute.value = 1;
  const LaunchConfig config = launch_config(step.kernel->launch, stream_.get(), attribute);
  driver_->check(driver_->launch_with(&config, step.function, arguments.data(), nullptr), "cuLaunchKernelEx",
                 step.what);
}

Timed CudaBackend::record(Step step) {
  driver_->check(driver_->event_record(begin_.get(), stream_.get()), "cuEventRecord", step.what);
  perform(step);
  driver_->check(driver_->event_record(end_.get(), stream_.get()), "cuEventRecord", step.what);
  wait(step.what);
  const Timed timed{elapsed_us(), steps_.size(), {}};
  steps_.push_back(std::move(step));
  step_us_.push_back(timed.us);
  return timed;
}

void CudaBackend::wait(const std::string& what) {
  driver_->check(driver_->stream_wait(stream_.get()), "cuStreamSynchronize", what);
}

double CudaBackend::elapsed_us() const {
  float ms = 0;
  driver_->check(driver_->event_elapsed(&ms, begin_.get(), end_.get()), "cuEventElapsedTime", "timing");
  return 1e3 * static_cast<double>(ms);
}

double CudaBackend::median_us(int times, const std::function<void()>& pass) {
  std::vector<double> us;
  for (int i = 0; i < times; ++i) {
    if (options_.cache == sim::CacheMode::kCold) flush_cache();
    driver_->check(driver_->event_record(begin_.get(), stream_.get()), "cuEventRecord", "timing");
    pass();
    driver_->check(driver_->event_record(end_.get(), stream_.get()), "cuEventRecord", "timing");
    wait("timing");
    us.push_back(elapsed_us());
  }
  return median(std::move(us));
}

void CudaBackend::flush_cache() {
  const auto bytes = static_cast<std::size_t>(2 * std::max(gpu_.l2_bytes, std::int64_t{1} << 20));
  if (!flushed_) {
    Pointer memory = 0;
    driver_->check(driver_->allocate(&memory, bytes), "cuMemAlloc", "memory to overwrite the L2 cache");
    flushed_ = OwnedMemory(*driver_, memory);
  }
  driver_->check(driver_->fill(flushed_.get(), 0, bytes, stream_.get()), "cuMemsetD8Async",
                 "overwriting the L2 cache");
}

double CudaBackend::repeated_us(const Step& step) {
  if (options_.cache == sim::CacheMode::kCold) return median_us(options_.repeats, [&] { perform(step); });
  perform(step);
  const double one = median_us(1, [&] { perform(step); });
  const int times =
      std::clamp(static_cast<int>(kRepeatedUs / std::max(one, 1.0)), options_.repeats, kMostRepeats);
  const double all = median_us(1, [&] {
    for (int i = 0; i < times; ++i) perform(step);
  });
  return all / times;
}

std::optional<double> CudaBackend::graph_us(int times) {
  Capture capture(*driver_, stream_.get());
  if (!capture) return std::nullopt;
  try {
    for (const Step& step : steps_) perform(step);
  } catch (const Error&) {  // a call that cannot be captured
    return std::nullopt;
  }
  const OwnedGraph graph = capture.end();
  GraphExec made = nullptr;
  if (!graph || driver_->graph_instantiate(&made, graph.get(), 0) != kSuccess) return std::nullopt;
  const OwnedGraphExec ready(*driver_, made);
  const auto pass = [&] {
    driver_->check(driver_->graph_launch(ready.get(), stream_.get()), "cuGraphLaunch", "CUDA graph");
  };
  pass();
  return median_us(times, pass);
}

void CudaBackend::settle(bool whole) {
  // Where the host took part, a second pass would not compute the same.
  if (!whole || options_.repeats == 0) return;
  std::map<std::pair<const CompiledKernel*, std::string>, double> known;  // of kernels and calls that recur
  for (std::size_t i = 0; i < steps_.size(); ++i) {
    const auto [at, fresh] = known.try_emplace({steps_[i].kernel, steps_[i].what}, 0);
    if (fresh) at->second = repeated_us(steps_[i]);
    step_us_[i] = at->second;
  }
  const auto pass = [&] {
    for (const Step& step : steps_) perform(step);
  };
  pass();  // results are those of a whole pass, whatever single steps have left
  wait("the last pass");
  repeated_ = Repeated{options_.repeats, median_us(options_.repeats, pass), graph_us(options_.repeats)};
}

}  // namespace stitchwork::cuda
