#include "analysis/schedule/layout.h"

#include <algorithm>
#include <numeric>
#include <optional>

#include "core/base/arithmetic.h"
#include "core/index/index_ranges.h"

namespace stitchwork {

using namespace mapping;

Layout::Layout(const Mapping& mapping, int block, TileOrder order) {
  if (const auto* elements = std::get_if<Elements>(&mapping)) set(*elements, block);
  if (const auto* of_rows = std::get_if<Rows>(&mapping)) set(*of_rows, block);
  if (const auto* of_columns = std::get_if<Columns>(&mapping)) set(*of_columns, block);
  if (const auto* patch = std::get_if<Patch>(&mapping)) set(*patch, block, order);
}

void Layout::set(const Elements& elements, int block) {
  flat_ = true;
  rows = elements.count;
  width = elements.vectors.width;
  unroll = elements.vectors.unroll;
  length = elements.parts ? elements.parts->part : elements.per_task;
  stride = std::int64_t{block} * width;
  vectors = ceil_div(length, stride);
  partial_vectors = rows % width != 0;
  task_rows = length;
  apart = elements.per_task;
  by_parts = elements.parts.has_value();
  if (by_parts) blocks = elements.parts->blocks;
  if (elements.parts)  // the last block of a cluster may have a shorter part
    unguarded = std::max<std::int64_t>(0, elements.per_task - (elements.parts->blocks - 1) * length) / stride;
  else
    unguarded = rows % length == 0 ? length / stride : 0;
}

/// `threads` take a row's elements in turn, of which the shortest task has so many.
void Layout::set_row(std::int64_t threads, const Vectors& of, std::int64_t shortest, bool may_peel) {
  lane_dim = 1;
  width = of.width;
  unroll = of.unroll;
  stride = threads * width;
  peeled = head = partial_vectors = may_peel && width > 1 && cols % width != 0;
  // A thread alone has only its first vector before the row.
  if (peeled) alignment = threads_a_row == 1 ? width : 2 * width;
  vectors = ceil_div(length + alignment - 1, stride);
  unguarded = std::max<std::int64_t>(0, std::max<std::int64_t>(0, shortest) / stride - (peeled ? 1 : 0));
}

void Layout::set_turns(int block) {
  rows_a_turn = std::min(task_rows, std::max<std::int64_t>(1, block / threads_a_row));
  turns = ceil_div(task_rows, rows_a_turn);
}

void Layout::set(const Rows& of, int block) {
  rows = of.rows;
  cols = length = apart = of.cols;
  if (const auto* one = std::get_if<OneThread>(&of.sharing)) {
    task_rows = one->rows;
    set_turns(block);
    vectors = unguarded = cols;
  } else if (const auto* lanes = std::get_if<Lanes>(&of.sharing)) {
    threads_a_row = lanes->threads;
    task_rows = lanes->rows;
    in_tile = lanes->tile.has_value();
    set_turns(block);
    set_row(lanes->threads, lanes->vectors, cols, true);
  } else if (const auto* split = std::get_if<Segments>(&of.sharing)) {
    threads_a_row = block;
    segments = split->count;
    length = ceil_div(cols, segments);
    set_row(block, split->vectors, cols - (segments - 1) * length, false);
  } else if (const auto* cluster = std::get_if<Cluster>(&of.sharing)) {
    threads_a_row = cluster->threads;
    blocks = cluster->blocks;
    by_parts = in_tile = cluster->tile.has_value();
    if (by_parts) length = part_cols(cols, blocks);
    set_row(by_parts ? block : cluster->threads, cluster->vectors,
            by_parts ? cols - (blocks - 1) * length : cols, true);
  }
}

void Layout::set(const Columns& of, int block) {
  rows = of.results;
  cols = of.length;
  width = of.vectors.width;
  unroll = of.vectors.unroll;
  places = task_rows = of.tile;
  segments = of.segments;
  std::int64_t together_slices = 1;  // slices go by so many
  if (width > 1 && rows % width == 0 && of.tile % width == 0) {
    columns = ColumnVectors::kWhole;
  } else if (width > 1 && of.tile == rows) {
    columns = ColumnVectors::kFlat;
    together_slices = std::lcm(places, std::int64_t{width}) / places;
  } else if (width > 1) {
    columns = ColumnVectors::kShifted;
    alignment = 2 * width;
    places += alignment;
    together_slices = alignment;
  }
  slices = std::max<std::int64_t>(1, block * width / (places * together_slices)) * together_slices;
  threads_a_row = stride = slices;
  length = ceil_div(cols, segments);
  if (columns == ColumnVectors::kFlat) length = round_up(length, width);  // a segment begins with a vector
  vectors = ceil_div(length, slices);
  unguarded = std::max<std::int64_t>(0, cols - (segments - 1) * length) / slices;
}

void Layout::set(const Patch& patch, int block, TileOrder order) {
  const bool along_cols = order == TileOrder::kAlongCols;
  rows = patch.rows;
  cols = patch.cols;
  task_rows = patch.height;
  segments = ceil_div(cols, std::int64_t{patch.width});
  unroll = patch.unroll;
  lane_dim = 1;
  threads_a_row = patch.width;
  length = along_cols ? patch.height : patch.width;
  // Lines of the tile that the threads take at a time; those beyond a whole number of lines are idle.
  stride = std::max<std::int64_t>(1, block / (along_cols ? std::int64_t{patch.width} : patch.height));
  // Guarded, and in flight together all the same.
  vectors = unguarded = ceil_div(length, stride);
  together = true;
}

Layout Layout::behind(int lead, bool stores) const {
  Layout result = *this;
  result.alignment = lead;
  result.vectors = ceil_div(length + lead - 1, stride);
  result.head = stores;
  result.partial_vectors |= stores;
  if (stores) result.unguarded = std::max<std::int64_t>(0, unguarded - 1);
  return result;
}

std::vector<Run> Layout::runs() const {
  if (vectors == 0) return {};
  const std::int64_t at_once = std::min<std::int64_t>(unroll, vectors), first = head ? 1 : 0;
  const std::int64_t whole = first + std::min(unguarded, vectors - first);
  const std::int64_t body = first + (whole - first) / at_once * at_once;
  std::vector<Run> runs;
  const auto add = [&](std::int64_t from, std::int64_t to, std::int64_t step, bool guarded) {
    if (from < to) runs.push_back({from, to, step, guarded});
  };
  add(0, first, 1, true);
  add(first, body, at_once, false);
  if (!together) {
    add(body, vectors, 1, true);
    return runs;
  }
  add(body, whole, whole - body, false);
  const std::int64_t rest = whole + (vectors - whole) / at_once * at_once;
  add(whole, rest, at_once, true);
  add(rest, vectors, vectors - rest, true);
  return runs;
}

namespace {

/// Trips of a loop of constant length that NVRTC leaves in one basic block: of short loops all, of longer
/// ones the largest power of two that divides them.
std::int64_t unrolled_trips(std::int64_t trips) {
  // As measured with nvcc 13.0 over sums of one array, six bodies, 5 to 400 trips.
  constexpr std::int64_t kWhole = 64, kMost = 16;
  return trips <= kWhole ? trips : std::gcd(trips, kMost);
}

}  // namespace

double Layout::loaded_together() const {
  // Scalar rows are one loop, unrolled by 4, or wholly where it is short and every thread has all of it
  // (codegen/print/print_step.cpp).
  if (lane_dim == 1 && width == 1 && unroll == 1 && !in_tile) {
    // No quantity: what the printer writes.
    constexpr std::int64_t kShort = 8, kBy = 4;
    if (vectors <= kShort)
      return unguarded >= vectors ? static_cast<double>(std::max<std::int64_t>(1, vectors)) : 1;
    const auto together = [](std::int64_t of) {
      const std::int64_t whole = of / kBy * kBy;
      return static_cast<double>(whole * kBy + of - whole);
    };
    const double longer = static_cast<double>(length - unguarded * stride) / static_cast<double>(stride);
    return (together(unguarded) + longer * (together(vectors) - together(unguarded))) /
           (static_cast<double>(length) / static_cast<double>(stride));
  }
  double together = 0, all = 0;
  for (const Run& run : runs()) {
    const std::int64_t vectors_of_run = run.end - run.first;
    const std::int64_t trips = run.guarded ? 1 : unrolled_trips(vectors_of_run / run.at_once);
    all += static_cast<double>(vectors_of_run);
    together += static_cast<double>(vectors_of_run * run.at_once * trips);
  }
  return all > 0 ? together / all : 1;
}

double Layout::in_flight() const {
  const std::int64_t all = std::max<std::int64_t>(1, vectors);
  const std::int64_t at_once = std::min<std::int64_t>(unroll, all);
  const std::int64_t batches = std::min(unguarded, all) / at_once;
  return static_cast<double>(all) / static_cast<double>(batches + all - batches * at_once);
}

namespace {

/// An offset of (row, col) by vectors: the lanes' dimension counts them, the symbol their elements.
struct InVectors {
  IndexExpr offset;
  IndexMap domain;

  bool one_for_all() const { return !offset.uses_symbols(); }
  /// Neighbours, the first at a multiple of a vector.
  bool neighbours(int width) const {
    const IndexExpr first = offset - IndexExpr::symbol(0);
    const AtomRanges ranges = atom_ranges(domain);
    return !first.uses_symbols() && mod_within(first, width, &ranges) == IndexExpr::value(0);
  }
};

std::optional<InVectors> in_vectors(const IndexExpr& offset, const IndexMap& context, int width, int lane,
                                    bool may_end_in_part) {
  InVectors result;
  result.domain.dims = context.dims;
  std::int64_t& extent = result.domain.dims[static_cast<std::size_t>(lane)];
  if (extent % width != 0 && !may_end_in_part) return std::nullopt;
  extent = ceil_div(extent, width);
  result.domain.symbols = {width};
  result.domain.runtime = context.runtime;
  const AtomRanges ranges = atom_ranges(result.domain);
  result.offset = substitute(
      offset,
      [&](AtomKind kind, int id) {
        if (kind != AtomKind::kDim || id != lane) return leaf_atom(kind, id);
        return IndexExpr::dim(lane) * width + IndexExpr::symbol(0);
      },
      &ranges);
  return result;
}

}  // namespace

/// Of peeled rows, and of columns that no vector divides: whether elements lie as they do in the domain.
bool Layout::is_in_order(const IndexExpr& offset) const {
  IndexExpr place = IndexExpr::dim(peeled ? 1 : 0);
  if (!peeled && cols > 1) place = place + IndexExpr::dim(1) * rows;
  if (peeled && rows > 1) place = place + IndexExpr::dim(0) * cols;
  const IndexExpr further = offset - place;
  return further.terms.empty() && further.constant >= 0 && further.constant % width == 0;
}

Movement Layout::movement(const IndexExpr& offset, const IndexMap& context) const {
  if (!context.runtime.empty() || !context.symbols.empty() || !holds(context)) return Movement::kOneByOne;
  if (width == 1) return Movement::kVector;
  if (context.dims.size() != 2) return Movement::kOneByOne;  // not of the domain
  if (peeled || columns == ColumnVectors::kFlat || columns == ColumnVectors::kShifted)
    return is_in_order(offset) ? Movement::kVector : Movement::kOneByOne;
  const auto vectors_of = in_vectors(offset, context, width, lane_dim, flat_);
  if (!vectors_of) return Movement::kOneByOne;
  if (vectors_of->one_for_all()) return Movement::kOneForAll;
  return vectors_of->neighbours(width) ? Movement::kVector : Movement::kOneByOne;
}

bool Layout::holds(const IndexMap& context) const {
  if (context.constraints.empty() || width == 1) return true;
  if (context.dims.size() != 2 || !context.symbols.empty() || peeled || columns == ColumnVectors::kFlat ||
      columns == ColumnVectors::kShifted)
    return false;
  return std::all_of(context.constraints.begin(), context.constraints.end(), [&](const Constraint& c) {
    const auto vectors_of = in_vectors(c.expr, context, width, lane_dim, flat_);
    return vectors_of &&
           (vectors_of->one_for_all() ||
            (vectors_of->neighbours(width) && c.range.lo % width == 0 && (c.range.hi + 1) % width == 0));
  });
}

}  // namespace stitchwork
