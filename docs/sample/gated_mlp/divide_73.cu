// divide_73: grid 1, block 1024, shared 16 bytes, scratch 0 bytes, 0 grid barriers
// reads multiply.67 f32[512,256]
// writes divide.73 f32[]
extern "C" __global__ void __launch_bounds__(1024) divide_73(
    const float* __restrict__ multiply_67,
    float* divide_73) {
  const int thread = threadIdx.x;
  extern __shared__ __align__(16) unsigned char shared[];
  float* const reduce_72_shared = (float*)(shared + 0);
  {
    const int task = (int)blockIdx.x;
    // reduce.72 (group of reduce.72; row_pack 1x131072: 1 task of 1 row, 1 a block, 1 block, 32 threads a row, unrolled 4)
    {
      const int local_row = thread / 32, lane = thread % 32;
      const int row = task;
      float reduce_72_acc = 0.0f;
      if (local_row < 1) {
        for (int n = 0; n < 4096; n += 4) {
          SwVector<float, 1> multiply_67_vector[4];
#pragma unroll
          for (int u = 0; u < 4; ++u) {
            const int col = lane + (n + u) * 32;
            sw_load(multiply_67_vector[u], &multiply_67[col]);
          }
          // No load moves behind this: all of them are in flight.
          asm volatile("" : "+f"(multiply_67_vector[0].all.word[0]), "+f"(multiply_67_vector[1].all.word[0]), "+f"(multiply_67_vector[2].all.word[0]), "+f"(multiply_67_vector[3].all.word[0]));
#pragma unroll
          for (int u = 0; u < 4; ++u) {
            const int col = lane + (n + u) * 32;
#pragma unroll
            for (int j = 0; j < 1; ++j) {
              const int col = lane + (n + u) * 32 + j;
              const float multiply_67_v = sw_get(multiply_67_vector[u], j);
              reduce_72_acc += multiply_67_v;
            }
          }
        }
      }
      reduce_72_acc = sw_warp_reduce<SwAdd, 32>(reduce_72_acc);
      if (local_row < 1 && lane == 0) {
        reduce_72_shared[local_row] = reduce_72_acc;
      }
    }
    __syncthreads();
    // divide.73 (group of divide.73; elementwise 1x1: 1 task of 1 row, 1 a block, 1 block)
    {
      const float reduce_72_v = reduce_72_shared[0 - task * 1];
      const float divide_73_2 = (reduce_72_v / 131072.0f);
      if (thread < 1) {
        const int local_row = thread;
        const int row = task;
        divide_73[0] = divide_73_2;
      }
    }
  }
}

