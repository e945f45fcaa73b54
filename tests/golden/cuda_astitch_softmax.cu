// divide_27: grid 158, block 1024, shared 288 bytes, scratch 0 bytes, 0 grid barriers
// reads x f32[4096,1024]
// writes divide.27 f32[4096,1024]
extern "C" __global__ void __launch_bounds__(1024, 2) divide_27(
    const float* __restrict__ x,
    float* divide_27) {
  const int thread = threadIdx.x;
  extern __shared__ __align__(16) unsigned char shared[];
  float x_kept[1];  // x of the thread's elements
  float exponential_17_kept[1];  // exponential.17 of the thread's elements
  {
    const int first_task = ((int)blockIdx.x * 4096 / 158);
    const int end_task = (((int)blockIdx.x + 1) * 4096 / 158);
    for (int task = first_task; task < end_task; ++task) {
      float reduce_10_row;  // all threads of a row have it
      float maximum_11_row;  // all threads of a row have it
      float reduce_22_row;  // all threads of a row have it
      // reduce.10 (group of reduce.22; row_pack 4096x1024: 4096 tasks of 1 row, 26 a block, 158 blocks, 1024 threads a row)
      {
        const int local_row = 0, lane = thread;
        const int row = task;
        float reduce_10_acc = sw_float(0xff800000u);
#pragma unroll
        for (int i = 0; i < 1; ++i) {
          const int col = lane + i * 1024;
          const float x_v = x[row * 1024 + col];
          x_kept[i] = x_v;
          reduce_10_acc = sw_max(reduce_10_acc, x_v);
        }
        reduce_10_acc = sw_row_reduce<SwMaximum, 1024, 1024>(reduce_10_acc, sw_float(0xff800000u), (float*)(shared + 32));
        reduce_10_row = reduce_10_acc;
      }
      // maximum.11, of each row by all its threads
      {
        const int local_row = 0, lane = thread;
        const int row = task;
        const float maximum_11 = sw_max(reduce_10_row, sw_float(0xff800000u));
        maximum_11_row = maximum_11;
      }
      // reduce.22
      {
        const int local_row = 0, lane = thread;
        const int row = task;
        float reduce_22_acc = 0.0f;
#pragma unroll
        for (int i = 0; i < 1; ++i) {
          const int col = lane + i * 1024;
          const float x_v = x_kept[i];
          const float subtract_16 = (x_v - maximum_11_row);
          const float exponential_17 = expf(subtract_16);
          exponential_17_kept[i] = exponential_17;
          reduce_22_acc += exponential_17;
        }
        reduce_22_acc = sw_row_reduce<SwAdd, 1024, 1024>(reduce_22_acc, 0.0f, (float*)(shared + 160));
        reduce_22_row = reduce_22_acc;
      }
      // divide.27
      {
        const int local_row = 0, lane = thread;
        const int row = task;
#pragma unroll
        for (int i = 0; i < 1; ++i) {
          const int col = lane + i * 1024;
          const float exponential_17 = exponential_17_kept[i];
          const float divide_27_2 = (exponential_17 / reduce_22_row);
          divide_27[row * 1024 + col] = divide_27_2;
        }
      }
      __syncthreads();
    }
  }
}
