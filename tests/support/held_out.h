// Graphs whose shapes nobody chose: families of memory-bound work over domains drawn by seed. Rules of
// planning are fitted to the first seeds alone, tests of what they claim draw from kFirstTestSeed on, so that
// no rule is judged by the shape that it was made on.
#pragma once

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <random>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "tests/codegen/workloads.h"
#include "tests/support/graphs.h"

namespace stitchwork::testing {

/// Seeds below kFitSeeds are for whoever fits a rule.
constexpr std::uint32_t kFitSeeds = 1'000, kFirstTestSeed = 10'000;

inline constexpr std::string_view kHeldOutFamilies[] = {"softmax",         "masked_softmax", "layer_norm",
                                                        "layer_norm_grad", "column_sum",     "middle_sum",
                                                        "full_sum",        "adam",           "gelu"};

/// Where extents are drawn, both ends included; rows are cut so that the domain has at most so many elements.
struct Extents {
  std::int64_t least_rows = 1, most_rows = 1 << 20;
  std::int64_t least_cols = 1, most_cols = 1 << 16;
  std::int64_t max_elements = std::int64_t{1} << 22;
};

struct HeldOut {
  std::string family;
  WorkloadSize size;
  std::string text() const { return fmt::format("{} {}x{} {}", family, size.rows, size.cols, size.dtype); }
};

namespace held_out_text {

inline bool is_prime(std::int64_t n) {
  for (std::int64_t d = 2; d * d <= n; ++d)
    if (n % d == 0) return false;
  return n > 1;
}

/// Log-uniform in [least, most]; every third the largest prime that is no larger, if the range has one.
inline std::int64_t extent(std::mt19937& random, std::int64_t least, std::int64_t most) {
  most = std::max(least, most);
  const double share = static_cast<double>(random()) / 4294967296.0;
  const double low = std::log(static_cast<double>(least)), high = std::log(static_cast<double>(most) + 1);
  const std::int64_t drawn =
      std::clamp(static_cast<std::int64_t>(std::exp(low + share * (high - low))), least, most);
  if (random() % 3 != 0) return drawn;
  for (std::int64_t n = drawn; n >= least; --n)
    if (is_prime(n)) return n;
  return drawn;
}

/// Sums over the middle of [planes, rows, cols]; as many planes as a sixteenth of the rows.
inline std::string middle_sum(const WorkloadSize& size) {
  workload_text::Text t(size);
  const std::int64_t planes = std::max<std::int64_t>(1, size.rows / 16),
                     rows = std::max<std::int64_t>(1, size.rows / planes);
  const std::string left = fmt::format("[{},{}]", planes, size.cols);
  t.output(left, t.reduce(left, t.input(fmt::format("[{},{},{}]", planes, rows, size.cols)), 1, "sum"));
  return t.take("middle_sum");
}

inline std::string full_sum(const WorkloadSize& size) {
  workload_text::Text t(size);
  const std::string first = t.op("[]", "constant(0)");
  t.output("[]", t.op("[]", fmt::format("reduce({}, {}), dimensions={{0,1}}, to_apply=sum", t.input(t.all()),
                                        first)));
  return t.take("full_sum");
}

}  // namespace held_out_text

inline std::string held_out_hlo(const HeldOut& of) {
  if (of.family == "middle_sum") return held_out_text::middle_sum(of.size);
  if (of.family == "full_sum") return held_out_text::full_sum(of.size);
  return workload(of.family).hlo(of.size);
}

inline Graph held_out_graph(const HeldOut& of) { return graph_of(held_out_hlo(of)); }

/// Rows, columns and type (f32, bf16, f16) of `family` by `seed`.
inline HeldOut held_out(std::string_view family, std::uint32_t seed, const Extents& extents = {}) {
  std::mt19937 random(seed);
  HeldOut result{std::string(family), {}};
  result.size.cols = held_out_text::extent(random, extents.least_cols, extents.most_cols);
  const std::int64_t room = std::max<std::int64_t>(1, extents.max_elements / result.size.cols);
  result.size.rows =
      held_out_text::extent(random, std::min(extents.least_rows, room), std::min(extents.most_rows, room));
  const char* const types[] = {"f32", "bf16", "f16"};
  result.size.dtype = types[random() % 3];
  return result;
}

}  // namespace stitchwork::testing
