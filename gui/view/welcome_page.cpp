#include "gui/view/welcome_page.h"

#include <QApplication>
#include <QClipboard>
#include <QFileInfo>
#include <QFrame>
#include <QGridLayout>
#include <QLabel>
#include <QPushButton>
#include <QScrollArea>
#include <QVBoxLayout>

#include "experiments/model.h"
#include "gui/model/tables.h"
#include "gui/model/text.h"

namespace stitchwork::gui {
namespace {

/// Samples in the order of a first visit: the paper's example, then models people know.
constexpr const char* kSamples[] = {"fig7",        "softmax", "layer_norm_grad", "bert_layer",
                                    "bert_base",   "bert",    "transformer",     "gpt2_decoder_10k",
                                    "llama_layer", "vit_b16", "unet_block",      "moe_layer"};

QLabel* heading(const QString& text) {
  auto* label = new QLabel(text);
  QFont font = label->font();
  font.setPointSizeF(font.pointSizeF() * 1.15);
  font.setBold(true);
  label->setFont(font);
  return label;
}

}  // namespace

WelcomePage::WelcomePage(QWidget* parent) : QWidget(parent) {
  auto* outer = new QVBoxLayout(this);
  outer->setContentsMargins(0, 0, 0, 0);
  auto* scroll = new QScrollArea;
  scroll->setWidgetResizable(true);
  scroll->setFrameShape(QFrame::NoFrame);
  outer->addWidget(scroll);
  auto* page = new QWidget;
  scroll->setWidget(page);
  auto* centred = new QHBoxLayout(page);
  auto* column = new QVBoxLayout;
  centred->addStretch(1);
  centred->addLayout(column, 8);
  centred->addStretch(1);
  column->setSpacing(10);
  column->addSpacing(28);

  auto* title = new QLabel("Stitchwork");
  QFont font = title->font();
  font.setPointSizeF(font.pointSizeF() * 2.4);
  font.setBold(true);
  title->setFont(font);
  column->addWidget(title);
  auto* line = new QLabel(tr("How would this model be fused, why, and how fast would it be?"));
  line->setWordWrap(true);
  column->addWidget(line);

  make_problem();
  column->addWidget(problem_);

  auto* row = new QHBoxLayout;
  auto* browse_button = new QPushButton(tr("Open a model or plan …"));
  browse_button->setObjectName("browse");
  browse_button->setToolTip(tr("HLO text (.hlo, .txt), ONNX (.onnx), either also .gz, or a plan (.json)"));
  connect(browse_button, &QPushButton::clicked, this, &WelcomePage::browse);
  row->addWidget(browse_button);
  row->addWidget(new QLabel(tr("or drop a file here: HLO text, ONNX, a saved plan, DOT")));
  row->addStretch(1);
  column->addLayout(row);
  column->addSpacing(10);

  column->addWidget(heading(tr("Sample models")));
  column->addLayout(samples());

  column->addSpacing(10);
  column->addWidget(heading(tr("Recent")));
  recent_ = new QVBoxLayout;
  recent_->setSpacing(2);
  column->addLayout(recent_);
  auto* hint = new QLabel(tr("Ctrl+O opens · Ctrl+Shift+P lists every command · F1 explains the keys"));
  hint->setForegroundRole(QPalette::PlaceholderText);
  column->addSpacing(12);
  column->addWidget(hint);
  column->addStretch(1);
  set_recent({});
}

void WelcomePage::make_problem() {
  problem_ = new QFrame;
  problem_->setObjectName("problem");
  static_cast<QFrame*>(problem_)->setFrameShape(QFrame::StyledPanel);
  auto* problem_layout = new QVBoxLayout(problem_);
  problem_title_ = heading({});
  problem_title_->setWordWrap(true);
  problem_text_ = new QLabel;
  problem_text_->setObjectName("problem_text");
  problem_text_->setWordWrap(true);
  problem_text_->setTextFormat(Qt::PlainText);
  problem_text_->setTextInteractionFlags(Qt::TextSelectableByMouse | Qt::TextSelectableByKeyboard);
  auto* copy = new QPushButton(tr("Copy text"));
  copy->setObjectName("copy_problem");
  connect(copy, &QPushButton::clicked, this,
          [this] { QApplication::clipboard()->setText(problem_text_->text()); });
  problem_layout->addWidget(problem_title_);
  problem_layout->addWidget(problem_text_);
  problem_layout->addWidget(copy, 0, Qt::AlignLeft);
  problem_->hide();
}

QGridLayout* WelcomePage::samples() {
  auto* grid = new QGridLayout;
  grid->setSpacing(8);
  constexpr int kColumns = 3;
  int at = 0;
  const std::vector<Dataset> known = datasets();
  for (const char* sample : kSamples) {
    for (const Dataset& d : known) {
      if (d.name != sample) continue;
      auto* card = new QPushButton;
      card->setObjectName("sample_" + q(d.name));
      card->setText(d.ops > 0 ? tr("%1\n%2 · %3 instructions").arg(q(d.title), q(d.name), grouped(d.ops))
                              : tr("%1\n%2").arg(q(d.title), q(d.name)));
      card->setToolTip(q(d.description));
      card->setStyleSheet(
          "QPushButton { text-align: left; padding: 9px 12px; border: 1px solid palette(mid); border-radius: "
          "6px;"
          " background: palette(base); }"
          "QPushButton:hover, QPushButton:focus { border-color: palette(highlight); }");
      card->setSizePolicy(QSizePolicy::Expanding, QSizePolicy::Fixed);
      connect(card, &QPushButton::clicked, this, [this, name = q(d.name)] { emit open(name); });
      grid->addWidget(card, at / kColumns, at % kColumns);
      ++at;
    }
  }
  for (int c = 0; c < kColumns; ++c) grid->setColumnStretch(c, 1);
  if (at == 0)
    grid->addWidget(new QLabel(tr("No sample models found: set STITCHWORK_DATASETS to their folder.")));
  return grid;
}

void WelcomePage::set_recent(const QStringList& files) {
  while (QLayoutItem* item = recent_->takeAt(0)) {
    delete item->widget();
    delete item;
  }
  if (files.isEmpty()) {
    auto* none = new QLabel(tr("Models you open are listed here."));
    none->setForegroundRole(QPalette::PlaceholderText);
    recent_->addWidget(none);
  }
  for (const QString& file : files) {
    auto* button = new QPushButton(file);
    button->setFlat(true);
    button->setStyleSheet("QPushButton { text-align: left; padding: 3px 6px; }");
    button->setToolTip(QFileInfo::exists(file) ? file : tr("sample model %1").arg(file));
    connect(button, &QPushButton::clicked, this, [this, file] { emit open(file); });
    recent_->addWidget(button);
  }
}

void WelcomePage::set_problem(const QString& title, const QString& text) {
  problem_title_->setText(title);
  problem_text_->setText(text);
  problem_->setVisible(!text.isEmpty());
}

}  // namespace stitchwork::gui
