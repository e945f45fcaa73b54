// mma.sp: A has at most half of its elements, and metadata says where in their row (PTX ISA 8.7, 9.7.14.6).
#pragma once

#include "simulator/isa/ops_tensor.h"

namespace stitchwork::sim {
namespace {

template <class T>
void sparse_tile(Strand& s, const Inst* i, int w, const MatrixShape& shape) {
  MmaTiles<T> t;
  MatrixShape stored = shape;  // of A as it is held
  stored.k /= 2;
  const int d_regs = fragment_registers(shape.m * shape.n, shape.d);
  const int a_regs = fragment_registers(stored.m * stored.k, shape.a);
  const int b_regs = fragment_registers(shape.n * shape.k, shape.b);
  const int c_first = d_regs + a_regs + b_regs,
            metadata = c_first + fragment_registers(shape.m * shape.n, shape.c);
  gather_matrix(s, i, w, stored, shape.a, d_regs, true, t);
  gather_matrix(s, i, w, shape, shape.b, d_regs + a_regs, false, t);
  gather_c(s, i, w, shape, c_first, t);
  const int bits = sparse_bits(shape.a), pair = is_int4(shape.a) ? 2 : 1;
  for (int row = 0; row < shape.m; ++row) {
    for (int j = 0; j < sparse_entries(shape); ++j) {
      const SparsePlace place = sparse_place(shape, i->flags, row, j);
      const u32 word = load<u32>(s.regs + wide_operand(i, metadata) + (w * 32 + place.lane) * 4);
      const u32 index = word >> place.shift & ((1u << bits) - 1);
      // Of tf32 one of two, 0b0100 or 0b1110; of all others two of four, elements or pairs of them.
      const int k = bits == 4 ? 2 * j + int(index >> 3) : (j / 2 * 4 + int(index)) * pair;
      for (int e = 0; e < pair; ++e)
        for (int column = 0; column < kMaxN; ++column)
          t.c[row][column] += t.a[row][j * pair + e] * t.b[k + e][column];
    }
  }
  scatter_d(s, i, w, shape, t);
}

/// Operands: D, A, B, C, metadata; flags: the sparsity selector.
const Inst* sparse_mma(Strand& s, const Inst* i) {
  if (const Inst* next = want_whole_warps(s, i); next != i) return next;
  const MatrixShape shape = MatrixShape::of(i->imm);
  for (int w = s.first_warp; w < s.last_warp; ++w) {
    if (s.mask[w] == 0) continue;
    if (shape.d == MatrixElement::kS32)
      sparse_tile<i64>(s, i, w, shape);
    else
      sparse_tile<f64>(s, i, w, shape);
  }
  return i + wide_length(fragment_registers(shape.m * shape.n, shape.d) +
                         fragment_registers(shape.m * shape.k / 2, shape.a) +
                         fragment_registers(shape.n * shape.k, shape.b) +
                         fragment_registers(shape.m * shape.n, shape.c) + 1);
}

void add_sparse_rows() { add_row("@mma.sp", "", Pipe::kOther, sparse_mma, sparse_mma); }

}  // namespace
}  // namespace stitchwork::sim
