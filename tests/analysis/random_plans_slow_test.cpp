#include <gtest/gtest.h>

#include <iostream>

#include "core/hlo_text.h"
#include "core/passes.h"
#include "tests/support/fuzz.h"
#include "tests/support/planner_settings.h"
#include "tests/support/shrink_hlo.h"

namespace stitchwork {
namespace {

using testing::PlannerSetting;

/// What is wrong with the plan, or "": make_plan itself checks what it made with verify.
std::string outcome(const std::string& text, const Device& device, const PlannerSetting& setting) {
  try {
    make_plan(canonicalize(parse_hlo(text, "random.hlo")), device, setting.planner, setting.options);
    return "";
  } catch (const std::exception& error) {
    return error.what();
  }
}

int try_plans(const std::string& text, std::uint32_t seed, std::size_t settings, const Device& device) {
  const Graph graph = canonicalize(parse_hlo(text, "random.hlo"));
  int plans = 0;
  for (const PlannerSetting& setting : testing::settings_of(seed, settings)) {
    ++plans;
    try {
      make_plan(graph, device, setting.planner, setting.options);
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

TEST(RandomPlansSlow, PlansOfThousandsOfGraphsByEveryPlannerAndKnobAreValid) {
  const Device devices[] = {device("v100"), testing::few_sms("t4", 2)};
  const testing::FuzzRange range = testing::fuzz_range(0, 3000);
  int plans = 0;
  for (std::uint32_t seed = range.first; seed < range.end; ++seed) {
    const std::string text = testing::random_hlo(seed, testing::fuzz_options(seed));
    plans += try_plans(text, seed, 6, devices[seed % 2]);
  }
  std::cout << range.end - range.first << " graphs, " << plans << " plans\n";
}

TEST(RandomPlansSlow, PlansOfLargerGraphsAreValid) {
  for (std::uint32_t seed = 1000; seed < 1300; ++seed) {
    testing::RandomGraphOptions options;
    options.ops = 20 + static_cast<int>(seed % 7) * 30;
    options.max_elements = seed % 3 == 0 ? 1 << 20 : 1 << 13;
    try_plans(testing::random_hlo(seed, options), seed, 4, device(seed % 2 == 0 ? "v100" : "t4"));
  }
}

}  // namespace
}  // namespace stitchwork
