#include "runtime/program/run_script.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "analysis/judge/cost.h"
#include "analysis/judge/library_cost.h"
#include "core/evaluate/judge.h"
#include "core/hlo/npy.h"

namespace stitchwork {
namespace {

ArrayComparison compare_integers(const Literal& actual, const Literal& wanted) {
  ArrayComparison result;
  double squares = 0;
  const std::int64_t n = wanted.shape.elements_count();
  for (std::int64_t i = 0; i < n; ++i) squares += wanted.get_double(i) * wanted.get_double(i);
  const double rms = n > 0 ? std::sqrt(squares / static_cast<double>(n)) : 0;
  for (std::int64_t i = 0; i < n; ++i) {
    const std::int64_t a = actual.get_int(i), r = wanted.get_int(i);
    if (a == r) continue;
    if (result.wrong++ == 0) result.message = fmt::format("element {} is {}, not {}", i, a, r);
    const double error = std::abs(static_cast<double>(a) - static_cast<double>(r));
    result.max_abs_error = std::max(result.max_abs_error, error);
    result.max_rel_error = std::max(result.max_rel_error, error / (std::abs(static_cast<double>(r)) + rms));
  }
  result.ok = result.wrong == 0;
  return result;
}

}  // namespace

ArrayComparison compare_arrays(const Literal& actual, const Literal& wanted, std::optional<double> rtol,
                               std::optional<double> atol) {
  if (!is_floating(actual.shape.dtype) && !rtol && !atol) return compare_integers(actual, wanted);
  const std::int64_t n = wanted.shape.elements_count();
  double largest = 0, squares = 0;
  for (std::int64_t i = 0; i < n; ++i) {
    const double r = wanted.get_double(i);
    if (!std::isfinite(r)) continue;
    largest = std::max(largest, std::abs(r));
    squares += r * r;
  }
  const double rms = n > 0 ? std::sqrt(squares / static_cast<double>(n)) : 0;
  ArrayComparison result;
  result.rtol =
      rtol.value_or(std::max(relative_tolerance(actual.shape.dtype), relative_tolerance(wanted.shape.dtype)));
  result.atol = atol.value_or(largest > 0 ? result.rtol / 10 * largest : 1e-6);
  for (std::int64_t i = 0; i < n; ++i) {
    const double a = actual.get_double(i), r = wanted.get_double(i);
    const double error = std::abs(a - r);
    bool right = a == r || (std::isnan(a) && std::isnan(r));
    if (std::isfinite(a) && std::isfinite(r)) {
      right = error <= result.atol + result.rtol * std::abs(r);
      result.max_abs_error = std::max(result.max_abs_error, error);
      if (error > 0) result.max_rel_error = std::max(result.max_rel_error, error / (std::abs(r) + rms));
    }
    if (!right && result.wrong++ == 0)
      result.message = fmt::format("element {} is {:.9g}, not {:.9g}", i, a, r);
  }
  result.ok = result.wrong == 0;
  return result;
}

bool ScriptResult::ok() const {
  return program.findings.empty() &&
         std::ranges::all_of(expected, [](const ArrayComparison& c) { return c.ok; });
}

double modelled_us(const ScriptStep& step, const Device& device) {
  if (step.kind == ScriptStepKind::kKernel) return 0;
  std::vector<MatrixProduct> made;
  if (step.computes != nullptr) {
    const Computation& entry = step.computes->entry_computation();
    for (const Node& node : entry.nodes)
      if (const auto product = matrix_product(entry, node)) made.push_back(*product);
  }
  // What the call adds to its one product or convolution it reads too, as our calls do.
  if (made.size() == 1) made[0].bytes = std::max(made[0].bytes, static_cast<double>(step.bytes));
  double products = 0;
  for (const MatrixProduct& product : made) products += library_time(device, product).total_us;
  return products > 0 ? products : transfer_us(device, static_cast<double>(step.bytes));
}

ScriptResult run_script(Script& script, const Device& device, const sim::Options& options,
                        const sim::ProgramProgress& progress) {
  for (std::size_t s = 0; s < script.steps.size(); ++s)
    script.program.steps[s].modelled_us = modelled_us(script.steps[s], device);
  ScriptResult result{.program = sim::run_program(script.program, device, options, progress),
                      .expected = {},
                      .sanitized = {}};
  for (const sim::StepResult& step : result.program.steps) result.sanitized += step.launch.sanitized;
  if (!result.program.findings.empty() || options.sampled) return result;
  for (const Expectation& e : script.expected)
    result.expected.push_back(
        compare_arrays(result.program.buffers.at(e.buffer), read_npy(e.file), e.rtol, e.atol));
  return result;
}

}  // namespace stitchwork
