// Tensor-core instructions. Fragments are spread over the lanes as the PTX ISA draws them; products are exact
// and added in double precision in order of k, then rounded once: the ISA leaves both open ("at least single
// precision").
#pragma once

#include "simulator/isa/ops_special.h"
#include "simulator/machine/matrix.h"

namespace stitchwork::sim {
namespace {

/// Operand k of an instruction whose operands go on in the ones after it.
SW_INLINE u32 wide_operand(const Inst* i, int k) { return i[k / 6].o[k % 6]; }
SW_INLINE int wide_length(int operands) { return (operands + 5) / 6; }

f32 half_value(u32 bits) { return half_to_float(splat<u32, kWords>(bits & 0xffff))[0]; }

template <MatrixElement E>
SW_INLINE auto element_value(u32 word, int e) {
  if constexpr (E == MatrixElement::kF16)
    return f64(half_value(word >> 16 * e));
  else if constexpr (E == MatrixElement::kBF16)
    return f64(bf16_to_float(splat<u32, kWords>(word >> 16 * e & 0xffff))[0]);
  else if constexpr (E == MatrixElement::kS8)
    return i32(std::int8_t(word >> 8 * e));
  else if constexpr (E == MatrixElement::kU8)
    return i32(word >> 8 * e & 0xff);
  else if constexpr (E == MatrixElement::kS4)
    return i32(word >> 4 * e << 28) >> 28;
  else if constexpr (E == MatrixElement::kU4)
    return i32(word >> 4 * e & 0xf);
  else if constexpr (E == MatrixElement::kE4M3)
    return e4m3_number(word >> 8 * e & 0xff);
  else if constexpr (E == MatrixElement::kE5M2)
    return f64(half_value(word >> 8 * e << 8));  // a half's upper byte
  else {                                         // tf32: the lower 13 bits of the float are ignored
    static_assert(E == MatrixElement::kTF32);
    f32 v;
    const u32 bits = word & 0xffffe000u;
    __builtin_memcpy(&v, &bits, 4);
    return f64(v);
  }
}

constexpr int kMaxM = 16, kMaxN = 8, kMaxK = 128;

template <class T>
struct MmaTiles {
  T a[kMaxM][kMaxK], b[kMaxK][kMaxN], c[kMaxM][kMaxN];
};

template <MatrixElement E, class T>
void gather_ab(const Strand& s, const Inst* i, int w, const MatrixShape& shape, int first, bool is_a,
               MmaTiles<T>& t) {
  constexpr int per = E == MatrixElement::kF64 ? 1 : 32 / element_bits(E);
  const int rows = is_a ? shape.m : shape.n, groups = rows / 8;  // registers that differ in the row only
  const int registers = rows * shape.k / 32 / per;
  for (int r = 0; r < registers; ++r) {
    const u32 slot = wide_operand(i, first + r);
    for (int l = 0; l < 32; ++l) {
      const int row = l / 4 + 8 * (r % groups), k0 = l % 4 * per + 4 * per * (r / groups);
      for (int e = 0; e < per; ++e) {
        T v;
        if constexpr (E == MatrixElement::kF64)
          v = load<f64>(s.regs + slot + (w * 32 + l) * 8);
        else
          v = T(element_value<E>(load<u32>(s.regs + slot + (w * 32 + l) * 4), e));
        if (is_a)
          t.a[row][k0 + e] = v;
        else
          t.b[k0 + e][row] = v;
      }
    }
  }
}

/// Where register r of an accumulator lies in a lane: row and column of its first element.
SW_INLINE void accumulator_place(int l, int index, int* row, int* column) {
  *row = l / 4 + 8 * (index / 2);
  *column = l % 4 * 2 + index % 2;
}

/// Element `index` of a lane's part of D, at `p`: halves share their register.
template <class T>
SW_INLINE void store_accumulator(std::byte* p, const MatrixShape& shape, int index, T v) {
  using E = MatrixElement;
  if (shape.d == E::kF64) {
    store<f64>(p, f64(v));
  } else if (shape.d == E::kF32) {
    store<f32>(p, f32(v));
  } else if (shape.d == E::kS32) {
    const i64 sum = i64(v);
    store<i32>(p, !shape.saturate       ? i32(sum)
                  : sum > 2147483647    ? 2147483647
                  : sum < -2147483648LL ? i32(0x80000000)
                                        : i32(sum));
  } else {
    const u32 half = round_to_half(f64(v)), shift = 16 * (index % 2);
    store<u32>(p, (load<u32>(p) & ~(0xffffu << shift)) | half << shift);
  }
}

/// A or B of a product whose registers begin at operand `first`.
template <class T>
void gather_matrix(const Strand& s, const Inst* i, int w, const MatrixShape& shape, MatrixElement e,
                   int first, bool is_a, MmaTiles<T>& t) {
  using E = MatrixElement;
  if constexpr (std::is_same_v<T, i64>) {
    if (e == E::kS8)
      gather_ab<E::kS8>(s, i, w, shape, first, is_a, t);
    else if (e == E::kU8)
      gather_ab<E::kU8>(s, i, w, shape, first, is_a, t);
    else if (e == E::kS4)
      gather_ab<E::kS4>(s, i, w, shape, first, is_a, t);
    else
      gather_ab<E::kU4>(s, i, w, shape, first, is_a, t);
  } else {
    if (e == E::kF16)
      gather_ab<E::kF16>(s, i, w, shape, first, is_a, t);
    else if (e == E::kBF16)
      gather_ab<E::kBF16>(s, i, w, shape, first, is_a, t);
    else if (e == E::kTF32)
      gather_ab<E::kTF32>(s, i, w, shape, first, is_a, t);
    else if (e == E::kE4M3)
      gather_ab<E::kE4M3>(s, i, w, shape, first, is_a, t);
    else if (e == E::kE5M2)
      gather_ab<E::kE5M2>(s, i, w, shape, first, is_a, t);
    else
      gather_ab<E::kF64>(s, i, w, shape, first, is_a, t);
  }
}

/// A lane's register of element `index` of C or D.
SW_INLINE std::byte* accumulator(const Strand& s, const Inst* i, int w, MatrixElement e, int first, int index,
                                 int l) {
  const int r = e == MatrixElement::kF16 ? index / 2 : index, bytes = e == MatrixElement::kF64 ? 8 : 4;
  return s.regs + wide_operand(i, first + r) + (w * 32 + l) * bytes;
}

template <class T>
void gather_c(const Strand& s, const Inst* i, int w, const MatrixShape& shape, int first, MmaTiles<T>& t) {
  using E = MatrixElement;
  for (int index = 0; index < shape.m * shape.n / 32; ++index) {
    for (int l = 0; l < 32; ++l) {
      int row, column;
      accumulator_place(l, index, &row, &column);
      const std::byte* p = accumulator(s, i, w, shape.c, first, index, l);
      t.c[row][column] = shape.c == E::kF64   ? T(load<f64>(p))
                         : shape.c == E::kF32 ? T(load<f32>(p))
                         : shape.c == E::kS32 ? T(load<i32>(p))
                                              : T(half_value(load<u32>(p) >> 16 * (index % 2)));
    }
  }
}

template <class T>
void scatter_d(const Strand& s, const Inst* i, int w, const MatrixShape& shape, const MmaTiles<T>& t) {
  for (int index = 0; index < shape.m * shape.n / 32; ++index) {
    for (int l = 0; l < 32; ++l) {
      int row, column;
      accumulator_place(l, index, &row, &column);
      store_accumulator(accumulator(s, i, w, shape.d, 0, index, l), shape, index, t.c[row][column]);
    }
  }
}

template <class T>
void mma_tile(Strand& s, const Inst* i, int w, const MatrixShape& shape) {
  MmaTiles<T> t;
  const int d_regs = fragment_registers(shape.m * shape.n, shape.d);
  const int a_regs = fragment_registers(shape.m * shape.k, shape.a);
  const int b_regs = fragment_registers(shape.n * shape.k, shape.b);
  gather_matrix(s, i, w, shape, shape.a, d_regs, true, t);
  gather_matrix(s, i, w, shape, shape.b, d_regs + a_regs, false, t);
  gather_c(s, i, w, shape, d_regs + a_regs + b_regs, t);
  for (int row = 0; row < shape.m; ++row)
    for (int k = 0; k < shape.k; ++k)
      for (int column = 0; column < kMaxN; ++column) {
        if constexpr (std::is_same_v<T, f64>) {
          t.c[row][column] = shape.a == MatrixElement::kF64
                                 ? __builtin_fma(t.a[row][k], t.b[k][column], t.c[row][column])
                                 : t.c[row][column] + t.a[row][k] * t.b[k][column];
        } else {
          t.c[row][column] += t.a[row][k] * t.b[k][column];
        }
      }
  scatter_d(s, i, w, shape, t);
}

/// Lanes that run are waited for; none may have ended. Returns `i` where the strand goes on with it.
SW_INLINE const Inst* want_whole_warps(Strand& s, const Inst* i) {
  for (int w = s.first_warp; w < s.last_warp; ++w) {
    if (s.mask[w] == 0 || s.mask[w] == ~0u) [[likely]]
      continue;
    if (s.alive[w] != ~0u)
      raise_finding(s, i, FindingKind::kDivergentBarrier, "a whole-warp instruction is", w,
                    __builtin_ctz(~s.mask[w]));
    if (const Inst* next = await_warp(s, i, Rendezvous::kWholeWarp); next != i) return next;
  }
  return i;
}

const Inst* mma(Strand& s, const Inst* i) {
  if (const Inst* next = want_whole_warps(s, i); next != i) return next;
  const MatrixShape shape = MatrixShape::of(i->imm);
  for (int w = s.first_warp; w < s.last_warp; ++w) {
    if (s.mask[w] == 0) continue;
    if (shape.d == MatrixElement::kS32)
      mma_tile<i64>(s, i, w, shape);
    else
      mma_tile<f64>(s, i, w, shape);
  }
  return i + wide_length(fragment_registers(shape.m * shape.n, shape.d) +
                         fragment_registers(shape.m * shape.k, shape.a) +
                         fragment_registers(shape.n * shape.k, shape.b) +
                         fragment_registers(shape.m * shape.n, shape.c));
}

/// ldmatrix, stmatrix: count 8x8 matrices of 16-bit elements, whose rows lie where lanes 8m to 8m+7 say;
/// lane l holds elements 2(l%4) and the next of row l/4, or under trans of that column. flags 1: trans.
template <bool kStore>
const Inst* matrix_access(Strand& s, const Inst* i) {
  if (const Inst* next = want_whole_warps(s, i); next != i) return next;
  BlockRun& b = *s.block;
  for (int w = s.first_warp; w < s.last_warp; ++w) {
    if (s.mask[w] == 0) continue;
    alignas(64) u64 a[32];
    lane_addresses(s, i, w, i->o[4], a);
    b.hot->accesses += 8 * i->count;
    for (int l = 0; l < 8 * i->count; ++l) {
      a[l] = (a[l] & kAllocationOffsetMask) - b.shared_base;
      if ((a[l] & 15) != 0) [[unlikely]]
        raise_misaligned(s, i, a[l], 16, w, l);
      if (a[l] > b.shared_bytes || a[l] + 16 > b.shared_bytes) [[unlikely]]
        raise_window(s, i, "shared", a[l], 16, b.shared_bytes, kStore, w, l);
    }
    // A matrix is eight rows of 16 bytes, whose lanes' addresses nobody else's registers hold: one group
    // each.
    SharedCost cost;
    for (int m = 0; m < i->count; ++m) {
      const u32 wavefronts = group_wavefronts(Lanes<u64>(a), 0xffu << 8 * m, 4);
      cost.wavefronts += wavefronts;
      cost.conflicts += wavefronts - 1;
    }
    count_shared(*b.hot, kStore, cost);
    for (int m = 0; m < i->count; ++m) {
      for (int l = 0; l < 32; ++l) {
        std::byte* r = s.regs + i->o[m] + (w * 32 + l) * 4;
        for (int e = 0; e < 2; ++e) {
          const int row = i->flags ? l % 4 * 2 + e : l / 4, column = i->flags ? l / 4 : l % 4 * 2 + e;
          std::byte* p = b.shared + a[8 * m + row] + 2 * column;
          if (kStore)
            __builtin_memcpy(p, r + 2 * e, 2);
          else
            __builtin_memcpy(r + 2 * e, p, 2);
        }
      }
    }
  }
  return i + 1;
}

/// movmatrix.trans: o[0] = the transpose of the 8x8 matrix o[1].
const Inst* move_matrix(Strand& s, const Inst* i) {
  if (const Inst* next = want_whole_warps(s, i); next != i) return next;
  for (int w = s.first_warp; w < s.last_warp; ++w) {
    if (s.mask[w] == 0) continue;
    std::uint16_t in[8][8], out[32][2];
    for (int l = 0; l < 32; ++l)
      __builtin_memcpy(&in[l / 4][l % 4 * 2], s.regs + i->o[1] + (w * 32 + l) * 4, 4);
    for (int l = 0; l < 32; ++l)
      for (int e = 0; e < 2; ++e) out[l][e] = in[l % 4 * 2 + e][l / 4];
    __builtin_memcpy(s.regs + i->o[0] + w * 128, out, 128);
  }
  return i + 1;
}

/// The word of a lane that holds slot `s` of a fragment whose registers begin at operand `first`.
template <class T>
SW_INLINE std::byte* fragment_word(const Strand& s, const Inst* i, int w, int first, int lane, int reg) {
  return s.regs + wide_operand(i, first + reg) + (w * 32 + lane) * int(sizeof(T));
}
f64 element_number(MatrixElement type, u64 word, int e) {
  switch (type) {
    case MatrixElement::kF16:
      return element_value<MatrixElement::kF16>(u32(word), e);
    case MatrixElement::kBF16:
      return element_value<MatrixElement::kBF16>(u32(word), e);
    case MatrixElement::kTF32:
      return element_value<MatrixElement::kTF32>(u32(word), e);
    case MatrixElement::kS8:
      return element_value<MatrixElement::kS8>(u32(word), e);
    case MatrixElement::kU8:
      return element_value<MatrixElement::kU8>(u32(word), e);
    case MatrixElement::kS32:
      return i32(u32(word));
    case MatrixElement::kF32: {
      f32 v;
      const u32 bits = u32(word);
      __builtin_memcpy(&v, &bits, 4);
      return v;
    }
    default: {
      f64 v;
      __builtin_memcpy(&v, &word, 8);
      return v;
    }
  }
}
/// Elements of a matrix in the order of rows, from a wmma fragment.
void gather_fragment(const Strand& s, const Inst* i, int w, int first, int registers, MatrixElement type,
                     int elements, f64* out) {
  const int per = type == MatrixElement::kF64 ? 1 : 32 / element_bits(type), slots = registers * per;
  for (int e = 0; e < elements; ++e) {
    const int lane = e / slots, slot = e % slots;
    const u64 word = type == MatrixElement::kF64
                         ? load<u64>(fragment_word<u64>(s, i, w, first, lane, slot / per))
                         : load<u32>(fragment_word<u32>(s, i, w, first, lane, slot / per));
    out[e] = element_number(type, word, slot % per);
  }
}

/// o: D, A, B, C. Integer sums are exact in double too: at most 16 products of 16 bits and a 32-bit number.
const Inst* wmma_mma(Strand& s, const Inst* i) {
  if (const Inst* next = want_whole_warps(s, i); next != i) return next;
  using E = MatrixElement;
  const MatrixShape shape = MatrixShape::of(i->imm);
  const int m = shape.m, n = shape.n, k = shape.k;
  const int d_regs = wmma_registers(m * n, shape.d, false), a_regs = wmma_registers(m * k, shape.a, true),
            b_regs = wmma_registers(n * k, shape.b, true), c_regs = wmma_registers(m * n, shape.c, false);
  f64 a[512], b[512], c[256];
  for (int w = s.first_warp; w < s.last_warp; ++w) {
    if (s.mask[w] == 0) continue;
    gather_fragment(s, i, w, d_regs, a_regs, shape.a, m * k, a);
    gather_fragment(s, i, w, d_regs + a_regs, b_regs, shape.b, n * k, b);
    gather_fragment(s, i, w, d_regs + a_regs + b_regs, c_regs, shape.c, m * n, c);
    for (int row = 0; row < m; ++row)
      for (int j = 0; j < k; ++j)
        for (int column = 0; column < n; ++column)
          c[row * n + column] = shape.a == E::kF64
                                    ? __builtin_fma(a[row * k + j], b[j * n + column], c[row * n + column])
                                    : c[row * n + column] + a[row * k + j] * b[j * n + column];
    const int per = shape.d == E::kF16 ? 2 : 1, slots = d_regs * per;
    for (int e = 0; e < m * n; ++e) {
      const int lane = e / slots, slot = e % slots;
      if (shape.d == E::kF64) {
        store<f64>(fragment_word<u64>(s, i, w, 0, lane, slot), c[e]);
        continue;
      }
      std::byte* p = fragment_word<u32>(s, i, w, 0, lane, slot / per);
      if (shape.d == E::kF32) {
        store<f32>(p, f32(c[e]));
      } else if (shape.d == E::kS32) {
        const i64 sum = i64(c[e]);
        store<i32>(p, shape.saturate ? clamp_number(sum, -2147483648LL, 2147483647) : i32(sum));
      } else {
        const u32 shift = 16 * (slot % 2);
        store<u32>(p, (load<u32>(p) & ~(0xffffu << shift)) | round_to_half(c[e]) << shift);
      }
    }
  }
  return i + wide_length(d_regs + a_regs + b_regs + c_regs);
}

/// wmma.load, wmma.store. o: address, stride, data; imm WmmaMatrix, count registers, flags 1: shared memory.
template <bool kStore>
const Inst* wmma_access(Strand& s, const Inst* i) {
  if (const Inst* next = want_whole_warps(s, i); next != i) return next;
  BlockRun& b = *s.block;
  const WmmaMatrix matrix = WmmaMatrix::of(i->imm);
  const int bytes = matrix.element_bytes(), elements = matrix.rows * matrix.columns;
  const int word_bytes = bytes == 8 ? 8 : 4, per = word_bytes / bytes, slots = i->count * per;
  for (int w = s.first_warp; w < s.last_warp; ++w) {
    if (s.mask[w] == 0) continue;
    u64 base =
        i->aux & kAddress32 ? load<u32>(s.regs + i->o[0] + w * 128) : load<u64>(s.regs + i->o[0] + w * 256);
    const u64 stride = load<u32>(s.regs + i->o[1] + w * 128);
    const bool shared = i->flags != 0 || base >> kAllocationShift == kSharedWindow;
    if (shared) base = (base & kAllocationOffsetMask) - b.shared_base;
    AddressCache& cache = b.caches[i->id];
    u64 sectors[512];
    int count = 0;
    for (int lane = 0; lane < 32; ++lane) {
      for (int slot = 0; slot < slots; ++slot) {
        const int e = lane * slots + slot;
        if (kStore && e >= elements) break;
        const u64 address = base + matrix.offset(e % elements, stride);
        if ((address & u64(bytes - 1)) != 0) [[unlikely]]
          raise_misaligned(s, i, address, u32(bytes), w, lane);
        std::byte* p;
        if (shared) {
          if (address > b.shared_bytes || address + u64(bytes) > b.shared_bytes) [[unlikely]]
            raise_window(s, i, "shared", address, u32(bytes), b.shared_bytes, kStore, w, lane);
          p = b.shared + address;
        } else {
          if (address < cache.lo || address + u64(bytes) > cache.hi) [[unlikely]]
            find_allocation(s, i, cache, address, u32(bytes), kStore, w, lane);
          p = cache.host + (address - cache.lo);
          const u64 sector = address >> 5;
          bool known = false;
          for (int k = count; k-- > 0 && !known;) known = sectors[k] == sector;
          if (!known && count < 512) sectors[count++] = sector;
        }
        std::byte* r =
            s.regs + wide_operand(i, 2 + slot / per) + (w * 32 + lane) * word_bytes + slot % per * bytes;
        if (kStore)
          __builtin_memcpy(p, r, u32(bytes));
        else
          __builtin_memcpy(r, p, u32(bytes));
      }
    }
    b.hot->accesses += u64(elements);
    if (shared) {
      count_shared(*b.hot, kStore, {u32(elements * bytes + 127) / 128, 0});
      continue;
    }
    Touched touched{u32(count), 0};
    for (int k = 0; k < count; ++k) {
      const u64 line = sectors[k] >> 2;
      bool known = false;
      for (int j = k; j-- > 0 && !known;) known = sectors[j] >> 2 == line;
      touched.lines += !known;
      log_line(b, line, u64(1) << (sectors[k] & 3), kStore, !kStore && through_l1(b, i));
    }
    b.hot->l1_wavefronts += l1_wavefronts(touched, u32(elements * bytes));
    (kStore ? b.hot->gst_requests : b.hot->gld_requests) += 1;
    (kStore ? b.hot->gst_transactions : b.hot->gld_transactions) += u64(count);
    (kStore ? b.hot->gst_bytes : b.hot->gld_bytes) += u64(elements) * u64(bytes);
  }
  return i + wide_length(2 + i->count);
}

/// Holds operands of the instruction before it, which skips it.
const Inst* operands(Strand&, const Inst*) { __builtin_trap(); }

void add_tensor_rows() {
  const auto other = Pipe::kOther;
  add_row("@mma", "", other, mma, mma);
  add_row("@operands", "", other, operands, operands);
  add_row("@wmma.mma", "", other, wmma_mma, wmma_mma);
  add_row("@wmma.load", "", other, wmma_access<false>, wmma_access<false>);
  add_row("@wmma.store", "", other, wmma_access<true>, wmma_access<true>);
  add_row("@ldmatrix", "", other, matrix_access<false>, matrix_access<false>);
  add_row("@stmatrix", "", other, matrix_access<true>, matrix_access<true>);
  add_row("@movmatrix", "", other, move_matrix, move_matrix);
}

}  // namespace
}  // namespace stitchwork::sim
