// Reductions over columns whose results, neighbours in memory, move in vectors (analysis/schedule/layout.h,
// ColumnVectors): a thread has an accumulator for each result of its vector.
#include <fmt/ranges.h>

#include <algorithm>

#include "codegen/print/print_step.h"
#include "core/base/error.h"

namespace stitchwork {

/// The thread's slice of the cols and its first result in the task.
void StepPrinter::declare_column_lanes(const std::string& first) {
  const std::int64_t vector = layout_.width, across = layout_.places / vector;
  switch (layout_.columns) {
    case ColumnVectors::kFlat:  // by element
      return;
    case ColumnVectors::kShifted:
      out_.line(fmt::format("const int lane = thread / {};", across));
      // Results from the sector that the task's begin in, in the thread's cols, to these.
      out_.line(fmt::format("const int shift = (int)((({0})({1} + lane) * {2} + tile * {3}) % {4});",
                            kernel_.wide_indices ? "long long" : "int", first, number(layout_.rows),
                            number(layout_.task_rows), layout_.alignment));
      out_.line(fmt::format("const int first_row = thread % {} * {} - shift;", across, vector));
      return;
    case ColumnVectors::kNone:
    case ColumnVectors::kWhole:
      out_.line(
          fmt::format("const int first_row = thread % {0} * {1}, lane = thread / {0};", across, vector));
      return;
  }
}

void StepPrinter::place_in_columns(const std::string& at) {
  const std::int64_t rows = layout_.task_rows, slices = layout_.slices;
  if (layout_.columns == ColumnVectors::kFlat) {
    out_.line(fmt::format("const int place = thread * {} + {};", layout_.width, at));
    out_.line(fmt::format("const int local_row = place % {0}, lane = place / {0};", rows));
    // The segment's elements are one range: none of a vector needs its col to tell whether it is there.
    if (at == "0")
      out_.line(fmt::format("const {} left = elements - (place{});", index_, to_vector(slices * rows)));
  } else {
    out_.line(fmt::format("const int local_row = first_row + {};", at));
  }
  declare_row(tile_, rows);
  out_.line(fmt::format("const {} col = first_slice + lane{};", index_, to_vector(slices)));
}

void StepPrinter::print_column_vectors() {
  const std::int64_t rows = layout_.task_rows, slices = layout_.slices;
  const std::int64_t busy = slices * layout_.places / layout_.width;
  const ColumnVectors vectors = layout_.columns;
  SW_CHECK(busy <= block_, "{} slices of {} columns in a block of {}", slices, rows, block_);
  const Segment segment = declare_segment();
  if (segment.tile == "task") out_.line(fmt::format("const {} tile = task;", index_));
  tile_ = "tile";
  out_.line(fmt::format("const {} first_slice = {};", index_, segment.first));
  declare_column_lanes(segment.first);
  declare_accumulators();
  std::vector<std::string> active;
  if (busy < block_) active.push_back(fmt::format("thread < {}", busy));
  if (vectors == ColumnVectors::kShifted)
    active.push_back(fmt::format("first_row > -{} && first_row < {}", layout_.width, rows));
  if (vectors != ColumnVectors::kFlat && layout_.rows % rows != 0)
    active.push_back(fmt::format("tile * {} + first_row < {}", number(rows), number(layout_.rows)));
  out_.open(active.empty() ? "" : fmt::format("if ({})", fmt::join(active, " && ")));
  Batches batches;
  batches.index = "col";
  batches.guard = fmt::format("col < {}", segment.end);
  if (vectors == ColumnVectors::kFlat) {
    out_.line(fmt::format("const {} elements = ({} - first_slice) * {};", index_, segment.end, rows));
    batches.guard = "left > 0";
  }
  print_batches(batches, layout_);
  out_.close();
  for (std::size_t i = 0; i < step_.roots.size(); ++i)
    if (reduces(step_.roots[i])) finish_columns(step_.roots[i], i);
}

/// Through the workspace, [slices, rows]; then a thread a result.
void StepPrinter::finish_columns(const Root& root, std::size_t index) {
  const std::int64_t rows = layout_.task_rows, slices = layout_.slices;
  const std::int64_t busy = slices * layout_.places / layout_.width;
  const DType dtype = computation_.node(root.op).shape.dtype;
  const std::string& accumulator = accumulators_[index];
  if (shared_.workspace != SharedState::kFree) out_.line("__syncthreads();");
  shared_.workspace = SharedState::kAllBusy;
  const bool flat = layout_.columns == ColumnVectors::kFlat;
  std::string first =
      flat ? fmt::format("thread * {}", layout_.width) : fmt::format("lane * {} + first_row", rows);
  std::string from = "0", to = number(layout_.width);
  if (layout_.columns == ColumnVectors::kShifted) {
    from = "-first_row";
    to = fmt::format("{} - first_row", rows);
  }
  if (busy < block_) to = fmt::format("thread < {} ? {} : 0", busy, to);
  const std::string total = values_.names().make(computation_.node(root.op).name, "t", "_total");
  out_.line(fmt::format("{} {} = sw_columns_reduce<{}, {}, {}>({}, {}, {}, {}, ({}*)(shared + {}));",
                        value_type(dtype), total, reducer_name(root.reducer), rows, slices, accumulator,
                        first, from, to, value_type(dtype), kernel_.workspace_offset));
  out_.block();
  out_.line("const int local_row = thread;");
  declare_row(tile_, rows);
  std::string writer = rows < block_ ? fmt::format("thread < {}", rows) : "";
  if (layout_.rows % rows != 0)
    writer += fmt::format("{}row < {}", writer.empty() ? "" : " && ", number(layout_.rows));
  out_.open(writer.empty() ? "" : fmt::format("if ({})", writer));
  fold_initial(root, total);
  store_only(root, total);
  out_.close();
  out_.close();
}

}  // namespace stitchwork
