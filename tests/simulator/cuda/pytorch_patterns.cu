// Kernels that read and write as those of PyTorch 2.1 do whose times were measured (tests/simulator/measured): own code after
// their access patterns. pytorch_patterns.ptx beside the measurements is what nvcc 13.0 made of this file:
//   nvcc -ptx -arch=sm_75 -o tests/simulator/measured/pytorch_patterns.ptx tests/simulator/cuda/pytorch_patterns.cu
#include <cfloat>

/// Element-wise: 128 threads a block, a vector of 4 floats a thread, 512 elements a block. Sizes are multiples of 4.
template <class Operation>
__device__ void unary(const float* x, float* y, unsigned n, Operation operation) {
  const unsigned first = blockIdx.x * 512;
  const unsigned at = first + threadIdx.x * 4;
  if (at >= n) return;
  const float4 v = *reinterpret_cast<const float4*>(x + at);
  *reinterpret_cast<float4*>(y + at) =
      make_float4(operation(v.x), operation(v.y), operation(v.z), operation(v.w));
}
template <class Operation>
__device__ void binary(const float* a, const float* b, float* y, unsigned n, Operation operation) {
  const unsigned at = blockIdx.x * 512 + threadIdx.x * 4;
  if (at >= n) return;
  const float4 v = *reinterpret_cast<const float4*>(a + at), w = *reinterpret_cast<const float4*>(b + at);
  *reinterpret_cast<float4*>(y + at) =
      make_float4(operation(v.x, w.x), operation(v.y, w.y), operation(v.z, w.z), operation(v.w, w.w));
}
extern "C" __global__ void relu(const float* x, float* y, unsigned n) {
  unary(x, y, n, [](float v) { return v > 0 ? v : 0; });
}
extern "C" __global__ void tanh_(const float* x, float* y, unsigned n) {
  unary(x, y, n, [](float v) { return tanhf(v); });
}
extern "C" __global__ void gelu(const float* x, float* y, unsigned n) {
  unary(x, y, n, [](float v) { return 0.5f * v * (1 + erff(v * 0.70710678f)); });
}
extern "C" __global__ void add(const float* a, const float* b, float* y, unsigned n) {
  binary(a, b, y, n, [](float v, float w) { return v + w; });
}
extern "C" __global__ void div_(const float* a, const float* b, float* y, unsigned n) {
  binary(a, b, y, n, [](float v, float w) { return v / w; });
}

/// Softmax of 513 to 1024 columns: a warp a row, 32 elements a lane in registers, 4 rows a block of (32, 4).
extern "C" __global__ void softmax_warp(const float* x, float* y, unsigned rows, unsigned columns) {
  const unsigned row = blockIdx.x * blockDim.y + threadIdx.y;
  if (row >= rows) return;
  x += static_cast<unsigned long long>(row) * columns;
  y += static_cast<unsigned long long>(row) * columns;
  float v[32], most = -FLT_MAX, sum = 0;
#pragma unroll
  for (unsigned k = 0; k < 32; ++k) {
    const unsigned at = k * 32 + threadIdx.x;
    v[k] = at < columns ? x[at] : -FLT_MAX;
  }
#pragma unroll
  for (unsigned k = 0; k < 32; ++k) most = fmaxf(most, v[k]);
#pragma unroll
  for (int lanes = 16; lanes > 0; lanes /= 2) most = fmaxf(most, __shfl_xor_sync(~0u, most, lanes));
#pragma unroll
  for (unsigned k = 0; k < 32; ++k) sum += v[k] = expf(v[k] - most);
#pragma unroll
  for (int lanes = 16; lanes > 0; lanes /= 2) sum += __shfl_xor_sync(~0u, sum, lanes);
#pragma unroll
  for (unsigned k = 0; k < 32; ++k) {
    const unsigned at = k * 32 + threadIdx.x;
    if (at < columns) y[at] = v[k] / sum;
  }
}

template <class Operation>
__device__ float of_block(float v, float* shared, float identity, Operation operation) {
  for (int lanes = 16; lanes > 0; lanes /= 2) v = operation(v, __shfl_xor_sync(~0u, v, lanes));
  __syncthreads();
  if (threadIdx.x % 32 == 0) shared[threadIdx.x / 32] = v;
  __syncthreads();
  v = threadIdx.x < blockDim.x / 32 ? shared[threadIdx.x] : identity;
  if (threadIdx.x < 32)
    for (int lanes = 16; lanes > 0; lanes /= 2) v = operation(v, __shfl_xor_sync(~0u, v, lanes));
  if (threadIdx.x == 0) shared[0] = v;
  __syncthreads();
  v = shared[0];
  __syncthreads();
  return v;
}
/// Softmax of longer rows: a block a row; maximum, sum and result each read the row, 4 floats a thread.
extern "C" __global__ void softmax_block(const float* x, float* y, unsigned rows, unsigned columns) {
  __shared__ float shared[32];
  const float4* in = reinterpret_cast<const float4*>(x + static_cast<unsigned long long>(blockIdx.x) * columns);
  float4* out = reinterpret_cast<float4*>(y + static_cast<unsigned long long>(blockIdx.x) * columns);
  float most = -FLT_MAX, sum = 0;
  for (unsigned k = threadIdx.x; k < columns / 4; k += blockDim.x) {
    const float4 v = in[k];
    most = fmaxf(most, fmaxf(fmaxf(v.x, v.y), fmaxf(v.z, v.w)));
  }
  most = of_block(most, shared, -FLT_MAX, [](float a, float b) { return fmaxf(a, b); });
  for (unsigned k = threadIdx.x; k < columns / 4; k += blockDim.x) {
    const float4 v = in[k];
    sum += expf(v.x - most) + expf(v.y - most) + expf(v.z - most) + expf(v.w - most);
  }
  sum = of_block(sum, shared, 0, [](float a, float b) { return a + b; });
  for (unsigned k = threadIdx.x; k < columns / 4; k += blockDim.x) {
    const float4 v = in[k];
    out[k] = make_float4(expf(v.x - most) / sum, expf(v.y - most) / sum, expf(v.z - most) / sum,
                         expf(v.w - most) / sum);
  }
}

/// Welford's mean and sum of squares of two parts.
struct Moments {
  float mean, squares, count;
};
__device__ Moments merged(Moments a, Moments b) {
  const float count = a.count + b.count, share = count > 0 ? b.count / count : 0, delta = b.mean - a.mean;
  return {a.mean + delta * share, a.squares + b.squares + delta * delta * a.count * share, count};
}
/// Layer norm: a block of (32, 4) a row; moments and result each read the row, 4 floats a thread.
extern "C" __global__ void layer_norm(const float* x, const float* gamma, const float* beta, float* mean,
                                      float* scale, float* y, unsigned columns) {
  __shared__ Moments shared[4];
  const unsigned thread = threadIdx.y * 32 + threadIdx.x;
  const float4* in = reinterpret_cast<const float4*>(x + static_cast<unsigned long long>(blockIdx.x) * columns);
  Moments m{0, 0, 0};
  const auto take = [&m](float v) {
    m.count += 1;
    const float delta = v - m.mean;
    m.mean += delta / m.count;
    m.squares += delta * (v - m.mean);
  };
  for (unsigned k = thread; k < columns / 4; k += 128) {
    const float4 v = in[k];
    take(v.x), take(v.y), take(v.z), take(v.w);
  }
  for (int lanes = 16; lanes > 0; lanes /= 2)
    m = merged(m, {__shfl_down_sync(~0u, m.mean, lanes), __shfl_down_sync(~0u, m.squares, lanes),
                   __shfl_down_sync(~0u, m.count, lanes)});
  if (threadIdx.x == 0) shared[threadIdx.y] = m;
  __syncthreads();
  m = merged(merged(shared[0], shared[1]), merged(shared[2], shared[3]));
  const float factor = rsqrtf(m.squares / m.count + 1e-5f);
  float4* out = reinterpret_cast<float4*>(y + static_cast<unsigned long long>(blockIdx.x) * columns);
  for (unsigned k = thread; k < columns / 4; k += 128) {
    const float4 v = in[k], g = reinterpret_cast<const float4*>(gamma)[k],
                 b = reinterpret_cast<const float4*>(beta)[k];
    out[k] = make_float4(g.x * (factor * (v.x - m.mean)) + b.x, g.y * (factor * (v.y - m.mean)) + b.y,
                         g.z * (factor * (v.z - m.mean)) + b.z, g.w * (factor * (v.w - m.mean)) + b.w);
  }
  if (thread == 0) mean[blockIdx.x] = m.mean, scale[blockIdx.x] = factor;
}
