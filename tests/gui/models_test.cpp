#include <QFileInfo>
#include <nlohmann/json.hpp>
#include <sstream>

#include "analysis/explain/diff.h"
#include "cli/cli.h"
#include "core/base/error.h"
#include "core/base/file.h"
#include "gui/model/diff_table.h"
#include "gui/model/search.h"
#include "gui/model/source.h"
#include "gui/model/tables.h"
#include "gui/view/command_palette.h"
#include "tests/gui/gui_test.h"

namespace stitchwork::gui {
namespace TEST_FILE {

using Tester = QAbstractItemModelTester;

PlannedPtr planned(const std::string& name, const PlanSettings& settings = {}) {
  return plan_model(std::make_shared<Model>(load_model(name)), settings);
}

TEST(GuiTables, EveryModelPassesTheModelTester) {
  const PlannedPtr a = planned("bert_layer", {"xla", "v100-sxm2", {}, {}}), b = planned("bert_layer");
  RecordModel model;
  Tester tester(&model, Tester::FailureReportingMode::Fatal);
  fill_kernels(model, *b, nullptr);
  EXPECT_EQ(model.rowCount(), static_cast<int>(b->plan->steps.size()));
  fill_decisions(model, *b);
  EXPECT_EQ(model.rowCount(), static_cast<int>(b->plan->decisions.size()));
  EXPECT_GT(model.rowCount(), 10);
  fill_diff(model, {a, b, diff(b->graph(), *a->plan, *b->plan)});
  EXPECT_GT(model.rowCount(), 5);
  fill_totals(model, {a, b, diff(b->graph(), *a->plan, *b->plan)});
  fill_occupancy(model, *b->device, 1024, 32, 49152);
  EXPECT_EQ(model.rowCount(), 4);
  fill_edits(model, {{EditKind::kScheme, {"a"}, "global", 0}});
  fill_problems(model, {{"opening", "x.hlo:3:1", "broken", "mend it", 3}});
  fill_advice(model, advise(b->graph(), *b->device, "xla", {}, 3));
  EXPECT_EQ(model.rowCount(), 3);
  model.clear();
  EXPECT_EQ(model.rowCount(), 0);
}

TEST(GuiTables, SharesOfAllStepsSumToOne) {
  const PlannedPtr p = planned("bert_layer");
  RecordModel model;
  fill_kernels(model, *p, nullptr);
  double sum = 0;
  for (int r = 0; r < model.rowCount(); ++r) sum += model.index(r, kShareColumn).data(kShareRole).toDouble();
  EXPECT_NEAR(sum, 1, 1e-9);
}

TEST(GuiTables, CsvHasALineARowAndQuotesCommas) {
  RecordModel model;
  model.reset({{"a", {}}, {"b,c", {}}}, 1, [](int, int c, int role) {
    return role == Qt::DisplayRole ? QVariant(c == 0 ? "say \"x\"" : "1,024") : QVariant();
  });
  EXPECT_EQ(to_csv(model), "a,\"b,c\"\n\"say \"\"x\"\"\",\"1,024\"\n");
}

TEST(GuiOutline, PassesTheModelTesterAndReachesEveryNode) {
  OutlineModel model;
  Tester tester(&model, Tester::FailureReportingMode::Fatal);
  const PlannedPtr p = planned("fig7");
  model.reset(p);
  int seen = 0;
  const std::function<void(const QModelIndex&)> walk = [&](const QModelIndex& at) {
    if (at.isValid()) ++seen;
    for (int r = 0; r < model.rowCount(at); ++r) walk(model.index(r, 0, at));
  };
  walk({});
  EXPECT_EQ(seen, static_cast<int>(p->folds->nodes.size()));
  model.reset(nullptr);
  EXPECT_EQ(model.rowCount(), 0);
}

TEST(GuiSelection, BackAndForwardRetraceTheWay) {
  SelectionModel selection;
  selection.select({1});
  selection.select({2});
  selection.select({3, 0, 7});
  selection.back();
  selection.back();
  EXPECT_EQ(selection.current(), (Selection{1}));
  selection.forward();
  EXPECT_EQ(selection.current(), (Selection{2}));
  selection.select({9});
  EXPECT_FALSE(selection.can_forward());
  selection.back();
  EXPECT_EQ(selection.current(), (Selection{2}));
}

TEST(GuiSearch, FiltersNarrowTheHits) {
  const PlannedPtr p = planned("bert_layer");
  const auto count = [&](const char* text) { return find(*p, parse_query(text)).size(); };
  const std::size_t all_reduces = count("op:reduce");
  EXPECT_GT(all_reduces, 0U);
  EXPECT_LT(count("op:reduce kernel:k0"), all_reduces);
  EXPECT_EQ(count("kernel:k0"), 1U);
  EXPECT_EQ(count("op:reduce dtype:s64"), 0U);
  EXPECT_GT(count("scheme:regional"), 0U);
  EXPECT_EQ(count("scheme:R"), count("scheme:regional"));
  EXPECT_GT(count("/^add\\.\\d+$/"), 0U);
  EXPECT_EQ(count(""), 0U);
}

TEST(GuiSearch, MistakesAreSaid) {
  EXPECT_FALSE(parse_query("/(/").error.isEmpty());
  EXPECT_TRUE(parse_query("color:red").error.contains("kernel:"));
}

TEST(GuiSource, MentionsNameTheLongestOp) {
  const PlannedPtr p = planned("softmax");
  const KernelSource source = kernel_source(*p, 0);
  ASSERT_FALSE(source.mentions.empty());
  const NodeId reduce = p->plan->kernels[0].groups[0].dominant;
  const std::vector<int> at = source.positions(reduce);
  ASSERT_FALSE(at.empty());
  EXPECT_EQ(source.op_at(at.front()), reduce);
  EXPECT_TRUE(source.cuda.mid(at.front())
                  .startsWith(QString::fromStdString(p->entry().node(reduce).name).replace('.', '_')));
}

TEST(GuiJobs, OnlyTheLatestResultOfALaneArrives) {
  Jobs jobs;
  std::vector<int> arrived;
  std::atomic<bool> go = false;
  jobs.start(
      Jobs::kPlan, "first",
      [&](const JobContext&) {
        while (!go) QThread::msleep(1);
        return 1;
      },
      [&](int v) { arrived.push_back(v); });
  jobs.start(
      Jobs::kPlan, "second", [&](const JobContext&) { return 2; }, [&](int v) { arrived.push_back(v); });
  go = true;
  ASSERT_TRUE(wait_until([&] { return !jobs.any_busy(); }));
  QTest::qWait(50);
  EXPECT_EQ(arrived, std::vector<int>{2});
}

TEST(GuiJobs, CancelledWorkStopsAtItsNextProgress) {
  Jobs jobs;
  std::atomic<int> steps = 0;
  bool arrived = false;
  jobs.start(
      Jobs::kRun, "long",
      [&](const JobContext& job) {
        while (true) job.progress(0, "x"), ++steps, QThread::msleep(1);
        return 0;
      },
      [&](int) { arrived = true; });
  ASSERT_TRUE(wait_until([&] { return steps > 3; }));
  jobs.cancel(Jobs::kRun);
  EXPECT_FALSE(jobs.busy(Jobs::kRun));
  QTest::qWait(30);
  const int stopped = steps;
  QTest::qWait(30);
  EXPECT_EQ(steps, stopped);
  EXPECT_FALSE(arrived);
}

TEST(GuiJobs, ErrorsBecomeProblemsWithWhereWhatAndWhatToDo) {
  Jobs jobs;
  std::optional<Problem> problem;
  QObject::connect(&jobs, &Jobs::failed, &jobs, [&](int, const Problem& p) { problem = p; });
  jobs.start(
      Jobs::kPlan, "opening",
      [](const JobContext&) -> int { throw Error("m.hlo", 3, 7, "no such op", "mend it"); },
      [](int) { FAIL(); });
  ASSERT_TRUE(wait_until([&] { return problem.has_value(); }));
  EXPECT_EQ(problem->text(), "m.hlo:3:7: no such op; mend it");
  EXPECT_EQ(problem->line, 3);
}

TEST(GuiPalette, LettersInOrderMatch) {
  EXPECT_EQ(fuzzy_distance("", "anything"), 0);
  EXPECT_EQ(fuzzy_distance("xyz", "zoom to fit"), -1);
  EXPECT_LT(fuzzy_distance("zoom", "Zoom to fit"), fuzzy_distance("zoom", "a z o a o m"));
}

/// Plans of the window and of `stitchwork plan` for the same overrides.
TEST(GuiSession, OverridesGiveTheCommandLinesPlanByteForByte) {
  QTemporaryDir folder;
  Session session;
  session.open("fig7");
  ASSERT_TRUE(wait_until([&] { return session.planned() != nullptr; }));
  session.set_knob("mapping", "paper");
  session.add_edit({EditKind::kScheme, {"power.1"}, "global", 0});
  session.add_edit({EditKind::kResidency, {"power.1"}, {}, 1});
  ASSERT_TRUE(wait_until([&] { return !session.jobs().any_busy(); }));
  ASSERT_EQ(session.planned()->plan->edits.size(), 2U);
  const std::string overrides = folder.filePath("o.json").toStdString(),
                    ours = folder.filePath("gui.json").toStdString(),
                    theirs = folder.filePath("cli.json").toStdString();
  session.save_overrides(QString::fromStdString(overrides));
  session.save_plan(QString::fromStdString(ours));
  ASSERT_TRUE(wait_until([&] { return QFileInfo::exists(QString::fromStdString(ours)); }));
  const std::vector<const char*> argv = {
      "stitchwork",      "plan", "fig7",        "--set", "mapping=paper", "--override",
      overrides.c_str(), "-o",   theirs.c_str()};
  std::ostringstream out, err;
  ASSERT_EQ(run_cli(static_cast<int>(argv.size()), argv.data(), out, err), 0) << err.str();
  EXPECT_EQ(read_file(ours), read_file(theirs));
}

TEST(GuiSession, UndoAndRedoPlanAgain) {
  Session session;
  session.open("bert_layer");
  ASSERT_TRUE(wait_until([&] { return session.planned() != nullptr; }));
  const std::string before = plan_json(*session.planned());
  session.set_planner("xla");
  ASSERT_TRUE(wait_until([&] { return !session.jobs().any_busy(); }));
  const std::string xla = plan_json(*session.planned());
  EXPECT_NE(xla, before);
  EXPECT_TRUE(session.previous_us().has_value());
  session.undo().undo();
  ASSERT_TRUE(wait_until([&] { return !session.jobs().any_busy(); }));
  EXPECT_EQ(plan_json(*session.planned()), before);
  session.undo().redo();
  ASSERT_TRUE(wait_until([&] { return !session.jobs().any_busy(); }));
  EXPECT_EQ(plan_json(*session.planned()), xla);
}

TEST(GuiSession, RefusedOverrideIsSaidAndTakenBack) {
  Session session;
  std::optional<Problem> problem;
  QObject::connect(&session, &Session::failed, &session, [&](const Problem& p) { problem = p; });
  session.open("fig7");
  ASSERT_TRUE(wait_until([&] { return session.planned() != nullptr; }));
  session.add_edit({EditKind::kScheme, {"no_such_op"}, "global", 0});
  ASSERT_TRUE(wait_until([&] { return problem.has_value(); }));
  EXPECT_TRUE(problem->text().contains("no_such_op"));
  EXPECT_TRUE(session.settings().edits.empty());
  EXPECT_TRUE(session.planned()->plan->edits.empty());
}

}  // namespace TEST_FILE
}  // namespace stitchwork::gui
