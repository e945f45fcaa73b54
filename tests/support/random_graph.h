// Random graphs for property tests, as HLO text (so that a failure can be pasted): every element type, light
// and heavy element-wise ops, layout ops, gathers, reductions over any dimensions, patterns that read a
// reduction back (normalisations), dots; ranks 0 to 6, extents of 1 and 0, fan-out, several results.
//
// Values stay tame, so that results can be compared: magnitudes are bounded and scaled back by powers of two,
// and what a rounding error could turn into another value (compare, floor, conversion to integers) reads only
// values that every correct execution gives bit for bit.
#pragma once

#include "tests/support/random_graph_patterns.h"

namespace stitchwork::testing {

/// Deterministic in (seed, options) on one standard library; values stay finite for inputs of order 1.
class RandomGraph : private RandomPatterns {
 public:
  RandomGraph(std::uint32_t seed, RandomGraphOptions options) : RandomPatterns(seed, options) {}

  std::string text() {
    choose_weights();
    if (options_.domain.empty()) {
      for (int e = 0; e < 4; ++e) extents_.push_back(one_of(kExtents));
      const std::size_t parameters = 2 + below(3);
      for (std::size_t p = 0; p < parameters; ++p) parameter(below(4) ? "f32" : random_type(), random_dims());
    } else {
      extents_ = {1, 2};
      domain_parameters();
    }
    const int end = next_ + options_.ops;
    while (next_ < end) grow();
    return finish();
  }

 private:
  // ---- one step

  /// Each graph has its own mix: some have no layout ops, others hardly anything but reductions.
  void choose_weights() {
    static constexpr int kMixes[][kKinds] = {
        // unary, binary, choose, convert, broadcast, reduce, stitch, layout, iota, indexed, dot
        {2, 3, 1, 1, 2, 2, 2, 6, 1, 1, 1},
        {2, 4, 0, 0, 2, 2, 5, 0, 0, 0, 0},
        {2, 4, 1, 1, 2, 3, 6, 1, 0, 0, 1},
        {1, 2, 0, 0, 1, 2, 2, 5, 0, 3, 0},
    };
    const int* mix = one_of(kMixes);
    for (int kind = 0; kind < kKinds; ++kind) weights_.insert(weights_.end(), mix[kind], kind);
  }

  void grow() {
    if (!options_.domain.empty() && below(4) != 0) return pattern();
    const Value from = pick();
    switch (weights_[below(weights_.size())]) {
      case 0:
        return unary(from);
      case 1:
        return binary(from);
      case 2:
        return choose(from);
      case 3:
        return options_.types ? convert(from) : unary(from);
      case 4:
        return broadcast(from);
      case 5:
        return reduce(from);
      case 6:
        if (options_.stitched && below(3) == 0) return normalise(from);
        return options_.stitched ? stitch(from) : binary(from);
      case 7:
        return layout(from);
      case 8:
        return iota();
      case 9:
        return options_.gathers ? indexed(from) : pad(from);
      default:
        return options_.dots ? dot(from) : binary(from);
    }
  }

  void layout(const Value& from) {
    switch (below(6)) {
      case 0:
        return reshape(from);
      case 1:
        return transpose(from);
      case 2:
        return slice(from);
      case 3:
        return reverse(from);
      case 4:
        return pad(from);
      default:
        return join(from);
    }
  }

  static constexpr int kKinds = 11;
  std::vector<int> weights_;
};

inline std::string random_hlo(std::uint32_t seed, RandomGraphOptions options = {}) {
  return RandomGraph(seed, options).text();
}

}  // namespace stitchwork::testing
