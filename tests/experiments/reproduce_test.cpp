// A paper's table beside ours: which trials it takes, and what it says of differences.
#include "experiments/reproduce.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <cstdlib>
#include <filesystem>

#include "analysis/facts/bound.h"
#include "core/base/error.h"
#include "core/base/file.h"
#include "experiments/model.h"
#include "experiments/sqlite.h"
#include "experiments/store.h"
#include "tests/experiments/sample_trial.h"

namespace stitchwork {
namespace TEST_FILE {

using ::testing::HasSubstr;
using ::testing::Not;

ReproducedValue value(const std::string& column, double paper, double ours) {
  ReproducedValue v;
  v.row = "BERT";
  v.column = column;
  v.paper = paper;
  v.ours = ours;
  v.method = "modelled";
  return v;
}

TEST(Reproduce, ADifferenceIsExplainedByNumbersOrNotAtAll) {
  ReproducedTable table;
  table.values = {value("base", 100, 50),
                  value("goes with it", 40, 22),
                  value("does not", 40, 80),
                  value("alone", 10, 20),
                  value("near", 10, 11),
                  value("share", 2.4, 1.2),
                  value("with the paper's share", 0, 2.2)};
  table.values[1].follows = table.values[2].follows = "base";
  table.values[5].instead = "with the paper's share";
  table.values[6].paper.reset();
  explain(table);
  EXPECT_EQ(table.values[0].why, "not explained");  // one that follows it does not differ alike
  EXPECT_EQ(table.values[1].why, "base is 0.5 of the paper's, too, which leaves a factor of 1.1");
  EXPECT_EQ(table.values[2].why,
            "not explained: base is 0.5 of the paper's, too, which leaves a factor of 4");
  EXPECT_EQ(table.values[3].why, "not explained");
  EXPECT_EQ(table.values[4].why, "");
  EXPECT_EQ(table.values[5].why, "with the paper's share is 2.20, 0.917 of the paper's");
  EXPECT_THAT(reasons(table)[0], HasSubstr("BERT base; BERT alone: not explained"));
}

TEST(Reproduce, AFactorOfAllThatFollowIsTheRows) {
  ReproducedTable table;
  table.values = {value("base", 100, 50), value("one", 40, 22), value("slow", 30, 2),
                  value("slow, their way", 0, 14)};
  table.values[1].follows = table.values[2].follows = "base";
  table.values[2].instead = "slow, their way";
  table.values[3].paper.reset();
  explain(table);
  EXPECT_EQ(table.values[0].why,
            "a factor of the whole row: one is 0.55 of the paper's, too, slow, their way is 0.467 of the "
            "paper's, too");
  EXPECT_EQ(table.values[2].why,
            "slow, their way is 14, 0.467 of the paper's; base is 0.5 of the paper's, too, which leaves a "
            "factor of 0.933");
  table.values[1].ours = 40;
  explain(table);
  EXPECT_EQ(table.values[0].why, "not explained");
}

TEST(Reproduce, WhatNoPlanCanHaveIsNotMissing) {
  const auto why = [](double ours, double least) {
    ReproducedTable table;  // the paper's graph is as large as ours
    table.values = {value("kernels", 100, ours), value("fewest", 0, least)};
    table.values[0].limit = "fewest";
    table.values[1].paper.reset();
    explain(table);
    return table.values[0].why;
  };
  EXPECT_EQ(why(200, 180), "fewest is 180 for our graph, and ours 1.11 of that");
  EXPECT_EQ(why(200, 120), "not explained: fewest is 120 for our graph, and ours 1.67 of that");
  EXPECT_EQ(why(200, 90), "not explained");  // the paper's number could be had
  EXPECT_EQ(why(110, 105), "");
}

TEST(Reproduce, ANumberThatFollowsMayBeAtItsLimit) {
  const auto why = [](double ours, double least) {
    ReproducedTable table;  // a third of the paper's size
    table.values = {value("base", 900, 300), value("goes with it", 300, ours), value("fewest", 0, least)};
    table.values[1].follows = "base";
    table.values[1].limit = "fewest";
    table.values[2].paper.reset();
    explain(table);
    return table.values[0].why;
  };
  EXPECT_EQ(why(160, 155),
            "a factor of the whole row: goes with it is 0.533 of the paper's, and no plan of our graph has "
            "less");
  EXPECT_EQ(why(160, 90), "not explained");   // as few as the paper's could be had
  EXPECT_EQ(why(240, 155), "not explained");  // and fewer than ours
}

TEST(Reproduce, APapersNumberMayLieBetweenOursAndThatOfLargerSizes) {
  const auto why = [](double ours, double of_bytes) {
    ReproducedTable table;
    table.values = {value("time", 100, ours), value("bytes", 0, of_bytes)};
    table.values[0].mixed_with = "bytes";
    table.values[1].paper.reset();
    explain(table);
    return table.values[0].why;
  };
  EXPECT_EQ(why(40, 120), "bytes is 120: the paper's lies between, 25 % from that and 75 % from ours");
  EXPECT_EQ(why(40, 90), "not explained");
  EXPECT_EQ(why(200, 120), "not explained");
  EXPECT_EQ(why(90, 120), "");
}

TEST(Reproduce, SizesThatThePaperLeavesOpenExplainWhatLiesBetweenThem) {
  const auto why = [](double ours, double small) {
    ReproducedTable table;
    table.values = {value("kernels", 100, ours)};
    table.values[0].unsaid = "its layers";
    table.values[0].sizes = {{"small_tiny", small}};
    explain(table);
    EXPECT_EQ(table.values[0].explained, !table.values[0].why.starts_with("not explained"));
    return table.values[0].why;
  };
  const std::string whose = "a stand-in, as the paper does not say its layers: ours is ";
  EXPECT_EQ(why(300, 20), whose + "from 20 of small_tiny to 300 at other sizes, the paper's lies between");
  EXPECT_EQ(why(20, 300), whose + "from 20 to 300 of small_tiny at other sizes, the paper's lies between");
  EXPECT_EQ(why(300, 110),
            whose + "from 110 of small_tiny to 300 at other sizes, the nearer is 1.1 of the paper's");
  EXPECT_EQ(why(300, 140),
            "not explained: " + whose +
                "from 140 of small_tiny to 300 at other sizes, the nearer is 1.4 of the paper's");
  EXPECT_EQ(why(300, 300), "not explained: " + whose + "the same at other sizes");
}

TEST(Reproduce, ARangeThatThePaperGivesExplainsWhatLiesBetweenOursAtItsEnds) {
  const auto why = [](double one, double other) {
    ReproducedTable table;
    table.values = {value("E2E", 1.2, 2.5), value("with 20 %", 0, one), value("with 50 %", 0, other)};
    table.values[0].between = {"with 20 %", "with 50 %"};
    table.values[1].paper.reset();
    table.values[2].paper.reset();
    explain(table);
    EXPECT_EQ(table.values[0].explained, !table.values[0].why.starts_with("not explained"));
    return table.values[0].why;
  };
  EXPECT_EQ(why(1.1, 1.6), "with 20 % is 1.10, with 50 % 1.60: the paper's lies between");
  EXPECT_EQ(why(1.3, 1.6), "with 20 % is 1.30, with 50 % 1.60: the nearer is 1.08 of the paper's");
  EXPECT_EQ(why(1.8, 1.6),
            "not explained: with 20 % is 1.80, with 50 % 1.60: the nearer is 1.33 of the paper's");
}

/// Columns a and b with a value each, their quotient, and its mean over BERT and another row.
ReproducedTable quotients(double a, double b) {
  ReproducedTable table;
  table.values = {value("a", 12, a), value("b", 4, b), value("a/b", 3, a / b), value("a/b", 1, 1),
                  value("a/b", 2, (a / b + 1) / 2)};
  table.values[2].over = "a";
  table.values[2].under = "b";
  table.values[3].row = "another";
  table.values[4].row = "average";
  table.values[4].average_of = "a/b";
  table.values[4].mean = "arithmetic";
  table.values[4].mean_rows = {"BERT", "another"};
  table.values[4].averaged = true;
  return table;
}

TEST(Reproduce, AQuotientAndAMeanAreExplainedByWhatTheyAreMadeOf) {
  ReproducedTable table = quotients(4, 4);
  explain(table);
  EXPECT_EQ(table.values[2].why, "not explained") << "as is a";
  EXPECT_EQ(table.values[4].why, "not explained") << "as is its row";
  table.values[0].unsaid = "x";
  table.values[0].sizes = {{"large", 14}};
  explain(table);
  EXPECT_EQ(table.values[2].why, "with the paper's a it is 3, 1 of the paper's");
  EXPECT_EQ(table.values[4].why, "with the paper's BERT it is 2, 1 of the paper's");
  table = quotients(4, 12);  // that b differs, too, nothing explains
  table.values[0].unsaid = "x";
  table.values[0].sizes = {{"large", 14}};
  explain(table);
  EXPECT_EQ(table.values[2].why, "not explained: with the paper's a it is 1, 0.333 of the paper's");
}

TEST(Reproduce, OfWhatIsSavedWhatIsLeftCompares) {
  ReproducedValue v = value("saved", 1.5, 0.8);
  v.saved = true;
  EXPECT_NEAR(*v.ratio(), 99.2 / 98.5, 1e-12);
  EXPECT_FALSE(v.far());
  v.paper = 95, v.ours = 90;  // twice as much is left
  EXPECT_NEAR(*v.ratio(), 2, 1e-12);
  EXPECT_TRUE(v.far());
  ReproducedTable table;
  table.values = {v, value("saved, at most", 0, 91)};
  table.values[0].limit = "saved, at most";
  table.values[1].paper.reset();
  explain(table);
  EXPECT_EQ(table.values[0].why,
            "saved, at most is 91 for our graph, and what ours leaves 1.11 of what that leaves");
}

TEST(Reproduce, NothingToCountIsSaidOnlyOfNothing) {
  ReproducedTable table;
  table.values = {value("copies", 10, 0)};
  table.values[0].needed_by = "control_us is 0";
  explain(table);
  EXPECT_EQ(table.values[0].why, "ours is none: control_us is 0, which alone need any");
  table.values[0].ours = 3;
  explain(table);
  EXPECT_EQ(table.values[0].why, "not explained");
}

TEST(Reproduce, AFittedNumberSaysSoInItsCell) {
  ReproducedTable table;
  table.values = {value("us", 2.5, 2.5), value("free", 2.5, 2.5)};
  table.values[0].fitted = true;
  EXPECT_EQ(lines(table)[0].back(), "modelled, fitted to the paper's");
  EXPECT_EQ(lines(table)[1].back(), "modelled");
  ReproduceOptions options;
  options.run = false;
  options.only = {"table6"};
  options.db = testing::test_folder() + "/runs.db";
  for (const ReproducedValue& v : reproduce("astitch", options).tables.at(0).values) EXPECT_TRUE(v.fitted);
}

/// A paper of one experiment, modelled.
class Paper : public ::testing::Test {
 protected:
  void SetUp() override {
    folder_ = testing::test_folder();
    std::filesystem::create_directories(folder_ + "/p");
    write_file(folder_ + "/p/e.json",
               R"({"schema":"stitchwork.experiment/1","name":"e","backend":"model","workloads":["fig7"],)"
               R"("variants":[{"name":"A","planner":"astitch","set":{"mapping":"paper"}}]})");
    write_file(
        folder_ + "/p/paper.json",
        R"({"schema":"stitchwork.paper/1","title":"t","device":"v100-sxm2",)"
        R"("rows":[{"row":"f","workload":"fig7"}],"artifacts":[{"id":"a","place":"Table 1",)"
        R"("title":"t","experiment":"e.json","columns":[{"column":"us","variant":"A","metric":"total_us"}]}]})");
    ::setenv("STITCHWORK_EXPERIMENTS", folder_.c_str(), 1);
    options_.db = folder_ + "/runs.db";
  }
  void TearDown() override { ::unsetenv("STITCHWORK_EXPERIMENTS"); }
  double ours() const { return *reproduce("p", options_).tables.at(0).values.at(0).ours; }
  std::string folder_;
  ReproduceOptions options_;
};

TEST_F(Paper, HasWholeTimesUnderAConditionAndTheLeastThatAnyPlanHas) {
  std::string columns;
  const auto column = [&](const std::string& name, const std::string& metric, const std::string& more) {
    columns += fmt::format(R"({}{{"column":"{}","variant":"A","metric":"{}"{}}})", columns.empty() ? "" : ",",
                           name, metric, more);
  };
  column("kernels", "kernel_us", "");
  column("calls", "memory_kernels+library_calls+copies+memsets", "");
  column("library", "library_us", "");
  column("as called", "total_us", R"(,"under":{"call_us":10})");
  column("half library", "total_us", R"(,"under":{"call_us":0,"memory_share":50,"of":"A"})");
  column("fewest", "memory_kernels", R"(,"bound":"kernels")");
  column("written", "dram_write_transactions", R"(,"bound":"written_sectors")");
  write_file(folder_ + "/p/paper.json",
             fmt::format(R"({{"schema":"stitchwork.paper/1","title":"t","device":"v100-sxm2","rows":)"
                         R"([{{"row":"f","workload":"fig7"}}],"artifacts":[{{"id":"a","place":"Table 1",)"
                         R"("title":"t","experiment":"e.json","columns":[{}]}}]}})",
                         columns));
  std::map<std::string, double> ours;
  const Reproduction found = reproduce("p", options_);
  for (const ReproducedValue& v : found.tables.at(0).values) ours[v.column] = *v.ours;
  EXPECT_DOUBLE_EQ(ours["as called"], ours["kernels"] + ours["library"] + 10 * ours["calls"]);
  EXPECT_DOUBLE_EQ(ours["half library"], 2 * ours["kernels"]);
  EXPECT_EQ(ours["fewest"], kernel_bound(load_model("fig7").graph).kernels);
  const Graph graph = load_model("fig7").graph;
  EXPECT_EQ(ours["written"], std::ceil(static_cast<double>(kernel_bound(graph).written_bytes) / 32));
  EXPECT_GT(ours["written"], 0);
}

/// One column's numbers of rows and means, in order.
std::vector<double> numbers(const ReproducedTable& table, const std::string& column) {
  std::vector<double> found;
  for (const ReproducedValue& v : table.values)
    if (v.column == column && v.ours) found.push_back(*v.ours);
  return found;
}

TEST_F(Paper, ATableIsMadeForEachDeviceWithAColumnForEachVariantAndSaysWhichIsFastest) {
  write_file(
      folder_ + "/p/e.json",
      R"({"schema":"stitchwork.experiment/1","name":"e","backend":"model","workloads":["softmax","fig7"],)"
      R"("variants":[{"planner":"unfused"},{"planner":"astitch"},{"name":"again","planner":"astitch"}],)"
      R"("devices":["v100","h200"]})");
  write_file(
      folder_ + "/p/paper.json",
      R"({"schema":"stitchwork.paper/1","title":"t","device":"v100","rows":"workloads","artifacts":[)"
      R"({"id":"a","place":"P","title":"t","experiment":"e.json","each_device":true,"layout":"matrix","best":true,)"
      R"("columns":[{"variants":"each","metric":"total_us"}],"values":[)"
      R"({"row":"geometric mean","variants":"each","mean":"geometric"},)"
      R"({"row":"least","variants":"each","mean":"least"}]},)"
      R"({"id":"s","place":"P","title":"t","summary_of":"a","layout":"matrix"}]})");
  const Reproduction found = reproduce("p", options_);
  ASSERT_EQ(found.tables.size(), 3u);
  EXPECT_EQ(found.tables[0].id, "a-v100-sxm2");
  EXPECT_EQ(found.tables[1].id, "a-h200");
  EXPECT_THAT(heading(found), HasSubstr("Devices: v100-sxm2, h200"));
  const ReproducedTable& v100 = found.tables[0];
  const std::vector<double> unfused = numbers(v100, "unfused");  // softmax, fig7, their mean, the least
  ASSERT_EQ(unfused.size(), 4u);
  EXPECT_DOUBLE_EQ(unfused[2], std::sqrt(unfused[0] * unfused[1]));
  EXPECT_DOUBLE_EQ(unfused[3], std::min(unfused[0], unfused[1]));
  EXPECT_NE(unfused[0], numbers(found.tables[1], "unfused")[0]) << "of another device";
  const BestVariant& best = v100.best.at("softmax");
  EXPECT_THAT(best.variants, ::testing::ElementsAre("astitch", "again"));
  EXPECT_EQ(best.over, "unfused");
  EXPECT_DOUBLE_EQ(best.factor, unfused[0] / numbers(v100, "astitch")[0]);
  EXPECT_EQ(best.cause, "memory time");
  EXPECT_THAT(best.why, HasSubstr("memory time -"));
  EXPECT_EQ(heads(v100),
            (std::vector<std::string>{"row", "unfused", "astitch", "again", "best", "by", "since"}));
  EXPECT_EQ(lines(v100)[0][4], "astitch, again");
  const ReproducedTable& summary = found.tables[2];
  EXPECT_EQ(numbers(summary, "astitch")[0], numbers(v100, "astitch")[2]);
  EXPECT_THAT(summary.notes[0],
              HasSubstr("v100-sxm2, 2 workloads. Fastest or within 1 % of it: again 2, astitch 2."));
}

/// FusionStitching (arXiv 1811.05213), section 6.4; differences of metrics; kernels by what they compute.
TEST_F(Paper, PredictsTheWholesSpeedUpFromThatOfItsFusablePart) {
  write_file(
      folder_ + "/p/e.json",
      R"({"schema":"stitchwork.experiment/1","name":"e","backend":"model","workloads":["softmax_block"],)"
      R"("variants":[{"name":"X","planner":"xla"},{"name":"A","planner":"astitch"}]})");
  constexpr const char* kWhole = R"("relative_to":{"metric":"dynamic_kernel_us+dynamic_library_us"})";
  const auto column = [&](const std::string& name, const std::string& variant, const std::string& more) {
    return fmt::format(R"({{"column":"{}","variant":"{}","metric":"dynamic_kernel_us",{}}})", name, variant,
                       more);
  };
  write_file(
      folder_ + "/p/paper.json",
      fmt::format(
          R"({{"schema":"stitchwork.paper/1","title":"t","device":"v100","rows":"workloads","artifacts":[{{)"
          R"("id":"a","place":"P","title":"t","experiment":"e.json","columns":[{},{},{},{},{},{}]}}]}})",
          column("r", "X", kWhole), column("s", "A", R"("speedup_over":"X")"),
          column("first", "A",
                 fmt::format(R"({},"predicted_e2e":{{"over":"X","law":"first order"}})", kWhole)),
          column("amdahl", "A", fmt::format(R"({},"predicted_e2e":{{"over":"X","law":"amdahl"}})", kWhole)),
          R"({"column":"left","variant":"A","metric":"dynamic_kernel_us-elementwise_us-reduction_us-product_us"})",
          R"({"column":"kernels","variant":"A","metric":"elementwise_kernels+reduction_kernels+product_kernels-memory_kernels"})"));
  const Reproduction found = reproduce("p", options_);
  const auto ours = [&](const std::string& name) { return numbers(found.tables.at(0), name).at(0); };
  const double r = ours("r"), s = ours("s");
  EXPECT_GT(r, 0);
  EXPECT_LT(r, 1);
  EXPECT_GT(s, 1);
  EXPECT_DOUBLE_EQ(ours("first"), 1 + r * (1 - 1 / s));
  EXPECT_DOUBLE_EQ(ours("amdahl"), 1 / (r / s + 1 - r));
  EXPECT_NEAR(ours("left"), 0, 1e-9);
  EXPECT_EQ(ours("kernels"), 0);
}

TEST_F(Paper, NumbersOfAStandInAreMadeAtOtherSizesToo) {
  write_file(folder_ + "/p/s.json",
             R"({"schema":"stitchwork.experiment/1","name":"s","backend":"model","workloads":["fig5"],)"
             R"("variants":[{"name":"A","planner":"astitch","set":{"mapping":"paper"}}]})");
  write_file(folder_ + "/p/paper.json",
             R"({"schema":"stitchwork.paper/1","title":"t","device":"v100-sxm2","sizes":"s.json",)"
             R"("rows":[{"row":"f","workload":"fig7","unsaid":"its shapes","sizes":["fig5"]}],)"
             R"("artifacts":[{"id":"a","place":"Table 1","title":"t","experiment":"e.json",)"
             R"("columns":[{"column":"ops","variant":"A","metric":"graph_ops","paper":{"f":8}},)"
             R"({"column":"kernels","variant":"A","metric":"memory_kernels","paper":{"f":1}}]}]})");
  const Reproduction found = reproduce("p", options_);
  const std::vector<ReproducedValue>& values = found.tables.at(0).values;
  ASSERT_EQ(values.at(0).sizes.size(), 1u);
  EXPECT_EQ(values[0].sizes[0].workload, "fig5");
  EXPECT_LT(values[0].sizes[0].ours, 8);
  EXPECT_GT(*values[0].ours, 8);
  EXPECT_THAT(values[0].why, HasSubstr("a stand-in, as the paper does not say its shapes"));
  EXPECT_TRUE(values[0].explained);
  EXPECT_TRUE(values[1].sizes.empty()) << "nothing is to explain";
}

TEST_F(Paper, TakesTheTrialsItAsksForAndNoOthers) {
  const double us = ours();
  {  // other settings under the names of the paper's trial, recorded later
    Store store = Store::open(options_.db);
    const Model model = load_model("fig7");
    TrialSpec other;
    other.variant = "A";
    other.backend = "model";
    for (const bool other_seed : {false, true}) {
      other.seed = other_seed;
      if (other_seed) other.options.knobs["mapping"] = "paper";
      TrialResult result = run_trial(model, other);
      result.run.total_us = 1e6;
      store.record("e", model, other, result);
    }
  }
  options_.run = false;
  EXPECT_EQ(ours(), us);
}

TEST_F(Paper, SomeWorkloadsAloneAreRun) {
  write_file(
      folder_ + "/p/e.json",
      R"({"schema":"stitchwork.experiment/1","name":"e","backend":"model","workloads":["fig7","fig5"],)"
      R"("variants":[{"name":"A","planner":"astitch"}]})");
  write_file(folder_ + "/p/paper.json",
             R"({"schema":"stitchwork.paper/1","title":"t","device":"v100","rows":"workloads","artifacts":[)"
             R"({"id":"a","place":"P","title":"t","experiment":"e.json",)"
             R"("columns":[{"column":"us","variant":"A","metric":"total_us"}]}]})");
  options_.workloads = {"fig5"};
  const Reproduction found = reproduce("p", options_);
  ASSERT_EQ(found.tables.at(0).values.size(), 1u);
  EXPECT_EQ(found.tables[0].values[0].row, "fig5");
}

TEST_F(Paper, NumbersAreOfOneVersionOfResultsAndItIsNamed) {
  const double us = ours();
  execute(
      Store::open(options_.db).handle(),
      "UPDATE trial SET params_json = json_set(params_json, '$.results', '0123456789ab'), trial_key = 'old'");
  execute(
      Store::open(options_.db).handle(),
      "UPDATE sample SET value = 7 WHERE metric_id = (SELECT id FROM metric_def WHERE name = 'total_us')");
  options_.run = false;
  EXPECT_EQ(ours(), 7);
  EXPECT_THAT(heading(reproduce("p", options_)), HasSubstr("Results of version 0123456789ab, not of this"));
  options_.run = true;
  EXPECT_EQ(ours(), us) << "made again; the median of both would be neither";
  options_.run = false;
  EXPECT_EQ(ours(), us);
  EXPECT_THAT(heading(reproduce("p", options_)), Not(HasSubstr("Results of version")));
}

}  // namespace TEST_FILE
}  // namespace stitchwork
