#include "codegen/print/print_step.h"

#include <fmt/ranges.h>

#include <algorithm>

#include "codegen/table.h"
#include "core/base/arithmetic.h"
#include "core/base/error.h"

namespace stitchwork {

StepPrinter::StepPrinter(const Graph& graph, const Schedule& kernel, const TaskLoop& loop, const Step& step,
                         std::string rows, const PlaceNames& places, const Namer& names, bool canonical,
                         Writer& out, PartFunctions& parts, SharedState& shared)
    : computation_(graph.entry_computation()),
      kernel_(kernel),
      step_(step),
      tasks_(loop.deal.tasks),
      rows_(std::move(rows)),
      in_bulk_(loop.bulk),
      partial_(!(step.turned && step.layout.blocks > 1) &&
               has_partial_task(loop, static_cast<std::size_t>(&step - loop.steps.data()))),
      places_(places),
      block_(kernel.launch.block),
      layout_(step.layout),
      values_(graph, kernel, step, layout_, places, names, canonical, out, parts),
      out_(out),
      shared_(shared),
      index_(kernel.wide_indices ? "long long" : "int"),
      accumulators_(step.roots.size()) {
  const auto touches = [&](int buffer) {
    if (buffer >= 0)
      alignment_ = std::max(alignment_, kernel.buffers[static_cast<std::size_t>(buffer)].alignment);
  };
  for (const int v : step.order) touches(step.values[static_cast<std::size_t>(v)].buffer);
  for (const Root& root : step.roots)
    for (const Target& target : root.targets) touches(target.buffer);
  // What lies before a task is loaded like its elements, and not stored.
  if (step.turned && alignment_ > 1) layout_ = layout_.behind(alignment_, empties_tiles());
}

std::string StepPrinter::number(std::int64_t n) const {
  return kernel_.wide_indices ? fmt::format("{}LL", n) : fmt::format("{}", n);
}

std::string StepPrinter::row_guard() const {
  return partial_ ? fmt::format("row < {}", rows_.empty() ? number(layout_.rows) : rows_) : "";
}

bool StepPrinter::needs_index() const {
  if (std::any_of(step_.roots.begin(), step_.roots.end(),
                  [](const Root& root) { return root.store == StoreKind::kAcross; }))
    return true;
  return std::any_of(step_.order.begin(), step_.order.end(), [&](int v) {
    const Value& value = step_.values[static_cast<std::size_t>(v)];
    return value.kept >= 0 || value.restored >= 0;
  });
}

bool StepPrinter::needs_constant_index() const {
  const auto in_registers = [&](int kept) {
    return kept >= 0 && kernel_.kept[static_cast<std::size_t>(kept)].shared_offset < 0;
  };
  const bool across = std::any_of(step_.roots.begin(), step_.roots.end(),
                                  [](const Root& root) { return root.store == StoreKind::kAcross; });
  return across || std::any_of(step_.order.begin(), step_.order.end(), [&](int v) {
           const Value& value = step_.values[static_cast<std::size_t>(v)];
           return in_registers(value.kept) || in_registers(value.restored);
         });
}

void StepPrinter::print() {
  if (alignment_ > 1)
    out_.line(fmt::format("const int lead = (int)(task * {} % {});", number(layout_.apart), alignment_));
  if (has_part_of_row()) {
    out_.line(fmt::format("const int first_col = rank * {0}, end_col = sw_min(first_col + {0}, {1});",
                          layout_.length, layout_.apart));
  }
  values_.print(-1, 0);
  if (step_.filling == Filling::kAhead) return in_bulk_ ? print_bulk_copies() : print_copies();
  if (step_.in_bulk) return print_bulk_stores();
  if (step_.by_all) return print_rows_by_all();
  if (step_.rows) return print_rows();
  if (is<mapping::Patch>(step_.mapping)) return print_tile();
  const bool alone = is<mapping::Elements>(step_.mapping) || as<mapping::OneThread>(step_.mapping) != nullptr;
  return alone ? print_thread_rows() : print_shared_rows();
}

/// One thread a row of the task.
void StepPrinter::open_thread_rows(std::int64_t rows) {
  const bool part = has_part_of_row();
  const std::string end = part ? elements_of_task() : fmt::format("{}", rows);
  if (rows > block_) {
    out_.open(fmt::format("for (int local_row = thread; local_row < {}; local_row += {})", end, block_));
    return;
  }
  out_.open(part || rows < block_ ? fmt::format("if (thread < {})", end) : "");
  out_.line("const int local_row = thread;");
}

void StepPrinter::print_rows() {
  const std::int64_t rows = layout_.task_rows;
  const bool split = layout_.segments > 1;
  const std::string tile = split ? fmt::format("task / {}", layout_.segments) : "task";
  if (split) out_.open(fmt::format("if (task % {} == 0)", layout_.segments));
  open_thread_rows(rows);
  declare_row(tile, rows);
  out_.open(partial_ ? fmt::format("if ({})", row_guard()) : "");
  values_.print(-1, 1);
  values_.print(-1, 2);
  for (const Root& root : step_.roots) store(root, values_.name(root.value));
  out_.close();
  out_.close();
  if (split) out_.close();
}

void StepPrinter::print_rows_by_all() {
  const std::int64_t threads = layout_.threads_a_row;
  declare_shared_row();
  declare_row("task", layout_.task_rows);
  const std::string active = active_rows();
  out_.open(active.empty() ? "" : fmt::format("if ({})", active));
  values_.print(-1, 1);
  values_.print(-1, 2);
  for (const Root& root : step_.roots) {
    if (root.row_result >= 0)
      out_.line(fmt::format("{} = {};", places_.row_results[static_cast<std::size_t>(root.row_result)],
                            values_.name(root.value)));
    if (root.targets.empty()) continue;
    out_.open(layout_.blocks > 1 ? "if (thread == 0)" : threads > 1 ? "if (lane == 0)" : "");
    store(root, values_.name(root.value));
    out_.close();
  }
  out_.close();
}

void StepPrinter::declare_shared_row() {
  const std::int64_t threads = layout_.threads_a_row;
  if (layout_.blocks > 1) return declare_cluster_lane();
  if (threads >= block_)
    out_.line("const int local_row = 0, lane = thread;");
  else if (threads == 1)
    out_.line("const int local_row = thread, lane = 0;");
  else
    out_.line(fmt::format("const int local_row = thread / {0}, lane = thread % {0};", threads));
}

/// As many of a task's rows as the block's threads take at a time, then the next. Reductions take the
/// workspace again when all have read it.
void StepPrinter::open_turns() {
  const std::int64_t rows = layout_.rows_a_turn, threads = layout_.threads_a_row;
  out_.open(fmt::format("for (int turn = 0; turn < {}; ++turn)", layout_.turns));
  const bool in_workspace = threads > 32 && std::any_of(step_.roots.begin(), step_.roots.end(),
                                                        [&](const Root& root) { return reduces(root); });
  if (in_workspace) {
    out_.line("__syncthreads();");
    shared_.workspace = SharedState::kFree;
  }
  out_.line(fmt::format("const int place = thread / {0}, lane = thread % {0};", threads));
  out_.line(fmt::format("const int local_row = turn * {} + place;", rows));
}

std::string StepPrinter::active_rows() const {
  const std::int64_t rows = layout_.task_rows;
  std::vector<std::string> active;
  if (layout_.turns > 1 && layout_.rows_a_turn * layout_.threads_a_row < block_)
    active.push_back(fmt::format("place < {}", layout_.rows_a_turn));
  if (layout_.turns > 1 ? rows % layout_.rows_a_turn != 0 : rows * layout_.threads_a_row < block_)
    active.push_back(fmt::format("local_row < {}", rows));
  if (partial_) active.push_back(row_guard());
  return fmt::format("{}", fmt::join(active, " && "));
}

/// A row's place in the domain from its place in the task.
void StepPrinter::declare_row(const std::string& tile, std::int64_t rows) {
  if (has_part_of_row() && step_.turned) {
    out_.line(
        fmt::format("const {} row = {} * {} + first_col + local_row;", index_, tile, number(layout_.apart)));
    return;
  }
  out_.line(rows == 1 ? fmt::format("const {} row = {};", index_, tile)
                      : fmt::format("const {} row = {} * {} + local_row;", index_, tile, number(rows)));
}

void StepPrinter::print_thread_rows() {
  const std::int64_t rows = layout_.task_rows;
  const bool serial = as<mapping::OneThread>(step_.mapping) != nullptr;
  SW_CHECK(serial || layout_.cols == 1, "element-wise domains have one col");
  if (!serial && in_batches()) return print_row_batches();
  if (needs_index()) {
    out_.line("#pragma unroll");
    out_.open(fmt::format("for (int i = 0; i < {}; ++i)", ceil_div(rows, block_)));
    out_.line(fmt::format("const int local_row = i * {} + thread;", block_));
    out_.open(rows % block_ == 0 ? "" : fmt::format("if (local_row < {})", rows));
  } else {
    open_thread_rows(rows);
    out_.open("");
  }
  declare_row("task", rows);
  out_.open(partial_ ? fmt::format("if ({})", row_guard()) : "");
  values_.print(-1, 1);
  if (serial) {
    declare_accumulators();
    out_.open(fmt::format("for (int col = 0; col < {}; ++col)", layout_.cols));
    element_body();
    out_.close();
    for (std::size_t i = 0; i < step_.roots.size(); ++i)
      if (reduces(step_.roots[i])) store(step_.roots[i], accumulators_[i]);
  } else {
    values_.print(-1, 2);
    for (const Root& root : step_.roots) store(root, values_.name(root.value));
  }
  out_.close();
  out_.close();
  out_.close();
}

StepPrinter::Segment StepPrinter::declare_segment() {
  const std::int64_t length = layout_.length;
  Segment segment;
  segment.end = number(layout_.cols);
  if (has_part_of_row()) {
    segment.first = "first_col";
    segment.end = "end_col";
  }
  if (layout_.segments == 1) return segment;
  out_.line(fmt::format("const {0} tile = task / {1}, segment = task % {1};", index_, layout_.segments));
  segment.tile = "tile";
  out_.line(fmt::format("const {} first_col = segment * {};", index_, number(length)));
  segment.first = "first_col";
  if (layout_.segments * length != layout_.cols) {
    out_.line(fmt::format("const {0} end_col = first_col + {1} < {2} ? first_col + {1} : {2};", index_,
                          number(length), number(layout_.cols)));
    segment.end = "end_col";
  } else {
    segment.end = fmt::format("first_col + {}", number(length));
  }
  return segment;
}

void StepPrinter::print_shared_rows() {
  if (in_column_vectors()) return print_column_vectors();
  const std::int64_t rows = layout_.task_rows;
  const std::int64_t length = layout_.length;
  const bool column = is<mapping::Columns>(step_.mapping);
  std::int64_t threads = layout_.threads_a_row;
  const bool in_turn = layout_.turns > 1;
  SW_CHECK((in_turn ? 1 : rows) * threads <= std::int64_t{block_} * layout_.blocks,
           "{} rows of {} threads in a block of {}", rows, threads, block_);
  SW_CHECK(column || threads % 32 == 0 || (threads < 32 && (threads & (threads - 1)) == 0),
           "{} threads a row", threads);

  const std::string lane = has_part_of_row() ? "thread" : "lane";
  const Segment segment = declare_segment();
  if (as<mapping::Segments>(step_.mapping) != nullptr) {
    out_.line("const int local_row = 0, lane = thread;");
  } else if (column) {
    out_.line(fmt::format("const int local_row = thread % {0}, lane = thread / {0};", rows));
  } else if (in_turn) {
    open_turns();
  } else {
    declare_shared_row();
  }
  declare_row(segment.tile, rows);
  std::string active = active_rows();
  if (column) {
    active = rows * threads < block_ ? fmt::format("lane < {}", threads) : "";
    if (partial_) active += (active.empty() ? "" : " && ") + row_guard();
  }

  declare_accumulators();
  out_.open(active.empty() ? "" : fmt::format("if ({})", active));
  values_.print(-1, 1);
  if (has_part_of_row()) threads = block_;
  const bool exact = length % threads == 0 && layout_.cols % layout_.segments == 0 && !has_part_of_row();
  const bool pass =
      std::any_of(step_.roots.begin(), step_.roots.end(), [&](const Root& root) { return passes(root); });
  if (length > 0 && pass) print_col_loop(segment.first, segment.end, length, threads, lane, exact);
  for (std::size_t i = 0; i < step_.roots.size(); ++i)
    if (const Root& root = step_.roots[i]; !passes(root))
      out_.line(fmt::format("{} = sw_about({}, {});", accumulators_[i],
                            places_.gathered[static_cast<std::size_t>(root.gathered)],
                            values_.name(root.value)));
  out_.close();

  // Each block of a cluster has the result for itself.
  const std::string writer =
      (active.empty() ? "" : active + " && ") + std::string(layout_.blocks > 1 ? "thread == 0" : "lane == 0");
  for (std::size_t i = 0; i < step_.roots.size(); ++i)
    if (reduces(step_.roots[i])) finish_reduction(step_.roots[i], i, writer);
  if (in_turn) out_.close();
}

void StepPrinter::print_col_loop(const std::string& first, const std::string& end, std::int64_t length,
                                 std::int64_t threads, const std::string& lane, bool exact) {
  if (in_batches()) {
    const std::int64_t vector = layout_.width;
    std::string at = vector == 1 ? lane : fmt::format("{} * {}", lane, vector);
    if (layout_.peeled) {
      // Elements from the sector that the row begins in to the row.
      out_.line(
          fmt::format("const {} shift = row * {} % {};", index_, number(layout_.cols), layout_.alignment));
      const bool whole = first == "0";
      return print_batches({"col", (whole ? at : first + " + " + at) + " - shift",
                            fmt::format("col > {}-{} && col < {}", whole ? "" : first + " ", vector, end)},
                           layout_);
    }
    return print_batches({"col", first == "0" ? at : first + " + " + at, fmt::format("col < {}", end)},
                         layout_);
  }
  const std::int64_t iterations = ceil_div(length, threads);
  const std::string start = first == "0" ? lane : first + " + " + lane;
  const std::string further = threads == 1 ? "" : fmt::format(" * {}", threads);
  if (layout_.in_tile && layout_.task_rows == 1 && !exact) {
    // Long rows: what every thread has needs no guard.
    const std::int64_t whole = std::min(layout_.unguarded, iterations);
    // A choice, not measured: so many are short code.
    constexpr std::int64_t kUnrolledOfTile = 32;  // their places are those of the first and constants
    const bool unrolled = needs_constant_index() || iterations <= kUnrolledOfTile;
    for (const auto& [from, to] : {std::pair{std::int64_t{0}, whole}, std::pair{whole, iterations}}) {
      if (from == to) continue;
      out_.line(unrolled ? "#pragma unroll" : "#pragma unroll 4");
      out_.open(fmt::format("for (int i = {}; i < {}; ++i)", from, to));
      out_.line(fmt::format("const {} col = {} + i{};", index_, start, further));
      out_.open(to == whole ? "" : fmt::format("if (col < {})", end));
      element_body();
      out_.close();
      out_.close();
    }
    return;
  }
  if (iterations > kUnrolledElements && !needs_index()) {
    out_.line("#pragma unroll 4");
    out_.open(fmt::format("for ({} col = {}; col < {}; col += {})", index_, start, end, threads));
    element_body();
    out_.close();
    return;
  }
  if (iterations > 1 || needs_index()) {
    const bool unrolled = needs_constant_index() || iterations <= kUnrolledElements;
    out_.line(unrolled ? "#pragma unroll" : "#pragma unroll 4");
    out_.open(fmt::format("for (int i = 0; i < {}; ++i)", iterations));
    out_.line(fmt::format("const {} col = {} + i{};", index_, start, further));
  } else {
    out_.open("");
    out_.line(fmt::format("const {} col = {};", index_, start));
  }
  out_.open(exact ? "" : fmt::format("if (col < {})", end));
  element_body();
  out_.close();
  out_.close();
}

}  // namespace stitchwork
