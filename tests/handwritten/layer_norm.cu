// A warp a row, the row in registers, mean and variance in two passes over them. 8 rows a block of 256.
extern "C" __global__ void __launch_bounds__(256, 4)
    kernel(const Element* __restrict__ x, const Element* __restrict__ scale, const Element* __restrict__ offset, Element* y) {
  constexpr int kPackets = COLS / (32 * kVector);
  const unsigned lane = threadIdx.x % 32, row = blockIdx.x * 8 + threadIdx.x / 32;
  const unsigned first = row * COLS + lane * kVector;
  float v[kPackets][kVector], sum = 0;
#pragma unroll
  for (int p = 0; p < kPackets; ++p) load(v[p], x + first + p * 32 * kVector);
#pragma unroll
  for (int p = 0; p < kPackets; ++p)
#pragma unroll
    for (int j = 0; j < kVector; ++j) sum += v[p][j];
  const float mean = warp_sum(sum) * (1.0f / COLS);
  float squares = 0;
#pragma unroll
  for (int p = 0; p < kPackets; ++p)
#pragma unroll
    for (int j = 0; j < kVector; ++j) {
      v[p][j] -= mean;
      squares += v[p][j] * v[p][j];
    }
  const float root = rsqrtf(warp_sum(squares) * (1.0f / COLS) + 1e-5f);
#pragma unroll
  for (int p = 0; p < kPackets; ++p) {
    const unsigned col = lane * kVector + p * 32 * kVector;
    float s[kVector], o[kVector];
    load(s, scale + col);
    load(o, offset + col);
#pragma unroll
    for (int j = 0; j < kVector; ++j) v[p][j] = v[p][j] * root * s[j] + o[j];
    store(y + first + p * 32 * kVector, v[p]);
  }
}
