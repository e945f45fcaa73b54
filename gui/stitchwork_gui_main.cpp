// stitchwork-gui [MODEL | PLAN.json | STORE.db]
#include <QApplication>
#include <QCommandLineParser>
#include <QIcon>

#include "core/base/version.h"
#include "gui/main_window.h"

int main(int argc, char** argv) {
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
  parser.addPositionalArgument(
      "MODEL", "HLO text, an ONNX model, a dataset's name, a plan (.json), or a store of runs (.db)",
      "[MODEL | PLAN.json | DB]");
  parser.process(application);
  stitchwork::gui::MainWindow window;
  window.show();
  if (const QStringList models = parser.positionalArguments(); !models.isEmpty()) window.open(models.first());
  return QApplication::exec();
}
