// Inputs from a seed (docs/inputs.md).
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "core/graph/graph.h"
#include "core/graph/literal.h"

namespace stitchwork {

/// How one parameter is filled.
struct Distribution {
  enum class Kind : std::uint8_t { kNormal, kUniform, kIndex, kConstant } kind = Kind::kNormal;
  double mean = 0, stddev = 1;  ///< normal
  double low = 0, high = 1;     ///< uniform; index: integers in [low, high)
  double value = 0;             ///< constant
};

/// Overrides by parameter name or number ("3").
using InputOverrides = std::map<std::string, Distribution>;

/// The default distribution of every entry parameter, judged by the ops its values reach: floats of rank 2
/// and more N(0, 1/fan_in) (fan_in: the dimensions contracted by the product it feeds, else the second-last
/// extent), other floats N(0, 1), variances and positive-domain parameters (those that reach sqrt, rsqrt,
/// log, a power's base or a denominator without other arithmetic than adding a constant) U(0.5, 1.5),
/// integers that index uniform within the dimension they index, others in [0, 2).
std::vector<Distribution> default_distributions(const Graph& graph);

/// Fills parameters one at a time. Deterministic across machines: the same seed gives the same bytes
/// everywhere.
class InputGenerator {
 public:
  /// The graph must outlive it. Throws Error where an override names no parameter.
  InputGenerator(const Graph& graph, std::uint64_t seed, const InputOverrides& overrides = {});
  /// Of parameter `i`, by its number.
  Literal operator()(std::size_t i) const;

 private:
  const Computation& entry_;
  std::uint64_t seed_;
  std::vector<Distribution> distributions_;
};

/// Bytes of all parameters.
double input_bytes(const Graph& graph);

/// All parameters. Throws Error where there is no memory for them.
std::vector<Literal> generate_inputs(const Graph& graph, std::uint64_t seed,
                                     const InputOverrides& overrides = {});

}  // namespace stitchwork
