#include "experiments/report.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <regex>
#include <sstream>

#include "core/base/error.h"
#include "experiments/html.h"
#include "experiments/report_data.h"
#include "figures/data/renderer.h"
#include "tests/experiments/sample_trial.h"

namespace stitchwork {
namespace TEST_FILE {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;
using testing::sample_model;
using testing::sample_result;

class Report : public ::testing::Test {
 protected:
  void record(const std::string& planner, int kernels, const Model& model,
              const std::string& experiment = "demo") {
    TrialSpec spec;
    spec.planner = planner;
    store_.record(experiment, model, spec, sample_result(model, spec, kernels));
  }
  Store store_ = Store::open(testing::test_folder() + "/runs.db");
};

std::size_t occurrences(const std::string& text, const std::string& word) {
  std::size_t n = 0;
  for (std::size_t at = text.find(word); at != std::string::npos; at = text.find(word, at + 1)) ++n;
  return n;
}

/// Every tag that opens is closed, in order; "" or what is wrong.
std::string tag_error(const std::string& page) {
  static const std::regex tag("<(/?)([a-z0-9]+)((?:[^>\"]|\"[^\"]*\")*?)(/?)>");
  std::vector<std::string> open;
  for (auto it = std::sregex_iterator(page.begin(), page.end(), tag); it != std::sregex_iterator(); ++it) {
    const std::string name = (*it)[2];
    if (name == "meta" || (*it)[4] == "/") continue;
    if ((*it)[1] != "/") {
      open.push_back(name);
    } else {
      if (open.empty() || open.back() != name)
        return "</" + name + "> closes " + (open.empty() ? "nothing" : open.back());
      open.pop_back();
    }
  }
  return open.empty() ? "" : open.back() + " stays open";
}

TEST_F(Report, OfManyTrialsListsTheSlowestKernelsAndSaysSo) {
  record("astitch", 6, sample_model(12));
  EXPECT_THAT(report_html(store_), Not(HasSubstr("slowest of")));
  const std::string page = report_html(store_, {"", 2});
  EXPECT_THAT(page, HasSubstr("The 2 slowest of 6 kernels, "));
  EXPECT_EQ(occurrences(page, "<summary>all counters</summary>"), 2u);
  EXPECT_THAT(page, HasSubstr("6 kernels, "));  // and their whole time
  EXPECT_EQ(occurrences(report_html(store_, {"", 0}), "<summary>all counters</summary>"), 6u);
  EXPECT_EQ(usual_kernels(1), 2000u);
  EXPECT_EQ(usual_kernels(100000), 3u);
}

TEST_F(Report, HasPlannersSideBySideInTheOrderOfTheTable) {
  const Model model = sample_model(12);
  record("astitch", 2, model);
  record("xla", 6, model);
  record("unfused", 12, model);
  const std::string page = report_html(store_);
  EXPECT_EQ(occurrences(page, "<h2>"), 1u);
  EXPECT_THAT(page, HasSubstr("<h2>chain.hlo on v100-sxm2</h2>"));
  EXPECT_LT(page.find("<b>unfused</b>"), page.find("<b>xla</b>"));
  EXPECT_LT(page.find("<b>xla</b>"), page.find("<b>astitch</b>"));
  EXPECT_THAT(page, HasSubstr("0.50x"));  // 6 kernels to 12
  EXPECT_THAT(page, HasSubstr("12 memory kernels (modelled)"));
}

TEST_F(Report, IsWellFormedAndNeedsNoNetwork) {
  record("astitch", 7, sample_model(400));
  const std::string page = report_html(store_);
  EXPECT_EQ(tag_error(page), "");
  for (const char* outside : {"http:", "https:", "src=", "<script", "<link", "@import", "url("})
    EXPECT_EQ(page.find(outside), std::string::npos) << outside;
  EXPECT_THAT(page, HasSubstr("prefers-color-scheme: dark"));
}

TEST_F(Report, EscapesEverythingThatComesFromOutside) {
  Model model = sample_model(4, "<script>\"&'.hlo");
  TrialSpec spec;
  TrialResult result = sample_result(model, spec, 1);
  result.executable.plan.kernels[0].name = "a<b";
  store_.record("x & <y>", model, spec, result);
  result.check = CheckResult{.ok = false, .max_abs_error = 0, .max_rel_error = 0, .message = "<b>bad</b>"};
  store_.record("x & <y>", model, spec, result);
  const std::string page = report_html(store_);
  EXPECT_EQ(tag_error(page), "");
  EXPECT_THAT(page,
              AllOf(HasSubstr("&lt;script&gt;&quot;&amp;&#39;.hlo"), HasSubstr("&lt;b&gt;bad&lt;/b&gt;"),
                    HasSubstr("k0 a&lt;b"), HasSubstr("x &amp; &lt;y&gt;")));
  EXPECT_THAT(page, AllOf(Not(HasSubstr("<script")), Not(HasSubstr("<y>"))));
}

TEST_F(Report, EverySchemeHasItsBadge) {
  record("astitch", 1, sample_model(5));
  const std::string page = report_html(store_);
  for (const char* badge :
       {"independent", "I", "local", "L", "regional", "R", "resident", "S", "global", "G", "recomputed", "C"})
    EXPECT_TRUE(std::regex_search(
        page, std::regex(fmt::format("class=\"badge [^>]*>{}</span>|badge {}", badge, badge))))
        << badge;
  EXPECT_THAT(page, HasSubstr(">S</span>tanh.3</span>"));
}

TEST_F(Report, EveryNumberSaysHowItWasObtained) {
  record("astitch", 2, sample_model(5));
  const std::string page = report_html(store_);
  for (const char* heading :
       {"memory kernels<small>modelled<", "kernel time (us)<small>simulated<",
        "total time (us)<small>simulated + modelled<", "DRAM read<small>simulated<",
        "inst_fp_32<small>simulated<", "registers<small>estimated<", "grid x block<small>modelled<",
        "planning 1.5 ms (measured)", "max rel error 2.0e-06, simulated"})
    EXPECT_NE(page.find(heading), std::string::npos) << heading;
}

TEST_F(Report, KernelsAreSortedByTime) {
  record("astitch", 9, sample_model(9));  // times cycle with period 7: k6 is slowest, then k5
  const std::string page = report_html(store_);
  EXPECT_LT(page.find("k6 tanh_6"), page.find("k5 tanh_5"));
  EXPECT_LT(page.find("k5 tanh_5"), page.find("k0 tanh_0"));
}

TEST_F(Report, ShowsTheLatestAttemptOfATrialAndTheReasonOfAFailure) {
  const Model model = sample_model(4);
  TrialSpec spec;
  TrialResult result = sample_result(model, spec, 2);
  store_.record("demo", model, spec, result);
  result.check =
      CheckResult{.ok = false, .max_abs_error = 1, .max_rel_error = 1, .message = "output 0 differs"};
  store_.record("demo", model, spec, result);
  const std::string page = report_html(store_);
  EXPECT_THAT(page,
              AllOf(HasSubstr("attempt 2"), HasSubstr("check: output 0 differs"), HasSubstr("1, 1 failed")));
  EXPECT_EQ(occurrences(page, "<details class=\"planner\">"), 1u);
}

TEST_F(Report, ARunThatWasStoppedHasNoTimes) {
  const Model model = sample_model(4);
  TrialSpec spec;
  TrialResult result = sample_result(model, spec, 1);
  result.check.reset();
  result.run.kernels[0] = {};
  result.run.total_us = 0;
  result.run.findings.push_back(
      {.kind = sim::FindingKind::kOutOfBounds, .kernel = "tanh_0", .message = "reads past x"});
  store_.record("demo", model, spec, result);
  EXPECT_THAT(report_html(store_), AllOf(HasSubstr("reads past x"), Not(HasSubstr("0.0 us in kernels"))));
}

TEST_F(Report, TrialsOfOnePlannerAreToldApart) {
  const Model model = sample_model(4);
  TrialSpec spec;
  for (std::uint64_t seed : {0, 1}) {
    spec.seed = seed;
    store_.record("demo", model, spec, sample_result(model, spec, 1));
  }
  spec.options.knobs["mapping"] = "paper";
  store_.record("demo", model, spec, sample_result(model, spec, 1));
  EXPECT_THAT(report_html(store_),
              AllOf(HasSubstr("<b>astitch, seed 0</b>"), HasSubstr("<b>astitch, seed 1</b>"),
                    HasSubstr("<b>astitch (mapping=paper)</b>")));
}

TEST_F(Report, ShowsOneExperimentOrSaysWhichThereAre) {
  record("astitch", 1, sample_model(4), "first");
  record("xla", 2, sample_model(4), "second");
  EXPECT_THAT(report_html(store_, {"second"}),
              AllOf(HasSubstr("<b>xla</b>"), Not(HasSubstr("<b>astitch</b>"))));
  try {
    report_html(store_, {"third"});
    FAIL();
  } catch (const Error& e) {
    EXPECT_THAT(e.what(), AllOf(HasSubstr("third"), HasSubstr("first, second")));
  }
}

TEST_F(Report, IsTheSameForTheSameStore) {
  record("astitch", 3, sample_model(30));
  record("xla", 5, sample_model(31));
  EXPECT_EQ(report_html(store_), report_html(store_));
}

TEST_F(Report, AnEmptyStoreSaysHowToFillIt) {
  EXPECT_THAT(report_html(store_), AllOf(HasSubstr("stitchwork run"), Not(HasSubstr("<h2>"))));
  EXPECT_EQ(tag_error(report_html(store_)), "");
}

TEST_F(Report, OnPaperHasTheNumbersOfThePage) {
  const Model model = sample_model(12);
  record("xla", 6, model);
  record("astitch", 2, model);
  const std::string text = report_bytes(store_, {}, "report.md"), page = report_html(store_);
  EXPECT_THAT(text, HasSubstr("## chain.hlo on v100-sxm2"));
  for (const char* word : {"memory kernels", "kernel time (us)", "DRAM read", "Ratios (0.50x) are to xla",
                           "runs.db", "tanh_0", "(s1-time: Time"})
    EXPECT_THAT(text, HasSubstr(word));
  // Every cell of the planners' table is on the page too.
  std::string rows;
  for (std::size_t at = text.find("| astitch |"); at != std::string::npos;
       at = text.find("| astitch |", at + 1))
    rows += text.substr(at, text.find('\n', at) - at);
  std::istringstream cells(rows);
  int numbers = 0;
  for (std::string cell; std::getline(cells, cell, '|');) {
    const std::size_t begin = cell.find_first_of("0123456789");
    if (begin == std::string::npos) continue;
    const std::string number = cell.substr(begin, cell.find_first_of(" ,(", begin) - begin);
    EXPECT_THAT(page, HasSubstr(number)) << cell;
    ++numbers;
  }
  EXPECT_GE(numbers, 8);
}

TEST_F(Report, IsWrittenInTheFormOfTheFilesEnding) {
  record("astitch", 2, sample_model(12));
  EXPECT_EQ(report_bytes(store_, {}, "a/report.html"), report_html(store_));
  EXPECT_THAT([&] { report_bytes(store_, {}, "report.docx"); },
              ::testing::Throws<Error>(::testing::Property(&Error::hint, HasSubstr(".pdf"))));
  if (!can_render()) GTEST_SKIP() << "built without Qt";
  const std::string pdf = report_bytes(store_, {}, "report.pdf");
  EXPECT_EQ(pdf.substr(0, 5), "%PDF-");
  EXPECT_EQ(pdf, report_bytes(store_, {}, "report.pdf"));
}

TEST_F(Report, OnPaperAFailureKeepsItsReason) {
  const Model model = sample_model(4);
  TrialSpec spec;
  store_.record_failure("demo", model, spec, "failed", "no kernel fits", 3);
  const std::string text = report_bytes(store_, {}, "report.md");
  EXPECT_THAT(text, HasSubstr("failed: no kernel fits"));
  EXPECT_THAT(report_bytes(Store::open(testing::test_folder() + "/empty.db"), {}, "report.md"),
              HasSubstr("No finished attempts are stored yet"));
}

TEST(Html, TableLabelsCellsWhoseMethodsDiffer) {
  const std::vector<html::Column> columns = {{"time", ""}};
  EXPECT_THAT(html::table(columns, {{{{"1", "simulated"}}}, {{{"2", "simulated"}}}}, "t"),
              AllOf(HasSubstr("time<small>simulated</small>"), HasSubstr(">1</td>")));
  EXPECT_THAT(html::table(columns, {{{{"1", "simulated"}}}, {{{"2", "measured"}}}}, "t"),
              AllOf(HasSubstr(">1<small>simulated</small>"), HasSubstr(">2<small>measured</small>")));
}

TEST(Html, BarsAreToOneScale) {
  const std::string chart = html::bar_chart("t", {{"a", {{"x", 10}}}, {"b", {{"x", 5}}}});
  std::smatch first, second;
  const std::regex width("class=\"s0\" x=\"0\" y=\"[0-9]+\" width=\"([0-9.]+)\"");
  ASSERT_TRUE(std::regex_search(chart, first, width));
  const std::string rest = first.suffix();
  ASSERT_TRUE(std::regex_search(rest, second, width));
  EXPECT_NEAR(std::stod(first[1]) / std::stod(second[1]), 2, 0.02);
}

}  // namespace TEST_FILE
}  // namespace stitchwork
