// stitchwork-gui [MODEL | PLAN.json | DUMP | STORE.db] [--export FILE]
#include <QApplication>
#include <QCommandLineParser>
#include <QIcon>
#include <cstdio>
#include <exception>

#include "core/base/error.h"
#include "core/base/file.h"
#include "core/base/version.h"
#include "gui/main_window.h"
#include "gui/view/export.h"
#include "runtime/program/dump.h"

namespace {

/// The plan as a file, without a window; the exit code.
int write_picture(const QStringList& plans, const QString& file) try {
  using namespace stitchwork;
  if (plans.size() != 1 || (!plans.first().endsWith(".json") && !is_dump(plans.first().toStdString())))
    throw Error(
        "--export draws a saved plan or a compiler's dump",
        "stitchwork plan MODEL -o plan.json, then stitchwork-gui plan.json --export " + file.toStdString());
  write_file(file.toStdString(), gui::graph_file(gui::unfolded_picture(gui::load_plan(plans.first())), file));
  return 0;
} catch (const std::exception& error) {
  std::fprintf(stderr, "stitchwork-gui: %s\n", error.what());
  return 1;
}

/// Whether a picture is asked for, which needs no screen.
bool exports(int argc, char** argv) {
  for (int i = 1; i < argc; ++i)
    if (std::string_view(argv[i]).starts_with("--export")) return true;
  return false;
}

}  // namespace

int main(int argc, char** argv) {
  if (exports(argc, argv)) {
    qputenv("QT_QPA_PLATFORM", "offscreen");
    // It warns of an unset XDG_RUNTIME_DIR, of which a picture makes no use.
    qInstallMessageHandler([](QtMsgType, const QMessageLogContext&, const QString&) {});
  }
  QApplication application(argc, argv);
  QApplication::setApplicationName("stitchwork-gui");
  QApplication::setApplicationDisplayName("Stitchwork");
  QApplication::setDesktopFileName("stitchwork-gui");
  QApplication::setWindowIcon(QIcon(":/stitchwork-gui.svg"));
  QCommandLineParser parser;
  parser.setApplicationDescription("Explore fusion plans, see why, change them, export figures.");
  QApplication::setApplicationVersion(QString::fromStdString(stitchwork::version().version));
  parser.addHelpOption();
  parser.addVersionOption();
  parser.addPositionalArgument("MODEL",
                               "HLO text, an ONNX model, a dataset's name, a plan (.json), a compiler's dump "
                               "(its folder), or a store of runs (.db)",
                               "[MODEL | PLAN.json | DUMP | DB]");
  const QCommandLineOption picture(
      "export", "Write the graph of PLAN.json, unfolded, as .svg, .pdf, .png, .html or .dot, and end.",
      "FILE");
  parser.addOption(picture);
  parser.process(application);
  if (parser.isSet(picture)) return write_picture(parser.positionalArguments(), parser.value(picture));
  stitchwork::gui::MainWindow window;
  window.show();
  if (const QStringList models = parser.positionalArguments(); !models.isEmpty()) window.open(models.first());
  return QApplication::exec();
}
