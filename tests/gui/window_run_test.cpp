// Runs and what is shown of them; palette, exports, settings.
#include <QDialog>
#include <QFileInfo>
#include <QLineEdit>
#include <QSpinBox>

#include "core/base/file.h"
#include "gui/view/command_palette.h"
#include "occupancy_model/occupancy.h"
#include "tests/gui/gui_test.h"

namespace stitchwork::gui {
namespace TEST_FILE {

TEST_F(WindowTest, RunShowsCountersAndTheCheck) {
  open("softmax_tiny");
  window->show_dock("run_dock");
  click("run");
  settle();
  ASSERT_NE(window->session().result(), nullptr) << window->run_panel().verdict().toStdString();
  EXPECT_TRUE(window->run_panel().verdict().contains("agree with the reference"))
      << window->run_panel().verdict().toStdString();
  EXPECT_EQ(window->run_panel().counters().model().rowCount(), 1);
  EXPECT_EQ(window->kernels().model().index(0, 4).data().toString(), "simulated");
}

TEST_F(WindowTest, OverlayColoursTheGraphByACounter) {
  open("softmax_tiny");
  click("run");
  settle();
  choose("overlay", "dram_read_transactions");
  EXPECT_EQ(window->tabs().currentIndex(), 1);
  const QImage by_counter = window->graph().grab().toImage();
  choose("overlay", "schemes");
  EXPECT_NE(window->graph().grab().toImage(), by_counter);
}

TEST_F(WindowTest, OccupancyFollowsTheKernelAndSaysWhatLimits) {
  open("fig7");
  window->selection().select({0});
  EXPECT_EQ(window->occupancy().table().model().rowCount(), 4);
  EXPECT_TRUE(window->occupancy().steps().contains("Assume"));
  EXPECT_TRUE(window->occupancy().steps().contains("limited by"));
}

TEST_F(WindowTest, OccupancyTellsTheStepsThePlanTook) {
  open("bert_layer");
  const PlannedPtr planned = window->session().planned();
  const auto norm = std::ranges::find(planned->steps, "k3", &StepRow::id);
  ASSERT_NE(norm, planned->steps.end());
  window->selection().select({norm->step});
  const KernelLaunch& launch = planned->plan->kernels.at(3).launch;
  // The mapping asks for fewer blocks than 32 registers would admit.
  ASSERT_LT(
      launch.blocks_per_sm,
      occupancy(device("v100-sxm2"), launch.block, kAssumedRegisters, launch.shared_bytes).blocks_per_sm);
  const QString steps = window->occupancy().steps();
  EXPECT_TRUE(
      steps.contains(QString("__launch_bounds__(%1, %2)").arg(launch.block).arg(launch.blocks_per_sm)))
      << steps.toStdString();
  EXPECT_TRUE(steps.contains(QString("leave %1 registers").arg(launch.register_bound)))
      << steps.toStdString();
  // Other numbers: as it would be for any kernel.
  auto* threads = window->occupancy().findChildren<QSpinBox*>().at(0);
  threads->setValue(threads->value() / 2);
  EXPECT_FALSE(window->occupancy().steps().contains("__launch_bounds__"));
}

TEST_F(WindowTest, TimelineSelectsTheStepUnderTheMouse) {
  open("bert_layer");
  window->show_dock("timeline");
  QTest::qWait(20);
  const QRectF bar = window->timeline().bar(2);
  ASSERT_GT(bar.width(), 1);
  QTest::mouseClick(&window->timeline(), Qt::LeftButton, {}, bar.center().toPoint());
  EXPECT_EQ(window->selection().current().step, 2);
  window->timeline().setFocus();
  QTest::keyClick(&window->timeline(), Qt::Key_Right);
  EXPECT_EQ(window->selection().current().step, 3);
}

TEST_F(WindowTest, CommandPaletteRunsWhatIsTyped) {
  open("fig7");
  QTest::keyClick(window.get(), Qt::Key_P, Qt::ControlModifier | Qt::ShiftModifier);
  auto* palette = child<QDialog>("palette");
  auto* edit = palette->findChild<QLineEdit*>();
  QTest::keyClicks(edit, "source");
  QTest::keyClick(edit, Qt::Key_Return);
  EXPECT_EQ(window->tabs().currentWidget(), &window->source());
}

TEST_F(WindowTest, ExportsAreWhatOtherProgramsRead) {
  open("bert_layer");
  for (const char* file : {"g.svg", "g.pdf", "g.png", "g.dot", "g.html", "k.csv", "p.json"})
    window->export_to(path(file));
  ASSERT_TRUE(wait_until([&] { return QFileInfo::exists(path("p.json")); }));
  EXPECT_TRUE(QString::fromStdString(read_file(path("g.svg").toStdString())).contains("</svg>"));
  EXPECT_EQ(read_file(path("g.pdf").toStdString()).substr(0, 5), "%PDF-");
  EXPECT_FALSE(QImage(path("g.png")).isNull());
  EXPECT_NE(read_file(path("g.html").toStdString()).find("<script id=\"data\""), std::string::npos);
  EXPECT_EQ(read_file(path("g.dot").toStdString()).substr(0, 7), "digraph");
  const QString csv = QString::fromStdString(read_file(path("k.csv").toStdString()));
  EXPECT_EQ(csv.count('\n'), window->kernels().model().rowCount() + 1);
}

TEST_F(WindowTest, UnknownEndingOfAnExportIsRefusedByName) {
  open("fig7");
  window->export_to(path("g.docx"));
  settle();
  ASSERT_EQ(window->problems().model().rowCount(), 1);
  EXPECT_TRUE(window->problems().model().index(0, 2).data().toString().contains(".svg"));
}

TEST_F(WindowTest, SettingsSurviveTheWindow) {
  open("fig7");
  window->close();
  window.reset();
  MainWindow later(folder.filePath("settings.ini"));
  bool listed = false;
  for (const auto* button : later.welcome().findChildren<QAbstractButton*>())
    listed = listed || button->text() == "fig7";
  EXPECT_TRUE(listed);
}

TEST(GuiTheme, TextContrastsWithWhatItStandsOn) {
  for (const Theme* t : {&light_theme(), &dark_theme()}) {
    EXPECT_GE(contrast(t->text, t->paper), 7);
    EXPECT_GE(contrast(t->muted, t->paper), 4.5);
    EXPECT_GE(contrast(t->text, t->container), 7);
    EXPECT_GE(contrast(t->better, t->paper), 4.5);
    EXPECT_GE(contrast(t->worse, t->paper), 4.5);
  }
  for (const Scheme s : {Scheme::kIndependent, Scheme::kLocal, Scheme::kRegional, Scheme::kResident,
                         Scheme::kGlobal, Scheme::kRecomputed})
    EXPECT_GE(contrast(ink_on(colour(s)), colour(s)), 4.5) << name(s);
}

}  // namespace TEST_FILE
}  // namespace stitchwork::gui
