// A convolution whose patches the tensor memory accelerator gathers (im2col): a block computes 64 pixels of the result for 8 filters
// of 3 by 3, one place of the filter after the other.
#include <cuda.h>

#include <cstdint>

constexpr int kPixels = 64, kChannels = 32, kFilters = 8, kSide = 3;

// x by a map of columns of pixels; w[kSide][kSide][kChannels][kFilters]; y[images * rows * columns][kFilters].
extern "C" __global__ void convolution(const __grid_constant__ CUtensorMap x, const float* w, float* y, int rows, int columns, int images, int stride, int padding) {
  __shared__ alignas(128) float tile[2][kPixels][kChannels];
  __shared__ alignas(8) uint64_t full[2];
  const auto address = [](const void* p) { return static_cast<uint32_t>(__cvta_generic_to_shared(p)); };
  const int first = blockIdx.x * kPixels;
  const auto load = [&](int tap) {
    const int at_column = first % columns * stride - padding, at_row = first / columns % rows * stride - padding, image = first / (columns * rows);
    const uint32_t bar = address(&full[tap % 2]);
    asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;" ::"r"(bar), "r"(static_cast<uint32_t>(sizeof tile[0])) : "memory");
    asm volatile("cp.async.bulk.tensor.4d.shared::cluster.global.im2col.mbarrier::complete_tx::bytes [%0], [%1, {%2, %3, %4, %5}], [%6], {%7, %8};" ::"r"(address(tile[tap % 2])),
                 "l"(&x), "r"(0), "r"(at_column), "r"(at_row), "r"(image), "r"(bar), "h"(static_cast<short>(tap % kSide)), "h"(static_cast<short>(tap / kSide))
                 : "memory");
  };
  if (threadIdx.x == 0) {
    for (uint64_t& bar : full) asm volatile("mbarrier.init.shared::cta.b64 [%0], 1;" ::"r"(address(&bar)));
    asm volatile("fence.mbarrier_init.release.cluster; fence.proxy.async;" ::: "memory");
    load(0);
  }
  __syncthreads();
  const int pixel = threadIdx.x / kFilters, filter = threadIdx.x % kFilters;
  float sum = 0;
  for (int tap = 0; tap < kSide * kSide; ++tap) {
    if (threadIdx.x == 0 && tap + 1 < kSide * kSide) load(tap + 1);
    asm volatile("{ .reg .pred p;\nWAIT%=: mbarrier.try_wait.parity.shared::cta.b64 p, [%0], %1;\n@!p bra WAIT%=; }" ::"r"(address(&full[tap % 2])), "r"(tap / 2 % 2) : "memory");
    for (int c = 0; c < kChannels; ++c) sum += tile[tap % 2][pixel][c] * w[(tap * kChannels + c) * kFilters + filter];
    __syncthreads();
  }
  if (first + pixel < rows * columns * images) y[(first + pixel) * kFilters + filter] = sum;
}
