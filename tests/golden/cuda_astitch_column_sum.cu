// reduce_7: grid 160, block 1024, shared 4096 bytes, scratch 20480 bytes, 1 grid barrier
// reads x f32[8192,1024]
// writes reduce.7 f32[1024]
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
    // reduce.7 (group of reduce.7; column 1024x8192: 160 tasks of 32 rows, 1 a block, 160 blocks, 32 threads a row, split 5 (partials))
    {
      const int tile = task / 5, segment = task % 5;
      const int first_col = segment * 1639;
      const int end_col = first_col + 1639 < 8192 ? first_col + 1639 : 8192;
      const int local_row = thread % 32, lane = thread / 32;
      const int row = tile * 32 + local_row;
      float reduce_7_acc = 0.0f;
#pragma unroll 4
      for (int col = first_col + lane; col < end_col; col += 32) {
        const float x_v = x[row + col * 1024];
        reduce_7_acc += x_v;
      }
      reduce_7_acc = sw_column_reduce<SwAdd, 32, 32>(reduce_7_acc, (float*)(shared + 0));
      if (lane == 0) {
        reduce_7_partials[segment * 1024 + row] = reduce_7_acc;
      }
    }
  }
  sw_grid_barrier(barrier);
  // Phase 2 of 2: reduce.7
  {
    const int task = (int)blockIdx.x;
    // reduce.7, of each row by a thread (group of reduce.7; column 1024x8192: 160 tasks of 32 rows, 1 a block, 160 blocks, 32 threads a row, split 5 (partials))
    {
      if (task % 5 == 0) {
        if (thread < 32) {
          const int local_row = thread;
          const int row = task / 5 * 32 + local_row;
          float reduce_7_2 = 0.0f;
#pragma unroll
          for (int s = 0; s < 5; ++s) reduce_7_2 += reduce_7_partials[s * 1024 + (row)];
          reduce_7[row] = reduce_7_2;
        }
      }
    }
  }
}
