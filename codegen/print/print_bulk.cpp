// Bulk copies between memory and tiles: one thread moves the whole range of a task.
#include <fmt/format.h>

#include "analysis/schedule/tiles.h"
#include "codegen/print/print_step.h"

namespace stitchwork {

/// Elements of a task's copy: no more than the array's, of which the last `size`-byte ones may fill no unit
/// and are left to print_rest.
std::string StepPrinter::copied_elements(int size) const {
  const std::int64_t elements = layout_.task_rows, unit = kBulkUnit / size;
  const std::int64_t whole = layout_.rows / unit * unit;
  const bool leads = alignment_ > 1;
  const std::string all = leads ? fmt::format("(lead + {0}) / {1} * {1}", elements + unit - 1, unit)
                                : fmt::format("{}", elements);
  if (leads ? whole == layout_.rows : !partial_ && whole == layout_.rows) return all;
  return kernel_.wide_indices ? fmt::format("(int)sw_min((long long)({}), {} - row)", all, number(whole))
                              : fmt::format("sw_min({}, {} - row)", all, whole);
}

/// A tile's bytes begin with those in memory, a lead before a single row.
void StepPrinter::print_bulk_copies() {
  const Root& root = step_.roots.front();
  const Value& value = step_.values[static_cast<std::size_t>(root.value)];
  const int size = byte_size(computation_.node(root.op).shape.dtype);
  out_.line(fmt::format("const {} row = {} * {}{};", index_, tile_, number(layout_.task_rows),
                        alignment_ > 1 ? " - lead" : ""));
  out_.line(fmt::format("sw_copy_bulk(sw_shared_place({}), &{}[{}], {} * {}, {});",
                        places_.buffers[static_cast<std::size_t>(root.targets.front().buffer)],
                        places_.buffers[static_cast<std::size_t>(value.buffer)],
                        index_text(value.offset, value.at.map, values_.index_names(2)), copied_elements(size),
                        size, places_.mbarrier));
}

/// What every thread has put into tiles, which a fence and a block barrier stand behind.
void StepPrinter::print_bulk_stores() {
  out_.open("if (thread == 0)");
  out_.line(fmt::format("const {} row = {} * {};", index_, tile_, number(layout_.task_rows)));
  for (const Root& root : step_.roots) {
    const int size = byte_size(computation_.node(root.op).shape.dtype);
    const Target& target = root.targets.front();
    const Value& value = step_.values[static_cast<std::size_t>(root.value)];
    out_.line(fmt::format("sw_store_bulk(&{}[{}], sw_shared_place({}), {} * {});",
                          places_.buffers[static_cast<std::size_t>(target.buffer)], offset_text(root, target),
                          places_.buffers[static_cast<std::size_t>(value.buffer)], copied_elements(size),
                          size));
  }
  out_.line("sw_commit_stores();");
  out_.close();
  for (const Root& root : step_.roots)
    print_rest(root, root.targets.front().buffer, step_.values[static_cast<std::size_t>(root.value)].buffer,
               true);
}

void StepPrinter::print_rest() {
  const Root& root = step_.roots.front();
  print_rest(root, root.targets.front().buffer, step_.values[static_cast<std::size_t>(root.value)].buffer,
             false);
}

/// Of the array of the root's op, which the last task ends. `to` and `from`: buffers, one of them the tile.
void StepPrinter::print_rest(const Root& root, int to, int from, bool stores) {
  const std::int64_t unit = kBulkUnit / byte_size(computation_.node(root.op).shape.dtype);
  const std::int64_t whole = layout_.rows / unit * unit;
  if (whole == layout_.rows) return;
  const std::int64_t first = (tasks_ - 1) * layout_.task_rows;  // of the last task
  const std::int64_t lead = alignment_ > 1 ? first % alignment_ : 0;
  const std::string in_tile = fmt::format("{}", lead + whole - first), in_memory = number(whole);
  out_.open(fmt::format("if ({}thread < {})", stores ? fmt::format("task == {} && ", number(tasks_ - 1)) : "",
                        layout_.rows - whole));
  out_.line(fmt::format("{}[{} + thread] = {}[{} + thread];", places_.buffers[static_cast<std::size_t>(to)],
                        stores ? in_memory : in_tile, places_.buffers[static_cast<std::size_t>(from)],
                        stores ? in_tile : in_memory));
  out_.close();
}

}  // namespace stitchwork
