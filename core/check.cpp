#include <cmath>

#include "core/error.h"
#include "core/inputs.h"

namespace stitchwork {
namespace {

double relative_tolerance(DType type) {
  switch (type) {
    case DType::kF64:
      return 1e-10;
    case DType::kF32:
      return 1e-4;
    case DType::kF16:
      return 1e-2;
    case DType::kBF16:
      return 3e-2;
    default:
      return 0;  // integers and pred are exact
  }
}

std::string index_text(const Shape& shape, std::int64_t linear) {
  std::vector<std::int64_t> index(shape.dims.size());
  for (std::size_t d = shape.dims.size(); d-- > 0; linear /= shape.dims[d]) index[d] = linear % shape.dims[d];
  return fmt::format("[{}]", fmt::join(index, ","));
}

struct Scale {
  double largest = 0, rms = 0;  ///< over the finite elements
};

Scale scale_of(const Literal& literal) {
  Scale scale;
  double squares = 0;
  std::int64_t finite = 0;
  for (std::int64_t i = 0, n = literal.shape.elements_count(); i < n; ++i) {
    const double r = literal.get_double(i);
    if (!std::isfinite(r)) continue;
    scale.largest = std::max(scale.largest, std::abs(r));
    squares += r * r;
    ++finite;
  }
  if (finite > 0) scale.rms = std::sqrt(squares / static_cast<double>(finite));
  return scale;
}

void merge(CheckResult& total, const CheckResult& part) {
  if (total.ok && !part.ok) total.message = part.message;
  total.ok = total.ok && part.ok;
  total.max_abs_error = std::max(total.max_abs_error, part.max_abs_error);
  total.max_rel_error = std::max(total.max_rel_error, part.max_rel_error);
}

CheckResult refused(std::string message) {
  CheckResult result;
  result.ok = false;
  result.message = std::move(message);
  return result;
}

CheckResult check_integers(const Literal& actual, const Literal& reference) {
  const double rms = scale_of(reference).rms;
  CheckResult result;
  for (std::int64_t i = 0, n = reference.shape.elements_count(); i < n; ++i) {
    const std::int64_t a = actual.get_int(i), r = reference.get_int(i);
    if (a == r) continue;
    // As doubles: the difference of two 64-bit integers need not fit.
    const double error = std::abs(static_cast<double>(a) - static_cast<double>(r));
    result.max_abs_error = std::max(result.max_abs_error, error);
    result.max_rel_error = std::max(result.max_rel_error, error / (std::abs(static_cast<double>(r)) + rms));
    if (result.ok)
      result.message = fmt::format("element {} is {}, {} is right", index_text(reference.shape, i), a, r);
    result.ok = false;
  }
  return result;
}

CheckResult check_floats(const Literal& actual, const Literal& reference) {
  const double rtol = relative_tolerance(reference.shape.dtype);
  const Scale scale = scale_of(reference);
  const double atol = scale.largest > 0 ? rtol / 10 * scale.largest : 1e-6;
  CheckResult result;
  for (std::int64_t i = 0, n = reference.shape.elements_count(); i < n; ++i) {
    const double a = actual.get_double(i), r = reference.get_double(i);
    std::string wrong;
    if (!std::isfinite(a) || !std::isfinite(r)) {
      const bool equal = std::isnan(a) ? std::isnan(r) : a == r;
      if (!equal) wrong = fmt::format("element {} is {}, {} is right", index_text(reference.shape, i), a, r);
    } else {
      const double error = std::abs(a - r), allowed = atol + rtol * std::abs(r);
      result.max_abs_error = std::max(result.max_abs_error, error);
      if (error > 0) result.max_rel_error = std::max(result.max_rel_error, error / (std::abs(r) + scale.rms));
      if (error > allowed)
        wrong = fmt::format("element {} is {}, {} is right: off by {:.3g}, {:.3g} allowed",
                            index_text(reference.shape, i), a, r, error, allowed);
    }
    if (result.ok && !wrong.empty()) {
      result.ok = false;
      result.message = std::move(wrong);
    }
  }
  return result;
}

}  // namespace

CheckResult check_output(const Literal& actual, const Literal& reference) {
  if (!actual.shape.compatible(reference.shape))
    return refused(fmt::format("shape {} differs from the reference's {}", to_text(actual.shape),
                               to_text(reference.shape)));
  if (reference.shape.is_tuple) {
    CheckResult total;
    for (std::size_t i = 0; i < reference.elements.size(); ++i)
      merge(total, check_output(actual.elements[i], reference.elements[i]));
    return total;
  }
  return is_floating(reference.shape.dtype) ? check_floats(actual, reference)
                                            : check_integers(actual, reference);
}

}  // namespace stitchwork
