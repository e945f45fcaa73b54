// Documents as pages: text wrapped, tables broken between rows under repeated heads, figures kept whole.
#include "figures/data/document.h"

#include <QFontMetricsF>
#include <QPainter>
#include <QPdfWriter>
#include <QRegularExpression>
#include <algorithm>
#include <numeric>

#include "figures/draw/canvas.h"
#include "figures/draw/draw.h"
#include "figures/paint/paint.h"
#include "figures/paint/pdf.h"
#include "figures/paint/render.h"

namespace stitchwork {
namespace {

constexpr double kWidth = 595, kHeight = 842, kMargin = 48;  ///< A4, points
constexpr double kInner = kWidth - 2 * kMargin;
constexpr int kText = 9, kSmallText = 7;
constexpr int kWrap = Qt::TextWordWrap;

const QColor kDark = colour(kInk), kFaint = colour(kQuiet), kRule = colour(kGrid);

/// Letters of a word that are kept together; fewer in tables that are too wide otherwise.
constexpr int kWhole = 24;

/// Words longer than a narrow column may be broken (zero-width spaces).
QString breakable(const std::string& utf8, int whole = kWhole) {
  QString result;
  int run = 0;
  for (const QChar c : text(utf8)) {
    run = c.isSpace() ? 0 : run + 1;
    result += c;
    if (run % whole == 0 && run > 0) result += QChar(0x200B);
  }
  return result;
}

class Pages {
 public:
  Pages(QPainter& painter, QPdfWriter& pdf, const QString& title)
      : painter_(painter), pdf_(pdf), title_(title) {
    footer();
  }

  void add(const DocumentBlock& block) {
    switch (block.kind) {
      case DocumentBlock::Kind::kTitle:
        paragraph(block.text, 15, true, 0, 8, 0);
        break;
      case DocumentBlock::Kind::kHeading:
        space(12);
        paragraph(block.text, 12, true, 0, 5, 120);
        break;
      case DocumentBlock::Kind::kParagraph:
        paragraph(block.text, kText, false, 0, 5, 0);
        break;
      case DocumentBlock::Kind::kItem:
      case DocumentBlock::Kind::kLink:  // paper leads nowhere
        need(2 * text_height(kText));
        paint_text(painter_, kMargin + 4, y_ + text_height(kText) / 2, QStringLiteral("•"), 0, kText, kDark);
        paragraph(block.text, kText, false, 12, 3, 0);
        break;
      case DocumentBlock::Kind::kCode:
        paragraph(block.text, kSmallText, false, 12, 3, 0);
        break;
      case DocumentBlock::Kind::kTable:
        table(block);
        break;
      case DocumentBlock::Kind::kFigure:
        figure(block);
        break;
    }
  }

 private:
  void footer() {
    paint_text(painter_, kMargin, kHeight - kMargin / 2, title_, -1, kSmallText, kFaint);
    paint_text(painter_, kWidth - kMargin, kHeight - kMargin / 2, QString::number(++page_), 1, kSmallText,
               kFaint);
    y_ = kMargin;
  }
  void next_page() {
    pdf_.newPage();
    footer();
  }
  void need(double height) {
    if (y_ + height > kHeight - kMargin && y_ > kMargin) next_page();
  }
  void space(double height) {
    if (y_ > kMargin) y_ += height;
  }

  static double height_of(const QString& text, double width, int points, bool bold = false) {
    return QFontMetricsF(figure_font(points, bold))
        .boundingRect(QRectF(0, 0, width, 1e6), kWrap, text)
        .height();
  }

  /// `keep`: with so much of what follows.
  void paragraph(const std::string& utf8, int points, bool bold, double indent, double behind, double keep) {
    const QString shown = breakable(utf8);
    const double width = kInner - indent, height = height_of(shown, width, points, bold);
    need(height + keep);
    painter_.setFont(figure_font(points, bold));
    painter_.setPen(kDark);
    painter_.drawText(QRectF(kMargin + indent, y_, width, height + 1), kWrap, shown);
    y_ += height + behind;
  }

  void figure(const DocumentBlock& block) {
    const Size size = figure_size(block.figure);
    const double scale = std::min(1.0, kInner / size.width);
    const double caption = height_of(breakable(block.text), kInner, kText);
    need(size.height * scale + caption + 10);
    paint(painter_, block.figure,
          QRectF(kMargin + (kInner - size.width * scale) / 2, y_, size.width * scale, size.height * scale));
    y_ += size.height * scale + 3;
    paragraph(block.text, kText, false, 0, 8, 0);
  }

  /// Of the longest part that is not broken.
  static double widest_word(const std::string& utf8, bool bold, int whole) {
    double widest = 0;
    for (const QString& word : breakable(utf8, whole).split(QRegularExpression("[\\s\\x{200B}]")))
      widest = std::max(widest, width_of(word, kSmallText, bold));
    return widest;
  }

  struct Columns {
    std::vector<double> widths;
    int whole = kWhole;  ///< letters of a word that are kept together
  };

  /// As wide as the widest cell; where that is too wide together, the widest give way, as far as their words
  /// allow, which are broken as far as it takes.
  static Columns columns_of(const DocumentTable& t) {
    Columns columns;
    for (int whole = kWhole; whole >= 1; --whole) {
      columns = {column_widths(t, whole), whole};
      if (std::accumulate(columns.widths.begin(), columns.widths.end(), 0.0) <= kInner + 1) break;
    }
    return columns;
  }

  static std::vector<double> column_widths(const DocumentTable& t, int whole) {
    constexpr double kPad = 8;
    std::vector<double> widths, least;
    for (std::size_t c = 0; c < t.heads.size(); ++c) {
      double widest = width_of(text(t.heads[c]), kSmallText, true),
             word = widest_word(t.heads[c], true, whole);
      for (const auto& row : t.rows) {
        widest = std::max(widest, width_of(text(row[c]), kSmallText));
        word = std::max(word, widest_word(row[c], false, whole));
      }
      widths.push_back(widest + kPad);
      least.push_back(word + kPad);
    }
    double over = std::accumulate(widths.begin(), widths.end(), 0.0) - kInner;
    while (over > 0.5) {
      std::size_t widest = widths.size();
      for (std::size_t c = 0; c < widths.size(); ++c)
        if (widths[c] > least[c] && (widest == widths.size() || widths[c] > widths[widest])) widest = c;
      if (widest == widths.size()) break;
      const double less =
          std::min({over, std::max(1.0, widths[widest] * 0.05), widths[widest] - least[widest]});
      widths[widest] -= less;
      over -= less;
    }
    return widths;
  }

  double row_height(const std::vector<std::string>& row, const Columns& columns, bool bold) const {
    double height = 0;
    for (std::size_t c = 0; c < row.size(); ++c)
      height = std::max(height,
                        height_of(breakable(row[c], columns.whole), columns.widths[c] - 6, kSmallText, bold));
    return height + 3;
  }

  void row(const DocumentTable& t, const std::vector<std::string>& cells, const Columns& columns, bool bold) {
    const double height = row_height(cells, columns, bold);
    double x = kMargin;
    painter_.setFont(figure_font(kSmallText, bold));
    painter_.setPen(kDark);
    for (std::size_t c = 0; c < cells.size(); ++c) {
      painter_.drawText(QRectF(x + 3, y_ + 1.5, columns.widths[c] - 6, height),
                        kWrap | (t.right[c] ? Qt::AlignRight : Qt::AlignLeft),
                        breakable(cells[c], columns.whole));
      x += columns.widths[c];
    }
    y_ += height;
    painter_.setPen(QPen(bold ? kDark : kRule, kThin));
    painter_.drawLine(QPointF(kMargin, y_), QPointF(x, y_));
  }

  void table(const DocumentBlock& block) {
    const DocumentTable& t = block.table;
    if (!block.text.empty()) paragraph(block.text, kText, false, 0, 2, 60);
    const Columns columns = columns_of(t);
    need(row_height(t.heads, columns, true) + 30);
    row(t, t.heads, columns, true);
    for (const auto& cells : t.rows) {
      if (y_ + row_height(cells, columns, false) > kHeight - kMargin) {
        next_page();
        row(t, t.heads, columns, true);
      }
      row(t, cells, columns, false);
    }
    y_ += 8;
  }

  QPainter& painter_;
  QPdfWriter& pdf_;
  QString title_;
  double y_ = kMargin;
  int page_ = 0;
};

}  // namespace

std::string render(const Document& document) {
  start_painting();
  const QString title = text(document.title);
  return write_pdf(QPageSize(QPageSize::A4), title, QString(), [&](QPainter& painter, QPdfWriter& pdf) {
    Pages pages(painter, pdf, title);
    for (const DocumentBlock& block : document.blocks) pages.add(block);
  });
}

}  // namespace stitchwork
