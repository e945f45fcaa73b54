// Kernels on an NVIDIA GPU, through the driver.
#pragma once

#include <functional>
#include <map>
#include <memory>

#include "runtime/backend.h"
#include "runtime/convolution.h"
#include "runtime/cuda/blas.h"
#include "runtime/cuda/dnn.h"
#include "runtime/cuda/driver.h"
#include "runtime/cuda/gpu.h"
#include "runtime/cuda/handles.h"
#include "runtime/cuda/pool.h"
#include "runtime/tiled_products.h"

namespace stitchwork::cuda {

/// What makes convolutions: cuDNN where it is and can, else cuBLAS over patches; or one of them, always.
enum class Convolutions : std::uint8_t { kAuto, kDnn, kPatches };
/// "auto", "cudnn", "patches". Throws Error for another word.
Convolutions parse_convolutions(const std::string& word);

struct CudaOptions {
  int index = 0;  ///< which GPU
  /// Every kernel and call is repeated at least this often: its time is the median with the L2 cache
  /// overwritten before each (cold), or the mean back to back (warm). The whole program likewise. 0, and
  /// where the host takes part: of the one launch of the run.
  int repeats = 20;
  /// Steps are timed where they stand, by an event behind each in passes of the whole program, `repeats` of
  /// them, with as many without events between; nothing is repeated alone and no cache overwritten: as
  /// mini-batches of a training job follow one another (Astra, section 5.2).
  bool points = false;
  sim::CacheMode cache = sim::CacheMode::kCold;
  bool tf32 = false;
  Convolutions convolutions = Convolutions::kAuto;
  CompileOptions compile;  ///< of kernels that are no plan's: a convolution's patches, what is added to it
  /// Matrix products to which nothing is added are made by this kernel of ours, where it makes them.
  std::optional<TiledProduct> products = std::nullopt;
};

/// Makes the libraries once the GPU's context is current; what gives null, or is not set, is not there: the
/// CPU reference computes products, and convolutions are products.
struct CudaLibraries {
  std::function<std::unique_ptr<Blas>()> blas;
  std::function<std::unique_ptr<Dnn>()> dnn;  ///< asked at the first convolution
};

/// Buffers come from one pool; library calls are products of matrices, which cuBLAS makes, and convolutions:
/// cuDNN's, or cuBLAS's products over their patches, to which a kernel adds. It is used by the thread that
/// made it, whose current context is the GPU's from then on.
class CudaBackend final : public Backend {
 public:
  /// Throws Error where the GPU is not of the kind the plan was made for.
  CudaBackend(std::shared_ptr<const Driver> driver, const Device& device, const CudaOptions& options,
              CudaLibraries libraries);
  CudaBackend(const CudaBackend&) = delete;
  CudaBackend& operator=(const CudaBackend&) = delete;

  Method method() const override { return Method::kMeasured; }
  const Gpu& gpu() const { return gpu_; }
  /// Whether cuBLAS is here.
  bool has_blas() const { return lanes_.front()->blas != nullptr; }
  /// Modules, library handles and streams stay.
  void begin_program() override;
  void begin_step(std::size_t index, int stream, std::span<const int> waits, bool once) override;
  DeviceAddress allocate(std::size_t bytes, const std::string& name, MemoryUse use) override;
  void release(DeviceAddress address) override;
  void write(DeviceAddress address, std::span<const std::byte> data) override;
  void read(DeviceAddress address, std::span<std::byte> data) override;
  void clear(DeviceAddress address, std::size_t bytes) override;
  void copy(DeviceAddress to, DeviceAddress from, std::size_t bytes) override;
  Launched launch(const CompiledKernel& kernel, std::span<const DeviceAddress> arguments) override;
  std::optional<Timed> call(const Computation& computation, const Node& node,
                            const LibraryCall& call) override;
  bool keeps_sources() const override { return true; }
  void settle(bool whole) override;
  double time_us(const Timed& timed) const override { return step_us_.at(timed.id); }
  std::optional<Repeated> repeated() const override { return repeated_; }

 private:
  /// A kernel as the driver has it.
  struct Loaded {
    OwnedModule module;
    Function function = nullptr;  ///< of the module
    int registers = 0, resident_blocks = 0;
  };
  /// What the device did, in order, to be done again.
  struct Step {
    enum class Kind : std::uint8_t { kLaunch, kClear, kCopy, kProduct, kConvolution } kind = Kind::kLaunch;
    const CompiledKernel* kernel = nullptr;
    Function function = nullptr;
    std::vector<DeviceAddress>
        pointers;  ///< arguments; or to, from; a, b, c; input, kernel, output, workspace
    std::size_t bytes = 0;
    Gemm gemm;
    Added added;
    DeviceAddress table = 0;  ///< of a product's matrices (Blas::matrices)
    const DnnPlan* dnn = nullptr;
    DType operands = DType::kF32, result = DType::kF32;
    std::string what;
    std::vector<Step> before, after;  ///< performed first and last, as parts of this one
    std::size_t lane = 0;
    std::size_t planned = 0;         ///< step of the plan
    std::vector<std::size_t> waits;  ///< for steps of other lanes, by number
    bool once = false;               ///< no part of a pass
  };
  /// A stream, with what the steps on it have to themselves.
  struct Lane {
    OwnedStream stream;
    std::unique_ptr<Blas> blas;
    std::unique_ptr<Dnn> dnn;
    Pool memory;       ///< of single steps
    OwnedEvent ended;  ///< all of a pass that is on it
  };

  const Loaded& load(const CompiledKernel& kernel);
  /// The kernel's machine code where it is of this GPU, else its PTX.
  OwnedModule load_module(const CompiledKernel& kernel);
  /// Blocks that the GPU holds at once, in whole clusters.
  std::int64_t resident_blocks(const CompiledKernel& kernel, const Loaded& loaded) const;
  /// In device memory, the same for the same.
  DeviceAddress table_of(const std::vector<Pointer>& pointers, const std::string& what);
  /// Whether cuBLAS is here and makes products of these element types.
  bool multiplies(const Shape& lhs, const Shape& rhs, const Shape& result) const;
  std::optional<Timed> multiply(const Node& dot, const Node& lhs, const Node& rhs, const LibraryCall& call);
  /// By our own kernel, where options say so and it makes this product.
  std::optional<Timed> multiply_by_tiles(const Node& dot, const Computation& computation,
                                         const LibraryCall& call);
  std::optional<Timed> convolve(const Node& node, const Shape& input, const Shape& weights,
                                const LibraryCall& call);
  /// As cuDNN agrees to make it; the convolution in its terms is left in `terms`.
  Dnn::Prepared prepare(const Node& node, const Shape& input, const Shape& weights, DnnEpilogue epilogue,
                        DnnTerms& terms);
  Timed convolve_by_dnn(const Node& node, const DnnConvolution& terms, std::unique_ptr<DnnPlan> plan,
                        const Shape& weights, const LibraryCall& call);
  std::optional<Timed> convolve_by_patches(const Node& node, const Shape& input, const Shape& weights,
                                           const LibraryCall& call);
  /// Appends to `step` what gathers `source`, of `elements`, into new memory, and returns that, which the
  /// caller gives back; nothing where the source is as it should be.
  std::optional<DeviceAddress> gather(const Gather& gather, const Shape& source, DeviceAddress from,
                                      Step& step);
  /// Appends to `step` a kernel of ours that does to the convolution what cuDNN would.
  void add_epilogue(const Node& node, const Added& added, DeviceAddress result, Step& step);
  /// A kernel that is no plan's, over `elements`: compiled once.
  Step helper(const std::string& cuda, const char* name, std::int64_t elements,
              std::vector<DeviceAddress> pointers, const std::string& what);
  /// Lanes are made when they are first asked for; 0 is there.
  Lane& lane(std::size_t index);
  OwnedEvent make_event(unsigned flags);
  Pool& pool(MemoryUse use);
  void perform(const Step& step, const Lane& lane);
  void perform_alone(const Step& step, const Lane& lane);  ///< without its parts
  /// All steps of a pass, each on its lane behind those that it waits for; lane 0 begins first and ends last.
  /// `points`: with the event of each step of the plan behind its last.
  void perform_all(bool points = false);
  /// What steps of other lanes wait for gets an event; calls get a library's handle on each lane.
  void prepare_lanes();
  /// Of a kernel that waits itself for what comes before. Those with grid barriers are launched as ever: all
  /// their blocks have to be resident.
  void launch_dependent(const Step& step, const Lane& lane, std::vector<void*>& arguments);
  /// Performs and remembers it; the time of this first run, by events.
  Timed record(Step step);
  void wait(const std::string& what);
  double elapsed_us(const OwnedEvent& event) const;  ///< since begin_
  double repeated_us(const Step& step);
  /// Median over `times` runs of `pass`, in us.
  double median_us(int times, const std::function<void()>& pass);
  std::optional<double> graph_us(int times);
  /// Passes with points and without, in turn.
  Repeated timed_in_place(int times);
  void flush_cache();

  std::shared_ptr<const Driver> driver_;
  const Device& device_;
  CudaOptions options_;
  Gpu gpu_;
  // Each is given back before those above it.
  OwnedContext context_;
  OwnedEvent begin_, end_;
  std::vector<OwnedMemory> allocations_;
  OwnedMemory flushed_;  ///< twice the L2 cache, once needed
  CudaLibraries libraries_;
  std::vector<std::unique_ptr<Lane>> lanes_;
  bool dnn_asked_ = false;
  std::vector<std::unique_ptr<DnnPlan>> dnn_plans_;  ///< steps point to them
  /// Two, so that no buffer of an earlier step shares bytes with what is written once.
  Pool values_, sources_;
  std::map<std::string, Loaded> modules_;  ///< by source
  std::map<std::vector<Pointer>, DeviceAddress> tables_;
  std::map<std::string, CompiledKernel> helpers_;  ///< likewise; steps point to them
  TiledKernels tiled_;                             ///< likewise
  std::vector<Step> steps_;
  std::map<std::size_t, OwnedEvent> events_;  ///< by step that others wait for
  std::map<std::size_t, OwnedEvent> points_;  ///< by the last of ours of a step of the plan
  OwnedEvent begun_;                          ///< a pass, on lane 0
  std::size_t lane_ = 0;                      ///< of the plan's step that is being done
  bool once_ = false;                         ///< likewise
  std::vector<std::size_t> waits_;            ///< its, until one of ours has them
  /// By lane the last step, and by plan's step the last on its lane when it had ended.
  std::map<std::size_t, std::size_t> last_on_;
  std::map<std::size_t, std::size_t> ended_;
  std::optional<std::size_t> begun_step_;  ///< the plan's
  std::vector<double> step_us_;
  std::optional<Repeated> repeated_;
};

}  // namespace stitchwork::cuda
