// Algorithms in the manner of samples and of libraries: sorts, scans, graphs, solvers.
#include <cooperative_groups.h>
#include <cuda/atomic>

namespace cg = cooperative_groups;

/// Batcher's odd-even merge sort of 512 pairs in shared memory (sortingNetworks).
extern "C" __global__ void odd_even_merge_sort(unsigned* keys, unsigned* values) {
  __shared__ unsigned key[512], value[512];
  const int t = threadIdx.x, at = blockIdx.x * 512;
  for (int k = t; k < 512; k += 256) key[k] = keys[at + k], value[k] = values[at + k];
  auto compare = [&](int a, int b) {
    if (key[a] > key[b]) {
      const unsigned k = key[a], v = value[a];
      key[a] = key[b], value[a] = value[b];
      key[b] = k, value[b] = v;
    }
  };
  for (unsigned size = 2; size <= 512; size *= 2) {
    unsigned stride = size / 2;
    const unsigned offset = t & (stride - 1);
    __syncthreads();
    unsigned pos = 2 * t - (t & (stride - 1));
    compare(pos, pos + stride);
    for (stride /= 2; stride > 0; stride /= 2) {
      __syncthreads();
      pos = 2 * t - (t & (stride - 1));
      if (offset >= stride) compare(pos - stride, pos);
    }
  }
  __syncthreads();
  for (int k = t; k < 512; k += 256) keys[at + k] = key[k], values[at + k] = value[k];
}

/// Bitonic sort of 32 pairs of 64 bits by exchanges in a warp.
extern "C" __global__ void warp_sort(unsigned long long* pairs) {
  const int lane = threadIdx.x & 31;
  unsigned long long mine = pairs[blockIdx.x * blockDim.x + threadIdx.x];
  for (int size = 2; size <= 32; size *= 2)
    for (int stride = size / 2; stride > 0; stride /= 2) {
      const unsigned long long other = __shfl_xor_sync(~0u, mine, stride);
      const bool up = (lane & size) == 0 || size == 32, low = (lane & stride) == 0;
      mine = (mine < other) == (up == low) ? mine : other;
    }
  pairs[blockIdx.x * blockDim.x + threadIdx.x] = mine;
}

/// Inclusive sums that begin anew at flags, of 256 a block.
extern "C" __global__ void segmented_scan(const float* in, const unsigned char* heads, float* out) {
  __shared__ float sums[8];
  __shared__ int flags[8];
  const int i = blockIdx.x * 256 + threadIdx.x, lane = threadIdx.x & 31, warp = threadIdx.x >> 5;
  float sum = in[i];
  int flag = heads[i];
  for (int d = 1; d < 32; d *= 2) {
    const float before = __shfl_up_sync(~0u, sum, d);
    const int other = __shfl_up_sync(~0u, flag, d);
    if (lane >= d) {
      if (!flag) sum += before;
      flag |= other;
    }
  }
  if (lane == 31) sums[warp] = sum, flags[warp] = flag;
  __syncthreads();
  float carried = 0;
  for (int k = 0; k < warp; ++k) carried = flags[k] ? sums[k] : carried + sums[k];
  out[i] = flag ? sum : sum + carried;
}

/// Lanes of a bin add once for all of them; each learns its number in the bin.
extern "C" __global__ void matched_ranks(const int* in, int* counts, int* ranks, int n) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= n) return;
  const unsigned active = __activemask(), lane = threadIdx.x & 31;
  const unsigned peers = __match_any_sync(active, in[i]);
  const int leader = __ffs(peers) - 1;
  int base = 0;
  if (lane == leader) base = atomicAdd(counts + in[i], __popc(peers));
  base = __shfl_sync(peers, base, leader);
  ranks[i] = base + __popc(peers & ((1u << lane) - 1));
}

/// Greatest float by compare and swap, and by its bits.
__device__ float atomic_max(float* place, float value) {
  int* bits = reinterpret_cast<int*>(place);
  int old = *static_cast<volatile int*>(bits), assumed;
  do {
    assumed = old;
    if (__int_as_float(assumed) >= value) break;
    old = atomicCAS(bits, assumed, __float_as_int(value));
  } while (old != assumed);
  return __int_as_float(old);
}
__device__ double atomic_times(double* place, double factor) {
  auto* bits = reinterpret_cast<unsigned long long*>(place);
  unsigned long long old = atomicCAS(bits, 0ull, 0ull), assumed;
  do {
    assumed = old;
    old = atomicCAS(bits, assumed, __double_as_longlong(__longlong_as_double(assumed) * factor));
  } while (old != assumed);
  return __longlong_as_double(old);
}
extern "C" __global__ void extremes(const float* in, float* most, int* bits, double* product, int n) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= n) return;
  atomic_max(most, in[i]);
  if (in[i] >= 0) atomicMax(bits, __float_as_int(in[i]));
  if (i < 40) atomic_times(product, 1. + i / 64.);
}

/// Shortest ways between all pairs, in shared memory and by launches.
extern "C" __global__ void floyd_block(int* distances) {
  __shared__ int d[32][33];
  const int x = threadIdx.x, y = threadIdx.y;
  int* mine = distances + blockIdx.x * 1024;
  d[y][x] = mine[y * 32 + x];
  __syncthreads();
  for (int k = 0; k < 32; ++k) {
    const int through = d[y][k] + d[k][x];
    __syncthreads();
    if (through < d[y][x]) d[y][x] = through;
    __syncthreads();
  }
  mine[y * 32 + x] = d[y][x];
}

/// A step of breadth-first search: takes a queue, fills the next by atomics.
extern "C" __global__ void bfs_step(const int* begins, const int* ends, int* distance, const int* queue, const int* size, int* next, int* next_size, int level) {
  __shared__ int found[256], count, base;
  if (threadIdx.x == 0) count = 0;
  __syncthreads();
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < *size)
    for (int k = begins[queue[i]]; k < begins[queue[i] + 1]; ++k)
      if (atomicCAS(distance + ends[k], -1, level) == -1) {
        const int at = atomicAdd(&count, 1);
        if (at < 256)
          found[at] = ends[k];
        else
          next[atomicAdd(next_size, 1)] = ends[k];
      }
  __syncthreads();
  const int local = min(count, 256);
  if (threadIdx.x == 0) base = atomicAdd(next_size, local);
  __syncthreads();
  for (int k = threadIdx.x; k < local; k += blockDim.x) next[base + k] = found[k];
}

/// Components of a graph by union and find; a root is the least of its component.
__device__ int find(int* parent, int at) {
  cuda::atomic_ref<int, cuda::thread_scope_device> mine(parent[at]);
  int up = mine.load(cuda::memory_order_relaxed);
  while (up != at) {
    const int above = cuda::atomic_ref<int, cuda::thread_scope_device>(parent[up]).load(cuda::memory_order_relaxed);
    if (above != up) cuda::atomic_ref<int, cuda::thread_scope_device>(parent[at]).compare_exchange_strong(up, above, cuda::memory_order_relaxed);
    at = up;
    up = cuda::atomic_ref<int, cuda::thread_scope_device>(parent[at]).load(cuda::memory_order_relaxed);
  }
  return at;
}
extern "C" __global__ void unite(const int2* edges, int* parent, int n) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= n) return;
  int a = edges[i].x, b = edges[i].y;
  for (;;) {
    a = find(parent, a), b = find(parent, b);
    if (a == b) return;
    if (a > b) { const int c = a; a = b; b = c; }
    if (atomicCAS(parent + b, b, a) == b) return;
  }
}
extern "C" __global__ void roots(int* parent, int* out, int n) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) out[i] = find(parent, i);
}

/// Eigenvalues of symmetric tridiagonal matrices by bisection over Sturm's counts (eigenvalues sample).
__device__ __noinline__ int below(const double* diagonal, const double* beside, int n, double x) {
  int count = 0;
  double q = diagonal[0] - x;
  count += q < 0;
  for (int k = 1; k < n; ++k) {
    q = diagonal[k] - x - beside[k - 1] * beside[k - 1] / (q == 0 ? 1e-300 : q);
    count += q < 0;
  }
  return count;
}
extern "C" __global__ void bisection(const double* diagonal, const double* beside, double* values, int n, double low, double high) {
  extern __shared__ double shared[];
  double *d = shared, *e = shared + n;
  for (int k = threadIdx.x; k < n; k += blockDim.x) {
    d[k] = diagonal[blockIdx.x * n + k];
    if (k + 1 < n) e[k] = beside[blockIdx.x * n + k];
  }
  __syncthreads();
  const int k = threadIdx.x;
  if (k >= n) return;
  for (int turn = 0; turn < 60; ++turn) {
    const double middle = .5 * (low + high);
    if (below(d, e, n, middle) > k)
      high = middle;
    else
      low = middle;
  }
  values[blockIdx.x * n + k] = .5 * (low + high);
}

/// Columns of a separable convolution, with rows above and below.
__constant__ float kTaps[9] = {.02f, .05f, .1f, .18f, .3f, .18f, .1f, .05f, .02f};
extern "C" __global__ void convolve_columns(const float* in, float* out, int width, int height) {
  __shared__ float tile[16][3 * 8 + 1];
  const int x = blockIdx.x * 16 + threadIdx.x, y0 = blockIdx.y * 8 + threadIdx.y - 8;
  for (int k = 0; k < 3; ++k) {
    const int y = y0 + k * 8;
    tile[threadIdx.x][threadIdx.y + k * 8] = y >= 0 && y < height ? in[y * width + x] : 0;
  }
  __syncthreads();
  float sum = 0;
#pragma unroll
  for (int k = -4; k <= 4; ++k) sum += kTaps[k + 4] * tile[threadIdx.x][threadIdx.y + 8 + k];
  out[(y0 + 8) * width + x] = sum;
}

/// Tridiagonal systems by parallel cyclic reduction; shared memory of several types.
extern "C" __global__ void cyclic_reduction(const float* lower, const float* main, const float* upper, const float* right, float* x, int n) {
  extern __shared__ char bytes[];
  float4* rows = reinterpret_cast<float4*>(bytes);
  short* order = reinterpret_cast<short*>(rows + n);
  const int t = threadIdx.x, at = blockIdx.x * n + t;
  order[t] = n - 1 - t;
  rows[t] = make_float4(lower[at], main[at], upper[at], right[at]);
  for (int step = 1; step < n; step *= 2) {
    __syncthreads();
    const float4 mine = rows[t], above = t >= step ? rows[t - step] : make_float4(0, 1, 0, 0), under = t + step < n ? rows[t + step] : make_float4(0, 1, 0, 0);
    const float k1 = mine.x / above.y, k2 = mine.z / under.y;
    __syncthreads();
    rows[t] = make_float4(-above.x * k1, mine.y - above.z * k1 - under.x * k2, -under.z * k2, mine.w - above.w * k1 - under.w * k2);
  }
  __syncthreads();
  const int other = order[t];
  x[blockIdx.x * n + other] = rows[other].w / rows[other].y;
}

/// Cholesky's factor of 24 x 24 in shared memory, with barriers of a named number of threads.
extern "C" __global__ void cholesky(float* matrices) {
  __shared__ float a[24][25];
  float* mine = matrices + blockIdx.x * 576;
  if (threadIdx.x >= 96) return;  // the barrier is of 96
  auto wait = [] { asm volatile("bar.sync 3, 96;" ::: "memory"); };
  for (int k = threadIdx.x; k < 576; k += 96) a[k / 24][k % 24] = mine[k];
  wait();
  for (int k = 0; k < 24; ++k) {
    if (threadIdx.x == 0) a[k][k] = sqrtf(a[k][k]);
    wait();
    for (int r = k + 1 + threadIdx.x; r < 24; r += 96) a[r][k] /= a[k][k];
    wait();
    for (int p = threadIdx.x; p < 576; p += 96) {
      const int r = p / 24, c = p % 24;
      if (c > k && r >= c) a[r][c] -= a[r][k] * a[c][k];
    }
    wait();
  }
  for (int k = threadIdx.x; k < 576; k += 96) mine[k] = k / 24 >= k % 24 ? a[k / 24][k % 24] : 0;
}

/// The k-th least of 4096 keys by digits, one block.
extern "C" __global__ void radix_select(const unsigned* keys, unsigned* out, int n, int k) {
  __shared__ int bins[256];
  __shared__ unsigned prefix;
  __shared__ int left;
  unsigned mask = 0;
  if (threadIdx.x == 0) prefix = 0, left = k;
  for (int shift = 24; shift >= 0; shift -= 8) {
    if (threadIdx.x < 256) bins[threadIdx.x] = 0;
    __syncthreads();
    const unsigned wanted = prefix;
    for (int i = threadIdx.x; i < n; i += blockDim.x)
      if ((keys[i] & mask) == wanted) atomicAdd(bins + (keys[i] >> shift & 255), 1);
    __syncthreads();
    if (threadIdx.x == 0) {
      int digit = 0;
      while (left >= bins[digit]) left -= bins[digit++];
      prefix |= static_cast<unsigned>(digit) << shift;
    }
    mask |= 255u << shift;
    __syncthreads();
  }
  const int equal = __syncthreads_count(keys[threadIdx.x] == prefix), less = __syncthreads_or(keys[threadIdx.x] < prefix), all = __syncthreads_and(keys[threadIdx.x] >= 0);
  if (threadIdx.x == 0) out[0] = prefix, out[1] = equal, out[2] = less != 0, out[3] = all != 0;
}

/// All blocks meet between the steps of a prefix sum (cooperative launch).
extern "C" __global__ void grid_scan(int* a, int* b, int n) {
  const cg::grid_group grid = cg::this_grid();
  for (int step = 1; step < n; step *= 2) {
    for (int i = grid.thread_rank(); i < n; i += grid.size()) b[i] = a[i] + (i >= step ? a[i - step] : 0);
    grid.sync();
    int* c = a;
    a = b, b = c;
  }
}

/// Structures by value through functions that are not inlined; tables of functions in global memory; 128-bit integers.
struct Interval {
  double low, high;
  int turns;
};
__device__ __noinline__ Interval halve(Interval x, double (*f)(double)) {
  const double middle = .5 * (x.low + x.high);
  if (f(middle) > 0)
    x.high = middle;
  else
    x.low = middle;
  ++x.turns;
  return x;
}
__device__ double cubic(double x) { return x * x * x - 2; }
__device__ double cosine(double x) { return -cos(x); }
__device__ double (*functions[2])(double) = {cubic, cosine};
extern "C" __global__ void zeros(double* out, unsigned long long* products) {
  const int i = threadIdx.x;
  Interval x{0, 1.3 + .2 * (i / 2), 0};
  while (x.high - x.low > 1e-12) x = halve(x, functions[i & 1]);
  out[i] = x.low;
  unsigned __int128 p = 1;
  for (int k = 1; k <= 25 + i % 4; ++k) p *= k;
  products[2 * i] = static_cast<unsigned long long>(p / (i + 7));
  products[2 * i + 1] = static_cast<unsigned long long>(p >> 64);
}

/// Products of sparse rows in coordinates: segments of a warp end with an atomic.
extern "C" __global__ void coo_product(const int* rows, const int* columns, const float* values, const float* x, float* y, int n) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x, lane = threadIdx.x & 31;
  const int row = i < n ? rows[i] : -1;
  float product = i < n ? values[i] * __ldg(x + columns[i]) : 0;
  for (int d = 1; d < 32; d *= 2) {
    const float other = __shfl_up_sync(~0u, product, d);
    const int its = __shfl_up_sync(~0u, row, d);
    if (lane >= d && its == row) product += other;
  }
  const int next = __shfl_down_sync(~0u, row, 1);
  if (row >= 0 && (lane == 31 || next != row)) atomicAdd(y + row, product);
}

/// Lattice Boltzmann, nine speeds, one turn a launch.
__constant__ int kX[9] = {0, 1, 0, -1, 0, 1, -1, -1, 1}, kY[9] = {0, 0, 1, 0, -1, 1, 1, -1, -1};
extern "C" __global__ void lattice(const float* in, float* out, int width, int height) {
  const int x = blockIdx.x * blockDim.x + threadIdx.x, y = blockIdx.y * blockDim.y + threadIdx.y;
  if (x >= width || y >= height) return;
  float f[9], density = 0, u = 0, v = 0;
  for (int k = 0; k < 9; ++k) {
    f[k] = in[(k * height + (y - kY[k] + height) % height) * width + (x - kX[k] + width) % width];
    density += f[k], u += f[k] * kX[k], v += f[k] * kY[k];
  }
  u /= density, v /= density;
  for (int k = 0; k < 9; ++k) {
    const float w = k == 0 ? 4.f / 9 : k < 5 ? 1.f / 9 : 1.f / 36, along = 3 * (kX[k] * u + kY[k] * v);
    const float even = w * density * (1 + along + .5f * along * along - 1.5f * (u * u + v * v));
    out[(k * height + y) * width + x] = f[k] + .6f * (even - f[k]);
  }
}
