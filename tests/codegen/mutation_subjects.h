// The kernels that deliberate faults are made in: of each form that generated code takes, whether or not
// estimates would choose it for tensors as small as these.
#pragma once

#include <string>
#include <vector>

#include "tests/codegen/workloads.h"
#include "tests/support/fuzz.h"
#include "tests/support/planner_settings.h"
#include "tests/support/staged_rows.h"

namespace stitchwork::testing {

/// How a subject's rows are computed, where its planner is not asked.
enum class RowForm : std::uint8_t { kPlanned, kCopied, kBulk, kCluster };

/// A graph planned for so many SMs' share of a device.
struct Subject {
  std::string name, hlo, device;
  int sms = 2;
  PlannerSetting setting;
  RowForm form = RowForm::kPlanned;
};

/// Its plan, which verify has accepted.
inline FusionPlan plan_of(const Subject& subject, const Graph& graph, const Device& target) {
  FusionPlan plan = make_plan(graph, target, subject.setting.planner, subject.setting.options);
  constexpr std::int64_t kTakers = 4;
  constexpr int kStages = 3, kCluster = 4;
  const bool bulk = subject.form == RowForm::kBulk;
  bool formed = true;
  if (bulk || subject.form == RowForm::kCopied)
    formed = stage_single_rows(graph, target, plan, 0, kTakers, 1, 4, 1, kStages, bulk);
  else if (subject.form == RowForm::kCluster)
    formed = share_rows(graph, target, plan, 0, kCluster, 2);
  SW_CHECK(formed, "{} cannot take its form", subject.name);
  return plan;
}

inline const std::vector<Subject>& mutation_subjects() {
  const auto of = [](const char* name, std::int64_t rows, std::int64_t cols, const char* type = "f32") {
    return workload(name).hlo({rows, cols, type});
  };
  const PlannerSetting paper{"astitch", {.knobs = {{"mapping", "paper"}}}}, tuned{"astitch", {}},
      whole_rows{"astitch", {.knobs = {{"tiles", "off"}, {"clusters", "off"}}}};
  const std::string transposed = R"(
HloModule transposed
ENTRY main {
  x = f32[70,90] parameter(0)
  s = f32[90] parameter(1)
  b = f32[70,90] broadcast(s), dimensions={1}
  y = f32[70,90] multiply(x, b)
  t = f32[90,70] transpose(y), dimensions={1,0}
  ROOT r = f32[90,70] negate(t)
})";
  const std::string padded = R"(
HloModule padded
ENTRY main {
  x = f32[33,41] parameter(0)
  z = f32[] constant(2)
  p = f32[37,44] pad(x, z), padding=3_1x0_3
  y = f32[37,9] parameter(1)
  ROOT c = f32[37,53] concatenate(p, y), dimensions={1}
})";
  const std::string largest = R"(
HloModule largest
max { a = f32[] parameter(0)  b = f32[] parameter(1)  ROOT r = f32[] maximum(a, b) }
ENTRY main {
  x = f32[41,300] parameter(0)
  a = f32[41,300] abs(x)
  n = f32[41,300] negate(a)
  lowest = f32[] constant(-inf)
  m = f32[41] reduce(n, lowest), dimensions={1}, to_apply=max
  b = f32[41,300] broadcast(m), dimensions={0}
  d = f32[41,300] subtract(n, b)
  ROOT r = (f32[41], f32[41,300]) tuple(m, d)
})";
  const std::string half_sums = R"(
HloModule half_sums
sum { a = f32[] parameter(0)  b = f32[] parameter(1)  ROOT r = f32[] add(a, b) }
ENTRY main {
  x = f16[20,5000] parameter(0)
  w = f32[20,5000] convert(x)
  zero = f32[] constant(0)
  ROOT s = f32[20] reduce(w, zero), dimensions={1}, to_apply=sum
})";
  const std::string phases = R"(
HloModule phases
sum { a = f32[] parameter(0)  b = f32[] parameter(1)  ROOT r = f32[] add(a, b) }
ENTRY main {
  x = f32[40,40] parameter(0)
  zero = f32[] constant(0)
  s = f32[40] reduce(x, zero), dimensions={1}, to_apply=sum
  t = f32[] reduce(s, zero), dimensions={0}, to_apply=sum
  b = f32[40,40] broadcast(t), dimensions={}
  ROOT y = f32[40,40] divide(x, b)
})";
  static const std::vector<Subject> all = {
      {"warp rows", of("softmax", 67, 77), "v100", 2, paper},
      {"block rows", of("layer_norm", 9, 2100), "v100", 4, paper},
      {"staged rows", of("softmax", 999, 33), "t4", 2, tuned},
      {"copied rows", of("softmax", 37, 516), "a100", 2, paper, RowForm::kCopied},
      {"bulk rows", of("softmax", 37, 516), "h200", 8, paper, RowForm::kBulk},
      {"cluster rows", of("softmax", 5, 3001), "h200", 2, whole_rows, RowForm::kCluster},
      {"split rows", of("softmax", 3, 20001), "v100", 8, paper},
      {"sums across", of("layer_norm_grad", 203, 96), "v100", 2, tuned},
      {"phases", phases, "v100", 8, paper},
      {"columns", of("column_sum", 1000, 70), "v100", 2, paper},
      {"atomic columns", of("column_sum", 3000, 70), "v100", 8, {"xla", {}}},
      {"half sums", half_sums, "t4", 2, paper},
      {"largest", largest, "v100", 2, paper},
      {"loss", of("cross_entropy", 45, 150), "t4", 2, paper},
      {"transposed", transposed, "v100", 2, paper},
      {"padded", padded, "v100", 2, paper},
  };
  return all;
}

}  // namespace stitchwork::testing
