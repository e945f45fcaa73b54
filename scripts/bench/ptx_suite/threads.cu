// Numbers and texts, and how threads meet: groups, locks, named barriers.
#include <cooperative_groups.h>
#include <cooperative_groups/reduce.h>
#include <cooperative_groups/scan.h>
#include <cuda/atomic>
#include <cuda/latch>
#include <cuda/semaphore>

namespace cg = cooperative_groups;

/// ChaCha20 blocks: rotations and vectors of 128 bits.
extern "C" __global__ void chacha20(const uint4* key, uint4* out, unsigned counter) {
  const unsigned i = blockIdx.x * blockDim.x + threadIdx.x;
  unsigned s[16] = {0x61707865, 0x3320646e, 0x79622d32, 0x6b206574, key[0].x, key[0].y, key[0].z, key[0].w, key[1].x, key[1].y, key[1].z, key[1].w, counter + i, 1, 2, 3}, w[16];
  for (int k = 0; k < 16; ++k) w[k] = s[k];
  auto quarter = [&](int a, int b, int c, int d) {
    w[a] += w[b], w[d] = __funnelshift_l(w[d] ^ w[a], w[d] ^ w[a], 16);
    w[c] += w[d], w[b] = __funnelshift_l(w[b] ^ w[c], w[b] ^ w[c], 12);
    w[a] += w[b], w[d] = __byte_perm(w[d] ^ w[a], 0, 0x2103);
    w[c] += w[d], w[b] = __funnelshift_l(w[b] ^ w[c], w[b] ^ w[c], 7);
  };
  for (int round = 0; round < 10; ++round) {
    quarter(0, 4, 8, 12), quarter(1, 5, 9, 13), quarter(2, 6, 10, 14), quarter(3, 7, 11, 15);
    quarter(0, 5, 10, 15), quarter(1, 6, 11, 12), quarter(2, 7, 8, 13), quarter(3, 4, 9, 14);
  }
  for (int k = 0; k < 4; ++k) out[i * 4 + k] = make_uint4(w[4 * k] + s[4 * k], w[4 * k + 1] + s[4 * k + 1], w[4 * k + 2] + s[4 * k + 2], w[4 * k + 3] + s[4 * k + 3]);
}

/// Products of 256 bits by Montgomery's reduction, with carries (mad.lo.cc and its kin).
extern "C" __global__ void montgomery(const unsigned* a, const unsigned* b, const unsigned* m, unsigned* out, unsigned inverse, int n) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= n) return;
  unsigned t[10] = {}, p[8];
  for (int k = 0; k < 8; ++k) p[k] = m[k];
  auto add_product = [&](const unsigned* v, unsigned f) {
    asm("mad.lo.cc.u32 %0, %9, %17, %0;\n madc.lo.cc.u32 %1, %10, %17, %1;\n madc.lo.cc.u32 %2, %11, %17, %2;\n madc.lo.cc.u32 %3, %12, %17, %3;\n"
        "madc.lo.cc.u32 %4, %13, %17, %4;\n madc.lo.cc.u32 %5, %14, %17, %5;\n madc.lo.cc.u32 %6, %15, %17, %6;\n madc.lo.cc.u32 %7, %16, %17, %7;\n addc.u32 %8, %8, 0;"
        : "+r"(t[0]), "+r"(t[1]), "+r"(t[2]), "+r"(t[3]), "+r"(t[4]), "+r"(t[5]), "+r"(t[6]), "+r"(t[7]), "+r"(t[8])
        : "r"(v[0]), "r"(v[1]), "r"(v[2]), "r"(v[3]), "r"(v[4]), "r"(v[5]), "r"(v[6]), "r"(v[7]), "r"(f));
    asm("mad.hi.cc.u32 %0, %9, %17, %0;\n madc.hi.cc.u32 %1, %10, %17, %1;\n madc.hi.cc.u32 %2, %11, %17, %2;\n madc.hi.cc.u32 %3, %12, %17, %3;\n"
        "madc.hi.cc.u32 %4, %13, %17, %4;\n madc.hi.cc.u32 %5, %14, %17, %5;\n madc.hi.cc.u32 %6, %15, %17, %6;\n madc.hi.cc.u32 %7, %16, %17, %7;\n addc.u32 %8, %8, 0;"
        : "+r"(t[1]), "+r"(t[2]), "+r"(t[3]), "+r"(t[4]), "+r"(t[5]), "+r"(t[6]), "+r"(t[7]), "+r"(t[8]), "+r"(t[9])
        : "r"(v[0]), "r"(v[1]), "r"(v[2]), "r"(v[3]), "r"(v[4]), "r"(v[5]), "r"(v[6]), "r"(v[7]), "r"(f));
  };
  for (int k = 0; k < 8; ++k) {
    add_product(a + 8 * i, b[8 * i + k]);
    add_product(p, t[0] * inverse);
    for (int j = 0; j < 9; ++j) t[j] = t[j + 1];
    t[9] = 0;
  }
  unsigned less[8], borrow;
  asm("sub.cc.u32 %0, %9, %17;\n subc.cc.u32 %1, %10, %18;\n subc.cc.u32 %2, %11, %19;\n subc.cc.u32 %3, %12, %20;\n subc.cc.u32 %4, %13, %21;\n subc.cc.u32 %5, %14, %22;\n"
      "subc.cc.u32 %6, %15, %23;\n subc.cc.u32 %7, %16, %24;\n subc.u32 %8, %25, 0;"
      : "=r"(less[0]), "=r"(less[1]), "=r"(less[2]), "=r"(less[3]), "=r"(less[4]), "=r"(less[5]), "=r"(less[6]), "=r"(less[7]), "=r"(borrow)
      : "r"(t[0]), "r"(t[1]), "r"(t[2]), "r"(t[3]), "r"(t[4]), "r"(t[5]), "r"(t[6]), "r"(t[7]), "r"(p[0]), "r"(p[1]), "r"(p[2]), "r"(p[3]), "r"(p[4]), "r"(p[5]), "r"(p[6]), "r"(p[7]), "r"(t[8]));
  for (int k = 0; k < 8; ++k) out[8 * i + k] = borrow == ~0u ? t[k] : less[k];
}

/// Local alignment (Smith and Waterman) of a pair a warp; antidiagonals by shuffles.
extern "C" __global__ void align(const char* left, const char* right, int* best, int length) {
  const int lane = threadIdx.x;
  const char mine = left[blockIdx.x * 32 + lane];
  int here = 0, before = 0, diagonal = 0, most = 0;  // of column j, j - 1
  for (int step = 0; step < length + 31; ++step) {
    const int above = __shfl_up_sync(~0u, here, 1);
    const int up = lane == 0 ? 0 : above;
    const int j = step - lane;
    if (j >= 0 && j < length) {
      const int match = diagonal + (mine == right[blockIdx.x * length + j] ? 3 : -2);
      before = here;
      here = max(max(0, match), max(before - 1, up - 1));
      most = max(most, here);
    }
    diagonal = up;
  }
  for (int d = 16; d > 0; d /= 2) most = max(most, __shfl_xor_sync(~0u, most, d));
  if (lane == 0) best[blockIdx.x] = most;
}

/// Conway's game by words of 64 cells, one generation after another in one block.
extern "C" __global__ void life(unsigned long long* rows, int turns) {
  __shared__ unsigned long long world[2][64];
  const int y = threadIdx.x;
  world[0][y] = rows[y];
  for (int t = 0; t < turns; ++t) {
    __syncthreads();
    const unsigned long long* old = world[t & 1];
    unsigned long long one = 0, two = 0, four = 0;
    auto add = [&](unsigned long long v) {
      const unsigned long long c = one & v;
      one ^= v;
      const unsigned long long d = two & c;
      two ^= c;
      four |= d;
    };
    for (int dy = -1; dy <= 1; ++dy) {
      const unsigned long long row = old[(y + dy) & 63];
      add(row << 1 | row >> 63);
      add(row >> 1 | row << 63);
      if (dy != 0) add(row);
    }
    world[~t & 1][y] = two & ~four & (one | old[y]);
  }
  __syncthreads();
  rows[y] = world[turns & 1][y];
}

/// Rank and compaction of groups: coalesced, tiled, binary and labelled; exclusive scans; a leader's broadcast.
extern "C" __global__ void groups(const int* in, int* out) {
  const cg::thread_block block = cg::this_thread_block();
  const auto tile = cg::tiled_partition<8>(block);
  const int i = block.group_index().x * block.size() + block.thread_rank(), value = in[i];
  int* mine = out + 8 * i;
  mine[0] = tile.meta_group_rank() * 100 + tile.meta_group_size();
  mine[1] = cg::exclusive_scan(tile, value, cg::plus<int>());
  mine[2] = cg::reduce(tile, value, cg::bit_xor<int>());
  mine[3] = cg::reduce(tile, value, cg::less<int>());
  const auto odd = cg::binary_partition(tile, value & 1);
  mine[4] = odd.size() * 1000 + cg::reduce(odd, value, cg::plus<int>()) % 1000;
  mine[5] = tile.shfl_down(value, 3) * 2 + tile.any(value > 900);
  mine[6] = tile.match_any(value & 3);
  if (value % 3 == 0) {
    const auto some = cg::coalesced_threads();
    mine[7] = some.size() * 10000 + some.thread_rank() * 100 + cg::reduce(some, value, cg::greater<int>()) % 100;
  } else {
    mine[7] = -1;
  }
}

/// A ticket lock, a counting semaphore and a latch of the device.
extern "C" __global__ void locks(unsigned* ticket, unsigned* serving, int* total, int* inside, int* most) {
  __shared__ alignas(16) char gate_bytes[64];
  auto& gate = *reinterpret_cast<cuda::counting_semaphore<cuda::thread_scope_block, 3>*>(gate_bytes);
  __shared__ alignas(cuda::latch<cuda::thread_scope_block>) char latch_bytes[sizeof(cuda::latch<cuda::thread_scope_block>)];
  auto& done = *reinterpret_cast<cuda::latch<cuda::thread_scope_block>*>(latch_bytes);
  __shared__ int in_room, highest;
  if (threadIdx.x == 0) {
    new (&gate) cuda::counting_semaphore<cuda::thread_scope_block, 3>(3);
    new (&done) cuda::latch<cuda::thread_scope_block>(blockDim.x);
    in_room = highest = 0;
  }
  __syncthreads();
  gate.acquire();
  atomicMax(&highest, atomicAdd(&in_room, 1) + 1);
  atomicSub(&in_room, 1);
  gate.release();
  done.arrive_and_wait();
  if (threadIdx.x != 0) return;
  cuda::atomic_ref<unsigned, cuda::thread_scope_device> next(*ticket), now(*serving);
  const unsigned mine = next.fetch_add(1, cuda::memory_order_relaxed);
  while (now.load(cuda::memory_order_acquire) != mine) __nanosleep(50);
  *total += blockIdx.x + 1;
  *inside += in_room;
  if (highest > *most) *most = highest;
  now.store(mine + 1, cuda::memory_order_release);
}

/// Pi and a sum by Monte Carlo: Philox numbers of ten rounds, sums of doubles and of 64-bit integers over blocks.
extern "C" __global__ void philox_walks(double* sum, unsigned long long* hits, unsigned seed, int draws) {
  const unsigned i = blockIdx.x * blockDim.x + threadIdx.x;
  double mine = 0;
  unsigned long long inside = 0;
  for (int d = 0; d < draws; ++d) {
    uint4 c = make_uint4(i, d, 0, 0);
    uint2 k = make_uint2(seed, 0xcafe);
    for (int r = 0; r < 10; ++r) {
      const unsigned h0 = __umulhi(0xD2511F53u, c.x), l0 = 0xD2511F53u * c.x, h1 = __umulhi(0xCD9E8D57u, c.z), l1 = 0xCD9E8D57u * c.z;
      c = make_uint4(h1 ^ c.y ^ k.x, l1, h0 ^ c.w ^ k.y, l0);
      k.x += 0x9E3779B9u, k.y += 0xBB67AE85u;
    }
    const double x = c.x * 0x1p-32, y = c.y * 0x1p-32;
    inside += x * x + y * y < 1;
    mine += x * y + c.z * 0x1p-40 - c.w * 0x1p-40;
  }
  for (int d = 16; d > 0; d /= 2) mine += __shfl_xor_sync(~0u, mine, d), inside += __shfl_xor_sync(~0u, inside, d);
  if (threadIdx.x % 32 == 0) {
    atomicAdd(sum, mine);
    atomicAdd(hits, inside);
  }
}

/// Texts: where a pattern in constant memory is found (Knuth, Morris and Pratt), case folded; a Bloom filter.
__constant__ char kPattern[8] = "abacaba";
extern "C" __global__ void find_pattern(const char* text, int* count, unsigned* filter, int length, int piece) {
  __shared__ signed char fall[8];
  if (threadIdx.x == 0) {
    fall[0] = -1;
    for (int k = 1, j = 0; k < 8; ++k) {
      fall[k] = j;
      if (k < 7) {
        while (j >= 0 && kPattern[k] != kPattern[j]) j = fall[j];
        ++j;
      }
    }
  }
  __syncthreads();
  const int begin = (blockIdx.x * blockDim.x + threadIdx.x) * piece, end = min(begin + piece + 6, length);
  int j = 0;
  for (int i = begin; i < end; ++i) {
    char c = text[i];
    if (c >= 'A' && c <= 'Z') c += 'a' - 'A';
    while (j >= 0 && kPattern[j] != c) j = fall[j];
    if (++j == 7) {
      atomicAdd(count, 1);
      const unsigned h = static_cast<unsigned>(i) * 2654435761u;
      atomicOr(filter + (h >> 27), 1u << (h >> 22 & 31));
      j = fall[7];
    }
  }
}

/// What the machine says of itself, and barriers of parts of a block.
extern "C" __global__ void places(unsigned* out) {
  unsigned lane, warp, warps, less, grid, sm;
  asm("mov.u32 %0, %%laneid;" : "=r"(lane));
  asm volatile("mov.u32 %0, %%warpid;" : "=r"(warp));
  asm volatile("mov.u32 %0, %%nwarpid;" : "=r"(warps));
  asm("mov.u32 %0, %%lanemask_lt;" : "=r"(less));
  asm("mov.u32 %0, %%nctaid.y;" : "=r"(grid));
  asm volatile("mov.u32 %0, %%smid;" : "=r"(sm));
  const long long begin = clock64();
  unsigned long long timer;
  asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(timer));
  __shared__ int slot[4];
  const int pair = threadIdx.x / 64;
  if (threadIdx.x % 64 == 0) slot[pair] = pair * 11;
  asm volatile("barrier.sync %0, 64;" ::"r"(pair + 1) : "memory");
  const int value = slot[pair];
  const long long end = clock64();
  unsigned* mine = out + 8 * ((blockIdx.y * gridDim.x + blockIdx.x) * blockDim.x + threadIdx.x);
  mine[0] = lane, mine[1] = __popc(less), mine[2] = warps >= 8 && warp < 64, mine[3] = grid, mine[4] = sm < 4096, mine[5] = end >= begin && timer != 0, mine[6] = value;
  mine[7] = __shfl_sync(0xffu << (lane & 24), lane * 3, 5, 8);
}
