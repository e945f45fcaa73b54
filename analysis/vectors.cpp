#include "analysis/vectors.h"

#include <algorithm>
#include <numeric>
#include <optional>

#include "analysis/tiles.h"
#include "core/arithmetic.h"
#include "core/index_ranges.h"

namespace stitchwork {

int vector_dim(const ThreadMapping& mapping) {
  return mapping.kind == MappingKind::kElementwise || mapping.kind == MappingKind::kColumn ? 0 : 1;
}

std::int64_t threads_sharing_a_row(const ThreadMapping& mapping, int block) {
  switch (mapping.kind) {
    case MappingKind::kElementwise:
    case MappingKind::kRowSerial:
      return 1;
    case MappingKind::kRowPack:
    case MappingKind::kTile:
      return mapping.threads_per_row;
    case MappingKind::kRowSplit:
      return block;
    case MappingKind::kColumn:
      return column_slices(mapping, block);
  }
  return 1;
}

bool is_peeled(const ThreadMapping& mapping) {
  return mapping.kind == MappingKind::kRowPack && mapping.vector > 1 && mapping.cols % mapping.vector != 0;
}

int peeled_alignment(const ThreadMapping& mapping) {
  // A thread alone has only its first vector before the row.
  const bool alone = mapping.kind == MappingKind::kRowPack && mapping.threads_per_row == 1;
  return alone ? mapping.vector : 2 * mapping.vector;
}

ColumnVectors column_vectors(const ThreadMapping& mapping) {
  if (mapping.kind != MappingKind::kColumn || mapping.vector == 1) return ColumnVectors::kNone;
  if (mapping.rows % mapping.vector == 0 && mapping.rows_per_block % mapping.vector == 0)
    return ColumnVectors::kWhole;
  return mapping.rows_per_block == mapping.rows ? ColumnVectors::kFlat : ColumnVectors::kShifted;
}

std::int64_t column_places(const ThreadMapping& mapping) {
  const std::int64_t more =
      column_vectors(mapping) == ColumnVectors::kShifted ? peeled_alignment(mapping) : 0;
  return mapping.rows_per_block + more;
}

std::int64_t column_slices(const ThreadMapping& mapping, int block) {
  const std::int64_t vector = mapping.vector, places = column_places(mapping);
  std::int64_t together = 1;  // slices go by so many
  if (column_vectors(mapping) == ColumnVectors::kFlat) together = std::lcm(places, vector) / places;
  if (column_vectors(mapping) == ColumnVectors::kShifted) together = peeled_alignment(mapping);
  return std::max<std::int64_t>(1, block * vector / (places * together)) * together;
}

std::int64_t segment_length(const ThreadMapping& mapping) {
  if (mapping.kind == MappingKind::kTile) return mapping.threads_per_row;
  const std::int64_t length = ceil_div(mapping.cols, mapping.split);
  // A segment begins with a vector.
  return column_vectors(mapping) == ColumnVectors::kFlat ? round_up(length, mapping.vector) : length;
}

namespace {

/// Of a row, by the threads that share it, a vector each; those of columns lie along the rows.
std::int64_t cols_at_once(const ThreadMapping& mapping, int block) {
  const std::int64_t threads = threads_sharing_a_row(mapping, block);
  return mapping.kind == MappingKind::kColumn ? threads : threads * mapping.vector;
}

}  // namespace

std::int64_t vectors_a_thread(const ThreadMapping& mapping, int block) {
  const bool part = mapping.staged && mapping.cluster > 1;  // of a row
  if (is_peeled(mapping))
    return ceil_div((part ? staged_cols(mapping) : mapping.cols) + peeled_alignment(mapping) - 1,
                    std::int64_t{part ? block : mapping.threads_per_row} * mapping.vector);
  if (mapping.kind == MappingKind::kElementwise)
    return ceil_div(mapping.rows_per_block, std::int64_t{block} * mapping.vector);
  if (mapping.kind == MappingKind::kTile)
    return tile_elements_a_thread(mapping, block, TileOrder::kAlongCols);
  if (part) return ceil_div(staged_cols(mapping), std::int64_t{block} * mapping.vector);
  return ceil_div(segment_length(mapping), cols_at_once(mapping, block));
}

std::int64_t elements_per_thread(const ThreadMapping& mapping, int block) {
  return vectors_a_thread(mapping, block) * mapping.vector;
}

std::int64_t unguarded_vectors(const ThreadMapping& mapping, int block) {
  if (mapping.kind == MappingKind::kElementwise) {
    if (mapping.cluster > 1) {  // the parts of a staged row
      const std::int64_t others = (mapping.cluster - 1) * mapping.rows_per_block;
      return std::max<std::int64_t>(0, mapping.rows / mapping.tasks - others) /
             (std::int64_t{block} * mapping.vector);
    }
    const bool whole = mapping.rows % mapping.rows_per_block == 0;
    return whole ? mapping.rows_per_block / (std::int64_t{block} * mapping.vector) : 0;
  }
  // Those of a tile are guarded and in flight together all the same.
  if (mapping.kind == MappingKind::kTile) return vectors_a_thread(mapping, block);
  const bool part = mapping.staged && mapping.cluster > 1;  // of a row
  const std::int64_t others =
      part ? (mapping.cluster - 1) * staged_cols(mapping) : (mapping.split - 1) * segment_length(mapping);
  const std::int64_t shortest = std::max<std::int64_t>(0, mapping.cols - others);
  const std::int64_t whole =
      shortest / (part ? std::int64_t{block} * mapping.vector : cols_at_once(mapping, block));
  return is_peeled(mapping) ? std::max<std::int64_t>(0, whole - 1) : whole;
}

double vectors_loaded_together(const ThreadMapping& mapping, int block) {
  const std::int64_t vectors = std::max<std::int64_t>(1, vectors_a_thread(mapping, block));
  const std::int64_t unroll = std::min<std::int64_t>(mapping.unroll, vectors);
  const std::int64_t together = std::min(unguarded_vectors(mapping, block), vectors) / unroll;
  const std::int64_t alone = vectors - together * unroll;
  return static_cast<double>(together * unroll * unroll + alone) / static_cast<double>(vectors);
}

double vectors_in_flight(const ThreadMapping& mapping, int block) {
  const std::int64_t vectors = std::max<std::int64_t>(1, vectors_a_thread(mapping, block));
  const std::int64_t unroll = std::min<std::int64_t>(mapping.unroll, vectors);
  const std::int64_t together = std::min(unguarded_vectors(mapping, block), vectors) / unroll;
  return static_cast<double>(vectors) / static_cast<double>(together + vectors - together * unroll);
}

namespace {

/// An offset of (row, col) by vectors: the lanes' dimension counts them, the symbol their elements.
struct InVectors {
  IndexExpr offset;
  IndexMap domain;
};
std::optional<InVectors> in_vectors(const IndexExpr& offset, const IndexMap& context,
                                    const ThreadMapping& mapping) {
  const std::int64_t vector = mapping.vector;
  const int lane = vector_dim(mapping);
  InVectors result;
  result.domain.dims = context.dims;
  std::int64_t& extent = result.domain.dims[static_cast<std::size_t>(lane)];
  // Of a range that moves through a tile there may be a part of a vector at the end.
  if (extent % vector != 0 && mapping.kind != MappingKind::kElementwise) return std::nullopt;
  extent = ceil_div(extent, vector);
  result.domain.symbols = {vector};
  result.domain.runtime = context.runtime;
  const AtomRanges ranges = atom_ranges(result.domain);
  result.offset = substitute(
      offset,
      [&](AtomKind kind, int id) {
        if (kind != AtomKind::kDim || id != lane) return leaf_atom(kind, id);
        return IndexExpr::dim(lane) * vector + IndexExpr::symbol(0);
      },
      &ranges);
  return result;
}

}  // namespace

bool moves_in_vectors(const IndexExpr& offset, const IndexMap& context, const ThreadMapping& mapping) {
  const std::int64_t vector = mapping.vector;
  if (vector == 1) return true;
  if (context.dims.size() != 2) return false;  // not of the domain
  const ColumnVectors columns = column_vectors(mapping);
  const bool in_order = columns == ColumnVectors::kFlat || columns == ColumnVectors::kShifted;
  if (is_peeled(mapping) || in_order) {
    IndexExpr place = IndexExpr::dim(in_order ? 0 : 1);
    if (in_order && mapping.cols > 1) place = place + IndexExpr::dim(1) * mapping.rows;
    if (!in_order && mapping.rows > 1) place = place + IndexExpr::dim(0) * mapping.cols;
    const IndexExpr further = offset - place;
    return further.terms.empty() && further.constant >= 0 && further.constant % vector == 0;
  }
  const auto of_vectors = in_vectors(offset, context, mapping);
  if (!of_vectors) return false;
  const IndexExpr first = of_vectors->offset - IndexExpr::symbol(0);
  const AtomRanges ranges = atom_ranges(of_vectors->domain);
  return !first.uses_symbols() && mod_within(first, vector, &ranges) == IndexExpr::value(0);
}

bool holds_for_vectors(const IndexMap& context, const ThreadMapping& mapping) {
  if (context.constraints.empty() || mapping.vector == 1) return true;
  if (context.dims.size() != 2 || !context.symbols.empty() || is_peeled(mapping)) return false;
  if (mapping.kind == MappingKind::kColumn && column_vectors(mapping) != ColumnVectors::kWhole) return false;
  return std::all_of(context.constraints.begin(), context.constraints.end(), [&](const Constraint& c) {
    const auto of_vectors = in_vectors(c.expr, context, mapping);
    if (!of_vectors) return false;
    if (!of_vectors->offset.uses_symbols()) return true;
    const IndexExpr first = of_vectors->offset - IndexExpr::symbol(0);
    const AtomRanges ranges = atom_ranges(of_vectors->domain);
    return !first.uses_symbols() && mod_within(first, mapping.vector, &ranges) == IndexExpr::value(0) &&
           c.range.lo % mapping.vector == 0 && (c.range.hi + 1) % mapping.vector == 0;
  });
}

bool is_same_in_vectors(const IndexExpr& offset, const IndexMap& context, const ThreadMapping& mapping) {
  if (mapping.vector == 1 || context.dims.size() != 2 || is_peeled(mapping)) return false;
  if (!context.runtime.empty() || !context.symbols.empty() || !holds_for_vectors(context, mapping))
    return false;
  if (mapping.kind == MappingKind::kColumn && column_vectors(mapping) != ColumnVectors::kWhole) return false;
  const auto of_vectors = in_vectors(offset, context, mapping);
  return of_vectors && !of_vectors->offset.uses_symbols();
}

}  // namespace stitchwork
