// Steps of a random graph that move elements by fixed rules, and those that take them where data says.
#pragma once

#include "tests/support/random_graph_reductions.h"

namespace stitchwork::testing {

class RandomShapes : public RandomReductions {
 protected:
  using RandomReductions::RandomReductions;

  void broadcast(const Value& from) {
    Dims dims;
    std::vector<std::size_t> kept;
    for (std::size_t d = 0; d <= from.dims.size(); ++d) {
      if (dims.size() < 5 && below(3) == 0 && count(from.dims) * count(dims) <= options_.max_elements / 64)
        dims.push_back(below(6) ? extents_[below(extents_.size())] : 1);
      if (d == from.dims.size()) break;
      kept.push_back(dims.size());
      dims.push_back(from.dims[d]);
    }
    if (dims.size() > 6 || count(dims) > options_.max_elements) return;
    add_line(from.type, dims, from.exact, from.magnitude,
             fmt::format("broadcast({}), dimensions={{{}}}", from.name, fmt::join(kept, ",")));
  }

  void reshape(const Value& from) {
    Dims dims;
    std::int64_t left = count(from.dims);
    while (left > 1 && dims.size() < 4) {
      std::int64_t factor = 1;
      for (std::int64_t f : {2, 3, 5, 11})
        while (left % (factor * f) == 0 && below(2)) factor *= f;
      dims.push_back(factor);
      left /= factor;
    }
    if (left != 1 || (dims.empty() && below(2))) dims.push_back(left);
    std::shuffle(dims.begin(), dims.end(), random_);
    add_line(from.type, dims, from.exact, from.magnitude, fmt::format("reshape({})", from.name));
  }

  void transpose(const Value& from) {
    const std::vector<std::size_t> order = shuffled(from.dims.size());
    Dims dims;
    for (std::size_t d : order) dims.push_back(from.dims[d]);
    add_line(from.type, dims, from.exact, from.magnitude,
             fmt::format("transpose({}), dimensions={{{}}}", from.name, fmt::join(order, ",")));
  }

  void slice(const Value& from) {
    if (from.dims.empty()) return;
    Dims dims;
    Names spec;
    for (std::int64_t extent : from.dims) {
      const std::int64_t low = between(0, std::max<std::int64_t>(0, std::min<std::int64_t>(extent - 1, 3)));
      const std::int64_t high = below(2) ? extent : between(std::min(low + 1, extent), extent);
      const std::int64_t stride = below(2) ? 1 : between(1, 3);
      spec.push_back(fmt::format("[{}:{}:{}]", low, high, stride));
      dims.push_back((high - low + stride - 1) / stride);
    }
    add_line(from.type, dims, from.exact, from.magnitude,
             fmt::format("slice({}), slice={{{}}}", from.name, fmt::join(spec, ", ")));
  }

  void reverse(const Value& from) {
    std::vector<std::size_t> dimensions;
    for (std::size_t d = 0; d < from.dims.size(); ++d)
      if (below(2)) dimensions.push_back(d);
    add_line(from.type, from.dims, from.exact, from.magnitude,
             fmt::format("reverse({}), dimensions={{{}}}", from.name, fmt::join(dimensions, ",")));
  }

  void pad(const Value& from) {
    if (from.dims.empty()) return;
    Dims dims;
    Names spec;
    for (std::int64_t extent : from.dims) {
      const std::int64_t interior = below(4) ? 0 : between(1, 2);
      const std::int64_t spread = extent + std::max<std::int64_t>(extent - 1, 0) * interior;
      const std::int64_t low = below(2) ? 0 : between(-1, 3), high = below(2) ? 0 : between(-1, 3);
      if (spread + low + high < 0) return;
      spec.push_back(fmt::format("{}_{}_{}", low, high, interior));
      dims.push_back(spread + low + high);
    }
    if (count(dims) > options_.max_elements) return;
    std::string filler = some_constant(from.type);
    bool exact = from.exact;
    if (below(4) == 0) {
      const Value scalar = shaped(from.type, {});
      filler = scalar.name;
      exact = exact && scalar.exact;
    }
    add_line(from.type, dims, exact, from.magnitude + 4,
             fmt::format("pad({}, {}), padding={}", from.name, filler, fmt::join(spec, "x")));
  }

  void iota() {
    Dims dims = random_dims();
    if (dims.empty()) dims = {between(1, 40)};
    const std::size_t d = below(dims.size());
    const std::string type = options_.types ? (below(2) ? "s32" : random_type()) : "f32";
    if (is_pred(type) || (is_half(type) && dims[d] > 200)) return;
    tamed(add_line(type, dims, true, static_cast<double>(dims[d]),
                   fmt::format("iota(), iota_dimension={}", d)));
  }

  void join(const Value& from) {
    if (from.dims.empty() || count(from.dims) * 3 > options_.max_elements) return;
    const std::size_t d = below(from.dims.size()), parts = 2 + below(2);
    Dims dims = from.dims;
    Names names{from.name};
    bool exact = from.exact;
    double magnitude = from.magnitude;
    for (std::size_t p = 1; p < parts; ++p) {
      Dims wanted = from.dims;
      if (below(2)) wanted[d] = between(1, 5);
      const Value part = shaped(from.type, wanted);
      names.push_back(part.name);
      dims[d] += wanted[d];
      exact = exact && part.exact;
      magnitude = std::max(magnitude, part.magnitude);
    }
    std::shuffle(names.begin(), names.end(), random_);
    add_line(from.type, dims, exact, magnitude,
             fmt::format("concatenate({}), dimensions={{{}}}", fmt::join(names, ", "), d));
  }

  // ---- data-dependent indices

  Value indices(const Dims& dims) { return below(2) ? shaped("s32", dims) : parameter("s32", dims); }

  Names scalars(std::size_t n) {
    Names names;
    for (std::size_t i = 0; i < n; ++i) {
      const Value index = indices({});
      use(index);
      names.push_back(index.name);
    }
    return names;
  }

  void indexed(const Value& from) {
    if (from.dims.empty() || count(from.dims) == 0) return;
    Dims sizes;
    for (std::int64_t extent : from.dims) sizes.push_back(below(3) ? between(1, extent) : extent);
    switch (below(3)) {
      case 0:
        add_line(from.type, sizes, from.exact, from.magnitude,
                 fmt::format("dynamic-slice({}, {}), dynamic_slice_sizes={{{}}}", from.name,
                             fmt::join(scalars(sizes.size()), ", "), fmt::join(sizes, ",")));
        return;
      case 1: {
        const Value update = shaped(from.type, sizes);
        add_line(from.type, from.dims, from.exact && update.exact, std::max(from.magnitude, update.magnitude),
                 fmt::format("dynamic-update-slice({}, {}, {})", from.name, update.name,
                             fmt::join(scalars(sizes.size()), ", ")));
        return;
      }
      default:
        return gather(from, sizes);
    }
  }

  void gather(const Value& from, Dims sizes) {
    const std::size_t rank = from.dims.size(), indexed = 1 + below(rank);
    std::vector<std::size_t> start_map = shuffled(rank), collapsed;
    start_map.resize(indexed);
    Dims windows;
    for (std::size_t d = 0; d < rank; ++d)
      if (below(2)) {
        collapsed.push_back(d);
        sizes[d] = 1;
      } else {
        windows.push_back(sizes[d]);
      }
    Dims batch;
    for (std::size_t b = 0, n = below(3); b < n; ++b) batch.push_back(between(1, 12));
    if (count(batch) * count(windows) > options_.max_elements) return;
    if (batch.size() + windows.size() > 6) return;
    // The index vector may be any dimension of the indices, or none where there is one index.
    Dims index_dims = batch;
    std::size_t vector_dim = below(batch.size() + 1);
    if (indexed == 1 && below(2))
      vector_dim = batch.size();
    else
      index_dims.insert(index_dims.begin() + static_cast<std::ptrdiff_t>(vector_dim),
                        static_cast<std::int64_t>(indexed));
    std::vector<std::size_t> places = shuffled(batch.size() + windows.size());
    places.resize(windows.size());
    std::sort(places.begin(), places.end());
    Dims dims;
    for (std::size_t d = 0, w = 0, b = 0; d < batch.size() + windows.size(); ++d)
      dims.push_back(w < places.size() && places[w] == d ? windows[w++] : batch[b++]);
    const Value index = indices(index_dims);
    use(index);
    add_line(from.type, dims, from.exact, from.magnitude,
             fmt::format("gather({}, {}), offset_dims={{{}}}, collapsed_slice_dims={{{}}}, "
                         "start_index_map={{{}}}, index_vector_dim={}, slice_sizes={{{}}}",
                         from.name, index.name, fmt::join(places, ","), fmt::join(collapsed, ","),
                         fmt::join(start_map, ","), vector_dim, fmt::join(sizes, ",")));
  }
};

}  // namespace stitchwork::testing
