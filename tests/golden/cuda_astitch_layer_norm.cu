// add_48: grid 158, block 1024, shared 288 bytes, scratch 0 bytes, 0 grid barriers
// reads x f32[4096,768], scale f32[768], bias f32[768]
// writes add.48 f32[4096,768]
extern "C" __global__ void __launch_bounds__(1024, 2) add_48(
    const float* __restrict__ x,
    const float* __restrict__ scale,
    const float* __restrict__ bias,
    float* add_48) {
  const int thread = threadIdx.x;
  extern __shared__ __align__(16) unsigned char shared[];
  float x_kept[1];  // x of the thread's elements
  float subtract_32_kept[1];  // subtract.32 of the thread's elements
  float scale_kept[1];  // scale of the thread's elements
  float bias_kept[1];  // bias of the thread's elements
  {
    const int first_task = ((int)blockIdx.x * 4096 / 158);
    const int end_task = (((int)blockIdx.x + 1) * 4096 / 158);
    for (int task = first_task; task < end_task; ++task) {
      float reduce_13_row;  // all threads of a row have it
      float divide_14_row;  // all threads of a row have it
      float reduce_25_row;  // all threads of a row have it
      float rsqrt_34_row;  // all threads of a row have it
      // reduce.13 (group of reduce.25; row_pack 4096x768: 4096 tasks of 1 row, 26 a block, 158 blocks, 768 threads a row)
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
            const float scale_v = scale[col];
            scale_kept[i] = scale_v;
            const float bias_v = bias[col];
            bias_kept[i] = bias_v;
            reduce_13_acc += x_v;
          }
        }
        reduce_13_acc = sw_row_reduce<SwAdd, 768, 1024>(reduce_13_acc, 0.0f, (float*)(shared + 32));
        reduce_13_row = reduce_13_acc;
      }
      // divide.14, of each row by all its threads
      {
        const int local_row = thread / 768, lane = thread % 768;
        const int row = task;
        if (local_row < 1) {
          const float divide_14 = (reduce_13_row / 768.0f);
          divide_14_row = divide_14;
        }
      }
      // reduce.25
      {
        const int local_row = thread / 768, lane = thread % 768;
        const int row = task;
        float reduce_25_acc = 0.0f;
        if (local_row < 1) {
#pragma unroll
          for (int i = 0; i < 1; ++i) {
            const int col = lane + i * 768;
            const float x_v = x_kept[i];
            const float subtract_32 = (x_v - divide_14_row);
            subtract_32_kept[i] = subtract_32;
            const float multiply_20 = (subtract_32 * subtract_32);
            reduce_25_acc += multiply_20;
          }
        }
        reduce_25_acc = sw_row_reduce<SwAdd, 768, 1024>(reduce_25_acc, 0.0f, (float*)(shared + 160));
        reduce_25_row = reduce_25_acc;
      }
      // rsqrt.34, of each row by all its threads
      {
        const int local_row = thread / 768, lane = thread % 768;
        const int row = task;
        if (local_row < 1) {
          const float divide_26 = (reduce_25_row / 768.0f);
          const float add_33 = (divide_26 + 9.99999997e-07f);
          const float rsqrt_34 = rsqrtf(add_33);
          rsqrt_34_row = rsqrt_34;
        }
      }
      // add.48
      {
        const int local_row = thread / 768, lane = thread % 768;
        const int row = task;
        if (local_row < 1) {
#pragma unroll
          for (int i = 0; i < 1; ++i) {
            const int col = lane + i * 768;
            const float subtract_32 = subtract_32_kept[i];
            const float scale_v = scale_kept[i];
            const float multiply_42 = (rsqrt_34_row * scale_v);
            const float multiply_43 = (subtract_32 * multiply_42);
            const float bias_v = bias_kept[i];
            const float add_48_2 = (multiply_43 + bias_v);
            add_48[row * 768 + col] = add_48_2;
          }
        }
      }
      __syncthreads();
    }
  }
}
