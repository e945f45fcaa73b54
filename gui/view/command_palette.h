// Every command of the window by name (Ctrl+Shift+P), and every kernel and op by name (Ctrl+P).
#pragma once

#include <QDialog>
#include <functional>
#include <vector>

class QLineEdit;
class QListWidget;

namespace stitchwork::gui {

struct PaletteEntry {
  QString text, detail;
  std::function<void()> run;
};

class CommandPalette : public QDialog {
  Q_OBJECT
 public:
  /// `find` gives what matches a text, best first.
  CommandPalette(const QString& hint, std::function<std::vector<PaletteEntry>(const QString&)> find,
                 QWidget* parent);

 protected:
  bool eventFilter(QObject* watched, QEvent* event) override;

 private:
  void search(const QString& text);
  void run_current();

  std::function<std::vector<PaletteEntry>(const QString&)> find_;
  std::vector<PaletteEntry> entries_;
  QLineEdit* edit_;
  QListWidget* list_;
};

/// Whether the letters of `wanted` occur in `text` in order; how well: the smaller the better, -1 if not.
int fuzzy_distance(const QString& wanted, const QString& text);

}  // namespace stitchwork::gui
