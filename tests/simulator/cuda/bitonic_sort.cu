// Sorts 1024 integers a block.
#include "prelude.h"

extern "C" __global__ void bitonic_sort(int* x) {
  __shared__ int keys[1024];
  const int t = threadIdx.x;
  keys[t] = x[blockIdx.x * 1024 + t];
  for (int size = 2; size <= 1024; size *= 2) {
    for (int stride = size / 2; stride > 0; stride /= 2) {
      __syncthreads();
      const int other = t ^ stride;
      if (other > t) {
        const bool up = (t & size) == 0;
        const int a = keys[t], b = keys[other];
        if ((a > b) == up) {
          keys[t] = b;
          keys[other] = a;
        }
      }
    }
  }
  __syncthreads();
  x[blockIdx.x * 1024 + t] = keys[t];
}
