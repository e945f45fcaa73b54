#include <gtest/gtest.h>

#include <iostream>

#include "core/hlo/hlo_text.h"
#include "core/passes/passes.h"
#include "tests/support/forms.h"
#include "tests/support/fuzz.h"
#include "tests/support/planner_settings.h"
#include "tests/support/shrink_hlo.h"

namespace stitchwork {
namespace TEST_FILE {

using testing::PlannerSetting;

const testing::FormFloors kFloors = {
    {"across", 80},
    {"ahead", 3},
    {"atomic", 42},
    {"bulk", 35},
    {"cluster", 9},
    {"column", 800},
    {"column split", 80},
    {"cp_async", 15},
    {"elementwise", 5000},
    {"global", 700},
    {"global, had in its phase", 220},
    {"grid barriers", 700},
    {"lanes", 1200},
    {"one pass", 10},
    {"partials", 120},
    {"recomputed", 2500},
    {"regional", 900},
    {"resident in registers", 6},
    {"row_pack", 2500},
    {"row_serial", 200},
    {"row_split", 140},
    {"several outputs", 2000},
    {"several rows", 1500},
    {"several tasks", 300},
    {"staged", 40},
    {"tile", 35},
    {"tiles", 60},
    {"unrolled", 1000},
    {"vectors", 3000},
};

/// What is wrong with the plan, or "": make_plan itself checks what it made with verify.
std::string outcome(const std::string& text, const Device& device, const PlannerSetting& setting) {
  try {
    const Graph graph = canonicalize(parse_hlo(text, "random.hlo"));
    make_plan(graph, device, setting.planner, testing::with_weights_of(graph, setting.options));
    return "";
  } catch (const std::exception& error) {
    return error.what();
  }
}

/// Each plan of the seed's settings for a device of its own.
int try_settings(const std::string& text, std::uint32_t seed, const std::vector<PlannerSetting>& chosen,
                 testing::FormCounts& forms) {
  const Graph graph = canonicalize(parse_hlo(text, "random.hlo"));
  std::mt19937 random(seed);
  int plans = 0;
  for (const PlannerSetting& setting : chosen) {
    const Device device = testing::planned_device(random);
    ++plans;
    try {
      forms.add(device.id,
                make_plan(graph, device, setting.planner, testing::with_weights_of(graph, setting.options)));
    } catch (const std::exception& error) {
      ADD_FAILURE() << error.what() << "\nseed " << seed << ", " << setting.text() << " for " << device.id
                    << " with " << device.sms << " SMs; a part that fails:\n"
                    << testing::shrink_hlo(text, [&](const std::string& part) {
                         return !outcome(part, device, setting).empty();
                       });
    }
  }
  return plans;
}

int try_plans(const std::string& text, std::uint32_t seed, std::size_t settings, testing::FormCounts& forms) {
  std::vector<PlannerSetting> chosen = testing::settings_of(seed, settings);
  if (seed % 2 != 0) chosen.push_back({"astitch", {}});  // whose estimates choose between the forms
  if (seed % 3 == 1) chosen.push_back({"xla", {}});      // whose column sums add atomically
  return try_settings(text, seed, chosen, forms);
}

TEST(RandomPlansSlow, PlansOfThousandsOfGraphsByEveryPlannerAndKnobAreValid) {
  const testing::FuzzRange range = testing::fuzz_range(0, 700);
  testing::FormCounts forms;
  int plans = 0;
  for (std::uint32_t seed = range.first; seed < range.end; ++seed)
    plans += try_plans(testing::planned_hlo(seed), seed, 3, forms);
  // By astitch alone, whose estimates choose between the forms: more graphs, so that rare forms occur.
  for (std::uint32_t seed = range.end; !range.chosen && seed < range.end + 2500; ++seed)
    plans += try_settings(testing::planned_hlo(seed), seed, {{"astitch", {}}}, forms);
  std::cout << range.end - range.first << " graphs, " << plans << " plans; kernels by form and device:\n"
            << forms.text();
  if (!range.chosen) testing::expect_floors(forms, kFloors);
}

TEST(RandomPlansSlow, PlansOfLargerGraphsAreValid) {
  testing::FormCounts forms;
  for (std::uint32_t seed = 1000; seed < 1040; ++seed) {
    testing::RandomGraphOptions options;
    options.ops = 20 + static_cast<int>(seed % 7) * 30;
    options.max_elements = seed % 3 == 0 ? 1 << 20 : 1 << 13;
    try_plans(testing::random_hlo(seed, options), seed, 3, forms);
  }
}

}  // namespace TEST_FILE
}  // namespace stitchwork
