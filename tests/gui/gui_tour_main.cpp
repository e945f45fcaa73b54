// gui_tour FOLDER: a session of the workbench driven through its widgets, with a numbered screenshot of each
// step.
#include <QAbstractButton>
#include <QApplication>
#include <QComboBox>
#include <QDialog>
#include <QDir>
#include <QItemSelectionModel>
#include <QLineEdit>
#include <QProcess>
#include <QScreen>
#include <QTabBar>
#include <QTabWidget>
#include <QTemporaryDir>
#include <QTest>
#include <QTextBlock>
#include <QTreeView>
#include <cstdio>

#include "gui/main_window.h"

namespace stitchwork::gui {
namespace {

class Tour {
 public:
  explicit Tour(const QString& folder) : folder_(folder), window_(scratch_.filePath("settings.ini")) {
    QDir().mkpath(folder_);
    window_.resize(1600, 1000);
    window_.show();
    if (!QTest::qWaitForWindowExposed(&window_)) fail("the window does not appear");
  }

  void drive() {
    shot("welcome");
    press("sample_bert_base");
    settle();
    shot("kernels");
    choose("planner", "astitch");
    settle();
    page(1);
    QTest::keyClick(&window_.graph(), Qt::Key_Space);
    shot("graph-whole");
    select_kernel("k12");
    window_.graph().setFocus();
    QTest::keyClick(&window_.graph(), Qt::Key_F);
    shot("graph-kernel");
    QTest::keyClick(&window_.graph(), Qt::Key_Right);
    shot("graph-groups");
    for (const int child : node(selected_step()).children) window_.graph().toggle(child);
    QTest::keyClick(&window_.graph(), Qt::Key_F);
    QTest::keyClick(&window_.graph(), Qt::Key_F);
    shot("graph-ops");
    auto* search = find<QLineEdit>("search");
    QTest::keyClicks(search, "op:reduce kernel:k12");
    QTest::keyClick(search, Qt::Key_Return);
    settle();
    shot("op-why");
    press("try_alternatives");
    settle();
    shot("alternatives");
    search->clear();
    page(2);
    settle();
    shot("source");
    press("compile");
    settle();
    follow_a_store();
    shot("source-ptx");
    page(3);
    choose("diff_planner", "xla");
    press("diff_go");
    settle();
    auto& changes = window_.diff_page().changes();
    changes.view().setCurrentIndex(changes.proxy().index(0, 0));
    settle();
    shot("diff");
    page(1);
    trigger("Next decision");
    trigger("Next decision");
    settle();
    shot("decisions");
    window_.show_dock("occupancy");
    shot("occupancy");
    window_.show_dock("timeline");
    shot("timeline");
    window_.show_dock("advice");
    press("advise");
    settle();
    shot("advice");
    const NodeId op = window_.session().planned()->plan->kernels[12].groups[0].dominant;
    window_.session().add_edit(
        {EditKind::kScheme, {window_.session().planned()->entry().node(op).name}, "global", 0});
    settle();
    window_.show_dock("overrides");
    shot("override");
    trigger("Every command …");
    shot("command-palette");
    QTest::keyClick(find<QDialog>("palette"), Qt::Key_Escape);
    window_.open("bert_layer");
    settle();
    window_.show_dock("run_dock");
    press("run");
    shot("running", 300);
    settle();
    shot("run-counters");
    select_kernel("k1");
    window_.graph().setFocus();
    QTest::keyClick(&window_.graph(), Qt::Key_Right);
    for (const int child : node(selected_step()).children) window_.graph().toggle(child);
    QTest::keyClicks(search, "op:reduce kernel:k1");
    QTest::keyClick(search, Qt::Key_Return);
    settle();
    window_.show_dock("timeline");
    shot("softmax-of-attention");
    search->clear();
    window_.show_dock("run_dock");
    choose("overlay", "dram_read_transactions");
    QTest::keyClick(&window_.graph(), Qt::Key_Space);
    shot("overlay");
    for (const char* ending : {"svg", "pdf", "png", "dot", "html", "json", "csv"})
      window_.export_to(folder_ + "/bert_layer." + ending);
    settle();
    window_.open("softmax_block");
    settle();
    window_.session().set_planner("tvm+fission");
    settle();
    window_.show_dock("rewriting");
    window_.rewriting().table().view().setCurrentIndex(window_.rewriting().table().proxy().index(0, 0));
    settle();
    shot("rewriting");
    window_.open(folder_ + "/bert_layer.dot");
    settle();
    shot("dot");
    open_sample_store();
    shot("experiments");
    window_.experiments().below().setCurrentIndex(1);
    settle();
    shot("experiment-figures");
    page(1);
    trigger("Dark");
    choose("overlay", "schemes");
    window_.show_dock("decisions");
    shot("dark-graph");
    page(0);
    shot("dark-kernels");
    page(2);
    select_kernel("k3");
    settle();
    shot("dark-source");
    trigger("Light");
    window_.open("tests/core/data/torch_encoder_dynamo.onnx.gz");
    settle();
    shot("model-questions");
    QTest::keyClick(find<QDialog>("model_questions"), Qt::Key_Escape);
    settle();
    window_.open("/nonexistent/model.hlo");
    settle();
    shot("problem");
    trigger("Keys and words");
    shot("help");
  }

 private:
  [[noreturn]] static void fail(const char* what) {
    std::fprintf(stderr, "gui_tour: %s\n", what);
    std::exit(1);
  }
  template <typename Widget>
  Widget* find(const char* name) {
    auto* widget = window_.findChild<Widget*>(name);
    if (!widget) fail(name);
    return widget;
  }
  void press(const char* name) { QTest::mouseClick(find<QAbstractButton>(name), Qt::LeftButton); }
  void choose(const char* name, const QString& entry) {
    auto* box = find<QComboBox>(name);
    box->setCurrentIndex(box->findText(entry));
    emit box->textActivated(entry);
    emit box->activated(box->currentIndex());
  }
  /// By its tab: on a screen without a window manager no window is active, and keys of the window do nothing.
  void page(int index) {
    QTabBar* bar = window_.tabs().tabBar();
    QTest::mouseClick(bar, Qt::LeftButton, {}, bar->tabRect(index).center());
  }
  /// A click on the first line of PTX that writes to memory and whose line of CUDA is known.
  void follow_a_store() {
    QPlainTextEdit& ptx = window_.source().ptx();
    const auto& lines = window_.source().source().lines;
    for (QTextBlock block = ptx.document()->begin(); block.isValid(); block = block.next()) {
      const auto line = static_cast<std::size_t>(block.blockNumber());
      if (!block.text().contains("st.global") || line >= lines.size() || lines[line] == 0) continue;
      ptx.setTextCursor(QTextCursor(block));
      return QTest::keyClick(&ptx, Qt::Key_Return);
    }
    fail("no line of PTX to follow");
  }
  /// The runs of docs/sample, two of them compared.
  void open_sample_store() {
    const QString store = scratch_.filePath("astitch.db");
    QProcess unpack;
    unpack.setStandardOutputFile(store);
    unpack.start("xz", {"--decompress", "--stdout", "docs/sample/astitch.db.xz"});
    if (!unpack.waitForFinished() || unpack.exitCode() != 0) fail("docs/sample/astitch.db.xz");
    window_.open(store);
    settle();
    QTest::qWait(500);
    auto& trials = window_.experiments().trials();
    if (trials.model().rowCount() < 2) fail("the sample store has no trials");
    trials.view().selectRow(0);
    trials.view().selectionModel()->select(trials.proxy().index(1, 0),
                                           QItemSelectionModel::Select | QItemSelectionModel::Rows);
    settle();
  }
  void trigger(const QString& text) {
    for (QAction* action : window_.actions())
      if (action->text().remove('&') == text) return action->trigger();
    fail("no such command");
  }
  void settle() {
    if (!QTest::qWaitFor([&] { return !window_.session().jobs().any_busy(); }, 300000))
      fail("a job does not end");
  }
  int selected_step() {
    return window_.session().planned()->folds->find_step(window_.selection().current().step);
  }
  const FoldNode& node(int i) { return window_.session().planned()->folds->node(i); }
  void select_kernel(const std::string& id) {
    for (const StepRow& row : window_.session().planned()->steps)
      if (row.id == id) window_.selection().select({row.step});
  }
  void shot(const QString& name, int wait_ms = 150) {
    QTest::qWait(wait_ms);
    const QString file = QString("%1/%2-%3.png").arg(folder_).arg(++number_, 2, 10, QChar('0')).arg(name);
    // The screen, where there is one: dialogs and popups with the window.
    QPixmap picture =
        QApplication::platformName() == "xcb" ? window_.screen()->grabWindow(0) : window_.grab();
    if (!picture.save(file)) fail("a screenshot cannot be written");
    std::printf("%s\n", qPrintable(file));
  }

  QTemporaryDir scratch_;
  QString folder_;
  MainWindow window_;
  int number_ = 0;
};

}  // namespace
}  // namespace stitchwork::gui

int main(int argc, char** argv) {
  QApplication application(argc, argv);
  const QStringList arguments = QApplication::arguments();
  if (arguments.size() != 2) {
    std::fprintf(stderr, "usage: gui_tour FOLDER\n");
    return 2;
  }
  stitchwork::gui::Tour(arguments[1]).drive();
}
