#include <QClipboard>
#include <QDialog>
#include <QDockWidget>
#include <QFileInfo>
#include <QLabel>
#include <QLineEdit>
#include <QMenu>
#include <QMimeData>
#include <QSpinBox>
#include <QTabWidget>
#include <QTimer>
#include <QTreeView>

#include "core/base/file.h"
#include "experiments/performance_library.h"
#include "gui/model/text.h"
#include "gui/view/command_palette.h"
#include "gui/view/export.h"
#include "occupancy_model/occupancy.h"
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
