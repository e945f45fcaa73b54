// Layer norm of residual + dropout of (x + bias): a warp a row, what is normalised in registers.
extern "C" __global__ void __launch_bounds__(256, 4)
    kernel(const Element* __restrict__ x, const Element* __restrict__ bias, const Element* __restrict__ residual,
           const unsigned char* __restrict__ mask, const Element* __restrict__ scale, const Element* __restrict__ offset,
           Element* y) {
  constexpr int kPackets = COLS / (32 * kVector);
  const unsigned lane = threadIdx.x % 32, row = blockIdx.x * 8 + threadIdx.x / 32;
  const unsigned first = row * COLS + lane * kVector;
  float v[kPackets][kVector], sum = 0;
#pragma unroll
  for (int p = 0; p < kPackets; ++p) {
    const unsigned at = first + p * 32 * kVector;
    float b[kVector], r[kVector];
    unsigned kept[kVector / 4];
    load(v[p], x + at);
    load(r, residual + at);
#pragma unroll
    for (int w = 0; w < kVector / 4; ++w) kept[w] = 0;
    if (kVector == 8) {
      const uint2 two = *(const uint2*)(mask + at);
      kept[0] = two.x;
      kept[kVector / 4 - 1] = two.y;
    } else {
      kept[0] = *(const unsigned*)(mask + at);
    }
    load(b, bias + lane * kVector + p * 32 * kVector);
#pragma unroll
    for (int j = 0; j < kVector; ++j) {
      const float dropped = (kept[j / 4] >> (j % 4 * 8) & 0xff) != 0 ? (v[p][j] + b[j]) * (1 / 0.9f) : 0.0f;
      sum += v[p][j] = dropped + r[j];
    }
  }
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
