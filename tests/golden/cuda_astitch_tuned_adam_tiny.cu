// 23 groups of add_692 share a body; what each has of its own:
struct add_318_entry {
  const float* gradients_vit_encoder_layer_0_intermediate_dense_kernel;
  const float* mu_vit_encoder_layer_0_intermediate_dense_kernel;
  const float* nu_vit_encoder_layer_0_intermediate_dense_kernel;
  float* add_318;
  float* add_430;
  int rows;
  int blocks;
  int first_block;  // it has the tasks of blocks [first_block, first_block + blocks)
};
static __device__ __forceinline__ void add_318_body(const add_318_entry& entry, int block, float (&add_318_kept)[2], float (&add_430_kept)[2]) {
  const int thread = threadIdx.x;
  const float* const gradients_vit_encoder_layer_0_intermediate_dense_kernel = entry.gradients_vit_encoder_layer_0_intermediate_dense_kernel;
  const float* const mu_vit_encoder_layer_0_intermediate_dense_kernel = entry.mu_vit_encoder_layer_0_intermediate_dense_kernel;
  const float* const nu_vit_encoder_layer_0_intermediate_dense_kernel = entry.nu_vit_encoder_layer_0_intermediate_dense_kernel;
  float* const add_318 = entry.add_318;
  float* const add_430 = entry.add_430;
  const int rows = entry.rows;
  const int task = block;
  // add.318, add.430 (group of add.684; elementwise 336x1: 1 tasks of 336 rows, 1 a block, 1 blocks, vectors of 2)
  {
    {
      const int n = 0;
      SwVector<float, 2> gradients_vit_encoder_layer_0_intermediate_dense_kernel_vector[1];
      SwVector<float, 2> mu_vit_encoder_layer_0_intermediate_dense_kernel_vector[1];
      SwVector<float, 2> nu_vit_encoder_layer_0_intermediate_dense_kernel_vector[1];
      for (int u = 0; u < 1; ++u) {
        const int local_row = thread * 2 + (n + u) * 512;
        const int row = task * 336 + local_row;
        if (local_row < 336 && row < rows) {
          sw_load(gradients_vit_encoder_layer_0_intermediate_dense_kernel_vector[u], &gradients_vit_encoder_layer_0_intermediate_dense_kernel[row]);
          sw_load(mu_vit_encoder_layer_0_intermediate_dense_kernel_vector[u], &mu_vit_encoder_layer_0_intermediate_dense_kernel[row]);
          sw_load(nu_vit_encoder_layer_0_intermediate_dense_kernel_vector[u], &nu_vit_encoder_layer_0_intermediate_dense_kernel[row]);
        }
      }
      // No load moves behind this: all of them are in flight.
      asm volatile("" : "+f"(gradients_vit_encoder_layer_0_intermediate_dense_kernel_vector[0].all.word[0]), "+f"(mu_vit_encoder_layer_0_intermediate_dense_kernel_vector[0].all.word[0]), "+f"(nu_vit_encoder_layer_0_intermediate_dense_kernel_vector[0].all.word[0]));
      for (int u = 0; u < 1; ++u) {
        const int local_row = thread * 2 + (n + u) * 512;
        const int row = task * 336 + local_row;
        if (local_row < 336 && row < rows) {
          SwVector<float, 2> add_318_vector;
          SwVector<float, 2> add_430_vector;
#pragma unroll
          for (int j = 0; j < 2; ++j) {
            const int local_row = thread * 2 + (n + u) * 512 + j;
            const int row = task * 336 + local_row;
            const int i = (n + u) * 2 + j;
            const float gradients_vit_encoder_layer_0_intermediate_dense_kernel_v = sw_get(gradients_vit_encoder_layer_0_intermediate_dense_kernel_vector[u], j);
            const float multiply_316 = (gradients_vit_encoder_layer_0_intermediate_dense_kernel_v * 0.100000001f);
            const float mu_vit_encoder_layer_0_intermediate_dense_kernel_v = sw_get(mu_vit_encoder_layer_0_intermediate_dense_kernel_vector[u], j);
            const float multiply_317 = (mu_vit_encoder_layer_0_intermediate_dense_kernel_v * 0.899999976f);
            const float add_318_2 = (multiply_316 + multiply_317);
            add_318_kept[i] = add_318_2;
            const float multiply_427 = (gradients_vit_encoder_layer_0_intermediate_dense_kernel_v * gradients_vit_encoder_layer_0_intermediate_dense_kernel_v);
            const float multiply_428 = (multiply_427 * 0.00100000005f);
            const float nu_vit_encoder_layer_0_intermediate_dense_kernel_v = sw_get(nu_vit_encoder_layer_0_intermediate_dense_kernel_vector[u], j);
            const float multiply_429 = (nu_vit_encoder_layer_0_intermediate_dense_kernel_v * 0.999000013f);
            const float add_430_2 = (multiply_428 + multiply_429);
            add_430_kept[i] = add_430_2;
            sw_set(add_318_vector, j, (float)(add_318_2));
            sw_set(add_430_vector, j, (float)(add_430_2));
          }
          sw_store(&add_318[row], add_318_vector);
          sw_store(&add_430[row], add_430_vector);
        }
      }
    }
  }
}

// 23 groups of add_692 share a body; what each has of its own:
struct add_684_entry {
  const float* params_vit_encoder_layer_0_intermediate_dense_kernel;
  float* add_318_2;
  float* add_430_2;
  float* add_684;
  int rows;
  int blocks;
  int first_block;  // it has the tasks of blocks [first_block, first_block + blocks)
};
static __device__ __forceinline__ void add_684_body(const add_684_entry& entry, int block, float* power_523_scratch, float* power_472_scratch, float (&add_318_kept)[2], float (&add_430_kept)[2]) {
  const int thread = threadIdx.x;
  const float* const params_vit_encoder_layer_0_intermediate_dense_kernel = entry.params_vit_encoder_layer_0_intermediate_dense_kernel;
  float* const add_318_2 = entry.add_318_2;
  float* const add_430_2 = entry.add_430_2;
  float* const add_684 = entry.add_684;
  const int rows = entry.rows;
  const int task = block;
  // add.684 (group of add.684; elementwise 336x1: 1 tasks of 336 rows, 1 a block, 1 blocks, vectors of 2)
  {
    const float power_472_v = power_472_scratch[0];
    const float subtract_473 = (1.0f - power_472_v);
    const float power_523_v = power_523_scratch[0];
    const float subtract_524 = (1.0f - power_523_v);
    {
      const int n = 0;
      SwVector<float, 2> params_vit_encoder_layer_0_intermediate_dense_kernel_vector[1];
      for (int u = 0; u < 1; ++u) {
        const int local_row = thread * 2 + (n + u) * 512;
        const int row = task * 336 + local_row;
        if (local_row < 336 && row < rows) {
          sw_load(params_vit_encoder_layer_0_intermediate_dense_kernel_vector[u], &params_vit_encoder_layer_0_intermediate_dense_kernel[row]);
        }
      }
      for (int u = 0; u < 1; ++u) {
        const int local_row = thread * 2 + (n + u) * 512;
        const int row = task * 336 + local_row;
        if (local_row < 336 && row < rows) {
          SwVector<float, 2> add_684_vector;
#pragma unroll
          for (int j = 0; j < 2; ++j) {
            const int local_row = thread * 2 + (n + u) * 512 + j;
            const int row = task * 336 + local_row;
            const int i = (n + u) * 2 + j;
            const float params_vit_encoder_layer_0_intermediate_dense_kernel_v = sw_get(params_vit_encoder_layer_0_intermediate_dense_kernel_vector[u], j);
            const float add_318_v = add_318_kept[i];
            const float divide_505 = (add_318_v / subtract_473);
            const float add_430_v = add_430_kept[i];
            const float divide_556 = (add_430_v / subtract_524);
            const float sqrt_618 = sqrtf(divide_556);
            const float add_619 = (sqrt_618 + 9.99999994e-09f);
            const float divide_620 = (divide_505 / add_619);
            const float multiply_660 = (divide_620 * (-0.00100000005f));
            const float add_684_2 = (params_vit_encoder_layer_0_intermediate_dense_kernel_v + multiply_660);
            sw_set(add_684_vector, j, (float)(add_684_2));
          }
          sw_store(&add_684[row], add_684_vector);
        }
      }
    }
  }
}

// add_692: grid 25, block 256, shared 0 bytes, scratch 260 bytes, 1 grid barriers
// reads gradients.classifier.bias f32[10], mu.classifier.bias f32[10], nu.classifier.bias f32[10], count s32[], gradients.classifier.kernel f32[12,10], mu.classifier.kernel f32[12,10], nu.classifier.kernel f32[12,10], gradients.vit.embeddings.cls_token f32[1,1,12] and 89 others
// writes add.669 f32[10], add.228 f32[10], add.370 f32[10], select.469 s32[], add.670 f32[12,10], add.234 f32[12,10], add.374 f32[12,10], add.671 f32[1,1,12] and 65 others
extern "C" __global__ void __launch_bounds__(256, 1) add_692(
    const int* __restrict__ count,
    const float* __restrict__ params_vit_embeddings_patch_embeddings_projection_kernel,
    const float* __restrict__ gradients_vit_embeddings_patch_embeddings_projection_kernel,
    const float* __restrict__ mu_vit_embeddings_patch_embeddings_projection_kernel,
    const float* __restrict__ nu_vit_embeddings_patch_embeddings_projection_kernel,
    int* select_469,
    float* add_252,
    float* add_386,
    float* add_673,
    unsigned char* scratch,
    unsigned long long* barrier,
    const unsigned char* __restrict__ table) {
  const int thread = threadIdx.x;
  float* const power_523_scratch = (float*)(scratch + 256);
  float* const power_472_scratch = (float*)(scratch + 0);
  float add_318_kept[2];  // add.318 of the thread's elements
  float add_430_kept[2];  // add.430 of the thread's elements
  float add_252_kept[4];  // add.252 of the thread's elements
  float add_386_kept[4];  // add.386 of the thread's elements
  // Phase 1 of 2: add.318, add.430, select.469, power.472, power.523, add.252, add.386
  {
    const add_318_entry* const entries = (const add_318_entry*)(table + 112);
    const int e = ((const int*)(table + 0))[blockIdx.x];
    if (e < 23) {
      add_318_body(entries[e], (int)blockIdx.x - entries[e].first_block, add_318_kept, add_430_kept);
    }
  }
  if (((int)blockIdx.x - 1) >= 0 && ((int)blockIdx.x - 1) < 1) {
    const int task = ((int)blockIdx.x - 1);
    // select.469, power.472, power.523 (group of power.523; elementwise 1x1: 1 tasks of 1 rows, 1 a block, 1 blocks)
    {
      const int count_v = count[0];
      const bool compare_463 = (count_v < 2147483647);
      const int add_464 = (count_v + 1);
      const int select_469_2 = (compare_463 ? add_464 : 2147483647);
      const float convert_471 = (float)select_469_2;
      const float power_472 = powf(0.899999976f, convert_471);
      const float power_523 = powf(0.999000013f, convert_471);
      if (thread < 1) {
        const int local_row = thread;
        const int row = task;
        select_469[0] = select_469_2;
        power_472_scratch[0] = power_472;
        power_523_scratch[0] = power_523;
      }
    }
  }
  if (((int)blockIdx.x - 5) >= 0 && ((int)blockIdx.x - 5) < 1) {
    const int task = ((int)blockIdx.x - 5);
    // add.252, add.386 (group of add.673; elementwise 576x1: 1 tasks of 576 rows, 1 a block, 1 blocks, vectors of 4)
    {
      {
        const int n = 0;
        SwVector<float, 4> gradients_vit_embeddings_patch_embeddings_projection_kernel_vector[1];
        SwVector<float, 4> mu_vit_embeddings_patch_embeddings_projection_kernel_vector[1];
        SwVector<float, 4> nu_vit_embeddings_patch_embeddings_projection_kernel_vector[1];
        for (int u = 0; u < 1; ++u) {
          const int local_row = thread * 4 + (n + u) * 1024;
          const int row = task * 576 + local_row;
          if (local_row < 576) {
            sw_load(gradients_vit_embeddings_patch_embeddings_projection_kernel_vector[u], &gradients_vit_embeddings_patch_embeddings_projection_kernel[row]);
            sw_load(mu_vit_embeddings_patch_embeddings_projection_kernel_vector[u], &mu_vit_embeddings_patch_embeddings_projection_kernel[row]);
            sw_load(nu_vit_embeddings_patch_embeddings_projection_kernel_vector[u], &nu_vit_embeddings_patch_embeddings_projection_kernel[row]);
          }
        }
        // No load moves behind this: all of them are in flight.
        asm volatile("" : "+f"(gradients_vit_embeddings_patch_embeddings_projection_kernel_vector[0].all.word[0]), "+f"(mu_vit_embeddings_patch_embeddings_projection_kernel_vector[0].all.word[0]), "+f"(nu_vit_embeddings_patch_embeddings_projection_kernel_vector[0].all.word[0]));
        for (int u = 0; u < 1; ++u) {
          const int local_row = thread * 4 + (n + u) * 1024;
          const int row = task * 576 + local_row;
          if (local_row < 576) {
            SwVector<float, 4> add_252_vector;
            SwVector<float, 4> add_386_vector;
#pragma unroll
            for (int j = 0; j < 4; ++j) {
              const int local_row = thread * 4 + (n + u) * 1024 + j;
              const int row = task * 576 + local_row;
              const int i = (n + u) * 4 + j;
              const float gradients_vit_embeddings_patch_embeddings_projection_kernel_v = sw_get(gradients_vit_embeddings_patch_embeddings_projection_kernel_vector[u], j);
              const float multiply_250 = (gradients_vit_embeddings_patch_embeddings_projection_kernel_v * 0.100000001f);
              const float mu_vit_embeddings_patch_embeddings_projection_kernel_v = sw_get(mu_vit_embeddings_patch_embeddings_projection_kernel_vector[u], j);
              const float multiply_251 = (mu_vit_embeddings_patch_embeddings_projection_kernel_v * 0.899999976f);
              const float add_252_2 = (multiply_250 + multiply_251);
              add_252_kept[i] = add_252_2;
              const float multiply_383 = (gradients_vit_embeddings_patch_embeddings_projection_kernel_v * gradients_vit_embeddings_patch_embeddings_projection_kernel_v);
              const float multiply_384 = (multiply_383 * 0.00100000005f);
              const float nu_vit_embeddings_patch_embeddings_projection_kernel_v = sw_get(nu_vit_embeddings_patch_embeddings_projection_kernel_vector[u], j);
              const float multiply_385 = (nu_vit_embeddings_patch_embeddings_projection_kernel_v * 0.999000013f);
              const float add_386_2 = (multiply_384 + multiply_385);
              add_386_kept[i] = add_386_2;
              sw_set(add_252_vector, j, (float)(add_252_2));
              sw_set(add_386_vector, j, (float)(add_386_2));
            }
            sw_store(&add_252[row], add_252_vector);
            sw_store(&add_386[row], add_386_vector);
          }
        }
      }
    }
  }
  sw_grid_barrier(barrier);
  // Phase 2 of 2: add.684, add.673
  {
    const add_684_entry* const entries = (const add_684_entry*)(table + 1520);
    const int e = ((const int*)(table + 1408))[blockIdx.x];
    if (e < 23) {
      add_684_body(entries[e], (int)blockIdx.x - entries[e].first_block, power_523_scratch, power_472_scratch, add_318_kept, add_430_kept);
    }
  }
  if (((int)blockIdx.x - 5) >= 0 && ((int)blockIdx.x - 5) < 1) {
    const int task = ((int)blockIdx.x - 5);
    // add.673 (group of add.673; elementwise 576x1: 1 tasks of 576 rows, 1 a block, 1 blocks, vectors of 4)
    {
      const float power_472_v = power_472_scratch[0];
      const float subtract_473 = (1.0f - power_472_v);
      const float power_523_v = power_523_scratch[0];
      const float subtract_524 = (1.0f - power_523_v);
      {
        const int n = 0;
        SwVector<float, 4> params_vit_embeddings_patch_embeddings_projection_kernel_vector[1];
        for (int u = 0; u < 1; ++u) {
          const int local_row = thread * 4 + (n + u) * 1024;
          const int row = task * 576 + local_row;
          if (local_row < 576) {
            sw_load(params_vit_embeddings_patch_embeddings_projection_kernel_vector[u], &params_vit_embeddings_patch_embeddings_projection_kernel[row]);
          }
        }
        for (int u = 0; u < 1; ++u) {
          const int local_row = thread * 4 + (n + u) * 1024;
          const int row = task * 576 + local_row;
          if (local_row < 576) {
            SwVector<float, 4> add_673_vector;
#pragma unroll
            for (int j = 0; j < 4; ++j) {
              const int local_row = thread * 4 + (n + u) * 1024 + j;
              const int row = task * 576 + local_row;
              const int i = (n + u) * 4 + j;
              const float params_vit_embeddings_patch_embeddings_projection_kernel_v = sw_get(params_vit_embeddings_patch_embeddings_projection_kernel_vector[u], j);
              const float add_252_v = add_252_kept[i];
              const float divide_483 = (add_252_v / subtract_473);
              const float add_386_v = add_386_kept[i];
              const float divide_534 = (add_386_v / subtract_524);
              const float sqrt_585 = sqrtf(divide_534);
              const float add_586 = (sqrt_585 + 9.99999994e-09f);
              const float divide_587 = (divide_483 / add_586);
              const float multiply_649 = (divide_587 * (-0.00100000005f));
              const float add_673_2 = (params_vit_embeddings_patch_embeddings_projection_kernel_v + multiply_649);
              sw_set(add_673_vector, j, (float)(add_673_2));
            }
            sw_store(&add_673[row], add_673_vector);
          }
        }
      }
    }
  }
}
