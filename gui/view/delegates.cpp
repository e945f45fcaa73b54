#include "gui/view/delegates.h"

#include <QApplication>
#include <QPainter>
#include <algorithm>

#include "gui/model/record_model.h"
#include "gui/model/steps.h"
#include "gui/view/theme.h"

namespace stitchwork::gui {
namespace {

void paint_background(QPainter* painter, const QStyleOptionViewItem& option) {
  const QStyle* style = option.widget ? option.widget->style() : QApplication::style();
  style->drawPrimitive(QStyle::PE_PanelItemViewItem, &option, painter, option.widget);
}

}  // namespace

void ShareDelegate::paint(QPainter* painter, const QStyleOptionViewItem& option,
                          const QModelIndex& index) const {
  paint_background(painter, option);
  const Theme& t = theme(option.palette);
  const bool selected = option.state & QStyle::State_Selected;
  constexpr int kText = 52;
  const QRect room = option.rect.adjusted(6, 6, -kText - 4, -6);
  QColor track = t.line, bar = t.accent;
  track.setAlphaF(0.35F);
  if (selected) bar = Qt::white;
  painter->save();
  painter->setPen(Qt::NoPen);
  painter->setBrush(track);
  painter->drawRoundedRect(room, 2, 2);
  const double share = std::clamp(index.data(kBarRole).toDouble(), 0.0, 1.0);
  QRectF filled(room);
  filled.setWidth(share * room.width());
  painter->setBrush(bar);
  painter->drawRoundedRect(filled, 2, 2);
  painter->setPen(option.palette.color(selected ? QPalette::HighlightedText : QPalette::Text));
  painter->drawText(option.rect.adjusted(0, 0, -6, 0), Qt::AlignRight | Qt::AlignVCenter,
                    index.data().toString());
  painter->restore();
}

void BadgeDelegate::paint(QPainter* painter, const QStyleOptionViewItem& option,
                          const QModelIndex& index) const {
  const QString letters = index.data(kBadgesRole).toString();
  if (letters.isEmpty()) return QStyledItemDelegate::paint(painter, option, index);
  paint_background(painter, option);
  painter->save();
  painter->setRenderHint(QPainter::Antialiasing);
  QFont font = option.font;
  font.setBold(true);
  font.setPixelSize(10);
  painter->setFont(font);
  double x = option.rect.x() + 6;
  for (const QChar letter : letters) {
    const std::string_view known = "ILRSGC";
    const auto scheme = static_cast<Scheme>(known.find(letter.toLatin1()));
    const QRectF box(x, option.rect.center().y() - 7, 15, 15);
    painter->setPen(QPen(option.palette.color(QPalette::Base), 1));
    painter->setBrush(colour(scheme));
    painter->drawRoundedRect(box, 3, 3);
    painter->setPen(ink_on(colour(scheme)));
    painter->drawText(box, Qt::AlignCenter, QString(letter));
    x += 18;
  }
  painter->restore();
}

}  // namespace stitchwork::gui
