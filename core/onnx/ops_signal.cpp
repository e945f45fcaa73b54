// Fourier transforms as products with matrices of cosines and sines, windows, the mel scale.
#include <algorithm>
#include <array>
#include <cmath>
#include <numbers>

#include "core/onnx/moves.h"
#include "core/onnx/operators.h"

namespace stitchwork::onnx_reader {
namespace {

using Values = std::vector<Value>;

constexpr std::int64_t kLongestSignal = std::int64_t{1} << 24;

Value list_of(DType dtype, const Dims& dims, const std::vector<double>& values) {
  Literal literal = Literal::zeros(Shape::array(dtype, dims));
  for (std::size_t i = 0; i < values.size(); ++i) literal.set_double(static_cast<std::int64_t>(i), values[i]);
  return Builder::known(std::move(literal));
}

DType output_type(NodeContext& c) {
  const DType type = c.dtype("output_datatype", DType::kF32);
  c.check(is_floating(type) || is_integral(type), fmt::format("output_datatype {} is no number", name(type)));
  return type;
}

// --- Windows: a sum of cosines.

template <int kTerms>
Values window(NodeContext& c, const std::array<double, kTerms>& weights) {
  const std::int64_t size = c.known_integer(0);
  c.check_range("size", {size}, 0, kLongestSignal);
  const std::int64_t period = c.flag("periodic", true) ? size : size - 1;
  c.check(size == 0 || period > 0, "a symmetric window of one element is not defined");
  std::vector<double> values;
  for (std::int64_t i = 0; i < size; ++i) {
    double value = 0;
    const double angle = 2 * std::numbers::pi * static_cast<double>(i) / static_cast<double>(period);
    for (int k = 0; k < kTerms; ++k) value += weights[static_cast<std::size_t>(k)] * std::cos(k * angle);
    values.push_back(value);
  }
  return {list_of(output_type(c), {size}, values)};
}

Values lower_hann(NodeContext& c) { return window<2>(c, {0.5, -0.5}); }
Values lower_hamming(NodeContext& c) { return window<2>(c, {25.0 / 46, -21.0 / 46}); }
Values lower_blackman(NodeContext& c) { return window<3>(c, {0.42, -0.5, 0.08}); }

// --- The discrete Fourier transform.

/// Parts of complex arrays; an absent imaginary part is 0.
struct Complex {
  Value re, im;
};

/// cos and sin of 2 pi j k / length at [j, k]. The product is reduced modulo the length as an integer, so
/// that the angle is exact to the last place.
Complex roots_of_unity(Builder& b, DType dtype, std::int64_t rows, std::int64_t columns,
                       std::int64_t length) {
  const DType whole = length > 46340 ? DType::kS64 : DType::kS32;  // 46340^2 < 2^31
  const Dims dims{rows, columns};
  const Value turns = b.binary(Op::kRemainder, b.mul(b.iota(whole, dims, 0), b.iota(whole, dims, 1)),
                               Builder::scalar_int(whole, length));
  const Value angle = b.mul(b.convert(turns, dtype), 2 * std::numbers::pi / static_cast<double>(length));
  return {b.unary(Op::kCos, angle), b.unary(Op::kSin, angle)};
}

/// x [..., rows along `axis`, ...] times matrix [rows, columns].
Value times(Builder& b, const Value& x, std::int64_t axis, const Value& matrix) {
  const Value y = b.dot(x, matrix, {{}, {}, {axis}, {0}});
  Dims order;
  for (std::int64_t d = 0; d < x.rank(); ++d)
    order.push_back(d == axis ? x.rank() - 1 : d < axis ? d : d - 1);
  return b.transpose(y, order);
}

/// x cut or padded with zeros to `extent` along `axis`.
Value fitted(Builder& b, const Value& x, std::int64_t axis, std::int64_t extent) {
  std::vector<PadSpec> padding(x.dims().size());
  padding[static_cast<std::size_t>(axis)].high = extent - x.dim(axis);
  return b.pad(x, Builder::scalar(x.dtype(), 0), padding);
}

/// The first `columns` of the transform of `length` elements; of the inverse without its 1 / length.
Complex transform(Builder& b, const Complex& x, std::int64_t axis, std::int64_t length, std::int64_t columns,
                  bool inverse) {
  const Value re = fitted(b, x.re, axis, length);
  const Complex roots = roots_of_unity(b, re.dtype(), length, columns, length);
  const Value sin = inverse ? b.neg(roots.im) : roots.im;  // e^-ia = cos a - i sin a, the inverse conjugated
  Complex y{times(b, re, axis, roots.re), b.neg(times(b, re, axis, sin))};
  if (!x.im.present()) return y;
  const Value im = fitted(b, x.im, axis, length);
  return {b.add(y.re, times(b, im, axis, sin)), b.add(times(b, im, axis, roots.re), y.im)};
}

/// Parts in the last dimension, of extent 1 (real) or 2. Transforms are computed in double precision: sums of
/// products with roots of unity cancel, and what is left must not be their rounding.
Complex parts_of(NodeContext& c, const Value& x) {
  const std::int64_t last = x.rank() - 1;
  c.check(last >= 1 && (x.dim(last) == 1 || x.dim(last) == 2),
          fmt::format("the input is {}, its last dimension must be 1 or 2", to_text(x.shape)));
  c.check(is_floating(x.dtype()), "the input must be floating-point numbers");
  const Value wide = c.b.convert(x, DType::kF64);
  const Dims dims(x.dims().begin(), x.dims().end() - 1);
  const auto part = [&](std::int64_t i) { return c.b.reshape(c.b.slice(wide, last, i, i + 1), dims); };
  return {part(0), x.dim(last) == 2 ? part(1) : Value{}};
}

Value joined(Builder& b, const Values& parts, DType dtype) {
  Values columns;
  for (const Value& part : parts) {
    Dims dims = part.dims();
    dims.push_back(1);
    columns.push_back(b.reshape(part, dims));
  }
  return b.convert(b.concatenate(columns, columns[0].rank() - 1), dtype);
}

/// The whole spectrum of a real signal from its first length / 2 + 1 elements along `axis`: the others are
/// their conjugates in reverse.
Complex whole_spectrum(Builder& b, const Complex& half, std::int64_t axis, std::int64_t length) {
  const std::int64_t bins = length / 2 + 1;
  const auto mirrored = [&](const Value& part) {
    return b.reverse(b.slice(part, axis, 1, length - bins + 1), {axis});
  };
  // The imaginary parts of elements that are their own conjugates do not count.
  Dims one = half.im.dims();
  one[static_cast<std::size_t>(axis)] = 1;
  Values im{b.full(Builder::scalar(half.im.dtype(), 0), one)};
  if (length % 2 == 0 && length > 1) {
    im.push_back(b.slice(half.im, axis, 1, bins - 1));
    im.push_back(im[0]);
  } else {
    im.push_back(b.slice(half.im, axis, 1, bins));
  }
  im.push_back(b.neg(mirrored(half.im)));
  return {b.concatenate({half.re, mirrored(half.re)}, axis), b.concatenate(im, axis)};
}

Values lower_dft(NodeContext& c) {
  Builder& b = c.b;
  const Value& x = c.in(0);
  std::int64_t axis = -2;
  if (c.version < 20) axis = c.integer("axis", 1);
  if (c.version >= 20 && c.has(2)) axis = c.known_integer(2);
  axis = c.axis(axis, x.rank());
  c.check(axis < x.rank() - 1, "axis is the dimension of the complex parts");
  const bool inverse = c.flag("inverse", false), onesided = c.flag("onesided", false);
  const bool to_real = inverse && onesided;
  const std::int64_t length = c.has(1) ? c.known_integer(1) : to_real ? 2 * (x.dim(axis) - 1) : x.dim(axis);
  c.check_range("dft_length", {length}, 1, kLongestSignal);
  Complex signal = parts_of(c, x);
  c.check(!onesided || signal.im.present() == inverse,
          inverse ? "onesided of an inverse transform needs complex input"
                  : "onesided of a transform needs real input");
  if (to_real) {
    const std::int64_t bins = length / 2 + 1;
    signal =
        whole_spectrum(b, {fitted(b, signal.re, axis, bins), fitted(b, signal.im, axis, bins)}, axis, length);
  }
  const std::int64_t columns = onesided && !inverse ? length / 2 + 1 : length;
  Complex y = transform(b, signal, axis, length, columns, inverse);
  if (inverse) y = {b.div(y.re, static_cast<double>(length)), b.div(y.im, static_cast<double>(length))};
  return {joined(b, to_real ? Values{y.re} : Values{y.re, y.im}, x.dtype())};
}

Values lower_stft(NodeContext& c) {
  Builder& b = c.b;
  const Value& x = c.in(0);
  c.check(x.rank() == 3, fmt::format("the signal is {}, rank 3 is needed", to_text(x.shape)));
  const std::int64_t step = c.known_integer(1), samples = x.dim(1);
  std::int64_t length = samples;
  if (c.has(2)) {
    c.check(c.in(2).rank() == 1, fmt::format("the window is {}, rank 1 is needed", to_text(c.in(2).shape)));
    length = c.in(2).dim(0);
  }
  if (c.has(3)) {
    const std::int64_t given = c.known_integer(3);
    c.check(!c.has(2) || given == length, fmt::format("a window of {} for frames of {}", length, given));
    length = given;
  }
  c.check_range("frame_step and frame_length", {step, length}, 1, kLongestSignal);
  c.check(samples >= length, fmt::format("the signal has {} samples, a frame {}", samples, length));
  const bool onesided = c.flag("onesided", true);
  const Complex signal = parts_of(c, x);
  c.check(!onesided || !signal.im.present(), "onesided needs a real signal");
  const std::int64_t frames = (samples - length) / step + 1;
  c.check(frames <= kLongestSignal / length, "the frames are too many");
  Dims places;
  for (std::int64_t f = 0; f < frames; ++f)
    for (std::int64_t i = 0; i < length; ++i) places.push_back(f * step + i);
  const auto framed = [&](const Value& part) {
    if (!part.present()) return part;
    const Value all = b.reshape(take(b, part, 1, places), {x.dim(0), frames, length});
    return c.has(2) ? b.mul(all, b.convert(c.in(2), all.dtype())) : all;
  };
  const Complex y = transform(b, {framed(signal.re), framed(signal.im)}, 2, length,
                              onesided ? length / 2 + 1 : length, false);
  return {joined(b, {y.re, y.im}, x.dtype())};
}

// --- The mel scale.

/// Triangles whose corners lie at equal distances on the mel scale, at whole elements of the spectrum.
Values lower_mel_weight_matrix(NodeContext& c) {
  const std::int64_t bands = c.known_integer(0), length = c.known_integer(1), rate = c.known_integer(2);
  const auto hertz = [&](int i) {
    const std::vector<double> values = c.known_numbers(i);
    c.check(values.size() == 1 && values[0] >= 0, fmt::format("input {} must be one number from 0 on", i));
    return values[0];
  };
  c.check_range("num_mel_bins, dft_length and sample_rate", {bands, length, rate}, 1, kLongestSignal);
  const auto mel = [](double frequency) { return 2595 * std::log10(1 + frequency / 700); };
  const double low = mel(hertz(3)), high = mel(hertz(4)),
               step = (high - low) / static_cast<double>(bands + 2);
  const std::int64_t bins = length / 2 + 1;
  c.check(bins <= kLongestSignal / bands, "the matrix is too large");
  Dims corners;
  for (std::int64_t i = 0; i < bands + 2; ++i) {
    const double frequency = 700 * (std::pow(10, (static_cast<double>(i) * step + low) / 2595) - 1);
    const double bin = std::floor(static_cast<double>(length + 1) * frequency / static_cast<double>(rate));
    c.check(bin >= 0 && bin < static_cast<double>(bins),
            fmt::format("{} Hz lies outside the spectrum", frequency));
    corners.push_back(static_cast<std::int64_t>(bin));
  }
  std::vector<double> matrix(static_cast<std::size_t>(bins * bands), 0);
  for (std::int64_t i = 0; i < bands; ++i) {
    const auto at = static_cast<std::size_t>(i);
    const std::int64_t left = corners[at], center = corners[at + 1], right = corners[at + 2];
    const auto entry = [&](std::int64_t bin) -> double& {
      return matrix[static_cast<std::size_t>(bin * bands + i)];
    };
    if (left == center) entry(center) = 1;
    for (std::int64_t bin = left; left < center && bin <= center; ++bin)
      entry(bin) = static_cast<double>(bin - left) / static_cast<double>(center - left);
    for (std::int64_t bin = center; bin < right; ++bin)
      entry(bin) = static_cast<double>(right - bin) / static_cast<double>(right - center);
  }
  return {list_of(output_type(c), {bins, bands}, matrix)};
}

constexpr std::array kSignalRows = {
    OperatorRow{"BlackmanWindow", 17, lower_blackman},
    OperatorRow{"DFT", 17, lower_dft},
    OperatorRow{"HammingWindow", 17, lower_hamming},
    OperatorRow{"HannWindow", 17, lower_hann},
    OperatorRow{"MelWeightMatrix", 17, lower_mel_weight_matrix},
    OperatorRow{"STFT", 17, lower_stft},
};

}  // namespace

std::span<const OperatorRow> signal_operators() { return kSignalRows; }

}  // namespace stitchwork::onnx_reader
