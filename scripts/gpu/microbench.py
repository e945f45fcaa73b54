"""Kernels that measure one constant each, through CuPy's RawModule, timed by CUDA events. Times are in microseconds, medians."""

import re

import common

COPIES = (1, 2, 4, 8)  # 16-byte loads a thread before the first store

SOURCE = r"""
#define SW_FN static __device__ __forceinline__
%(barrier)s
extern "C" __global__ void empty() {}
extern "C" __global__ void barriers(unsigned long long* counter, int count) {
  for (int i = 0; i < count; ++i) sw_grid_barrier(counter);
}
extern "C" __global__ void spin(long long clocks) {
  const long long begin = clock64();
  while (clock64() - begin < clocks) {}
}
template <int U> __device__ void copy(const float4* from, float4* to, long long count) {
  const long long stride = (long long)gridDim.x * blockDim.x;
  for (long long i = (long long)blockIdx.x * blockDim.x + threadIdx.x; i < count; i += U * stride) {
    float4 v[U];
#pragma unroll
    for (int u = 0; u < U; ++u) if (i + u * stride < count) v[u] = from[i + u * stride];
#pragma unroll
    for (int u = 0; u < U; ++u) if (i + u * stride < count) to[i + u * stride] = v[u];
  }
}
// Sums so that nothing is left out; stores only what never is.
template <int U> __device__ void read(const float4* from, float* to, long long count, int times) {
  const long long stride = (long long)gridDim.x * blockDim.x;
  float sum = 0;
  for (int t = 0; t < times; ++t)
    for (long long i = (long long)blockIdx.x * blockDim.x + threadIdx.x; i + (U - 1) * stride < count; i += U * stride) {
      float4 v[U];
#pragma unroll
      for (int u = 0; u < U; ++u)
        asm volatile("ld.global.cg.v4.f32 {%%0,%%1,%%2,%%3}, [%%4];" : "=f"(v[u].x), "=f"(v[u].y), "=f"(v[u].z), "=f"(v[u].w) : "l"(from + i + u * stride));
#pragma unroll
      for (int u = 0; u < U; ++u) sum += v[u].x + v[u].y + v[u].z + v[u].w;
    }
  if (sum == 12345.678f) *to = sum;
}
#define SIZES(U) \
  extern "C" __global__ void copy##U(const float4* a, float4* b, long long n) { copy<U>(a, b, n); } \
  extern "C" __global__ void read##U(const float4* a, float* b, long long n, int times) { read<U>(a, b, n, times); }
SIZES(1) SIZES(2) SIZES(4) SIZES(8)
// 8 chains a thread (or 1), 64 operations a turn; the clocks of the slowest warp of each block.
#define CHAIN(name, type, start, chains, operation) \
  extern "C" __global__ void chain_##name(long long* clocks, float* to, int turns) { \
    __shared__ float cell[1024]; cell[threadIdx.x] = threadIdx.x; \
    type v[chains]; \
    for (int c = 0; c < chains; ++c) v[c] = start + threadIdx.x + c; \
    __syncthreads(); \
    const long long begin = clock64(); \
    for (int t = 0; t < turns; ++t) { \
      _Pragma("unroll") for (int i = 0; i < 64 / chains; ++i) \
        _Pragma("unroll") for (int c = 0; c < chains; ++c) { operation; } } \
    __syncthreads(); \
    const long long end = clock64(); \
    float sum = 0; \
    for (int c = 0; c < chains; ++c) sum += v[c]; \
    if (sum == 12345.678f) *to = sum + cell[0]; \
    if (threadIdx.x == 0) clocks[blockIdx.x] = end - begin; }
CHAIN(fma8, float, 1.0f, 8, asm volatile("fma.rn.f32 %%0, %%0, %%0, %%0;" : "+f"(v[c])))
CHAIN(fma1, float, 1.0f, 1, asm volatile("fma.rn.f32 %%0, %%0, %%0, %%0;" : "+f"(v[c])))
CHAIN(add8, float, 1.0f, 8, asm volatile("add.rn.f32 %%0, %%0, %%0;" : "+f"(v[c])))
CHAIN(mad8, int, 1, 8, asm volatile("mad.lo.s32 %%0, %%0, %%0, %%0;" : "+r"(v[c])))
CHAIN(xor8, int, 1, 8, asm volatile("lop3.b32 %%0, %%0, %%0, %%0, 0x3c;" : "+r"(v[c])))
CHAIN(ex2, float, 0.5f, 8, asm volatile("ex2.approx.ftz.f32 %%0, %%0;" : "+f"(v[c])))
CHAIN(rsqrt, float, 0.5f, 8, asm volatile("rsqrt.approx.ftz.f32 %%0, %%0;" : "+f"(v[c])))
CHAIN(shuffle, float, 1.0f, 8, asm volatile("shfl.sync.bfly.b32 %%0, %%0, 1, 0x1f, 0xffffffff;" : "+f"(v[c])))
CHAIN(shared, float, 1.0f, 8, asm volatile("{.reg .f32 t; ld.shared.f32 t, [%%1]; add.f32 %%0, %%0, t;}" : "+f"(v[c]) : "r"((unsigned)__cvta_generic_to_shared(&cell[threadIdx.x]))))
"""
CHAINS = ("fma8", "fma1", "add8", "mad8", "xor8", "ex2", "rsqrt", "shuffle", "shared")


def barrier_source():
    """The grid barrier of generated code, from where it is defined."""
    text = (common.ROOT / "codegen/prelude/prelude_common.cpp").read_text()
    return re.search(r"^SW_FN void sw_grid_barrier.*?^}", text, re.MULTILINE | re.DOTALL)[0]


def source():
    return SOURCE % {"barrier": barrier_source()}


class Bench:
    def __init__(self):
        import cupy
        self.cupy = cupy
        self.module = cupy.RawModule(code=source(), options=("--std=c++17",))
        attributes = cupy.cuda.Device().attributes
        self.sms, self.l2_bytes = attributes["MultiProcessorCount"], attributes["L2CacheSize"]
        self.threads_per_sm = attributes["MaxThreadsPerMultiProcessor"]
        self.stream = cupy.cuda.Stream(non_blocking=True)
        self.stream.use()
        self.begin, self.end = cupy.cuda.Event(), cupy.cuda.Event()

    def between(self, work):
        self.begin.record(self.stream)
        work()
        self.end.record(self.stream)
        self.end.synchronize()
        return 1e3 * self.cupy.cuda.get_elapsed_time(self.begin, self.end)

    def median(self, work, times=30):
        for _ in range(3):
            work()
        return common.median([self.between(work) for _ in range(times)])

    def launches(self):
        """An empty kernel by events, empty and 20-us kernels in a row, and in a CUDA graph."""
        empty, spin = self.module.get_function("empty"), self.module.get_function("spin")
        nothing = self.median(lambda: None)
        single = self.median(lambda: empty((1,), (32,), ()))
        row = self.median(lambda: [empty((1,), (32,), ()) for _ in range(1000)], 10) / 1000
        full = self.median(lambda: [empty((self.sms,), (1024,), ()) for _ in range(1000)], 10) / 1000
        clocks = 40000  # about 20 us: long enough that the host is ahead of the GPU
        one = self.median(lambda: spin((1,), (32,), (clocks,)))
        hundred = self.median(lambda: [spin((1,), (32,), (clocks,)) for _ in range(101)], 10)
        self.stream.begin_capture()
        for _ in range(1000):
            empty((1,), (32,), ())
        graph = self.stream.end_capture()
        in_graph = self.median(lambda: graph.launch(self.stream), 10) / 1000
        return {"events_alone_us": nothing, "empty_by_events_us": single, "empty_in_a_row_us": row, "empty_in_a_row_full_grid_us": full,
                "empty_in_a_graph_us": in_graph, "spin_us": one, "spin_step_us": (hundred - one) / 100}

    def cooperative(self, counter):
        """(the kernel of barriers, whether it is launched cooperatively). CuPy may lack what it links for that; on a GPU that does
        nothing else, blocks that fit are resident under a plain launch too."""
        try:
            kernel = self.cupy.RawModule(code=source(), options=("--std=c++17",), enable_cooperative_groups=True).get_function("barriers")
            kernel((1,), (32,), (counter, self.cupy.int32(1)))
            self.stream.synchronize()
            return kernel, True
        except Exception as error:  # of CuPy, NVRTC or the linker
            print(f"  no cooperative launches through CuPy: {common.one_line(str(error))}")
            return self.module.get_function("barriers"), False

    def barriers(self):
        """[{blocks, threads, cooperative, per_barrier_us, one_us}]: the slope over 100 barriers of one launch, and the kernel with one."""
        counter = self.cupy.zeros(1, self.cupy.uint64)
        kernel, cooperative = self.cooperative(counter)
        rows = []
        for threads in (1024, 256):
            resident = self.sms * (self.threads_per_sm // threads)
            for blocks in sorted({1, 2, 8, 20, 40, 80, 132, 160, self.sms, 2 * self.sms, resident // 2, resident}):
                if blocks > resident:
                    continue
                one = self.median(lambda: kernel((blocks,), (threads,), (counter, self.cupy.int32(1))))
                many = self.median(lambda: kernel((blocks,), (threads,), (counter, self.cupy.int32(101))), 10)
                rows.append({"blocks": blocks, "threads": threads, "cooperative": cooperative, "per_barrier_us": (many - one) / 100, "one_us": one})
        return rows

    def copies(self, largest=1 << 32):
        """[{bytes, loads, us, gb_s}]: bytes read plus written; each size by the fastest number of loads and of the runtime's own copy."""
        rows = []
        size = 1 << 10
        source, target = self.cupy.empty(largest, self.cupy.uint8), self.cupy.empty(largest, self.cupy.uint8)
        source.fill(1)
        while size <= largest:
            for loads in COPIES:
                kernel = self.module.get_function(f"copy{loads}")
                elements = size // 16
                blocks = max(1, min(16 * self.sms, -(-elements // (256 * loads))))
                us = self.median(lambda: kernel((blocks,), (256,), (source, target, self.cupy.int64(elements))), 20)
                rows.append({"bytes": 2 * size, "by": f"kernel, {loads} loads", "us": us, "gb_s": 2 * size / us / 1e3})
            us = self.median(lambda: self.cupy.cuda.runtime.memcpyAsync(target.data.ptr, source.data.ptr, size, 3, self.stream.ptr), 20)
            rows.append({"bytes": 2 * size, "by": "cudaMemcpyAsync", "us": us, "gb_s": 2 * size / us / 1e3})
            size *= 4
        return rows

    def inflight(self, size=1 << 31):
        """[{bytes_per_sm, gb_s}]: a block an SM, whose warps each have some 512-byte requests under way."""
        data, to = self.cupy.zeros(size // 4, self.cupy.float32), self.cupy.zeros(1, self.cupy.float32)
        rows = []
        for warps in (1, 2, 4, 8, 16, 32):
            for loads in COPIES:
                kernel = self.module.get_function(f"read{loads}")
                turn = self.sms * warps * 32 * loads * 16
                count = min(size, turn * 2000) // turn * turn
                us = self.median(lambda: kernel((self.sms,), (32 * warps,), (data, to, self.cupy.int64(count // 16), self.cupy.int32(1))), 5)
                rows.append({"bytes_per_sm": warps * loads * 512, "warps": warps, "loads": loads, "us": us, "gb_s": count / us / 1e3})
        return rows

    def l2(self):
        """[{bytes, gb_s}]: a buffer that L2 holds, read many times past L1."""
        rows = []
        for size in (4 << 20, 8 << 20, 16 << 20, 24 << 20, 32 << 20):
            data, to = self.cupy.zeros(size // 4, self.cupy.float32), self.cupy.zeros(1, self.cupy.float32)
            kernel, times, blocks = self.module.get_function("read4"), 100, 2 * self.sms
            turn = blocks * 1024 * 4 * 16
            count = size // turn * turn
            if count == 0:
                continue
            us = self.median(lambda: kernel((blocks,), (1024,), (data, to, self.cupy.int64(count // 16), self.cupy.int32(times))), 5)
            rows.append({"bytes": size, "us": us, "gb_s": count * times / us / 1e3})
        return rows

    def instructions(self):
        """{name: {warps: warp instructions an SM and clock}}, a block an SM."""
        clocks, to = self.cupy.zeros(self.sms, self.cupy.int64), self.cupy.zeros(1, self.cupy.float32)
        turns, rows = 200, {}
        for name in CHAINS:
            kernel = self.module.get_function(f"chain_{name}")
            rows[name] = {}
            for warps in (1, 2, 4, 8, 12, 16, 24, 32):
                for _ in range(2):
                    kernel((self.sms,), (32 * warps,), (clocks, to, self.cupy.int32(turns)))
                self.stream.synchronize()
                rows[name][warps] = float(64 * turns * warps / self.cupy.median(clocks).get())
        return rows

    def clock_ghz(self):
        """SM clocks over the time of a kernel that only computes."""
        clocks, to = self.cupy.zeros(self.sms, self.cupy.int64), self.cupy.zeros(1, self.cupy.float32)
        kernel = self.module.get_function("chain_fma8")
        us = self.median(lambda: kernel((self.sms,), (1024,), (clocks, to, self.cupy.int32(100000))), 5)
        return float(self.cupy.median(clocks).get()) / us / 1e3
