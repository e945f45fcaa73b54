#include "gui/view/table_page.h"

#include <QHBoxLayout>
#include <QHeaderView>
#include <QLabel>
#include <QLineEdit>
#include <QScrollBar>
#include <QStackedLayout>
#include <QVBoxLayout>
#include <algorithm>

namespace stitchwork::gui {

TablePage::TablePage(const QString& empty, QWidget* parent) : QWidget(parent) {
  auto* layout = new QVBoxLayout(this);
  layout->setContentsMargins(0, 0, 0, 0);
  layout->setSpacing(0);
  header_ = new QHBoxLayout;
  header_->setContentsMargins(6, 4, 6, 4);
  header_->setSpacing(6);
  filter_ = new QLineEdit;
  filter_->setPlaceholderText(tr("Filter"));
  filter_->setClearButtonEnabled(true);
  filter_->setMaximumWidth(320);
  header_->addWidget(filter_);
  header_->addStretch(1);
  layout->addLayout(header_);

  proxy_.setSourceModel(&model_);
  proxy_.setSortRole(kSortRole);
  proxy_.setFilterKeyColumn(-1);
  proxy_.setFilterCaseSensitivity(Qt::CaseInsensitive);
  view_ = new QTableView;
  view_->setModel(&proxy_);
  view_->setSortingEnabled(true);
  view_->setSelectionBehavior(QAbstractItemView::SelectRows);
  view_->setSelectionMode(QAbstractItemView::SingleSelection);
  view_->setAlternatingRowColors(true);
  view_->setShowGrid(false);
  view_->setWordWrap(false);
  view_->setTabKeyNavigation(false);
  view_->verticalHeader()->hide();
  view_->verticalHeader()->setDefaultSectionSize(24);
  view_->horizontalHeader()->setHighlightSections(false);
  view_->horizontalHeader()->setStretchLastSection(true);
  view_->horizontalHeader()->setSortIndicatorClearable(false);
  view_->sortByColumn(-1, Qt::AscendingOrder);
  layout->addWidget(view_, 1);
  empty_ = new QLabel(empty);
  empty_->setAlignment(Qt::AlignCenter);
  empty_->setWordWrap(true);
  empty_->setForegroundRole(QPalette::PlaceholderText);
  empty_->setMargin(16);
  layout->addWidget(empty_, 1);

  const auto show_either = [this] {
    const bool any = model_.rowCount() > 0;
    view_->setVisible(any);
    filter_->setVisible(any && filtered_);
    empty_->setVisible(!any);
  };
  connect(&model_, &QAbstractItemModel::modelReset, this, show_either);
  show_either();
  connect(filter_, &QLineEdit::textChanged, &proxy_, &QSortFilterProxyModel::setFilterFixedString);
  connect(view_->selectionModel(), &QItemSelectionModel::currentRowChanged, this,
          [this](const QModelIndex& now) {
            if (!quiet_ && now.isValid()) emit key_selected(now.data(kKeyRole));
          });
  connect(view_, &QTableView::activated, this,
          [this](const QModelIndex& at) { emit key_activated(at.data(kKeyRole)); });
}

void TablePage::show_filter(bool on) {
  filtered_ = on;
  filter_->setVisible(on && model_.rowCount() > 0);
}

void TablePage::fit_columns(int widest) {
  constexpr int kSampled = 60;
  const QFontMetrics metrics(view_->font());
  for (int c = 0; c < proxy_.columnCount(); ++c) {
    int wide = QFontMetrics(view_->horizontalHeader()->font())
                   .horizontalAdvance(proxy_.headerData(c, Qt::Horizontal).toString()) +
               34;
    for (int r = 0; r < std::min(kSampled, proxy_.rowCount()); ++r)
      wide = std::max(wide, metrics.horizontalAdvance(proxy_.index(r, c).data().toString()) + 18);
    view_->setColumnWidth(c, std::min(wide, widest));
  }
}

void TablePage::select_key(const QVariant& key) {
  quiet_ = true;
  bool found = false;
  for (int r = 0; r < proxy_.rowCount() && !found; ++r) {
    const QModelIndex at = proxy_.index(r, 0);
    if (at.data(kKeyRole) != key) continue;
    view_->setCurrentIndex(at);
    view_->scrollTo(at);
    found = true;
  }
  if (!found) view_->selectionModel()->clear();
  quiet_ = false;
}

QVariant TablePage::current_key() const {
  const QModelIndex at = view_->currentIndex();
  return at.isValid() ? at.data(kKeyRole) : QVariant();
}

}  // namespace stitchwork::gui
