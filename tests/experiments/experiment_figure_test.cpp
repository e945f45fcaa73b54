#include "experiments/experiment_figure.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "core/base/error.h"

namespace stitchwork {
namespace TEST_FILE {

using ::testing::ElementsAre;

TrialResults trial(const std::string& workload, const std::string& variant, std::vector<double> us) {
  TrialResults result;
  result.workload = workload;
  result.device = "v100-sxm2";
  result.variant = variant;
  if (!us.empty()) result.series["total_us"] = {{"measured", "", std::move(us)}};
  return result;
}

TEST(ExperimentFigure, BarsAreMediansWithTheirIntervals) {
  ExperimentResults results;
  results.name = "a/b c";
  results.variants = {"XLA", "mine"};
  results.trials = {trial("bert", "XLA", {3, 1, 2}), trial("bert", "mine", {4}), trial("crnn", "XLA", {5})};
  const Figure figure = experiment_figure(results, "total_us");
  check(figure);
  EXPECT_EQ(figure.id, "a-b-c_total_us");
  EXPECT_EQ(figure.y.label, "total_us, us (measured)");
  EXPECT_THAT(figure.categories, ElementsAre("bert", "crnn"));
  EXPECT_EQ(figure.series[0].y[0], 2);
  EXPECT_EQ(figure.series[0].interval[0], std::pair(1.0, 3.0));
  EXPECT_TRUE(figure.series[1].interval.empty()) << "one attempt has no interval";
  EXPECT_FALSE(figure.series[1].y[1].has_value());
  EXPECT_EQ(figure.series[0].style, planner_style("xla"));
  EXPECT_EQ(figure.series[1].style, -1);
}

TEST(ExperimentFigure, AMetricThatNoTrialHasIsAnError) {
  ExperimentResults results;
  results.name = "e";
  results.variants = {"XLA"};
  results.trials = {trial("bert", "XLA", {})};
  EXPECT_THROW(experiment_figure(results, "total_us"), Error);
  EXPECT_THROW(experiment_figure(results, "no_metric"), Error);
}

}  // namespace TEST_FILE
}  // namespace stitchwork
