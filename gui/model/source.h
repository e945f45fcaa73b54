// The CUDA source of a kernel and which ops its lines compute.
#pragma once

#include <QString>
#include <vector>

#include "gui/model/session.h"

namespace stitchwork::gui {

/// A name in the source that stands for an op.
struct SourceMention {
  int begin = 0, length = 0;  ///< in characters
  NodeId op = kNoNode;
};

struct KernelSource {
  int step = -1;
  QString cuda, ptx;                    ///< ptx: empty until compiled
  std::vector<SourceMention> mentions;  ///< ascending

  NodeId op_at(int position) const;
  std::vector<int> positions(NodeId op) const;
};

/// Readable CUDA, without the prelude. Throws Error where the kernel can only be planned.
KernelSource kernel_source(const PlannedModel& planned, int step);

/// Where names of the kernel's ops, and of what it reads, stand in a text: "reduce.10" is written reduce_10,
/// reduce_10_acc.
std::vector<SourceMention> find_mentions(const Computation& computation, const std::vector<NodeId>& ops,
                                         const QString& text);

}  // namespace stitchwork::gui
