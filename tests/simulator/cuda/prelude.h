// What these programs use of CUDA C++, for clang without a CUDA toolkit; nvcc brings its own.
#pragma once

#if !defined(__CUDACC__) || defined(__clang__)
#define __global__ __attribute__((global))
#define __device__ __attribute__((device))
#define __shared__ __attribute__((shared))
#define __forceinline__ inline __attribute__((always_inline))
#define __noinline__ __attribute__((noinline))
#define PRELUDE_FN static __device__ __forceinline__
#define PRELUDE_INDEX(NAME, SREG)                                                                    \
  struct NAME##_t {                                                                                  \
    __declspec(property(get = get_x)) unsigned x;                                                    \
    __declspec(property(get = get_y)) unsigned y;                                                    \
    static __device__ __forceinline__ unsigned get_x() { return __nvvm_read_ptx_sreg_##SREG##_x(); } \
    static __device__ __forceinline__ unsigned get_y() { return __nvvm_read_ptx_sreg_##SREG##_y(); } \
  };                                                                                                 \
  extern const __device__ __attribute__((weak)) NAME##_t NAME
PRELUDE_INDEX(threadIdx, tid);
PRELUDE_INDEX(blockIdx, ctaid);
PRELUDE_INDEX(blockDim, ntid);
PRELUDE_INDEX(gridDim, nctaid);
PRELUDE_FN int atomicAdd(int* p, int v) { return __nvvm_atom_add_gen_i(p, v); }
PRELUDE_FN unsigned atomicAdd(unsigned* p, unsigned v) { return __nvvm_atom_add_gen_i((int*)p, (int)v); }
PRELUDE_FN float atomicAdd(float* p, float v) { return __nvvm_atom_add_gen_f(p, v); }
PRELUDE_FN int __shfl_up_sync(unsigned m, int v, unsigned n) { return __nvvm_shfl_sync_up_i32(m, v, n, 0); }
PRELUDE_FN int __shfl_down_sync(unsigned m, int v, unsigned n) {
  return __nvvm_shfl_sync_down_i32(m, v, n, 0x1f);
}
PRELUDE_FN float __shfl_down_sync(unsigned m, float v, unsigned n) {
  return __nvvm_shfl_sync_down_f32(m, v, n, 0x1f);
}
PRELUDE_FN int __shfl_sync(unsigned m, int v, int n) { return __nvvm_shfl_sync_idx_i32(m, v, n, 0x1f); }
PRELUDE_FN void __threadfence() { __nvvm_membar_gl(); }
PRELUDE_FN unsigned __umulhi(unsigned a, unsigned b) { return (unsigned)(((unsigned long long)a * b) >> 32); }
#endif
