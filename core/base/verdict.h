// A decision with its reason. Refusals are values, not exceptions.
#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

namespace stitchwork {

/// The answer to "may this be done?": yes, or no because. Rules return it; planners record it.
struct Verdict {
  bool ok = true;
  std::string rule;  ///< short stable name of the rule, e.g. "xla.reduce-is-never-a-producer"
  std::string
      why;  ///< one sentence with the numbers, e.g. "needs 51200 bytes of shared memory, 49152 allowed"

  static Verdict yes(std::string rule = {}, std::string why = {}) {
    return {true, std::move(rule), std::move(why)};
  }
  static Verdict no(std::string rule, std::string why) { return {false, std::move(rule), std::move(why)}; }
  explicit operator bool() const { return ok; }
};

/// One decision a planner took, in order. `subject` is the op decided about, `object` the other op of a pair
/// (producer into consumer, merged candidates) or empty; both are node names so that they survive
/// serialisation.
struct Decision {
  std::string step;  ///< the planner's pass: "scope", "dominants", "merging", "mapping", "locality",
                     ///< "memory", "launch"...
  std::string subject;
  std::string object;
  Verdict verdict;
};

}  // namespace stitchwork
