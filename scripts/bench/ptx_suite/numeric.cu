// Numerical kernels in the manner of NVIDIA's samples: small, whole, and compared with numpy's results.
#include <cstdint>

/// DCT-II of tiles of 8 x 8 (dct8x8), orthonormal; a block of 8 x 8 threads a tile.
extern "C" __global__ void dct8x8(const float* in, float* out, int width) {
  __shared__ float tile[8][8 + 1], rows[8][8 + 1];
  const int u = threadIdx.x, v = threadIdx.y;
  const int at = (blockIdx.y * 8 + v) * width + blockIdx.x * 8 + u;
  tile[v][u] = in[at];
  __syncthreads();
  float sum = 0;
#pragma unroll
  for (int k = 0; k < 8; ++k) sum += tile[v][k] * cospif((2 * k + 1) * u / 16.f);
  rows[v][u] = sum * (u == 0 ? sqrtf(.125f) : .5f);
  __syncthreads();
  sum = 0;
#pragma unroll
  for (int k = 0; k < 8; ++k) sum += rows[k][u] * cospif((2 * k + 1) * v / 16.f);
  out[at] = sum * (v == 0 ? sqrtf(.125f) : .5f);
}

/// A step of a three-dimensional stencil that marches along z with its column in registers (FDTD3d).
template <int kRadius>
__device__ void march(const float* in, float* out, int nx, int ny, int nz, const float* weights) {
  __shared__ float plane[8 + 2 * kRadius][16 + 2 * kRadius];
  const int x = blockIdx.x * 16 + threadIdx.x, y = blockIdx.y * 8 + threadIdx.y;
  auto at = [&](int a, int b, int c) -> float {
    return a < 0 || a >= nx || b < 0 || b >= ny || c < 0 || c >= nz ? 0.f : in[(c * ny + b) * nx + a];
  };
  float behind[kRadius], front[kRadius], here = at(x, y, 0);
#pragma unroll
  for (int k = 0; k < kRadius; ++k) behind[k] = 0, front[k] = at(x, y, k + 1);
  for (int z = 0; z < nz; ++z) {
    for (int b = threadIdx.y; b < 8 + 2 * kRadius; b += 8)
      for (int a = threadIdx.x; a < 16 + 2 * kRadius; a += 16)
        plane[b][a] = at(blockIdx.x * 16 + a - kRadius, blockIdx.y * 8 + b - kRadius, z);
    __syncthreads();
    float value = weights[0] * here;
#pragma unroll
    for (int k = 0; k < kRadius; ++k) {
      const int a = threadIdx.x + kRadius, b = threadIdx.y + kRadius;
      value += weights[k + 1] * (behind[k] + front[k] + plane[b][a - k - 1] + plane[b][a + k + 1] + plane[b - k - 1][a] + plane[b + k + 1][a]);
    }
    if (x < nx && y < ny) out[(z * ny + y) * nx + x] = value;
#pragma unroll
    for (int k = kRadius - 1; k > 0; --k) behind[k] = behind[k - 1];
    behind[0] = here;
    here = front[0];
#pragma unroll
    for (int k = 0; k + 1 < kRadius; ++k) front[k] = front[k + 1];
    front[kRadius - 1] = at(x, y, z + 1 + kRadius);
    __syncthreads();
  }
}
__constant__ float kWeights[4] = {0.4f, 0.06f, 0.03f, 0.01f};
extern "C" __global__ void fdtd3d(const float* in, float* out, int nx, int ny, int nz) { march<3>(in, out, nx, ny, nz, kWeights); }

/// Accelerations of bodies, all pairs, by tiles in shared memory (nbody).
extern "C" __global__ void nbody(const float4* bodies, float4* accelerations, int count, float softening) {
  extern __shared__ float4 tile[];
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  const float4 me = i < count ? bodies[i] : make_float4(0, 0, 0, 0);
  float3 sum = {0, 0, 0};
  for (int base = 0; base < count; base += blockDim.x) {
    tile[threadIdx.x] = base + threadIdx.x < count ? bodies[base + threadIdx.x] : make_float4(0, 0, 0, 0);
    __syncthreads();
#pragma unroll 8
    for (int k = 0; k < blockDim.x; ++k) {
      const float4 other = tile[k];
      const float x = other.x - me.x, y = other.y - me.y, z = other.z - me.z;
      const float inverse = rsqrtf(x * x + y * y + z * z + softening);
      const float s = other.w * inverse * inverse * inverse;
      sum.x += x * s, sum.y += y * s, sum.z += z * s;
    }
    __syncthreads();
  }
  if (i < count) accelerations[i] = make_float4(sum.x, sum.y, sum.z, 0);
}

/// Fast Walsh transform of rows of 1024 in shared memory (fastWalshTransform).
extern "C" __global__ void walsh(float* data) {
  __shared__ float row[1024];
  float* mine = data + blockIdx.x * 1024;
  for (int k = threadIdx.x; k < 1024; k += blockDim.x) row[k] = mine[k];
  for (int stride = 512; stride >= 1; stride >>= 1) {
    __syncthreads();
    for (int pair = threadIdx.x; pair < 512; pair += blockDim.x) {
      const int low = pair & (stride - 1), a = 2 * pair - low, b = a + stride;
      const float x = row[a], y = row[b];
      row[a] = x + y;
      row[b] = x - y;
    }
  }
  __syncthreads();
  for (int k = threadIdx.x; k < 1024; k += blockDim.x) mine[k] = row[k];
}

/// European calls by a binomial tree, an option a block (binomialOptions).
extern "C" __global__ void binomial(const float* spot, const float* strike, const float* years, float* price, int steps, float rate, float volatility) {
  extern __shared__ float leaves[];
  const float s = spot[blockIdx.x], x = strike[blockIdx.x], dt = years[blockIdx.x] / steps;
  const float v = volatility * sqrtf(dt), up = expf(v), down = expf(-v), grow = expf(rate * dt);
  const float p = (grow - down) / (up - down), both = expf(-rate * dt);
  for (int k = threadIdx.x; k <= steps; k += blockDim.x) leaves[k] = fmaxf(s * expf(v * (2.f * k - steps)) - x, 0.f);
  for (int n = steps; n > 0; --n) {
    __syncthreads();
    float next[8];
#pragma unroll
    for (int j = 0; j < 8; ++j) {
      const int k = threadIdx.x + j * blockDim.x;
      if (k < n) next[j] = both * (p * leaves[k + 1] + (1 - p) * leaves[k]);
    }
    __syncthreads();
#pragma unroll
    for (int j = 0; j < 8; ++j) {
      const int k = threadIdx.x + j * blockDim.x;
      if (k < n) leaves[k] = next[j];
    }
  }
  if (threadIdx.x == 0) price[blockIdx.x] = leaves[0];
}

/// Black and Scholes in double precision.
extern "C" __global__ void black_scholes(const double* spot, const double* strike, const double* years, double2* call_put, int count, double r, double v) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= count) return;
  const double root = sqrt(years[i]), d1 = (log(spot[i] / strike[i]) + (r + .5 * v * v) * years[i]) / (v * root), d2 = d1 - v * root;
  const double n1 = normcdf(d1), n2 = normcdf(d2), discount = exp(-r * years[i]);
  call_put[i] = make_double2(spot[i] * n1 - strike[i] * discount * n2, strike[i] * discount * (1 - n2) - spot[i] * (1 - n1));
}

/// Sobol numbers of several dimensions by Gray code (SobolQRNG).
extern "C" __global__ void sobol(const unsigned* directions, float* out, int count) {
  __shared__ unsigned v[32];
  if (threadIdx.x < 32) v[threadIdx.x] = directions[blockIdx.y * 32 + threadIdx.x];
  __syncthreads();
  for (unsigned i = blockIdx.x * blockDim.x + threadIdx.x; i < count; i += gridDim.x * blockDim.x) {
    unsigned x = 0;
    for (unsigned gray = i ^ (i >> 1); gray != 0; gray &= gray - 1) x ^= v[__ffs(gray) - 1];
    out[blockIdx.y * count + i] = x * 2.3283064365386963e-10f;
  }
}

/// Complex FFT of 512 points, Stockham, radix 2 in shared memory.
extern "C" __global__ void fft512(const float2* in, float2* out) {
  __shared__ float2 buffers[2][512];
  const int t = threadIdx.x;
  buffers[0][t] = in[blockIdx.x * 512 + t];
  buffers[0][t + 256] = in[blockIdx.x * 512 + t + 256];
  int from = 0;
  for (int half = 1; half < 512; half *= 2) {
    __syncthreads();
    const int k = t & (half - 1);
    const float2 a = buffers[from][t], b = buffers[from][t + 256];
    float s, c;
    sincospif(-static_cast<float>(k) / half, &s, &c);
    const float2 turned = {b.x * c - b.y * s, b.x * s + b.y * c};
    const int to = ((t - k) << 1) + k;
    buffers[from ^ 1][to] = {a.x + turned.x, a.y + turned.y};
    buffers[from ^ 1][to + half] = {a.x - turned.x, a.y - turned.y};
    from ^= 1;
  }
  __syncthreads();
  out[blockIdx.x * 512 + t] = buffers[from][t];
  out[blockIdx.x * 512 + t + 256] = buffers[from][t + 256];
}

/// Rows convolved with 17 taps, halo in shared memory, the filter in constant memory (convolutionSeparable).
__constant__ float kFilter[17] = {.01f, .02f, .03f, .05f, .06f, .07f, .08f, .1f, .16f, .1f, .08f, .07f, .06f, .05f, .03f, .02f, .01f};
extern "C" __global__ void convolve_rows(const float* in, float* out, int width) {
  __shared__ float line[128 + 16];
  const int begin = blockIdx.x * 128, y = blockIdx.y;
  for (int k = threadIdx.x; k < 144; k += blockDim.x) {
    const int x = begin + k - 8;
    line[k] = x >= 0 && x < width ? in[y * width + x] : 0.f;
  }
  __syncthreads();
  float sum = 0;
#pragma unroll
  for (int k = 0; k < 17; ++k) sum = fmaf(kFilter[k], line[threadIdx.x + k], sum);
  if (begin + threadIdx.x < width) out[y * width + begin + threadIdx.x] = sum;
}

/// Iterations until escape (Mandelbrot), which warps leave at different times.
extern "C" __global__ void mandelbrot(int* out, int width, int height, int most) {
  const int x = blockIdx.x * blockDim.x + threadIdx.x, y = blockIdx.y * blockDim.y + threadIdx.y;
  if (x >= width || y >= height) return;
  const double a = -2.0 + 3.0 * x / width, b = -1.5 + 3.0 * y / height;
  double r = 0, i = 0;
  int n = 0;
  while (n < most && r * r + i * i <= 4) {
    const double next = r * r - i * i + a;
    i = 2 * r * i + b;
    r = next;
    ++n;
  }
  out[y * width + x] = n;
}

/// LU factors of 32 x 32 matrices without pivots, a warp a matrix, its columns in registers.
extern "C" __global__ void lu32(float* matrices) {
  float* a = matrices + blockIdx.x * 1024;
  const int lane = threadIdx.x;
  float column[32];
#pragma unroll
  for (int k = 0; k < 32; ++k) column[k] = a[k * 32 + lane];
#pragma unroll
  for (int k = 0; k < 32; ++k) {
    const float pivot = __shfl_sync(~0u, column[k], k);
#pragma unroll
    for (int r = k + 1; r < 32; ++r) {
      const float factor = __shfl_sync(~0u, column[r], k) / pivot;
      if (lane > k) column[r] -= factor * column[k];
      if (lane == k) column[r] = factor;
    }
  }
#pragma unroll
  for (int k = 0; k < 32; ++k) a[k * 32 + lane] = column[k];
}

/// Edit distances of pairs of strings of 64 by anti-diagonals (dynamic programming in shared memory).
extern "C" __global__ void edit_distance(const char* left, const char* right, int* out) {
  __shared__ short rows[3][66];
  const int t = threadIdx.x;
  const char* a = left + blockIdx.x * 64;
  const char* b = right + blockIdx.x * 64;
  short *last = rows[0], *before = rows[1], *now = rows[2];
  for (int d = 0; d <= 128; ++d) {
    if (t <= 64 && t <= d && d - t <= 64) {
      const int i = t, j = d - t;
      now[t] = i == 0 ? j : j == 0 ? i : min(min(last[t - 1], last[t]) + 1, before[t - 1] + (a[i - 1] != b[j - 1]));
    }
    __syncthreads();
    short* free = before;
    before = last, last = now, now = free;
  }
  if (t == 64) out[blockIdx.x] = last[64];
}

/// 64-bit and 128-bit integers: products, quotients and remainders.
extern "C" __global__ void wide_integers(const unsigned long long* a, const unsigned long long* b, unsigned long long* out, int count) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= count) return;
  const unsigned long long x = a[i], y = b[i] | 1;
  const unsigned __int128 product = static_cast<unsigned __int128>(x) * y + 12345;
  const long long sx = static_cast<long long>(x), sy = static_cast<long long>(y);
  unsigned long long* mine = out + 8 * i;
  mine[0] = static_cast<unsigned long long>(product);
  mine[1] = static_cast<unsigned long long>(product >> 64);
  mine[2] = x / y;
  mine[3] = x % y;
  mine[4] = static_cast<unsigned long long>(sx / sy);
  mine[5] = static_cast<unsigned long long>(sx % sy);
  mine[6] = static_cast<unsigned long long>((product - x) >> 37);
  mine[7] = __umul64hi(x, y) ^ static_cast<unsigned long long>(__mul64hi(sx, sy));
}
