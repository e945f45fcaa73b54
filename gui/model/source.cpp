#include "gui/model/source.h"

#include <QHash>
#include <algorithm>

#include "analysis/plan/assemble.h"
#include "codegen/compile/lines.h"
#include "codegen/kernel.h"
#include "core/base/file.h"

namespace stitchwork::gui {
namespace {

QString identifier(const std::string& name) {
  QString text = QString::fromStdString(name);
  for (QChar& c : text)
    if (!c.isLetterOrNumber() && c != '_') c = '_';
  return text;
}

bool in_identifier(QChar c) { return c.isLetterOrNumber() || c == '_'; }

}  // namespace

NodeId KernelSource::op_at(int position) const {
  for (const SourceMention& m : mentions)
    if (position >= m.begin && position <= m.begin + m.length) return m.op;
  return kNoNode;
}

std::vector<int> KernelSource::positions(NodeId op) const {
  std::vector<int> found;
  for (const SourceMention& m : mentions)
    if (m.op == op) found.push_back(m.begin);
  return found;
}

void KernelSource::set_ptx(const std::string& text) {
  ptx = QString::fromStdString(text);
  lines = source_lines(text);
  if (std::all_of(lines.begin(), lines.end(), [](int line) { return line == 0; })) lines.clear();
}

NodeId KernelSource::op_of_line(int line) const {
  for (const SourceMention& m : mentions)
    if (line > 0 && m.line == line) return m.op;
  return kNoNode;
}

std::vector<int> KernelSource::ptx_lines(int line) const {
  std::vector<int> found;
  for (std::size_t i = 0; i < lines.size(); ++i)
    if (line > 0 && lines[i] == line) found.push_back(static_cast<int>(i));
  return found;
}

std::vector<SourceMention> find_mentions(const Computation& computation, const std::vector<NodeId>& ops,
                                         const QString& text) {
  QHash<QString, NodeId> known;
  for (NodeId op : ops) known.insert(identifier(computation.node(op).name), op);
  std::vector<SourceMention> found;
  int line = 1;
  for (int i = 0; i < text.size();) {
    if (!in_identifier(text[i])) {
      line += text[i] == '\n';
      ++i;
      continue;
    }
    const int begin = i;
    while (i < text.size() && in_identifier(text[i])) ++i;
    // The longest beginning that ends before an underscore: reduce_10_acc is reduce.10's.
    for (QString word = text.mid(begin, i - begin); !word.isEmpty();) {
      if (const auto op = known.find(word); op != known.end()) {
        found.push_back({begin, i - begin, *op, line});
        break;
      }
      const qsizetype cut = word.lastIndexOf('_');
      word = cut > 0 ? word.left(cut) : QString();
    }
  }
  return found;
}

KernelSource kernel_source(const PlannedModel& planned, int step) {
  KernelSource source;
  source.step = step;
  const KernelPlan* kernel = planned.kernel(step);
  if (kernel == nullptr) return source;
  if (kernel->code) {  // a compiler's own: there is no CUDA
    source.set_ptx(read_file(planned.plan->peer->dump + "/" + kernel->code->module));
    source.cuda =
        QString("// %1 of %2: see its PTX")
            .arg(QString::fromStdString(kernel->code->entry), QString::fromStdString(kernel->code->module));
    return source;
  }
  const Graph& graph = planned.part(step).graph();
  source.cuda = QString::fromStdString(to_cuda(graph, build_schedule(graph, *kernel), false));
  std::vector<NodeId> ops = kernel->ops;
  const std::vector<NodeId> inputs = kernel_inputs(graph, *kernel);
  ops.insert(ops.end(), inputs.begin(), inputs.end());
  source.mentions = find_mentions(planned.computation(step), ops, source.cuda);
  return source;
}

}  // namespace stitchwork::gui
