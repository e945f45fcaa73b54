#include "core/onnx/sampling.h"

#include "core/base/error.h"

namespace stitchwork::onnx_reader {
namespace {

/// Keys' cubic convolution with a = -3/4, as GridSample has it; the triangle for linear interpolation.
Value kernel(Builder& b, const Value& distance, Interpolation interpolation) {
  if (interpolation == Interpolation::kLinear) return b.sub(Builder::scalar(distance.dtype(), 1), distance);
  constexpr double a = -0.75;
  const Value& d = distance;
  const Value near = b.add(b.mul(b.mul(b.sub(b.mul(d, a + 2), a + 3), d), d), 1);
  const Value far = b.sub(b.mul(b.add(b.mul(b.sub(b.mul(d, a), 5 * a), d), 8 * a), d), 4 * a);
  return b.select(b.compare(Comparison::kLe, d, 1), near, far);
}

/// Positions moved inside, before the elements around them are looked for.
Value moved_inside(Builder& b, const Value& position, std::int64_t extent, Beyond beyond) {
  const auto last = static_cast<double>(extent - 1);
  // Far enough outside that all elements around are zeros, and near enough for an integer.
  if (beyond == Beyond::kZeros) return b.min(b.max(position, -4), last + 4);
  if (beyond == Beyond::kBorder) return b.min(b.max(position, 0), last);
  const double low = beyond == Beyond::kMirrorCenters ? 0 : -0.5, span = last - 2 * low;
  if (span == 0) return b.broadcast(Builder::scalar(position.dtype(), 0), position.dims());
  const Value way = b.unary(Op::kAbs, b.sub(position, low));
  const Value times = b.unary(Op::kFloor, b.div(way, span));
  const Value rest = b.sub(way, b.mul(times, span));
  const Value turns = b.sub(times, b.mul(b.unary(Op::kFloor, b.mul(times, 0.5)), 2));  // 0 or 1
  const Value back = b.sub(Builder::scalar(position.dtype(), low + span), rest);
  return b.select(b.compare(Comparison::kEq, turns, 0), b.add(rest, low), back);
}

Value clamped(Builder& b, const Value& index, std::int64_t extent) {
  const Value last = Builder::scalar_int(index.dtype(), extent - 1);
  return b.min(b.max(index, Builder::scalar_int(index.dtype(), 0)), last);
}

/// Elements beyond the dimension; at most a few are, since positions were moved inside.
Value mirrored(Builder& b, const Value& index, std::int64_t extent, Beyond beyond) {
  const std::int64_t period = beyond == Beyond::kMirrorCenters ? 2 * (extent - 1) : 2 * extent;
  if (period == 0) return clamped(b, index, extent);
  const Value cycle = Builder::scalar_int(index.dtype(), period);
  const Value inside = b.binary(Op::kRemainder, b.add(b.binary(Op::kRemainder, index, cycle), cycle), cycle);
  const std::int64_t top = beyond == Beyond::kMirrorCenters ? period : period - 1;
  const Value back = b.sub(Builder::scalar_int(index.dtype(), top), inside);
  return b.select(b.compare(Comparison::kLt, inside, static_cast<double>(extent)), inside, back);
}

}  // namespace

Taps taps_at(Builder& b, const Value& position, std::int64_t extent, Interpolation interpolation,
             Beyond beyond) {
  const bool nearest = interpolation == Interpolation::kNearest;
  const Value rounded = nearest ? b.unary(Op::kRoundNearestEven, position) : position;
  // Positions between an outermost element's center and its edge stay where they are.
  Value inside = moved_inside(b, rounded, extent, beyond);
  if (beyond == Beyond::kBorder) {
    const Value near = b.binary(Op::kAnd, b.compare(Comparison::kGe, rounded, -0.5),
                                b.compare(Comparison::kLe, rounded, static_cast<double>(extent) - 0.5));
    inside = b.select(near, rounded, inside);
  }
  const std::int64_t count = nearest ? 1 : interpolation == Interpolation::kLinear ? 2 : 4;
  const Dims one{position.dim(0), position.dim(1), 1}, all{position.dim(0), position.dim(1), count};
  const Value center = b.broadcast(b.reshape(inside, one), all);
  const Value first = nearest ? center : b.unary(Op::kFloor, center);
  const std::int64_t ahead = nearest ? 0 : count / 2 - 1;
  const Value at = b.add(first, b.sub(b.iota(position.dtype(), all, 2), static_cast<double>(ahead)));
  Taps taps;
  if (!nearest) taps.weight = kernel(b, b.unary(Op::kAbs, b.sub(center, at)), interpolation);
  const Value index = b.convert(at, DType::kS32);
  if (beyond == Beyond::kZeros || beyond == Beyond::kBorder) {
    taps.index = clamped(b, index, extent);
    if (beyond == Beyond::kZeros) taps.inside = b.compare(Comparison::kEq, taps.index, index);
  } else {
    taps.index = mirrored(b, index, extent, beyond);
  }
  return taps;
}

Value tapped(Builder& b, const Value& x, const std::vector<Taps>& axes, const Value& images) {
  const std::int64_t batch = axes[0].index.dim(0), samples = axes[0].index.dim(1);
  Dims all{batch, samples};
  for (const Taps& taps : axes) all.push_back(taps.index.dim(2));
  const std::int64_t count = product(all) / std::max<std::int64_t>(batch * samples, 1);
  Value index, weight, inside;
  for (std::size_t a = 0; a < axes.size(); ++a) {
    const auto spread = [&](const Value& value) {
      return b.broadcast_in(value, all, {0, 1, 2 + static_cast<std::int64_t>(a)});
    };
    const Value here = spread(axes[a].index);
    const Value extent = Builder::scalar_int(DType::kS32, x.dim(2 + static_cast<std::int64_t>(a)));
    index = a == 0 ? here : b.add(b.mul(index, extent), here);
    if (axes[a].weight.present())
      weight = weight.present() ? b.mul(weight, spread(axes[a].weight)) : spread(axes[a].weight);
    if (axes[a].inside.present())
      inside = inside.present() ? b.binary(Op::kAnd, inside, spread(axes[a].inside)) : spread(axes[a].inside);
  }
  const Dims flat{batch, samples, count, 1}, result{batch, x.dim(1), samples, count};
  const Value image = images.present() ? b.broadcast_in(images, flat, {0}) : b.iota(DType::kS32, flat, 0);
  const Value where = b.concatenate({image, b.reshape(index, flat)}, 3);
  const std::int64_t extents = product(x.dims()) / std::max<std::int64_t>(x.dim(0) * x.dim(1), 1);
  GatherDims dims;
  dims.offset_dims = {1};
  dims.collapsed_slice_dims = {0, 2};
  dims.start_index_map = {0, 2};
  dims.slice_sizes = {1, x.dim(1), 1};
  dims.index_vector_dim = 3;
  Value values = b.gather(b.reshape(x, {x.dim(0), x.dim(1), extents}), where, dims);
  const auto over_channels = [&](const Value& value) {
    return b.broadcast_in(b.reshape(value, {batch, samples, count}), result, {0, 2, 3});
  };
  if (inside.present())
    values = b.select(over_channels(inside), values, Builder::scalar_int(values.dtype(), 0));
  return weight.present() ? b.mul(values, over_channels(weight)) : values;
}

}  // namespace stitchwork::onnx_reader
