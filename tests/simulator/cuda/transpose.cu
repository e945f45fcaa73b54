// Transpose by tiles of 32 x 32: a column of the tile lies in one bank, or with a padding word in all of them.
#include "prelude.h"

template <int kWidth>
static __device__ __forceinline__ void transpose_tile(const float* in, float* out, int n, float (*tile)[kWidth]) {
  const int x = threadIdx.x, y = threadIdx.y;
  for (int k = 0; k < 32; k += 8) tile[y + k][x] = in[(blockIdx.y * 32 + y + k) * n + blockIdx.x * 32 + x];
  __syncthreads();
  for (int k = 0; k < 32; k += 8) out[(blockIdx.x * 32 + y + k) * n + blockIdx.y * 32 + x] = tile[x][y + k];
}
extern "C" __global__ void transpose(const float* in, float* out, int n) {
  __shared__ float tile[32][32];
  transpose_tile<32>(in, out, n, tile);
}
extern "C" __global__ void transpose_padded(const float* in, float* out, int n) {
  __shared__ float tile[32][33];
  transpose_tile<33>(in, out, n, tile);
}
