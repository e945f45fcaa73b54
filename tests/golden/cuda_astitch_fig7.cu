// multiply_1: grid 147, block 1024, shared 272 bytes, scratch 16896 bytes, 2 grid barriers
// reads parameter.1 f32[4096,256], parameter.2 f32[4096], exponent f32[], parameter.3 f32[64,4096]
// writes multiply.1 f32[64,4096]
extern "C" __global__ void __launch_bounds__(1024, 2) multiply_1(
    const float* __restrict__ parameter_1,
    const float* __restrict__ parameter_2,
    const float* __restrict__ parameter_3,
    const float* __restrict__ exponent,
    float* multiply_1,
    unsigned char* scratch,
    unsigned long long* barrier) {
  const int thread = threadIdx.x;
  extern __shared__ __align__(16) unsigned char shared[];
  float* const power_1_scratch = (float*)(scratch + 0);
  float* const reduce_2_partials = (float*)(scratch + 16384);
  float power_1_kept[2];  // power.1 of the thread's elements
  // Phase 1 of 3: reduce.1, power.1
  {
    const int first_task = ((int)blockIdx.x * 1024 / 147);
    const int end_task = (((int)blockIdx.x + 1) * 1024 / 147);
    for (int task = first_task; task < end_task; ++task) {
      float reduce_1_row;  // all threads of a row have it
      float parameter_2_row;  // all threads of a row have it
      // reduce.1 (group of reduce.1; row_pack 4096x256: 1024 tasks of 4 rows, 7 a block, 147 blocks, 256 threads a row)
      {
        const int local_row = thread / 256, lane = thread % 256;
        const int row = task * 4 + local_row;
        float reduce_1_acc = 0.0f;
        const float parameter_2_v = parameter_2[row];
        parameter_2_row = parameter_2_v;
        const int col = lane;
        const float parameter_1_v = parameter_1[row * 256 + col];
        const float add_1 = (parameter_1_v + parameter_2_v);
        reduce_1_acc += add_1;
        reduce_1_acc = sw_row_reduce<SwAdd, 256, 1024>(reduce_1_acc, 0.0f, (float*)(shared + 16));
        reduce_1_row = reduce_1_acc;
      }
      // power.1, of each row by all its threads
      {
        const float exponent_v = exponent[0];
        const int local_row = thread / 256, lane = thread % 256;
        const int row = task * 4 + local_row;
        const float divide_1 = (reduce_1_row / parameter_2_row);
        const float power_1 = sw_powf(divide_1, exponent_v);
        if (lane == 0) {
          power_1_scratch[row] = power_1;
        }
      }
      __syncthreads();
    }
  }
  sw_grid_barrier(barrier);
  // Phase 2 of 3: reduce.2
  if ((int)blockIdx.x < 128) {
    const int task = (int)blockIdx.x;
    // reduce.2 (group of reduce.2; row_split 64x4096: 128 tasks of 1 row, 1 a block, 128 blocks, 1024 threads a row, split 2 (partials))
    {
      const int tile = task / 2, segment = task % 2;
      const int first_col = segment * 2048;
      const int local_row = 0, lane = thread;
      const int row = tile;
      float reduce_2_acc = 0.0f;
#pragma unroll
      for (int i = 0; i < 2; ++i) {
        const int col = first_col + lane + i * 1024;
        const float power_1_v = power_1_scratch[col];
        power_1_kept[i] = power_1_v;
        const float parameter_3_v = parameter_3[row * 4096 + col];
        const float add_2 = (power_1_v + parameter_3_v);
        reduce_2_acc += add_2;
      }
      reduce_2_acc = sw_row_reduce<SwAdd, 1024, 1024>(reduce_2_acc, 0.0f, (float*)(shared + 16));
      if (lane == 0) {
        reduce_2_partials[segment * 64 + row] = reduce_2_acc;
      }
    }
  }
  sw_grid_barrier(barrier);
  // Phase 3 of 3: multiply.1
  if ((int)blockIdx.x < 128) {
    const int task = (int)blockIdx.x;
    // multiply.1 (group of reduce.2; row_split 64x4096: 128 tasks of 1 row, 1 a block, 128 blocks, 1024 threads a row, split 2 (partials))
    {
      const int tile = task / 2, segment = task % 2;
      const int first_col = segment * 2048;
      const int local_row = 0, lane = thread;
      const int row = tile;
      float reduce_2 = 0.0f;
#pragma unroll
      for (int s = 0; s < 2; ++s) reduce_2 += reduce_2_partials[s * 64 + (row)];
#pragma unroll
      for (int i = 0; i < 2; ++i) {
        const int col = first_col + lane + i * 1024;
        const float power_1_v = power_1_kept[i];
        const float multiply_1_2 = (power_1_v * reduce_2);
        multiply_1[row * 4096 + col] = multiply_1_2;
      }
    }
  }
}
