// Shared by the kernels of this folder, which a person wrote for one shape each: ROWS x COLS elements, bf16 if BF16 is
// defined, else fp32. No CUDA header is needed.
#ifdef BF16
typedef unsigned short Element;
constexpr int kVector = 8;
#else
typedef float Element;
constexpr int kVector = 4;
#endif

// 16 bytes of elements.
struct __align__(16) Packet { unsigned word[4]; };

__device__ __forceinline__ void load(float (&v)[kVector], const Element* p) {
#ifdef BF16
  const Packet packet = *(const Packet*)p;
#pragma unroll
  for (int i = 0; i < 4; ++i) {
    v[2 * i] = __uint_as_float(packet.word[i] << 16);
    v[2 * i + 1] = __uint_as_float(packet.word[i] & 0xffff0000u);
  }
#else
  const float4 packet = *(const float4*)p;
  v[0] = packet.x; v[1] = packet.y; v[2] = packet.z; v[3] = packet.w;
#endif
}

__device__ __forceinline__ void store(Element* p, const float (&v)[kVector]) {
#ifdef BF16
  Packet packet;
#pragma unroll
  for (int i = 0; i < 4; ++i)
    asm("cvt.rn.bf16x2.f32 %0, %1, %2;" : "=r"(packet.word[i]) : "f"(v[2 * i + 1]), "f"(v[2 * i]));
  *(Packet*)p = packet;
#else
  *(float4*)p = make_float4(v[0], v[1], v[2], v[3]);
#endif
}

__device__ __forceinline__ float warp_sum(float v) {
#pragma unroll
  for (int mask = 16; mask > 0; mask /= 2) v += __shfl_xor_sync(0xffffffffu, v, mask);
  return v;
}

__device__ __forceinline__ float warp_max(float v) {
#pragma unroll
  for (int mask = 16; mask > 0; mask /= 2) v = fmaxf(v, __shfl_xor_sync(0xffffffffu, v, mask));
  return v;
}
