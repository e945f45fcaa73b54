// wgmma: what its instructions do (wgmma.h).
#pragma once

#include "simulator/isa/ops_tensor.h"
#include "simulator/machine/block.h"
#include "simulator/machine/wgmma.h"

namespace stitchwork::sim {
namespace {

/// A warp's rows of A, all of B, and a row of D.
struct WgmmaTiles {
  f64 a[16][WgmmaForm::kMostK], b[WgmmaForm::kMostK][WgmmaForm::kMostN], sum[WgmmaForm::kMostN];
};

/// The elements of 16 bytes.
SW_INLINE void chunk_values(MatrixElement e, const std::byte* p, f64* out) {
  using E = MatrixElement;
  const int count = 128 / element_bits(e), per = 32 / element_bits(e);
  if (e == E::kF16) {
    Words<u32> bits{};
    for (int k = 0; k < 8; ++k) bits[k] = load<std::uint16_t>(p + 2 * k);
    const Words<f32> values = half_to_float(bits);
    for (int k = 0; k < 8; ++k) out[k] = values[k];
    return;
  }
  for (int k = 0; k < count; ++k) {
    const u32 word = load<u32>(p + k / per * 4);
    out[k] = e == E::kE4M3   ? element_value<E::kE4M3>(word, k % per)
             : e == E::kE5M2 ? element_value<E::kE5M2>(word, k % per)
                             : element_number(e, word, k % per);
  }
}

/// A matrix in shared memory, as one warp reads it.
struct SharedMatrix {
  Strand& s;
  const Inst* i;
  int w;
  MatrixDescriptor at;
  MatrixElement element;
  std::vector<u64>* chunks;  ///< offsets that are read; null: nobody asks

  const std::byte* chunk(u64 offset) const {
    BlockRun& b = *s.block;
    if (offset > b.shared_bytes || offset + 16 > b.shared_bytes) [[unlikely]]
      raise_window(s, i, "shared", offset, 16, b.shared_bytes, false, w, 0);
    if (chunks != nullptr) chunks->push_back(offset);
    return b.shared + offset;
  }
  /// f(row or column, k, value)
  template <class F>
  void for_elements(int first, int count, int k, bool mn_major, F f) const {
    const int per = 128 / element_bits(element);
    f64 values[16];
    if (!mn_major) {
      for (int mn = 0; mn < count; ++mn)
        for (int c = 0; c < k / per; ++c) {
          chunk_values(element, chunk(at.k_major(u64(first + mn), u64(c))), values);
          for (int e = 0; e < per; ++e) f(mn, c * per + e, values[e]);
        }
      return;
    }
    for (int kk = 0; kk < k; ++kk)
      for (int c = 0; c < count / per; ++c) {
        chunk_values(element, chunk(at.mn_major(u64(kk), u64(first / per + c))), values);
        for (int e = 0; e < per; ++e) f(c * per + e, kk, values[e]);
      }
  }
};

MatrixDescriptor descriptor_of(Strand& s, const Inst* i, int operand, int w) {
  const u64 bits = load<u64>(s.regs + wide_operand(i, operand) + w * 256);
  const MatrixDescriptor d = MatrixDescriptor::of(bits);
  if (d.base_offset != 0) [[unlikely]]
    raise_base_offset(s, i);
  return d;
}

void gather_a(Strand& s, const Inst* i, int w, const WgmmaForm& form, std::vector<u64>* chunks,
              WgmmaTiles& t) {
  const f64 sign = form.negates_a ? -1 : 1;
  const int first = form.d_registers(), rank = w % kWarpgroupWarps;
  if (!form.a_in_registers) {
    const SharedMatrix a{s, i, w, descriptor_of(s, i, first, w), form.a, chunks};
    a.for_elements(16 * rank, 16, form.k, form.m_major, [&](int m, int k, f64 v) { t.a[m][k] = sign * v; });
    return;
  }
  const int per = 32 / element_bits(form.a);
  for (int r = 0; r < 4; ++r) {
    for (int l = 0; l < 32; ++l) {
      const u32 word = load<u32>(s.regs + wide_operand(i, first + r) + (w * 32 + l) * 4);
      alignas(16) std::byte chunk[16] = {};
      __builtin_memcpy(chunk, &word, 4);
      f64 values[16];
      chunk_values(form.a, chunk, values);
      for (int e = 0; e < per; ++e)
        t.a[l / 4 + 8 * (r % 2)][l % 4 * per + 4 * per * (r / 2) + e] = sign * values[e];
    }
  }
}

/// Rows of D that the warp has; `adds`: to what D was.
void multiply(Strand& s, const Inst* i, int w, const WgmmaForm& form, bool adds, WgmmaTiles& t) {
  using E = MatrixElement;
  MatrixShape shape;
  shape.d = form.d;
  shape.saturate = form.saturate;
  const int c_first = form.operands_before_c();
  // Of a lane's element `index` of row `row`: f(its registers' operand, behind `first`, lane, index)
  const auto for_row = [&](int row, int first, auto f) {
    for (int l = row % 8 * 4; l < row % 8 * 4 + 4; ++l)
      for (int q = 0; q < form.n / 8; ++q)
        for (int e = 0; e < 2; ++e) {
          const int index = 4 * q + row / 8 * 2 + e;
          const int reg = form.d == E::kF16 ? index / 2 : index;
          f(s.regs + wide_operand(i, first + reg) + (w * 32 + l) * 4, index, 8 * q + l % 4 * 2 + e);
        }
  };
  for (int row = 0; row < 16; ++row) {
    for (int n = 0; n < form.n; ++n) t.sum[n] = 0;
    if (adds)
      for_row(row, c_first, [&](const std::byte* p, int index, int n) {
        t.sum[n] = form.d == E::kF32   ? f64(load<f32>(p))
                   : form.d == E::kS32 ? f64(load<i32>(p))
                                       : f64(half_value(load<u32>(p) >> 16 * (index % 2)));
      });
    for (int k = 0; k < form.k; ++k) {
      const f64 a = t.a[row][k];
      for (int n = 0; n < form.n; ++n) t.sum[n] += a * t.b[k][n];
    }
    for_row(row, 0, [&](std::byte* p, int index, int n) { store_accumulator(p, shape, index, t.sum[n]); });
  }
}

void want_whole_warpgroup(Strand& s, const Inst* i, int w) {
  const int last = s.gang * kGangWarps + w / kWarpgroupWarps * kWarpgroupWarps + kWarpgroupWarps;
  if (u32(last) * 32 > s.block->threads)
    raise_finding(s, i, FindingKind::kDivergentBarrier,
                  "a whole-warpgroup instruction is in a warpgroup of fewer threads:", w, 0);
}

/// wgmma.mma_async. Operands: D, A or its descriptor, the descriptor of B, scale-d, D as it was; aux:
/// instructions that these take.
const Inst* wgmma_product(Strand& s, const Inst* i) {
  if (const Inst* next = want_whole_warps(s, i); next != i) return next;
  static thread_local WgmmaTiles t;
  const WgmmaForm form = WgmmaForm::of(i->imm);
  BlockRun& b = *s.block;
  b.bulk->products.resize((b.threads + 31) / 32);
  const f64 sign = form.negates_b ? -1 : 1;
  const int b_at = form.d_registers() + form.a_operands();
  u64 known = 0;  // the descriptor of what is in t.b
  bool is_known = false;
  std::vector<u64> chunks;
  for (int w = s.first_warp; w < s.last_warp; ++w) {
    if (s.mask[w] == 0) continue;
    want_whole_warpgroup(s, i, w);
    std::vector<u64>* const asked = b.checks != nullptr ? &chunks : nullptr;
    chunks.clear();
    const bool leads = w % kWarpgroupWarps == 0;  // reads B for the warpgroup
    const u64 bits = load<u64>(s.regs + wide_operand(i, b_at) + w * 256);
    if (!is_known || known != bits || (asked != nullptr && leads)) {
      const SharedMatrix of_b{s, i, w, descriptor_of(s, i, b_at, w), form.b, leads ? asked : nullptr};
      of_b.for_elements(0, form.n, form.k, form.n_major, [&](int n, int k, f64 v) { t.b[k][n] = sign * v; });
      known = bits;
      is_known = true;
    }
    gather_a(s, i, w, form, asked, t);
    WarpProducts& products = b.bulk->products[std::size_t(s.gang * kGangWarps + w)];
    ++products.issued;
    if (b.checks != nullptr) b.checks->product_reads(s, i, w, chunks, products);
    multiply(s, i, w, form, load<u32>(s.regs + wide_operand(i, b_at + 1) + w * 4) & 1, t);
    // Its share of the matrices, 32 bytes of k each row.
    const u64 bytes = u64(form.n) * 32 / kWarpgroupWarps + (form.a_in_registers ? 0 : 16 * 32);
    b.hot->accesses += bytes / 16;
    ++b.hot->shared_loads;
    b.hot->shared_wavefronts += (bytes + 127) / 128;
    ++b.progress;
  }
  return i + i->aux;
}

const Inst* wgmma_fence(Strand& s, const Inst* i) {
  if (const Inst* next = want_whole_warps(s, i); next != i) return next;
  return i + 1;
}

const Inst* wgmma_commit(Strand& s, const Inst* i) {
  if (const Inst* next = want_whole_warps(s, i); next != i) return next;
  auto& products = s.block->bulk->products;
  if (products.empty()) return i + 1;  // an empty group is complete
  for (int w = s.first_warp; w < s.last_warp; ++w) {
    if (s.mask[w] == 0) continue;
    WarpProducts& of_warp = products[std::size_t(s.gang * kGangWarps + w)];
    of_warp.groups.push_back(of_warp.issued);
  }
  return i + 1;
}

/// imm: groups that may stay open.
const Inst* wgmma_wait(Strand& s, const Inst* i) {
  if (const Inst* next = want_whole_warps(s, i); next != i) return next;
  BlockRun& b = *s.block;
  auto& products = b.bulk->products;
  if (products.empty()) return i + 1;
  const auto target_of = [&](const WarpProducts& p) {
    const auto open = std::size_t(i->imm);
    return p.groups.size() <= open ? p.completed : p.groups[p.groups.size() - open - 1];
  };
  for (int w = s.first_warp; w < s.last_warp; ++w) {
    if (s.mask[w] == 0) continue;
    const int warp = s.gang * kGangWarps + w, first = warp / kWarpgroupWarps * kWarpgroupWarps;
    const u32 target = target_of(products[std::size_t(warp)]);
    for (int other = first; other < first + kWarpgroupWarps && std::size_t(other) < products.size();
         ++other) {
      if (products[std::size_t(other)].issued >= target) continue;
      s.state = StrandState::kYielded;  // until the others have issued theirs
      s.awaited = 0;
      s.resume = i;
      return nullptr;
    }
  }
  for (int w = s.first_warp; w < s.last_warp; ++w) {
    if (s.mask[w] == 0) continue;
    const int warp = s.gang * kGangWarps + w;
    WarpProducts& p = products[std::size_t(warp)];
    p.completed = target_of(p);
    if (p.groups.size() > std::size_t(i->imm)) p.groups.erase(p.groups.begin(), p.groups.end() - i->imm);
    if (b.checks != nullptr) b.checks->products_waited(warp, p.completed);
  }
  return i + 1;
}

void add_wgmma_rows() {
  const auto other = Pipe::kOther;
  add_row("@wgmma", "", other, wgmma_product, wgmma_product);
  add_row("@wgmma.fence", "", other, wgmma_fence, wgmma_fence);
  add_row("@wgmma.commit", "", other, wgmma_commit, wgmma_commit);
  add_row("@wgmma.wait", "", other, wgmma_wait, wgmma_wait);
}

}  // namespace
}  // namespace stitchwork::sim
