#include "codegen/prelude/prelude.h"

namespace stitchwork {

// The approximations that NVRTC's --use_fast_math takes (CUDA C++ Programming Guide, "Intrinsic Functions"),
// but for tanh, whose instruction has 11 bits (two of the others make one that is within 1.2e-7), and for
// power, which keeps IEEE 754's special values: __powf has none for negative bases and for 0^0.
std::string_view prelude_fast() {
  return R"cuda(SW_FN float sqrtf(float x) { return __nvvm_sqrt_approx_ftz_f(x); }
SW_FN float rsqrtf(float x) { return __nvvm_rsqrt_approx_ftz_f(x); }
SW_FN float expf(float x) { return __nvvm_ex2_approx_ftz_f(x * 1.44269504f); }
SW_FN float logf(float x) { return __nvvm_lg2_approx_ftz_f(x) * 0.693147182f; }
SW_FN float tanhf(float x) { return 1.0f - 2.0f / (1.0f + expf(2.0f * x)); }
SW_FN float sw_powf(float x, float y) {
  if (y == 0.0f || x == 1.0f) return 1.0f;
  if (x != x || y != y) return x + y;
  const float a = fabsf(x), infinity = sw_float(0x7f800000u);
  float r;
  if (fabsf(y) == infinity) {
    r = a == 1.0f ? 1.0f : ((a > 1.0f) == (y > 0.0f) ? infinity : 0.0f);
  } else {
    asm("lg2.approx.ftz.f32 %0, %1;" : "=f"(r) : "f"(a));
    asm("ex2.approx.ftz.f32 %0, %1;" : "=f"(r) : "f"(y * r));
  }
  const bool integer = truncf(y) == y, odd = integer && truncf(0.5f * y) != 0.5f * y;
  if (x < 0.0f && a < infinity && !integer) return sw_float(0x7fffffffu);
  return odd && (sw_bits(x) >> 31) != 0 ? -r : r;
}
template <int kExponent> SW_FN float sw_integer_powf(float x) { return sw_product<kExponent>(x); }
)cuda";
}

}  // namespace stitchwork
