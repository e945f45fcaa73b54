// What the tests over random graphs share: which graphs, which inputs, and what outputs are right.
//
// STITCHWORK_FUZZ_FIRST and STITCHWORK_FUZZ_SEEDS choose other graphs: for hours, if wanted
// (CONTRIBUTING.md).
#pragma once

#include <cstdlib>
#include <string>
#include <vector>

#include "core/evaluator.h"
#include "core/inputs.h"
#include "core/judge.h"
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

/// What is right, and what was seen of it.
class Reference {
 public:
  Reference(const Graph& graph, std::vector<Literal> inputs, Arithmetic arithmetic = {})
      : judge_(graph, std::move(inputs), arithmetic) {}

  const std::vector<Literal>& inputs() const { return judge_.inputs(); }

  /// Over all outputs judged: their elements, those that were right only by what rounding does to them, and
  /// those that were NaN.
  std::int64_t elements() const { return elements_; }
  std::int64_t allowed() const { return allowed_; }
  std::int64_t nan() const { return nan_; }

  /// "" if `actual` is right.
  std::string problem(const std::vector<Literal>& actual) {
    const CheckResult check = judge_.check(actual);
    elements_ += check.elements;
    allowed_ += check.allowed;
    nan_ += check.nan;
    return check.message;
  }

 private:
  Judge judge_;
  std::int64_t elements_ = 0, allowed_ = 0, nan_ = 0;
};

}  // namespace stitchwork::testing
