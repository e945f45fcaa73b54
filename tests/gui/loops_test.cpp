// Loops and branches, and what they run, in every pane.
#include <gmock/gmock.h>

#include <QLineEdit>
#include <QTabWidget>
#include <QTreeView>

#include "core/base/file.h"
#include "gui/model/tables.h"
#include "gui/view/export.h"
#include "tests/gui/gui_test.h"

namespace stitchwork::gui {
namespace TEST_FILE {

using ::testing::HasSubstr;
using ::testing::Not;

/// A loop of 12 trips whose body has a branch.
constexpr const char* kLoop = R"(HloModule loop
yes { y = f32[64,64] parameter(0)  ROOT deep = f32[64,64] exponential(y) }
no { z = f32[64,64] parameter(0)  ROOT m = f32[64,64] negate(z) }
cond { c = (s32[], f32[64,64]) parameter(0)  i = s32[] get-tuple-element(c), index=0
  n = s32[] constant(12)  ROOT lt = pred[] compare(i, n), direction=LT }
body { b = (s32[], f32[64,64]) parameter(0)  i = s32[] get-tuple-element(b), index=0
  v = f32[64,64] get-tuple-element(b), index=1  one = s32[] constant(1)  j = s32[] add(i, one)
  odd = s32[] and(i, one)  o = pred[] convert(odd)
  w = f32[64,64] conditional(o, v, v), true_computation=yes, false_computation=no
  h = f32[64,64] tanh(w)  ROOT t = (s32[], f32[64,64]) tuple(j, h) }
ENTRY main { x = f32[64,64] parameter(0)  zero = s32[] constant(0)  t = (s32[], f32[64,64]) tuple(zero, x)
  loop = (s32[], f32[64,64]) while(t), condition=cond, body=body
  r = f32[64,64] get-tuple-element(loop), index=1  ROOT q = f32[64,64] sqrt(r) })";

class Loops : public WindowTest {
 protected:
  void SetUp() override {
    WindowTest::SetUp();
    write_file(path("loop.hlo").toStdString(), kLoop);
    open(path("loop.hlo"));
    ASSERT_NE(planned(), nullptr) << window->problems().model().index(0, 2).data().toString().toStdString();
  }
  PlannedPtr planned() { return window->session().planned(); }
  /// The node that names an op of a loop or branch.
  int deep(const std::string& name) {
    const auto& nodes = planned()->folds->nodes;
    for (std::size_t i = 0; i < nodes.size(); ++i)
      if (nodes[i].kind == FoldKind::kOp && nodes[i].body >= 0 && nodes[i].label == name)
        return static_cast<int>(i);
    return -1;
  }
  int control() {
    for (const StepRow& row : planned()->steps)
      if (row.body < 0 && row.kind == StepKind::kControl) return row.step;
    return -1;
  }
};

TEST_F(Loops, ComputationsAreFoldedWithinTheLoopThatRunsThem) {
  EXPECT_THAT(to_text(*planned()->folds), HasSubstr("    body body × 12 body\n"));
  const std::string text = to_text(*planned()->folds);
  EXPECT_THAT(text, Not(HasSubstr("condition"))) << "the host counts";
  EXPECT_THAT(text, HasSubstr("body branch 0 yes\n"));
  EXPECT_THAT(text, HasSubstr("op deep\n"));
  EXPECT_LT(text.find("body body × 12"), text.find("body branch 0 yes"));
}

TEST_F(Loops, LoopUnfoldsInTheGraphDownToTheOpsOfItsBody) {
  GraphView& graph = window->graph();
  window->tabs().setCurrentIndex(1);
  const int op = deep("deep");
  ASSERT_GE(op, 0);
  EXPECT_EQ(graph.drawn().box_of(op), nullptr);  // folded at first
  const int loop = planned()->folds->find_step(control());
  ASSERT_NE(graph.drawn().box_of(loop), nullptr);
  const DrawnBox box = *graph.drawn().box_of(loop);
  QTest::mouseDClick(&graph, Qt::LeftButton, {}, graph.to_screen(box.rect.x + 20, box.rect.y + 10).toPoint());
  EXPECT_TRUE(graph.folding()->expanded(loop));
  graph.setFocus();
  QTest::keyClick(&graph, Qt::Key_E, Qt::ShiftModifier);
  EXPECT_NE(graph.drawn().box_of(op), nullptr);
  const DrawnBox inner = *graph.drawn().box_of(op), outer = *graph.drawn().box_of(loop);
  EXPECT_GE(inner.rect.x, outer.rect.x);
  EXPECT_LE(inner.rect.bottom(), outer.rect.bottom());
}

TEST_F(Loops, KernelListSaysWhereAKernelRunsAndHowOften) {
  bool listed = false;
  const auto& model = window->kernels().model();
  for (int r = 0; r < model.rowCount(); ++r)
    listed = listed || model.index(r, 1).data().toString().contains("in body × 12");
  EXPECT_TRUE(listed);
}

TEST_F(Loops, KernelOfABodyIsExplainedWithItsSourceAndIsNoOtherKernel) {
  const int op = deep("deep");
  const FoldNode& node = planned()->folds->node(op);
  const StepRow& row = planned()->row(node.step);
  ASSERT_GE(row.kernel, 0);
  window->tabs().setCurrentWidget(&window->source());
  for (int r = 0; r < window->kernels().proxy().rowCount(); ++r)
    if (window->kernels().proxy().index(r, 0).data(kKeyRole).toInt() == row.step)
      window->kernels().view().setCurrentIndex(window->kernels().proxy().index(r, 0));
  EXPECT_EQ(window->selection().current().step, row.step);
  settle();
  EXPECT_THAT(window->source().cuda().toPlainText().toStdString(), HasSubstr("expf"));
  window->selection().select({node.step, node.group, node.op});
  settle();
  EXPECT_THAT(window->panel().text().toStdString(), HasSubstr("deep"));
  EXPECT_THAT(window->panel().text().toStdString(), HasSubstr("exponential"));
  EXPECT_EQ(window->graph().selected(), op);
  EXPECT_FALSE(child<QAbstractButton>("try_alternatives")->isVisible());  // overrides are of the entry's ops
  EXPECT_FALSE(child<QAbstractButton>("add_override")->isEnabled());
}

TEST_F(Loops, SearchFindsOpsOfBodies) {
  auto* search = child<QLineEdit>("search");
  QTest::keyClicks(search, "op:tanh");
  QTest::keyClick(search, Qt::Key_Return);
  EXPECT_EQ(planned()->computation(window->selection().current().step).name, "body");
}

TEST_F(Loops, SelectionOfALoopSaysItsTrips) {
  window->selection().select({control()});
  EXPECT_THAT(window->panel().text().toStdString(), HasSubstr("A loop of 12 trips"));
}

TEST_F(Loops, OpOfABodyDoesNotStaySelectedAsAnOpOfTheEntry) {
  const FoldNode& node = planned()->folds->node(deep("deep"));
  window->selection().select({node.step, node.group, node.op});
  choose("planner", "unfused");
  settle();
  EXPECT_TRUE(window->selection().current().empty());
}

TEST_F(Loops, ExportsAndOtherPanesTakeAnUnfoldedLoop) {
  window->graph().expand_all();
  const std::string dot = graph_file(window->graph().picture(), "g.dot");
  EXPECT_THAT(dot, HasSubstr("label=\"body × 12 body\""));
  EXPECT_THAT(dot, HasSubstr("deep"));
  window->selection().select({control()});
  for (const StepRow& row : planned()->steps) window->selection().select({row.step});
  settle();
  QAbstractItemModelTester outline(window->outline().model(),
                                   QAbstractItemModelTester::FailureReportingMode::Fatal);
  click("run");
  settle();
  ASSERT_NE(window->session().result(), nullptr) << window->run_panel().verdict().toStdString();
  EXPECT_THAT(window->run_panel().verdict().toStdString(), HasSubstr("agree with the reference"));
}

}  // namespace TEST_FILE
}  // namespace stitchwork::gui
