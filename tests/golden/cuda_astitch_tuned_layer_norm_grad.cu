// reduce_64: grid 80, block 512, shared 2048 bytes, scratch 491520 bytes, 1 grid barrier
// reads x f32[4096,768], dy f32[4096,768], scale f32[768], bias f32[768]
// writes add.59 f32[4096,768], add.123 f32[4096,768], reduce.75 f32[768], reduce.64 f32[768]
extern "C" __global__ void __launch_bounds__(512, 1) reduce_64(
    const float* __restrict__ x,
    const float* __restrict__ scale,
    const float* __restrict__ bias,
    const float* __restrict__ dy,
    float* add_59,
    float* add_123,
    float* reduce_75,
    float* reduce_64,
    unsigned char* scratch,
    unsigned long long* barrier) {
  const int thread = threadIdx.x;
  extern __shared__ __align__(16) unsigned char shared[];
  float* const reduce_112_shared = (float*)(shared + 320);
  float* const reduce_34_shared = (float*)(shared + 0);
  float* const rsqrt_43_shared = (float*)(shared + 128);
  float* const reduce_84_shared = (float*)(shared + 192);
  float* const divide_92_shared = (float*)(shared + 256);
  float* const reduce_100_shared = (float*)(shared + 0);
  float* const divide_121_shared = (float*)(shared + 192);
  float* const reduce_75_partials = (float*)(scratch + 0);
  float* const reduce_64_partials = (float*)(scratch + 245760);
  // Phase 1 of 2: reduce.18, reduce.64, divide.19, reduce.34, reduce.84, rsqrt.43, add.59, reduce.112 and 5 others
  {
    // What the thread's columns come to, over all its rows.
    float reduce_64_rows[24];
#pragma unroll
    for (int i = 0; i < 24; ++i) reduce_64_rows[i] = 0.0f;
    float reduce_75_rows[24];
#pragma unroll
    for (int i = 0; i < 24; ++i) reduce_75_rows[i] = 0.0f;
    const int first_task = ((int)blockIdx.x * 256 / 80);
    const int end_task = (((int)blockIdx.x + 1) * 256 / 80);
    for (int task = first_task; task < end_task; ++task) {
      float reduce_18_row;  // all threads of a row have it
      float divide_19_row;  // all threads of a row have it
      float reduce_34_row;  // all threads of a row have it
      float rsqrt_43_row;  // all threads of a row have it
      // reduce.18, reduce.64 (group of reduce.112; row_pack 4096x768: 256 tasks of 16 rows, 4 a block, 80 blocks, 32 threads a row, vectors of 4, unrolled 2)
      {
        const int local_row = thread / 32, lane = thread % 32;
        const int row = task * 16 + local_row;
        float reduce_18_acc = 0.0f;
#pragma unroll
        for (int n = 0; n < 6; n += 2) {
          SwVector<float, 4> x_vector[2];
          SwVector<float, 4> dy_vector[2];
#pragma unroll
          for (int u = 0; u < 2; ++u) {
            const int col = lane * 4 + (n + u) * 128;
            sw_load(x_vector[u], &x[row * 768 + col]);
            sw_load(dy_vector[u], &dy[row * 768 + col]);
          }
          // No load moves behind this: all of them are in flight.
          asm volatile("" : "+f"(x_vector[0].all.word[0]), "+f"(x_vector[1].all.word[0]), "+f"(dy_vector[0].all.word[0]), "+f"(dy_vector[1].all.word[0]));
#pragma unroll
          for (int u = 0; u < 2; ++u) {
            const int col = lane * 4 + (n + u) * 128;
#pragma unroll
            for (int j = 0; j < 4; ++j) {
              const int col = lane * 4 + (n + u) * 128 + j;
              const int i = (n + u) * 4 + j;
              const float x_v = sw_get(x_vector[u], j);
              const float dy_v = sw_get(dy_vector[u], j);
              reduce_18_acc += x_v;
              reduce_64_rows[i] += dy_v;
            }
          }
        }
        reduce_18_acc = sw_warp_reduce<SwAdd, 32>(reduce_18_acc);
        reduce_18_row = reduce_18_acc;
      }
      // divide.19, of each row by all its threads
      {
        const int local_row = thread / 32, lane = thread % 32;
        const int row = task * 16 + local_row;
        const float divide_19 = (reduce_18_row / 768.0f);
        divide_19_row = divide_19;
      }
      // reduce.34, reduce.84
      {
        const int local_row = thread / 32, lane = thread % 32;
        const int row = task * 16 + local_row;
        float reduce_34_acc = 0.0f;
        float reduce_84_acc = 0.0f;
        for (int n = 0; n < 6; n += 2) {
          SwVector<float, 4> x_vector[2];
          SwVector<float, 4> dy_vector[2];
          SwVector<float, 4> scale_vector[2];
#pragma unroll
          for (int u = 0; u < 2; ++u) {
            const int col = lane * 4 + (n + u) * 128;
            sw_load(x_vector[u], &x[row * 768 + col]);
            sw_load(dy_vector[u], &dy[row * 768 + col]);
            sw_load(scale_vector[u], &scale[col]);
          }
          // No load moves behind this: all of them are in flight.
          asm volatile("" : "+f"(x_vector[0].all.word[0]), "+f"(x_vector[1].all.word[0]), "+f"(dy_vector[0].all.word[0]), "+f"(dy_vector[1].all.word[0]), "+f"(scale_vector[0].all.word[0]), "+f"(scale_vector[1].all.word[0]));
#pragma unroll
          for (int u = 0; u < 2; ++u) {
            const int col = lane * 4 + (n + u) * 128;
#pragma unroll
            for (int j = 0; j < 4; ++j) {
              const int col = lane * 4 + (n + u) * 128 + j;
              const float x_v = sw_get(x_vector[u], j);
              const float subtract_41 = (x_v - divide_19_row);
              const float multiply_25 = (subtract_41 * subtract_41);
              const float dy_v = sw_get(dy_vector[u], j);
              const float multiply_65 = (subtract_41 * dy_v);
              const float scale_v = sw_get(scale_vector[u], j);
              const float multiply_79 = (multiply_65 * scale_v);
              reduce_34_acc += multiply_25;
              reduce_84_acc += multiply_79;
            }
          }
        }
        reduce_34_acc = sw_warp_reduce<SwAdd, 32>(reduce_34_acc);
        reduce_34_row = reduce_34_acc;
        if (lane == 0) {
          reduce_34_shared[local_row] = reduce_34_acc;
        }
        reduce_84_acc = sw_warp_reduce<SwAdd, 32>(reduce_84_acc);
        if (lane == 0) {
          reduce_84_shared[local_row] = reduce_84_acc;
        }
      }
      // rsqrt.43, of each row by all its threads
      {
        const int local_row = thread / 32, lane = thread % 32;
        const int row = task * 16 + local_row;
        const float divide_35 = (reduce_34_row / 768.0f);
        const float add_42 = (divide_35 + 9.99999997e-07f);
        const float rsqrt_43 = rsqrtf(add_42);
        rsqrt_43_row = rsqrt_43;
        if (lane == 0) {
          rsqrt_43_shared[local_row] = rsqrt_43;
        }
      }
      // add.59, reduce.112, reduce.75
      {
        const int local_row = thread / 32, lane = thread % 32;
        const int row = task * 16 + local_row;
        float reduce_112_acc = 0.0f;
#pragma unroll
        for (int n = 0; n < 6; n += 2) {
          SwVector<float, 4> x_vector[2];
          SwVector<float, 4> scale_vector[2];
          SwVector<float, 4> bias_vector[2];
          SwVector<float, 4> dy_vector[2];
#pragma unroll
          for (int u = 0; u < 2; ++u) {
            const int col = lane * 4 + (n + u) * 128;
            sw_load(x_vector[u], &x[row * 768 + col]);
            sw_load(scale_vector[u], &scale[col]);
            sw_load(bias_vector[u], &bias[col]);
            sw_load(dy_vector[u], &dy[row * 768 + col]);
          }
          // No load moves behind this: all of them are in flight.
          asm volatile("" : "+f"(x_vector[0].all.word[0]), "+f"(x_vector[1].all.word[0]), "+f"(scale_vector[0].all.word[0]), "+f"(scale_vector[1].all.word[0]), "+f"(bias_vector[0].all.word[0]), "+f"(bias_vector[1].all.word[0]), "+f"(dy_vector[0].all.word[0]), "+f"(dy_vector[1].all.word[0]));
#pragma unroll
          for (int u = 0; u < 2; ++u) {
            const int col = lane * 4 + (n + u) * 128;
            SwVector<float, 4> add_59_vector;
#pragma unroll
            for (int j = 0; j < 4; ++j) {
              const int col = lane * 4 + (n + u) * 128 + j;
              const int i = (n + u) * 4 + j;
              const float x_v = sw_get(x_vector[u], j);
              const float subtract_41 = (x_v - divide_19_row);
              const float scale_v = sw_get(scale_vector[u], j);
              const float multiply_53 = (rsqrt_43_row * scale_v);
              const float multiply_54 = (subtract_41 * multiply_53);
              const float bias_v = sw_get(bias_vector[u], j);
              const float add_59_2 = (multiply_54 + bias_v);
              const float dy_v = sw_get(dy_vector[u], j);
              const float multiply_66 = (dy_v * multiply_53);
              const float negate_107 = (-multiply_66);
              const float multiply_65 = (subtract_41 * dy_v);
              const float multiply_70 = (rsqrt_43_row * multiply_65);
              sw_set(add_59_vector, j, (float)(add_59_2));
              reduce_112_acc += negate_107;
              reduce_75_rows[i] += multiply_70;
            }
            sw_store(&add_59[row * 768 + col], add_59_vector);
          }
        }
        reduce_112_acc = sw_warp_reduce<SwAdd, 32>(reduce_112_acc);
        if (lane == 0) {
          reduce_112_shared[local_row] = reduce_112_acc;
        }
      }
      __syncthreads();
      // divide.92, of each row by a thread
      {
        if (thread < 16) {
          const int local_row = thread;
          const int row = task * 16 + local_row;
          const float reduce_84_v = reduce_84_shared[local_row];
          const float rsqrt_43_v = rsqrt_43_shared[local_row];
          const float reduce_34_v = reduce_34_shared[local_row];
          const float divide_35 = (reduce_34_v / 768.0f);
          const float add_42 = (divide_35 + 9.99999997e-07f);
          const float divide_44 = (rsqrt_43_v / add_42);
          const float multiply_45 = (divide_44 * (-0.5f));
          const float multiply_86 = (reduce_84_v * multiply_45);
          float reduce_91 = 0.0f;
          reduce_91 += multiply_86;
          const float divide_92 = (reduce_91 / 768.0f);
          divide_92_shared[local_row] = divide_92;
        }
      }
      __syncthreads();
      // reduce.100
      {
        const int local_row = thread / 32, lane = thread % 32;
        const int row = task * 16 + local_row;
        float reduce_100_acc = 0.0f;
        const float divide_92_v = divide_92_shared[local_row];
        for (int n = 0; n < 6; n += 2) {
          SwVector<float, 4> x_vector[2];
#pragma unroll
          for (int u = 0; u < 2; ++u) {
            const int col = lane * 4 + (n + u) * 128;
            sw_load(x_vector[u], &x[row * 768 + col]);
          }
          // No load moves behind this: all of them are in flight.
          asm volatile("" : "+f"(x_vector[0].all.word[0]), "+f"(x_vector[1].all.word[0]));
#pragma unroll
          for (int u = 0; u < 2; ++u) {
            const int col = lane * 4 + (n + u) * 128;
#pragma unroll
            for (int j = 0; j < 4; ++j) {
              const int col = lane * 4 + (n + u) * 128 + j;
              const float x_v = sw_get(x_vector[u], j);
              const float subtract_41 = (x_v - divide_19_row);
              const float multiply_29 = (subtract_41 * 2.0f);
              const float multiply_94 = (divide_92_v * multiply_29);
              const float negate_95 = (-multiply_94);
              reduce_100_acc += negate_95;
            }
          }
        }
        reduce_100_acc = sw_warp_reduce<SwAdd, 32>(reduce_100_acc);
        if (lane == 0) {
          reduce_100_shared[local_row] = reduce_100_acc;
        }
      }
      __syncthreads();
      // divide.121, of each row by a thread
      {
        if (thread < 16) {
          const int local_row = thread;
          const int row = task * 16 + local_row;
          const float reduce_100_v = reduce_100_shared[local_row];
          float reduce_106 = 0.0f;
          reduce_106 += reduce_100_v;
          const float reduce_112_v = reduce_112_shared[local_row];
          float reduce_119 = 0.0f;
          reduce_119 += reduce_112_v;
          const float add_120 = (reduce_106 + reduce_119);
          const float divide_121 = (add_120 / 768.0f);
          divide_121_shared[local_row] = divide_121;
        }
      }
      __syncthreads();
      // add.123
      {
        const int local_row = thread / 32, lane = thread % 32;
        const int row = task * 16 + local_row;
        const float divide_92_v = divide_92_shared[local_row];
        const float divide_121_v = divide_121_shared[local_row];
        for (int n = 0; n < 6; n += 2) {
          SwVector<float, 4> x_vector[2];
          SwVector<float, 4> dy_vector[2];
          SwVector<float, 4> scale_vector[2];
#pragma unroll
          for (int u = 0; u < 2; ++u) {
            const int col = lane * 4 + (n + u) * 128;
            sw_load(x_vector[u], &x[row * 768 + col]);
            sw_load(dy_vector[u], &dy[row * 768 + col]);
            sw_load(scale_vector[u], &scale[col]);
          }
          // No load moves behind this: all of them are in flight.
          asm volatile("" : "+f"(x_vector[0].all.word[0]), "+f"(x_vector[1].all.word[0]), "+f"(dy_vector[0].all.word[0]), "+f"(dy_vector[1].all.word[0]), "+f"(scale_vector[0].all.word[0]), "+f"(scale_vector[1].all.word[0]));
#pragma unroll
          for (int u = 0; u < 2; ++u) {
            const int col = lane * 4 + (n + u) * 128;
            SwVector<float, 4> add_123_vector;
#pragma unroll
            for (int j = 0; j < 4; ++j) {
              const int col = lane * 4 + (n + u) * 128 + j;
              const float x_v = sw_get(x_vector[u], j);
              const float subtract_41 = (x_v - divide_19_row);
              const float multiply_29 = (subtract_41 * 2.0f);
              const float multiply_94 = (divide_92_v * multiply_29);
              const float dy_v = sw_get(dy_vector[u], j);
              const float scale_v = sw_get(scale_vector[u], j);
              const float multiply_53 = (rsqrt_43_row * scale_v);
              const float multiply_66 = (dy_v * multiply_53);
              const float add_114 = (multiply_94 + multiply_66);
              const float add_123_2 = (add_114 + divide_121_v);
              sw_set(add_123_vector, j, (float)(add_123_2));
            }
            sw_store(&add_123[row * 768 + col], add_123_vector);
          }
        }
      }
      __syncthreads();
    }
    __syncthreads();
#pragma unroll
    for (int i = 0; i < 24; ++i) {
      if (i > 0) __syncthreads();
      reduce_64_rows[i] = sw_column_reduce<SwAdd, 32, 16>(reduce_64_rows[i], (float*)(shared + 0));
      const int col = thread * 4 + i / 4 * 128 + i % 4;
      if (thread < 32 && col < 768) reduce_64_partials[(int)blockIdx.x * 768 + col] = reduce_64_rows[i];
    }
    __syncthreads();
#pragma unroll
    for (int i = 0; i < 24; ++i) {
      if (i > 0) __syncthreads();
      reduce_75_rows[i] = sw_column_reduce<SwAdd, 32, 16>(reduce_75_rows[i], (float*)(shared + 0));
      const int col = thread * 4 + i / 4 * 128 + i % 4;
      if (thread < 32 && col < 768) reduce_75_partials[(int)blockIdx.x * 768 + col] = reduce_75_rows[i];
    }
  }
  sw_grid_barrier(barrier);
  // Phase 2 of 2: reduce.75, reduce.64
  if ((int)blockIdx.x < 48) {
    const int task = (int)blockIdx.x;
    // reduce.75, reduce.64 (group of reduce.112; row_pack 4096x768: 256 tasks of 16 rows, 4 a block, 80 blocks, 32 threads a row, vectors of 4, unrolled 2)
    {
      const int local_row = thread % 16, lane = thread / 16;
      const int row = task * 16 + local_row;
      float reduce_75_acc = 0.0f;
      float reduce_64_acc = 0.0f;
      {
        SwVector<float, 1> reduce_75_vector[2];
        SwVector<float, 1> reduce_64_vector[2];
#pragma unroll
        for (int u = 0; u < 2; ++u) {
          const int col = lane + u * 32;
          sw_load(reduce_75_vector[u], &reduce_75_partials[row + col * 768]);
          sw_load(reduce_64_vector[u], &reduce_64_partials[row + col * 768]);
        }
        // No load moves behind this: all of them are in flight.
        asm volatile("" : "+f"(reduce_75_vector[0].all.word[0]), "+f"(reduce_75_vector[1].all.word[0]), "+f"(reduce_64_vector[0].all.word[0]), "+f"(reduce_64_vector[1].all.word[0]));
#pragma unroll
        for (int u = 0; u < 2; ++u) {
          const int col = lane + u * 32;
#pragma unroll
          for (int j = 0; j < 1; ++j) {
            const int col = lane + u * 32 + j;
            const float reduce_75_v = sw_get(reduce_75_vector[u], j);
            const float reduce_64_v = sw_get(reduce_64_vector[u], j);
            reduce_75_acc += reduce_75_v;
            reduce_64_acc += reduce_64_v;
          }
        }
      }
      {
        SwVector<float, 1> reduce_75_vector_2;
        SwVector<float, 1> reduce_64_vector_2;
        {
          const int col = lane + 2 * 32;
          if (col < 80) {
            sw_load(reduce_75_vector_2, &reduce_75_partials[row + col * 768]);
            sw_load(reduce_64_vector_2, &reduce_64_partials[row + col * 768]);
          }
        }
        // No load moves behind this: all of them are in flight.
        asm volatile("" : "+f"(reduce_75_vector_2.all.word[0]), "+f"(reduce_64_vector_2.all.word[0]));
        const int col = lane + 2 * 32;
        if (col < 80) {
#pragma unroll
          for (int j = 0; j < 1; ++j) {
            const int col = lane + 2 * 32 + j;
            const float reduce_75_v_2 = sw_get(reduce_75_vector_2, j);
            const float reduce_64_v_2 = sw_get(reduce_64_vector_2, j);
            reduce_75_acc += reduce_75_v_2;
            reduce_64_acc += reduce_64_v_2;
          }
        }
      }
      reduce_75_acc = sw_column_reduce<SwAdd, 16, 32>(reduce_75_acc, (float*)(shared + 0));
      if (lane == 0) {
        reduce_75[row] = reduce_75_acc;
      }
      __syncthreads();
      reduce_64_acc = sw_column_reduce<SwAdd, 16, 32>(reduce_64_acc, (float*)(shared + 0));
      if (lane == 0) {
        reduce_64[row] = reduce_64_acc;
      }
    }
  }
}
