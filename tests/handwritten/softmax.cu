// A warp a row, the row in registers: one read, one write, no barrier. 8 rows a block of 256.
extern "C" __global__ void __launch_bounds__(256, 4) kernel(const Element* __restrict__ x, Element* y) {
  constexpr int kPackets = COLS / (32 * kVector);
  const unsigned lane = threadIdx.x % 32, row = blockIdx.x * 8 + threadIdx.x / 32;
  const unsigned first = row * COLS + lane * kVector;
  float v[kPackets][kVector], most = -__int_as_float(0x7f800000);
#pragma unroll
  for (int p = 0; p < kPackets; ++p) load(v[p], x + first + p * 32 * kVector);
#pragma unroll
  for (int p = 0; p < kPackets; ++p)
#pragma unroll
    for (int j = 0; j < kVector; ++j) most = fmaxf(most, v[p][j]);
  most = warp_max(most);
  float sum = 0;
#pragma unroll
  for (int p = 0; p < kPackets; ++p)
#pragma unroll
    for (int j = 0; j < kVector; ++j) sum += v[p][j] = expf(v[p][j] - most);
  const float scale = 1 / warp_sum(sum);
#pragma unroll
  for (int p = 0; p < kPackets; ++p) {
#pragma unroll
    for (int j = 0; j < kVector; ++j) v[p][j] *= scale;
    store(y + first + p * 32 * kVector, v[p]);
  }
}
