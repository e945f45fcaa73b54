// CUB's device-wide primitives on numbers of a file: cub NAME FILE. Buffers in the order of their allocation:
// what is read, what is written, temporary storage.
#include <cstdio>
#include <cstring>
#include <cub/device/device_histogram.cuh>
#include <cub/device/device_radix_sort.cuh>
#include <cub/device/device_reduce.cuh>
#include <cub/device/device_run_length_encode.cuh>
#include <cub/device/device_scan.cuh>
#include <cub/device/device_segmented_reduce.cuh>
#include <cub/device/device_select.cuh>
#include <vector>

struct IsOdd {
  __host__ __device__ bool operator()(int v) const { return v & 1; }
};

/// Asks for the size of the temporary storage first.
template <class F>
void twice(F f) {
  void* storage = nullptr;
  size_t bytes = 0;
  f(storage, bytes);
  cudaMalloc(&storage, bytes);
  f(storage, bytes);
}

template <class T>
T* room(size_t count) {
  void* p = nullptr;
  cudaMalloc(&p, count * sizeof(T));
  return static_cast<T*>(p);
}

int main(int, char** words) {
  std::vector<int> numbers;
  std::FILE* file = std::fopen(words[2], "rb");
  for (int v; std::fread(&v, sizeof v, 1, file) == 1;) numbers.push_back(v);
  const int n = static_cast<int>(numbers.size());
  int* in = room<int>(n);
  cudaMemcpy(in, numbers.data(), n * sizeof(int), cudaMemcpyHostToDevice);
  const auto is = [&](const char* name) { return std::strcmp(words[1], name) == 0; };
  if (is("reduce")) {
    int* out = room<int>(1);
    twice([&](void* s, size_t& b) { cub::DeviceReduce::Sum(s, b, in, out, n); });
  } else if (is("scan")) {
    int* out = room<int>(n);
    twice([&](void* s, size_t& b) { cub::DeviceScan::InclusiveSum(s, b, in, out, n); });
  } else if (is("sort")) {
    int* out = room<int>(n);
    twice([&](void* s, size_t& b) { cub::DeviceRadixSort::SortKeys(s, b, in, out, n); });
  } else if (is("select")) {
    int *out = room<int>(n), *count = room<int>(1);
    twice([&](void* s, size_t& b) { cub::DeviceSelect::If(s, b, in, out, count, n, IsOdd{}); });
  } else if (is("histogram")) {
    int* out = room<int>(64);
    twice([&](void* s, size_t& b) { cub::DeviceHistogram::HistogramEven(s, b, in, out, 65, 0, 6400, n); });
  } else if (is("runs")) {
    int *out = room<int>(n), *lengths = room<int>(n), *count = room<int>(1);
    twice([&](void* s, size_t& b) { cub::DeviceRunLengthEncode::Encode(s, b, in, out, lengths, count, n); });
  } else if (is("segments")) {
    int* out = room<int>(16);
    int* ends = room<int>(17);
    std::vector<int> offsets;
    for (int k = 0; k <= 16; ++k)
      offsets.push_back(static_cast<int>(static_cast<long long>(n) * k * k / 256));
    cudaMemcpy(ends, offsets.data(), 17 * sizeof(int), cudaMemcpyHostToDevice);
    twice([&](void* s, size_t& b) { cub::DeviceSegmentedReduce::Max(s, b, in, out, 16, ends, ends + 1); });
  }
}
