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
  int line = 1;
};

struct KernelSource {
  int step = -1;
  QString cuda, ptx;                    ///< ptx: empty until compiled
  std::vector<SourceMention> mentions;  ///< ascending
  /// By line of the PTX, from 0, the line of the CUDA it is of, from 1, or 0; empty where the PTX does not
  /// say.
  std::vector<int> lines;

  /// Also `lines`.
  void set_ptx(const std::string& text);
  NodeId op_at(int position) const;
  std::vector<int> positions(NodeId op) const;
  /// What a line of the CUDA computes: the first op it names, which an assignment has on its left.
  NodeId op_of_line(int line) const;
  /// The lines of the PTX, from 0, of one of the CUDA.
  std::vector<int> ptx_lines(int line) const;
};

/// Readable CUDA, without the prelude. Throws Error where the kernel can only be planned.
KernelSource kernel_source(const PlannedModel& planned, int step);

/// Where names of the kernel's ops, and of what it reads, stand in a text: "reduce.10" is written reduce_10,
/// reduce_10_acc.
std::vector<SourceMention> find_mentions(const Computation& computation, const std::vector<NodeId>& ops,
                                         const QString& text);

}  // namespace stitchwork::gui
