// Products of a matrix of which at most two of four neighbours (tf32: one of two) are not zero, by sparse tensor cores (mma.sp).
// A is held without its zeros, m rows of k / 2 elements; `where`, so many bits a row, says which of their neighbours they are, in
// order. B is n columns of k elements. Both lie in memory as registers take them: whatever the elements' size, a lane's register is
// four bytes, lanes of a quad lie beside each other, and registers of one row 16 bytes apart. One warp computes 16 x 8 of C.
#include <cstdint>

namespace {

struct Tile {
  int group = threadIdx.x % 32 / 4, lane = threadIdx.x % 4;
  int row = blockIdx.y * 16 + group, column = blockIdx.x * 8 + group;
};

// Registers of A at byte `at` of its rows: rows in turn, then 16 bytes on.
template <int kRegisters>
__device__ void load_a(const Tile& t, const char* a, int row_bytes, int at, unsigned (&to)[kRegisters]) {
  for (int r = 0; r < kRegisters; ++r)
    to[r] = *(const unsigned*)(a + (t.row + r % 2 * 8) * row_bytes + at + r / 2 * 16 + t.lane * 4);
}
template <int kRegisters>
__device__ void load_b(const Tile& t, const char* b, int column_bytes, int at, unsigned (&to)[kRegisters]) {
  for (int r = 0; r < kRegisters; ++r) to[r] = *(const unsigned*)(b + t.column * column_bytes + at + r * 16 + t.lane * 4);
}

// What a lane holds of `where`, whose rows have `words` words. Elements of 16 and 32 bits: half words of two rows.
template <int kBits, int kRowBits>
__device__ unsigned metadata(const Tile& t, const unsigned* where, int words, int step) {
  const unsigned *top = where + t.row * words, *bottom = top + 8 * words;
  if (kBits >= 16 && kRowBits == 16) {
    const int at = step / 2, by = step % 2 * 16;
    return (top[at] >> by & 0xffff) | (bottom[at] >> by & 0xffff) << 16;
  }
  if (kBits >= 16) {
    const int by = t.lane % 2 * 16;
    return (top[step] >> by & 0xffff) | (bottom[step] >> by & 0xffff) << 16;
  }
  const unsigned* own = t.lane % 2 == 0 ? top : bottom;
  return kRowBits == 32 ? own[step] : own[2 * step + t.lane / 2];
}

template <class D>
__device__ void store(const Tile& t, D* c, int n, const D (&d)[4]) {
  for (int k = 0; k < 4; ++k) c[(t.row + k / 2 * 8) * n + blockIdx.x * 8 + t.lane * 2 + k % 2] = d[k];
}

}  // namespace

#define SPARSE(NAME, FORM, D, LETTER, BITS, ROW_BITS, REGISTERS, SELECTOR, ASM_A_B)                                           \
  extern "C" __global__ void NAME(const char* a, const unsigned* where, const char* b, D* c, int n, int k) {                 \
    const Tile t;                                                                                                             \
    D d[4] = {};                                                                                                              \
    const int a_bytes = k / 2 * BITS / 8, b_bytes = k * BITS / 8, steps = a_bytes / (REGISTERS * 8);                          \
    for (int step = 0; step < steps; ++step) {                                                                                \
      unsigned x[REGISTERS], y[REGISTERS];                                                                                    \
      load_a(t, a, a_bytes, step * REGISTERS * 8, x);                                                                         \
      load_b(t, b, b_bytes, step * REGISTERS * 16, y);                                                                        \
      const unsigned e = metadata<BITS, ROW_BITS>(t, where, steps * ROW_BITS / 32, step);                                     \
      ASM_A_B(FORM, LETTER, SELECTOR)                                                                                         \
    }                                                                                                                         \
    store(t, c, n, d);                                                                                                        \
  }
#define TWO(FORM, LETTER, SELECTOR)                                                                                            \
  asm volatile(FORM " {%0, %1, %2, %3}, {%4, %5}, {%6, %7}, {%0, %1, %2, %3}, %8, " SELECTOR ";"                               \
               : "+" LETTER(d[0]), "+" LETTER(d[1]), "+" LETTER(d[2]), "+" LETTER(d[3])                                        \
               : "r"(x[0]), "r"(x[1]), "r"(y[0]), "r"(y[1]), "r"(e));
#define FOUR(FORM, LETTER, SELECTOR)                                                                                           \
  asm volatile(FORM " {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9, %10, %11}, {%0, %1, %2, %3}, %12, " SELECTOR ";"            \
               : "+" LETTER(d[0]), "+" LETTER(d[1]), "+" LETTER(d[2]), "+" LETTER(d[3])                                        \
               : "r"(x[0]), "r"(x[1]), "r"(x[2]), "r"(x[3]), "r"(y[0]), "r"(y[1]), "r"(y[2]), "r"(y[3]), "r"(e));

SPARSE(sparse_f16_k32, "mma.sp.sync.aligned.m16n8k32.row.col.f32.f16.f16.f32", float, "f", 16, 32, 4, "0x1", FOUR)
SPARSE(sparse_f16_k16, "mma.sp.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32", float, "f", 16, 16, 2, "0x3", TWO)
SPARSE(sparse_bf16_k32, "mma.sp::ordered_metadata.sync.aligned.m16n8k32.row.col.f32.bf16.bf16.f32", float, "f", 16, 32, 4, "0x0", FOUR)
SPARSE(sparse_tf32_k16, "mma.sp.sync.aligned.m16n8k16.row.col.f32.tf32.tf32.f32", float, "f", 32, 32, 4, "0x0", FOUR)
SPARSE(sparse_s8_k64, "mma.sp.sync.aligned.m16n8k64.row.col.s32.s8.s8.s32", int, "r", 8, 64, 4, "0x0", FOUR)
SPARSE(sparse_u8_k32, "mma.sp::ordered_metadata.sync.aligned.m16n8k32.row.col.satfinite.s32.u8.s8.s32", int, "r", 8, 32, 2, "0x1", TWO)
#if __CUDA_ARCH__ >= 890
SPARSE(sparse_e4m3_k64, "mma.sp.sync.aligned.m16n8k64.row.col.f32.e4m3.e5m2.f32", float, "f", 8, 64, 4, "0x0", FOUR)
#endif
