// Cooperation of threads: warps, cooperative groups, atomics, queues, sorts.
#include <cooperative_groups.h>
#include <cooperative_groups/reduce.h>
#include <cooperative_groups/scan.h>
#include <cuda/atomic>

namespace cg = cooperative_groups;

/// Keeps the positive ones by warp-aggregated atomics (warpAggregatedAtomicsCG); in any order.
extern "C" __global__ void aggregated_filter(const int* in, int* out, int* count, int n) {
  for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x) {
    if (in[i] <= 0) continue;
    const cg::coalesced_group active = cg::coalesced_threads();
    int base = 0;
    if (active.thread_rank() == 0) base = atomicAdd(count, active.size());
    out[active.shfl(base, 0) + active.thread_rank()] = in[i];
  }
}

/// Sums, maxima and inclusive scans of tiles of 16 lanes; a labelled partition's counts.
extern "C" __global__ void group_reductions(const int* in, int* sums, float* most, int* scans, int* counts) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  const auto tile = cg::tiled_partition<16>(cg::this_thread_block());
  const int sum = cg::reduce(tile, in[i], cg::plus<int>());
  const float greatest = cg::reduce(tile, in[i] * .5f, cg::greater<float>());
  scans[i] = cg::inclusive_scan(tile, in[i]);
  const auto same = cg::labeled_partition(tile, in[i] & 3);
  counts[i] = same.size() * 100 + cg::reduce(same, 1, cg::plus<int>());
  if (tile.thread_rank() == 0) {
    sums[i / 16] = sum;
    most[i / 16] = greatest;
  }
}

/// Inclusive sums in one pass over the input by decoupled look-back (Merrill and Garland).
struct TileState {
  unsigned state;  // 0 nothing, 1 the tile's own sum, 2 with all before
  int sum;
};
extern "C" __global__ void look_back_scan(const int* in, int* out, unsigned long long* states, unsigned* next, int n) {
  __shared__ int warp_sums[8], before;
  __shared__ unsigned tile_of_block;
  if (threadIdx.x == 0) tile_of_block = atomicAdd(next, 1u);
  __syncthreads();
  const unsigned tile = tile_of_block;
  const int i = tile * 256 + threadIdx.x, lane = threadIdx.x & 31, warp = threadIdx.x >> 5;
  int sum = i < n ? in[i] : 0;
  for (int d = 1; d < 32; d *= 2) {
    const int other = __shfl_up_sync(~0u, sum, d);
    if (lane >= d) sum += other;
  }
  if (lane == 31) warp_sums[warp] = sum;
  __syncthreads();
  int total = 0;
  for (int k = 0; k < 8; ++k) {
    if (k < warp) sum += warp_sums[k];
    total += warp_sums[k];
  }
  if (threadIdx.x == 0) {
    auto publish = [&](unsigned state, int value) {
      const unsigned long long word = static_cast<unsigned long long>(state) << 32 | static_cast<unsigned>(value);
      cuda::atomic_ref<unsigned long long, cuda::thread_scope_device>(states[tile]).store(word, cuda::memory_order_release);
    };
    publish(tile == 0 ? 2 : 1, total);
    int carried = 0;
    for (int k = static_cast<int>(tile) - 1; k >= 0;) {
      const unsigned long long word = cuda::atomic_ref<unsigned long long, cuda::thread_scope_device>(states[k]).load(cuda::memory_order_acquire);
      if (word >> 32 == 0) continue;
      carried += static_cast<int>(word);
      if (word >> 32 == 2) break;
      --k;
    }
    if (tile != 0) publish(2, carried + total);
    before = carried;
  }
  __syncthreads();
  if (i < n) out[i] = before + sum;
}

/// An open-addressing hash table of 64-bit slots: inserts by compare and swap, counts by atomics; then looks all up.
constexpr unsigned long long kEmpty = ~0ull;
__device__ unsigned hash_of(unsigned key) {
  key ^= key >> 16, key *= 0x85ebca6b, key ^= key >> 13, key *= 0xc2b2ae35;
  return key ^ key >> 16;
}
extern "C" __global__ void hash_insert(const unsigned* keys, unsigned long long* slots, int n, unsigned mask) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= n) return;
  const unsigned long long fresh = static_cast<unsigned long long>(keys[i]) << 32 | 1;
  for (unsigned at = hash_of(keys[i]) & mask;; at = (at + 1) & mask) {
    const unsigned long long was = atomicCAS(slots + at, kEmpty, fresh);
    if (was == kEmpty) return;
    if (was >> 32 == keys[i]) {
      atomicAdd(slots + at, 1ull);
      return;
    }
  }
}
extern "C" __global__ void hash_look_up(const unsigned* keys, const unsigned long long* slots, unsigned* counts, int n, unsigned mask) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= n) return;
  unsigned at = hash_of(keys[i]) & mask;
  while (slots[at] != kEmpty && slots[at] >> 32 != keys[i]) at = (at + 1) & mask;
  counts[i] = slots[at] == kEmpty ? 0 : static_cast<unsigned>(slots[at]);
}

/// Merges pairs of sorted runs by binary search of ranks (mergeSort); then a step of it.
extern "C" __global__ void merge_runs(const int* in, int* out, int run) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  const int pair = i / (2 * run) * 2 * run, mine = i - pair;
  const bool second = mine >= run;
  const int* other = in + pair + (second ? 0 : run);
  const int key = in[i];
  int low = 0, high = run;
  while (low < high) {
    const int middle = (low + high) / 2;
    if (second ? other[middle] <= key : other[middle] < key)
      low = middle + 1;
    else
      high = middle;
  }
  out[pair + (second ? mine - run : mine) + low] = key;
}

/// A stable radix sort of 1024 keys by 4 bits a turn in shared memory; lanes of one digit meet by match.
extern "C" __global__ void radix_sort(unsigned* keys) {
  __shared__ unsigned data[1024], counts[16][32];
  const int t = threadIdx.x, lane = t & 31, warp = t >> 5;
  unsigned* mine = keys + blockIdx.x * 1024;
  data[t] = mine[t];
  __syncthreads();
  for (int shift = 0; shift < 32; shift += 4) {
    const unsigned key = data[t], digit = key >> shift & 15;
    const unsigned peers = __match_any_sync(~0u, digit);
    const unsigned rank = __popc(peers & ((1u << lane) - 1));
    if (t < 512) counts[t / 32][t % 32] = 0;
    __syncthreads();
    if (rank == 0) counts[digit][warp] = __popc(peers);
    __syncthreads();
    if (t < 512) {  // exclusive sums over digits, then warps, in one warp after another
      unsigned sum = counts[t / 32][t % 32];
      for (int d = 1; d < 32; d *= 2) {
        const unsigned other = __shfl_up_sync(~0u, sum, d);
        if (lane >= d) sum += other;
      }
      counts[t / 32][t % 32] = sum;
    }
    __syncthreads();
    unsigned before = 0;
    for (unsigned d = 0; d < digit; ++d) before += counts[d][31];
    if (warp > 0) before += counts[digit][warp - 1];
    __syncthreads();
    data[before + rank] = key;
    __syncthreads();
  }
  mine[t] = data[t];
}

/// Votes: ballots, all and any of predicates, and the first lane that has it.
extern "C" __global__ void votes(const int* in, unsigned* out) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x, lane = threadIdx.x & 31;
  const unsigned ballot = __ballot_sync(~0u, in[i] > 500);
  const int all = __all_sync(~0u, in[i] >= 0), any = __any_sync(~0u, in[i] > 990);
  int same = 0;
  const unsigned equal = __match_all_sync(~0u, in[i] / 2000, &same);
  const unsigned swapped = __shfl_xor_sync(~0u, in[i], 5, 16);
  out[i] = __popc(ballot) * 1000000 + all * 100000 + any * 10000 + same * 1000 + (ballot >> lane & 1) + (equal != 0) + swapped % 1000 * 0;
  if (lane == 7) out[i] = swapped;
}

/// Lists in global memory: threads push nodes on a stack by compare and swap, one walks it.
struct Node {
  int value, next;
};
extern "C" __global__ void stack_push(Node* nodes, int* head, int n) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= n) return;
  nodes[i].value = i * 3;
  int old = *static_cast<volatile int*>(head), expected;
  do {
    expected = old;
    nodes[i].next = expected;
    __threadfence();
    old = atomicCAS(head, expected, i);
  } while (old != expected);
}
extern "C" __global__ void stack_sum(const Node* nodes, const int* head, long long* out) {
  long long sum = 0;
  for (int at = *head; at >= 0; at = nodes[at].next) sum += nodes[at].value;
  *out = sum;
}

/// A spin lock around a plain counter, taken by one thread of each warp.
extern "C" __global__ void spin_lock(int* lock, int* counter, int rounds) {
  if (threadIdx.x % 32 != 0) return;
  for (int k = 0; k < rounds; ++k) {
    while (atomicCAS(lock, 0, 1) != 0) __nanosleep(20);
    __threadfence();
    *static_cast<volatile int*>(counter) = *static_cast<volatile int*>(counter) + 1;
    __threadfence();
    atomicExch(lock, 0);
  }
}

/// Every atomic there is for 32 and 64 bits, on one word each.
extern "C" __global__ void all_atomics(int* words, unsigned long long* longs, float* floats, double* doubles) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  atomicAdd(words, 1);
  atomicSub(words + 1, 2);
  atomicMin(words + 2, -i);
  atomicMax(words + 3, i);
  atomicAnd(words + 4, ~(1 << i % 20));
  atomicOr(words + 5, 1 << i % 20);
  atomicXor(words + 6, 1 << i % 31);
  atomicInc(reinterpret_cast<unsigned*>(words + 7), 100);
  atomicDec(reinterpret_cast<unsigned*>(words + 8), 100);
  atomicAdd(longs, 1ull << 33);
  atomicMin(longs + 1, 1000000ull - i);
  atomicMax(reinterpret_cast<long long*>(longs + 2), -5ll + i);
  atomicOr(longs + 3, 1ull << i % 60);
  atomicAdd(floats, .25f);
  atomicAdd(doubles, .125);
  atomicAdd_block(words + 9 + blockIdx.x, 1);
  atomicAdd_system(words + 13, 1);
}
