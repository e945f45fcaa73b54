// How cells with a bar or badges are drawn.
#pragma once

#include <QStyledItemDelegate>

namespace stitchwork::gui {

/// A bar as long as the cell's kBarRole, with the text beside it.
class ShareDelegate : public QStyledItemDelegate {
  Q_OBJECT
 public:
  using QStyledItemDelegate::QStyledItemDelegate;
  void paint(QPainter* painter, const QStyleOptionViewItem& option, const QModelIndex& index) const override;
};

/// The letters of kBadgesRole in the colours of their schemes; the text where there are none.
class BadgeDelegate : public QStyledItemDelegate {
  Q_OBJECT
 public:
  using QStyledItemDelegate::QStyledItemDelegate;
  void paint(QPainter* painter, const QStyleOptionViewItem& option, const QModelIndex& index) const override;
};

}  // namespace stitchwork::gui
