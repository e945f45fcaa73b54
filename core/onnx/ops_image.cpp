// Images cut, padded and put together: CenterCropPad, Col2Im, MaxUnpool.
#include <algorithm>
#include <array>

#include "core/onnx/operators.h"

namespace stitchwork::onnx_reader {
namespace {

using Values = std::vector<Value>;

/// Of an odd difference the smaller part comes first.
Values lower_center_crop_pad(NodeContext& c) {
  const Value& x = c.in(0);
  const Dims sizes = c.known_integers(1);
  Dims axes;
  for (std::int64_t d = 0; d < x.rank(); ++d) axes.push_back(d);
  if (c.given("axes")) axes = c.axes(c.integers("axes"), x.rank());
  c.check(sizes.size() == axes.size(),
          fmt::format("{} extents for {} dimensions", sizes.size(), axes.size()));
  c.check_range("shape", sizes, 0, kMaxElements);
  std::vector<PadSpec> padding(x.dims().size());
  for (std::size_t i = 0; i < axes.size(); ++i) {
    const std::int64_t missing = sizes[i] - x.dim(axes[i]);
    padding[static_cast<std::size_t>(axes[i])] = {missing / 2, missing - missing / 2, 0};
  }
  return {c.b.pad(x, Builder::scalar_int(x.dtype(), 0), padding)};
}

/// The sum over the block's elements of their columns, spread by the strides and moved to their place.
Values lower_col2im(NodeContext& c) {
  Builder& b = c.b;
  const Value& x = c.in(0);
  const Dims image = c.known_integers(1), block = c.known_integers(2);
  const std::size_t rank = image.size();
  const Dims dilations = c.integers("dilations", Dims(rank, 1)),
             strides = c.integers("strides", Dims(rank, 1)), pads = c.integers("pads", Dims(2 * rank, 0));
  c.check(x.rank() == 3, fmt::format("the input is {}, rank 3 is needed", to_text(x.shape)));
  c.check(rank >= 1 && block.size() == rank && dilations.size() == rank && strides.size() == rank &&
              pads.size() == 2 * rank,
          "image_shape, block_shape, dilations, strides and pads differ in length");
  constexpr std::int64_t kLongest = std::int64_t{1} << 24;
  c.check_range("image_shape", image, 0, kLongest);
  c.check_range("block_shape, dilations and strides", block, 1, kLongest);
  c.check_range("dilations", dilations, 1, kLongest);
  c.check_range("strides", strides, 1, kLongest);
  c.check_range("pads", pads, 0, kLongest);
  std::int64_t elements = 1;
  constexpr std::int64_t kMost = 4096;  // one summand each
  for (const std::int64_t extent : block) elements = std::min(elements * extent, kMost + 1);
  c.check(elements <= kMost, fmt::format("blocks of more than {} elements are not supported", kMost));
  Dims columns;
  for (std::size_t d = 0; d < rank; ++d) {
    const std::int64_t span = image[d] + pads[d] + pads[rank + d] - dilations[d] * (block[d] - 1) - 1;
    columns.push_back(span < 0 ? 0 : span / strides[d] + 1);
  }
  c.check(x.dim(1) % elements == 0 && product(columns) == x.dim(2),
          fmt::format("the input is {}, [N, C * {}, {}] is needed", to_text(x.shape), elements,
                      product(columns)));
  const std::int64_t batch = x.dim(0), channels = x.dim(1) / elements;
  Dims whole{batch, channels}, part{batch, channels};
  whole.insert(whole.end(), image.begin(), image.end());
  part.insert(part.end(), columns.begin(), columns.end());
  const Value zero = Builder::scalar_int(x.dtype(), 0);
  if (product(columns) == 0) return {b.full(zero, whole)};
  const Value split = b.reshape(x, {batch, channels, elements, x.dim(2)});
  Value sum;
  for (std::int64_t e = 0; e < elements; ++e) {
    std::vector<PadSpec> padding(rank + 2);
    std::int64_t rest = e;
    for (std::size_t d = rank; d-- > 0; rest /= block[d]) {
      const std::int64_t low = rest % block[d] * dilations[d] - pads[d];
      const std::int64_t spread = (columns[d] - 1) * strides[d] + 1;
      padding[d + 2] = {low, image[d] - low - spread, strides[d] - 1};
    }
    const Value placed = b.pad(b.reshape(b.slice(split, 2, e, e + 1), part), zero, padding);
    sum = sum.present() ? b.add(sum, placed) : placed;
  }
  return {sum};
}

/// Indices are into the flattened result without output_shape; that shape, where given, is zeros beyond it.
Values lower_max_unpool(NodeContext& c) {
  Builder& b = c.b;
  const Value &x = c.in(0), &indices = c.in(1);
  c.check(x.rank() >= 3 && indices.dims() == x.dims(),
          fmt::format("indices {} do not fit {}", to_text(indices.shape), to_text(x.shape)));
  const std::size_t rank = x.dims().size() - 2;
  const Dims kernel = c.integers("kernel_shape"), strides = c.integers("strides", Dims(rank, 1)),
             pads = c.integers("pads", Dims(2 * rank, 0));
  c.check(kernel.size() == rank && strides.size() == rank && pads.size() == 2 * rank,
          fmt::format("kernel_shape, strides or pads do not fit {} spatial dimensions", rank));
  constexpr std::int64_t kLongest = std::int64_t{1} << 24;
  c.check_range("kernel_shape", kernel, 1, kLongest);
  c.check_range("strides", strides, 1, kLongest);
  c.check_range("pads", pads, 0, kLongest);
  Dims dims{x.dim(0), x.dim(1)};
  for (std::size_t d = 0; d < rank; ++d) {
    c.check_range("the input's extent", {x.dims()[d + 2]}, 1, kLongest);
    dims.push_back((x.dims()[d + 2] - 1) * strides[d] - pads[d] - pads[rank + d] + kernel[d]);
    c.check(dims.back() >= 0, fmt::format("the result's dimension {} is negative", d + 2));
  }
  const Value zero = Builder::scalar_int(x.dtype(), 0);
  const std::int64_t count = product(x.dims());
  const Value flat = b.scatter(b.full(zero, {product(dims)}), b.reshape(indices, {count, 1}),
                               b.reshape(x, {count}), {{}, {0}, {0}, 1});
  const Value result = b.reshape(flat, dims);
  if (!c.has(2)) return {result};
  const Dims wanted = c.known_integers(2);
  c.check(wanted.size() == dims.size(), "output_shape has another rank");
  std::vector<PadSpec> padding(dims.size());
  for (std::size_t d = 0; d < dims.size(); ++d) {
    c.check_range("output_shape", {wanted[d]}, dims[d], kMaxElements);
    padding[d].high = wanted[d] - dims[d];
  }
  return {b.pad(result, zero, padding)};
}

constexpr std::array kImageRows = {
    OperatorRow{"CenterCropPad", 18, lower_center_crop_pad},
    OperatorRow{"Col2Im", 18, lower_col2im},
    OperatorRow{"MaxUnpool", 9, lower_max_unpool},
};

}  // namespace

std::span<const OperatorRow> image_operators() { return kImageRows; }

}  // namespace stitchwork::onnx_reader
