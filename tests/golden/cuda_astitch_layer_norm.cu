// add_48: grid 158, block 1024, shared 160 bytes, scratch 0 bytes, 0 grid barriers
extern "C" __global__ void __launch_bounds__(1024, 2) add_48(const float* __restrict__ x, const float* __restrict__ scale, const float* __restrict__ bias, float* add_48) {
  const int thread = threadIdx.x;
  extern __shared__ __align__(16) unsigned char shared[];
  float* const reduce_25_shared = (float*)(shared + 0);
  float* const reduce_13_shared = (float*)(shared + 0);
  float* const divide_14_shared = (float*)(shared + 16);
  float* const rsqrt_34_shared = (float*)(shared + 32);
  float x_kept[1];
  float subtract_32_kept[1];
  {
    const int first_task = ((int)blockIdx.x * 4096 / 158);
    const int end_task = (((int)blockIdx.x + 1) * 4096 / 158);
    for (int task = first_task; task < end_task; ++task) {
      // reduce.13 (group of reduce.25; row_pack 4096x768: 4096 tasks of 1 rows, 26 a block, 158 blocks, 768 threads a row)
      {
        const int local_row = thread / 768, lane = thread % 768;
        const int row = task;
        float reduce_13_acc = 0.0f;
        if (local_row < 1) {
#pragma unroll
          for (int i = 0; i < 1; ++i) {
            const int col = lane + i * 768;
            const float x_v = x[row * 768 + col];
            x_kept[i] = x_v;
            reduce_13_acc += x_v;
          }
        }
        reduce_13_acc = sw_row_reduce<SwAdd, 768, 1024>(reduce_13_acc, 0.0f, (float*)(shared + 32));
        if (local_row < 1 && lane == 0) {
          reduce_13_shared[local_row] = reduce_13_acc;
        }
      }
      __syncthreads();
      // divide.14 (group of reduce.25; row_pack 4096x768: 4096 tasks of 1 rows, 26 a block, 158 blocks, 768 threads a row)
      {
        if (thread < 1) {
          const int local_row = thread;
          const int row = task;
          const float reduce_13_v = reduce_13_shared[local_row];
          const float divide_14 = (reduce_13_v / 768.0f);
          divide_14_shared[local_row] = divide_14;
        }
      }
      __syncthreads();
      // reduce.25 (group of reduce.25; row_pack 4096x768: 4096 tasks of 1 rows, 26 a block, 158 blocks, 768 threads a row)
      {
        const int local_row = thread / 768, lane = thread % 768;
        const int row = task;
        float reduce_25_acc = 0.0f;
        if (local_row < 1) {
          const float divide_14_v = divide_14_shared[local_row];
#pragma unroll
          for (int i = 0; i < 1; ++i) {
            const int col = lane + i * 768;
            const float x_v = x_kept[i];
            const float subtract_32 = (x_v - divide_14_v);
            subtract_32_kept[i] = subtract_32;
            const float multiply_20 = (subtract_32 * subtract_32);
            reduce_25_acc += multiply_20;
          }
        }
        reduce_25_acc = sw_row_reduce<SwAdd, 768, 1024>(reduce_25_acc, 0.0f, (float*)(shared + 32));
        if (local_row < 1 && lane == 0) {
          reduce_25_shared[local_row] = reduce_25_acc;
        }
      }
      __syncthreads();
      // rsqrt.34 (group of reduce.25; row_pack 4096x768: 4096 tasks of 1 rows, 26 a block, 158 blocks, 768 threads a row)
      {
        if (thread < 1) {
          const int local_row = thread;
          const int row = task;
          const float reduce_25_v = reduce_25_shared[local_row];
          const float divide_26 = (reduce_25_v / 768.0f);
          const float add_33 = (divide_26 + 9.99999997e-07f);
          const float rsqrt_34 = rsqrtf(add_33);
          rsqrt_34_shared[local_row] = rsqrt_34;
        }
      }
      __syncthreads();
      // add.48 (group of reduce.25; row_pack 4096x768: 4096 tasks of 1 rows, 26 a block, 158 blocks, 768 threads a row)
      {
        const int local_row = thread / 768, lane = thread % 768;
        const int row = task;
        if (local_row < 1) {
          const float rsqrt_34_v = rsqrt_34_shared[local_row];
#pragma unroll
          for (int i = 0; i < 1; ++i) {
            const int col = lane + i * 768;
            const float subtract_32 = subtract_32_kept[i];
            const float scale_v = scale[col];
            const float multiply_42 = (rsqrt_34_v * scale_v);
            const float multiply_43 = (subtract_32 * multiply_42);
            const float bias_v = bias[col];
            const float add_48_2 = (multiply_43 + bias_v);
            add_48[row * 768 + col] = add_48_2;
          }
        }
      }
      __syncthreads();
    }
  }
}
