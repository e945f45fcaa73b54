#include "simulator/machine/tensor_copy.h"

#include <algorithm>
#include <cstring>
#include <limits>

#include "core/base/error.h"
#include "simulator/machine/access_log.h"
#include "simulator/machine/bulk_copy.h"
#include "simulator/machine/cluster.h"
#include "simulator/tensor_map.h"

namespace stitchwork::sim {
namespace {

/// Of the box's first byte in shared memory (PTX ISA, "cp.async.bulk.tensor").
constexpr unsigned kBoxAlignment = 128;
/// What a swizzle moves as a whole.
constexpr u64 kSwizzleChunk = 16;
/// Rows that tile::gather4 and tile::scatter4 move.
constexpr int kGatheredRows = 4;
/// Bits of an im2col offset, by the number of spatial dimensions (PTX ISA 8.7, 5.5.4.1).
constexpr int kOffsetBits[] = {0, 16, 8, 5};

using Place = std::array<i64, TensorMap::kMaxRank>;

SW_INLINE u32 operand_of(const Inst* i, int k) { return i[k / 6].o[k % 6]; }

template <class T>
T value_of(const Strand& s, u32 slot, int w, int l) {
  return load<T>(s.regs + slot + (w * 32 + l) * int(sizeof(T)));
}

/// One lane's copy.
struct TensorCopy {
  Strand& s;
  const Inst* i;
  int w, l;

  int rank() const { return i->flags & kTensorRankMask; }
  u64 shared_address(int operand, std::uint16_t narrow) const {
    const u32 slot = operand_of(i, operand);
    return i->aux & narrow ? value_of<u32>(s, slot, w, l) : value_of<u64>(s, slot, w, l);
  }
  [[noreturn]] void raise(FindingKind kind, const std::string& what) const {
    raise_finding(s, i, kind, what.c_str(), w, l);
  }

  TensorMap map(int operand) const {
    const u64 address = value_of<u64>(s, operand_of(i, operand), w, l);
    if (address % TensorMap::kAlignment != 0) raise_misaligned(s, i, address, TensorMap::kAlignment, w, l);
    const std::byte* bytes = nullptr;
    if (address >> kAllocationShift == kParamWindow) {
      const u64 offset = offset_of(address);
      if (offset > s.block->param_bytes || TensorMap::kBytes > s.block->param_bytes - offset)
        raise_window(s, i, "param", offset, TensorMap::kBytes, s.block->param_bytes, false, w, l);
      bytes = s.block->params + offset;
    } else {
      AddressCache cache;
      find_allocation(s, i, cache, address, TensorMap::kBytes, false, w, l);
      bytes = cache.host + (address - cache.lo);
    }
    ++s.block->hot->accesses;
    const auto map = TensorMap::decode({bytes, TensorMap::kBytes});
    if (!map)
      raise(FindingKind::kOutOfBounds,
            fmt::format("takes the 128 bytes at {:#x} as a tensor map, which they are not", address));
    if (map->rank != rank())
      raise(FindingKind::kOutOfBounds,
            fmt::format("copies a box of {} dimensions by a tensor map of {}", rank(), map->rank));
    if (im2col() != (map->mode == TensorMode::kIm2col))
      raise(FindingKind::kOutOfBounds,
            fmt::format("copies {} by a tensor map of {}", im2col() ? "columns of pixels (im2col)" : "a tile",
                        im2col() ? "tiles" : "columns of pixels (im2col)"));
    if (of_rows() && map->box[1] != 1)
      raise(FindingKind::kOutOfBounds,
            fmt::format("copies four rows by a tensor map whose box has {}, not 1", map->box[1]));
    return *map;
  }
  bool im2col() const { return i->flags & kTensorIm2col; }
  bool of_rows() const { return i->flags & kTensorRows; }
  int coordinate_count() const { return of_rows() ? 1 + kGatheredRows : rank(); }
  Place coordinates(int operand) const {
    Place at{};
    for (int d = 0; d < coordinate_count(); ++d)
      at[d] = value_of<std::int32_t>(s, operand_of(i, operand + d), w, l);
    return at;
  }
  /// Of W, H and D.
  Place im2col_offsets(int operand) const {
    Place offsets{};
    for (int k = 0; k < rank() - 2; ++k) {
      offsets[k] = value_of<u32>(s, operand_of(i, operand + k), w, l) & 0xffff;
      if (offsets[k] >= i64{1} << kOffsetBits[rank() - 2])
        raise(FindingKind::kOutOfBounds,
              fmt::format("has the im2col offset {} along dimension {}, where 0 to {} are possible",
                          offsets[k], k + 1, (1 << kOffsetBits[rank() - 2]) - 1));
    }
    return offsets;
  }
  u32 bytes(const TensorMap& map) const {
    return u32(of_rows() ? kGatheredRows * map.row_bytes() : map.box_bytes());
  }
};

/// Cuts [at, at + bytes) of shared memory where a swizzle tears it apart, and adds the parts.
void add_parts(TensorBox& box, const TensorMap& map, u64 begin, u64 at, u64 bytes, std::byte* global) {
  if (map.swizzle == Swizzle::kNone) {
    box.parts.push_back({u32(at - begin), u32(bytes), global});
    return;
  }
  for (const u64 end = at + bytes; at < end;) {
    const u64 here = std::min((at / kSwizzleChunk + 1) * kSwizzleChunk, end) - at;
    box.parts.push_back({u32(swizzled(at, map.swizzle) - begin), u32(here), global});
    at += here;
    if (global != nullptr) global += here;
  }
}

u64 nan_of(TensorElement type) {
  switch (type) {
    case TensorElement::kF64:
      return 0x7fffffffffffffff;
    case TensorElement::kF32:
      return 0x7fffffff;
    default:
      return 0x7fff;
  }
}

/// f(place of its first element) of each row of a copy, as they lie in shared memory.
template <class F>
void for_tile(const TensorMap& map, const Place& at, F f) {
  std::array<u32, TensorMap::kMaxRank> index{};
  Place row = at;
  for (bool more = true; more;) {
    f(row);
    more = false;
    for (int d = 1; d < map.rank && !more; ++d) {
      more = ++index[d] < map.copied(d);
      row[d] += map.element_strides[d];
      if (more) continue;
      index[d] = 0;
      row[d] = at[d];
    }
  }
}
/// PTX ISA 8.7, 5.5.4: the corner passes over its box, W first, then from one image to the next.
template <class F>
void for_columns(const TensorMap& map, const Place& at, const Place& offsets, F f) {
  Place corner = at;
  for (u32 pixel = 0; pixel < map.pixels; ++pixel) {
    Place row = corner;
    for (int d = 1; d <= map.spatial(); ++d) row[d] += offsets[d - 1];
    f(row);
    bool same_image = false;
    for (int d = 1; d <= map.spatial() && !same_image; ++d) {
      corner[d] += map.element_strides[d];
      same_image = corner[d] <= map.last_corner(d);
      if (!same_image) corner[d] = map.lower_corner[d - 1];
    }
    if (!same_image) ++corner[map.rank - 1];
  }
}
template <class F>
void for_rows(const TensorCopy& c, const TensorMap& map, const Place& at, const Place& offsets, F f) {
  if (c.im2col()) return for_columns(map, at, offsets, f);
  if (!c.of_rows()) return for_tile(map, at, f);
  for (int k = 1; k <= kGatheredRows; ++k) f(Place{at[0], at[k]});
}

/// PTX ISA 8.7, 5.5.4.1: "The filter corner location must be within the bounding box."
void check_corner(const TensorCopy& c, const TensorMap& map, const Place& at) {
  for (int d = 1; d <= map.spatial(); ++d)
    if (at[d] < map.lower_corner[d - 1] || at[d] > map.last_corner(d))
      c.raise(FindingKind::kOutOfBounds,
              fmt::format("begins at {} along dimension {}, outside of its pixels' box, {} to {}", at[d], d,
                          map.lower_corner[d - 1], map.last_corner(d)));
}

/// What a copy from `at` on moves, whose first byte is at `shared`; `ranges`: what it is of global memory,
/// row by row, joined where rows follow each other.
std::shared_ptr<TensorBox> cut_box(const TensorCopy& c, const TensorMap& map, const Place& at,
                                   const Place& offsets, u64 shared, bool write,
                                   std::vector<GlobalRange>& ranges) {
  if (c.im2col()) check_corner(c, map, at);
  auto box = std::make_shared<TensorBox>();
  box->element_bytes = map.element_bytes();
  if (map.fill_nan) box->fill = nan_of(map.type);
  const i64 size = map.element_bytes(), width = map.box[0];
  const i64 lo = std::clamp<i64>(-at[0], 0, width), hi = std::clamp<i64>(i64(map.dims[0]) - at[0], lo, width);
  AddressCache& cache = c.s.block->caches[c.i->id];
  u64 row = shared;
  for_rows(c, map, at, offsets, [&](const Place& from) {
    bool inside = lo < hi;
    u64 address = map.address + u64(from[0] + lo) * u64(size);
    for (int d = 1; d < map.rank; ++d) {
      inside &= from[d] >= 0 && from[d] < i64(map.dims[d]);
      address += u64(from[d]) * map.strides[d - 1];
    }
    if (inside) {
      const u32 bytes = u32((hi - lo) * size);
      if (address < cache.lo || address > cache.hi || bytes > cache.hi - address)
        find_allocation(c.s, c.i, cache, address, bytes, write, c.w, c.l);
      if (!ranges.empty() && ranges.back().address + ranges.back().bytes == address)
        ranges.back().bytes += bytes;
      else
        ranges.push_back({address, bytes});
      if (!write && lo > 0) add_parts(*box, map, shared, row, u64(lo * size), nullptr);
      add_parts(*box, map, shared, row + u64(lo * size), bytes, cache.host + (address - cache.lo));
      if (!write && hi < width)
        add_parts(*box, map, shared, row + u64(hi * size), u64((width - hi) * size), nullptr);
    } else if (!write) {
      add_parts(*box, map, shared, row, map.row_bytes(), nullptr);
    }
    row += map.row_bytes();
  });
  return box;
}

/// Operands behind the first coordinate's place.
int numbers_of(const Inst* i, bool offsets) {
  const int rank = i->flags & kTensorRankMask;
  if (i->flags & kTensorRows) return 1 + kGatheredRows;
  return offsets && i->flags & kTensorIm2col ? 2 * rank - 2 : rank;
}
int operands_of_load(const Inst* i) {
  return 3 + numbers_of(i, true) + (i->flags & kTensorMulticast ? 1 : 0);
}

const Inst* behind(const Inst* i, int operands) { return i + (operands + 5) / 6; }

void load_lane(const TensorCopy& c) {
  BlockRun& b = *c.s.block;
  const bool remote = c.i->flags & kTensorRemote;
  const TensorMap map = c.map(1);
  const u32 bytes = c.bytes(map);
  const SharedPlace at = shared_place(c.s, c.i, c.shared_address(0, kBulkNarrowShared), bytes, kBoxAlignment,
                                      remote, true, c.w, c.l);
  const SharedPlace bar = shared_place(c.s, c.i, c.shared_address(2, kBulkNarrowMbarrier), Mbarrier::kBytes,
                                       Mbarrier::kBytes, remote, true, c.w, c.l);
  std::vector<GlobalRange> ranges;
  const std::shared_ptr<TensorBox> box =
      cut_box(c, map, c.coordinates(3), c.im2col() ? c.im2col_offsets(3 + c.rank()) : Place{}, at.offset,
              false, ranges);
  if (b.checks != nullptr) b.checks->bulk_load_source(c.s, c.i, c.w, c.l, *at.block->checks, ranges);
  ++b.hot->bulk_copies;
  ++b.hot->gld_requests;
  ++b.hot->bulk_loads;
  b.hot->accesses += 2;
  for (const GlobalRange& range : ranges) {
    const u64 sectors = log_range(b, Sectors::of(range.address, range.bytes), 0, false).sectors;
    b.hot->gld_transactions += sectors;
    b.hot->bulk_sectors += sectors;
    b.hot->gld_bytes += range.bytes;
  }
  const BulkCopies::Load load{.bytes = bytes, .box = box};
  const auto queue = [&](const SharedPlace& to, const SharedPlace& mbarrier) {
    b.hot->bulk_shared_stores += bulk_wavefronts(bytes);
    queue_bulk_load(c.s, c.i, to, mbarrier, load, c.w, c.l);
  };
  if (!(c.i->flags & kTensorMulticast)) return queue(at, bar);
  const u32 mask = value_of<u32>(c.s, operand_of(c.i, operands_of_load(c.i) - 1), c.w, c.l);
  for (u32 ranks = multicast_ranks(c.s, c.i, mask, c.w, c.l); ranks != 0; ranks &= ranks - 1) {
    BlockRun& to = b.cluster == nullptr ? b : block_of_rank(b, u64(__builtin_ctz(ranks)));
    queue({&to, at.offset}, {&to, bar.offset});
  }
}

/// The atomic of a store that reduces, for the map's type.
std::optional<AtomicOp> reduction_of(const TensorCopy& c, TensorElement type) {
  if (c.i->imm == 0) return std::nullopt;
  const std::string_view operation = kTensorReductions[c.i->imm - 1];
  static constexpr const char* kTypes[] = {"u8",  "u16", "u32", "s32", "u64",
                                           "s64", "f16", "f32", "f64", "bf16"};
  const char* name = kTypes[static_cast<int>(type)];
  const bool bits = operation == "and" || operation == "or" || operation == "xor";
  const bool words = type == TensorElement::kU32 || type == TensorElement::kS32,
             longs = type == TensorElement::kU64 || type == TensorElement::kS64;
  const auto form = find_atomic(operation, !bits ? name : words ? "b32" : longs ? "b64" : "");
  if (!form) {
    const LaunchContext& context = *c.s.block->launch;
    throw Error(ptx_file(context, c.i->id), context.program->positions[c.i->id].line, 0,
                fmt::format("reductions '{}' of tensors of {} are not simulated", operation, name),
                "add, min, max, inc, dec, and, or, xor of the types that atom has");
  }
  return form->op == AtomicOp::kAddF32 ? AtomicOp::kAddF32Flush : form->op;
}

void store_lane(const TensorCopy& c) {
  BlockRun& b = *c.s.block;
  const TensorMap map = c.map(1);
  const u32 bytes = c.bytes(map);
  const SharedPlace at = shared_place(c.s, c.i, c.shared_address(0, kBulkNarrowShared), bytes, kBoxAlignment,
                                      false, false, c.w, c.l);
  check_no_mbarrier(c.s, c.i, at, bytes, c.w, c.l);
  std::vector<GlobalRange> ranges;
  const std::shared_ptr<TensorBox> box = cut_box(c, map, c.coordinates(2), {}, at.offset, true, ranges);
  box->reduction = reduction_of(c, map.type);
  ++b.hot->bulk_copies;
  ++b.hot->gst_requests;
  b.hot->accesses += 2;
  BulkCopies::Store store{.inst = c.i,
                          .warp = c.s.gang * kGangWarps + c.w,
                          .lane = c.l,
                          .from = at.offset,
                          .bytes = bytes,
                          .box = box};
  store.group = open_bulk_group(b, store.warp, c.l);
  if (b.checks != nullptr) store.time = b.checks->bulk_store(c.s, c.i, c.w, c.l, at.offset, bytes, ranges);
  for (const GlobalRange& range : ranges) {
    const u64 sectors = log_range(b, Sectors::of(range.address, range.bytes), 1, false).sectors;
    b.hot->gst_transactions += sectors;
    b.hot->bulk_sectors += sectors;
    b.hot->gst_bytes += range.bytes;
  }
  b.hot->bulk_shared_loads += bulk_wavefronts(bytes);
  b.bulk->stores.push_back(std::move(store));
  ++b.progress;
}

template <class F>
void for_lanes(Strand& s, const Inst* i, F f) {
  for (int w = s.first_warp; w < s.last_warp; ++w)
    for (u32 mask = s.mask[w]; mask != 0; mask &= mask - 1) f(TensorCopy{s, i, w, __builtin_ctz(mask)});
}

}  // namespace

void TensorBox::load(std::byte* shared) const {
  for (const Part& part : parts) {
    if (part.global != nullptr) {
      std::memcpy(shared + part.at, part.global, part.bytes);
      continue;
    }
    for (u32 k = 0; k < part.bytes; k += element_bytes)
      std::memcpy(shared + part.at + k, &fill, element_bytes);
  }
}

void TensorBox::store(const std::byte* shared) const {
  for (const Part& part : parts) {
    if (!reduction) {
      std::memcpy(part.global, shared + part.at, part.bytes);
      continue;
    }
    for (u32 k = 0; k < part.bytes; k += element_bytes) {
      u64 value = 0;
      std::memcpy(&value, shared + part.at + k, element_bytes);
      bool changed = false;
      apply_atomic(*reduction, part.global + k, value, 0, changed);
    }
  }
}

const Inst* run_tensor_load(Strand& s, const Inst* i) {
  for_lanes(s, i, load_lane);
  return behind(i, operands_of_load(i));
}

const Inst* run_tensor_store(Strand& s, const Inst* i) {
  for_lanes(s, i, store_lane);
  return behind(i, 2 + numbers_of(i, false));
}

const Inst* run_tensor_prefetch(Strand& s, const Inst* i) {
  for_lanes(s, i, [](const TensorCopy& c) { c.map(0); });
  return behind(i, 1 + numbers_of(i, true));
}

namespace {

/// 128 bytes of global memory that are written.
std::byte* global_map(const TensorCopy& c, u64 address) {
  if (address % TensorMap::kAlignment != 0)
    raise_misaligned(c.s, c.i, address, TensorMap::kAlignment, c.w, c.l);
  AddressCache cache;
  find_allocation(c.s, c.i, cache, address, TensorMap::kBytes, true, c.w, c.l);
  if (c.s.block->checks != nullptr) c.s.block->checks->tensor_map_written(address);
  return cache.host + (address - cache.lo);
}
std::byte* shared_map(const TensorCopy& c, u64 address) {
  const SharedPlace at =
      shared_place(c.s, c.i, address, TensorMap::kBytes, TensorMap::kAlignment, false, true, c.w, c.l);
  return at.block->shared + at.offset;
}

void replace_lane(const TensorCopy& c) {
  const u64 address = c.shared_address(0, kBulkNarrowShared), value = value_of<u64>(c.s, c.i->o[1], c.w, c.l);
  const bool shared = c.i->flags == 3 || (c.i->flags == 1 && address >> kAllocationShift == kSharedWindow);
  std::byte* const map = shared ? shared_map(c, offset_of(address)) : global_map(c, address);
  if (!is_tile_map(map))
    c.raise(FindingKind::kOutOfBounds,
            fmt::format("replaces the {} of a map of tiles in one of columns of pixels (im2col)",
                        kTensorMapFields[c.i->count]));
  const auto field = static_cast<TensorMapField>(c.i->count);
  ++c.s.block->hot->accesses;
  ++c.s.block->progress;
  if (replace_field(map, field, unsigned(c.i->imm), value)) return;
  const LaunchContext& context = *c.s.block->launch;
  throw Error(ptx_file(context, c.i->id), context.program->positions[c.i->id].line, 0,
              fmt::format("tensor maps of .{} {} are not simulated", kTensorMapFields[c.i->count], value),
              "types f16, bf16, f32, f64 and integers, no interleave, swizzles of 32, 64 and 128 bytes");
}

void copy_map_lane(const TensorCopy& c) {
  if (c.l != __builtin_ctz(c.s.mask[c.w])) return;  // once a warp
  std::byte* const to = global_map(c, value_of<u64>(c.s, c.i->o[0], c.w, c.l));
  std::memcpy(to, shared_map(c, c.shared_address(1, kBulkNarrowShared)), TensorMap::kBytes);
  c.s.block->hot->accesses += 2;
  ++c.s.block->progress;
}

}  // namespace

const Inst* run_tensor_map_replace(Strand& s, const Inst* i) {
  for_lanes(s, i, replace_lane);
  return i + 1;
}

const Inst* run_tensor_map_copy(Strand& s, const Inst* i) {
  for_lanes(s, i, copy_map_lane);
  return i + 1;
}

}  // namespace stitchwork::sim
