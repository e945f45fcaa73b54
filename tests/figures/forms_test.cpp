#include "figures/data/forms.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <sstream>

#include "core/base/error.h"
#include "tests/support/golden.h"
#include "tests/support/sample_figures.h"

namespace stitchwork {
namespace TEST_FILE {

TEST(FigureGolden, CsvOfEveryKind) {
  std::string all;
  for (const Figure& figure : sample_figures()) all += "# " + figure.id + "\n" + figure_csv(figure);
  expect_golden("figures.csv", all);
}

TEST(FigureGolden, VegaLiteOfEveryKind) {
  nlohmann::ordered_json all;
  for (const Figure& figure : sample_figures()) all[figure.id] = vega_lite(figure);
  expect_golden("figures.vl.json", all.dump(1) + "\n");
}

TEST(FigureForms, CsvHasALineANumberAndQuotesWhatNeedsIt) {
  Figure figure = sample_bars();
  figure.categories[0] = "a,\"b\"";
  const std::string csv = figure_csv(figure);
  std::istringstream lines(csv);
  int count = 0;
  for (std::string line; std::getline(lines, line);) ++count;
  EXPECT_EQ(count, 1 + 3 * 5);
  EXPECT_NE(csv.find("\"a,\"\"b\"\"\""), std::string::npos) << csv;
  EXPECT_NE(csv.find("XLA,DIEN,,,,modelled"), std::string::npos) << "a hole is an empty field\n" << csv;
}

TEST(FigureForms, VegaLiteLeavesHolesOutAndCarriesProvenance) {
  const auto spec = vega_lite(sample_bars());
  EXPECT_EQ(spec["data"]["values"].size(), 14u);
  EXPECT_EQ(spec["usermeta"]["experiment"], "sample");
  EXPECT_EQ(spec["layer"].size(), 3u) << "bars, error bars, the reference";
}

TEST(FigureForms, CumulativeEndsAtOne) {
  const auto steps = cumulative(sample_cdf().series[0]);
  ASSERT_EQ(steps.size(), 7u);
  EXPECT_DOUBLE_EQ(steps.front().first, 2.5);
  EXPECT_DOUBLE_EQ(steps.back().second, 1);
}

TEST(FigureForms, ListsOfWrongLengthAreABug) {
  Figure figure = sample_bars();
  figure.series[1].y.pop_back();
  EXPECT_THROW(figure_csv(figure), InternalError);
}

}  // namespace TEST_FILE
}  // namespace stitchwork
