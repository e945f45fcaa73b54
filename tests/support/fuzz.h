// What the tests over random graphs share: which graphs, which inputs, and what outputs are right.
//
// STITCHWORK_FUZZ_FIRST and STITCHWORK_FUZZ_SEEDS choose other graphs, STITCHWORK_FUZZ_SETTINGS how many
// planner settings each is tried with: for hours, if wanted (CONTRIBUTING.md).
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <iterator>
#include <random>
#include <string>
#include <vector>

#include "core/evaluate/evaluator.h"
#include "core/evaluate/inputs.h"
#include "core/evaluate/judge.h"
#include "occupancy_model/device.h"
#include "tests/support/random_graph.h"

namespace stitchwork::testing {

inline std::uint32_t fuzz_setting(const char* name, std::uint32_t otherwise) {
  const char* text = std::getenv(name);
  return text == nullptr ? otherwise : static_cast<std::uint32_t>(std::strtoul(text, nullptr, 10));
}

struct FuzzRange {
  std::uint32_t first = 0, end = 0;
  bool chosen = false;  ///< by the environment: nothing is known of how often what occurs
};
inline FuzzRange fuzz_range(std::uint32_t first, std::uint32_t seeds) {
  FuzzRange range;
  range.first = fuzz_setting("STITCHWORK_FUZZ_FIRST", first);
  range.end = range.first + fuzz_setting("STITCHWORK_FUZZ_SEEDS", seeds);
  range.chosen = range.first != first || range.end != first + seeds;
  return range;
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

/// Rows and columns where forms of kernels are decided, drawn over orders of magnitude: long rows, many short
/// ones, few rows, square domains, rows of images; odd extents, powers of two and what is between.
inline std::vector<std::int64_t> fuzz_domain(std::mt19937& random, std::int64_t max_elements) {
  const auto below = [&](std::size_t n) { return static_cast<std::size_t>(random() % n); };
  const auto drawn = [&](double low, double high) {
    high = std::max(low, std::min(high, static_cast<double>(max_elements)));
    const double share = static_cast<double>(below(1 << 20)) / (1 << 20);
    const auto extent = static_cast<std::int64_t>(std::exp(std::log(low) + share * std::log(high / low)));
    const std::size_t kind = below(4);
    return kind == 0   ? extent | 1
           : kind == 1 ? (extent + 63) / 64 * 64
           : kind == 2 ? (extent + 3) / 4 * 4
                       : extent;
  };
  std::int64_t cols = 1;
  double most_rows = 1 << 20;
  switch (below(6)) {
    case 0:
      cols = drawn(8000, 50000);
      break;
    case 1:
      cols = drawn(1, 96);
      break;
    case 2:
      cols = drawn(96, 1200);
      break;
    case 3:
      cols = drawn(1200, 8000);
      break;
    case 4:
      cols = drawn(64, 1 << 18);
      most_rows = 16;
      break;
    default:
      cols = drawn(16, 2048);
      most_rows = 2 * static_cast<double>(cols);
  }
  const std::int64_t room = std::max<std::int64_t>(1, max_elements / cols);
  // Nearly all the room, or anything that fits.
  const double least = below(3) ? std::max(1.0, static_cast<double>(room) / 4) : 1;
  const std::int64_t rows =
      std::min(room, drawn(std::min(least, most_rows), std::min(most_rows, static_cast<double>(room))));
  if (rows % 4 == 0 && rows > 8 && below(4) == 0) return {4, rows / 4, cols};
  return {rows, cols};
}

/// A domain with patterns of training steps over it, of at most so many elements.
inline RandomGraphOptions domain_options(std::uint32_t seed, std::int64_t max_elements) {
  std::mt19937 random(seed * 2654435761U + 1);
  RandomGraphOptions options;
  options.domain = fuzz_domain(random, max_elements);
  std::int64_t elements = 1;
  for (const std::int64_t extent : options.domain) elements *= extent;
  options.max_elements = 2 * elements + 64;
  // One pattern, which is of several ops, or many.
  options.ops = random() % 2 ? 1 : 8 + static_cast<int>(random() % 40);
  options.types = seed % 3 != 0;
  options.dots = false;
  return options;
}

/// Few SMs: small tensors then take several tasks a block, split rows and need grid barriers.
inline Device few_sms(std::string_view id, int sms) {
  Device result = device(id);
  result.sms = sms;
  return result;
}

/// The architectures that plans differ between: without asynchronous copies (V100, T4), with (A100), with
/// bulk copies and clusters (H200, B200).
inline constexpr std::string_view kFuzzDevices[] = {"v100", "t4", "a100", "h200", "b200"};

/// So many SMs of a device with their share of its caches and bandwidths: it plans small tensors as the whole
/// device would large ones. One GPC holds them all, and so any cluster that fits.
inline Device share_of(std::string_view id, int sms) {
  Device result = device(id);
  const double share = static_cast<double>(sms) / result.sms;
  result.l2_bytes = static_cast<std::int64_t>(share * static_cast<double>(result.l2_bytes)) / 4096 * 4096;
  result.dram_gb_s *= share;
  result.l2_gb_s *= share;
  result.fp32_tflops *= share;
  result.sms = sms;
  result.gpcs = std::min(result.gpcs, 1);
  return result;
}

/// A share of any of the architectures; one with clusters is of as many SMs as hold any.
inline Device some_share(std::mt19937& random) {
  const std::string_view id = kFuzzDevices[random() % std::size(kFuzzDevices)];
  const bool clusters = device(id).max_cluster_blocks > 0;
  return share_of(id, clusters ? 8 << random() % 2 : 2 << random() % 3);
}

/// Graphs to plan alone: every other one over a domain, some with more elements than caches hold.
inline std::string planned_hlo(std::uint32_t seed) {
  if (seed % 2 == 0) return random_hlo(seed, fuzz_options(seed));
  return random_hlo(seed, domain_options(seed, std::int64_t{1} << (10 + seed / 2 % 17)));
}
/// Any of the architectures, a whole device or a share of one.
inline Device planned_device(std::mt19937& random) {
  return random() % 2 ? device(kFuzzDevices[random() % std::size(kFuzzDevices)]) : some_share(random);
}

/// Graphs to execute: every other one over a domain, of up to 2^18 elements.
inline std::string executed_hlo(std::uint32_t seed) {
  if (seed % 2 == 0) return random_hlo(seed, fuzz_options(seed));
  return random_hlo(seed, domain_options(seed, std::int64_t{1} << (12 + seed / 2 % 7)));
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
