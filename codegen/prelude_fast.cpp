#include "codegen/prelude.h"

namespace stitchwork {

// The approximations that NVRTC's --use_fast_math takes (CUDA C++ Programming Guide, "Intrinsic Functions"),
// but for tanh, whose instruction has 11 bits: two of the others make one that is within 1.2e-7.
std::string_view prelude_fast() {
  return R"cuda(SW_FN float sqrtf(float x) { return __nvvm_sqrt_approx_ftz_f(x); }
SW_FN float rsqrtf(float x) { return __nvvm_rsqrt_approx_ftz_f(x); }
SW_FN float expf(float x) { return __nvvm_ex2_approx_ftz_f(x * 1.44269504f); }
SW_FN float logf(float x) { return __nvvm_lg2_approx_ftz_f(x) * 0.693147182f; }
SW_FN float tanhf(float x) { return 1.0f - 2.0f / (1.0f + expf(2.0f * x)); }
)cuda";
}

}  // namespace stitchwork
