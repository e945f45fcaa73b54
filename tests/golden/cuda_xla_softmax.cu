// reduce_10: grid 4096, block 1024, shared 256 bytes, scratch 0 bytes, 0 grid barriers
// reads x f32[4096,1024]
// writes reduce.10 f32[4096]
extern "C" __global__ void __launch_bounds__(1024) reduce_10(
    const float* __restrict__ x,
    float* reduce_10) {
  const int thread = threadIdx.x;
  extern __shared__ __align__(16) unsigned char shared[];
  {
    const int task = (int)blockIdx.x;
    // reduce.10 (group of reduce.10; row_pack 4096x1024: 4096 tasks of 1 row, 1 a block, 4096 blocks, 1024 threads a row)
    {
      const int local_row = 0, lane = thread;
      const int row = task;
      float reduce_10_acc = sw_float(0xff800000u);
      const int col = lane;
      const float x_v = x[row * 1024 + col];
      reduce_10_acc = sw_max(reduce_10_acc, x_v);
      reduce_10_acc = sw_row_reduce<SwMaximum, 1024, 1024>(reduce_10_acc, sw_float(0xff800000u), (float*)(shared + 0));
      if (lane == 0) {
        reduce_10[row] = reduce_10_acc;
      }
    }
  }
}
// reduce_22: grid 4096, block 1024, shared 256 bytes, scratch 0 bytes, 0 grid barriers
// reads x f32[4096,1024], reduce.10 f32[4096]
// writes reduce.22 f32[4096], exponential.17 f32[4096,1024]
extern "C" __global__ void __launch_bounds__(1024) reduce_22(
    const float* __restrict__ x,
    const float* __restrict__ reduce_10,
    float* exponential_17,
    float* reduce_22) {
  const int thread = threadIdx.x;
  extern __shared__ __align__(16) unsigned char shared[];
  {
    const int task = (int)blockIdx.x;
    // exponential.17, reduce.22 (group of reduce.22; row_pack 4096x1024: 4096 tasks of 1 row, 1 a block, 4096 blocks, 1024 threads a row)
    {
      const int local_row = 0, lane = thread;
      const int row = task;
      float reduce_22_acc = 0.0f;
      const float reduce_10_v = reduce_10[row];
      const float maximum_11 = sw_max(reduce_10_v, sw_float(0xff800000u));
      const int col = lane;
      const float x_v = x[row * 1024 + col];
      const float subtract_16 = (x_v - maximum_11);
      const float exponential_17_2 = expf(subtract_16);
      exponential_17[row * 1024 + col] = exponential_17_2;
      reduce_22_acc += exponential_17_2;
      reduce_22_acc = sw_row_reduce<SwAdd, 1024, 1024>(reduce_22_acc, 0.0f, (float*)(shared + 0));
      if (lane == 0) {
        reduce_22[row] = reduce_22_acc;
      }
    }
  }
}
// divide_27: grid 16384, block 256, shared 0 bytes, scratch 0 bytes, 0 grid barriers
// reads exponential.17 f32[4096,1024], reduce.22 f32[4096]
// writes divide.27 f32[4096,1024]
extern "C" __global__ void __launch_bounds__(256) divide_27(
    const float* __restrict__ exponential_17,
    const float* __restrict__ reduce_22,
    float* divide_27) {
  const int thread = threadIdx.x;
  {
    const int task = (int)blockIdx.x;
    // divide.27 (group of divide.27; elementwise 4194304x1: 16384 tasks of 256 rows, 1 a block, 16384 blocks)
    {
      const int local_row = thread;
      const int row = task * 256 + local_row;
      const float exponential_17_v = exponential_17[row];
      const float reduce_22_v = reduce_22[sw_quotient(row, 1024)];
      const float divide_27_2 = (exponential_17_v / reduce_22_v);
      divide_27[row] = divide_27_2;
    }
  }
}
