// 23 groups of add_692 share a body; what each has of its own:
struct add_252_entry {
  const float* gradients_vit_embeddings_patch_embeddings_projection_kernel;
  const float* mu_vit_embeddings_patch_embeddings_projection_kernel;
  const float* nu_vit_embeddings_patch_embeddings_projection_kernel;
  float* add_252;
  float* add_386;
  int rows;
  int blocks;
  int first_block;  // it has the tasks of blocks [first_block, first_block + blocks)
};
static __device__ __forceinline__ void add_252_body(const add_252_entry& entry, int block, float (&add_252_kept)[4], float (&add_386_kept)[4]) {
  const int thread = threadIdx.x;
  const float* const gradients_vit_embeddings_patch_embeddings_projection_kernel = entry.gradients_vit_embeddings_patch_embeddings_projection_kernel;
  const float* const mu_vit_embeddings_patch_embeddings_projection_kernel = entry.mu_vit_embeddings_patch_embeddings_projection_kernel;
  const float* const nu_vit_embeddings_patch_embeddings_projection_kernel = entry.nu_vit_embeddings_patch_embeddings_projection_kernel;
  float* const add_252 = entry.add_252;
  float* const add_386 = entry.add_386;
  const int rows = entry.rows;
  const int task = block;
  // add.252, add.386 (group of add.673; elementwise 576x1: 1 task of 576 rows, 1 a block, 1 block, vectors of 4)
  {
    {
      SwVector<float, 4> gradients_vit_embeddings_patch_embeddings_projection_kernel_vector;
      SwVector<float, 4> mu_vit_embeddings_patch_embeddings_projection_kernel_vector;
      SwVector<float, 4> nu_vit_embeddings_patch_embeddings_projection_kernel_vector;
      {
        const int local_row = thread * 4;
        const int row = task * 576 + local_row;
        if (local_row < 576 && row < rows) {
          sw_load(gradients_vit_embeddings_patch_embeddings_projection_kernel_vector, &gradients_vit_embeddings_patch_embeddings_projection_kernel[row]);
          sw_load(mu_vit_embeddings_patch_embeddings_projection_kernel_vector, &mu_vit_embeddings_patch_embeddings_projection_kernel[row]);
          sw_load(nu_vit_embeddings_patch_embeddings_projection_kernel_vector, &nu_vit_embeddings_patch_embeddings_projection_kernel[row]);
        }
      }
      // No load moves behind this: all of them are in flight.
      asm volatile("" : "+f"(gradients_vit_embeddings_patch_embeddings_projection_kernel_vector.all.word[0]), "+f"(mu_vit_embeddings_patch_embeddings_projection_kernel_vector.all.word[0]), "+f"(nu_vit_embeddings_patch_embeddings_projection_kernel_vector.all.word[0]));
      const int local_row = thread * 4;
      const int row = task * 576 + local_row;
      if (local_row < 576 && row < rows) {
        SwVector<float, 4> add_252_vector;
        SwVector<float, 4> add_386_vector;
#pragma unroll
        for (int j = 0; j < 4; ++j) {
          const int local_row = thread * 4 + j;
          const int row = task * 576 + local_row;
          const int i = j;
          const float gradients_vit_embeddings_patch_embeddings_projection_kernel_v = sw_get(gradients_vit_embeddings_patch_embeddings_projection_kernel_vector, j);
          const float multiply_250 = (gradients_vit_embeddings_patch_embeddings_projection_kernel_v * 0.100000001f);
          const float mu_vit_embeddings_patch_embeddings_projection_kernel_v = sw_get(mu_vit_embeddings_patch_embeddings_projection_kernel_vector, j);
          const float multiply_251 = (mu_vit_embeddings_patch_embeddings_projection_kernel_v * 0.899999976f);
          const float add_252_2 = (multiply_250 + multiply_251);
          add_252_kept[i] = add_252_2;
          const float multiply_383 = (gradients_vit_embeddings_patch_embeddings_projection_kernel_v * gradients_vit_embeddings_patch_embeddings_projection_kernel_v);
          const float multiply_384 = (multiply_383 * 0.00100000005f);
          const float nu_vit_embeddings_patch_embeddings_projection_kernel_v = sw_get(nu_vit_embeddings_patch_embeddings_projection_kernel_vector, j);
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

// 23 groups of add_692 share a body; what each has of its own:
struct add_673_entry {
  const float* params_vit_embeddings_patch_embeddings_projection_kernel;
  float* add_252_2;
  float* add_386_2;
  float* add_673;
  int rows;
  int blocks;
  int first_block;  // it has the tasks of blocks [first_block, first_block + blocks)
};
static __device__ __forceinline__ void add_673_body(const add_673_entry& entry, int block, float* power_523_scratch, float* power_472_scratch, float (&add_252_kept)[4], float (&add_386_kept)[4]) {
  const int thread = threadIdx.x;
  const float* const params_vit_embeddings_patch_embeddings_projection_kernel = entry.params_vit_embeddings_patch_embeddings_projection_kernel;
  float* const add_252_2 = entry.add_252_2;
  float* const add_386_2 = entry.add_386_2;
  float* const add_673 = entry.add_673;
  const int rows = entry.rows;
  const int task = block;
  // add.673 (group of add.673; elementwise 576x1: 1 task of 576 rows, 1 a block, 1 block, vectors of 4)
  {
    const float power_472_v = power_472_scratch[0];
    const float subtract_473 = (1.0f - power_472_v);
    const float power_523_v = power_523_scratch[0];
    const float subtract_524 = (1.0f - power_523_v);
    {
      SwVector<float, 4> params_vit_embeddings_patch_embeddings_projection_kernel_vector;
      {
        const int local_row = thread * 4;
        const int row = task * 576 + local_row;
        if (local_row < 576 && row < rows) {
          sw_load(params_vit_embeddings_patch_embeddings_projection_kernel_vector, &params_vit_embeddings_patch_embeddings_projection_kernel[row]);
        }
      }
      const int local_row = thread * 4;
      const int row = task * 576 + local_row;
      if (local_row < 576 && row < rows) {
        SwVector<float, 4> add_673_vector;
#pragma unroll
        for (int j = 0; j < 4; ++j) {
          const int local_row = thread * 4 + j;
          const int row = task * 576 + local_row;
          const int i = j;
          const float params_vit_embeddings_patch_embeddings_projection_kernel_v = sw_get(params_vit_embeddings_patch_embeddings_projection_kernel_vector, j);
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

// add_692: grid 25, block 512, shared 0 bytes, scratch 260 bytes, 1 grid barrier
// reads gradients.classifier.bias f32[10], mu.classifier.bias f32[10], nu.classifier.bias f32[10], count s32[], gradients.classifier.kernel f32[12,10], mu.classifier.kernel f32[12,10], nu.classifier.kernel f32[12,10], gradients.vit.embeddings.cls_token f32[1,1,12] and 89 others
// writes add.669 f32[10], add.228 f32[10], add.370 f32[10], select.469 s32[], add.670 f32[12,10], add.234 f32[12,10], add.374 f32[12,10], add.671 f32[1,1,12] and 65 others
extern "C" __global__ void __launch_bounds__(512, 1) add_692(
    const float* __restrict__ params_classifier_bias,
    const float* __restrict__ gradients_classifier_bias,
    const float* __restrict__ mu_classifier_bias,
    const int* __restrict__ count,
    const float* __restrict__ nu_classifier_bias,
    float* add_228,
    int* select_469,
    float* add_370,
    float* add_669,
    unsigned char* scratch,
    unsigned long long* barrier,
    const unsigned char* __restrict__ table) {
  const int thread = threadIdx.x;
  float* const power_523_scratch = (float*)(scratch + 256);
  float* const power_472_scratch = (float*)(scratch + 0);
  float add_228_kept[2];  // add.228 of the thread's elements
  float add_370_kept[2];  // add.370 of the thread's elements
  float add_252_kept[4];  // add.252 of the thread's elements
  float add_386_kept[4];  // add.386 of the thread's elements
  // Phase 1 of 2: add.228, add.370, select.469, power.472, power.523, add.252, add.386
  if ((int)blockIdx.x < 1) {
    const int task = (int)blockIdx.x;
    // add.228, add.370 (group of add.669; elementwise 10x1: 1 task of 10 rows, 1 a block, 1 block, vectors of 2)
    {
      {
        SwVector<float, 2> gradients_classifier_bias_vector;
        SwVector<float, 2> mu_classifier_bias_vector;
        SwVector<float, 2> nu_classifier_bias_vector;
        {
          const int local_row = thread * 2;
          const int row = task * 10 + local_row;
          if (local_row < 10) {
            sw_load(gradients_classifier_bias_vector, &gradients_classifier_bias[row]);
            sw_load(mu_classifier_bias_vector, &mu_classifier_bias[row]);
            sw_load(nu_classifier_bias_vector, &nu_classifier_bias[row]);
          }
        }
        // No load moves behind this: all of them are in flight.
        asm volatile("" : "+f"(gradients_classifier_bias_vector.all.word[0]), "+f"(mu_classifier_bias_vector.all.word[0]), "+f"(nu_classifier_bias_vector.all.word[0]));
        const int local_row = thread * 2;
        const int row = task * 10 + local_row;
        if (local_row < 10) {
          SwVector<float, 2> add_228_vector;
          SwVector<float, 2> add_370_vector;
#pragma unroll
          for (int j = 0; j < 2; ++j) {
            const int local_row = thread * 2 + j;
            const int row = task * 10 + local_row;
            const int i = j;
            const float gradients_classifier_bias_v = sw_get(gradients_classifier_bias_vector, j);
            const float multiply_226 = (gradients_classifier_bias_v * 0.100000001f);
            const float mu_classifier_bias_v = sw_get(mu_classifier_bias_vector, j);
            const float multiply_227 = (mu_classifier_bias_v * 0.899999976f);
            const float add_228_2 = (multiply_226 + multiply_227);
            add_228_kept[i] = add_228_2;
            const float multiply_367 = (gradients_classifier_bias_v * gradients_classifier_bias_v);
            const float multiply_368 = (multiply_367 * 0.00100000005f);
            const float nu_classifier_bias_v = sw_get(nu_classifier_bias_vector, j);
            const float multiply_369 = (nu_classifier_bias_v * 0.999000013f);
            const float add_370_2 = (multiply_368 + multiply_369);
            add_370_kept[i] = add_370_2;
            sw_set(add_228_vector, j, (float)(add_228_2));
            sw_set(add_370_vector, j, (float)(add_370_2));
          }
          sw_store(&add_228[row], add_228_vector);
          sw_store(&add_370[row], add_370_vector);
        }
      }
    }
  }
  if (((int)blockIdx.x - 1) >= 0 && ((int)blockIdx.x - 1) < 1) {
    const int task = ((int)blockIdx.x - 1);
    // select.469, power.472, power.523 (group of power.523; elementwise 1x1: 1 task of 1 row, 1 a block, 1 block)
    {
      const int count_v = count[0];
      const bool compare_463 = (count_v < 2147483647);
      const int add_464 = (count_v + 1);
      const int select_469_2 = (compare_463 ? add_464 : 2147483647);
      const float convert_471 = (float)select_469_2;
      const float power_472 = sw_powf(0.899999976f, convert_471);
      const float power_523 = sw_powf(0.999000013f, convert_471);
      if (thread < 1) {
        const int local_row = thread;
        const int row = task;
        select_469[0] = select_469_2;
        power_472_scratch[0] = power_472;
        power_523_scratch[0] = power_523;
      }
    }
  }
  {
    const add_252_entry* const entries = (const add_252_entry*)(table + 112);
    const int e = ((const int*)(table + 0))[blockIdx.x];
    if (e < 23) {
      add_252_body(entries[e], (int)blockIdx.x - entries[e].first_block, add_252_kept, add_386_kept);
    }
  }
  sw_grid_barrier(barrier);
  // Phase 2 of 2: add.669, add.673
  if ((int)blockIdx.x < 1) {
    const int task = (int)blockIdx.x;
    // add.669 (group of add.669; elementwise 10x1: 1 task of 10 rows, 1 a block, 1 block, vectors of 2)
    {
      const float power_472_v = power_472_scratch[0];
      const float subtract_473 = (1.0f - power_472_v);
      const float power_523_v = power_523_scratch[0];
      const float subtract_524 = (1.0f - power_523_v);
      {
        SwVector<float, 2> params_classifier_bias_vector;
        {
          const int local_row = thread * 2;
          const int row = task * 10 + local_row;
          if (local_row < 10) {
            sw_load(params_classifier_bias_vector, &params_classifier_bias[row]);
          }
        }
        const int local_row = thread * 2;
        const int row = task * 10 + local_row;
        if (local_row < 10) {
          SwVector<float, 2> add_669_vector;
#pragma unroll
          for (int j = 0; j < 2; ++j) {
            const int local_row = thread * 2 + j;
            const int row = task * 10 + local_row;
            const int i = j;
            const float params_classifier_bias_v = sw_get(params_classifier_bias_vector, j);
            const float add_228_v = add_228_kept[i];
            const float divide_475 = (add_228_v / subtract_473);
            const float add_370_v = add_370_kept[i];
            const float divide_526 = (add_370_v / subtract_524);
            const float sqrt_573 = sqrtf(divide_526);
            const float add_574 = (sqrt_573 + 9.99999994e-09f);
            const float divide_575 = (divide_475 / add_574);
            const float multiply_645 = (divide_575 * (-0.00100000005f));
            const float add_669_2 = (params_classifier_bias_v + multiply_645);
            sw_set(add_669_vector, j, (float)(add_669_2));
          }
          sw_store(&add_669[row], add_669_vector);
        }
      }
    }
  }
  {
    const add_673_entry* const entries = (const add_673_entry*)(table + 1520);
    const int e = ((const int*)(table + 1408))[blockIdx.x];
    if (e < 23) {
      add_673_body(entries[e], (int)blockIdx.x - entries[e].first_block, power_523_scratch, power_472_scratch, add_252_kept, add_386_kept);
    }
  }
}
