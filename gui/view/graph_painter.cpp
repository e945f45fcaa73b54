#include "gui/view/graph_painter.h"

#include <QFontMetricsF>
#include <QPainter>
#include <QPainterPath>
#include <algorithm>
#include <array>
#include <cmath>

#include "gui/model/tables.h"
#include "gui/model/text.h"

namespace stitchwork::gui {
namespace {

constexpr double kTextFrom = 0.32;    ///< pixels a unit below which a text could not be read
constexpr double kCurvesFrom = 0.12;  ///< below which curves are drawn as lines

QRectF rect_of(const Rect& r) { return {r.x, r.y, r.width, r.height}; }

QColor mix(const QColor& a, const QColor& b, double part_of_b) {
  const auto m = [&](int x, int y) { return static_cast<int>(std::lround(x + part_of_b * (y - x))); };
  return QColor(m(a.red(), b.red()), m(a.green(), b.green()), m(a.blue(), b.blue()));
}

bool holds_steps(const FoldNode& n) { return n.kind == FoldKind::kLayer || n.kind == FoldKind::kBody; }

class GraphPainter {
 public:
  GraphPainter(QPainter& painter, const PlannedModel& planned, const DrawnGraph& graph, const GraphLook& look,
               double scale)
      : p_(painter), planned_(planned), graph_(graph), look_(look), t_(*look.theme), scale_(scale) {
    font_ = p_.font();
    font_.setPixelSize(12);
    small_ = font_;
    small_.setPixelSize(10);
    bold_ = font_;
    bold_.setBold(true);
    p_.setFont(font_);
  }

  void paint(const QRectF& visible) {
    for (const DrawnBox& box : graph_.boxes)
      if (box.expanded && rect_of(box.rect).intersects(visible)) container(box);
    for (const DrawnEdge& edge : graph_.edges) this->edge(edge, visible);
    if (scale_ * 1.6 >= kTextFrom)
      for (const DrawnBox& box : graph_.boxes)
        if (box.expanded && rect_of(box.rect).intersects(visible)) title(box);
    for (const DrawnBox& box : graph_.boxes)
      if (!box.expanded && rect_of(box.rect).intersects(visible)) this->box(box);
    if (scale_ >= kTextFrom)
      for (const DrawnStub& stub : graph_.stubs) this->stub(stub, visible);
    for (const DrawnBox& box : graph_.boxes)
      if (box.node == look_.selected) frame(rect_of(box.rect), t_.accent, 3);
  }

 private:
  const FoldNode& node(int i) const { return planned_.folds->node(i); }
  std::optional<Scheme> scheme(const FoldNode& n) const {
    const KernelPlan* k = planned_.kernel(n.step);
    if (!k) return std::nullopt;
    if (n.kind == FoldKind::kStep) return planned_.row(n.step).scheme();
    const auto found = k->schemes.find(n.op);
    return found == k->schemes.end() ? std::nullopt : std::optional(found->second);
  }
  /// Of a graph read from a file.
  NodeLook given(int i) const {
    return planned_.looks.empty() ? NodeLook() : planned_.looks[static_cast<std::size_t>(i)];
  }
  bool dominant(const FoldNode& n) const {
    return n.kind == FoldKind::kOp && n.group >= 0 && node(n.parent).op == n.op;
  }

  void frame(const QRectF& r, const QColor& c, double width) {
    p_.setPen(QPen(c, width));
    p_.setBrush(Qt::NoBrush);
    p_.drawRoundedRect(r.adjusted(-2, -2, 2, 2), 5, 5);
  }

  /// The border that says the scheme besides its colour: thin, solid, double, thick.
  void border(const QRectF& r, std::optional<Scheme> s, const QColor& fill, bool bold) {
    const QColor line =
        mix(s ? colour(*s) : library_colour(), t_.dark ? Qt::white : Qt::black, t_.dark ? 0.25 : 0.35);
    double width = s == Scheme::kIndependent || !s ? 0.8 : s == Scheme::kGlobal ? 2.6 : 1.4;
    if (bold) width += 1;
    p_.setPen(QPen(line, width, s == Scheme::kRecomputed ? Qt::DashLine : Qt::SolidLine));
    p_.setBrush(fill);
    p_.drawRoundedRect(r, 4, 4);
    if (s == Scheme::kRegional && scale_ >= kTextFrom) {
      p_.setPen(QPen(line, 1));
      p_.setBrush(Qt::NoBrush);
      p_.drawRoundedRect(r.adjusted(3, 3, -3, -3), 2, 2);
    }
  }

  void text(const QRectF& r, const QString& what, const QFont& font, const QColor& c,
            Qt::Alignment align = Qt::AlignLeft | Qt::AlignVCenter) {
    p_.setFont(font);
    p_.setPen(c);
    p_.drawText(r, static_cast<int>(align), QFontMetricsF(font).elidedText(what, Qt::ElideRight, r.width()));
  }

  QColor inside(const DrawnBox& box) const {
    const FoldNode& n = node(box.node);
    if (const QColor fill = given(box.node).fill; fill.isValid()) return mix(t_.paper, fill, 0.3);
    if (const auto s = scheme(n); s && n.kind == FoldKind::kStep)
      return mix(t_.paper, colour(*s), t_.dark ? 0.22 : 0.16);
    return mix(t_.container, t_.dark ? Qt::white : Qt::black, 0.025 * std::max(0, n.depth - 1));
  }

  void container(const DrawnBox& box) {
    const FoldNode& n = node(box.node);
    const auto s = scheme(n);
    const NodeLook look = given(box.node);
    const QColor line = s && n.kind == FoldKind::kStep ? mix(colour(*s), t_.text, 0.3) : t_.line;
    p_.setPen(QPen(look.line.isValid() ? look.line : line, 1.2, look.dashed ? Qt::DashLine : Qt::SolidLine));
    if (const auto value = measured(n)) p_.setPen(QPen(viridis(value->first), 4));
    p_.setBrush(inside(box));
    p_.drawRoundedRect(rect_of(box.rect), 6, 6);
  }

  /// Over the edges that pass.
  void title(const DrawnBox& box) {
    const FoldNode& n = node(box.node);
    const QRectF r = rect_of(box.rect);
    QRectF title(r.x() + 10, r.y() + 2, r.width() - 20, 22);
    QString label = q(n.label);
    QString right;
    QColor ink = t_.muted;
    std::optional<QColor> behind;
    if (n.kind == FoldKind::kStep) {
      right = look_.overlay ? QStringLiteral("–") : time(n);
      if (const auto value = measured(n)) {
        right = value->second;
        behind = viridis(value->first);
        ink = ink_on(*behind);
      }
    }
    if (holds_steps(n)) right = content(n);
    if (n.kind == FoldKind::kGroup) label = QStringLiteral("★ ") + label;
    const double right_width = std::min(QFontMetricsF(small_).horizontalAdvance(right) + 4, r.width() / 2);
    const QRectF left = title.adjusted(0, 0, -right_width - 6, 0);
    const double left_width = std::min(left.width(), QFontMetricsF(bold_).horizontalAdvance(label));
    p_.fillRect(QRectF(left.x() - 3, left.y() + 3, left_width + 6, left.height() - 6), inside(box));
    text(left, label, bold_, t_.text);
    const QRectF value(title.right() - right_width, title.y(), right_width, title.height());
    if (!right.isEmpty()) {
      p_.setPen(Qt::NoPen);
      p_.setBrush(behind.value_or(inside(box)));
      p_.drawRoundedRect(value.adjusted(-5, 3, 5, -3), 4, 4);
    }
    text(value, right, small_, ink, Qt::AlignRight | Qt::AlignVCenter);
  }

  /// What the overlay has of a step.
  std::optional<std::pair<double, QString>> measured(const FoldNode& n) const {
    return look_.overlay && n.step >= 0 && n.kind != FoldKind::kOp ? look_.overlay->value(n.step)
                                                                   : std::nullopt;
  }

  /// Of a layer; a graph that was read from DOT has no steps.
  static QString content(const FoldNode& n) {
    return n.steps > 0 ? QObject::tr("%1 kernels and calls").arg(n.steps) : counted(n.ops, "node");
  }

  QString time(const FoldNode& n) const { return us(planned_.row(n.step).predicted_us); }

  QString control(const FoldNode& n, const StepRow& row) {
    const auto trips = planned_.plan_step(n.step).trips;
    return (trips ? counted(*trips, "trip") : q(row.name)) +
           QObject::tr(" · ▸ %1").arg(counted(n.steps, "step"));
  }

  void badges(const StepRow& row, const QRectF& r) {
    double x = r.right();
    for (std::size_t s = row.schemes.size(); s-- > 0;) {
      if (row.schemes[s] == 0) continue;
      x -= 15;
      badge_at({x, r.y(), 13, 13}, static_cast<Scheme>(s));
    }
  }

  void badge_at(const QRectF& r, Scheme s) {
    const QColor fill = colour(s);
    p_.setPen(QPen(mix(fill, t_.dark ? Qt::white : Qt::black, 0.35), 0.8));
    p_.setBrush(fill);
    p_.drawRoundedRect(r, 2.5, 2.5);
    QFont letter = small_;
    letter.setPixelSize(9);
    letter.setBold(true);
    p_.setFont(letter);
    p_.setPen(ink_on(fill));
    p_.drawText(r, Qt::AlignCenter, QString(QChar(badge(s))));
  }

  void box(const DrawnBox& drawn) {
    const FoldNode& n = node(drawn.node);
    const QRectF r = rect_of(drawn.rect);
    const auto s = scheme(n);
    const bool op = n.kind == FoldKind::kOp;
    const bool foreign = op && n.op == kNoNode;  // of a graph read from DOT
    QColor base = holds_steps(n) || foreign ? t_.container : s ? colour(*s) : library_colour();
    // An op is its scheme's colour; what folds several ops is tinted, with a strip. Where colours are those
    // of an overlay, ops are tinted too.
    const bool solid = op && !look_.overlay;
    QColor fill = solid ? base : mix(t_.paper, base, holds_steps(n) ? 0.75 : t_.dark ? 0.16 : 0.12);
    const NodeLook look = given(drawn.node);
    if (look.fill.isValid()) fill = look.fill;
    const auto measured = this->measured(n);
    if (measured) fill = viridis(measured->first);
    if (scale_ < kTextFrom / 3) {
      p_.fillRect(r, solid || measured ? fill : mix(t_.paper, base, look_.overlay ? 0.15 : 0.6));
      if (look_.hits.contains(drawn.node)) frame(r, t_.hit, 3 / scale_);
      return;
    }
    border(r, holds_steps(n) ? std::nullopt : s, fill, dominant(n));
    if (look.line.isValid() || look.dashed) {
      p_.setPen(
          QPen(look.line.isValid() ? look.line : t_.line, 1.4, look.dashed ? Qt::DashLine : Qt::SolidLine));
      p_.setBrush(fill);
      p_.drawRoundedRect(r, 4, 4);
    }
    if (!op && !holds_steps(n) && !measured) {
      p_.setPen(Qt::NoPen);
      p_.setBrush(base);
      p_.drawRoundedRect(QRectF(r.x() + 1, r.y() + 1, 5, r.height() - 2), 2, 2);
    }
    if (look_.hits.contains(drawn.node)) frame(r, t_.hit, 2.5);
    if (scale_ < kTextFrom) return;
    const bool coloured = solid || measured;
    const QColor ink = coloured ? ink_on(fill) : t_.text, faint = coloured ? ink_on(fill) : t_.muted;
    const QRectF in = r.adjusted(op ? 7 : 12, 3, -7, -3);
    const QRectF first(in.x(), in.y(), in.width(), in.height() / 2),
        second = first.translated(0, in.height() / 2);
    if (foreign) return text(in, q(n.label), font_, look.text.isValid() ? look.text : ink);
    if (op) {
      const Node& computed = planned_.computation(n.step).node(n.op);
      const double room = s ? 17 : 0;
      text(first.adjusted(0, 0, -room, 0), (dominant(n) ? QStringLiteral("★ ") : QString()) + q(n.label),
           dominant(n) ? bold_ : font_, ink);
      QString shape = q(to_text(computed.shape));
      if (n.sources > 0) shape += QObject::tr("  +%1").arg(counted(n.sources, "input"));
      text(second, shape, small_, faint);
      if (s) badge_at({in.right() - 13, in.y() + 1, 13, 13}, *s);
      return;
    }
    if (holds_steps(n)) {
      text(first, QStringLiteral("▸ ") + q(n.label), bold_, ink);
      text(second, content(n) + (n.steps > 0 ? QObject::tr(" · %1 ops").arg(n.ops) : QString()), small_,
           faint);
      return;
    }
    if (n.kind == FoldKind::kGroup) {
      text(first, QStringLiteral("★ ") + q(n.label), bold_, ink);
      text(second, QObject::tr("group · %1").arg(counted(n.ops, "op")), small_, faint);
      return;
    }
    const StepRow& row = planned_.row(n.step);
    int letters = 0;
    for (int count : row.schemes) letters += count > 0;
    text(first.adjusted(0, 0, -15.0 * letters - 2, 0), q(n.label), bold_, ink);
    badges(row, QRectF(in.x(), in.y() + 2, in.width(), 13));
    QString detail = row.kind == StepKind::kKernel    ? counted(row.ops, "op")
                     : row.kind == StepKind::kControl ? control(n, row)
                                                      : q(std::string(name(row.kind))) + " · " + q(row.name);
    if (row.barriers) detail += QObject::tr(" · %1").arg(counted(row.barriers, "grid barrier"));
    const QString value = !look_.overlay ? time(n) : measured ? measured->second : QStringLiteral("–");
    const double wide = QFontMetricsF(small_).horizontalAdvance(value) + 2;
    text(second.adjusted(0, 0, -wide - 4, 0), detail, small_, faint);
    text(QRectF(second.right() - wide, second.y(), wide, second.height()), value, small_,
         coloured ? ink : t_.text, Qt::AlignRight | Qt::AlignVCenter);
  }

  void edge(const DrawnEdge& e, const QRectF& visible) {
    const auto& points = e.points;
    double left = points[0].x, right = left, top = points[0].y, bottom = top;
    for (const Point& point : points) {
      left = std::min(left, point.x), right = std::max(right, point.x);
      top = std::min(top, point.y), bottom = std::max(bottom, point.y);
    }
    if (!visible.intersects(QRectF(left - 30, top - 30, right - left + 60, bottom - top + 60))) return;
    // Edge width is the logarithm of the bytes; on-chip thin, device memory thick.
    const double magnitude = std::log2(static_cast<double>(std::max<std::int64_t>(1, e.bytes))) / 8;
    const bool marked = e.from == look_.selected || e.to == look_.selected;
    double width = (e.on_chip ? 0.5 : 0.9) + 0.45 * magnitude * (e.on_chip ? 0.4 : 1);
    QColor line = marked ? t_.accent : t_.edge;
    if (marked) width += 0.8;
    QPen pen(line, width);
    if (e.on_chip && scale_ >= kTextFrom) pen.setStyle(Qt::DotLine);
    if (scale_ < kCurvesFrom) {
      pen.setCosmetic(true);
      pen.setWidthF(marked ? 2 : 1);
      pen.setStyle(Qt::SolidLine);
      p_.setPen(pen);
      for (std::size_t i = 1; i < points.size(); ++i)
        p_.drawLine(QPointF(points[i - 1].x, points[i - 1].y), QPointF(points[i].x, points[i].y));
      return;
    }
    p_.setPen(pen);
    p_.setBrush(Qt::NoBrush);
    QPainterPath path(QPointF(points[0].x, points[0].y));
    for (std::size_t i = 1; i < points.size(); ++i) {
      const Point &a = points[i - 1], &b = points[i];
      const bool straight = std::abs(e.sideways ? a.y - b.y : a.x - b.x) < 0.5;
      if (straight) {
        path.lineTo(b.x, b.y);
      } else if (e.sideways) {
        const double bend = (b.x - a.x) / 2;
        path.cubicTo(a.x + bend, a.y, b.x - bend, b.y, b.x, b.y);
      } else {
        const double bend = (b.y - a.y) / 2;
        path.cubicTo(a.x, a.y + bend, b.x, b.y - bend, b.x, b.y);
      }
    }
    p_.drawPath(path);
    arrow(points[points.size() - 2], points.back(), e.sideways, line);
  }

  void arrow(const Point& before, const Point& tip, bool sideways, const QColor& c) {
    constexpr double kLong = 7, kWide = 3.2;
    const double way = sideways ? (tip.x >= before.x ? 1 : -1) : (tip.y >= before.y ? 1 : -1);
    QPolygonF head;
    head << QPointF(tip.x, tip.y);
    if (sideways)
      head << QPointF(tip.x - way * kLong, tip.y - kWide) << QPointF(tip.x - way * kLong, tip.y + kWide);
    else
      head << QPointF(tip.x - kWide, tip.y - way * kLong) << QPointF(tip.x + kWide, tip.y - way * kLong);
    p_.setPen(Qt::NoPen);
    p_.setBrush(c);
    p_.drawPolygon(head);
  }

  void stub(const DrawnStub& s, const QRectF& visible) {
    const QString number = QString::number(s.number);
    QFont tiny = small_;
    tiny.setPixelSize(9);
    for (const Point& at : {s.out, s.in}) {
      const QRectF r(at.x - 9, at.y - 7, 18, 13);
      if (!visible.intersects(r)) continue;
      p_.setPen(QPen(t_.edge, 1));
      p_.setBrush(t_.paper);
      p_.drawRoundedRect(r, 6, 6);
      p_.setPen(t_.text);
      p_.setFont(tiny);
      p_.drawText(r, Qt::AlignCenter, number);
    }
  }

  QPainter& p_;
  const PlannedModel& planned_;
  const DrawnGraph& graph_;
  const GraphLook& look_;
  const Theme& t_;
  double scale_;
  QFont font_, small_, bold_;
};

}  // namespace

void paint_graph(QPainter& painter, const PlannedModel& planned, const DrawnGraph& graph,
                 const GraphLook& look, const QRectF& visible, double scale) {
  GraphPainter(painter, planned, graph, look, scale).paint(visible);
}

void paint_legend(QPainter& painter, const PlannedModel& planned, const GraphLook& look, double width) {
  const Theme& t = *look.theme;
  QFont font = painter.font();
  font.setPixelSize(11);
  painter.setFont(font);
  painter.fillRect(QRectF(0, 0, width, kLegendHeight), mix(t.canvas, t.container, 0.8));
  double x = 10;
  const auto entry = [&](const QColor& fill, const QString& letter, const QString& words) {
    const double wide = QFontMetricsF(font).horizontalAdvance(words);
    if (x + 19 + wide > width) return;
    painter.setPen(QPen(mix(fill, t.text, 0.35), 0.8));
    painter.setBrush(fill);
    painter.drawRoundedRect(QRectF(x, 6, 14, 14), 3, 3);
    painter.setPen(ink_on(fill));
    painter.drawText(QRectF(x, 6, 14, 14), Qt::AlignCenter, letter);
    painter.setPen(t.text);
    painter.drawText(QRectF(x + 19, 0, wide + 2, kLegendHeight), Qt::AlignVCenter | Qt::AlignLeft, words);
    x += 19 + wide + 16;
  };
  if (look.overlay) {
    painter.setPen(t.text);
    const auto words = [&](const QString& what) {
      const double wide = QFontMetricsF(font).horizontalAdvance(what);
      painter.drawText(QRectF(x, 0, wide + 2, kLegendHeight), Qt::AlignVCenter | Qt::AlignLeft, what);
      x += wide + 8;
    };
    words(look.overlay->title + ":");
    words(look.overlay->least);
    for (int i = 0; i < 80; ++i) painter.fillRect(QRectF(x + i, 7, 1.5, 12), viridis(i / 79.0));
    x += 88;
    words(look.overlay->most);
    return;
  }
  constexpr std::array kShown = {Scheme::kIndependent, Scheme::kLocal,  Scheme::kRegional,
                                 Scheme::kResident,    Scheme::kGlobal, Scheme::kRecomputed};
  const auto occurs = [&](const auto& in) {
    return std::any_of(planned.steps.begin(), planned.steps.end(), in);
  };
  for (const Scheme s : kShown)
    if (occurs([&](const StepRow& row) { return row.schemes[static_cast<std::size_t>(s)] > 0; }))
      entry(colour(s), QString(QChar(badge(s))), q(std::string(name(s))));
  if (occurs([](const StepRow& row) { return row.kernel < 0; }))
    entry(library_colour(), {}, QObject::tr("library call, copy"));
  const QString rest =
      QObject::tr("★ dominant op · thick: device memory · dotted: on chip · times: modelled");
  painter.setPen(t.muted);
  if (x + QFontMetricsF(font).horizontalAdvance(rest) < width)
    painter.drawText(QRectF(x, 0, width - x, kLegendHeight), Qt::AlignVCenter | Qt::AlignLeft, rest);
}

}  // namespace stitchwork::gui
