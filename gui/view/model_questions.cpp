#include "gui/view/model_questions.h"

#include <QDialogButtonBox>
#include <QFileDialog>
#include <QFileInfo>
#include <QGridLayout>
#include <QLabel>
#include <QLineEdit>
#include <QPushButton>
#include <QScrollArea>
#include <QSettings>
#include <QUrl>
#include <QVBoxLayout>

#include "gui/model/text.h"

namespace stitchwork::gui {
namespace {

using Kind = OnnxQuestion::Kind;

/// Sizes beyond it are of no model.
constexpr qlonglong kLargest = 1LL << 31;

bool acceptable(const OnnxQuestion& question, const QString& answer) {
  if (question.kind == Kind::kValue) return !answer.trimmed().isEmpty();
  bool number = false;
  const qlonglong size = answer.trimmed().toLongLong(&number);
  return number && size >= 0 && size <= kLargest;
}

/// "dim batch=8", "value shape=2,3": a line of the settings an answer.
constexpr const char* kWords[] = {"dim ", "value "};

QString settings_key(const QString& file) {
  return "answers/" + QString::fromLatin1(QUrl::toPercentEncoding(QFileInfo(file).absoluteFilePath()));
}

}  // namespace

ModelQuestions::ModelQuestions(const QString& file, const std::vector<OnnxQuestion>& questions,
                               const Answers& known, const QString& note, QWidget* parent)
    : QDialog(parent) {
  setObjectName("model_questions");
  setWindowTitle(tr("%1 leaves something open").arg(QFileInfo(file).fileName()));
  auto* layout = new QVBoxLayout(this);
  auto* text = new QLabel(
      tr("What the shapes in this model depend on is not written in it. A plan is made for the sizes given "
         "here; they are remembered for this file."));
  text->setWordWrap(true);
  layout->addWidget(text);
  auto* wrong = new QLabel(note);
  wrong->setObjectName("answer_problem");
  wrong->setWordWrap(true);
  wrong->setTextInteractionFlags(Qt::TextSelectableByMouse | Qt::TextSelectableByKeyboard);
  wrong->setVisible(!note.isEmpty());
  layout->addWidget(wrong);
  auto* form = new QWidget;
  auto* grid = new QGridLayout(form);
  grid->setColumnStretch(1, 1);
  for (const OnnxQuestion& question : questions) {
    const int row = grid->rowCount();
    auto* name = new QLabel(q(question.name));
    QFont bold = name->font();
    bold.setBold(true);
    name->setFont(bold);
    QLineEdit* edit = add_row(question, known);
    name->setBuddy(edit);
    grid->addWidget(name, row, 0);
    grid->addWidget(edit, row, 1);
    if (question.kind == Kind::kValue) {
      auto* browse = new QPushButton(tr("File …"));
      grid->addWidget(browse, row, 2);
      connect(browse, &QPushButton::clicked, this, [this, edit] {
        const QString chosen =
            QFileDialog::getOpenFileName(this, tr("Value of an input"), {}, tr("Arrays (*.npy)"));
        if (!chosen.isEmpty()) edit->setText(chosen);
      });
    }
    auto* what = new QLabel(question.kind == Kind::kDimension
                                ? tr("size of %1").arg(q(question.of))
                                : tr("value of this input, %1: numbers, or a .npy file").arg(q(question.of)));
    what->setWordWrap(true);
    grid->addWidget(what, row + 1, 1, 1, 2);
  }
  grid->setRowStretch(grid->rowCount(), 1);  // what is left over is below, not between
  auto* scroll = new QScrollArea;
  scroll->setWidgetResizable(true);
  scroll->setFrameShape(QFrame::NoFrame);
  scroll->setWidget(form);
  layout->addWidget(scroll, 1);
  auto* buttons = new QDialogButtonBox(QDialogButtonBox::Open | QDialogButtonBox::Cancel);
  open_ = buttons->button(QDialogButtonBox::Open);
  connect(buttons, &QDialogButtonBox::accepted, this, &QDialog::accept);
  connect(buttons, &QDialogButtonBox::rejected, this, &QDialog::reject);
  layout->addWidget(buttons);
  constexpr int kWidth = 460, kTallest = 620;
  resize(kWidth, std::min(kTallest, form->sizeHint().height() + 160));
  check();
  if (!rows_.empty()) {
    rows_.front().second->setFocus();
    rows_.front().second->selectAll();
  }
}

QLineEdit* ModelQuestions::add_row(const OnnxQuestion& question, const Answers& known) {
  auto* edit = new QLineEdit;
  edit->setObjectName("answer_" + q(question.name));
  edit->setAccessibleName(q(question.name));
  const auto before = known.find({question.kind, question.name});
  edit->setText(before != known.end() ? before->second : q(question.suggestion));
  if (question.kind == Kind::kValue) edit->setPlaceholderText(tr("2,3"));
  connect(edit, &QLineEdit::textChanged, this, &ModelQuestions::check);
  rows_.emplace_back(question, edit);
  return edit;
}

void ModelQuestions::check() {
  QString wrong;
  for (const auto& [question, edit] : rows_)
    if (!acceptable(question, edit->text()) && wrong.isEmpty())
      wrong = question.kind == Kind::kValue ? tr("%1 needs a value").arg(q(question.name))
                                            : tr("%1 needs a size, a whole number").arg(q(question.name));
  open_->setEnabled(wrong.isEmpty());
  open_->setToolTip(wrong);
}

Answers ModelQuestions::answers() const {
  Answers given;
  for (const auto& [question, edit] : rows_) given[{question.kind, question.name}] = edit->text().trimmed();
  return given;
}

OnnxOptions ModelQuestions::options() const {
  OnnxOptions options;
  for (const auto& [question, edit] : rows_) {
    const QString answer = edit->text().trimmed();
    if (question.kind == Kind::kValue)
      options.values[question.name] = answer.toStdString();
    else
      options.dims[question.name] = answer.toLongLong();
  }
  return options;
}

Answers remembered_answers(QSettings& settings, const QString& file) {
  Answers answers;
  for (const QString& line : settings.value(settings_key(file)).toStringList())
    for (const Kind kind : {Kind::kDimension, Kind::kValue}) {
      const QString word = kWords[static_cast<int>(kind)];
      const qsizetype equals = line.lastIndexOf('=');
      if (line.startsWith(word) && equals > word.size())
        answers[{kind, line.mid(word.size(), equals - word.size()).toStdString()}] = line.mid(equals + 1);
    }
  return answers;
}

void remember_answers(QSettings& settings, const QString& file, const Answers& answers) {
  QStringList lines;
  for (const auto& [key, answer] : answers)
    lines << kWords[static_cast<int>(key.first)] + q(key.second) + "=" + answer;
  settings.setValue(settings_key(file), lines);
}

}  // namespace stitchwork::gui
