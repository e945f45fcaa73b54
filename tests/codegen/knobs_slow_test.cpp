#include <fmt/format.h>

#include <algorithm>

#include "tests/codegen/planned.h"
#include "tests/support/planner_settings.h"

namespace stitchwork {
namespace TEST_FILE {

/// A graph of every mechanism: rows shorter and longer than a block, a column sum, a heavy op behind a
/// broadcast.
constexpr const char* kGraph = R"(HloModule knobs
sum { a = f32[] parameter(0)  b = f32[] parameter(1)  ROOT s = f32[] add(a, b) }
mx { a = f32[] parameter(0)  b = f32[] parameter(1)  ROOT s = f32[] maximum(a, b) }
ENTRY main {
  x = f32[8,3000] parameter(0)
  y = f32[600,32] parameter(1)
  zero = f32[] constant(0)
  low = f32[] constant(-inf)
  peak = f32[8] reduce(x, low), dimensions={1}, to_apply=mx
  peaks = f32[8,3000] broadcast(peak), dimensions={0}
  shifted = f32[8,3000] subtract(x, peaks)
  e = f32[8,3000] exponential(shifted)
  total = f32[8] reduce(e, zero), dimensions={1}, to_apply=sum
  totals = f32[8,3000] broadcast(total), dimensions={0}
  soft = f32[8,3000] divide(e, totals)
  short = f32[600] reduce(y, zero), dimensions={1}, to_apply=sum
  squashed = f32[600] tanh(short)
  wide = f32[600,32] broadcast(squashed), dimensions={0}
  scaled = f32[600,32] multiply(wide, y)
  cols = f32[32] reduce(scaled, zero), dimensions={0}, to_apply=sum
  ROOT t = (f32[8,3000], f32[600,32], f32[32]) tuple(soft, scaled, cols)
}
)";

TEST(Knobs, EveryValueOfEveryPlannerComputesTheGraph) {
  SKIP_WITHOUT_COMPILER();
  const Graph graph = testing::graph_of(kGraph);
  for (const Planner& row : planners_for(graph))
    for (const std::string_view name : row.knobs) {
      if (testing::is_anothers_knob(row, name)) continue;
      const auto knob =
          std::find_if(knobs().begin(), knobs().end(), [&](const Knob& k) { return k.name == name; });
      for (const std::string_view value : knob->values) {
        SCOPED_TRACE(fmt::format("{} {}={}", row.name, name, value));
        const PlanOptions options =
            testing::with_weights_of(graph, {{{std::string(name), std::string(value)}}, {}, false});
        testing::expect_correct(graph, make_plan(graph, device("v100"), row.name, options));
      }
    }
}

}  // namespace TEST_FILE
}  // namespace stitchwork
