// What CUDA's own libraries compile to within a kernel: mathematical functions, cuRAND's device API, CUB's block collectives.
#include <cub/cub.cuh>
#include <cuComplex.h>
#include <cuda_fp4.h>
#include <cuda_fp6.h>
#include <curand_kernel.h>
#include <cuda/std/array>
#include <cuda/std/complex>
#include <cuda/std/optional>
#include <cuda/std/tuple>

/// Functions of single precision, arguments of any size: 24 results a thread.
extern "C" __global__ void functions_f32(const float* a, const float* b, float* out, int count) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= count) return;
  const float x = a[i], y = b[i];
  float* mine = out + 24 * i;
  mine[0] = sinf(x * 1e5f);
  mine[1] = cosf(x * 1e5f);
  mine[2] = tanf(x);
  mine[3] = atan2f(x, y);
  mine[4] = expm1f(x);
  mine[5] = log1pf(fabsf(x));
  mine[6] = erff(x);
  mine[7] = erfcf(x);
  mine[8] = lgammaf(fabsf(x) + .5f);
  mine[9] = tgammaf(fabsf(x) + .5f);
  mine[10] = powf(fabsf(x), y);
  mine[11] = cbrtf(x);
  mine[12] = hypotf(x, y);
  mine[13] = fmodf(x * 100, y);
  mine[14] = remainderf(x * 100, y);
  mine[15] = asinhf(x);
  mine[16] = acosf(x / (fabsf(x) + 1));
  mine[17] = tanhf(x);
  mine[18] = nextafterf(x, y);
  mine[19] = ldexpf(x, i % 20 - 10);
  mine[20] = rintf(x * 7) + truncf(y * 3) + roundf(x);
  int exponent;
  mine[21] = frexpf(x, &exponent) + exponent;
  mine[22] = exp2f(x) + exp10f(y) + log2f(fabsf(x)) + log10f(fabsf(y));
  mine[23] = fdimf(x, y) + fmaf(x, y, 1) + copysignf(1, y);
}

/// Of double precision: 12 results.
extern "C" __global__ void functions_f64(const double* a, const double* b, double* out, int count) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= count) return;
  const double x = a[i], y = b[i];
  double* mine = out + 12 * i;
  double s, c;
  sincos(x * 1e10, &s, &c);
  mine[0] = s;
  mine[1] = c;
  mine[2] = pow(fabs(x), y);
  mine[3] = erf(x);
  mine[4] = lgamma(fabs(x) + .5);
  mine[5] = cbrt(x) + asinh(y);
  mine[6] = fmod(x * 1000, y);
  mine[7] = atan2(x, y) + acos(x / (fabs(x) + 1));
  mine[8] = expm1(x) + log1p(fabs(y));
  mine[9] = tanh(x) + sinh(y);
  mine[10] = rsqrt(fabs(x)) + rcbrt(fabs(y));
  mine[11] = __dadd_rd(x, y) - __dadd_ru(x, y) + __dmul_rz(x, y) + __ddiv_rn(x, y) + __fma_rn(x, y, 1.);
}

/// Philox numbers of cuRAND, four a thread.
extern "C" __global__ void philox(uint4* out, unsigned long long seed) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  curandStatePhilox4_32_10_t state;
  curand_init(seed, i, 0, &state);
  out[i] = curand4(&state);
}
/// Normal numbers of XORWOW, whose state a thread keeps in memory; their mean and square.
extern "C" __global__ void xorwow_moments(curandState* states, float2* out, int each) {
  const int i = threadIdx.x;
  curand_init(1234, i, 0, states + i);
  curandState mine = states[i];
  float sum = 0, squares = 0;
  for (int k = 0; k < each; ++k) {
    const float x = curand_normal(&mine);
    sum += x;
    squares += x * x;
  }
  states[i] = mine;
  using Reduce = cub::BlockReduce<float, 64>;
  __shared__ typename Reduce::TempStorage storage;
  const float total = Reduce(storage).Sum(sum);
  __syncthreads();
  const float all = Reduce(storage).Sum(squares);
  if (i == 0) *out = make_float2(total / (64 * each), all / (64 * each));
}

/// A block's keys and values sorted, scanned and told apart by CUB; a last tile that is not full.
extern "C" __global__ void block_collectives(const int* keys, int* sorted, int* order, int* sums, int* heads, int count) {
  constexpr int kThreads = 128, kItems = 4;
  using Load = cub::BlockLoad<int, kThreads, kItems, cub::BLOCK_LOAD_WARP_TRANSPOSE>;
  using Store = cub::BlockStore<int, kThreads, kItems, cub::BLOCK_STORE_TRANSPOSE>;
  using Sort = cub::BlockRadixSort<int, kThreads, kItems, int>;
  using Scan = cub::BlockScan<int, kThreads, cub::BLOCK_SCAN_WARP_SCANS>;
  using Heads = cub::BlockDiscontinuity<int, kThreads>;
  __shared__ union {
    typename Load::TempStorage load;
    typename Store::TempStorage store;
    typename Sort::TempStorage sort;
    typename Scan::TempStorage scan;
    typename Heads::TempStorage heads;
  } storage;
  const int base = blockIdx.x * kThreads * kItems, within = min(count - base, kThreads * kItems);
  int key[kItems], value[kItems], flag[kItems], sum[kItems];
  Load(storage.load).Load(keys + base, key, within, 0x7fffffff);
  for (int k = 0; k < kItems; ++k) value[k] = base + threadIdx.x * kItems + k;
  __syncthreads();
  Sort(storage.sort).Sort(key, value);
  __syncthreads();
  Heads(storage.heads).FlagHeads(flag, key, cuda::std::not_equal_to<>{});
  __syncthreads();
  Scan(storage.scan).InclusiveSum(flag, sum);
  __syncthreads();
  Store(storage.store).Store(sorted + base, key, within);
  __syncthreads();
  Store(storage.store).Store(order + base, value, within);
  __syncthreads();
  Store(storage.store).Store(sums + base, sum, within);
  __syncthreads();
  Store(storage.store).Store(heads + base, flag, within);
}

/// Histograms of a block and maxima by warps and runs, by CUB.
extern "C" __global__ void block_histogram(const unsigned char* in, unsigned* bins, int* most) {
  using Histogram = cub::BlockHistogram<unsigned char, 128, 8, 256, cub::BLOCK_HISTO_ATOMIC>;
  using Reduce = cub::WarpReduce<int>;
  __shared__ typename Histogram::TempStorage storage;
  __shared__ typename Reduce::TempStorage of_warp[4];
  __shared__ unsigned counts[256];
  unsigned char items[8];
  for (int k = 0; k < 8; ++k) items[k] = in[blockIdx.x * 1024 + threadIdx.x * 8 + k];
  Histogram(storage).Histogram(items, counts);
  __syncthreads();
  for (int k = threadIdx.x; k < 256; k += 128) bins[blockIdx.x * 256 + k] = counts[k];
  const int greatest = Reduce(of_warp[threadIdx.x / 32]).Reduce(static_cast<int>(items[0]), cuda::maximum<>{});
  if (threadIdx.x % 32 == 0) most[blockIdx.x * 4 + threadIdx.x / 32] = greatest;
}

/// libcu++ on the device: arrays, tuples, optionals, complex numbers.
extern "C" __global__ void standard_library(const float2* in, float2* out, int count) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= count) return;
  cuda::std::array<cuda::std::complex<float>, 4> powers;
  powers[0] = {in[i].x, in[i].y};
  for (int k = 1; k < 4; ++k) powers[k] = powers[k - 1] * powers[0];
  cuda::std::optional<float> size;
  if (cuda::std::norm(powers[0]) > 1) size = abs(powers[3]);
  const auto [real, imag] = cuda::std::make_tuple(powers[i % 4].real(), powers[i % 4].imag());
  const cuFloatComplex turned = cuCdivf(make_cuFloatComplex(real, imag), make_cuFloatComplex(in[i].x, in[i].y + 2));
  out[i] = make_float2(turned.x + size.value_or(-1), turned.y);
}

/// Floats of 6 and 4 bits, to and back.
extern "C" __global__ void fp6_fp4(const float* in, float* out, int count) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= count) return;
  out[3 * i] = static_cast<float>(__nv_fp6_e2m3(in[i]));
  out[3 * i + 1] = static_cast<float>(__nv_fp6_e3m2(in[i]));
  out[3 * i + 2] = static_cast<float>(__nv_fp4_e2m1(in[i]));
}
