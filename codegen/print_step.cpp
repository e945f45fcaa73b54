#include "codegen/print_step.h"

#include <fmt/ranges.h>

#include <algorithm>

#include "analysis/tiles.h"
#include "analysis/vectors.h"
#include "codegen/lower_context.h"
#include "codegen/lower_keep.h"
#include "codegen/table.h"
#include "core/error.h"

namespace stitchwork {
namespace {

/// Loops of at most this many elements a thread are unrolled whether or not their values are kept.
constexpr std::int64_t kUnrolledElements = 8;

}  // namespace

StepPrinter::StepPrinter(const Graph& graph, const Kernel& kernel, const TaskLoop& loop, const Step& step,
                         std::string rows, const PlaceNames& places, const Namer& names, bool canonical,
                         Writer& out, SharedState& shared)
    : computation_(graph.entry_computation()),
      kernel_(kernel),
      step_(step),
      mapping_(step.mapping),
      rows_(std::move(rows)),
      partial_(has_partial_task(loop, static_cast<std::size_t>(&step - loop.steps.data()))),
      places_(places),
      values_(graph, kernel, step, places, names, canonical, out),
      out_(out),
      shared_(shared),
      index_(kernel.wide_indices ? "long long" : "int"),
      block_(kernel.launch.block),
      accumulators_(step.roots.size()) {}

std::string StepPrinter::number(std::int64_t n) const {
  return kernel_.wide_indices ? fmt::format("{}LL", n) : fmt::format("{}", n);
}

std::string StepPrinter::row_guard() const {
  return partial_ ? fmt::format("row < {}", rows_.empty() ? number(mapping_.rows) : rows_) : "";
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
  values_.print(-1, 0);
  if (step_.by_all) return print_rows_by_all();
  if (step_.rows) return print_rows();
  switch (mapping_.kind) {
    case MappingKind::kElementwise:
    case MappingKind::kRowSerial:
      return print_thread_rows();
    case MappingKind::kRowPack:
    case MappingKind::kRowSplit:
    case MappingKind::kColumn:
      return print_shared_rows();
    case MappingKind::kTile:
      return print_tile();
  }
}

/// One thread a row of the task.
void StepPrinter::open_thread_rows(std::int64_t rows) {
  if (rows > block_) {
    out_.open(fmt::format("for (int local_row = thread; local_row < {}; local_row += {})", rows, block_));
    return;
  }
  out_.open(rows < block_ ? fmt::format("if (thread < {})", rows) : "");
  out_.line("const int local_row = thread;");
}

void StepPrinter::print_rows() {
  const std::int64_t rows = rows_per_task(mapping_);
  const bool split = mapping_.split > 1;
  const std::string tile = split ? fmt::format("task / {}", mapping_.split) : "task";
  if (split) out_.open(fmt::format("if (task % {} == 0)", mapping_.split));
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
  const std::int64_t threads = mapping_.threads_per_row;
  declare_shared_row();
  declare_row("task", rows_per_task(mapping_));
  const std::string active = active_rows();
  out_.open(active.empty() ? "" : fmt::format("if ({})", active));
  values_.print(-1, 1);
  values_.print(-1, 2);
  for (const Root& root : step_.roots) {
    if (root.row_result >= 0)
      out_.line(fmt::format("{} = {};", places_.row_results[static_cast<std::size_t>(root.row_result)],
                            values_.name(root.value)));
    if (root.targets.empty()) continue;
    out_.open(threads > 1 ? "if (lane == 0)" : "");
    store(root, values_.name(root.value));
    out_.close();
  }
  out_.close();
}

void StepPrinter::declare_shared_row() {
  const std::int64_t threads = mapping_.threads_per_row;
  out_.line(threads >= block_
                ? std::string("const int local_row = 0, lane = thread;")
                : fmt::format("const int local_row = thread / {0}, lane = thread % {0};", threads));
}

std::string StepPrinter::active_rows() const {
  const std::int64_t rows = rows_per_task(mapping_);
  std::string active;
  if (rows * mapping_.threads_per_row < block_) active = fmt::format("local_row < {}", rows);
  if (partial_) active += (active.empty() ? "" : " && ") + row_guard();
  return active;
}

/// A row's place in the domain from its place in the task.
void StepPrinter::declare_row(const std::string& tile, std::int64_t rows) {
  out_.line(rows == 1 ? fmt::format("const {} row = {};", index_, tile)
                      : fmt::format("const {} row = {} * {} + local_row;", index_, tile, number(rows)));
}

void StepPrinter::print_thread_rows() {
  const std::int64_t rows = rows_per_task(mapping_);
  const bool serial = mapping_.kind == MappingKind::kRowSerial;
  SW_CHECK(serial || mapping_.cols == 1, "element-wise domains have one col");
  if (!serial && in_batches()) return print_row_batches(rows);
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
    out_.open(fmt::format("for (int col = 0; col < {}; ++col)", mapping_.cols));
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

void StepPrinter::print_shared_rows() {
  const std::int64_t rows = rows_per_task(mapping_);
  const std::int64_t length = segment_length(mapping_);
  const bool column = mapping_.kind == MappingKind::kColumn;
  const bool split = mapping_.split > 1;
  std::int64_t threads = mapping_.threads_per_row;  // that share a row
  if (mapping_.kind == MappingKind::kRowSplit) threads = block_;
  if (column) threads = std::max<std::int64_t>(1, block_ / rows);
  SW_CHECK(rows * threads <= block_, "{} rows of {} threads in a block of {}", rows, threads, block_);
  SW_CHECK(column || threads % 32 == 0 || (threads < 32 && (threads & (threads - 1)) == 0),
           "{} threads a row", threads);

  std::string lane = "lane", tile = "task";
  if (split) {
    out_.line(fmt::format("const {0} tile = task / {1}, segment = task % {1};", index_, mapping_.split));
    tile = "tile";
  }
  if (mapping_.kind == MappingKind::kRowSplit) {
    out_.line("const int local_row = 0, lane = thread;");
  } else if (column) {
    out_.line(fmt::format("const int local_row = thread % {0}, lane = thread / {0};", rows));
  } else {
    declare_shared_row();
  }
  declare_row(tile, rows);
  std::string first = "0", end = number(mapping_.cols);
  if (split) {
    out_.line(fmt::format("const {} first_col = segment * {};", index_, number(length)));
    first = "first_col";
    if (mapping_.cols % mapping_.split != 0) {
      out_.line(fmt::format("const {0} end_col = first_col + {1} < {2} ? first_col + {1} : {2};", index_,
                            number(length), number(mapping_.cols)));
      end = "end_col";
    } else {
      end = fmt::format("first_col + {}", number(length));
    }
  }
  std::string active;
  if (rows * threads < block_)
    active = column ? fmt::format("lane < {}", threads) : fmt::format("local_row < {}", rows);
  if (partial_) active += (active.empty() ? "" : " && ") + row_guard();

  declare_accumulators();
  out_.open(active.empty() ? "" : fmt::format("if ({})", active));
  values_.print(-1, 1);
  const bool exact = length % threads == 0 && mapping_.cols % mapping_.split == 0;
  const bool pass =
      std::any_of(step_.roots.begin(), step_.roots.end(), [&](const Root& root) { return passes(root); });
  if (length > 0 && pass) print_col_loop(first, end, length, threads, lane, exact);
  for (std::size_t i = 0; i < step_.roots.size(); ++i)
    if (const Root& root = step_.roots[i]; !passes(root))
      out_.line(fmt::format("{} = sw_about({}, {});", accumulators_[i],
                            places_.gathered[static_cast<std::size_t>(root.gathered)],
                            values_.name(root.value)));
  out_.close();

  const std::string writer = (active.empty() ? "" : active + " && ") + std::string("lane == 0");
  for (std::size_t i = 0; i < step_.roots.size(); ++i)
    if (reduces(step_.roots[i])) finish_reduction(step_.roots[i], i, writer);
}

void StepPrinter::print_col_loop(const std::string& first, const std::string& end, std::int64_t length,
                                 std::int64_t threads, const std::string& lane, bool exact) {
  if (in_batches()) {
    const std::int64_t vector = mapping_.vector, stride = threads * vector;
    std::string at = vector == 1 ? lane : fmt::format("{} * {}", lane, vector);
    if (is_peeled(mapping_)) {
      // Elements from the sector that the row begins in to the row.
      out_.line(fmt::format("const {} shift = row * {} % {};", index_, number(mapping_.cols),
                            peeled_alignment(mapping_)));
      return print_batches({"col", at + " - shift", fmt::format("col > -{} && col < {}", vector, end), stride,
                            vectors_a_thread(mapping_, block_), unguarded_vectors(mapping_, block_), true});
    }
    return print_batches({"col", first == "0" ? at : first + " + " + at, fmt::format("col < {}", end), stride,
                          ceil_div(length, stride), unguarded_vectors(mapping_, block_), false});
  }
  const std::int64_t iterations = ceil_div(length, threads);
  const std::string start = first == "0" ? lane : first + " + " + lane;
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
    out_.line(fmt::format("const {} col = {} + i * {};", index_, start, threads));
  } else {
    out_.open("");
    out_.line(fmt::format("const {} col = {};", index_, start));
  }
  out_.open(exact ? "" : fmt::format("if (col < {})", end));
  element_body();
  out_.close();
  out_.close();
}

/// Element-wise tasks: neighbouring threads on neighbouring vectors.
void StepPrinter::print_row_batches(std::int64_t rows) {
  const std::int64_t vector = mapping_.vector, stride = block_ * vector;
  Batches batches{"local_row",
                  vector == 1 ? "thread" : fmt::format("thread * {}", vector),
                  "",
                  stride,
                  ceil_div(rows, stride),
                  unguarded_vectors(mapping_, block_),
                  false};
  if (rows % stride != 0) batches.guard = fmt::format("local_row < {}", rows);
  if (partial_) batches.guard += (batches.guard.empty() ? "" : " && ") + row_guard();
  batches.tiled = step_.turned;
  print_batches(batches);
}

void StepPrinter::print_tile() {
  const TileOrder order = step_.turned ? TileOrder::kAlongRows : TileOrder::kAlongCols;
  const std::int64_t rows = mapping_.rows_per_block, cols = mapping_.threads_per_row;
  const std::int64_t at_once = tile_lines_at_once(mapping_, block_, order);
  const std::int64_t line = step_.turned ? rows : cols, lines = step_.turned ? cols : rows;
  const bool row_part = partial_, col_part = mapping_.cols % cols != 0;
  tile_ = "tile";
  out_.line(fmt::format("const {0} tile = task / {1}, segment = task % {1};", index_, mapping_.split));
  out_.line(fmt::format("const {} first_col = segment * {};", index_, number(cols)));
  std::vector<std::string> active;
  if (at_once * line < block_) active.push_back(fmt::format("thread < {}", at_once * line));
  Batches batches;
  batches.stride = at_once;
  batches.vectors = tile_elements_a_thread(mapping_, block_, order);
  batches.tiled = true;
  const bool last_part = lines % at_once != 0;  // the last lines taken at once are not all there
  if (step_.turned) {
    out_.line(fmt::format("const int local_row = thread % {};", rows));
    declare_row(tile_, rows);
    if (row_part) active.push_back(row_guard());
    batches.index = "col";
    batches.start = fmt::format("first_col + thread / {}", rows);
    batches.guard = col_part ? fmt::format("col < {}", number(mapping_.cols)) : "";
    if (last_part)
      batches.guard += (col_part ? " && " : "") + fmt::format("col < first_col + {}", number(cols));
  } else {
    out_.line(fmt::format("const {} col = first_col + thread % {};", index_, cols));
    if (col_part) active.push_back(fmt::format("col < {}", number(mapping_.cols)));
    batches.index = "local_row";
    batches.start = fmt::format("thread / {}", cols);
    batches.guard = last_part ? fmt::format("local_row < {}", rows) : "";
    if (row_part) batches.guard += (last_part ? " && " : "") + row_guard();
  }
  batches.unguarded = batches.guard.empty() ? batches.vectors : 0;
  out_.open(active.empty() ? "" : fmt::format("if ({})", fmt::join(active, " && ")));
  if (step_.turned) values_.print(-1, 1);
  print_batches(batches);
  out_.close();
}

/// First the vectors that exist for every thread, mapping.unroll of them at a time, then the others one by
/// one.
void StepPrinter::print_batches(const Batches& batches) {
  const std::int64_t unroll = std::min<std::int64_t>(mapping_.unroll, batches.vectors);
  const std::int64_t first = batches.peeled ? 1 : 0;
  const std::int64_t main = first + std::min(batches.unguarded, batches.vectors - first) / unroll * unroll;
  const bool short_loop = needs_constant_index() || batches.vectors * mapping_.vector <= kUnrolledElements;
  const auto loop = [&](std::int64_t from, std::int64_t to, std::int64_t step, bool guarded) {
    if (from >= to) return;
    if (to - from > step) {
      if (short_loop) out_.line("#pragma unroll");
      out_.open(fmt::format("for (int n = {}; n < {}; n += {})", from, to, step));
    } else {
      out_.block();
      out_.line(fmt::format("const int n = {};", from));
    }
    print_batch(batches, step, guarded);
    out_.close();
  };
  loop(0, first, 1, true);
  loop(first, main, unroll, false);
  const std::int64_t together = batches.tiled ? (batches.vectors - main) / unroll * unroll : 0;
  loop(main, main + together, unroll, true);
  loop(main + together, batches.vectors, batches.tiled ? batches.vectors - main - together : 1, true);
}

void StepPrinter::open_batch_loop(std::int64_t vectors) {
  if (vectors > 1) out_.line("#pragma unroll");
  out_.open(fmt::format("for (int u = 0; u < {}; ++u)", vectors));
}

/// Declares the dimensions' indices of the element `at` of the thread's vector n + u.
void StepPrinter::place(const Batches& batches, const std::string& at) {
  const bool rows = batches.index == "local_row";
  out_.line(fmt::format("const {} {} = {} + (n + u) * {}{};", rows ? "int" : index_, batches.index,
                        batches.start, batches.stride, at));
  if (rows) declare_row(tile_, rows_per_task(mapping_));
}

/// The same of an element that exists, the nearest where the thread's does not: its load needs no guard, and
/// waits for no other.
void StepPrinter::place_inside(const Batches& batches) {
  const std::string at = fmt::format("{} + (n + u) * {}", batches.start, batches.stride);
  if (batches.index == "col") {
    out_.line(fmt::format("const {} col = sw_min({}, {});", index_, at, number(mapping_.cols - 1)));
    return;
  }
  const std::string first = fmt::format("{} * {}", tile_, number(rows_per_task(mapping_)));
  if (mapping_.kind == MappingKind::kElementwise) {
    // Of a range: what is read may be its tile, which has nothing behind the task's last vector.
    const std::string elements =
        partial_ ? fmt::format("(int)sw_min({}, {} - {})", number(rows_per_task(mapping_)),
                               number(mapping_.rows), first)
                 : fmt::format("{}", rows_per_task(mapping_));
    out_.line(fmt::format("const int local_row = sw_min({}, {} - {});", at, elements, mapping_.vector));
    out_.line(fmt::format("const {} row = {} + local_row;", index_, first));
    return;
  }
  out_.line(fmt::format("const int local_row = {};", at));
  out_.line(
      fmt::format("const {} row = sw_min({} + local_row, {});", index_, first, number(mapping_.rows - 1)));
}

void StepPrinter::print_batch(const Batches& batches, std::int64_t vectors, bool guarded) {
  const auto open_guard = [&] {
    out_.open(guarded && !batches.guard.empty() ? fmt::format("if ({})", batches.guard) : "");
  };
  const bool in_part = batches.peeled && guarded;
  values_.declare_ahead(static_cast<int>(vectors));
  if (values_.goes_ahead()) {
    open_batch_loop(vectors);
    if (batches.tiled && guarded) {
      place_inside(batches);
      out_.open("");
    } else {
      place(batches, "");
      open_guard();
    }
    values_.load_ahead("u", in_part ? elements_left() : "");
    out_.close();
    out_.close();
    values_.hold_ahead(static_cast<int>(vectors));
  }
  open_batch_loop(vectors);
  place(batches, "");
  open_guard();
  for (const Root& root : step_.roots)
    for (const Target& target : root.targets) {
      if (!target.vector) continue;
      const Node& node = computation_.node(root.op);
      vectors_[&target] = values_.names().make(node.name, "w", "_vector");
      out_.line(fmt::format("SwVector<{}, {}> {};", storage_type(node.shape.dtype), mapping_.vector,
                            vectors_[&target]));
      if (in_part) out_.line(fmt::format("sw_clear({});", vectors_[&target]));
    }
  out_.line("#pragma unroll");
  out_.open(fmt::format("for (int j = 0; j < {}; ++j)", mapping_.vector));
  place(batches, " + j");
  out_.open(in_part ? fmt::format("if (col >= 0 && col < {})", number(mapping_.cols)) : "");
  if (needs_index()) out_.line(fmt::format("const int i = (n + u) * {} + j;", mapping_.vector));
  if (batches.index == "local_row") values_.print(-1, 1);
  element_body();
  out_.close();
  out_.close();
  store_vectors(in_part);
  out_.close();
  out_.close();
}

void StepPrinter::store_vectors(bool in_part) {
  for (const Root& root : step_.roots)
    for (const Target& target : root.targets)
      if (target.vector)
        out_.line(fmt::format("{}(&{}[{}], {}{});", in_part ? "sw_store_part" : "sw_store",
                              places_.buffers[static_cast<std::size_t>(target.buffer)], offset_text(target),
                              vectors_.at(&target),
                              in_part ? fmt::format(", -col, {} - col", number(mapping_.cols)) : ""));
}

std::string StepPrinter::elements_left() const {
  if (rows_.empty() && mapping_.rows * mapping_.cols % mapping_.vector == 0) return "";
  return fmt::format("({} - row) * {} - col", rows_.empty() ? number(mapping_.rows) : rows_,
                     number(mapping_.cols));
}

void StepPrinter::element_body() {
  values_.print(-1, 2);
  for (std::size_t i = 0; i < step_.roots.size(); ++i) {
    const Root& root = step_.roots[i];
    if (root.store == StoreKind::kGather) {
      out_.line(fmt::format("sw_gather({}, {});", places_.gathered[static_cast<std::size_t>(root.gathered)],
                            values_.name(root.value)));
    } else if (reduces(root)) {
      if (root.value >= 0 && passes(root))
        out_.line(accumulate_text(root.reducer, accumulators_[i], values_.name(root.value)) + ";");
    } else if (root.store == StoreKind::kAcross) {
      out_.line(accumulate_text(root.reducer, places_.across.at(root.op) + "[i]", values_.name(root.value)) +
                ";");
    } else {
      store(root, values_.name(root.value));
    }
  }
}

void StepPrinter::declare_accumulators() {
  for (std::size_t i = 0; i < step_.roots.size(); ++i) {
    const Root& root = step_.roots[i];
    if (!reduces(root)) continue;
    const Node& node = computation_.node(root.op);
    accumulators_[i] = values_.names().make(node.name, "a", "_acc");
    out_.line(fmt::format("{} {} = {};", value_type(node.shape.dtype), accumulators_[i],
                          neutral_text(root.reducer, node.shape.dtype)));
  }
}

void StepPrinter::finish_reduction(const Root& root, std::size_t index, const std::string& writer) {
  const DType dtype = computation_.node(root.op).shape.dtype;
  const std::string& accumulator = accumulators_[index];
  const std::string_view reducer = reducer_name(root.reducer), type = value_type(dtype);
  if (mapping_.kind == MappingKind::kColumn) {
    const std::int64_t rows = rows_per_task(mapping_), slices = std::max<std::int64_t>(1, block_ / rows);
    if (slices > 1) {
      if (shared_.workspace != SharedState::kFree) out_.line("__syncthreads();");
      shared_.workspace = SharedState::kAllBusy;
      out_.line(fmt::format("{0} = sw_column_reduce<{1}, {2}, {3}>({0}, ({4}*)(shared + {5}));", accumulator,
                            reducer, rows, slices, type, kernel_.workspace_offset));
    }
  } else {
    const std::int64_t threads = mapping_.kind == MappingKind::kRowSplit ? block_ : mapping_.threads_per_row;
    if (threads > 32) {
      if (shared_.workspace == SharedState::kAllBusy) out_.line("__syncthreads();");
      // All have read one half once all have come to the barrier of a reduction in the other.
      const bool second = shared_.workspace == SharedState::kFirstBusy;
      shared_.workspace = second ? SharedState::kSecondBusy : SharedState::kFirstBusy;
      out_.line(fmt::format("{0} = sw_row_reduce<{1}, {2}, {3}>({0}, {4}, ({5}*)(shared + {6}));",
                            accumulator, reducer, threads, block_, neutral_text(root.reducer, dtype), type,
                            kernel_.workspace_offset + (second ? kernel_.workspace_bytes / 2 : 0)));
    } else if (threads > 1) {
      out_.line(fmt::format("{0} = sw_warp_reduce<{1}, {2}>({0});", accumulator, reducer, threads));
    }
  }
  if (root.row_result >= 0) {
    fold_initial(root, accumulator);
    out_.line(fmt::format("{} = {};", places_.row_results[static_cast<std::size_t>(root.row_result)],
                          rounded_text(dtype, accumulator)));
  }
  if (root.targets.empty()) return;
  out_.open(fmt::format("if ({})", writer));
  if (root.row_result < 0) fold_initial(root, accumulator);
  store_only(root, accumulator);
  out_.close();
}

void StepPrinter::store(const Root& root, const std::string& value) {
  fold_initial(root, value);
  store_only(root, value);
}

/// The initial value is folded in exactly once: by whoever folds the partials, by segment 0 of an atomic
/// combination, else here.
void StepPrinter::fold_initial(const Root& root, const std::string& value) {
  if (root.store != StoreKind::kReduce && root.store != StoreKind::kAtomic) return;
  const Value& initial = step_.values[static_cast<std::size_t>(root.initial)];
  const bool neutral = initial.kind == ValueKind::kConstant &&
                       is_neutral(root.reducer, *computation_.node(initial.op).attrs.literal);
  if (neutral) return;
  const std::string fold = accumulate_text(root.reducer, value, values_.name(root.initial)) + ";";
  out_.line(root.store == StoreKind::kAtomic ? "if (segment == 0) " + fold : fold);
}

void StepPrinter::store_only(const Root& root, const std::string& value) {
  const DType dtype = computation_.node(root.op).shape.dtype;
  // Values of elements are rounded already, accumulators are not.
  const auto stored = [&] {
    return root.store == StoreKind::kElement ? exactly_stored_text(dtype, value) : stored_text(dtype, value);
  };
  for (const Target& target : root.targets) {
    const Buffer& buffer = kernel_.buffers[static_cast<std::size_t>(target.buffer)];
    if (target.vector) {
      out_.line(fmt::format("sw_set({}, j, ({})({}));", vectors_.at(&target), storage_type(dtype), stored()));
      continue;
    }
    const std::string offset = offset_text(target);
    const std::string& place = places_.buffers[static_cast<std::size_t>(target.buffer)];
    if (root.store == StoreKind::kAtomic) {
      const std::string_view reducer = reducer_name(root.reducer);
      if (dtype == DType::kF16 || dtype == DType::kBF16)
        out_.line(fmt::format("sw_atomic_half<{}, {}>(&{}[{}], {});", reducer, dtype == DType::kBF16, place,
                              offset, value));
      else
        out_.line(fmt::format("SwAtomic<{}>::into(&{}[{}], ({}){});", reducer, place, offset,
                              storage_type(dtype), value));
    } else if (buffer.partials) {
      out_.line(fmt::format("{}[{} + segment] = {};", place, offset, value));
    } else {
      out_.line(fmt::format("{}[{}] = {};", place, offset, stored()));
    }
  }
}

std::string StepPrinter::offset_text(const Target& target) const {
  const bool shared = kernel_.buffers[static_cast<std::size_t>(target.buffer)].space == MemorySpace::kShared;
  IndexMap context;
  context.dims = {mapping_.rows, mapping_.cols};
  return index_text(target.offset, context, values_.index_names(2, shared));
}

}  // namespace stitchwork
