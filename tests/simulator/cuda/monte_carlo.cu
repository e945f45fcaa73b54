// Points in the unit circle by the counter-based generator Philox4x32-10 (Salmon et al., 2011).
#include "prelude.h"

static __device__ __forceinline__ void philox(unsigned c[4], unsigned k0, unsigned k1) {
  for (int round = 0; round < 10; ++round) {
    const unsigned h0 = __umulhi(0xD2511F53u, c[0]), l0 = 0xD2511F53u * c[0];
    const unsigned h1 = __umulhi(0xCD9E8D57u, c[2]), l1 = 0xCD9E8D57u * c[2];
    const unsigned x0 = h1 ^ c[1] ^ k0, x2 = h0 ^ c[3] ^ k1;
    c[0] = x0;
    c[1] = l1;
    c[2] = x2;
    c[3] = l0;
    k0 += 0x9E3779B9u;
    k1 += 0xBB67AE85u;
  }
}
extern "C" __global__ void monte_carlo(unsigned* inside, unsigned* first, int points, unsigned seed) {
  const unsigned i = blockIdx.x * blockDim.x + threadIdx.x;
  int hits = 0;
  for (int p = 0; p < points; ++p) {
    unsigned c[4] = {i, (unsigned)p, 0, 0};
    philox(c, seed, 0);
    if (p == 0) first[i] = c[0];
    const float x = (c[0] >> 8) * 0x1p-24f, y = (c[1] >> 8) * 0x1p-24f;
    hits += x * x + y * y < 1.0f;
  }
  for (int d = 16; d > 0; d /= 2) hits += __shfl_down_sync(0xffffffffu, hits, d);
  if ((threadIdx.x & 31) == 0) atomicAdd(inside, (unsigned)hits);
}
