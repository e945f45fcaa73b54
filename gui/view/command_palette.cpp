#include "gui/view/command_palette.h"

#include <QKeyEvent>
#include <QLineEdit>
#include <QListWidget>
#include <QVBoxLayout>
#include <algorithm>

namespace stitchwork::gui {

int fuzzy_distance(const QString& wanted, const QString& text) {
  int distance = 0;
  qsizetype at = -1;
  for (const QChar letter : wanted) {
    if (letter.isSpace()) continue;
    const qsizetype next = text.indexOf(letter, at + 1, Qt::CaseInsensitive);
    if (next < 0) return -1;
    distance += static_cast<int>(at < 0 ? next / 4 : next - at - 1);
    at = next;
  }
  return distance;
}

CommandPalette::CommandPalette(const QString& hint,
                               std::function<std::vector<PaletteEntry>(const QString&)> find, QWidget* parent)
    : QDialog(parent), find_(std::move(find)) {
  setObjectName("palette");
  setWindowFlags(Qt::Popup | Qt::FramelessWindowHint);
  setAttribute(Qt::WA_DeleteOnClose);
  setStyleSheet("QDialog#palette { border: 1px solid palette(highlight); }");
  auto* layout = new QVBoxLayout(this);
  layout->setContentsMargins(8, 8, 8, 8);
  edit_ = new QLineEdit;
  edit_->setPlaceholderText(hint);
  list_ = new QListWidget;
  list_->setFocusPolicy(Qt::NoFocus);
  list_->setFrameShape(QFrame::NoFrame);
  layout->addWidget(edit_);
  layout->addWidget(list_);
  resize(560, 380);
  edit_->installEventFilter(this);
  connect(edit_, &QLineEdit::textChanged, this, &CommandPalette::search);
  connect(list_, &QListWidget::itemClicked, this, &CommandPalette::run_current);
  search({});
  if (parent) move(parent->mapToGlobal(QPoint((parent->width() - width()) / 2, 90)));
}

void CommandPalette::search(const QString& text) {
  entries_ = find_(text);
  list_->clear();
  for (const PaletteEntry& entry : entries_)
    list_->addItem(entry.detail.isEmpty() ? entry.text : entry.text + "    " + entry.detail);
  list_->setCurrentRow(0);
}

void CommandPalette::run_current() {
  const int row = list_->currentRow();
  if (row < 0 || row >= static_cast<int>(entries_.size())) return;
  const auto run = entries_[static_cast<std::size_t>(row)].run;
  close();
  run();
}

bool CommandPalette::eventFilter(QObject* watched, QEvent* event) {
  if (watched != edit_ || event->type() != QEvent::KeyPress) return QDialog::eventFilter(watched, event);
  switch (static_cast<QKeyEvent*>(event)->key()) {
    case Qt::Key_Down:
      list_->setCurrentRow(std::min(list_->currentRow() + 1, list_->count() - 1));
      return true;
    case Qt::Key_Up:
      list_->setCurrentRow(std::max(list_->currentRow() - 1, 0));
      return true;
    case Qt::Key_Return:
    case Qt::Key_Enter:
      run_current();
      return true;
    default:
      return false;
  }
}

}  // namespace stitchwork::gui
