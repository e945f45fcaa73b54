#include "gui/view/source_view.h"

#include <QFontDatabase>
#include <QGuiApplication>
#include <QHBoxLayout>
#include <QLabel>
#include <QMouseEvent>
#include <QPushButton>
#include <QRegularExpression>
#include <QTabWidget>
#include <QTextBlock>
#include <QVBoxLayout>

#include "codegen/executable.h"
#include "core/error.h"
#include "gui/view/theme.h"

namespace stitchwork::gui {
namespace {

struct Rule {
  QRegularExpression pattern;
  int kind;  ///< 0 keyword, 1 type, 2 number, 3 intrinsic, 4 preprocessor, 5 comment
};

const std::vector<Rule>& rules(bool ptx) {
  static const std::vector<Rule> kCuda = {
      {QRegularExpression(
           "\\b(for|if|else|while|return|const|extern|template|struct|static|inline|typedef|using)\\b"),
       0},
      {QRegularExpression("\\b(int|unsigned|float|double|void|char|bool|long|short|size_t|u?int\\d+_t|__half|"
                          "__nv_bfloat16|SwVector)\\b"),
       1},
      {QRegularExpression("\\b(0x[0-9a-fA-F]+u?|\\d+(\\.\\d*)?([eE][-+]?\\d+)?[fFuUlL]*)\\b"), 2},
      {QRegularExpression("\\b(__\\w+|sw_\\w+|threadIdx|blockIdx|blockDim|gridDim)\\b"), 3},
      {QRegularExpression("^\\s*#.*$"), 4},
      {QRegularExpression("//.*$"), 5}};
  static const std::vector<Rule> kPtx = {{QRegularExpression("^\\s*(@!?%p\\d+\\s+)?[a-z][\\w.]*"), 0},
                                         {QRegularExpression("%[a-z]+\\d*"), 1},
                                         {QRegularExpression("\\b(0[xfFdD][0-9a-fA-F]+|\\d+)\\b"), 2},
                                         {QRegularExpression("^\\s*\\.[\\w.]+"), 3},
                                         {QRegularExpression("^\\$?\\w+:"), 4},
                                         {QRegularExpression("//.*$"), 5}};
  return ptx ? kPtx : kCuda;
}

QPlainTextEdit* code_edit(const QString& name) {
  auto* edit = new QPlainTextEdit;
  edit->setReadOnly(true);
  edit->setLineWrapMode(QPlainTextEdit::NoWrap);
  edit->setFont(QFontDatabase::systemFont(QFontDatabase::FixedFont));
  edit->setFrameShape(QFrame::NoFrame);
  edit->setTextInteractionFlags(Qt::TextSelectableByMouse | Qt::TextSelectableByKeyboard);
  edit->setAccessibleName(name);
  return edit;
}

}  // namespace

CodeHighlighter::CodeHighlighter(QTextDocument* document, bool ptx)
    : QSyntaxHighlighter(document), ptx_(ptx) {}

void CodeHighlighter::highlightBlock(const QString& text) {
  const bool dark = theme(QGuiApplication::palette()).dark;
  static const QColor kLight[] = {"#8250a8", "#0b6e99", "#9a5b00", "#00636b", "#7a5300", "#5c6470"};
  static const QColor kDark[] = {"#d0a0f0", "#7cc7ea", "#e8b36a", "#6fd0c8", "#d9b87c", "#9aa3ae"};
  for (const Rule& rule : rules(ptx_)) {
    auto match = rule.pattern.globalMatch(text);
    while (match.hasNext()) {
      const auto m = match.next();
      QTextCharFormat format;
      format.setForeground((dark ? kDark : kLight)[rule.kind]);
      if (rule.kind == 0) format.setFontWeight(QFont::DemiBold);
      setFormat(static_cast<int>(m.capturedStart()), static_cast<int>(m.capturedLength()), format);
    }
  }
}

SourceView::SourceView(Session& session, SelectionModel& selection, QWidget* parent)
    : QWidget(parent), session_(session), selection_(selection) {
  auto* layout = new QVBoxLayout(this);
  layout->setContentsMargins(0, 0, 0, 0);
  layout->setSpacing(0);
  auto* header = new QHBoxLayout;
  header->setContentsMargins(8, 4, 8, 4);
  header->setSpacing(6);
  title_ = new QLabel;
  compile_ = new QPushButton(tr("Compile to PTX"));
  compile_->setObjectName("compile");
  compile_->setToolTip(tr("With NVRTC where a CUDA toolkit is found, else with clang"));
  header->addWidget(title_, 1);
  header->addWidget(compile_);
  layout->addLayout(header);
  tabs_ = new QTabWidget;
  cuda_ = code_edit(tr("CUDA source"));
  ptx_ = code_edit(tr("PTX"));
  highlighters_ = {new CodeHighlighter(cuda_->document(), false),
                   new CodeHighlighter(ptx_->document(), true)};
  tabs_->addTab(cuda_, tr("CUDA C++"));
  tabs_->addTab(ptx_, tr("PTX"));
  tabs_->setDocumentMode(true);
  layout->addWidget(tabs_, 1);
  ptx_->setPlaceholderText(tr("Compile the kernel to see its PTX, or run the plan in the simulator."));
  cuda_->setPlaceholderText(
      tr("Select a kernel or an op: the CUDA source that is generated for it appears here."));
  cuda_->viewport()->installEventFilter(this);
  connect(compile_, &QPushButton::clicked, this, &SourceView::compile);
  connect(&selection_, &SelectionModel::changed, this, &SourceView::follow_selection);
  connect(&session_, &Session::result_changed, this, &SourceView::follow_selection);
  follow_selection();
}

void SourceView::follow_selection() {
  const PlannedPtr planned = session_.planned();
  const int step = selection_.current().step;
  if (!planned || !planned->has_step(step)) {
    if (!planned || loaded_from_ != planned) {
      source_ = {};
      cuda_->clear();
      ptx_->clear();
      title_->setText(tr("No kernel selected"));
      compile_->setEnabled(false);
    }
    return;
  }
  if (source_.step != step || loaded_from_ != planned) return load(step);
  mark();
}

void SourceView::load(int step) {
  const PlannedPtr planned = session_.planned();
  source_ = {};
  source_.step = step;
  loaded_from_ = planned;
  cuda_->clear();
  ptx_->clear();
  const StepRow& row = planned->row(step);
  title_->setText(QString::fromStdString(row.id + " " + row.name));
  compile_->setEnabled(row.kernel >= 0);
  if (row.kernel < 0) {
    cuda_->setPlainText(tr("// %1 is no generated kernel: a library or the device does it.")
                            .arg(QString::fromStdString(row.id)));
    return;
  }
  session_.jobs().start(
      Jobs::kSource, tr("generating the source of %1").arg(title_->text()),
      [planned, step](const JobContext&) { return kernel_source(*planned, step); },
      [this](KernelSource source) {
        source_ = std::move(source);
        cuda_->setPlainText(source_.cuda);
        const auto result = session_.result();
        const StepRow& row = session_.planned()->row(source_.step);
        const int kernel = row.kernel;
        if (result && row.body < 0 && result->executable.plan.edits == session_.planned()->plan->edits &&
            kernel < static_cast<int>(result->executable.kernels.size()))
          ptx_->setPlainText(
              QString::fromStdString(result->executable.kernels[static_cast<std::size_t>(kernel)].ptx));
        mark();
      });
}

void SourceView::compile() {
  const PlannedPtr planned = session_.planned();
  const int step = source_.step;
  if (!planned || planned->kernel(step) == nullptr) return;
  session_.jobs().start(
      Jobs::kSource, tr("compiling %1").arg(title_->text()),
      [planned, step](const JobContext&) {
        // A plan of the one kernel: compile() takes whole plans.
        const PlannedModel& part = planned->part(step);
        FusionPlan one = *part.plan;
        one.kernels = {*planned->kernel(step)};
        one.steps = {planned->plan_step(step)};
        one.steps[0].kernel = 0;
        one.computations.clear();
        return QString::fromStdString(
            stitchwork::compile(part.graph(), *planned->device, one).kernels.at(0).ptx);
      },
      [this](const QString& ptx) {
        source_.ptx = ptx;
        ptx_->setPlainText(ptx);
        tabs_->setCurrentWidget(ptx_);
      });
}

/// Every mention of the selected op, and the first one in view.
void SourceView::mark() {
  QList<QTextEdit::ExtraSelection> marks;
  const NodeId op = selection_.current().op;
  const std::vector<int> at = op == kNoNode ? std::vector<int>{} : source_.positions(op);
  QColor fill = theme(palette()).accent;
  fill.setAlpha(70);
  for (const SourceMention& m : source_.mentions) {
    if (m.op != op || op == kNoNode) continue;
    QTextEdit::ExtraSelection mark;
    mark.cursor = QTextCursor(cuda_->document());
    mark.cursor.setPosition(m.begin);
    mark.cursor.setPosition(m.begin + m.length, QTextCursor::KeepAnchor);
    mark.format.setBackground(fill);
    marks << mark;
  }
  cuda_->setExtraSelections(marks);
  if (at.empty()) return;
  QTextCursor cursor(cuda_->document());
  cursor.setPosition(at.front());
  cuda_->setTextCursor(cursor);
  cuda_->centerCursor();
}

/// Words carry the colours of the appearance they were set in.
void SourceView::changeEvent(QEvent* event) {
  if (event->type() == QEvent::PaletteChange) {
    for (CodeHighlighter* highlighter : highlighters_) highlighter->rehighlight();
    mark();
  }
  QWidget::changeEvent(event);
}

bool SourceView::eventFilter(QObject* watched, QEvent* event) {
  if (event->type() == QEvent::MouseButtonRelease && watched == cuda_->viewport()) {
    const auto* mouse = static_cast<QMouseEvent*>(event);
    const QTextCursor cursor = cuda_->cursorForPosition(mouse->position().toPoint());
    const NodeId op = source_.op_at(cursor.position());
    if (op != kNoNode && !cuda_->textCursor().hasSelection()) {
      Selection s{source_.step, -1, op};
      selection_.select(s);
    }
  }
  return QWidget::eventFilter(watched, event);
}

}  // namespace stitchwork::gui
