// Where the reference adds up, multiplies, ... the values of a reduction, a window or a scatter.
#pragma once

#include <cmath>
#include <cstdint>
#include <type_traits>

#include "core/evaluate/scalar_ops.h"

namespace stitchwork {

/// The combination of values of type T by one op: floats in float64, integers in their own type. pred counts
/// as 0 and 1.
template <typename T>
class Accumulator {
 public:
  using Value = std::conditional_t<std::is_floating_point_v<T>, double,
                                   std::conditional_t<std::is_same_v<T, bool>, std::uint8_t, T>>;
  explicit Accumulator(T start) : total_(static_cast<Value>(start)) {}
  void fold(Op op, T x) { total_ = combine<Value>(op, total_, static_cast<Value>(x)); }
  T value() const { return static_cast<T>(total_); }

 private:
  Value total_;
};

/// There is no wider type for sums of float64: what each addition rounds off is summed apart (A. Neumaier,
/// "Rundungsfehleranalyse einiger Verfahren zur Summation endlicher Summen", ZAMM 54, 1974).
template <>
class Accumulator<double> {
 public:
  explicit Accumulator(double start) : total_(start) {}
  void fold(Op op, double x) {
    const double before = total_;
    total_ = combine<double>(op, total_, x);
    if (op != Op::kAdd) return;
    lost_ += std::abs(before) >= std::abs(x) ? (before - total_) + x : (x - total_) + before;
  }
  double value() const { return std::isfinite(total_) && std::isfinite(lost_) ? total_ + lost_ : total_; }

 private:
  double total_, lost_ = 0;
};

}  // namespace stitchwork
