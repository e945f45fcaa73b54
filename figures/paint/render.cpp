#include "figures/paint/render.h"

#include <QBuffer>
#include <QFontDatabase>
#include <QGuiApplication>
#include <QImage>
#include <QPainter>
#include <QPdfWriter>
#include <cmath>
#include <stdexcept>

#include "figures/draw/draw.h"
#include "figures/paint/paint.h"
#include "figures/paint/pdf.h"

namespace stitchwork {
namespace {

/// Where Debian's fonts-dejavu-core and other distributions have it.
constexpr const char* kFontFolders[] = {"/usr/share/fonts/truetype/dejavu/", "/usr/share/fonts/dejavu/",
                                        "/usr/share/fonts/TTF/", "/usr/share/fonts/dejavu-sans-fonts/"};

void load_font(const QString& file) {
  for (const char* folder : kFontFolders)
    if (QFontDatabase::addApplicationFont(QString::fromLatin1(folder) + file) >= 0) return;
  throw FontMissing();
}

std::string render_pdf(const Figure& figure, const QSizeF& size) {
  return write_pdf(QPageSize(size, QPageSize::Point, QString(), QPageSize::ExactMatch), text(figure.title),
                   text(provenance_text(figure)),
                   [&](QPainter& painter, QPdfWriter&) { paint(painter, figure, QRectF(QPointF(), size)); });
}

std::string render_png(const Figure& figure, const QSizeF& size) {
  constexpr double kResolution = 300, kInchesPerMetre = 39.3701;
  const double scale = kResolution / kInch;
  QImage image((size * scale).toSize(), QImage::Format_RGB32);
  image.fill(Qt::white);
  image.setDotsPerMeterX(static_cast<int>(std::lround(kResolution * kInchesPerMetre)));
  image.setDotsPerMeterY(image.dotsPerMeterX());
  image.setText(QStringLiteral("Title"), text(figure.title));
  for (const auto& [key, value] : figure.provenance) image.setText(text(key), text(value));
  QPainter painter(&image);
  painter.setRenderHint(QPainter::Antialiasing);
  painter.setRenderHint(QPainter::TextAntialiasing);
  paint(painter, figure, QRectF(QPointF(), size * scale));
  painter.end();
  QByteArray bytes;
  QBuffer buffer(&bytes);
  buffer.open(QIODevice::WriteOnly);
  image.save(&buffer, "PNG");
  return bytes_of(bytes);
}

}  // namespace

void start_painting() {
  if (QCoreApplication::instance() == nullptr) {
    static int argc = 1;
    static char name[] = "stitchwork";
    static char* argv[] = {name, nullptr};
    qputenv("QT_QPA_PLATFORM", "offscreen");
    // It warns of an unset XDG_RUNTIME_DIR, of which figures make no use.
    qInstallMessageHandler([](QtMsgType, const QMessageLogContext&, const QString&) {});
    new QGuiApplication(argc, argv);  // for as long as the program runs: Qt does not start twice
  }
  static const bool loaded = [] {
    load_font(QStringLiteral("DejaVuSans.ttf"));
    load_font(QStringLiteral("DejaVuSans-Bold.ttf"));
    return true;
  }();
  static_cast<void>(loaded);
}

std::string render(const Figure& figure, FigureFormat format) {
  start_painting();
  const Size points = figure_size(figure);
  const QSizeF size(points.width, points.height);
  if (format == FigureFormat::kPdf) return render_pdf(figure, size);
  if (format == FigureFormat::kPng) return render_png(figure, size);
  throw std::logic_error("SVG is drawn without this module");
}

}  // namespace stitchwork
