// A block sums BLOCK_ROWS rows of 32 x kVector adjacent columns: each of its 8 warps strides over the rows, a packet a
// lane, four in flight; then the warps' sums meet in shared memory. Partials are added up by the last block of each tile
// of columns, in the order of the blocks, so that results do not depend on which block is last.
extern "C" __global__ void __launch_bounds__(256)
    kernel(const Element* __restrict__ x, Element* y, float* partials, unsigned* arrived) {
  constexpr unsigned kTile = 32 * kVector, kTiles = COLS / kTile;
  __shared__ float sums[8][kTile];
  __shared__ bool last;
  const unsigned lane = threadIdx.x % 32, warp = threadIdx.x / 32;
  const unsigned tile = blockIdx.x % kTiles, part = blockIdx.x / kTiles, parts = gridDim.x / kTiles;
  const Element* from = x + (part * BLOCK_ROWS + warp) * COLS + tile * kTile + lane * kVector;
  float sum[kVector] = {};
#pragma unroll 4
  for (unsigned row = 0; row < BLOCK_ROWS / 8; ++row) {
    float v[kVector];
    load(v, from + row * 8 * COLS);
#pragma unroll
    for (int j = 0; j < kVector; ++j) sum[j] += v[j];
  }
#pragma unroll
  for (int j = 0; j < kVector; ++j) sums[warp][lane * kVector + j] = sum[j];
  __syncthreads();
  for (unsigned col = threadIdx.x; col < kTile; col += 256) {
    float total = 0;
#pragma unroll
    for (int w = 0; w < 8; ++w) total += sums[w][col];
    partials[part * COLS + tile * kTile + col] = total;
  }
  __threadfence();
  __syncthreads();
  if (threadIdx.x == 0) last = atomicAdd(&arrived[tile], 1u) == parts - 1;
  __syncthreads();
  if (!last) return;
  __threadfence();
  for (unsigned col = threadIdx.x; col < kTile; col += 256) {
    float total = 0;
#pragma unroll 16
    for (unsigned p = 0; p < parts; ++p) total += partials[p * COLS + tile * kTile + col];
#ifdef BF16
    unsigned short rounded;
    asm("cvt.rn.bf16.f32 %0, %1;" : "=h"(rounded) : "f"(total));
    y[tile * kTile + col] = rounded;
#else
    y[tile * kTile + col] = total;
#endif
  }
}
