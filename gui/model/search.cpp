#include "gui/model/search.h"

#include <QCoreApplication>
#include <algorithm>

#include "gui/model/text.h"

namespace stitchwork::gui {
namespace {

bool contains_any(const QStringList& wanted, const QString& text) {
  return wanted.isEmpty() || std::any_of(wanted.begin(), wanted.end(), [&](const QString& w) {
           return text.contains(w, Qt::CaseInsensitive);
         });
}

/// "k1" is the kernel k1 and not k10; anything that is no number of a kernel is looked for in the label.
bool is_kernel(const QStringList& wanted, const QString& label) {
  static const QRegularExpression kId("^k\\d+$");
  return wanted.isEmpty() || std::any_of(wanted.begin(), wanted.end(), [&](const QString& w) {
           return kId.match(w).hasMatch() ? label == w || label.startsWith(w + ' ')
                                          : label.contains(w, Qt::CaseInsensitive);
         });
}

}  // namespace

bool Query::empty() const {
  return words.isEmpty() && !regex && kernels.isEmpty() && ops.isEmpty() && schemes.isEmpty() &&
         dtypes.isEmpty();
}

Query parse_query(const QString& text) {
  Query query;
  const QString trimmed = text.trimmed();
  if (trimmed.size() > 2 && trimmed.startsWith('/') && trimmed.endsWith('/')) {
    query.regex =
        QRegularExpression(trimmed.mid(1, trimmed.size() - 2), QRegularExpression::CaseInsensitiveOption);
    if (!query.regex->isValid()) query.error = query.regex->errorString();
    return query;
  }
  for (const QString& part : trimmed.split(' ', Qt::SkipEmptyParts)) {
    const qsizetype colon = part.indexOf(':');
    const QString filter = part.left(colon), value = part.mid(colon + 1);
    if (colon <= 0)
      query.words << part;
    else if (filter == "kernel")
      query.kernels << value;
    else if (filter == "op")
      query.ops << value;
    else if (filter == "scheme")
      query.schemes << value;
    else if (filter == "dtype")
      query.dtypes << value;
    else
      query.error =
          QCoreApplication::translate("search", "no filter '%1': there are kernel: op: scheme: dtype:")
              .arg(filter);
  }
  for (QStringList* values : {&query.kernels, &query.ops, &query.schemes, &query.dtypes})
    values->removeAll(QString());
  return query;
}

std::vector<int> find(const PlannedModel& planned, const Query& query) {
  std::vector<int> found;
  if (query.empty() || !query.error.isEmpty()) return found;
  const bool kernels_only = !query.kernels.isEmpty() && query.words.isEmpty() && query.ops.isEmpty() &&
                            query.schemes.isEmpty() && query.dtypes.isEmpty();
  const FoldTree& tree = *planned.folds;
  for (std::size_t i = 0; i < tree.nodes.size(); ++i) {
    const FoldNode& n = tree.nodes[i];
    const QString label = q(n.label);
    if (n.kind == FoldKind::kStep) {
      const bool wanted = kernels_only  ? is_kernel(query.kernels, label)
                          : query.regex ? query.regex->match(label).hasMatch()
                                        : false;
      if (wanted) found.push_back(static_cast<int>(i));
      continue;
    }
    if (n.kind != FoldKind::kOp || kernels_only) continue;
    if (n.op == kNoNode) {  // of a graph read from a file: it has a label and nothing else
      const bool named = std::all_of(query.words.begin(), query.words.end(), [&](const QString& w) {
        return label.contains(w, Qt::CaseInsensitive);
      });
      const bool filtered = !query.ops.isEmpty() || !query.schemes.isEmpty() || !query.dtypes.isEmpty();
      if (query.regex ? query.regex->match(label).hasMatch() : named && !filtered)
        found.push_back(static_cast<int>(i));
      continue;
    }
    const Node& node = planned.computation(n.step).node(n.op);
    const QString opcode = q(def(node.op).name);
    if (query.regex) {
      if (query.regex->match(label).hasMatch()) found.push_back(static_cast<int>(i));
      continue;
    }
    if (!std::all_of(query.words.begin(), query.words.end(), [&](const QString& w) {
          return label.contains(w, Qt::CaseInsensitive) || opcode.contains(w, Qt::CaseInsensitive);
        }))
      continue;
    if (!contains_any(query.ops, opcode) ||
        !contains_any(query.dtypes, q(to_text(node.shape)).section('[', 0, 0)))
      continue;
    const int step_node = n.group >= 0 ? tree.node(n.parent).parent : n.parent;
    if (!is_kernel(query.kernels, q(tree.node(step_node).label))) continue;
    if (!query.schemes.isEmpty()) {
      const KernelPlan* kernel = planned.kernel(n.step);
      if (kernel == nullptr) continue;
      const auto scheme = kernel->schemes.find(n.op);
      if (scheme == kernel->schemes.end()) continue;
      const QString text = q(name(scheme->second));
      if (std::none_of(query.schemes.begin(), query.schemes.end(), [&](const QString& w) {
            return text.startsWith(w, Qt::CaseInsensitive) || w == QString(QChar(badge(scheme->second)));
          }))
        continue;
    }
    found.push_back(static_cast<int>(i));
  }
  return found;
}

}  // namespace stitchwork::gui
