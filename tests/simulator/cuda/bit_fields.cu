// Words of bit fields in local and in shared memory, of which a compiler for debuggers (nvcc -G) sets one field after the other:
// each time it loads the whole word, masks the field and stores the word.
struct Fields {
  unsigned kind : 5;
  unsigned length : 11;
  int offset : 7;
  unsigned unused : 9;
};
struct Wide {
  unsigned long long low : 20;
  long long middle : 30;
};
struct Flags {
  unsigned char on : 1;
  unsigned char level : 3;
};

__device__ __noinline__ int weight(const Fields& f) { return f.kind + 3 * f.length + 5 * f.offset; }

// Set in local memory and handed on by address, by value and as a copy.
extern "C" __global__ void local_fields(const int* x, int* y, int n) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= n) return;
  Fields f;
  f.kind = x[i];
  f.length = x[i] >> 5;
  f.offset = x[i] >> 16;
  Fields copy = f;
  Wide w;
  w.low = x[i] & 0xfffff;
  w.middle = -x[i];
  Flags g;
  g.on = x[i] & 1;
  g.level = x[i] >> 1;
  if (g.on)
    y[i] = weight(copy) + (int)w.middle + g.level;
  else
    y[i] = weight(f) + (int)w.low;
}

// In shared memory, read by another thread. `all`: whether every thread sets its length.
extern "C" __global__ void shared_fields(const int* x, int* y, int all) {
  __shared__ Fields fields[64];
  const int i = threadIdx.x;
  fields[i].kind = x[i];
  if (all || i != 40) fields[i].length = x[i] >> 5;
  fields[i].offset = x[i] >> 16;
  __syncthreads();
  const Fields other = fields[63 - i];
  y[i] = other.offset > 3 ? (int)other.kind : (int)other.length;
}

// What nothing set decides.
extern "C" __global__ void unset_field(const int* x, int* y, int n) {
  Fields f;
  f.kind = x[threadIdx.x];
  if (n > 5) f.length = n;
  y[threadIdx.x] = f.length > 7 ? 1 : 2;
}
