// Reading images at positions that are computed: GridSample, RoiAlign, DeformConv, and AffineGrid, which
// makes such positions.
#include <algorithm>
#include <array>

#include "core/onnx/operators.h"
#include "core/onnx/sampling.h"

namespace stitchwork::onnx_reader {
namespace {

using Values = std::vector<Value>;

/// Positions and weights are computed in single precision at least.
Value at_least_single(Builder& b, const Value& x) {
  return is_floating(x.dtype()) && byte_size(x.dtype()) >= 4 ? x : b.convert(x, DType::kF32);
}

void check_image(NodeContext& c, const Value& x, int rank) {
  c.check(x.rank() == rank, fmt::format("the input is {}, rank {} is needed", to_text(x.shape), rank));
  std::int64_t extents = 1;
  for (std::size_t d = 2; d < x.dims().size(); ++d) extents *= x.dims()[d];
  c.check(extents > 0 && extents < (std::int64_t{1} << 31),
          fmt::format("an image of {} elements cannot be sampled", extents));
}

/// -1 and 1 are the outermost elements' centers, or their edges.
Values lower_affine_grid(NodeContext& c) {
  Builder& b = c.b;
  const Value& theta = c.in(0);
  const Dims size = c.known_integers(1);
  const bool align = c.flag("align_corners", false);
  const std::int64_t rank = std::ssize(size) - 2;
  c.check(rank == 2 || rank == 3, fmt::format("size has {} elements, 4 or 5 are needed", size.size()));
  c.check_range("size", size, 0, std::int64_t{1} << 24);
  const Dims extents(size.begin() + 2, size.end());
  c.check(theta.dims() == Dims{size[0], rank, rank + 1},
          fmt::format("theta is {}, [{},{},{}] is needed", to_text(theta.shape), size[0], rank, rank + 1));
  const Value matrix = at_least_single(b, theta);
  Dims one_coordinate = extents;
  one_coordinate.push_back(1);
  Values coordinates;  // innermost dimension first, then the 1 of homogeneous coordinates
  for (std::int64_t d = rank - 1; d >= 0; --d) {
    const std::int64_t extent = extents[static_cast<std::size_t>(d)];
    c.check(!align || extent != 1, "align_corners with an extent of 1 has no positions");
    const double step = align ? 2 / static_cast<double>(extent - 1) : 2 / static_cast<double>(extent);
    const Value place = b.iota(matrix.dtype(), one_coordinate, d);
    coordinates.push_back(extent == 0 ? place : b.add(b.mul(place, step), align ? -1 : step / 2 - 1));
  }
  coordinates.push_back(b.full(Builder::scalar(matrix.dtype(), 1), one_coordinate));
  const Value grid = b.reshape(b.concatenate(coordinates, rank), {product(extents), rank + 1});
  const Value moved = b.dot(matrix, grid, {{}, {}, {2}, {1}});  // [N, rank, positions]
  Dims result{size[0]};
  result.insert(result.end(), extents.begin(), extents.end());
  result.push_back(rank);
  return {b.convert(b.reshape(b.transpose(moved, {0, 2, 1}), result), theta.dtype())};
}

Interpolation interpolation_of(NodeContext& c) {
  const bool old = c.version < 20;
  const std::string mode = c.text("mode", old ? "bilinear" : "linear");
  if (mode == "nearest") return Interpolation::kNearest;
  if (mode == (old ? "bilinear" : "linear")) return Interpolation::kLinear;
  c.check(mode == (old ? "bicubic" : "cubic"),
          fmt::format("mode '{}' is not supported in operator set {}", mode, c.version));
  return Interpolation::kCubic;
}

Values lower_grid_sample(NodeContext& c) {
  Builder& b = c.b;
  const Value &x = c.in(0), &grid = c.in(1);
  c.check(x.rank() >= 3 && (c.version >= 20 || x.rank() == 4),
          fmt::format("the input is {}, which operator set {} does not sample", to_text(x.shape), c.version));
  check_image(c, x, x.rank());
  const std::int64_t rank = x.rank() - 2;
  c.check(grid.rank() == x.rank() && grid.dim(0) == x.dim(0) && grid.dims().back() == rank,
          fmt::format("grid {} does not fit the input {}", to_text(grid.shape), to_text(x.shape)));
  const Interpolation interpolation = interpolation_of(c);
  const bool align = c.flag("align_corners", false);
  const std::string padding = c.text("padding_mode", "zeros");
  c.check(padding == "zeros" || padding == "border" || padding == "reflection",
          fmt::format("padding_mode '{}' is unknown", padding));
  const Beyond beyond = padding == "zeros"    ? Beyond::kZeros
                        : padding == "border" ? Beyond::kBorder
                        : align               ? Beyond::kMirrorCenters
                                              : Beyond::kMirrorEdges;
  Dims result{x.dim(0), x.dim(1)};
  result.insert(result.end(), grid.dims().begin() + 1, grid.dims().end() - 1);
  const std::int64_t samples = product(grid.dims()) / std::max<std::int64_t>(x.dim(0) * rank, 1);
  const Value flat = b.reshape(at_least_single(b, grid), {x.dim(0), samples, rank});
  std::vector<Taps> axes;
  for (std::int64_t d = 0; d < rank; ++d) {  // the grid names the innermost dimension first
    const std::int64_t extent = x.dim(2 + d), place = rank - 1 - d;
    const Value at = b.reshape(b.slice(flat, 2, place, place + 1), {x.dim(0), samples});
    const auto length = static_cast<double>(extent);
    const Value from_low = b.add(at, 1);
    const Value position =
        align ? b.mul(b.div(from_low, 2), length - 1) : b.div(b.sub(b.mul(from_low, length), 1), 2);
    axes.push_back(taps_at(b, position, extent, interpolation, beyond));
  }
  const bool picks = interpolation == Interpolation::kNearest;
  const bool wide = byte_size(x.dtype()) >= (is_floating(x.dtype()) ? 8 : 4);
  const Value source = picks ? x : b.convert(x, wide ? DType::kF64 : DType::kF32);
  for (Taps& taps : axes)
    if (taps.weight.present()) taps.weight = b.convert(taps.weight, source.dtype());
  const Value all = tapped(b, source, axes);
  const Value y = picks ? b.reshape(all, result) : b.reshape(b.reduce(Op::kAdd, all, {3}), result);
  return {b.convert(y, x.dtype())};
}

/// Averages or maxima of sampling_ratio^2 samples in every bin of every region.
Values lower_roi_align(NodeContext& c) {
  Builder& b = c.b;
  const Value &x = c.in(0), &regions = c.in(1), &images = c.in(2);
  check_image(c, x, 4);
  const std::int64_t count = images.rank() == 1 ? images.dim(0) : -1;
  c.check(regions.dims() == Dims{count, 4}, fmt::format("rois {} and batch_indices {} do not fit",
                                                        to_text(regions.shape), to_text(images.shape)));
  const std::string mode = c.text("mode", "avg");
  c.check(mode == "avg" || mode == "max", fmt::format("mode '{}' is unknown", mode));
  const std::string coordinates =
      c.version < 16 ? "output_half_pixel" : c.text("coordinate_transformation_mode", "half_pixel");
  c.check(coordinates == "half_pixel" || coordinates == "output_half_pixel",
          fmt::format("coordinate_transformation_mode '{}' is unknown", coordinates));
  const std::int64_t bins[2] = {c.integer("output_height", 1), c.integer("output_width", 1)};
  const std::int64_t ratio = c.integer("sampling_ratio", 0);
  c.check(ratio != 0, "with sampling_ratio 0 the number of samples depends on the regions' values");
  c.check_range("output_height, output_width and sampling_ratio", {bins[0], bins[1], ratio}, 1, 1 << 16);
  const double scale = c.number("spatial_scale", 1), shift = coordinates == "half_pixel" ? 0.5 : 0;
  const Value scaled = b.sub(b.mul(at_least_single(b, regions), scale), shift);
  const Dims grid{count, bins[0] * ratio, bins[1] * ratio};
  std::vector<Taps> axes;
  Value inside;
  for (std::int64_t d = 0; d < 2; ++d) {  // height, width; a region is x1, y1, x2, y2
    const std::int64_t extent = x.dim(2 + d), steps = bins[d] * ratio;
    const Value start = b.slice(scaled, 1, 1 - d, 2 - d), end = b.slice(scaled, 1, 3 - d, 4 - d);
    Value span = b.sub(end, start);
    if (shift == 0) span = b.max(span, 1);
    const Value step = b.div(span, static_cast<double>(steps));
    const Value place = b.add(b.iota(scaled.dtype(), {count, steps}, 1), 0.5);
    const Value position =
        b.add(b.mul(place, b.broadcast(step, place.dims())), b.broadcast(start, place.dims()));
    const Value near = b.binary(Op::kAnd, b.compare(Comparison::kGe, position, -1),
                                b.compare(Comparison::kLe, position, static_cast<double>(extent)));
    const auto spread = [&](const Value& value) {
      return b.reshape(b.broadcast_in(value, grid, {0, 1 + d}), {count, grid[1] * grid[2]});
    };
    inside = d == 0 ? spread(near) : b.binary(Op::kAnd, inside, spread(near));
    // Held between the outermost centers: beyond them the border's element counts whole.
    const Value held = b.min(b.max(position, 0), static_cast<double>(extent - 1));
    axes.push_back(taps_at(b, spread(held), extent, Interpolation::kLinear, Beyond::kBorder));
  }
  const Value source = b.convert(x, scaled.dtype());
  const Value image = b.convert(images, DType::kS32);
  Value parts = tapped(b, source, axes, image);
  const Value zero = Builder::scalar(parts.dtype(), 0);
  parts = b.select(b.broadcast_in(inside, parts.dims(), {0, 2}), parts, zero);
  const Value split = b.reshape(parts, {count, x.dim(1), bins[0], ratio, bins[1], ratio, parts.dim(3)});
  const Value pooled = mode == "max"
                           ? b.reduce(Op::kMaximum, split, {3, 5, 6})
                           : b.div(b.reduce(Op::kAdd, split, {3, 5, 6}), static_cast<double>(ratio * ratio));
  return {b.convert(pooled, x.dtype())};
}

/// The convolution of samples: every element of the kernel has a position of its own for every result
/// element.
Values lower_deform_conv(NodeContext& c) {
  Builder& b = c.b;
  const Value &x = c.in(0), &kernel = c.in(1), &offset = c.in(2);
  check_image(c, x, 4);
  c.check(kernel.rank() == 4 && offset.rank() == 4, "only two spatial dimensions are supported");
  const Dims size = c.integers("kernel_shape", {kernel.dim(2), kernel.dim(3)});
  c.check(size == Dims{kernel.dim(2), kernel.dim(3)}, "kernel_shape differs from W's");
  const Dims strides = c.integers("strides", {1, 1}), dilations = c.integers("dilations", {1, 1}),
             pads = c.integers("pads", {0, 0, 0, 0});
  c.check(strides.size() == 2 && dilations.size() == 2 && pads.size() == 4,
          "strides, dilations and pads do not fit two spatial dimensions");
  c.check_range("strides and dilations", {strides[0], strides[1], dilations[0], dilations[1]}, 1, 1 << 24);
  c.check_range("pads", pads, 0, 1 << 24);
  const std::int64_t groups = c.integer("group", 1), offset_groups = c.integer("offset_group", 1);
  const std::int64_t batch = x.dim(0), channels = x.dim(1), taps = size[0] * size[1], outputs = kernel.dim(0);
  const std::int64_t height = offset.dim(2), width = offset.dim(3), samples = height * width;
  c.check(
      groups >= 1 && outputs % groups == 0 && kernel.dim(1) * groups == channels,
      fmt::format("W {} in {} groups does not fit X {}", to_text(kernel.shape), groups, to_text(x.shape)));
  c.check(offset_groups >= 1 && channels % offset_groups == 0,
          fmt::format("{} channels in {} offset groups", channels, offset_groups));
  for (std::size_t d = 0; d < 2; ++d) {
    const std::int64_t span = x.dims()[2 + d] + pads[d] + pads[2 + d] - (size[d] - 1) * dilations[d] - 1;
    c.check(span >= 0 && offset.dims()[2 + d] == span / strides[d] + 1,
            fmt::format("offset {} does not fit the result", to_text(offset.shape)));
  }
  c.check(offset.dim(0) == batch && offset.dim(1) == offset_groups * taps * 2,
          fmt::format("offset {} does not fit W and offset_group", to_text(offset.shape)));
  const Dims mask_dims{batch, offset_groups * taps, height, width};
  c.check(!c.has(4) || c.in(4).dims() == mask_dims, "mask does not fit offset");

  const Value moves =
      b.reshape(at_least_single(b, offset), {batch, offset_groups, size[0], size[1], 2, height, width});
  const Dims places{batch, size[0], size[1], height, width};
  const Value source = b.convert(x, moves.dtype());
  Values columns;
  for (std::int64_t g = 0; g < offset_groups; ++g) {
    std::vector<Taps> axes;
    for (std::int64_t d = 0; d < 2; ++d) {
      const auto at = static_cast<std::size_t>(d);
      const Value move = b.reshape(b.slice(b.slice(moves, 1, g, g + 1), 4, d, d + 1), places);
      const Value in_kernel = b.mul(b.iota(moves.dtype(), places, 1 + d), static_cast<double>(dilations[at]));
      const Value window = b.mul(b.iota(moves.dtype(), places, 3 + d), static_cast<double>(strides[at]));
      const Value regular = b.sub(b.add(in_kernel, window), static_cast<double>(pads[at]));
      axes.push_back(taps_at(b, b.reshape(b.add(regular, move), {batch, taps * samples}), x.dim(2 + d),
                             Interpolation::kLinear, Beyond::kZeros));
    }
    const std::int64_t share = channels / offset_groups;
    const Value read =
        b.reduce(Op::kAdd, tapped(b, b.slice(source, 1, g * share, (g + 1) * share), axes), {3});
    Value column = b.reshape(read, {batch, share, taps, samples});
    if (c.has(4)) {
      const Value mask = b.slice(c.in(4), 1, g * taps, (g + 1) * taps);
      const Value factor = b.convert(b.reshape(mask, {batch, taps, samples}), column.dtype());
      column = b.mul(column, b.broadcast_in(factor, column.dims(), {0, 2, 3}));
    }
    columns.push_back(column);
  }
  const Value all = b.concatenate(columns, 1);
  const std::int64_t in = channels / groups, out = outputs / groups;
  Values parts;
  for (std::int64_t g = 0; g < groups; ++g) {
    const Value weights = b.reshape(b.slice(kernel, 0, g * out, (g + 1) * out), {out, in * taps});
    const Value column = b.reshape(b.slice(all, 1, g * in, (g + 1) * in), {batch, in * taps, samples});
    const Value sums = b.dot(b.convert(weights, column.dtype()), column, {{}, {}, {1}, {1}});
    parts.push_back(b.transpose(sums, {1, 0, 2}));  // [batch, out, samples]
  }
  Value y = b.reshape(b.concatenate(parts, 1), {batch, outputs, height, width});
  if (c.has(3)) {
    c.check(c.in(3).dims() == Dims{outputs},
            fmt::format("bias {} for {} channels", to_text(c.in(3).shape), outputs));
    y = b.add(y, b.broadcast_in(b.convert(c.in(3), y.dtype()), y.dims(), {1}));
  }
  return {b.convert(y, x.dtype())};
}

constexpr std::array kSampleRows = {
    OperatorRow{"AffineGrid", 20, lower_affine_grid},
    OperatorRow{"DeformConv", 19, lower_deform_conv},
    OperatorRow{"GridSample", 16, lower_grid_sample},
    OperatorRow{"RoiAlign", 10, lower_roi_align},
};

}  // namespace

std::span<const OperatorRow> sample_operators() { return kSampleRows; }

}  // namespace stitchwork::onnx_reader
