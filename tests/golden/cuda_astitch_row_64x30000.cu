// reduce_7: grid 128, block 1024, shared 256 bytes, scratch 512 bytes, 1 grid barrier
// reads x f32[64,30000]
// writes reduce.7 f32[64]
extern "C" __global__ void __launch_bounds__(1024, 2) reduce_7(
    const float* __restrict__ x,
    float* reduce_7,
    unsigned char* scratch,
    unsigned long long* barrier) {
  const int thread = threadIdx.x;
  extern __shared__ __align__(16) unsigned char shared[];
  float* const reduce_7_partials = (float*)(scratch + 0);
  // Phase 1 of 2: reduce.7
  {
    const int task = (int)blockIdx.x;
    // reduce.7 (group of reduce.7; row_split 64x30000: 128 tasks of 1 row, 1 a block, 128 blocks, 1024 threads a row, split 2 (partials))
    {
      const int tile = task / 2, segment = task % 2;
      const int first_col = segment * 15000;
      const int local_row = 0, lane = thread;
      const int row = tile;
      float reduce_7_acc = 0.0f;
#pragma unroll 4
      for (int col = first_col + lane; col < first_col + 15000; col += 1024) {
        const float x_v = x[row * 30000 + col];
        reduce_7_acc += x_v;
      }
      reduce_7_acc = sw_row_reduce<SwAdd, 1024, 1024>(reduce_7_acc, 0.0f, (float*)(shared + 0));
      if (lane == 0) {
        reduce_7_partials[segment * 64 + row] = reduce_7_acc;
      }
    }
  }
  sw_grid_barrier(barrier);
  // Phase 2 of 2: reduce.7
  {
    const int task = (int)blockIdx.x;
    // reduce.7, of each row by a thread (group of reduce.7; row_split 64x30000: 128 tasks of 1 row, 1 a block, 128 blocks, 1024 threads a row, split 2 (partials))
    {
      if (task % 2 == 0) {
        if (thread < 1) {
          const int local_row = thread;
          const int row = task / 2;
          float reduce_7_2 = 0.0f;
#pragma unroll
          for (int s = 0; s < 2; ++s) reduce_7_2 += reduce_7_partials[s * 64 + (row)];
          reduce_7[row] = reduce_7_2;
        }
      }
    }
  }
}
