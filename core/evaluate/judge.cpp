#include "core/evaluate/judge.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "core/base/error.h"
#include "core/evaluate/evaluator.h"

namespace stitchwork {
namespace {

constexpr int kSamples = 16;
/// Further evaluations, in which ops err by kMargin units: what is not linear in its errors moves by more
/// than kMargin times as much (the variance of equal elements is the square of one), and is allowed that.
constexpr int kLargeSamples = 16;
/// Of an element that none of these moved: its value moves in steps of an operand's last place, and draws may
/// cancel (x - mean of equal elements is zero in half of them), where an implementation errs by less than a
/// step (fused multiply-add). Draws that cancel in 3 of 4 samples do in 64 of them for one of 10^8 elements.
constexpr int kStillSamples = 64;
/// Of independent normal errors one exceeds four times the largest of 16 others as large in 1.3 of 10^6
/// elements, of others twice as large in 1 of 10^10 (numerical integration). Samples err by a unit of the
/// last place an op, to whichever side, where implementations err by half a unit at most.
constexpr double kMargin = 4;
/// Samples are kept for the next outputs of the same graph up to this size together. A choice, not measured:
/// few outputs need more than the first two, which it holds of outputs of 32 million elements.
constexpr std::size_t kKeptBytes = std::size_t{256} << 20;
/// No further sample is drawn for an element that moved and is this many times beyond its allowance after
/// kSamples.
constexpr double kHopeless = 64;

std::string index_text(const Shape& shape, std::int64_t linear) {
  std::vector<std::int64_t> index(shape.dims.size());
  for (std::size_t d = shape.dims.size(); d-- > 0; linear /= shape.dims[d]) index[d] = linear % shape.dims[d];
  return fmt::format("[{}]", fmt::join(index, ","));
}

/// Root mean square of the finite elements.
double rms_of(const Literal& literal) {
  double squares = 0;
  std::int64_t finite = 0;
  for (std::int64_t i = 0, n = literal.shape.elements_count(); i < n; ++i)
    if (const double r = literal.get_double(i); std::isfinite(r)) {
      squares += r * r;
      ++finite;
    }
  return finite > 0 ? std::sqrt(squares / static_cast<double>(finite)) : 0;
}

/// An element that is not right by its type's tolerance.
struct Doubt {
  std::int64_t element = 0;
  double moved = 0;           ///< the largest distance of a sample from `centre`
  double moved_by_large = 0;  ///< likewise, of errors of kMargin units
  double centre = 0;          ///< the reference, or the first finite sample where that is not finite
  bool has_centre = true;     ///< false until there is a finite one
  bool settled = false;
};

/// One array of the outputs with its reference.
struct Part {
  std::size_t output = 0;
  std::vector<std::size_t> path;  ///< within nested tuples
  const Literal* actual = nullptr;
  const Literal* reference = nullptr;
  std::vector<Doubt> doubts;
};

void collect(const Literal& actual, const Literal& reference, Part at, std::vector<Part>& parts) {
  if (!reference.shape.is_tuple) {
    at.actual = &actual;
    at.reference = &reference;
    parts.push_back(std::move(at));
    return;
  }
  for (std::size_t i = 0; i < reference.elements.size(); ++i) {
    Part inner = at;
    inner.path.push_back(i);
    collect(actual.elements[i], reference.elements[i], std::move(inner), parts);
  }
}

const Literal& at_path(const Literal& literal, const std::vector<std::size_t>& path) {
  const Literal* at = &literal;
  for (const std::size_t i : path) at = &at->elements[i];
  return *at;
}

bool same_kind(double a, double b) { return std::isnan(a) ? std::isnan(b) : a == b; }

double tolerance(const Part& part, double around) {
  return relative_tolerance(part.reference->shape.dtype) * std::abs(around);
}

void compare_integers(Part& part, CheckResult& result) {
  const double rms = rms_of(*part.reference);
  for (std::int64_t i = 0, n = part.reference->shape.elements_count(); i < n; ++i) {
    const std::int64_t a = part.actual->get_int(i), r = part.reference->get_int(i);
    if (a == r) continue;
    // As doubles: the difference of two 64-bit integers need not fit.
    const double error = std::abs(static_cast<double>(a) - static_cast<double>(r));
    result.max_abs_error = std::max(result.max_abs_error, error);
    result.max_rel_error = std::max(result.max_rel_error, error / (std::abs(static_cast<double>(r)) + rms));
    part.doubts.push_back({.element = i});
  }
}

void compare_floats(Part& part, CheckResult& result) {
  const double rms = rms_of(*part.reference);
  for (std::int64_t i = 0, n = part.reference->shape.elements_count(); i < n; ++i) {
    const double a = part.actual->get_double(i), r = part.reference->get_double(i);
    if (std::isfinite(a) && std::isfinite(r)) {
      const double error = std::abs(a - r);
      result.max_abs_error = std::max(result.max_abs_error, error);
      if (error > 0) result.max_rel_error = std::max(result.max_rel_error, error / (std::abs(r) + rms));
      if (error > tolerance(part, r)) part.doubts.push_back({.element = i, .centre = r});
    } else if (!same_kind(a, r)) {
      part.doubts.push_back({.element = i, .centre = r, .has_centre = std::isfinite(r)});
    } else if (std::isnan(a)) {
      ++result.nan;
    }
  }
}

double allowance(const Part& part, const Doubt& doubt) {
  return tolerance(part, doubt.centre) + std::max(kMargin * doubt.moved, doubt.moved_by_large);
}

/// Whether sample `number` is one of errors of kMargin units.
bool is_large(int number) { return number >= kSamples && number < kSamples + kLargeSamples; }

void settle(const Part& part, const Literal& sample, bool large, Doubt& doubt) {
  const std::int64_t i = doubt.element;
  if (large && (!is_floating(part.reference->shape.dtype) || !doubt.has_centre ||
                !std::isfinite(part.actual->get_double(i))))
    return;
  if (!is_floating(part.reference->shape.dtype)) {
    doubt.settled = sample.get_int(i) == part.actual->get_int(i);
    return;
  }
  const double a = part.actual->get_double(i), s = sample.get_double(i);
  if (!std::isfinite(a)) {
    doubt.settled = same_kind(a, s);
    return;
  }
  if (!std::isfinite(s)) return;
  if (!doubt.has_centre) {
    doubt.centre = s;
    doubt.has_centre = true;
  }
  double& moved = large ? doubt.moved_by_large : doubt.moved;
  moved = std::max(moved, std::abs(s - doubt.centre));
  doubt.settled = std::abs(a - doubt.centre) <= allowance(part, doubt);
}

bool hopeless(const Part& part, const Doubt& doubt) {
  if (!is_floating(part.reference->shape.dtype)) return false;
  const double a = part.actual->get_double(doubt.element);
  return std::isfinite(a) && doubt.has_centre && doubt.moved > 0 &&
         std::abs(a - doubt.centre) > kHopeless * allowance(part, doubt);
}

std::string wrong(const Part& part, const Doubt& doubt, std::size_t outputs) {
  const std::string where =
      fmt::format("{}element {}", outputs > 1 ? fmt::format("output {}: ", part.output) : "",
                  index_text(part.reference->shape, doubt.element));
  if (!is_floating(part.reference->shape.dtype))
    return fmt::format("{} is {}, {} is right", where, part.actual->get_int(doubt.element),
                       part.reference->get_int(doubt.element));
  const double a = part.actual->get_double(doubt.element), r = part.reference->get_double(doubt.element);
  if (!std::isfinite(a) || !std::isfinite(r)) return fmt::format("{} is {}, {} is right", where, a, r);
  return fmt::format("{} is {}, {} is right: off by {:.3g}, {:.3g} allowed", where, a, r, std::abs(a - r),
                     allowance(part, doubt));
}

/// Whether all of several elements are the first one.
bool is_uniform(const Literal& literal) {
  const auto size = static_cast<std::ptrdiff_t>(byte_size(literal.shape.dtype));
  return literal.shape.elements_count() > 1 &&
         std::equal(literal.bytes.begin() + size, literal.bytes.end(), literal.bytes.begin());
}

std::size_t bytes_of(const Literal& literal) {
  std::size_t bytes = literal.bytes.size();
  for (const Literal& element : literal.elements) bytes += bytes_of(element);
  return bytes;
}

}  // namespace

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

std::string remarks(const CheckResult& check) {
  std::string text;
  if (check.allowed > 0)
    text += fmt::format("; {} of {} elements needed the allowance of their own rounding", check.allowed,
                        check.elements);
  if (check.nan > 0) text += fmt::format("; {} of {} are NaN in both", check.nan, check.elements);
  if (check.uniform.size() == 1)
    text += fmt::format("; output {} is one number throughout", check.uniform.front());
  else if (!check.uniform.empty())
    text += fmt::format("; {} outputs are one number throughout each, {} first", check.uniform.size(),
                        check.uniform.front());
  return text;
}

Judge::Judge(const Graph& graph, std::vector<Literal> inputs, Arithmetic arithmetic)
    : graph_(graph),
      inputs_(std::move(inputs)),
      arithmetic_(arithmetic),
      reference_(evaluate(graph, inputs_)) {}

const std::vector<Literal>& Judge::sample(int number) {
  const auto evaluated = [&](int n) {
    Rounding rounding(arithmetic_, static_cast<std::uint64_t>(n), is_large(n) ? kMargin : 1);
    return evaluate_rounded(graph_, inputs_, rounding);
  };
  const auto index = static_cast<std::size_t>(number);
  std::size_t bytes = 0;
  for (const Literal& literal : reference_) bytes += bytes_of(literal);
  if ((index + 1) * bytes > kKeptBytes) return last_ = evaluated(number);
  while (samples_.size() <= index) samples_.push_back(evaluated(static_cast<int>(samples_.size())));
  return samples_[index];
}

CheckResult Judge::check(std::span<const Literal> outputs) {
  CheckResult result;
  const auto refuse = [&](std::string message) {
    result.ok = false;
    result.message = std::move(message);
    return result;
  };
  if (outputs.size() != reference_.size())
    return refuse(fmt::format("{} outputs, {} are right", outputs.size(), reference_.size()));
  std::vector<Part> parts;
  for (std::size_t i = 0; i < outputs.size(); ++i) {
    if (!outputs[i].shape.compatible(reference_[i].shape))
      return refuse(fmt::format("output {}: shape {} differs from the reference's {}", i,
                                to_text(outputs[i].shape), to_text(reference_[i].shape)));
    collect(outputs[i], reference_[i], {.output = i}, parts);
  }
  for (Part& part : parts) {
    if (is_uniform(*part.reference)) result.uniform.push_back(part.output);
    result.elements += part.reference->shape.elements_count();
    if (is_floating(part.reference->shape.dtype))
      compare_floats(part, result);
    else
      compare_integers(part, result);
  }
  for (int k = 0; k < kStillSamples; ++k) {
    bool open = false, given_up = false;
    for (const Part& part : parts)
      for (const Doubt& doubt : part.doubts) {
        const bool floats = is_floating(part.reference->shape.dtype);
        const int most = !floats ? kSamples : doubt.moved == 0 ? kStillSamples : kSamples + kLargeSamples;
        given_up = given_up || (!doubt.settled && k >= most);
        open = open || !doubt.settled;
        given_up = given_up || (!doubt.settled && k >= kSamples && hopeless(part, doubt));
      }
    if (!open || given_up) break;
    const std::vector<Literal>& moved = sample(k);
    for (Part& part : parts)
      for (Doubt& doubt : part.doubts)
        if (!doubt.settled) settle(part, at_path(moved[part.output], part.path), is_large(k), doubt);
  }
  for (const Part& part : parts)
    for (const Doubt& doubt : part.doubts) {
      if (doubt.settled) {
        ++result.allowed;
        continue;
      }
      if (result.ok) result.message = wrong(part, doubt, outputs.size());
      result.ok = false;
    }
  return result;
}

}  // namespace stitchwork
