// Rows that the blocks of a thread block cluster share (mapping::Cluster).
#include <fmt/format.h>

#include "codegen/print/print_step.h"
#include "core/base/error.h"

namespace stitchwork {

void StepPrinter::declare_cluster_lane() {
  SW_CHECK(layout_.threads_a_row == std::int64_t{layout_.blocks} * block_ && layout_.task_rows == 1,
           "{} threads a row in clusters of {} blocks of {}", layout_.threads_a_row, layout_.blocks, block_);
  out_.line(fmt::format("const int local_row = 0, lane = rank * {} + thread;", block_));
}

/// Every warp sends what it has to all blocks, and folds what has come to its own. The blocks write to one
/// half of each other's workspace while what was in the other is still read; all have read that when they
/// come to the barrier of this reduction. What the task before left has been read when all have come to the
/// next one's start.
void StepPrinter::reduce_in_cluster(const Root& root, const std::string& accumulator) {
  const DType dtype = computation_.node(root.op).shape.dtype;
  if (shared_.cluster_arrived) out_.line("sw_cluster_wait();");
  shared_.cluster_arrived = false;
  out_.line(
      fmt::format("{0} = sw_cluster_reduce<{1}, {2}, {3}>({0}, {4}, ({5}*)(shared + {6}), rank);",
                  accumulator, reducer_name(root.reducer), layout_.blocks, block_,
                  neutral_text(root.reducer, dtype), value_type(dtype),
                  kernel_.workspace_offset + (shared_.cluster_second ? kernel_.workspace_bytes / 2 : 0)));
  shared_.cluster_second = !shared_.cluster_second;
}

std::string StepPrinter::by_one_block(const Root& root, const Buffer& buffer) const {
  const bool of_row = step_.rows || reduces(root);
  return layout_.blocks > 1 && of_row && buffer.space != MemorySpace::kShared ? "if (rank == 0) " : "";
}

}  // namespace stitchwork
