// Search in a plan: plain words, a regular expression, and kernel: op: scheme: dtype: filters.
#pragma once

#include <QRegularExpression>
#include <QString>
#include <optional>
#include <vector>

#include "gui/model/session.h"

namespace stitchwork::gui {

/// Every part that is given must hold. Case does not matter.
struct Query {
  QStringList words;                        ///< in the name or the opcode
  std::optional<QRegularExpression> regex;  ///< in the name
  QStringList kernels, ops, schemes, dtypes;
  QString error;  ///< of the regular expression or an unknown filter

  bool empty() const;
};

/// `kernel:k12 op:reduce scheme:global dtype:f16 words`, or /regex/.
Query parse_query(const QString& text);

/// Kernels (where only names of kernels are asked for) or ops of the plan that match: nodes of the fold tree,
/// in its order. Of a graph read from a file, nodes by their labels.
std::vector<int> find(const PlannedModel& planned, const Query& query);

}  // namespace stitchwork::gui
