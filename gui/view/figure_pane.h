// Figures of a store's runs: one at a time, as they are drawn in reports and papers, to be written as files.
#pragma once

#include <QSvgRenderer>
#include <QWidget>
#include <vector>

#include "figures/data/figure.h"
#include "gui/model/session.h"

class QComboBox;
class QLabel;
class QPushButton;

namespace stitchwork::gui {

class FigurePane : public QWidget {
  Q_OBJECT
 public:
  explicit FigurePane(Session& session, QWidget* parent = nullptr);

  /// Figures to choose from; the one that was chosen stays so, by its place.
  void set_figures(std::vector<Figure> figures);
  const Figure* shown() const;  ///< null: none
  bool drawn() const { return picture_.isValid(); }
  /// The figure shown, in the form of the file's ending: .svg, .pdf, .png, .csv, or .json for Vega-Lite.
  void write(const QString& file);

 private:
  class Canvas;
  void draw();

  Session& session_;
  std::vector<Figure> figures_;
  QSvgRenderer picture_;
  QComboBox* choice_;
  QPushButton* save_;
  QLabel* message_;
  Canvas* canvas_;
};

}  // namespace stitchwork::gui
