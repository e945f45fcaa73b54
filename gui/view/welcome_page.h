// The first thing seen: sample models one click away, recent files, where to drop a file.
#pragma once

#include <QStringList>
#include <QWidget>

class QGridLayout;
class QLabel;
class QVBoxLayout;

namespace stitchwork::gui {

class WelcomePage : public QWidget {
  Q_OBJECT
 public:
  explicit WelcomePage(QWidget* parent = nullptr);
  void set_recent(const QStringList& files);
  /// What went wrong with opening, with the text to copy; empty hides it.
  void set_problem(const QString& title, const QString& text);

 signals:
  void open(const QString& name);
  void browse();

 private:
  void make_problem();
  QGridLayout* samples();

  QVBoxLayout* recent_;
  QWidget* problem_;
  QLabel* problem_title_;
  QLabel* problem_text_;
};

}  // namespace stitchwork::gui
