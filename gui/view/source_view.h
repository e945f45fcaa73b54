// CUDA and PTX of the selected kernel, side by side: names of ops and the selection, lines of the one and of
// the other follow each other.
#pragma once

#include <QPlainTextEdit>
#include <QSyntaxHighlighter>
#include <QWidget>
#include <map>

#include "gui/model/selection.h"
#include "gui/model/session.h"
#include "gui/model/source.h"

class QLabel;
class QPushButton;
class QSplitter;

namespace stitchwork::gui {

class CodeHighlighter : public QSyntaxHighlighter {
  Q_OBJECT
 public:
  explicit CodeHighlighter(QTextDocument* document, bool ptx);

 protected:
  void highlightBlock(const QString& text) override;

 private:
  bool ptx_;
};

class SourceView : public QWidget {
  Q_OBJECT
 public:
  SourceView(Session& session, SelectionModel& selection, QWidget* parent = nullptr);
  const KernelSource& source() const { return source_; }
  QPlainTextEdit& cuda() { return *cuda_; }
  QPlainTextEdit& ptx() { return *ptx_; }
  void compile();  ///< the kernel shown, to PTX
  /// What the instructions of a line of the PTX did in the run, from 1; "" where it is not the run's.
  QString line_text(int line) const;

 protected:
  bool eventFilter(QObject* watched, QEvent* event) override;
  void changeEvent(QEvent* event) override;

 private:
  void follow_selection();
  void load(int step);
  void clear_source();
  void show_ptx(const std::string& ptx);
  void show_executed();
  void follow_line(int line, const QPlainTextEdit* from);
  void clicked(QPlainTextEdit* edit, const QTextCursor& at);
  void mark(const QPlainTextEdit* stays = nullptr);

  Session& session_;
  SelectionModel& selection_;
  KernelSource source_;
  PlannedPtr loaded_from_;
  QLabel* title_;
  QPushButton* compile_;
  std::map<int, sim::LineCounters> ran_;  ///< by line of the PTX shown, of the run; empty of other PTX
  int line_ = 0;                          ///< of the CUDA, chosen by a click; 0: none
  QLabel* links_;
  QSplitter* sides_;
  QPlainTextEdit *cuda_, *ptx_;
  std::vector<CodeHighlighter*> highlighters_;
};

}  // namespace stitchwork::gui
