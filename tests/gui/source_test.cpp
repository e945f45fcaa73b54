// CUDA and PTX of a kernel: what follows what, and what is said where a kernel cannot be compiled.
#include <gmock/gmock.h>

#include <QLabel>
#include <QTextBlock>
#include <algorithm>

#include "codegen/compile/lines.h"
#include "core/base/file.h"
#include "tests/gui/gui_test.h"

namespace stitchwork::gui {
namespace TEST_FILE {

using ::testing::ContainsRegex;
using ::testing::HasSubstr;

struct Source : WindowTest {
  /// The first kernel of the model, with its PTX.
  void compile(const QString& model) {
    open(model);
    window->tabs().setCurrentWidget(&window->source());
    window->selection().select({0});
    settle();
    click("compile");
    settle();
  }
  static void click_line(QPlainTextEdit& edit, int line) {
    QTextCursor cursor(edit.document()->findBlockByNumber(line));
    cursor.movePosition(QTextCursor::EndOfBlock);
    edit.setTextCursor(cursor);
    edit.ensureCursorVisible();
    cursor.movePosition(QTextCursor::StartOfBlock);
    edit.setTextCursor(cursor);
    edit.ensureCursorVisible();
    QTest::mouseClick(edit.viewport(), Qt::LeftButton, {}, edit.cursorRect(cursor).center());
  }
  static bool marked(const QPlainTextEdit& edit, int line) {
    for (const auto& mark : edit.extraSelections())
      if (mark.cursor.blockNumber() == line && mark.format.property(QTextFormat::FullWidthSelection).toBool())
        return true;
    return false;
  }
};

TEST_F(Source, SourceFollowsTheSelectionBothWays) {
  open("softmax");
  window->tabs().setCurrentWidget(&window->source());
  const PlannedPtr p = window->session().planned();
  window->selection().select({0});
  settle();
  const QString cuda = window->source().cuda().toPlainText();
  ASSERT_TRUE(cuda.contains("__global__")) << cuda.left(400).toStdString();
  const NodeId reduce = p->plan->kernels[0].groups[0].dominant;
  const int at = window->source().source().positions(reduce).front();
  QTextCursor cursor(window->source().cuda().document());
  cursor.setPosition(at + 1);
  window->source().cuda().setTextCursor(cursor);
  window->source().cuda().ensureCursorVisible();
  QTest::mouseClick(window->source().cuda().viewport(), Qt::LeftButton, {},
                    window->source().cuda().cursorRect(cursor).center());
  EXPECT_EQ(window->selection().current().op, reduce);
  EXPECT_FALSE(window->source().cuda().extraSelections().isEmpty());
}

TEST_F(Source, KernelIsCompiledToPtx) {
  open("bert_layer");
  for (const StepRow& row : window->session().planned()->steps)
    if (row.id == "k3") window->selection().select({row.step});
  settle();
  click("compile");
  settle();
  EXPECT_TRUE(window->source().ptx().toPlainText().contains(".visible .entry"))
      << window->source().ptx().toPlainText().left(300).toStdString();
}

TEST_F(Source, ClickOnALineOfPtxShowsTheLineOfCudaAndItsOp) {
  compile("softmax");
  const KernelSource& source = window->source().source();
  ASSERT_FALSE(source.lines.empty());
  const QStringList text = source.ptx.split('\n');
  int clicked = 0;
  for (int i = 0; i < text.size() && clicked < 5; ++i) {
    if (!text[i].contains("st.global") && !text[i].contains("ld.global")) continue;
    const int line = source.lines[static_cast<std::size_t>(i)];
    const NodeId op = source.op_of_line(line);
    if (op == kNoNode) continue;
    window->selection().select({0});
    click_line(window->source().ptx(), i);
    EXPECT_EQ(window->selection().current().op, op) << text[i].toStdString();
    EXPECT_EQ(window->source().cuda().textCursor().blockNumber() + 1, line);
    EXPECT_TRUE(marked(window->source().cuda(), line - 1)) << line;
    EXPECT_TRUE(marked(window->source().ptx(), i)) << i;
    ++clicked;
  }
  EXPECT_GE(clicked, 2);
}

TEST_F(Source, ClickOnALineOfCudaMarksItsPtx) {
  compile("softmax");
  const KernelSource& source = window->source().source();
  const auto found =
      std::find_if(source.mentions.begin(), source.mentions.end(), [&](const SourceMention& m) {
        return !source.ptx_lines(m.line).empty() && source.op_of_line(m.line) == m.op;
      });
  ASSERT_NE(found, source.mentions.end());
  click_line(window->source().cuda(), found->line - 1);
  for (const int line : source.ptx_lines(found->line))
    EXPECT_TRUE(marked(window->source().ptx(), line)) << line;
  EXPECT_EQ(window->source().ptx().textCursor().blockNumber(), source.ptx_lines(found->line).front());
  // The next op that is selected elsewhere takes the lines with it.
  const auto other =
      std::find_if(source.mentions.begin(), source.mentions.end(),
                   [&](const SourceMention& m) { return m.op != window->selection().current().op; });
  ASSERT_NE(other, source.mentions.end());
  window->selection().select({0, -1, other->op});
  EXPECT_FALSE(marked(window->source().cuda(), found->line - 1));
}

TEST_F(Source, LineOfPtxIsFollowedWithTheKeyboard) {
  compile("softmax");
  const KernelSource& source = window->source().source();
  const auto line = std::find_if(source.lines.begin(), source.lines.end(),
                                 [&](int l) { return source.op_of_line(l) != kNoNode; });
  ASSERT_NE(line, source.lines.end());
  QPlainTextEdit& ptx = window->source().ptx();
  ptx.setTextCursor(
      QTextCursor(ptx.document()->findBlockByNumber(static_cast<int>(line - source.lines.begin()))));
  QTest::keyClick(&ptx, Qt::Key_Return);
  EXPECT_EQ(window->selection().current().op, source.op_of_line(*line));
}

TEST_F(Source, ExecutedPtxSaysHowItsLinesAreLinked) {
  open("softmax_tiny");
  window->tabs().setCurrentWidget(&window->source());
  window->selection().select({0});
  settle();
  EXPECT_FALSE(window->source().ptx().isVisible());
  click("run");
  settle();
  EXPECT_THAT(window->source().ptx().toPlainText().toStdString(), HasSubstr(".visible .entry"));
  EXPECT_TRUE(window->source().source().lines.empty());
  EXPECT_THAT(child<QLabel>("ptx_links")->text().toStdString(), HasSubstr("compile it"));
  // Lines that ran are shaded and say what they did; declarations did nothing.
  SourceView& source = window->source();
  const auto shades = source.ptx().extraSelections();
  EXPECT_GT(shades.size(), 10);
  int darkest = 0;
  for (const auto& shade : shades) {
    const int alpha = shade.format.background().color().alpha();
    if (shade.format.property(QTextFormat::FullWidthSelection).toBool()) darkest = std::max(darkest, alpha);
    EXPECT_THAT(
        source.line_text(shade.cursor.blockNumber() + 1).toStdString(),
        ContainsRegex("^[0-9,]+ warp instructions, [0-9,]+ of threads, [0-9.]+ % of all issue slots"));
  }
  EXPECT_GT(darkest, 50);
  EXPECT_EQ(source.line_text(1), QString());
  click("compile");
  settle();
  EXPECT_FALSE(window->source().source().lines.empty());
  for (int line = 1; line < 40; ++line) EXPECT_EQ(source.line_text(line), QString()) << "not the run's text";
}

/// A reduction by what does not commute is planned and never generated: the code generator refuses it,
/// whatever compiler there is.
constexpr const char* kOnlyPlanned = R"(HloModule m
minus {
  a = f32[] parameter(0)
  b = f32[] parameter(1)
  ROOT d = f32[] subtract(a, b)
}
ENTRY e {
  x = f32[8,16] parameter(0)
  zero = f32[] constant(0)
  ROOT r = f32[8] reduce(x, zero), dimensions={1}, to_apply=minus
}
)";

TEST_F(Source, FailedCompileIsSaidWhereItWasAskedFor) {
  write_file(path("planned_only.hlo").toStdString(), kOnlyPlanned);
  open(path("planned_only.hlo"));
  ASSERT_NE(window->session().planned(), nullptr);
  const std::string why =
      "planned_only.hlo:10: r (reduce) cannot be executed: 'minus' is not one commutative operation";
  window->selection().select({0});
  settle();
  EXPECT_THAT(window->source().cuda().toPlainText().toStdString(), HasSubstr(why));
  EXPECT_EQ(window->problems().model().rowCount(), 1);
  click("run");
  settle();
  EXPECT_EQ(window->session().result(), nullptr);
  EXPECT_THAT(window->run_panel().verdict().toStdString(), HasSubstr(why));
  EXPECT_EQ(window->problems().model().rowCount(), 2);
  open("softmax_tiny");  // the window goes on
  click("run");
  settle();
  EXPECT_NE(window->session().result(), nullptr);
}

}  // namespace TEST_FILE
}  // namespace stitchwork::gui
