// Rounding errors drawn at random: what another implementation of a graph, as exact as its arithmetic allows,
// may give instead of what the evaluator gives. Monte Carlo arithmetic (D. S. Parker, "Monte Carlo
// Arithmetic: exploiting randomness in floating-point arithmetic", UCLA CSD-970002, 1997), op by op.
#pragma once

#include <cstdint>
#include <span>

#include "core/graph/graph.h"
#include "core/graph/literal.h"

namespace stitchwork {

/// What an implementation was allowed beyond rounding each operation.
struct Arithmetic {
  bool fast_math = false;  ///< the approximations of CUDA's --use_fast_math
  bool tf32 = false;       ///< products may round f32 operands to 10 bits of mantissa
};

/// Moves values by rounding errors, `size` times those of the ops. Equal seeds give equal errors, in the
/// order of the calls.
class Rounding {
 public:
  Rounding(Arithmetic arithmetic, std::uint64_t seed, double size = 1)
      : arithmetic_(arithmetic), size_(size), computes_again_(seed % 2 != 0), state_(seed) {}

  /// Whether a value that several ops use is computed for each of them with errors of its own, as kernels do
  /// that recompute it and contract it with what follows (x - a * b in one place, a rounded product in
  /// another): those of odd seeds. Else all uses see the same.
  bool computes_again() const { return computes_again_; }
  /// Errors of the second value, to the other side: else the two would often be equal.
  Rounding opposite() const {
    Rounding other = *this;
    other.size_ = -size_;
    return other;
  }
  /// A use of such a value: which of two.
  bool either() { return (next_bits() >> 63) != 0; }

  /// Moves each element of `result`, the value of `node` for `operands`, by an error of random sign and of
  /// half to all of the size that the op's arithmetic may have there (docs/inputs.md, "The check"). Ops that
  /// move, compare or choose values make none; nor do sums, products and quotients that are exact.
  void perturb(const Graph& graph, const Computation& computation, const Node& node,
               std::span<const Literal* const> operands, Literal& result);

 private:
  /// SplitMix64 (G. L. Steele, D. Lea, C. H. Flood, "Fast splittable pseudorandom number generators", OOPSLA
  /// 2014): a few instructions a draw, of which a check of a large output makes 10^8.
  std::uint64_t next_bits() {
    std::uint64_t word = state_ += 0x9E3779B97F4A7C15u;
    word = (word ^ (word >> 30)) * 0xBF58476D1CE4E5B9u;
    word = (word ^ (word >> 27)) * 0x94D049BB133111EBu;
    return word ^ (word >> 31);
  }
  /// In [-1, -1/2] or [1/2, 1], times the size of errors.
  double draw() {
    const std::uint64_t word = next_bits();
    const double size = 0.5 + static_cast<double>(word >> 11) * 0x1p-54;
    return size_ * ((word & 1) != 0 ? size : -size);
  }
  void perturb_elementwise(const Node& node, std::span<const Literal* const> operands, Literal& result);
  void perturb_by_ulps(double ulps, Literal& result);
  void perturb_sum(const Graph& graph, const Computation& computation, const Node& node,
                   std::span<const Literal* const> operands, Literal& result);

  Arithmetic arithmetic_;
  double size_;
  bool computes_again_;
  std::uint64_t state_;
};

}  // namespace stitchwork
