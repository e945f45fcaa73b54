// Exclusive prefix sums of 512 integers a block: Blelloch's up-sweep and down-sweep.
#include "prelude.h"

extern "C" __global__ void block_scan(const int* x, int* y) {
  __shared__ int tree[512];
  const int t = threadIdx.x, base = blockIdx.x * 512;
  tree[2 * t] = x[base + 2 * t];
  tree[2 * t + 1] = x[base + 2 * t + 1];
  int offset = 1;
  for (int d = 256; d > 0; d >>= 1) {
    __syncthreads();
    if (t < d) tree[offset * (2 * t + 2) - 1] += tree[offset * (2 * t + 1) - 1];
    offset *= 2;
  }
  if (t == 0) tree[511] = 0;
  for (int d = 1; d < 512; d *= 2) {
    offset >>= 1;
    __syncthreads();
    if (t < d) {
      const int a = offset * (2 * t + 1) - 1, b = offset * (2 * t + 2) - 1, left = tree[a];
      tree[a] = tree[b];
      tree[b] += left;
    }
  }
  __syncthreads();
  y[base + 2 * t] = tree[2 * t];
  y[base + 2 * t + 1] = tree[2 * t + 1];
}
