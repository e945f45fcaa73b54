// What goes wrong is said where the user looks, with the text to copy; the window goes on.
#include <gmock/gmock.h>
#include <sqlite3.h>

#include <QClipboard>
#include <QLabel>

#include "core/base/error.h"
#include "core/base/file.h"
#include "experiments/store.h"
#include "tests/gui/gui_test.h"

namespace stitchwork::gui {
namespace TEST_FILE {

using ::testing::HasSubstr;

struct Problems : WindowTest {
  std::string clipboard() { return QApplication::clipboard()->text().toStdString(); }
  /// A store with one trial.
  std::string store() {
    const std::string db = path("runs.db").toStdString();
    const Model model = load_model("softmax_tiny");
    TrialSpec spec;
    spec.backend = "model";
    Store::open(db).record("adhoc", model, spec, run_trial(model, spec));
    return db;
  }
  void expect_store_opens() {
    window->open(path("runs.db"));
    settle();
    EXPECT_EQ(window->experiments().trials().model().rowCount(), 1)
        << window->experiments().message().toStdString();
    EXPECT_FALSE(child<QAbstractButton>("copy_store_problem")->isVisible());
  }
};

/// A statement of SQLite's own on a connection of its own.
void execute(const std::string& db, const char* sql) {
  sqlite3* handle = nullptr;
  ASSERT_EQ(sqlite3_open(db.c_str(), &handle), SQLITE_OK);
  ASSERT_EQ(sqlite3_exec(handle, sql, nullptr, nullptr, nullptr), SQLITE_OK) << sqlite3_errmsg(handle);
  sqlite3_close(handle);
}

TEST_F(Problems, LockedStoreIsSaidToBeLockedAndOpensOnceItIsFree) {
  const std::string db = store();
  execute(db, "PRAGMA journal_mode = DELETE");
  sqlite3* other = nullptr;
  ASSERT_EQ(sqlite3_open(db.c_str(), &other), SQLITE_OK);
  ASSERT_EQ(sqlite3_exec(other, "BEGIN EXCLUSIVE", nullptr, nullptr, nullptr), SQLITE_OK);
  window->open(path("runs.db"));
  EXPECT_TRUE(wait_until([&] { return !window->session().jobs().any_busy(); }, 30000));
  EXPECT_THAT(window->experiments().message().toStdString(), HasSubstr("another process keeps it locked"));
  click("copy_store_problem");
  EXPECT_EQ(clipboard(), window->experiments().message().toStdString());
  EXPECT_THAT(clipboard(), HasSubstr("runs.db"));
  sqlite3_exec(other, "ROLLBACK", nullptr, nullptr, nullptr);
  sqlite3_close(other);
  expect_store_opens();
}

TEST_F(Problems, StoreOfANewerProgramIsRefusedByItsVersion) {
  const std::string db = store();
  execute(db, "PRAGMA journal_mode = DELETE; PRAGMA user_version = 999");
  window->open(path("runs.db"));
  settle();
  EXPECT_THAT(window->experiments().message().toStdString(), HasSubstr("has store version 999, newer than"));
  click("copy_store_problem");
  EXPECT_THAT(clipboard(), HasSubstr("update stitchwork"));
  open("fig7");  // the window goes on
  EXPECT_NE(window->session().planned(), nullptr);
}

/// Plans that verify admits have no races: the findings are put into a run, as the simulator words them.
TEST_F(Problems, WhatTheSimulatorFindsIsShownWithTheKernelAndTheTextToCopy) {
  open("softmax_tiny");
  const PlannedPtr planned = window->session().planned();
  const std::string kernel = planned->plan->kernels[0].id;
  TrialSpec spec;
  spec.planner = planned->settings.planner;
  TrialResult run = run_trial(*planned->model, spec);
  run.run.findings = {
      {sim::FindingKind::kSharedRace, kernel, 41, "", {1, 0, 0}, {2, 0, 0}, "reads what thread 3 writes"},
      {sim::FindingKind::kGridDeadlock, kernel, 52, "", {0, 0, 0}, {0, 0, 0}, "7 of 9 blocks wait"}};
  window->show_dock("run_dock");
  window->session().take_result(std::make_shared<const TrialResult>(std::move(run)));
  const std::string said = window->run_panel().verdict().toStdString();
  for (const char* part : {"reads what thread 3 writes", "7 of 9 blocks wait", "41"})
    EXPECT_THAT(said, HasSubstr(part));
  EXPECT_THAT(said, HasSubstr(kernel));
  EXPECT_TRUE(child<QLabel>("verdict")->isVisible());
  click("copy_verdict");
  EXPECT_EQ(clipboard(), said);
  click("run");  // the window goes on, with the plan as it is
  settle();
  ASSERT_NE(window->session().result(), nullptr);
  EXPECT_TRUE(window->session().result()->run.findings.empty());
  EXPECT_THAT(window->run_panel().verdict().toStdString(), HasSubstr("agree with the reference"));
}

TEST_F(Problems, CancelledPlanningLeavesThePlanAndItsSettingsAndEndsTheWork) {
  open("gpt2_decoder_10k");
  const PlannedPtr before = window->session().planned();
  ASSERT_NE(before, nullptr);
  choose("planner", "auto");
  ASSERT_TRUE(window->session().jobs().busy(Jobs::kPlan));
  ASSERT_TRUE(wait_until([&] { return child<QAbstractButton>("cancel_work")->isVisible(); }));
  click("cancel_work");
  EXPECT_FALSE(window->session().jobs().busy(Jobs::kPlan));
  EXPECT_EQ(window->session().planned(), before);
  EXPECT_EQ(child<QComboBox>("planner")->currentText(), "astitch");
  EXPECT_FALSE(child<QAbstractButton>("cancel_work")->isVisible());
  EXPECT_TRUE(wait_until([&] { return window->session().jobs().threads() == 0; }, 20000));
  EXPECT_EQ(window->problems().model().rowCount(), 0);  // nothing went wrong
}

TEST_F(Problems, NewPlanningEndsTheOneUnderWayAndDoesNotQueueBehindIt) {
  open("gpt2_decoder_10k");
  for (const char* planner : {"auto", "tvm", "auto", "xla", "auto", "unfused"}) choose("planner", planner);
  settle();
  EXPECT_EQ(window->session().planned()->plan->planner, "unfused");
  EXPECT_TRUE(wait_until([&] { return window->session().jobs().threads() == 0; }, 20000));
}

TEST_F(Problems, OpeningIsCancelledToo) {
  window->open("gpt2_decoder_10k");
  ASSERT_TRUE(wait_until([&] { return child<QAbstractButton>("cancel_work")->isVisible(); }));
  click("cancel_work");
  EXPECT_TRUE(wait_until([&] { return window->session().jobs().threads() == 0; }, 20000));
  EXPECT_EQ(window->session().planned(), nullptr);
  open("fig7");
  EXPECT_NE(window->session().planned(), nullptr);
}

}  // namespace TEST_FILE
}  // namespace stitchwork::gui
