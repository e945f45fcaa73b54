#include "gui/view/source_view.h"

#include <QFontDatabase>
#include <QFontMetricsF>
#include <QGuiApplication>
#include <QHBoxLayout>
#include <QHelpEvent>
#include <QLabel>
#include <QMouseEvent>
#include <QPushButton>
#include <QRegularExpression>
#include <QSplitter>
#include <QTextBlock>
#include <QToolTip>
#include <QVBoxLayout>
#include <algorithm>
#include <set>

#include "codegen/compile/lines.h"
#include "core/base/error.h"
#include "gui/model/tables.h"
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
  edit->setTabStopDistance(4 * QFontMetricsF(edit->font()).horizontalAdvance(' '));  // PTX is full of tabs
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
  links_ = new QLabel;
  links_->setObjectName("ptx_links");
  header->addWidget(title_, 1);
  header->addWidget(links_);
  header->addWidget(compile_);
  layout->addLayout(header);
  sides_ = new QSplitter(Qt::Horizontal);
  cuda_ = code_edit(tr("CUDA source"));
  ptx_ = code_edit(tr("PTX"));
  highlighters_ = {new CodeHighlighter(cuda_->document(), false),
                   new CodeHighlighter(ptx_->document(), true)};
  for (QPlainTextEdit* edit : {cuda_, ptx_}) {
    sides_->addWidget(edit);
    edit->viewport()->installEventFilter(this);
    edit->installEventFilter(this);
  }
  sides_->setChildrenCollapsible(false);
  sides_->setStretchFactor(0, 3);
  sides_->setStretchFactor(1, 2);
  layout->addWidget(sides_, 1);
  cuda_->setPlaceholderText(
      tr("Select a kernel or an op: the CUDA source that is generated for it appears here."));
  connect(compile_, &QPushButton::clicked, this, &SourceView::compile);
  connect(&selection_, &SelectionModel::changed, this, &SourceView::follow_selection);
  connect(&session_, &Session::result_changed, this, [this] {
    follow_selection();
    show_executed();
  });
  connect(&session_.jobs(), &Jobs::failed, this, [this](int lane, const Problem& problem) {
    if (lane == Jobs::kSource && source_.cuda.isEmpty()) cuda_->setPlainText("// " + problem.text());
  });
  clear_source();
  follow_selection();
}

void SourceView::clear_source() {
  session_.jobs().cancel(Jobs::kSource);
  source_ = {};
  line_ = 0;
  cuda_->clear();
  show_ptx({});
}

void SourceView::follow_selection() {
  const PlannedPtr planned = session_.planned();
  const int step = selection_.current().step;
  if (!planned || !planned->has_step(step)) {
    if (!planned || loaded_from_ != planned) {
      clear_source();
      title_->setText(tr("No kernel selected"));
      compile_->setEnabled(false);
    }
    return;
  }
  if (source_.step != step || loaded_from_ != planned) return load(step);
  if (source_.op_of_line(line_) != selection_.current().op) line_ = 0;
  mark();
}

void SourceView::load(int step) {
  const PlannedPtr planned = session_.planned();
  clear_source();
  source_.step = step;
  loaded_from_ = planned;
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
        show_executed();
        mark();
      });
}

/// The PTX of the run, until the kernel is compiled with its lines.
void SourceView::show_executed() {
  const PlannedPtr planned = session_.planned();
  const auto result = session_.result();
  if (!result || loaded_from_ != planned || !planned->has_step(source_.step) || !source_.lines.empty())
    return;
  const StepRow& row = planned->row(source_.step);
  if (row.kernel < 0 || row.body >= 0 || source_.cuda.isEmpty() ||
      !(result->executable.plan.edits == planned->plan->edits) ||
      row.kernel >= static_cast<int>(result->executable.kernels.size()))
    return;
  const auto kernel = static_cast<std::size_t>(row.kernel);
  show_ptx(result->executable.kernels[kernel].ptx);
  for (const sim::LineCounters& line : result->run.kernels.at(kernel).lines) ran_[line.line] = line;
  mark();
}

/// What the line's instructions did in the run; "" where they did nothing.
QString SourceView::line_text(int line) const {
  const auto ran = ran_.find(line);
  if (ran == ran_.end()) return {};
  double all = 0;
  for (const auto& [at, counters] : ran_) all += static_cast<double>(counters.issue_slots);
  const sim::LineCounters& l = ran->second;
  const QString issued = tr("%1 warp instructions, %2 of threads, %3 % of all issue slots")
                             .arg(grouped(static_cast<long long>(l.inst_executed)),
                                  grouped(static_cast<long long>(l.thread_inst_executed)))
                             .arg(all > 0 ? 100 * static_cast<double>(l.issue_slots) / all : 0, 0, 'f', 1);
  const std::uint64_t sectors = l.gld_transactions + l.gst_transactions + l.l2_atomic_sectors;
  const QString memory = sectors > 0 ? tr(", %1 sectors").arg(grouped(static_cast<long long>(sectors)))
                         : l.shared_wavefronts > 0
                             ? tr(", %1 clocks of shared memory, %2 bank conflicts")
                                   .arg(grouped(static_cast<long long>(l.shared_wavefronts)),
                                        grouped(static_cast<long long>(l.shared_bank_conflicts)))
                             : QString();
  return issued + memory + tr(" (simulated)");
}

void SourceView::compile() {
  const PlannedPtr planned = session_.planned();
  const int step = source_.step;
  if (!planned || planned->kernel(step) == nullptr) return;
  session_.jobs().start(
      Jobs::kSource, tr("compiling %1").arg(title_->text()),
      [planned, step](const JobContext&) {
        return compile_with_lines(planned->part(step).graph(), *planned->device, *planned->kernel(step));
      },
      [this](const std::string& ptx) {
        show_ptx(ptx);
        mark();
      });
}

void SourceView::show_ptx(const std::string& ptx) {
  ran_.clear();
  source_.set_ptx(ptx);
  ptx_->setPlainText(source_.ptx);
  ptx_->setVisible(!ptx.empty());
  links_->setText(
      ptx.empty() ? QString()
      : source_.lines.empty()
          ? tr("PTX as it was executed, busy lines shaded; compile it to link its lines with the CUDA's")
          : tr("A click on a line shows it in both, and selects its op"));
}

/// The line, the op it computes and what else is of it; `from` was clicked and stays as it is.
void SourceView::follow_line(int line, const QPlainTextEdit* from) {
  const NodeId op = source_.op_of_line(line);
  line_ = line;
  if (op != kNoNode && op != selection_.current().op) selection_.select({source_.step, -1, op});
  line_ = line;
  mark(from);
}

void SourceView::clicked(QPlainTextEdit* edit, const QTextCursor& at) {
  if (edit->textCursor().hasSelection() || source_.step < 0) return;
  if (edit == ptx_) {
    const auto line = static_cast<std::size_t>(at.blockNumber());
    if (line < source_.lines.size() && source_.lines[line] > 0) follow_line(source_.lines[line], ptx_);
    return;
  }
  // The word under the mouse says more than the line's first.
  const NodeId op = source_.op_at(at.position());
  line_ = at.blockNumber() + 1;
  if (op != kNoNode && op != source_.op_of_line(line_)) {
    selection_.select({source_.step, -1, op});
    line_ = at.blockNumber() + 1;
    return mark(cuda_);
  }
  follow_line(line_, cuda_);
}

/// Every mention of the selected op, the chosen line here and there, and the first of them in view.
void SourceView::mark(const QPlainTextEdit* stays) {
  const NodeId op = selection_.current().op;
  QColor fill = theme(palette()).accent;
  fill.setAlpha(70);
  QColor pale = fill;
  pale.setAlpha(36);
  const auto whole_line = [&](QPlainTextEdit* edit, int block) {
    QTextEdit::ExtraSelection mark;
    mark.cursor = QTextCursor(edit->document()->findBlockByNumber(block));
    mark.format.setBackground(pale);
    mark.format.setProperty(QTextFormat::FullWidthSelection, true);
    return mark;
  };
  QList<QTextEdit::ExtraSelection> in_cuda, in_ptx;
  std::uint64_t busiest = 0;
  for (const auto& [line, counters] : ran_) busiest = std::max(busiest, counters.issue_slots);
  for (const auto& [line, counters] : ran_) {
    constexpr int kDarkest = 110;  // of 255: text stays readable
    QColor shade = theme(palette()).hit;
    shade.setAlpha(static_cast<int>(kDarkest * counters.issue_slots / std::max<std::uint64_t>(busiest, 1)));
    in_ptx << whole_line(ptx_, line - 1);
    in_ptx.back().format.setBackground(shade);
  }
  if (line_ > 0) in_cuda << whole_line(cuda_, line_ - 1);
  for (const SourceMention& m : source_.mentions) {
    if (m.op != op || op == kNoNode) continue;
    QTextEdit::ExtraSelection mark;
    mark.cursor = QTextCursor(cuda_->document());
    mark.cursor.setPosition(m.begin);
    mark.cursor.setPosition(m.begin + m.length, QTextCursor::KeepAnchor);
    mark.format.setBackground(fill);
    in_cuda << mark;
  }
  std::set<int> lines;  // of the CUDA, whose PTX is marked
  if (line_ > 0) lines.insert(line_);
  for (const SourceMention& m : source_.mentions)
    if (line_ == 0 && m.op == op && op != kNoNode && source_.op_of_line(m.line) == op) lines.insert(m.line);
  for (std::size_t i = 0; i < source_.lines.size(); ++i)
    if (lines.contains(source_.lines[i]) && source_.lines[i] > 0)
      in_ptx << whole_line(ptx_, static_cast<int>(i));
  cuda_->setExtraSelections(in_cuda);
  ptx_->setExtraSelections(in_ptx);
  const auto bring = [stays](QPlainTextEdit* edit, const QList<QTextEdit::ExtraSelection>& marks) {
    if (marks.isEmpty() || edit == stays) return;
    QTextCursor cursor = marks.front().cursor;
    cursor.setPosition(cursor.selectionStart());
    edit->setTextCursor(cursor);
    edit->centerCursor();
  };
  bring(cuda_, in_cuda);
  bring(ptx_, in_ptx.mid(static_cast<qsizetype>(ran_.size())));
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
  if (event->type() == QEvent::ToolTip && watched == ptx_->viewport()) {
    const auto* help = static_cast<QHelpEvent*>(event);
    QToolTip::showText(help->globalPos(), line_text(ptx_->cursorForPosition(help->pos()).blockNumber() + 1));
    return true;
  }
  for (QPlainTextEdit* edit : {cuda_, ptx_}) {
    if (event->type() == QEvent::MouseButtonRelease && watched == edit->viewport())
      clicked(edit, edit->cursorForPosition(static_cast<QMouseEvent*>(event)->position().toPoint()));
    if (event->type() == QEvent::KeyPress && watched == edit &&
        static_cast<QKeyEvent*>(event)->key() == Qt::Key_Return) {
      clicked(edit, edit->textCursor());
      return true;
    }
  }
  return QWidget::eventFilter(watched, event);
}

}  // namespace stitchwork::gui
