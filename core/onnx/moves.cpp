#include "core/onnx/moves.h"

#include <algorithm>

namespace stitchwork::onnx_reader {
namespace {

/// indices[i] = first + i * step for `count` of them; step is -1, 0, or positive.
struct Run {
  std::int64_t first = 0, step = 1, count = 1;
};

std::vector<Run> runs_of(const Dims& indices) {
  std::vector<Run> runs;
  for (std::size_t i = 0; i < indices.size();) {
    Run run{indices[i]};
    const std::int64_t step = i + 1 < indices.size() ? indices[i + 1] - indices[i] : 1;
    if (step >= -1) {
      run.step = step;
      while (i + static_cast<std::size_t>(run.count) < indices.size() &&
             indices[i + static_cast<std::size_t>(run.count)] == run.first + run.count * step)
        ++run.count;
    }
    if (run.count == 1) run.step = 1;
    i += static_cast<std::size_t>(run.count);
    runs.push_back(run);
  }
  return runs;
}

Value piece(Builder& b, const Value& x, std::int64_t dim, const Run& run) {
  if (run.step > 0) return b.slice(x, dim, run.first, run.first + (run.count - 1) * run.step + 1, run.step);
  if (run.step < 0) return b.reverse(b.slice(x, dim, run.first - run.count + 1, run.first + 1), {dim});
  Dims dims = x.dims();
  dims[static_cast<std::size_t>(dim)] = run.count;
  return b.broadcast(b.slice(x, dim, run.first, run.first + 1), dims);
}

/// How often each element is repeated in a row if every one is and they stay in order; 0 if not.
std::int64_t repeats(const Dims& indices, std::int64_t extent) {
  const auto count = static_cast<std::int64_t>(indices.size());
  if (extent == 0 || count % extent != 0) return 0;
  const std::int64_t times = count / extent;
  for (std::int64_t i = 0; i < count; ++i)
    if (indices[static_cast<std::size_t>(i)] != i / times) return 0;
  return times;
}

Value repeat(Builder& b, const Value& x, std::int64_t dim, std::int64_t times) {
  Dims dims = x.dims(), spread = x.dims(), where;
  dims[static_cast<std::size_t>(dim)] *= times;
  spread.insert(spread.begin() + dim + 1, times);
  for (std::int64_t d = 0; d < x.rank(); ++d) where.push_back(d <= dim ? d : d + 1);
  return b.reshape(b.broadcast_in(x, spread, where), dims);
}

}  // namespace

Value take(Builder& b, const Value& x, std::int64_t dim, const Dims& indices) {
  if (indices.empty()) return b.slice(x, dim, 0, 0);
  if (const std::int64_t times = repeats(indices, x.dim(dim)); times > 1) return repeat(b, x, dim, times);
  const std::vector<Run> runs = runs_of(indices);
  constexpr std::size_t kFew = 8;  // pieces; beyond, one gather is less to read and to run
  if (runs.size() <= kFew) {
    std::vector<Value> pieces;
    for (const Run& run : runs) pieces.push_back(piece(b, x, dim, run));
    return b.concatenate(pieces, dim);
  }
  GatherDims dims;
  for (std::int64_t d = 0; d < x.rank(); ++d) {
    dims.slice_sizes.push_back(d == dim ? 1 : x.dim(d));
    if (d != dim) dims.offset_dims.push_back(d);
  }
  dims.collapsed_slice_dims = {dim};
  dims.start_index_map = {dim};
  dims.index_vector_dim = 1;
  const Value starts = b.reshape(Builder::integers(indices), {static_cast<std::int64_t>(indices.size()), 1});
  return b.gather(x, starts, dims);
}

}  // namespace stitchwork::onnx_reader
