// Steps that ask for tiles by asynchronous copies, ahead of the task at hand.
#include <fmt/format.h>

#include "codegen/print/print_step.h"

namespace stitchwork {

/// Neighbouring threads copy neighbouring vectors of the task's range. Its end may lie behind that of the
/// array, and of the array there may be a part of a vector at the end.
void StepPrinter::print_copies() {
  // A choice, not measured: longer loops gain nothing by being unrolled.
  constexpr std::int64_t kMostUnrolled = 16;
  const std::int64_t stride = layout_.stride;
  // Of a cluster's blocks the last may have a shorter part.
  const std::int64_t whole = has_part_of_row() ? layout_.unguarded : layout_.length / stride;
  for (const Root& root : step_.roots) {
    copied_to_.push_back(values_.names().make(computation_.node(root.op).name, "p", "_place"));
    out_.line(fmt::format("const unsigned {} = sw_shared_place({});", copied_to_.back(),
                          places_.buffers[static_cast<std::size_t>(root.targets[0].buffer)]));
  }
  if (whole > 0) {
    out_.line(whole <= kMostUnrolled ? "#pragma unroll" : "#pragma unroll 4");
    out_.open(fmt::format("for (int n = 0; n < {}; ++n)", whole));
    print_copies_at(fmt::format(" + n * {}", stride), "");
    out_.close();
  }
  // Vectors begin where the tile does, a lead before a single row.
  for (std::int64_t first = whole * stride; first < layout_.vectors * stride; first += stride) {
    out_.block();
    print_copies_at(first > 0 ? fmt::format(" + {}", first) : "",
                    fmt::format("local_row < {}", elements_of_task()));
    out_.close();
  }
}

void StepPrinter::print_copies_at(const std::string& further, const std::string& inside) {
  const int vector = layout_.width;
  const std::string first =
      (vector == 1 ? "thread" : fmt::format("thread * {}", vector)) + (alignment_ > 1 ? " - lead" : "");
  out_.line(fmt::format("const int local_row = {}{};", first, further));
  declare_row(tile_, layout_.task_rows);
  const std::string exists = row_guard();
  const std::string guard = inside + (inside.empty() || exists.empty() ? "" : " && ") + exists;
  const bool in_part = layout_.partial_vectors;
  out_.open(guard.empty() ? "" : fmt::format("if ({})", guard));
  for (std::size_t r = 0; r < step_.roots.size(); ++r) {
    const Root& root = step_.roots[r];
    const Value& value = step_.values[static_cast<std::size_t>(root.value)];
    const int size = byte_size(computation_.node(root.op).shape.dtype);
    const std::string left =
        in_part ? fmt::format(", (int)sw_min({}, {} - row) * {}", number(vector), number(layout_.rows), size)
                : "";
    const std::string from = index_text(value.offset, value.at.map, values_.index_names(2));
    const std::string to = alignment_ > 1 ? fmt::format("(lead + {})", offset_text(root, root.targets[0]))
                                          : offset_text(root, root.targets[0]);
    out_.line(fmt::format("sw_copy_async{}<{}>({} + {} * {}, &{}[{}]{});", in_part ? "_part" : "",
                          vector * size, copied_to_[r], to, size,
                          places_.buffers[static_cast<std::size_t>(value.buffer)], from, left));
  }
  out_.close();
}

}  // namespace stitchwork
