// Kernels on an NVIDIA GPU, through the driver.
#pragma once

#include <functional>
#include <map>
#include <memory>

#include "runtime/backend.h"
#include "runtime/convolution.h"
#include "runtime/cuda/blas.h"
#include "runtime/cuda/driver.h"
#include "runtime/cuda/pool.h"

namespace stitchwork::cuda {

/// What the driver says of a GPU.
struct Gpu {
  std::string name;
  int cc_major = 0, cc_minor = 0, sms = 0;
  std::int64_t l2_bytes = 0, memory_bytes = 0;
  int driver_version = 0;  ///< of CUDA: 13000
};
/// Number `index` of the machine's GPUs. Throws Error.
Gpu gpu(const Driver& driver, int index);

/// The description of a GPU: of the same compute capability and number of SMs, the most similar name first.
/// Throws Error where there is none.
const Device& described(const Gpu& gpu);

struct CudaOptions {
  int index = 0;  ///< which GPU
  /// Every kernel and call is repeated at least this often: its time is the median with the L2 cache
  /// overwritten before each (cold), or the mean back to back (warm). The whole program likewise. 0, and
  /// where the host takes part: of the one launch of the run.
  int repeats = 20;
  sim::CacheMode cache = sim::CacheMode::kCold;
  bool tf32 = false;
  CompileOptions compile;  ///< of kernels that are no plan's: a convolution's patches
};

/// Buffers come from one pool; library calls are cuBLAS's: products of matrices, and convolutions as products
/// over their patches.
class CudaBackend final : public Backend {
 public:
  /// Throws Error where the GPU is not of the kind the plan was made for. `blas` makes a Blas once the GPU's
  /// context is current; null: the CPU reference computes products.
  CudaBackend(std::shared_ptr<const Driver> driver, const Device& device, const CudaOptions& options,
              const std::function<std::unique_ptr<Blas>()>& blas);
  ~CudaBackend() override;
  CudaBackend(const CudaBackend&) = delete;
  CudaBackend& operator=(const CudaBackend&) = delete;

  Method method() const override { return Method::kMeasured; }
  DeviceAddress allocate(std::size_t bytes, const std::string& name, bool written_once) override;
  void release(DeviceAddress address) override;
  void write(DeviceAddress address, std::span<const std::byte> data) override;
  void read(DeviceAddress address, std::span<std::byte> data) override;
  void clear(DeviceAddress address, std::size_t bytes) override;
  void copy(DeviceAddress to, DeviceAddress from, std::size_t bytes) override;
  Launched launch(const CompiledKernel& kernel, std::span<const DeviceAddress> arguments) override;
  std::optional<Timed> call(const Computation& computation, const Node& node,
                            std::span<const DeviceAddress> operands, DeviceAddress result) override;
  bool keeps_sources() const override { return true; }
  void settle(bool whole) override;
  double time_us(const Timed& timed) const override { return step_us_.at(timed.id); }
  std::optional<Repeated> repeated() const override { return repeated_; }

 private:
  CudaBackend(std::shared_ptr<const Driver> driver, const Device& device, const CudaOptions& options);

  /// A kernel as the driver has it.
  struct Loaded {
    Module module = nullptr;
    Function function = nullptr;
    int registers = 0, resident_blocks = 0;
  };
  /// What the device did, in order, to be done again.
  struct Step {
    enum class Kind : std::uint8_t { kLaunch, kClear, kCopy, kProduct } kind = Kind::kLaunch;
    const CompiledKernel* kernel = nullptr;
    Function function = nullptr;
    std::vector<DeviceAddress> pointers;  ///< arguments; or to, from; or a, b, c
    std::size_t bytes = 0;
    Gemm gemm;
    DType operands = DType::kF32, result = DType::kF32;
    std::string what;
    std::vector<Step> before;  ///< performed first, as parts of this one
  };

  const Loaded& load(const CompiledKernel& kernel);
  std::optional<Timed> multiply(const Node& dot, const Shape& lhs, const Shape& rhs,
                                std::span<const DeviceAddress> operands, DeviceAddress result);
  std::optional<Timed> convolve(const Node& node, const Shape& input, const Shape& weights,
                                std::span<const DeviceAddress> operands, DeviceAddress result);
  /// Appends to `step` what gathers `source`, of `elements`, into new memory, and returns that, which the
  /// caller gives back; nothing where the source is as it should be.
  std::optional<DeviceAddress> gather(const Gather& gather, const Shape& source, DeviceAddress from,
                                      Step& step);
  void perform(const Step& step);
  /// Performs and remembers it; the time of this first run, by events.
  Timed record(Step step);
  void wait(const std::string& what);
  double elapsed_us() const;  ///< between the two events
  double repeated_us(const Step& step);
  /// Median over `times` runs of `pass`, in us.
  double median_us(int times, const std::function<void()>& pass);
  std::optional<double> graph_us(int times);
  void flush_cache();

  std::shared_ptr<const Driver> driver_;
  const Device& device_;
  CudaOptions options_;
  Gpu gpu_;
  Context context_ = nullptr;
  Stream stream_ = nullptr;
  Event begin_ = nullptr, end_ = nullptr;
  std::unique_ptr<Blas> blas_;
  /// Two, so that no buffer of an earlier step shares bytes with what is written once.
  Pool pool_, sources_;
  std::vector<Pointer> allocations_;
  Pointer flushed_ = 0;                            ///< twice the L2 cache, once needed
  std::map<std::string, Loaded> modules_;          ///< by source
  std::map<std::string, CompiledKernel> gathers_;  ///< likewise; steps point to them
  std::vector<Step> steps_;
  std::vector<double> step_us_;
  std::optional<Repeated> repeated_;
};

}  // namespace stitchwork::cuda
