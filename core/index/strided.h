// Row-major traversal of up to three arrays at once, each with strides of its own. Broadcast, transpose,
// slice, reverse, pad, concatenate, reduce and the packing of products are all such traversals.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <vector>

namespace stitchwork {

/// Row-major strides, in elements.
inline std::vector<std::int64_t> strides_of(const std::vector<std::int64_t>& dims) {
  std::vector<std::int64_t> strides(dims.size(), 1);
  for (std::size_t i = dims.size(); i-- > 1;) strides[i - 1] = strides[i] * dims[i];
  return strides;
}

/// A box of extents with, per array, a start offset and a stride (in elements) for every dimension.
template <std::size_t N>
struct StridedBox {
  std::vector<std::int64_t> dims;
  std::array<std::vector<std::int64_t>, N> strides;
  std::array<std::int64_t, N> offset{};
};

/// Merges neighbouring dimensions that every array walks as one, and drops extents of 1.
template <std::size_t N>
StridedBox<N> merged(const StridedBox<N>& box) {
  StridedBox<N> result;
  result.offset = box.offset;
  for (std::size_t d = 0; d < box.dims.size(); ++d) {
    if (box.dims[d] == 1) continue;
    bool merges = !result.dims.empty();
    for (std::size_t a = 0; merges && a < N; ++a)
      merges = result.strides[a].back() == box.strides[a][d] * box.dims[d];
    if (merges) {
      result.dims.back() *= box.dims[d];
      for (std::size_t a = 0; a < N; ++a) result.strides[a].back() = box.strides[a][d];
    } else {
      result.dims.push_back(box.dims[d]);
      for (std::size_t a = 0; a < N; ++a) result.strides[a].push_back(box.strides[a][d]);
    }
  }
  return result;
}

/// Calls row(offsets, count, inner strides) for every innermost run of the merged box, in row-major order.
template <std::size_t N, typename Row>
void for_each_row(const StridedBox<N>& unmerged, Row&& row) {
  for (std::int64_t extent : unmerged.dims)
    if (extent == 0) return;
  StridedBox<N> box = merged(unmerged);
  std::int64_t count = 1;
  std::array<std::int64_t, N> inner{};
  if (!box.dims.empty()) {
    count = box.dims.back();
    box.dims.pop_back();
    for (std::size_t a = 0; a < N; ++a) {
      inner[a] = box.strides[a].back();
      box.strides[a].pop_back();
    }
  }
  std::vector<std::int64_t> index(box.dims.size(), 0);
  std::array<std::int64_t, N> offset = box.offset;
  for (;;) {
    row(offset, count, inner);
    std::size_t d = box.dims.size();
    for (;; --d) {
      if (d == 0) return;
      for (std::size_t a = 0; a < N; ++a) offset[a] += box.strides[a][d - 1];
      if (++index[d - 1] < box.dims[d - 1]) break;
      for (std::size_t a = 0; a < N; ++a) offset[a] -= box.strides[a][d - 1] * box.dims[d - 1];
      index[d - 1] = 0;
    }
  }
}

/// destination (array 0) = convert(source (array 1)) over the box.
template <typename To, typename From, typename Convert>
void copy_box(const StridedBox<2>& box, To* destination, const From* source, Convert&& convert) {
  for_each_row(box, [&](const std::array<std::int64_t, 2>& offset, std::int64_t count,
                        const std::array<std::int64_t, 2>& stride) {
    To* to = destination + offset[0];
    const From* from = source + offset[1];
    if (stride[0] == 1 && stride[1] == 1) {
      for (std::int64_t i = 0; i < count; ++i) to[i] = convert(from[i]);
    } else if (stride[0] == 1 && stride[1] == 0) {
      const To value = convert(*from);
      for (std::int64_t i = 0; i < count; ++i) to[i] = value;
    } else {
      for (std::int64_t i = 0; i < count; ++i) to[i * stride[0]] = convert(from[i * stride[1]]);
    }
  });
}

}  // namespace stitchwork
