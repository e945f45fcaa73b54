// Stands in for the CUDA runtime where there is no GPU: what a host program allocates, copies and launches
// becomes a program of PTX (docs/ptx_programs.md), which `stitchwork ptx run` runs. Results are not there
// while the host program runs, so that it may not look at them. Environment: RECORD_PARAMETERS, a file of
// lines "kernel bytes bytes ...", and RECORD_FOLDER, where program.json goes.
#include <cuda_runtime_api.h>
#include <sys/mman.h>

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <map>
#include <sstream>
#include <string>
#include <vector>

namespace {

struct Buffer {
  std::string name;
  unsigned char* data;
  std::size_t bytes;
  bool given = false;  // by the host

  /// A terabyte from the next, as the simulator's lie: what remains of a pointer in the padding of an
  /// argument then stands for a place with the same lower bytes, among them those that the host set.
  Buffer(std::size_t number, std::size_t size)
      : name("b" + std::to_string(number)), data(at(number, size)), bytes(size) {}
  static unsigned char* at(std::size_t number, std::size_t size) {
    constexpr std::size_t kFirst = 16, kTerabyteShift = 40;  // below what a program's own code and heap have
    void* place = reinterpret_cast<void*>((kFirst + number) << kTerabyteShift);
    if (mmap(place, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE, -1, 0) !=
        place)
      std::abort();
    return static_cast<unsigned char*>(place);
  }
};
struct Recorder {
  std::map<const void*, std::string> kernels;
  std::map<std::string, std::vector<std::size_t>> parameters;
  std::vector<Buffer*> buffers;
  std::vector<std::string> steps;
  struct Configuration {
    dim3 grid, block;
    std::size_t shared = 0;
  };
  std::vector<Configuration> configurations;

  static Recorder& the() {
    static Recorder* one = new Recorder;
    return *one;
  }
  Recorder() {
    std::ifstream file(std::getenv("RECORD_PARAMETERS"));
    for (std::string line; std::getline(file, line);) {
      std::istringstream words(line);
      std::string kernel;
      words >> kernel;
      for (std::size_t bytes = 0; words >> bytes;) parameters[kernel].push_back(bytes);
    }
    std::atexit([] { the().write(); });
  }
  // "name+offset", or nothing.
  std::string place(unsigned long long value) const {
    for (const Buffer* b : buffers) {
      const auto base = reinterpret_cast<unsigned long long>(b->data);
      if (value >= base && value <= base + b->bytes) return b->name + "+" + std::to_string(value - base);
    }
    return "";
  }
  std::string argument(const unsigned char* at, std::size_t bytes) const {
    const std::size_t unit = bytes % 8 == 0 ? 8 : bytes % 4 == 0 ? 4 : 1;
    std::string text;
    for (std::size_t k = 0; k < bytes; k += unit) {
      unsigned long long value = 0;
      std::memcpy(&value, at + k, unit);
      const std::string found = unit == 8 ? place(value) : "";
      text += (k == 0 ? "" : ", ") +
              ("\"" + (found.empty() ? "u" + std::to_string(8 * unit) + ":" + std::to_string(value) : found) +
               "\"");
    }
    return bytes == unit ? text : "{\"struct\": [" + text + "]}";
  }
  void launch(const void* function, dim3 grid, dim3 block, void** arguments, std::size_t shared) {
    const std::string& kernel = kernels.at(function);
    std::ostringstream step;
    step << "{\"kernel\": \"" << kernel << "\", \"grid\": [" << grid.x << ", " << grid.y << ", " << grid.z
         << "], \"block\": [" << block.x << ", " << block.y << ", " << block.z
         << "], \"shared_bytes\": " << shared << ", \"arguments\": [";
    const std::vector<std::size_t>& sizes = parameters[kernel];
    for (std::size_t k = 0; k < sizes.size(); ++k)
      step << (k == 0 ? "" : ", ") << argument(static_cast<const unsigned char*>(arguments[k]), sizes[k]);
    step << "]}";
    steps.push_back(step.str());
  }
  void write() const {
    const std::string folder = std::getenv("RECORD_FOLDER");
    std::ofstream out(folder + "/program.json");
    out << "{\"buffers\": {";
    for (const Buffer* b : buffers) {
      out << (b == buffers.front() ? "" : ", ") << "\"" << b->name << "\": {\"bytes\": " << b->bytes
          << ", \"given\": " << (b->given ? "true" : "false") << "}";
      if (b->given)
        std::ofstream(folder + "/" + b->name + ".bin", std::ios::binary)
            .write(reinterpret_cast<const char*>(b->data), static_cast<std::streamsize>(b->bytes));
    }
    out << "}, \"steps\": [";
    for (const std::string& step : steps) out << (&step == &steps.front() ? "" : ",\n") << step;
    out << "]}\n";
  }
};

}  // namespace

extern "C" {

void** __cudaRegisterFatBinary(void*) { return new void*; }
void __cudaRegisterFatBinaryEnd(void**) {}
void __cudaUnregisterFatBinary(void**) {}
void __cudaRegisterFunction(void**, const char* host, char*, const char* device, int, uint3*, uint3*, dim3*,
                            dim3*, int*) {
  Recorder::the().kernels[host] = device;
}
void __cudaRegisterVar(void**, char*, char*, const char*, int, size_t, int, int) {}
char __cudaInitModule(void**) { return 1; }
unsigned __cudaPushCallConfiguration(dim3 grid, dim3 block, size_t shared, void*) {
  Recorder::the().configurations.push_back({grid, block, shared});
  return 0;
}
cudaError_t __cudaPopCallConfiguration(dim3* grid, dim3* block, size_t* shared, void* stream) {
  const auto c = Recorder::the().configurations.back();
  Recorder::the().configurations.pop_back();
  *grid = c.grid;
  *block = c.block;
  *shared = c.shared;
  *static_cast<cudaStream_t*>(stream) = nullptr;
  return cudaSuccess;
}
cudaError_t __cudaGetKernel(cudaKernel_t* kernel, const void* function) {
  *kernel = reinterpret_cast<cudaKernel_t>(const_cast<void*>(function));
  return cudaSuccess;
}
cudaError_t __cudaLaunchKernel(cudaKernel_t kernel, dim3 grid, dim3 block, void** arguments, size_t shared,
                               cudaStream_t) {
  Recorder::the().launch(kernel, grid, block, arguments, shared);
  return cudaSuccess;
}
cudaError_t cudaLaunchKernel(const void* function, dim3 grid, dim3 block, void** arguments, size_t shared,
                             cudaStream_t) {
  Recorder::the().launch(function, grid, block, arguments, shared);
  return cudaSuccess;
}
cudaError_t cudaMalloc(void** to, size_t bytes) {
  auto& buffers = Recorder::the().buffers;
  buffers.push_back(new Buffer(buffers.size(), bytes == 0 ? 1 : bytes));
  *to = buffers.back()->data;
  return cudaSuccess;
}
cudaError_t cudaFree(void*) { return cudaSuccess; }
cudaError_t cudaMemcpy(void* to, const void* from, size_t bytes, cudaMemcpyKind kind) {
  if (kind != cudaMemcpyHostToDevice || !Recorder::the().steps.empty()) std::abort();
  std::memcpy(to, from, bytes);
  for (Buffer* b : Recorder::the().buffers)
    if (to >= b->data && to < b->data + b->bytes) b->given = true;
  return cudaSuccess;
}
cudaError_t cudaMemsetAsync(void* to, int value, size_t bytes, cudaStream_t) {
  Recorder::the().steps.push_back(
      "{\"memset\": \"" + Recorder::the().place(reinterpret_cast<unsigned long long>(to)) +
      "\", \"value\": " + std::to_string(value & 255) + ", \"bytes\": " + std::to_string(bytes) + "}");
  return cudaSuccess;
}
cudaError_t cudaMemcpyAsync(void* to, const void* from, size_t bytes, cudaMemcpyKind, cudaStream_t) {
  const auto place = [](const void* p) {
    return Recorder::the().place(reinterpret_cast<unsigned long long>(p));
  };
  Recorder::the().steps.push_back("{\"copy\": \"" + place(to) + "\", \"from\": \"" + place(from) +
                                  "\", \"bytes\": " + std::to_string(bytes) + "}");
  return cudaSuccess;
}
cudaError_t cudaGetDevice(int* device) {
  *device = 0;
  return cudaSuccess;
}
cudaError_t cudaSetDevice(int) { return cudaSuccess; }
cudaError_t cudaGetDeviceCount(int* count) {
  *count = 1;
  return cudaSuccess;
}
/// An A100's, but for its version.
cudaError_t cudaDeviceGetAttribute(int* value, cudaDeviceAttr attribute, int) {
  const int sm = std::atoi(std::getenv("RECORD_SM"));
  *value = attribute == cudaDevAttrMultiProcessorCount            ? 108
           : attribute == cudaDevAttrMaxGridDimX                  ? 2147483647
           : attribute == cudaDevAttrMaxThreadsPerBlock           ? 1024
           : attribute == cudaDevAttrMaxSharedMemoryPerBlock      ? 49152
           : attribute == cudaDevAttrMaxSharedMemoryPerBlockOptin ? 65536
           : attribute == cudaDevAttrComputeCapabilityMajor       ? sm / 10
           : attribute == cudaDevAttrComputeCapabilityMinor       ? sm % 10
           : attribute == cudaDevAttrWarpSize                     ? 32
                                                                  : 0;
  return cudaSuccess;
}
cudaError_t cudaFuncGetAttributes(cudaFuncAttributes* attributes, const void*) {
  *attributes = {};
  attributes->ptxVersion = attributes->binaryVersion = std::atoi(std::getenv("RECORD_SM"));
  attributes->maxThreadsPerBlock = 1024;
  attributes->numRegs = 32;
  return cudaSuccess;
}
cudaError_t cudaFuncSetAttribute(const void*, cudaFuncAttribute, int) { return cudaSuccess; }
cudaError_t cudaOccupancyMaxActiveBlocksPerMultiprocessorWithFlags(int* blocks, const void*, int threads,
                                                                   size_t, unsigned) {
  *blocks = 2048 / threads;
  return cudaSuccess;
}
cudaError_t cudaOccupancyMaxActiveBlocksPerMultiprocessor(int* blocks, const void*, int threads, size_t) {
  *blocks = 2048 / threads;
  return cudaSuccess;
}
cudaError_t cudaGetLastError() { return cudaSuccess; }
cudaError_t cudaPeekAtLastError() { return cudaSuccess; }
cudaError_t cudaStreamSynchronize(cudaStream_t) { return cudaSuccess; }
cudaError_t cudaDeviceSynchronize() { return cudaSuccess; }
const char* cudaGetErrorString(cudaError_t) { return "none"; }
}
