// The window: opening models and plans, planning, selecting, comparing.
#include <QClipboard>
#include <QLabel>
#include <QLineEdit>
#include <QMimeData>
#include <QTreeView>

#include "core/base/file.h"
#include "tests/gui/gui_test.h"

namespace stitchwork::gui {
namespace TEST_FILE {

TEST_F(WindowTest, SampleModelOpensWithOneClick) {
  click("sample_fig7");
  settle();
  ASSERT_NE(window->session().planned(), nullptr);
  EXPECT_EQ(window->session().planned()->graph().source, "fig7");
  EXPECT_TRUE(window->tabs().isVisible());
  EXPECT_EQ(window->kernels().model().rowCount(),
            static_cast<int>(window->session().planned()->steps.size()));
}

TEST_F(WindowTest, KernelsAreSortedByTimeLongestFirst) {
  open("bert_layer");
  const auto& proxy = window->kernels().proxy();
  ASSERT_GT(proxy.rowCount(), 2);
  for (int r = 1; r < proxy.rowCount(); ++r)
    EXPECT_GE(proxy.index(r - 1, 2).data(kSortRole).toDouble(), proxy.index(r, 2).data(kSortRole).toDouble());
}

TEST_F(WindowTest, DroppedFileIsOpenedAndRemembered) {
  QMimeData mime;
  const QString file = QString(STITCHWORK_SOURCE_DIR) + "/datasets/fig7.hlo";
  mime.setUrls({QUrl::fromLocalFile(file)});
  QDragEnterEvent enter(QPoint(10, 10), Qt::CopyAction, &mime, Qt::LeftButton, Qt::NoModifier);
  QApplication::sendEvent(window.get(), &enter);
  EXPECT_TRUE(enter.isAccepted());
  QDropEvent event(QPointF(10, 10), Qt::CopyAction, &mime, Qt::LeftButton, Qt::NoModifier);
  QApplication::sendEvent(window.get(), &event);
  settle();
  ASSERT_NE(window->session().planned(), nullptr);
  MainWindow later(folder.filePath("settings.ini"));
  bool listed = false;
  for (const auto* button : later.welcome().findChildren<QAbstractButton*>())
    listed = listed || button->text() == file;
  EXPECT_TRUE(listed);
}

TEST_F(WindowTest, BrokenModelIsShownOnTheWelcomePageWithTextToCopy) {
  write_file(path("broken.hlo").toStdString(),
             "HloModule m\n\nENTRY e {\n  x = f32[4] parameter(0)\n  ROOT y = f32[4] frobnicate(x)\n}\n");
  open(path("broken.hlo"));
  EXPECT_EQ(window->session().planned(), nullptr);
  auto* text = child<QLabel>("problem_text");
  EXPECT_TRUE(text->isVisible());
  EXPECT_TRUE(text->text().contains("broken.hlo:5")) << text->text().toStdString();
  EXPECT_TRUE(text->text().contains("frobnicate"));
  click("copy_problem");
  EXPECT_EQ(QApplication::clipboard()->text(), text->text());
  click("sample_fig7");  // the window goes on
  settle();
  EXPECT_NE(window->session().planned(), nullptr);
}

TEST_F(WindowTest, ProblemWhileAModelIsOpenLeavesItAndIsListed) {
  open("fig7");
  const PlannedPtr before = window->session().planned();
  open("no_such_model");
  EXPECT_EQ(window->session().planned(), before);
  ASSERT_EQ(window->problems().model().rowCount(), 1);
  EXPECT_TRUE(window->problems().model().index(0, 2).data().toString().contains("no_such_model"));
}

TEST_F(WindowTest, PlanOfAnotherVersionOfItsModelIsRefused) {
  open("fig7");
  std::string text = plan_json(*window->session().planned());
  const std::size_t sha = text.find("\"sha256\": \"") + 11;
  text[sha] = text[sha] == '0' ? '1' : '0';
  write_file(path("old.json").toStdString(), text);
  open(path("old.json"));
  ASSERT_EQ(window->problems().model().rowCount(), 1);
  EXPECT_TRUE(window->problems().model().index(0, 2).data().toString().contains("another version"));
}

TEST_F(WindowTest, SavedPlanOpensAgain) {
  open("fig7");
  window->export_to(path("plan.json"));
  settle();
  const std::string plan = plan_json(*window->session().planned());
  open("softmax");
  open(path("plan.json"));
  ASSERT_FALSE(window->session().planned()->plan_file.isEmpty());
  EXPECT_EQ(plan_json(*window->session().planned()), plan);
}

TEST_F(WindowTest, ChoosingAPlannerPlansAgain) {
  open("bert_layer");
  const int before = window->session().planned()->plan->counts.memory_kernels;
  choose("planner", "xla");
  settle();
  EXPECT_EQ(window->session().planned()->plan->planner, "xla");
  EXPECT_GT(window->session().planned()->plan->counts.memory_kernels, before);
  QTest::keyClick(window.get(), Qt::Key_Z, Qt::ControlModifier);
  settle();
  EXPECT_EQ(window->session().planned()->plan->planner, "astitch");
}

TEST_F(WindowTest, ChoosingADevicePlansForIt) {
  open("fig7");
  choose("device", "t4");
  settle();
  EXPECT_EQ(window->session().planned()->plan->device, "t4");
}

TEST_F(WindowTest, SelectingAKernelShowsItEverywhere) {
  open("bert_layer");
  window->kernels().view().setCurrentIndex(window->kernels().proxy().index(0, 0));
  const Selection s = window->selection().current();
  ASSERT_GE(s.step, 0);
  const StepRow& row = window->session().planned()->steps[static_cast<std::size_t>(s.step)];
  EXPECT_TRUE(window->panel().text().contains(QString::fromStdString(row.id)));
  EXPECT_EQ(window->graph().selected(), window->session().planned()->folds->find_step(s.step));
  EXPECT_TRUE(window->outline().currentIndex().data().toString().startsWith(QString::fromStdString(row.id)));
}

TEST_F(WindowTest, SelectedOpSaysWhyAndWhatWasRejected) {
  open("bert_layer");
  const PlannedPtr p = window->session().planned();
  const NodeId op = p->plan->kernels[0].groups[0].dominant;
  window->selection().select({-1, -1, op});
  settle();
  EXPECT_TRUE(window->panel().text().contains("Why"));
  EXPECT_TRUE(window->panel().text().contains("Rejected alternatives"))
      << window->panel().text().toStdString();
}

TEST_F(WindowTest, AlternativesAreTriedAndAppliedFromThePanel) {
  open("bert_layer");
  const PlannedPtr p = window->session().planned();
  window->selection().select({-1, -1, p->plan->kernels[0].outputs[0]});
  settle();
  click("try_alternatives");
  settle();
  EXPECT_TRUE(window->panel().text().contains("Alternatives, planned"));
}

TEST_F(WindowTest, DoubleClickInTheListFocusesTheKernelInTheGraph) {
  open("bert_layer");
  auto& view = window->kernels().view();
  const QModelIndex at = window->kernels().proxy().index(1, 0);
  QTest::mouseClick(view.viewport(), Qt::LeftButton, {}, view.visualRect(at).center());
  QTest::mouseDClick(view.viewport(), Qt::LeftButton, {}, view.visualRect(at).center());
  EXPECT_EQ(window->tabs().currentIndex(), 1);
  EXPECT_EQ(window->graph().selected(),
            window->session().planned()->folds->find_step(at.data(kKeyRole).toInt()));
}

TEST_F(WindowTest, GraphIsFoldedAndUnfoldedWithMouseAndKeys) {
  open("bert_layer");
  window->tabs().setCurrentIndex(1);
  GraphView& graph = window->graph();
  const int kernel = window->session().planned()->folds->find_step(0);
  graph.select_node(kernel, true);
  const DrawnBox box = *graph.drawn().box_of(kernel);
  const QPointF corner = graph.to_screen(box.rect.x, box.rect.y);
  QTest::mouseDClick(&graph, Qt::LeftButton, {}, (corner + QPointF(20, 10)).toPoint());
  EXPECT_TRUE(graph.folding()->expanded(kernel));
  const DrawnBox grown = *graph.drawn().box_of(kernel);
  EXPECT_NEAR(graph.to_screen(grown.rect.x, grown.rect.y).x(), corner.x(),
              1);  // it stays where it was clicked
  EXPECT_NEAR(graph.to_screen(grown.rect.x, grown.rect.y).y(), corner.y(), 1);
  window->selection().select({0});
  graph.setFocus();
  QTest::keyClick(&graph, Qt::Key_Left);
  EXPECT_FALSE(graph.folding()->expanded(kernel));
  QTest::keyClick(&graph, Qt::Key_Right);
  EXPECT_TRUE(graph.folding()->expanded(kernel));
}

TEST_F(WindowTest, AKernelSaysHowBusyEachUnitOfTheDeviceIs) {
  open("softmax_tiny");
  window->selection().select({0});
  const QString text = child<QTextBrowser>("selection")->toPlainText();
  EXPECT_TRUE(text.contains("Speed of light")) << text.toStdString();
  EXPECT_TRUE(text.contains("Limited by")) << text.toStdString();
  for (const char* unit : {"DRAM", "L2", "instructions", "loads and stores"})
    EXPECT_TRUE(text.contains(unit)) << unit;
  EXPECT_FALSE(text.contains("tensor cores"));
}

TEST_F(WindowTest, SpaceFitsTheGraphAndEscapeClearsTheSelection) {
  open("bert_layer");
  window->tabs().setCurrentIndex(1);
  GraphView& graph = window->graph();
  window->selection().select({1});
  QTest::keyClick(&graph, Qt::Key_Plus);
  QTest::keyClick(&graph, Qt::Key_Space);
  EXPECT_LE(graph.drawn().width * graph.scale(), graph.width());
  EXPECT_LE(graph.drawn().height * graph.scale(), graph.height());
  QTest::keyClick(&graph, Qt::Key_Escape);
  EXPECT_TRUE(window->selection().current().empty());
  EXPECT_EQ(graph.selected(), -1);
}

TEST_F(WindowTest, SearchMarksHitsAndReturnGoesFromOneToTheNext) {
  open("bert_layer");
  auto* search = child<QLineEdit>("search");
  QTest::keyClicks(search, "op:reduce");
  QTest::keyClick(search, Qt::Key_Return);
  const Selection first = window->selection().current();
  ASSERT_NE(first.op, kNoNode);
  EXPECT_EQ(window->session().planned()->entry().node(first.op).op, Op::kReduce);
  QTest::keyClick(search, Qt::Key_Return);
  EXPECT_NE(window->selection().current(), first);
  QTest::keyClick(search, Qt::Key_Return, Qt::ShiftModifier);
  EXPECT_EQ(window->selection().current(), first);
}

TEST_F(WindowTest, BackAndForwardFollowTheSelection) {
  open("bert_layer");
  window->selection().select({0});
  window->selection().select({1});
  QTest::keyClick(window.get(), Qt::Key_Left, Qt::AltModifier);
  EXPECT_EQ(window->selection().current().step, 0);
  QTest::keyClick(window.get(), Qt::Key_Right, Qt::AltModifier);
  EXPECT_EQ(window->selection().current().step, 1);
}

TEST_F(WindowTest, DiffListsChangesWithReasonsAndSelectsInBothGraphs) {
  open("bert_layer");
  window->tabs().setCurrentWidget(&window->diff_page());
  choose("diff_planner", "xla");
  click("diff_go");
  settle();
  ASSERT_TRUE(window->diff_page().comparison().has_value());
  EXPECT_EQ(window->diff_page().comparison()->a->plan->planner, "xla");
  auto& changes = window->diff_page().changes();
  ASSERT_GT(changes.model().rowCount(), 3);
  bool reasons = false;
  for (int r = 0; r < changes.model().rowCount(); ++r)
    reasons = reasons || changes.model().index(r, 4).data().toString().contains("xla.");
  EXPECT_TRUE(reasons);
  changes.view().setCurrentIndex(changes.proxy().index(0, 0));
  EXPECT_GE(window->diff_page().graph_a().selected(), 0);
  EXPECT_GE(window->diff_page().graph_b().selected(), 0);
}

}  // namespace TEST_FILE
}  // namespace stitchwork::gui
