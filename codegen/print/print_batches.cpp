// The elements a thread handles where several move at a time: vectors, unrolled loads, tiles.
#include <fmt/ranges.h>

#include <algorithm>

#include "codegen/print/print_step.h"

namespace stitchwork {

/// Element-wise tasks: neighbouring threads on neighbouring vectors.
void StepPrinter::print_row_batches() {
  const std::string first = layout_.width == 1 ? "thread" : fmt::format("thread * {}", layout_.width);
  Batches batches{"local_row", alignment_ > 1 ? first + " - lead" : first, ""};
  if (alignment_ > 1 || layout_.task_rows % layout_.stride != 0 || has_part_of_row())
    batches.guard = fmt::format("local_row < {}", elements_of_task());
  if (partial_) batches.guard += (batches.guard.empty() ? "" : " && ") + row_guard();
  print_batches(batches, layout_);
}

std::string StepPrinter::elements_of_task() const {
  return has_part_of_row() ? "(end_col - first_col)" : fmt::format("{}", layout_.task_rows);
}

std::string StepPrinter::elements_inside() const {
  return fmt::format("-local_row, {} - local_row", elements_of_task());
}

bool StepPrinter::empties_tiles() const {
  return step_.turned && std::any_of(step_.roots.begin(), step_.roots.end(), [&](const Root& root) {
           return std::any_of(root.targets.begin(), root.targets.end(), [&](const Target& target) {
             return kernel_.buffers[static_cast<std::size_t>(target.buffer)].space != MemorySpace::kShared;
           });
         });
}

void StepPrinter::print_tile() {
  const std::int64_t rows = layout_.task_rows, cols = layout_.threads_a_row;
  const std::int64_t at_once = layout_.stride;
  const std::int64_t line = step_.turned ? rows : cols, lines = step_.turned ? cols : rows;
  const bool row_part = partial_, col_part = layout_.cols % cols != 0;
  tile_ = "tile";
  std::string tile_col;  // "first_col + ", where there are several tiles side by side
  if (layout_.segments == 1) {
    out_.line(fmt::format("const {} tile = task;", index_));
  } else {
    out_.line(fmt::format("const {0} tile = task / {1}, segment = task % {1};", index_, layout_.segments));
    out_.line(fmt::format("const {} first_col = segment * {};", index_, number(cols)));
    tile_col = "first_col + ";
  }
  std::vector<std::string> active;
  if (at_once * line < block_) active.push_back(fmt::format("thread < {}", at_once * line));
  Batches batches;
  const bool last_part = lines % at_once != 0;  // the last lines taken at once are not all there
  if (step_.turned) {
    out_.line(fmt::format("const int local_row = thread % {};", rows));
    declare_row(tile_, rows);
    if (row_part) active.push_back(row_guard());
    batches.index = "col";
    batches.start = fmt::format("{}thread / {}", tile_col, rows);
    batches.guard = col_part ? fmt::format("col < {}", number(layout_.cols)) : "";
    if (last_part)
      batches.guard += (col_part ? " && " : "") + fmt::format("col < {}{}", tile_col, number(cols));
  } else {
    out_.line(fmt::format("const {} col = {}thread % {};", index_, tile_col, cols));
    if (col_part) active.push_back(fmt::format("col < {}", number(layout_.cols)));
    batches.index = "local_row";
    batches.start = fmt::format("thread / {}", cols);
    batches.guard = last_part ? fmt::format("local_row < {}", rows) : "";
    if (row_part) batches.guard += (last_part ? " && " : "") + row_guard();
  }
  Layout layout = layout_;
  if (!batches.guard.empty()) layout.unguarded = 0;
  out_.open(active.empty() ? "" : fmt::format("if ({})", fmt::join(active, " && ")));
  if (step_.turned) values_.print(-1, 1);
  print_batches(batches, layout);
  out_.close();
}

void StepPrinter::print_batches(const Batches& batches, const Layout& layout) {
  const bool short_loop = needs_constant_index() || layout.elements() <= kUnrolledElements;
  for (const Run& run : layout.runs()) {
    const bool alone = run.at_once == 1;
    if (run.end - run.first > run.at_once) {
      // NVRTC 13.0 unrolls guarded vectors taken one by one into loads from a register that it sets later.
      if (short_loop)
        out_.line("#pragma unroll");
      else if (alone && run.guarded)
        out_.line("#pragma unroll 1");
      out_.open(fmt::format("for (int n = {}; n < {}; {})", run.first, run.end,
                            alone ? "++n" : fmt::format("n += {}", run.at_once)));
      vector_number_ = alone ? "n" : "(n + u)";
    } else {
      out_.block();
      vector_number_ = alone            ? fmt::format("{}", run.first)
                       : run.first == 0 ? "u"
                                        : fmt::format("({} + u)", run.first);
    }
    print_batch(batches, layout, run);
    out_.close();
  }
}

void StepPrinter::open_batch_loop(std::int64_t vectors) {
  out_.line("#pragma unroll");
  out_.open(fmt::format("for (int u = 0; u < {}; ++u)", vectors));
}

std::string StepPrinter::to_vector(std::int64_t stride) const {
  if (vector_number_ == "0") return "";
  return stride == 1 ? fmt::format(" + {}", vector_number_)
                     : fmt::format(" + {} * {}", vector_number_, stride);
}

/// Declares the dimensions' indices of the element `at` of the vector at hand.
void StepPrinter::place(const Batches& batches, const Layout& layout, const std::string& at) {
  if (in_column_vectors()) return place_in_columns(at.empty() ? "0" : "j");
  const bool rows = batches.index == "local_row";
  out_.line(fmt::format("const {} {} = {}{}{};", rows ? "int" : index_, batches.index, batches.start,
                        to_vector(layout.stride), at));
  if (rows) declare_row(tile_, layout_.task_rows);
}

/// The same of an element that exists, the nearest where the thread's does not: its load needs no guard, and
/// waits for no other.
void StepPrinter::place_inside(const Batches& batches, const Layout& layout) {
  const std::string at = batches.start + to_vector(layout.stride);
  if (batches.index == "col") {
    out_.line(fmt::format("const {} col = sw_min({}, {});", index_, at, number(layout_.cols - 1)));
    return;
  }
  const std::string first = has_part_of_row()
                                ? fmt::format("{} * {} + first_col", tile_, number(layout_.apart))
                                : fmt::format("{} * {}", tile_, number(layout_.task_rows));
  if (is<mapping::Elements>(step_.mapping)) {
    // Of a range: what is read may be its tile, which has nothing behind the task's last vector.
    const std::string elements = partial_ ? fmt::format("(int)sw_min({}, {} - {})", number(layout_.task_rows),
                                                        number(layout_.rows), first)
                                          : elements_of_task();
    const std::string last =
        alignment_ > 1
            ? fmt::format("({} - 1 + lead) / {} * {} - lead", elements, layout_.width, layout_.width)
        : layout.partial_vectors ? fmt::format("({} - 1) / {} * {}", elements, layout_.width, layout_.width)
                                 : fmt::format("{} - {}", elements, layout_.width);
    out_.line(fmt::format("const int local_row = sw_min({}, {});", at, last));
    out_.line(fmt::format("const {} row = {} + local_row;", index_, first));
    return;
  }
  out_.line(fmt::format("const int local_row = {};", at));
  out_.line(
      fmt::format("const {} row = sw_min({} + local_row, {});", index_, first, number(layout_.rows - 1)));
}

void StepPrinter::print_batch(const Batches& batches, const Layout& layout, const Run& run) {
  const std::int64_t vectors = run.at_once;
  const bool guarded = run.guarded;
  const auto open_guard = [&] {
    out_.open(guarded && !batches.guard.empty() ? fmt::format("if ({})", batches.guard) : "");
  };
  const bool in_part = layout.partial_vectors && guarded;
  // Flat columns end in a guarded vector.
  const bool ends = in_column_vectors() && (guarded || layout.columns != ColumnVectors::kFlat);
  std::string left = in_part || ends ? elements_left() : "";
  // A tile has nothing around what was put there element by element.
  if (layout.head && !layout.peeled && in_part) left = elements_inside();
  values_.declare_ahead(static_cast<int>(vectors));
  const bool inside = layout.together && guarded;  // where a thread has no element it loads another's
  // Loads and what is made of them share a scope, but not a condition: of loads alone compilers make
  // predicated ones, in flight with those of the next vector.
  const bool once = vectors == 1 && !guarded;
  if (values_.goes_ahead() && !once) {
    if (vectors > 1)
      open_batch_loop(vectors);
    else
      out_.block();
    if (inside) {
      place_inside(batches, layout);
      out_.open("");
    } else {
      place(batches, layout, "");
      open_guard();
    }
    values_.load_ahead(left);
    out_.close();
    out_.close();
    values_.hold_ahead(static_cast<int>(vectors));
  }
  if (vectors > 1)
    open_batch_loop(vectors);
  else
    out_.open("");
  place(batches, layout, "");
  open_guard();
  if (values_.goes_ahead() && once) {
    values_.load_ahead(left);
    values_.hold_ahead(1);
  }
  if (moves_as_it_is()) {
    for (const Root& root : step_.roots)
      for (const Target& target : root.targets) vectors_[&target] = values_.vector(root.value);
    store_vectors(in_part);
    out_.close();
    out_.close();
    return;
  }
  for (const Root& root : step_.roots)
    for (const Target& target : root.targets) {
      if (!target.vector) continue;
      const Node& node = computation_.node(root.op);
      vectors_[&target] = values_.names().make(node.name, "w", "_vector");
      out_.line(fmt::format("SwVector<{}, {}> {};", storage_type(node.shape.dtype), layout_.width,
                            vectors_[&target]));
      if (in_part) out_.line(fmt::format("sw_clear({});", vectors_[&target]));
    }
  out_.line("#pragma unroll");
  out_.open(fmt::format("for (int j = 0; j < {}; ++j)", layout_.width));
  place(batches, layout, " + j");
  const std::string exists = element_guard(batches, guarded);
  out_.open(exists.empty() ? "" : fmt::format("if ({})", exists));
  if (needs_index()) {
    const std::string before = to_vector(layout_.width);
    out_.line(before.empty() ? "const int i = j;" : fmt::format("const int i = {} + j;", before.substr(3)));
  }
  if (batches.index == "local_row" || in_column_vectors()) values_.print(-1, 1);
  element_body();
  out_.close();
  out_.close();
  store_vectors(in_part);
  out_.close();
  out_.close();
}

bool StepPrinter::moves_as_it_is() const {
  return step_.turned && std::all_of(step_.roots.begin(), step_.roots.end(), [&](const Root& root) {
           const Value& value = step_.values[static_cast<std::size_t>(root.value)];
           return !values_.vector(root.value).empty() && !value.same && value.at.map.constraints.empty() &&
                  std::all_of(root.targets.begin(), root.targets.end(),
                              [](const Target& target) { return target.vector; });
         });
}

void StepPrinter::store_vectors(bool in_part) {
  for (const Root& root : step_.roots)
    for (const Target& target : root.targets) {
      if (!target.vector) continue;
      // Tiles have room for whole vectors.
      const Buffer& buffer = kernel_.buffers[static_cast<std::size_t>(target.buffer)];
      const bool part = in_part && buffer.space != MemorySpace::kShared;
      std::string bounds;
      if (part && alignment_ > 1)
        bounds = ", " + elements_inside();
      else if (part && is<mapping::Elements>(step_.mapping))
        bounds = fmt::format(", ({})0, {}", index_, elements_left());
      else if (part)
        bounds = fmt::format(", -col, {} - col", number(layout_.cols));
      out_.line(fmt::format("{}(&{}, {}{});", part ? "sw_store_part" : "sw_store",
                            values_.place(target.buffer, offset_text(root, target)), vectors_.at(&target),
                            bounds));
    }
}

std::string StepPrinter::element_guard(const Batches&, bool guarded) const {
  if (layout_.peeled && guarded)
    return has_part_of_row() ? "col >= first_col && col < end_col"
                             : fmt::format("col >= 0 && col < {}", number(layout_.cols));
  switch (layout_.columns) {
    case ColumnVectors::kFlat:
      return guarded ? "j < left" : "";  // it may begin in one col and end in the next
    case ColumnVectors::kShifted:
      return fmt::format("local_row >= 0 && local_row < {0} && row < {1}", layout_.task_rows,
                         number(layout_.rows));
    case ColumnVectors::kNone:
    case ColumnVectors::kWhole:
      return "";
  }
  return "";
}

std::string StepPrinter::elements_left() const {
  if (rows_.empty() && layout_.rows * layout_.cols % layout_.width == 0) return "";
  if (is<mapping::Elements>(step_.mapping)) return fmt::format("{} - row", number(layout_.rows));
  if (in_column_vectors())
    return layout_.columns == ColumnVectors::kWhole
               ? ""
               : fmt::format("({} - col) * {} - row", number(layout_.cols), number(layout_.rows));
  return fmt::format("({} - row) * {} - col", rows_.empty() ? number(layout_.rows) : rows_,
                     number(layout_.cols));
}

}  // namespace stitchwork
