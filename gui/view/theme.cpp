#include "gui/view/theme.h"

#include <QApplication>
#include <QStyleFactory>
#include <algorithm>
#include <cmath>

#include "figures/data/palette.h"
#include "gui/model/text.h"

namespace stitchwork::gui {
namespace {

QPalette palette_of(const Theme& t) {
  QPalette p;
  const QColor window = t.dark ? QColor("#26282c") : QColor("#f3f4f6");
  p.setColor(QPalette::Window, window);
  p.setColor(QPalette::WindowText, t.text);
  p.setColor(QPalette::Base, t.paper);
  p.setColor(QPalette::AlternateBase, t.dark ? QColor("#232529") : QColor("#f7f8fa"));
  p.setColor(QPalette::Text, t.text);
  p.setColor(QPalette::PlaceholderText, t.muted);
  p.setColor(QPalette::Button, t.dark ? QColor("#33363b") : QColor("#e9ebee"));
  p.setColor(QPalette::ButtonText, t.text);
  p.setColor(QPalette::BrightText, Qt::white);
  p.setColor(QPalette::ToolTipBase, t.dark ? QColor("#3a3d43") : QColor("#ffffff"));
  p.setColor(QPalette::ToolTipText, t.text);
  p.setColor(QPalette::Highlight, t.accent);
  p.setColor(QPalette::HighlightedText, Qt::white);
  p.setColor(QPalette::Link, t.dark ? QColor("#7ab7ff") : QColor("#0b57c4"));
  p.setColor(QPalette::LinkVisited, p.color(QPalette::Link));
  p.setColor(QPalette::Mid, t.line);
  p.setColor(QPalette::Light, t.dark ? QColor("#3b3f45") : QColor("#ffffff"));
  p.setColor(QPalette::Midlight, t.dark ? QColor("#34373c") : QColor("#f0f1f3"));
  p.setColor(QPalette::Dark, t.dark ? QColor("#17181a") : QColor("#a6adb6"));
  for (const auto role : {QPalette::WindowText, QPalette::Text, QPalette::ButtonText})
    p.setColor(QPalette::Disabled, role, t.dark ? QColor("#7c8087") : QColor("#9aa0a8"));
  return p;
}

QColor named(std::string_view hex) { return QColor(q(hex)); }

double luminance(const QColor& c) {
  const auto linear = [](double v) { return v <= 0.04045 ? v / 12.92 : std::pow((v + 0.055) / 1.055, 2.4); };
  return 0.2126 * linear(c.redF()) + 0.7152 * linear(c.greenF()) + 0.0722 * linear(c.blueF());
}

}  // namespace

const Theme& light_theme() {
  static const Theme kLight{false,
                            QColor("#fbfbfc"),
                            QColor("#eef1f5"),
                            QColor("#ffffff"),
                            QColor("#1d2127"),
                            QColor("#59616c"),
                            QColor("#c3c9d1"),
                            QColor("#8a939e"),
                            QColor("#1a66c9"),
                            QColor("#b35c00"),
                            QColor("#1f5fbf"),
                            QColor("#b35900")};
  return kLight;
}

const Theme& dark_theme() {
  static const Theme kDark{true,
                           QColor("#1b1c1f"),
                           QColor("#24272c"),
                           QColor("#2a2d32"),
                           QColor("#eceef1"),
                           QColor("#a9b0ba"),
                           QColor("#4a4f57"),
                           QColor("#858d98"),
                           QColor("#2f78d8"),
                           QColor("#ffb454"),
                           QColor("#7ab7ff"),
                           QColor("#ffae57")};
  return kDark;
}

const Theme& theme(const QPalette& palette) {
  return luminance(palette.color(QPalette::Base)) < 0.2 ? dark_theme() : light_theme();
}

void apply_appearance(QApplication& application, Appearance appearance) {
  static const QPalette kSystem = application.palette();
  application.setStyle(QStyleFactory::create("Fusion"));
  const bool dark =
      appearance == Appearance::kDark || (appearance == Appearance::kSystem && theme(kSystem).dark);
  application.setPalette(palette_of(dark ? dark_theme() : light_theme()));
  application.setStyleSheet(
      "QToolTip { padding: 4px; } QHeaderView::section { padding: 4px 18px 4px 6px; } QTableView, QTreeView "
      "{ border: "
      "none; }"
      "QDockWidget::title { padding: 5px 6px; } QTabBar::tab { padding: 5px 12px; }");
}

QColor colour(Scheme scheme) {
  switch (scheme) {
    case Scheme::kIndependent:
      return named(tol::kSand);
    case Scheme::kLocal:
      return named(tol::kCyan);
    case Scheme::kRegional:
      return named(tol::kRose);
    case Scheme::kResident:
      return named(tol::kTeal);
    case Scheme::kGlobal:
      return named(tol::kIndigo);
    case Scheme::kRecomputed:
      return named(tol::kOlive);
  }
  return library_colour();
}

QColor library_colour() { return named(tol::kGrey); }

QColor ink_on(const QColor& background) {
  return contrast(background, Qt::white) > contrast(background, QColor("#111111")) ? QColor(Qt::white)
                                                                                   : QColor("#111111");
}

double contrast(const QColor& a, const QColor& b) {
  const double x = luminance(a), y = luminance(b);
  return (std::max(x, y) + 0.05) / (std::min(x, y) + 0.05);
}

QColor viridis(double t) {
  const auto [red, green, blue] = stitchwork::viridis(t);
  return QColor(red, green, blue);
}

}  // namespace stitchwork::gui
