// Runs a program of PTX (script.h) in the simulator: times of all steps, files to save, expectations to hold.
#pragma once

#include <string>
#include <vector>

#include "runtime/program/script.h"

namespace stitchwork {

/// An array against the one it is to be, element by element: |a - r| <= atol + rtol * |r|.
struct ArrayComparison {
  bool ok = true;
  double max_abs_error = 0;   ///< over the elements that are finite in both
  double max_rel_error = 0;   ///< max |a - r| / (|r| + rms(r))
  double rtol = 0, atol = 0;  ///< that were allowed
  std::int64_t wrong = 0;     ///< elements
  std::string message;        ///< the first wrong one, or empty
};

/// NaN equals NaN, infinities equal themselves. Tolerances not given are those of the type (docs/inputs.md):
/// rtol 1e-10 of f64, 1e-4 of f32, 1e-2 of f16, 3e-2 of bf16, atol a tenth of that times the largest |r|;
/// integers are equal.
ArrayComparison compare_arrays(const Literal& actual, const Literal& wanted, std::optional<double> rtol,
                               std::optional<double> atol);

struct ScriptResult {
  sim::ProgramResult program;
  std::vector<ArrayComparison> expected;  ///< by Script::expected; none of a sample or after a finding
  sim::SanitizerCounts sanitized;

  bool ok() const;
};

/// Modelled: a memset or copy at DRAM's bandwidth, a call by its products (occupancy_model/library.h), else
/// by the bytes that it moves.
double modelled_us(const ScriptStep& step, const Device& device);

/// Runs the steps. The buffers' contents are moved out of the script.
ScriptResult run_script(Script& script, const Device& device, const sim::Options& options,
                        const sim::ProgramProgress& progress = {});

}  // namespace stitchwork
