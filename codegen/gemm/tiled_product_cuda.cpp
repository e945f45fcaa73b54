#include <fmt/format.h>

#include "codegen/gemm/tiled_product.h"
#include "codegen/print/print_text.h"
#include "core/base/error.h"

namespace stitchwork {
namespace {

/// k advances by so many elements at once.
/// The same as in occupancy_model/library.cpp.
constexpr int kStep = 8;
/// Words behind each row of a strip in shared memory.
/// Four, so that eight threads that store a row of eight elements of k have different banks, and rows stay
/// aligned to four words.
constexpr int kPad = 4;

/// A strip of A or B in registers on its way to shared memory. `kAlong`: its rows of A, or columns of B. No
/// quantity: a thread's vectors have four words, as wide as loads of shared memory are.
constexpr std::string_view kStrip = R"cuda(
// kAlong rows of A, or columns of B, by kStep elements of k: what a thread has of it on its way to shared memory.
// Threads run along k where that is contiguous in memory, else across it.
template <int kAlong> struct Strip {
  enum { kLoads = kAlong * kStep / kThreads, kRow = kAlong + kPad };
  const Operand* at;
  long long from_load, from_step;
  int place, place_each, along, along_each, deep, deep_each, most_along;
  float held[kLoads];

  SW_METHOD void begin(const Operand* matrix, int first, int extent, int first_k, long long stride, long long k_stride) {
    const bool along_k = k_stride == 1;
    const int tid = threadIdx.x;
    along = along_k ? tid / kStep : tid % kAlong;
    deep = along_k ? tid % kStep : tid / kAlong;
    along_each = along_k ? kThreads / kStep : 0;
    deep_each = along_k ? 0 : kThreads / kAlong;
    place = deep * kRow + along;
    place_each = deep_each * kRow + along_each;
    most_along = extent - first;
    at = matrix + (first + along) * stride + (first_k + deep) * k_stride;
    from_load = along_each * stride + deep_each * k_stride;
    from_step = kStep * k_stride;
  }
  // Elements past the matrix's end, or this block's part of k, are zero and not read.
  SW_METHOD void load(int most_deep) {
#pragma unroll
    for (int e = 0; e < kLoads; ++e) {
      const bool inside = along + e * along_each < most_along && deep + e * deep_each < most_deep;
      held[e] = inside ? operand(at + e * from_load) : 0.0f;
    }
    at += from_step;
  }
  SW_METHOD void store(float* shared) const {
#pragma unroll
    for (int e = 0; e < kLoads; ++e) shared[place + e * place_each] = held[e];
  }
};

// A thread's outputs are groups of four neighbours, which vectors of shared memory feed.
template <int kCount, int kAlong> SW_FN int output_at(int thread, int i) {
  return i / 4 * (kAlong / (kCount / 4)) + thread * 4 + i % 4;
}
template <int kCount, int kAlong> SW_FN void read_strip(float (&values)[kCount], const float* row, int thread) {
#pragma unroll
  for (int i = 0; i < kCount; i += 4) {
    SwVector<float, 4> four;
    sw_load(four, row + output_at<kCount, kAlong>(thread, i));
#pragma unroll
    for (int j = 0; j < 4; ++j) values[i + j] = sw_get(four, j);
  }
}
)cuda";

/// Two strips of each operand, so that the next ones are stored while these are read and one barrier a step
/// is enough.
constexpr std::string_view kBody = R"cuda(
extern "C" __global__ void __launch_bounds__(kThreads) tiled_product(
    const Operand* a, const Operand* b, void* to, long long wide_m, long long wide_n, long long wide_k, long long a_row,
    long long a_col, long long b_row, long long b_col, long long c_row, long long a_each, long long b_each,
    long long c_each, long long splits, long long k_each, long long accumulate) {
  __shared__ __align__(16) float strips_a[2][kStep * (kTileM + kPad)];
  __shared__ __align__(16) float strips_b[2][kStep * (kTileN + kPad)];
  const int m = (int)wide_m, n = (int)wide_n, k = (int)wide_k, split = (int)splits;
  const int tiles_m = (m + kTileM - 1) / kTileM, tiles_n = (n + kTileN - 1) / kTileN;
  int rest = blockIdx.x;
  const int row0 = rest % tiles_m * kTileM;
  rest /= tiles_m;
  const int col0 = rest % tiles_n * kTileN;
  rest /= tiles_n;
  const int part = rest % split, batch = rest / split;
  const int first_k = sw_min(part * (int)k_each, k), end_k = sw_min(first_k + (int)k_each, k);

  Strip<kTileM> from_a;
  from_a.begin(a + batch * a_each, row0, m, first_k, a_row, a_col);
  Strip<kTileN> from_b;
  from_b.begin(b + batch * b_each, col0, n, first_k, b_col, b_row);
  const int thread_row = threadIdx.x / (kTileN / kColsEach), thread_col = threadIdx.x % (kTileN / kColsEach);
  float sums[kRowsEach][kColsEach];
#pragma unroll
  for (int i = 0; i < kRowsEach; ++i)
#pragma unroll
    for (int j = 0; j < kColsEach; ++j) sums[i][j] = 0.0f;

  int buffer = 0;
  from_a.load(end_k - first_k);
  from_b.load(end_k - first_k);
  from_a.store(strips_a[0]);
  from_b.store(strips_b[0]);
  __syncthreads();
  for (int at_k = first_k; at_k < end_k; at_k += kStep) {
    const bool more = at_k + kStep < end_k;
    if (more) {
      from_a.load(end_k - at_k - kStep);
      from_b.load(end_k - at_k - kStep);
    }
#pragma unroll
    for (int l = 0; l < kStep; ++l) {
      float left[kRowsEach], right[kColsEach];
      read_strip<kRowsEach, kTileM>(left, strips_a[buffer] + l * (kTileM + kPad), thread_row);
      read_strip<kColsEach, kTileN>(right, strips_b[buffer] + l * (kTileN + kPad), thread_col);
#pragma unroll
      for (int i = 0; i < kRowsEach; ++i)
#pragma unroll
        for (int j = 0; j < kColsEach; ++j) sums[i][j] = fmaf(left[i], right[j], sums[i][j]);
    }
    buffer ^= 1;
    if (more) {
      from_a.store(strips_a[buffer]);
      from_b.store(strips_b[buffer]);
    }
    __syncthreads();
  }

#pragma unroll
  for (int i = 0; i < kRowsEach; ++i) {
    const int row = row0 + output_at<kRowsEach, kTileM>(thread_row, i);
    if (row >= m) continue;
#pragma unroll
    for (int j = 0; j < kColsEach; ++j) {
      const int col = col0 + output_at<kColsEach, kTileN>(thread_col, j);
      if (col >= n) continue;
      const long long at = batch * c_each + row * c_row + col;
      if (split > 1)
        ((float*)to)[at + (long long)part * m * n] = sums[i][j];
      else
        put_result((Result*)to + at, sums[i][j], accumulate != 0);
    }
  }
}
)cuda";

/// No quantity: sums of more parts than four are not unrolled.
constexpr std::string_view kFold = R"cuda(
extern "C" __global__ void __launch_bounds__(kThreads) fold(
    Result* c, const float* partial, long long m, long long n, long long c_row, long long c_each, long long batches,
    long long splits, long long accumulate) {
  const long long outputs = m * n, all = outputs * batches;
  for (long long i = blockIdx.x * (long long)kThreads + threadIdx.x; i < all; i += gridDim.x * (long long)kThreads) {
    const long long batch = i / outputs, output = i - batch * outputs;
    const float* const parts = partial + batch * splits * outputs + output;
    float sum = parts[0];
#pragma unroll 4
    for (int part = 1; part < (int)splits; ++part) sum += parts[part * outputs];
    put_result(c + batch * c_each + output / n * c_row + output % n, sum, accumulate != 0);
  }
}
)cuda";

/// Into C a sum, or C and the sum, rounded once.
std::string put_result(DType result) {
  return fmt::format(
      "typedef {} Result;\n"
      "SW_FN void put_result(Result* to, float sum, bool accumulate) {{\n"
      "  if (accumulate) sum += {};\n"
      "  *to = {};\n"
      "}}\n",
      storage_type(result), load_text(result, "*to"), stored_text(result, "sum"));
}

}  // namespace

std::string tiled_product_cuda(const ProductTile& tile, DType operands, DType result) {
  const Verdict made = makes_product(operands, result);
  SW_CHECK(made.ok, "{}", made.why);
  return fmt::format(
             "// A matrix product, a block for each tile of {0}x{1} outputs.\n"
             "#define SW_METHOD __device__ __forceinline__\n"
             "enum {{ kTileM = {0}, kTileN = {1}, kRowsEach = {2}, kColsEach = {3}, kThreads = {4}, kStep = "
             "{5}, kPad = {6} }};\n"
             "typedef {7} Operand;\n"
             "SW_FN float operand(const Operand* from) {{ return {8}; }}\n",
             tile.m, tile.n, tile.rows_each, tile.cols_each, tile.threads(), kStep, kPad,
             storage_type(operands), load_alone_text(operands, "*from")) +
         put_result(result) + std::string(kStrip) + std::string(kBody);
}

std::string fold_cuda(DType result) {
  return fmt::format(
             "// Partial sums of a matrix product, added in ascending order of k.\nenum {{ kThreads = {} "
             "}};\n",
             kFoldBlock) +
         put_result(result) + std::string(kFold);
}

}  // namespace stitchwork
