// v9: grid 792, block 128, shared 34848 bytes, scratch 0 bytes, 0 grid barriers
// reads v0 f32[1000003,33]
// writes v9 f32[1000003,33]
extern "C" __global__ void __launch_bounds__(128, 6) v9(
    const float* __restrict__ v0,
    float* v9) {
  const int thread = threadIdx.x;
  extern __shared__ __align__(16) unsigned char shared[];
  float* const v0_tiles = (float*)(shared + 1024);
  float* const v9_tiles = (float*)(shared + 1024);
  float v0_kept[33];  // v0 of the thread's elements
  float v5_kept[33];  // v5 of the thread's elements
  {
    // An mbarrier behind each task's elements: whether all that is copied for the task has come.
    const unsigned copied = sw_shared_place(v0_tiles) + 16896;
    if (thread == 0) {
      for (int n = 0; n < 2; ++n) {
        sw_init_mbarrier(copied + n * 16912, 1);
      }
      sw_fence_mbarriers();
    }
    const int first_task = ((int)blockIdx.x * 7813 / 792);
    const int end_task = (((int)blockIdx.x + 1) * 7813 / 792);
    {
      const int ahead = first_task;
      if (thread == 0 && ahead < end_task) {
        const int its_stage = 0;
        float* const v0_tile = v0_tiles + its_stage * 4228;
        const int task = ahead;
        // v0 (group of v7; row_pack 1000003x33: 7813 tasks of 128 rows, 10 a block, 792 blocks, staged by bulk copies for 2 tasks)
        {
          const int row = task * 4224;
          sw_copy_bulk(sw_shared_place(v0_tile), &v0[row], sw_min(4224, 33000096 - row) * 4, copied + its_stage * 16912);
        }
      }
    }
    __syncthreads();
    // Stages take turns; when they begin again their mbarriers' phases have the other parity.
    for (int task = first_task, parity = 0, stage = 0; task < end_task; ++task, parity ^= stage == 1, stage = stage < 1 ? stage + 1 : 0) {
      float v2_row;  // all threads of a row have it
      float v7_row;  // all threads of a row have it
      {
        const int ahead = task + 1;
        if (thread == 0 && ahead < end_task) {
          sw_wait_for_stores_read();  // of the task before, from the tiles asked for
          const int its_stage = stage > 0 ? stage - 1 : 1;
          float* const v0_tile_2 = v0_tiles + its_stage * 4228;
          const int task = ahead;
          // v0 (group of v7; row_pack 1000003x33: 7813 tasks of 128 rows, 10 a block, 792 blocks, staged by bulk copies for 2 tasks)
          {
            const int row = task * 4224;
            sw_copy_bulk(sw_shared_place(v0_tile_2), &v0[row], sw_min(4224, 33000096 - row) * 4, copied + its_stage * 16912);
          }
        }
      }
      float* const v0_tile_3 = v0_tiles + stage * 4228;
      float* const v9_tile = v9_tiles + stage * 4228;
      sw_wait_for_bulk(copied + stage * 16912, parity);
      // What fills no unit of a copy at the ends of arrays.
      if (task == 7812) {
        if (thread < 3) {
          v0_tile_3[2208 + thread] = v0[33000096 + thread];
        }
        __syncthreads();
      }
      // v2 (group of v7; row_pack 1000003x33: 7813 tasks of 128 rows, 10 a block, 792 blocks, staged by bulk copies for 2 tasks)
      {
        const int local_row = thread, lane = 0;
        const int row = task * 128 + local_row;
        float v2_acc = sw_float(0xff800000u);
        if (row < 1000003) {
#pragma unroll
          for (int i = 0; i < 33; ++i) {
            const int col = lane + i;
            const float v0_v = v0_tile_3[local_row * 33 + col];
            v0_kept[i] = v0_v;
            v2_acc = sw_max(v2_acc, v0_v);
          }
        }
        v2_row = v2_acc;
      }
      // v7
      {
        const int local_row = thread, lane = 0;
        const int row = task * 128 + local_row;
        float v7_acc = 0.0f;
        if (row < 1000003) {
#pragma unroll
          for (int i = 0; i < 33; ++i) {
            const int col = lane + i;
            const float v0_v = v0_kept[i];
            const float v4 = (v0_v - v2_row);
            const float v5 = expf(v4);
            v5_kept[i] = v5;
            v7_acc += v5;
          }
        }
        v7_row = v7_acc;
      }
      // v9
      {
        const int local_row = thread, lane = 0;
        const int row = task * 128 + local_row;
        if (row < 1000003) {
#pragma unroll
          for (int i = 0; i < 33; ++i) {
            const int col = lane + i;
            const float v5 = v5_kept[i];
            const float v9_2 = (v5 / v7_row);
            v9_tile[local_row * 33 + col] = v9_2;
          }
        }
      }
      sw_fence_for_bulk();
      __syncthreads();
      // v9
      {
        if (thread == 0) {
          const int row = task * 4224;
          sw_store_bulk(&v9[row], sw_shared_place(v9_tile), sw_min(4224, 33000096 - row) * 4);
          sw_commit_stores();
        }
        if (task == 7812 && thread < 3) {
          v9[33000096 + thread] = v9_tile[2208 + thread];
        }
      }
    }
    if (thread == 0) sw_wait_for_stores_read();
  }
}
