// The judge of right and wrong: what an implementation gave, element by element, against the reference and
// the rounding errors of the computation itself (docs/inputs.md, "The check").
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "core/evaluate/rounding.h"
#include "core/graph/graph.h"
#include "core/graph/literal.h"

namespace stitchwork {

/// rtol of the check below: 1e-10 f64, 1e-4 f32, 1e-2 f16, 3e-2 bf16; 0 of what is exact.
double relative_tolerance(DType type);

struct CheckResult {
  bool ok = true;
  double max_abs_error = 0;   ///< over the elements that are finite in both
  double max_rel_error = 0;   ///< max |a-r| / (|r| + rms(r))
  std::int64_t elements = 0;  ///< of all outputs
  std::int64_t allowed = 0;  ///< right only by what rounding does to them: beyond the tolerance of their type
  std::int64_t nan = 0;      ///< NaN in both: equal, but evidence of little
  std::vector<std::size_t> uniform;  ///< outputs of one number throughout, as of what saturates: likewise
  std::string message;               ///< first wrong element, or empty
};

/// What the numbers of a check are worth: "; 2 of 9 elements needed the allowance of their own rounding; 3 of
/// 9 are NaN in both; output 1 is one number throughout"; "": nothing to say.
std::string remarks(const CheckResult& check);

/// Judges outputs of one graph for one set of inputs. An element a with reference r is right iff
///
///     |a - r| <= rtol * |r|            rtol: 1e-10 f64, 1e-4 f32, 1e-2 f16, 3e-2 bf16; integers, pred: a ==
///     r
///
/// or, element by element, within what rounding can do to it: |a - r| <= rtol * |r| + max(4 * n, m), where n
/// is how far that element moved, at most, over up to 16 evaluations of the graph in which every op errs at
/// random (core/evaluate/rounding.h), and up to 64 where it has not moved at all, and m the same over 16 in
/// which ops err four times as much; where a is an integer, NaN or infinity, one of those of the ops' own
/// errors gave the same. Evaluations are made only while an element needs them. No element's size excuses
/// another.
class Judge {
 public:
  /// The graph must outlive the judge. The reference is evaluated here.
  Judge(const Graph& graph, std::vector<Literal> inputs, Arithmetic arithmetic = {});

  const std::vector<Literal>& inputs() const { return inputs_; }
  const std::vector<Literal>& reference() const { return reference_; }

  /// All outputs, by number. Throws Error where the graph cannot be evaluated.
  CheckResult check(std::span<const Literal> outputs);

 private:
  /// The outputs of one evaluation with random errors; valid until the next call.
  const std::vector<Literal>& sample(int number);

  const Graph& graph_;
  std::vector<Literal> inputs_;
  Arithmetic arithmetic_;
  std::vector<Literal> reference_;
  std::vector<std::vector<Literal>> samples_;  ///< the first ones, by number, as many as may be kept
  std::vector<Literal> last_;                  ///< the last one beyond these
};

}  // namespace stitchwork
