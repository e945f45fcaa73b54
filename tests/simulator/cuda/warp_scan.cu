// Inclusive prefix sums of each warp by shuffles, of each block by the sums of its warps.
#include "prelude.h"

extern "C" __global__ void warp_scan(const int* x, int* y) {
  __shared__ int totals[32];
  const int t = threadIdx.x, lane = t & 31, warp = t >> 5, i = blockIdx.x * blockDim.x + t;
  int v = x[i];
  for (int d = 1; d < 32; d *= 2) {
    const int up = __shfl_up_sync(0xffffffffu, v, d);
    if (lane >= d) v += up;
  }
  if (lane == 31) totals[warp] = v;
  __syncthreads();
  if (warp == 0) {
    int sum = lane < (int)blockDim.x / 32 ? totals[lane] : 0;
    for (int d = 1; d < 32; d *= 2) {
      const int up = __shfl_up_sync(0xffffffffu, sum, d);
      if (lane >= d) sum += up;
    }
    totals[lane] = sum;
  }
  __syncthreads();
  y[i] = v + (warp > 0 ? totals[warp - 1] : 0);
}
