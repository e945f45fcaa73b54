#include "gui/view/figure_pane.h"

#include <QComboBox>
#include <QFileDialog>
#include <QFileInfo>
#include <QHBoxLayout>
#include <QLabel>
#include <QPainter>
#include <QPushButton>
#include <QVBoxLayout>
#include <algorithm>
#include <nlohmann/json.hpp>

#include "core/base/error.h"
#include "figures/data/forms.h"
#include "figures/data/renderer.h"
#include "gui/model/text.h"

namespace stitchwork::gui {

/// The picture as large as it fits, on white as on paper.
class FigurePane::Canvas : public QWidget {
 public:
  explicit Canvas(QSvgRenderer& picture) : picture_(picture) { setMinimumHeight(60); }

 protected:
  void paintEvent(QPaintEvent*) override {
    if (!picture_.isValid()) return;
    QSizeF size = picture_.defaultSize();
    size.scale(this->size(), Qt::KeepAspectRatio);
    const QRectF place(QPointF((width() - size.width()) / 2, (height() - size.height()) / 2), size);
    QPainter painter(this);
    painter.setRenderHint(QPainter::Antialiasing);
    painter.fillRect(place, Qt::white);
    picture_.render(&painter, place);
  }

 private:
  QSvgRenderer& picture_;
};

FigurePane::FigurePane(Session& session, QWidget* parent) : QWidget(parent), session_(session) {
  auto* layout = new QVBoxLayout(this);
  layout->setContentsMargins(0, 0, 0, 0);
  auto* header = new QHBoxLayout;
  header->setContentsMargins(8, 6, 8, 2);
  choice_ = new QComboBox;
  choice_->setObjectName("figure_choice");
  choice_->setSizeAdjustPolicy(QComboBox::AdjustToContents);
  save_ = new QPushButton(tr("Save figure …"));
  save_->setObjectName("save_figure");
  save_->setToolTip(tr("As SVG, PDF or PNG; its numbers as CSV or Vega-Lite"));
  message_ = new QLabel;
  message_->setTextInteractionFlags(Qt::TextSelectableByMouse | Qt::TextSelectableByKeyboard);
  message_->setWordWrap(true);
  header->addWidget(choice_);
  header->addWidget(message_, 1);
  header->addWidget(save_);
  layout->addLayout(header);
  canvas_ = new Canvas(picture_);
  layout->addWidget(canvas_, 1);
  connect(choice_, &QComboBox::activated, this, &FigurePane::draw);
  connect(save_, &QPushButton::clicked, this, [this] {
    const QString file = QFileDialog::getSaveFileName(
        this, tr("Save figure"), q(shown()->id) + ".svg",
        tr("SVG (*.svg);;PDF (*.pdf);;PNG (*.png);;CSV (*.csv);;Vega-Lite (*.json)"));
    if (!file.isEmpty()) write(file);
  });
  connect(&session_.jobs(), &Jobs::failed, this, [this](int lane, const Problem& problem) {
    if (lane == Jobs::kFigure) message_->setText(problem.text());
  });
  set_figures({});
}

const Figure* FigurePane::shown() const {
  const int index = choice_->currentIndex();
  return index < 0 ? nullptr : &figures_[static_cast<std::size_t>(index)];
}

void FigurePane::set_figures(std::vector<Figure> figures) {
  const int chosen = choice_->currentIndex();
  figures_ = std::move(figures);
  choice_->clear();
  for (const Figure& figure : figures_) choice_->addItem(q(figure.title));
  const int last = static_cast<int>(figures_.size()) - 1;
  choice_->setCurrentIndex(last < 0 ? -1 : std::clamp(chosen, 0, last));
  for (QWidget* widget : {static_cast<QWidget*>(choice_), static_cast<QWidget*>(save_)})
    widget->setEnabled(!figures_.empty());
  draw();
}

void FigurePane::draw() {
  const Figure* figure = shown();
  if (figure == nullptr) {
    session_.jobs().cancel(Jobs::kFigure);
    picture_.load(QByteArray());
    message_->setText(tr("Open a store: figures of its runs appear here."));
    return canvas_->update();
  }
  message_->clear();
  session_.jobs().start(
      Jobs::kFigure, tr("drawing %1").arg(q(figure->title)),
      [figure = *figure](const JobContext&) { return render_figure(figure, FigureFormat::kSvg); },
      [this](const std::string& svg) {
        picture_.load(QByteArray::fromStdString(svg));
        canvas_->update();
      });
}

void FigurePane::write(const QString& file) {
  if (shown() == nullptr) return;
  session_.write(file, [figure = *shown(), file] {
    const std::string ending = QFileInfo(file).suffix().toLower().toStdString();
    for (const FigureFormat format : {FigureFormat::kSvg, FigureFormat::kPdf, FigureFormat::kPng})
      if (ending == name(format)) return render_figure(figure, format);
    if (ending == "csv") return figure_csv(figure);
    if (ending == "json") return vega_lite(figure).dump(2) + "\n";
    throw Error(file.toStdString(), 0, 0, "a figure is written as .svg, .pdf, .png, .csv or .json",
                "give the file such an ending");
  });
}

}  // namespace stitchwork::gui
