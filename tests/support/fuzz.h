// What the tests over random graphs share: which graphs, which inputs, and what outputs are right.
//
// STITCHWORK_FUZZ_FIRST and STITCHWORK_FUZZ_SEEDS choose other graphs: for hours, if wanted
// (CONTRIBUTING.md).
#pragma once

#include <cmath>
#include <cstdlib>
#include <string>
#include <vector>

#include "core/evaluator.h"
#include "core/inputs.h"
#include "occupancy_model/device.h"
#include "tests/support/random_graph.h"

namespace stitchwork::testing {

struct FuzzRange {
  std::uint32_t first = 0, end = 0;
};
inline FuzzRange fuzz_range(std::uint32_t first, std::uint32_t seeds) {
  const auto setting = [](const char* name, std::uint32_t otherwise) {
    const char* text = std::getenv(name);
    return text == nullptr ? otherwise : static_cast<std::uint32_t>(std::strtoul(text, nullptr, 10));
  };
  first = setting("STITCHWORK_FUZZ_FIRST", first);
  return {first, first + setting("STITCHWORK_FUZZ_SEEDS", seeds)};
}

/// Graphs of all sizes and kinds, small enough to be executed.
inline RandomGraphOptions fuzz_options(std::uint32_t seed) {
  RandomGraphOptions options;
  options.ops = 3 + static_cast<int>(seed * 7 % 22);
  options.max_elements = seed % 5 == 0 ? 1 << 8 : seed % 5 < 3 ? 1 << 12 : 1 << 14;
  options.types = seed % 3 != 0;
  options.gathers = seed % 4 != 0;
  return options;
}

/// Few SMs: small tensors then take several tasks a block, split rows and need grid barriers.
inline Device few_sms(std::string_view id, int sms) {
  Device result = device(id);
  result.sms = sms;
  return result;
}

/// Integers beyond the ranges that indices have, so that clamping shows.
inline std::vector<Literal> fuzz_inputs(const Graph& graph, std::uint32_t seed) {
  InputOverrides overrides;
  const Computation& computation = graph.entry_computation();
  for (std::size_t p = 0; p < computation.parameters.size(); ++p) {
    const DType dtype = computation.node(computation.parameters[p]).shape.dtype;
    if (!is_integral(dtype)) continue;
    Distribution& distribution = overrides[std::to_string(p)];
    distribution.kind = Distribution::Kind::kIndex;
    distribution.low = is_signed_integer(dtype) ? -9 : 0;
    distribution.high = 40;
  }
  return generate_inputs(graph, seed, overrides);
}

/// The inputs, each float off by some units of its last place.
inline std::vector<Literal> disturbed(std::vector<Literal> inputs) {
  for (Literal& input : inputs) {
    const DType dtype = input.shape.dtype;
    if (!is_floating(dtype)) continue;
    const double unit = dtype == DType::kF64   ? 1e-15
                        : dtype == DType::kF32 ? 1e-6
                        : dtype == DType::kF16 ? 2e-3
                                               : 1e-2;
    for (std::int64_t i = 0; i < input.shape.elements_count(); ++i)
      input.set_double(i, input.get_double(i) * (1 + (i % 3 == 0 ? unit : i % 3 == 1 ? -unit : unit / 2)));
  }
  return inputs;
}

/// What is right, and how far rounding alone can move it.
class Reference {
 public:
  Reference(const Graph& graph, std::vector<Literal> inputs)
      : graph_(graph), inputs_(std::move(inputs)), outputs_(evaluate(graph, inputs_)) {}

  const std::vector<Literal>& inputs() const { return inputs_; }

  /// Outputs that were right only within what cancelling sums lose.
  int cancelled() const { return cancelled_; }

  /// "" if `actual` is right.
  std::string problem(const std::vector<Literal>& actual) {
    if (actual.size() != outputs_.size())
      return fmt::format("{} outputs, {} are right", actual.size(), outputs_.size());
    for (std::size_t i = 0; i < actual.size(); ++i) {
      const CheckResult check = check_output(actual[i], outputs_[i]);
      if (check.ok) continue;
      if (!within_noise(actual[i], i)) return fmt::format("output {}: {}", i, check.message);
      ++cancelled_;
    }
    return "";
  }

 private:
  /// Sums that cancel: the error is of the size that the smallest changes of the inputs make.
  bool within_noise(const Literal& actual, std::size_t output) {
    const Literal& right = outputs_[output];
    if (!is_floating(right.shape.dtype) || !actual.shape.compatible(right.shape)) return false;
    if (disturbed_.empty()) disturbed_ = evaluate(graph_, disturbed(inputs_));
    double noise = 0, error = 0;
    for (std::int64_t i = 0; i < right.shape.elements_count(); ++i) {
      const double a = actual.get_double(i), r = right.get_double(i);
      const double moved = std::abs(disturbed_[output].get_double(i) - r);
      if (std::isfinite(moved)) noise = std::max(noise, moved);
      if (std::isfinite(a) && std::isfinite(r))
        error = std::max(error, std::abs(a - r));
      else if (!(std::isnan(a) ? std::isnan(r) : a == r))
        return false;
    }
    return error <= 4 * noise;
  }

  const Graph& graph_;
  std::vector<Literal> inputs_, outputs_, disturbed_;
  int cancelled_ = 0;
};

}  // namespace stitchwork::testing
