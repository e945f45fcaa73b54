// broadcast_7: grid 1536, block 256, shared 0 bytes, scratch 0 bytes, 0 grid barriers
// writes broadcast.7 f32[128,3072]
extern "C" __global__ void __launch_bounds__(256) broadcast_7(
    float* broadcast_7) {
  const int thread = threadIdx.x;
  {
    const int task = (int)blockIdx.x;
    // broadcast.7 (group of broadcast.7; elementwise 393216x1: 1536 tasks of 256 rows, 1 a block, 1536 blocks)
    {
      const int local_row = thread;
      const int row = task * 256 + local_row;
      broadcast_7[row] = 1.41421354f;
    }
  }
}
// divide_8: grid 1536, block 256, shared 0 bytes, scratch 0 bytes, 0 grid barriers
// reads x f32[128,3072]
// writes divide.8 f32[128,3072]
extern "C" __global__ void __launch_bounds__(256) divide_8(
    const float* __restrict__ x,
    float* divide_8) {
  const int thread = threadIdx.x;
  {
    const int task = (int)blockIdx.x;
    // divide.8 (group of divide.8; elementwise 393216x1: 1536 tasks of 256 rows, 1 a block, 1536 blocks)
    {
      const int local_row = thread;
      const int row = task * 256 + local_row;
      const float x_v = x[row];
      const float divide_8_2 = (x_v / 1.41421354f);
      divide_8[row] = divide_8_2;
    }
  }
}
// erf_9: grid 1536, block 256, shared 0 bytes, scratch 0 bytes, 0 grid barriers
// reads divide.8 f32[128,3072]
// writes erf.9 f32[128,3072]
extern "C" __global__ void __launch_bounds__(256) erf_9(
    const float* __restrict__ divide_8,
    float* erf_9) {
  const int thread = threadIdx.x;
  {
    const int task = (int)blockIdx.x;
    // erf.9 (group of erf.9; elementwise 393216x1: 1536 tasks of 256 rows, 1 a block, 1536 blocks)
    {
      const int local_row = thread;
      const int row = task * 256 + local_row;
      const float divide_8_v = divide_8[row];
      const float erf_9_2 = erff(divide_8_v);
      erf_9[row] = erf_9_2;
    }
  }
}
// broadcast_5: grid 1536, block 256, shared 0 bytes, scratch 0 bytes, 0 grid barriers
// writes broadcast.5 f32[128,3072]
extern "C" __global__ void __launch_bounds__(256) broadcast_5(
    float* broadcast_5) {
  const int thread = threadIdx.x;
  {
    const int task = (int)blockIdx.x;
    // broadcast.5 (group of broadcast.5; elementwise 393216x1: 1536 tasks of 256 rows, 1 a block, 1536 blocks)
    {
      const int local_row = thread;
      const int row = task * 256 + local_row;
      broadcast_5[row] = 1.0f;
    }
  }
}
// add_10: grid 1536, block 256, shared 0 bytes, scratch 0 bytes, 0 grid barriers
// reads erf.9 f32[128,3072]
// writes add.10 f32[128,3072]
extern "C" __global__ void __launch_bounds__(256) add_10(
    const float* __restrict__ erf_9,
    float* add_10) {
  const int thread = threadIdx.x;
  {
    const int task = (int)blockIdx.x;
    // add.10 (group of add.10; elementwise 393216x1: 1536 tasks of 256 rows, 1 a block, 1536 blocks)
    {
      const int local_row = thread;
      const int row = task * 256 + local_row;
      const float erf_9_v = erf_9[row];
      const float add_10_2 = (erf_9_v + 1.0f);
      add_10[row] = add_10_2;
    }
  }
}
// multiply_11: grid 1536, block 256, shared 0 bytes, scratch 0 bytes, 0 grid barriers
// reads x f32[128,3072], add.10 f32[128,3072]
// writes multiply.11 f32[128,3072]
extern "C" __global__ void __launch_bounds__(256) multiply_11(
    const float* __restrict__ x,
    const float* __restrict__ add_10,
    float* multiply_11) {
  const int thread = threadIdx.x;
  {
    const int task = (int)blockIdx.x;
    // multiply.11 (group of multiply.11; elementwise 393216x1: 1536 tasks of 256 rows, 1 a block, 1536 blocks)
    {
      const int local_row = thread;
      const int row = task * 256 + local_row;
      const float x_v = x[row];
      const float add_10_v = add_10[row];
      const float multiply_11_2 = (x_v * add_10_v);
      multiply_11[row] = multiply_11_2;
    }
  }
}
// broadcast_3: grid 1536, block 256, shared 0 bytes, scratch 0 bytes, 0 grid barriers
// writes broadcast.3 f32[128,3072]
extern "C" __global__ void __launch_bounds__(256) broadcast_3(
    float* broadcast_3) {
  const int thread = threadIdx.x;
  {
    const int task = (int)blockIdx.x;
    // broadcast.3 (group of broadcast.3; elementwise 393216x1: 1536 tasks of 256 rows, 1 a block, 1536 blocks)
    {
      const int local_row = thread;
      const int row = task * 256 + local_row;
      broadcast_3[row] = 2.0f;
    }
  }
}
// divide_12: grid 1536, block 256, shared 0 bytes, scratch 0 bytes, 0 grid barriers
// reads multiply.11 f32[128,3072]
// writes divide.12 f32[128,3072]
extern "C" __global__ void __launch_bounds__(256) divide_12(
    const float* __restrict__ multiply_11,
    float* divide_12) {
  const int thread = threadIdx.x;
  {
    const int task = (int)blockIdx.x;
    // divide.12 (group of divide.12; elementwise 393216x1: 1536 tasks of 256 rows, 1 a block, 1536 blocks)
    {
      const int local_row = thread;
      const int row = task * 256 + local_row;
      const float multiply_11_v = multiply_11[row];
      const float divide_12_2 = (multiply_11_v / 2.0f);
      divide_12[row] = divide_12_2;
    }
  }
}
