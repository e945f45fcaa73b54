// C = A B of n x n floats, by tiles of 16 x 16 in shared memory.
#include "prelude.h"

extern "C" __global__ void tiled_gemm(const float* a, const float* b, float* c, int n) {
  __shared__ float ta[16][16], tb[16][16];
  const int x = threadIdx.x, y = threadIdx.y, row = blockIdx.y * 16 + y, column = blockIdx.x * 16 + x;
  float sum = 0;
  for (int k = 0; k < n; k += 16) {
    ta[y][x] = a[row * n + k + x];
    tb[y][x] = b[(k + y) * n + column];
    __syncthreads();
    for (int j = 0; j < 16; ++j) sum += ta[y][j] * tb[j][x];
    __syncthreads();
  }
  c[row * n + column] = sum;
}
