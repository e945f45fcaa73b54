// Fourier transforms in float64: the Cooley-Tukey step for every prime factor of the length, a sum of
// products for a prime one (as FFTW's manual defines them: forward unscaled, backward by 1/n).
#include <cmath>
#include <complex>
#include <numbers>

#include "core/base/error.h"
#include "core/evaluate/evaluator_ops.h"
#include "core/graph/complex_type.h"
#include "core/graph/window.h"

namespace stitchwork {
namespace {

using Complex128 = std::complex<double>;

/// A transform of one length.
class Transform {
 public:
  Transform(std::int64_t length, bool backward) : length_(length) {
    roots_.reserve(static_cast<std::size_t>(length));
    for (std::int64_t k = 0; k < length; ++k) {
      const double angle =
          2 * std::numbers::pi * static_cast<double>(k) / static_cast<double>(length) * (backward ? 1 : -1);
      roots_.emplace_back(std::cos(angle), std::sin(angle));
    }
  }

  std::vector<Complex128> of(const std::vector<Complex128>& values) const {
    std::vector<Complex128> result(values.size());
    transform(values.data(), 1, length_, result.data());
    return result;
  }

 private:
  static std::int64_t least_factor(std::int64_t n) {
    for (std::int64_t p = 2; p * p <= n; ++p)
      if (n % p == 0) return p;
    return n;
  }

  /// Of `n` values, `stride` apart: those of each residue of the least factor, then the sums over residues.
  void transform(const Complex128* from, std::int64_t stride, std::int64_t n, Complex128* to) const {
    if (n <= 1) {
      if (n == 1) *to = *from;
      return;
    }
    const std::int64_t p = least_factor(n), m = n / p, step = length_ / n;
    for (std::int64_t r = 0; r < p; ++r) transform(from + r * stride, stride * p, m, to + r * m);
    std::vector<Complex128> sums(static_cast<std::size_t>(p));
    for (std::int64_t k = 0; k < m; ++k) {
      for (std::int64_t q = 0; q < p; ++q) {
        Complex128 sum = to[k];
        for (std::int64_t r = 1; r < p; ++r) {
          const std::int64_t turn = r * (k + q * m) % n * step;
          sum += to[r * m + k] * roots_[static_cast<std::size_t>(turn)];
        }
        sums[static_cast<std::size_t>(q)] = sum;
      }
      for (std::int64_t q = 0; q < p; ++q) to[q * m + k] = sums[static_cast<std::size_t>(q)];
    }
  }

  std::int64_t length_;
  std::vector<Complex128> roots_;
};

/// Complex values of the dimensions that are transformed, and of those in front all together.
struct Field {
  std::vector<std::int64_t> dims;
  std::vector<Complex128> values;
};

void transform_along(Field& field, std::size_t dim, bool backward) {
  const std::int64_t n = field.dims[dim];
  std::int64_t inner = 1;
  for (std::size_t d = dim + 1; d < field.dims.size(); ++d) inner *= field.dims[d];
  const Transform transform(n, backward);
  const auto count = static_cast<std::int64_t>(field.values.size());
  std::vector<Complex128> line(static_cast<std::size_t>(n));
  for (std::int64_t outer = 0; outer < count; outer += n * inner)
    for (std::int64_t i = 0; i < inner; ++i) {
      const auto at = [&](std::int64_t k) -> Complex128& {
        return field.values[static_cast<std::size_t>(outer + k * inner + i)];
      };
      for (std::int64_t k = 0; k < n; ++k) line[static_cast<std::size_t>(k)] = at(k);
      const std::vector<Complex128> result = transform.of(line);
      for (std::int64_t k = 0; k < n; ++k)
        at(k) = result[static_cast<std::size_t>(k)] / (backward ? static_cast<double>(n) : 1.0);
    }
}

/// With the last dimension as long as the transform's result: of a real result the other half of the values
/// are conjugates of those that are there; what a real result cannot have, imaginary parts of the first and
/// the middle one, is left out.
Field mirrored(const Field& half, std::int64_t length) {
  Field whole{half.dims, {}};
  whole.dims.back() = length;
  const std::int64_t given = half.dims.back(),
                     rows = given == 0 ? 0 : static_cast<std::int64_t>(half.values.size()) / given;
  for (std::int64_t r = 0; r < rows; ++r)
    for (std::int64_t k = 0; k < length; ++k) {
      const bool there = k < given;
      const Complex128 v = half.values[static_cast<std::size_t>(r * given + (there ? k : length - k))];
      const bool real = k == 0 || 2 * k == length;
      whole.values.push_back(real ? v.real() : there ? v : std::conj(v));
    }
  return whole;
}

Field read_field(const Literal& literal, bool pairs) {
  Field field{literal.shape.dims, {}};
  if (pairs) field.dims.pop_back();
  const std::int64_t count = literal.shape.elements_count() / (pairs ? 2 : 1);
  for (std::int64_t i = 0; i < count; ++i)
    field.values.emplace_back(literal.get_double(pairs ? 2 * i : i),
                              pairs ? literal.get_double(2 * i + 1) : 0);
  return field;
}

}  // namespace

Literal evaluate_fft(const Node& node, Values operands) {
  if (is_complex(operands[0]->shape.dtype) || is_complex(node.shape.dtype))
    throw Error(fmt::format("fft of {} is not computed", name(operands[0]->shape.dtype)),
                "it is computed where complex numbers are pairs of real ones (canonicalize)");
  const std::string_view type = other_attribute(node, "fft_type");
  const bool from_real = type == "RFFT", to_real = type == "IRFFT", backward = to_real || type == "IFFT";
  const std::vector<std::int64_t> length = other_integers(node, "fft_length");
  Field field = read_field(*operands[0], !from_real);
  const std::size_t first = field.dims.size() - length.size(), last = field.dims.size() - 1;
  // Of a real result the last dimension comes last: only then the lines are those of a real one.
  for (std::size_t d = first; d < last; ++d) transform_along(field, d, backward);
  if (to_real) field = mirrored(field, length.back());
  transform_along(field, last, backward);

  Literal result = Literal::zeros(node.shape);
  const std::int64_t taken = from_real ? field.dims[last] / 2 + 1 : field.dims[last];
  std::int64_t at = 0;
  for (std::size_t i = 0; i < field.values.size(); ++i) {
    if (static_cast<std::int64_t>(i) % field.dims[last] >= taken) continue;
    result.set_double(at++, field.values[i].real());
    if (!to_real) result.set_double(at++, field.values[i].imag());
  }
  return result;
}

}  // namespace stitchwork
