// What is changed from the window: planners, knobs, libraries, advice, overrides, rewriting.
#include <QDialog>
#include <QLabel>
#include <QLineEdit>
#include <QMenu>
#include <QTimer>

#include "experiments/performance_library.h"
#include "gui/model/text.h"
#include "tests/gui/gui_test.h"

namespace stitchwork::gui {
namespace TEST_FILE {

TEST_F(WindowTest, BaselineIsComparedWithALaterPlan) {
  open("bert_layer");
  window->kernels().view().setFocus();
  QTest::keyClick(window.get(), Qt::Key_B);
  choose("planner", "xla");
  settle();
  QTest::keyClick(window.get(), Qt::Key_D);
  settle();
  ASSERT_TRUE(window->diff_page().comparison().has_value());
  EXPECT_EQ(window->diff_page().comparison()->a->plan->planner, "astitch");
  EXPECT_EQ(window->diff_page().comparison()->b->plan->planner, "xla");
}

TEST_F(WindowTest, KnobIsSetInItsDialog) {
  open("fig7");
  QTimer::singleShot(50, window.get(), [&] {
    auto* dialog = window->findChild<QDialog*>("knobs");
    ASSERT_NE(dialog, nullptr);
    auto* box = dialog->findChild<QComboBox*>("mapping");
    ASSERT_NE(box, nullptr);
    box->setCurrentText("paper");
    emit box->textActivated("paper");
    dialog->reject();
  });
  for (QAction* action : window->actions())
    if (action->text() == "Knobs …") action->trigger();
  settle();
  EXPECT_EQ(window->session().planned()->plan->options.at("mapping"), "paper");
  EXPECT_EQ(window->session().planned()->plan->counts.memory_kernels, 1);
}

TEST_F(WindowTest, ALibraryIsChosenByItsFileShownByItsHashAndUndone) {
  const std::string file = path("v100.library").toStdString();
  LibraryWriter::open(file).insert(
      {{"divide f32[13,97] row 0/13 t256", "v100-sxm2", "NVRTC 13.0", 2.5, "simulated", "test"}});
  choose("planner", "fusionstitching-2018");
  open("softmax_tiny");
  const std::string modelled = plan_json(*window->session().planned());
  window->session().set_library(q(file));
  settle();
  const PlannedPtr planned = window->session().planned();
  EXPECT_EQ(planned->plan->library, read_library(file).sha256);
  const QString hash = q(planned->plan->library.substr(0, 12));
  EXPECT_TRUE(child<QLabel>("status")->text().contains("by v100.library (sha256 " + hash))
      << child<QLabel>("status")->text().toStdString();
  window->session().run({});
  settle();
  ASSERT_TRUE(window->session().result());
  EXPECT_EQ(window->session().result()->executable.plan.library, planned->plan->library);
  QTimer::singleShot(50, window.get(), [&] {
    auto* dialog = window->findChild<QDialog*>("knobs");
    ASSERT_NE(dialog, nullptr);
    auto* shown = dialog->findChild<QLabel*>("library_file");
    ASSERT_NE(shown, nullptr);
    EXPECT_EQ(shown->text(), "v100.library");
    QTest::mouseClick(dialog->findChild<QAbstractButton*>("no_library"), Qt::LeftButton);
    EXPECT_EQ(shown->text(), "none: times are modelled");
    dialog->reject();
  });
  for (QAction* action : window->actions())
    if (action->text() == "Knobs …") action->trigger();
  settle();
  EXPECT_EQ(plan_json(*window->session().planned()), modelled);
  window->session().undo().undo();
  settle();
  EXPECT_EQ(window->session().planned()->plan->library, planned->plan->library);

  // One of another device is refused, and the plan by the first one stays.
  const std::string other = path("other.library").toStdString();
  LibraryWriter::open(other).insert(
      {{"divide f32[13,97] row 0/13 t256", "h200", "NVRTC 13.0", 2.5, "simulated", "test"}});
  window->session().set_library(q(other));
  settle();
  EXPECT_EQ(window->session().settings().library, file);
  choose("planner", "xla");  // takes none
  settle();
  EXPECT_EQ(window->session().settings().library, "");
  EXPECT_EQ(window->session().planned()->plan->planner, "xla");
}

TEST_F(WindowTest, GoToFindsAnOpByItsName) {
  open("fig7");
  QTest::keyClick(window.get(), Qt::Key_P, Qt::ControlModifier);
  auto* palette = child<QDialog>("palette");
  auto* edit = palette->findChild<QLineEdit*>();
  QTest::keyClicks(edit, "power.1");
  QTest::keyClick(edit, Qt::Key_Return);
  EXPECT_EQ(window->selection().current().op, window->session().planned()->entry().find("power.1"));
}

TEST_F(WindowTest, DecisionsAreSteppedWithJAndK) {
  open("bert_layer");
  window->kernels().view().setFocus();
  QTest::keyClick(window.get(), Qt::Key_J);
  QTest::keyClick(window.get(), Qt::Key_J);
  EXPECT_TRUE(window->decisions().frame().contains("Decision 2 of"))
      << window->decisions().frame().toStdString();
  QTest::keyClick(window.get(), Qt::Key_K);
  EXPECT_TRUE(window->decisions().frame().contains("Decision 1 of"));
}

TEST_F(WindowTest, AdviceIsAppliedWithAClickAndUndone) {
  open("bert_train_tiny");
  const double before = window->session().planned()->plan->predicted_us;
  window->show_dock("advice");
  click("advise");
  settle();
  auto& table = window->advice().table();
  ASSERT_GT(table.model().rowCount(), 0);
  for (int r = 0; r < table.proxy().rowCount() && window->session().settings().edits.empty(); ++r) {
    table.view().setCurrentIndex(table.proxy().index(r, 0));
    if (child<QAbstractButton>("apply_advice")->isEnabled()) click("apply_advice");
  }
  settle();
  ASSERT_EQ(window->session().planned()->plan->edits.size(), 1U);
  window->session().undo().undo();
  settle();
  EXPECT_EQ(window->session().planned()->plan->predicted_us, before);
}

TEST_F(WindowTest, RunIsCancelled) {
  open("softmax");
  click("run");
  ASSERT_TRUE(window->session().jobs().busy(Jobs::kRun));
  click("cancel_run");
  EXPECT_FALSE(window->session().jobs().busy(Jobs::kRun));
  EXPECT_EQ(window->run_panel().verdict(), "Cancelled.");
  EXPECT_EQ(window->session().result(), nullptr);
}

TEST_F(WindowTest, OverrideFromTheMenuPlansAgainAndShowsWhatItChanged) {
  open("fig7");
  const NodeId op = window->session().planned()->entry().find("power.1");
  ASSERT_NE(op, kNoNode);
  window->selection().select({-1, -1, op});
  window->show_dock("overrides");
  QTimer::singleShot(50, window.get(), [&] {
    auto* menu = window->findChild<QMenu*>("override_menu");
    ASSERT_NE(menu, nullptr);
    for (QAction* action : menu->actions())
      if (action->text() == "Scheme global") {
        menu->setActiveAction(action);
        QTest::keyClick(menu, Qt::Key_Return);
        return;
      }
    menu->close();
  });
  click("add_override");
  settle();
  ASSERT_EQ(window->session().planned()->plan->edits.size(), 1U);
  EXPECT_EQ(window->session().planned()->plan->edits[0].to, "global");
  EXPECT_TRUE(child<QLabel>("delta")->text().contains("predicted"));
  window->overrides().table().view().setCurrentIndex(window->overrides().table().proxy().index(0, 0));
  click("remove_override");
  settle();
  EXPECT_TRUE(window->session().planned()->plan->edits.empty());
}

TEST_F(WindowTest, AStepOfTheRewritingIsForbiddenWithOneClickAndUndone) {
  open("softmax_block_tiny");
  EXPECT_EQ(window->rewriting().table().model().rowCount(), 0);
  window->session().set_planner("tvm+fission");
  settle();
  TablePage& table = window->rewriting().table();
  const int steps = table.model().rowCount();
  ASSERT_GT(steps, 0);
  window->show_dock("rewriting");
  window->selection().clear();
  table.view().setCurrentIndex(table.proxy().index(0, 0));
  EXPECT_NE(window->selection().current().op, kNoNode) << "what gives the value now is selected";
  const QString rule = table.proxy().index(0, 1).data().toString(),
                op = table.proxy().index(0, 2).data().toString();
  click("forbid_rewrite");
  settle();
  ASSERT_EQ(window->session().planned()->plan->edits.size(), 1U);
  EXPECT_EQ(window->session().planned()->plan->edits[0].kind, EditKind::kForbidRewrite);
  for (int r = 0; r < table.proxy().rowCount(); ++r)
    EXPECT_FALSE(table.proxy().index(r, 1).data() == rule && table.proxy().index(r, 2).data() == op);
  EXPECT_LT(table.model().rowCount(), steps);
  window->session().undo().undo();
  settle();
  EXPECT_EQ(table.model().rowCount(), steps);
}

}  // namespace TEST_FILE
}  // namespace stitchwork::gui
