// cuDNN without a GPU: convolutions are computed on the host, in the fake driver's memory, from nothing but
// what the descriptors say; calls are recorded, and any can be made to fail.
#pragma once

#include <cmath>

#include "core/graph/literal.h"
#include "core/graph/window.h"
#include "tests/runtime/fake_cublas.h"

namespace stitchwork::testing {

/// Behind cuDNN's handles. Values are those of cudnn.h.
struct FakeDnnTensor {
  int type = -1;
  std::vector<int> dims, strides;
};
struct FakeDnnFilter {
  int type = -1, format = -1;
  std::vector<int> dims;
};
struct FakeDnnActivation {
  int mode = -1;
};
struct FakeDnnConvolution {
  std::vector<int> pads, strides, dilations;
  int mode = -1, groups = 1, math = 0;
};
inline constexpr std::size_t kFakeDnnWorkspace = 512;

/// The values of an array in device memory, whose element of an index is at the sum of strides.
class FakeDnnArray {
 public:
  FakeDnnArray(int type, sim::DeviceAddress base, std::vector<std::int64_t> strides)
      : type_(type), base_(base), strides_(std::move(strides)) {}

  double load(const std::vector<std::int64_t>& index) const {
    switch (type_) {
      case 0:
        return static_cast<double>(read<float>(index));
      case 1:
        return read<double>(index);
      case 2:
        return static_cast<double>(f16_to_f32(read<std::uint16_t>(index)));
      default:
        return static_cast<double>(bf16_to_f32(read<std::uint16_t>(index)));
    }
  }
  void store(const std::vector<std::int64_t>& index, double value) const {
    const auto narrow = static_cast<float>(value);
    switch (type_) {
      case 0:
        return write(index, narrow);
      case 1:
        return write(index, value);
      case 2:
        return write(index, f32_to_f16(narrow));
      default:
        return write(index, f32_to_bf16(narrow));
    }
  }

 private:
  sim::DeviceAddress at(const std::vector<std::int64_t>& index) const {
    std::int64_t element = 0;
    for (std::size_t d = 0; d < index.size(); ++d) element += index[d] * strides_[d];
    const int bytes = type_ == 1 ? 8 : type_ == 0 ? 4 : 2;
    return base_ + static_cast<sim::DeviceAddress>(element * bytes);
  }
  template <typename T>
  T read(const std::vector<std::int64_t>& index) const {
    T value{};
    fake_gpu()->memory.read(at(index), std::as_writable_bytes(std::span(&value, 1)));
    return value;
  }
  template <typename T>
  void write(const std::vector<std::int64_t>& index, T value) const {
    fake_gpu()->memory.write(at(index), std::as_bytes(std::span(&value, 1)));
  }

  int type_;
  sim::DeviceAddress base_;
  std::vector<std::int64_t> strides_;
};

/// cudnnGetConvolutionNdForwardOutputDim; none where the descriptors do not go together.
inline std::vector<int> fake_dnn_output(const FakeDnnTensor& x, const FakeDnnFilter& w,
                                        const FakeDnnConvolution& c) {
  const std::size_t rank = x.dims.size();
  if (w.dims.size() != rank || c.pads.size() + 2 != rank || x.type != w.type || c.groups < 1 ||
      x.dims[1] != w.dims[1] * c.groups || w.dims[0] % c.groups != 0)
    return {};
  std::vector<int> dims{x.dims[0], w.dims[0]};
  for (std::size_t s = 0; s + 2 < rank; ++s)
    dims.push_back(
        (x.dims[s + 2] + 2 * c.pads[s] - ((w.dims[s + 2] - 1) * c.dilations[s] + 1)) / c.strides[s] + 1);
  return dims;
}

/// What is done to each sum before it is stored.
struct FakeDnnEpilogue {
  double side_factor = 0;
  const void *side = nullptr, *bias = nullptr;  ///< the bias, null: nothing is done
  bool relu = false;
};

inline void fake_dnn_convolve(const FakeDnnTensor& x, const FakeDnnFilter& w, const FakeDnnTensor& y,
                              const FakeDnnConvolution& c, const void* from, const void* by, void* to,
                              const FakeDnnEpilogue& epilogue = {}) {
  const auto wide = [](const std::vector<int>& values) {
    return std::vector<std::int64_t>(values.begin(), values.end());
  };
  const auto address = [](const void* pointer) { return reinterpret_cast<sim::DeviceAddress>(pointer); };
  const std::size_t rank = x.dims.size();
  const std::vector<std::int64_t> kernel = wide(w.dims), output = wide(y.dims);
  // The filter is dense: K, C, spatial, or K, spatial, C.
  std::vector<std::int64_t> strides(rank, 1);
  std::vector<std::size_t> order(rank);
  for (std::size_t d = 0; d < rank; ++d) order[d] = w.format == 0 || d == 0 ? d : d + 1 == rank ? 1 : d + 1;
  for (std::size_t d = rank - 1; d-- > 0;) strides[order[d]] = strides[order[d + 1]] * kernel[order[d + 1]];
  const FakeDnnArray in(x.type, address(from), wide(x.strides)), filter(w.type, address(by), strides),
      out(y.type, address(to), wide(y.strides));
  const std::int64_t outputs_of_group = kernel[0] / c.groups;
  std::vector<std::int64_t> at(rank, 0), taps(kernel.begin() + 1, kernel.end());
  do {
    double sum = 0;
    std::vector<std::int64_t> tap(taps.size(), 0);
    do {
      std::vector<std::int64_t> read{at[0], at[1] / outputs_of_group * kernel[1] + tap[0]}, weight{at[1]};
      weight.insert(weight.end(), tap.begin(), tap.end());
      bool inside = true;
      for (std::size_t s = 0; s + 2 < rank; ++s) {
        const std::int64_t t = c.mode == 0 ? kernel[s + 2] - 1 - tap[s + 1] : tap[s + 1];
        read.push_back(at[s + 2] * c.strides[s] - c.pads[s] + t * c.dilations[s]);
        inside = inside && read.back() >= 0 && read.back() < x.dims[s + 2];
      }
      if (inside) sum += in.load(read) * filter.load(weight);
    } while (advance(tap, taps));
    if (epilogue.bias != nullptr) {
      if (epilogue.side_factor != 0)
        sum += epilogue.side_factor * FakeDnnArray(y.type, address(epilogue.side), wide(y.strides)).load(at);
      sum += FakeDnnArray(y.type, address(epilogue.bias), {1}).load({at[1]});
      if (epilogue.relu) sum = std::fmax(sum, 0);  // CUDNN_NOT_PROPAGATE_NAN
    }
    out.store(at, sum);
  } while (advance(at, output));
}

/// It names five algorithms, of which the last may be taken: the others are not there, add in any order, need
/// too much memory and round. Calls count and fail (with status 5000) as those of the fake driver, by "dnn_"
/// and the member of DnnFunctions; what is convolved is listed among what the GPU has `launched`.
inline std::unique_ptr<cu::Dnn> fake_dnn() {
  cu::DnnFunctions f;
#define FAKE_DNN_CALL(member) \
  if (fails("dnn_" #member)) return 5000
  f.status_text = [](int status) -> const char* {
    return status == 2000   ? "CUDNN_STATUS_BAD_PARAM"
           : status == 3000 ? "CUDNN_STATUS_NOT_SUPPORTED"
                            : "CUDNN_STATUS_FAKE";
  };
  f.create = [](void** handle) -> int {
    FAKE_DNN_CALL(create);
    count_live("dnn", 1);
    return *handle = new FakeHandle, 0;
  };
  f.destroy = [](void* handle) -> int {
    delete static_cast<FakeHandle*>(handle);
    return give_back("dnn_destroy", "dnn");
  };
  f.set_stream = [](void* handle, cu::Stream stream) -> int {
    FAKE_DNN_CALL(set_stream);
    return static_cast<FakeHandle*>(handle)->take(stream) ? 0 : 2000;
  };
  f.tensor_create = [](void** tensor) -> int {
    FAKE_DNN_CALL(tensor_create);
    count_live("dnn tensor", 1);
    return *tensor = new FakeDnnTensor, 0;
  };
  f.tensor_set = [](void* tensor, int type, int rank, const int* dims, const int* strides) -> int {
    FAKE_DNN_CALL(tensor_set);
    if (rank < 4 || rank > 5) return 3000;
    *static_cast<FakeDnnTensor*>(tensor) = {type, {dims, dims + rank}, {strides, strides + rank}};
    return 0;
  };
  f.tensor_destroy = [](void* tensor) -> int {
    delete static_cast<FakeDnnTensor*>(tensor);
    return give_back("dnn_tensor_destroy", "dnn tensor");
  };
  f.filter_create = [](void** filter) -> int {
    FAKE_DNN_CALL(filter_create);
    count_live("dnn filter", 1);
    return *filter = new FakeDnnFilter, 0;
  };
  f.filter_set = [](void* filter, int type, int format, int rank, const int* dims) -> int {
    FAKE_DNN_CALL(filter_set);
    *static_cast<FakeDnnFilter*>(filter) = {type, format, {dims, dims + rank}};
    return 0;
  };
  f.filter_destroy = [](void* filter) -> int {
    delete static_cast<FakeDnnFilter*>(filter);
    return give_back("dnn_filter_destroy", "dnn filter");
  };
  f.convolution_create = [](void** convolution) -> int {
    FAKE_DNN_CALL(convolution_create);
    count_live("dnn convolution", 1);
    return *convolution = new FakeDnnConvolution, 0;
  };
  f.convolution_set = [](void* convolution, int length, const int* pads, const int* strides,
                         const int* dilations, int mode, int compute) -> int {
    FAKE_DNN_CALL(convolution_set);
    for (int s = 0; s < length; ++s)
      if (pads[s] < 0 || strides[s] < 1 || dilations[s] < 1) return 2000;
    if (compute != 0 && compute != 1) return 3000;
    *static_cast<FakeDnnConvolution*>(convolution) = {
        {pads, pads + length}, {strides, strides + length}, {dilations, dilations + length}, mode, 1, 0};
    return 0;
  };
  f.convolution_groups = [](void* convolution, int groups) -> int {
    FAKE_DNN_CALL(convolution_groups);
    return static_cast<FakeDnnConvolution*>(convolution)->groups = groups, 0;
  };
  f.convolution_math = [](void* convolution, int math) -> int {
    FAKE_DNN_CALL(convolution_math);
    return static_cast<FakeDnnConvolution*>(convolution)->math = math, 0;
  };
  f.convolution_destroy = [](void* convolution) -> int {
    delete static_cast<FakeDnnConvolution*>(convolution);
    return give_back("dnn_convolution_destroy", "dnn convolution");
  };
  f.algorithms = [](void*, void* x, void* w, void* c, void* y, int room, int* count,
                    cu::DnnAlgorithm* found) -> int {
    FAKE_DNN_CALL(algorithms);
    const auto& convolution = *static_cast<FakeDnnConvolution*>(c);
    const auto& filter = *static_cast<FakeDnnFilter*>(w);
    const auto& output = *static_cast<FakeDnnTensor*>(y);
    if (fake_dnn_output(*static_cast<FakeDnnTensor*>(x), filter, convolution) != output.dims) return 2000;
    if (filter.format == 1 && filter.type == 1) return 3000;  // features last: not of doubles
    const int math = convolution.math;
    const cu::DnnAlgorithm all[] = {{3, 3000, -1, 0, 1, math, {}},
                                    {7, 0, 1, 100, 0, math, {}},
                                    {6, 0, 2, std::size_t{1} << 40, 1, math, {}},
                                    {0, 0, 3, 0, 1, 2, {}},
                                    {fake_gpu()->dnn_algorithm, 0, 4, kFakeDnnWorkspace, 1, math, {}}};
    *count = std::min(room, static_cast<int>(std::size(all)));
    std::copy_n(all, *count, found);
    return 0;
  };
  f.workspace = [](void*, void*, void*, void*, void*, int algorithm, std::size_t* bytes) -> int {
    FAKE_DNN_CALL(workspace);
    *bytes = algorithm == fake_gpu()->dnn_algorithm ? kFakeDnnWorkspace : std::size_t{1} << 40;
    return 0;
  };
  f.forward = [](void* handle, const void* alpha, void* x, const void* from, void* w, const void* by, void* c,
                 int algorithm, void* workspace, std::size_t bytes, const void* beta, void* y,
                 void* to) -> int {
    FAKE_DNN_CALL(forward);
    const auto& input = *static_cast<FakeDnnTensor*>(x);
    const auto& filter = *static_cast<FakeDnnFilter*>(w);
    const auto& convolution = *static_cast<FakeDnnConvolution*>(c);
    const auto& output = *static_cast<FakeDnnTensor*>(y);
    const auto factor = [&](const void* at) {
      return input.type == 1 ? *static_cast<const double*>(at)
                             : static_cast<double>(*static_cast<const float*>(at));
    };
    if (algorithm != fake_gpu()->dnn_algorithm || bytes < kFakeDnnWorkspace || workspace == nullptr ||
        factor(alpha) != 1 || factor(beta) != 0)
      return 2000;
    fake_gpu()->launched.push_back(fmt::format("convolution of type {}, filter format {}, math {}, mode {}",
                                               input.type, filter.format, convolution.math,
                                               convolution.mode));
    enqueue(static_cast<FakeHandle*>(handle)->stream, [=] {
      const std::vector<std::byte> noise(kFakeDnnWorkspace, std::byte{0xa5});
      fake_gpu()->memory.write(reinterpret_cast<sim::DeviceAddress>(workspace), noise);
      fake_dnn_convolve(input, filter, output, convolution, from, by, to);
      fake_gpu()->clock_us += 5;
    });
    return 0;
  };
  f.activation_create = [](void** activation) -> int {
    FAKE_DNN_CALL(activation_create);
    count_live("dnn activation", 1);
    return *activation = new FakeDnnActivation, 0;
  };
  f.activation_set = [](void* activation, int mode, int nan, double) -> int {
    FAKE_DNN_CALL(activation_set);
    static_cast<FakeDnnActivation*>(activation)->mode = mode;
    return nan == 0 ? 0 : 3000;
  };
  f.activation_destroy = [](void* activation) -> int {
    delete static_cast<FakeDnnActivation*>(activation);
    return give_back("dnn_activation_destroy", "dnn activation");
  };
  // Only RELU (1) and IDENTITY (5), the latter by the second algorithm; of a bias that has an element for
  // each feature, apart by one; z lies as y does.
  f.forward_adding = [](void* handle, const void* alpha, void* x, const void* from, void* w, const void* by,
                        void* c, int algorithm, void* workspace, std::size_t bytes, const void* side_factor,
                        void* z, const void* side, void* b, const void* bias, void* a, void* y,
                        void* to) -> int {
    FAKE_DNN_CALL(forward_adding);
    const auto &input = *static_cast<FakeDnnTensor*>(x), &output = *static_cast<FakeDnnTensor*>(y),
               &vector = *static_cast<FakeDnnTensor*>(b), &array = *static_cast<FakeDnnTensor*>(z);
    const auto& filter = *static_cast<FakeDnnFilter*>(w);
    const auto& convolution = *static_cast<FakeDnnConvolution*>(c);
    const int mode = static_cast<FakeDnnActivation*>(a)->mode;
    std::vector<int> of_bias(output.dims.size(), 1);
    of_bias[1] = output.dims[1];
    if ((mode != 1 && mode != 5) || (mode == 5 && algorithm != 1) || vector.strides[1] != 1 ||
        vector.type != output.type)
      return 3000;
    if (algorithm != fake_gpu()->dnn_algorithm || bytes < kFakeDnnWorkspace || workspace == nullptr ||
        *static_cast<const float*>(alpha) != 1 || vector.dims != of_bias || array.strides != output.strides ||
        bias == nullptr || from == side || from == to)
      return 2000;
    fake_gpu()->launched.push_back(
        fmt::format("convolution of type {}, filter format {}, math {}, mode {}, activation {}", input.type,
                    filter.format, convolution.math, convolution.mode, mode));
    const FakeDnnEpilogue epilogue{static_cast<double>(*static_cast<const float*>(side_factor)), side, bias,
                                   mode == 1};
    enqueue(static_cast<FakeHandle*>(handle)->stream, [=] {
      fake_dnn_convolve(input, filter, output, convolution, from, by, to, epilogue);
      fake_gpu()->clock_us += 5;
    });
    return 0;
  };
#undef FAKE_DNN_CALL
  return std::make_unique<cu::Dnn>(f, "fake");
}

}  // namespace stitchwork::testing
