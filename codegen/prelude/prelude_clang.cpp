#include "codegen/prelude/prelude.h"

namespace stitchwork {

// Attribute spellings are the ones clang's own CUDA header uses. Float functions follow the same plan: reduce
// the argument exactly, evaluate a series whose truncation is below 1e-8, undo the reduction.
std::string_view prelude_clang() {
  return R"cuda(#if defined(__clang__) && !defined(__CUDACC_RTC__)
#define SW_CLANG 1
#define __global__ __attribute__((global))
#define __device__ __attribute__((device))
#define __shared__ __attribute__((shared))
#define __forceinline__ inline __attribute__((always_inline))
#define __launch_bounds__(...) __attribute__((launch_bounds(__VA_ARGS__)))
#define __align__(n) __attribute__((aligned(n)))
struct sw_thread_index {
  __declspec(property(get = get_x)) unsigned x;
  static __device__ __forceinline__ unsigned get_x() { return __nvvm_read_ptx_sreg_tid_x(); }
};
struct sw_block_index {
  __declspec(property(get = get_x)) unsigned x;
  static __device__ __forceinline__ unsigned get_x() { return __nvvm_read_ptx_sreg_ctaid_x(); }
};
struct sw_grid_size {
  __declspec(property(get = get_x)) unsigned x;
  static __device__ __forceinline__ unsigned get_x() { return __nvvm_read_ptx_sreg_nctaid_x(); }
};
extern const __device__ __attribute__((weak)) sw_thread_index threadIdx;
extern const __device__ __attribute__((weak)) sw_block_index blockIdx;
extern const __device__ __attribute__((weak)) sw_grid_size gridDim;
#define SW_FN static __device__ __forceinline__
SW_FN float fabsf(float x) { return __builtin_fabsf(x); }
SW_FN float floorf(float x) { return __builtin_floorf(x); }
SW_FN float ceilf(float x) { return __builtin_ceilf(x); }
SW_FN float truncf(float x) { return __builtin_truncf(x); }
SW_FN float rintf(float x) { return __builtin_rintf(x); }
SW_FN float fmaf(float a, float b, float c) { return __builtin_fmaf(a, b, c); }
SW_FN float sqrtf(float x) { return __nvvm_sqrt_rn_f(x); }
SW_FN float rsqrtf(float x) { return __nvvm_rsqrt_approx_f(x); }
SW_FN float roundf(float x) {
  const float t = truncf(x);
  return fabsf(x - t) >= 0.5f ? t + __builtin_copysignf(1.0f, x) : t;
}
SW_FN float sw_exp2i(int e) {  // 2^e for -126 <= e <= 127
  union { unsigned u; float f; } bits;
  bits.u = (unsigned)(e + 127) << 23;
  return bits.f;
}
SW_FN float expf(float x) {
  if (x > 88.8f) return __builtin_inff();
  if (x < -104.0f) return 0.0f;
  const float k = rintf(x * 1.44269504f);
  const float r = fmaf(k, -1.42860677e-6f, fmaf(k, -0.693145752f, x));
  const int e = (int)k, half = e / 2;
  return __nvvm_ex2_approx_f(r * 1.44269504f) * sw_exp2i(half) * sw_exp2i(e - half);
}
SW_FN float logf(float x) {
  if (!(x > 0.0f)) return x == 0.0f ? -__builtin_inff() : __builtin_nanf("");
  if (x == __builtin_inff()) return x;
  int e = 0;
  if (x < 1.17549435e-38f) {
    x *= 16777216.0f;
    e = -24;
  }
  union { float f; int i; } bits;
  bits.f = x;
  const int shift = (bits.i - 0x3f3504f3) >> 23;  // so that the mantissa lies in [sqrt(1/2), sqrt(2))
  bits.i -= shift << 23;
  e += shift;
  const float f = bits.f - 1.0f, s = f / (2.0f + f), z = s * s;
  float p = 1.0f / 11.0f;
  p = fmaf(p, z, 1.0f / 9.0f);
  p = fmaf(p, z, 1.0f / 7.0f);
  p = fmaf(p, z, 1.0f / 5.0f);
  p = fmaf(p, z, 1.0f / 3.0f);
  const float tail = fmaf((float)e, -1.90465421e-9f, 2.0f * s * z * p);
  return fmaf((float)e, 0.693147182f, tail + 2.0f * s);
}
SW_FN float log1pf(float x) {
  const float u = 1.0f + x;
  if (u == 1.0f || u == __builtin_inff()) return x;
  return logf(u) * (x / (u - 1.0f));
}
SW_FN float expm1f(float x) {
  if (fabsf(x) > 0.5f) return expf(x) - 1.0f;
  float p = 1.0f / 40320.0f;
  p = fmaf(p, x, 1.0f / 5040.0f);
  p = fmaf(p, x, 1.0f / 720.0f);
  p = fmaf(p, x, 1.0f / 120.0f);
  p = fmaf(p, x, 1.0f / 24.0f);
  p = fmaf(p, x, 1.0f / 6.0f);
  p = fmaf(p, x, 0.5f);
  return __builtin_copysignf(fmaf(p * x, x, x), x);  // of -0
}
SW_FN float tanhf(float x) {
  const float a = fabsf(x);
  const float t = expm1f(2.0f * (a > 10.0f ? 10.0f : a));
  return __builtin_copysignf(t / (t + 2.0f), x);
}
SW_FN float erff(float x) {
  const float a = fabsf(x);
  if (a < 1.0f) {  // Maclaurin series
    const float z = x * x;
    float p = -1.0f / 6894720.0f;
    p = fmaf(p, z, 1.0f / 685440.0f);
    p = fmaf(p, z, -1.0f / 75600.0f);
    p = fmaf(p, z, 1.0f / 9360.0f);
    p = fmaf(p, z, -1.0f / 1320.0f);
    p = fmaf(p, z, 1.0f / 216.0f);
    p = fmaf(p, z, -1.0f / 42.0f);
    p = fmaf(p, z, 1.0f / 10.0f);
    p = fmaf(p, z, -1.0f / 3.0f);
    return __builtin_copysignf(1.12837917f * fmaf(p * z, x, x), x);  // of -0
  }
  // Abramowitz and Stegun 7.1.26, within 1.5e-7
  const float t = 1.0f / fmaf(0.3275911f, a, 1.0f);
  float p = 1.061405429f;
  p = fmaf(p, t, -1.453152027f);
  p = fmaf(p, t, 1.421413741f);
  p = fmaf(p, t, -0.284496736f);
  p = fmaf(p, t, 0.254829592f);
  return __builtin_copysignf(1.0f - p * t * expf(-a * a), x);
}
)cuda";
}

}  // namespace stitchwork
