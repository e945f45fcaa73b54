// divide_27: grid 1024, block 256, shared 96 bytes, scratch 0 bytes, 0 grid barriers
// reads x f32[4096,1024]
// writes divide.27 f32[4096,1024]
extern "C" __global__ void __launch_bounds__(256, 8) divide_27(
    const float* __restrict__ x,
    float* divide_27) {
  const int thread = threadIdx.x;
  extern __shared__ __align__(16) unsigned char shared[];
  float x_kept[16];  // x of the thread's elements
  float exponential_17_kept[16];  // exponential.17 of the thread's elements
  {
    const int task = (int)blockIdx.x;
    float reduce_10_row;  // all threads of a row have it
    float maximum_11_row;  // all threads of a row have it
    float reduce_22_row;  // all threads of a row have it
    // reduce.10 (group of reduce.22; row_pack 4096x1024: 1024 tasks of 4 rows, 1 a block, 1024 blocks, 64 threads a row, vectors of 4)
    {
      const int local_row = thread / 64, lane = thread % 64;
      const int row = task * 4 + local_row;
      float reduce_10_acc = sw_float(0xff800000u);
#pragma unroll
      for (int n = 0; n < 4; ++n) {
        SwVector<float, 4> x_vector;
        const int col = lane * 4 + n * 256;
        sw_load(x_vector, &x[row * 1024 + col]);
#pragma unroll
        for (int j = 0; j < 4; ++j) {
          const int col = lane * 4 + n * 256 + j;
          const int i = n * 4 + j;
          const float x_v = sw_get(x_vector, j);
          x_kept[i] = x_v;
          reduce_10_acc = sw_max(reduce_10_acc, x_v);
        }
      }
      reduce_10_acc = sw_row_reduce<SwMaximum, 64, 256>(reduce_10_acc, sw_float(0xff800000u), (float*)(shared + 32));
      reduce_10_row = reduce_10_acc;
    }
    // maximum.11, of each row by all its threads
    {
      const int local_row = thread / 64, lane = thread % 64;
      const int row = task * 4 + local_row;
      const float maximum_11 = sw_max(reduce_10_row, sw_float(0xff800000u));
      maximum_11_row = maximum_11;
    }
    // reduce.22
    {
      const int local_row = thread / 64, lane = thread % 64;
      const int row = task * 4 + local_row;
      float reduce_22_acc = 0.0f;
#pragma unroll
      for (int n = 0; n < 4; ++n) {
        const int col = lane * 4 + n * 256;
#pragma unroll
        for (int j = 0; j < 4; ++j) {
          const int col = lane * 4 + n * 256 + j;
          const int i = n * 4 + j;
          const float x_v = x_kept[i];
          const float subtract_16 = (x_v - maximum_11_row);
          const float exponential_17 = expf(subtract_16);
          exponential_17_kept[i] = exponential_17;
          reduce_22_acc += exponential_17;
        }
      }
      reduce_22_acc = sw_row_reduce<SwAdd, 64, 256>(reduce_22_acc, 0.0f, (float*)(shared + 64));
      reduce_22_row = reduce_22_acc;
    }
    // divide.27
    {
      const int local_row = thread / 64, lane = thread % 64;
      const int row = task * 4 + local_row;
#pragma unroll
      for (int n = 0; n < 4; ++n) {
        const int col = lane * 4 + n * 256;
        SwVector<float, 4> divide_27_vector;
#pragma unroll
        for (int j = 0; j < 4; ++j) {
          const int col = lane * 4 + n * 256 + j;
          const int i = n * 4 + j;
          const float exponential_17 = exponential_17_kept[i];
          const float divide_27_2 = (exponential_17 / reduce_22_row);
          sw_set(divide_27_vector, j, (float)(divide_27_2));
        }
        sw_store(&divide_27[row * 1024 + col], divide_27_vector);
      }
    }
  }
}
