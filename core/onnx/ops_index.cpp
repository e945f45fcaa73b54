// Elements chosen by index: gathers, scatters, one-hot, top-k, and what is known only if its input is.
#include <algorithm>
#include <array>
#include <numeric>

#include "core/graph/dtype_dispatch.h"
#include "core/onnx/common.h"
#include "core/onnx/moves.h"
#include "core/onnx/operators.h"

namespace stitchwork::onnx_reader {
namespace {

using Values = std::vector<Value>;

Values lower_gather(NodeContext& c) {
  Builder& b = c.b;
  const Value &x = c.in(0), &indices = c.in(1);
  const std::int64_t axis = c.axis(c.integer("axis", 0), x.rank()), extent = x.dim(axis);
  const Dims before(x.dims().begin(), x.dims().begin() + axis),
      after(x.dims().begin() + axis + 1, x.dims().end());
  constexpr std::int64_t kFew = 4096;  // known indices that are looked at for slices
  if (indices.known() && product(indices.dims()) <= kFew) {
    Dims places;
    for (std::int64_t i = 0; i < product(indices.dims()); ++i) {
      const std::int64_t at = indices.constant->get_int(i);
      c.check(at >= -extent && at < extent,
              fmt::format("index {} is outside dimension {} of {}", at, axis, to_text(x.shape)));
      places.push_back(at < 0 ? at + extent : at);
    }
    return {b.reshape(take(b, x, axis, places), joined(joined(before, indices.dims()), after))};
  }
  GatherDims dims;
  dims.offset_dims = joined(counted(0, axis), counted(axis + indices.rank(), x.rank() - axis - 1));
  dims.collapsed_slice_dims = dims.start_index_map = {axis};
  dims.index_vector_dim = indices.rank();
  dims.slice_sizes = joined(joined(before, {1}), after);
  c.check(extent > 0 || product(indices.dims()) == 0, fmt::format("dimension {} is empty", axis));
  return {b.gather(x, wrapped(b, indices, extent), dims)};
}

/// Full coordinates [..., rank] of the elements that `indices` names along `axis`: elsewhere they stay at
/// their own place.
Value coordinates(Builder& b, const Value& indices, std::int64_t axis, std::int64_t extent) {
  Values columns;
  for (std::int64_t d = 0; d < indices.rank(); ++d) {
    const Value column = d == axis ? wrapped(b, indices, extent) : b.iota(indices.dtype(), indices.dims(), d);
    columns.push_back(b.reshape(column, joined(indices.dims(), {1})));
  }
  return b.concatenate(columns, indices.rank());
}

void check_elements(NodeContext& c, const Value& x, const Value& indices, std::int64_t axis) {
  c.check(indices.rank() == x.rank(),
          fmt::format("indices {} for data {}", to_text(indices.shape), to_text(x.shape)));
  for (std::int64_t d = 0; d < x.rank(); ++d)
    c.check(d == axis || indices.dim(d) <= x.dim(d),
            fmt::format("indices {} for data {}", to_text(indices.shape), to_text(x.shape)));
}

Values lower_gather_elements(NodeContext& c) {
  const Value &x = c.in(0), &indices = c.in(1);
  const std::int64_t axis = c.axis(c.integer("axis", 0), x.rank());
  check_elements(c, x, indices, axis);
  GatherDims dims;
  dims.collapsed_slice_dims = dims.start_index_map = counted(0, x.rank());
  dims.slice_sizes = Dims(x.dims().size(), 1);
  dims.index_vector_dim = x.rank();
  if (product(indices.dims()) == 0) return {c.b.full(Builder::scalar_int(x.dtype(), 0), indices.dims())};
  return {c.b.gather(x, coordinates(c.b, indices, axis, x.dim(axis)), dims)};
}

/// Index vectors with negative components counted from the end of their dimension.
Value wrapped_vectors(Builder& b, const Value& indices, const Dims& extents) {
  const Value sizes = b.convert(Builder::integers(extents), indices.dtype());
  return b.select(b.compare(Comparison::kLt, indices, 0), b.add(indices, sizes), indices);
}

Values lower_gather_nd(NodeContext& c) {
  Builder& b = c.b;
  const Value &x = c.in(0), &given = c.in(1);
  const std::int64_t batch = c.integer("batch_dims", 0);
  c.check(given.rank() >= 1 && x.rank() >= 1, "data and indices must have rank 1 or more");
  c.check(batch >= 0 && batch < given.rank() && batch < x.rank(),
          fmt::format("batch_dims={} does not fit", batch));
  const std::int64_t width = given.dims().back();
  c.check(batch + width <= x.rank(), fmt::format("index vectors of {} for data {}", width, to_text(x.shape)));
  for (std::int64_t d = 0; d < batch; ++d) c.check(given.dim(d) == x.dim(d), "batch dimensions differ");
  Value indices = wrapped_vectors(b, given, Dims(x.dims().begin() + batch, x.dims().begin() + batch + width));
  // The batch dimensions' own places go in front of each vector.
  Values parts;
  Dims column = given.dims();
  column.back() = 1;
  for (std::int64_t d = 0; d < batch; ++d) parts.push_back(b.iota(given.dtype(), column, d));
  parts.push_back(indices);
  indices = b.concatenate(parts, given.rank() - 1);
  GatherDims dims;
  dims.collapsed_slice_dims = dims.start_index_map = counted(0, batch + width);
  dims.index_vector_dim = given.rank() - 1;
  dims.offset_dims = counted(given.rank() - 1, x.rank() - batch - width);
  for (std::int64_t d = 0; d < x.rank(); ++d) dims.slice_sizes.push_back(d < batch + width ? 1 : x.dim(d));
  return {b.gather(x, indices, dims)};
}

/// add, mul, max, min; none: the update replaces.
std::optional<Op> combination(NodeContext& c) {
  const std::string name = c.text("reduction", "none");
  if (name == "none") return std::nullopt;
  if (name == "add") return Op::kAdd;
  if (name == "mul") return Op::kMultiply;
  if (name == "max") return Op::kMaximum;
  if (name == "min") return Op::kMinimum;
  c.refuse(fmt::format("reduction '{}' is unknown", name));
}

Values lower_scatter_elements(NodeContext& c) {
  const Value &x = c.in(0), &indices = c.in(1), &updates = c.in(2);
  const std::int64_t axis = c.axis(c.integer("axis", 0), x.rank());
  const std::optional<Op> combine = combination(c);
  check_elements(c, x, indices, axis);
  c.check(updates.dims() == indices.dims(), "updates and indices differ in shape");
  const ScatterSpec spec{{}, counted(0, x.rank()), counted(0, x.rank()), x.rank()};
  return {c.b.scatter(x, coordinates(c.b, indices, axis, x.dim(axis)), updates, spec, combine)};
}

Values lower_scatter_nd(NodeContext& c) {
  const Value &x = c.in(0), &indices = c.in(1), &updates = c.in(2);
  const std::optional<Op> combine = combination(c);
  c.check(indices.rank() >= 1, "indices must have rank 1 or more");
  const std::int64_t width = indices.dims().back(), outer = indices.rank() - 1;
  c.check(width <= x.rank(), fmt::format("index vectors of {} for data {}", width, to_text(x.shape)));
  const Dims expected = joined(Dims(indices.dims().begin(), indices.dims().end() - 1),
                               Dims(x.dims().begin() + width, x.dims().end()));
  c.check(updates.dims() == expected,
          fmt::format("updates are {}, [{}] is needed", to_text(updates.shape), fmt::join(expected, ",")));
  const Value places = wrapped_vectors(c.b, indices, Dims(x.dims().begin(), x.dims().begin() + width));
  const ScatterSpec spec{counted(outer, x.rank() - width), counted(0, width), counted(0, width), outer};
  return {c.b.scatter(x, places, updates, spec, combine)};
}

/// Writes a run of `update` into every batch row of a cache, from write_indices on; circular: around its end.
Values lower_tensor_scatter(NodeContext& c) {
  Builder& b = c.b;
  const Value &cache = c.in(0), &update = c.in(1);
  const std::int64_t axis = c.axis(c.integer("axis", -2), cache.rank());
  const std::string mode = c.text("mode", "linear");
  c.check(mode == "linear" || mode == "circular", fmt::format("mode '{}' is unknown", mode));
  c.check(axis > 0, "axis 0 is the batch");
  Dims fitting = update.dims();
  c.check(fitting.size() == cache.dims().size(), "cache and update differ in rank");
  const std::int64_t length = update.dim(axis), room = cache.dim(axis), batch = cache.dim(0);
  fitting[static_cast<std::size_t>(axis)] = room;
  c.check(fitting == cache.dims() && length <= room, "the update does not fit the cache");
  const Value first = c.has(2) ? c.in(2) : b.full(Builder::integer(0), {batch});
  Value places = b.add(b.reshape(first, {batch, 1}), b.iota(first.dtype(), {batch, length}, 1));
  if (mode == "circular") places = b.binary(Op::kRemainder, places, Builder::scalar_int(first.dtype(), room));
  const Value indices = stack(b, {b.iota(first.dtype(), {batch, length}, 0), places}, 2);
  ScatterSpec spec{{}, {0, axis}, {0, axis}, 2};
  for (std::int64_t d = 1; d < cache.rank(); ++d)
    if (d != axis) spec.update_window_dims.push_back(d);
  return {b.scatter(cache, indices, update, spec)};
}

Values lower_one_hot(NodeContext& c) {
  Builder& b = c.b;
  const Value &given = c.in(0), &values = c.in(2);
  const std::vector<double> depths = c.known_numbers(1);
  c.check(depths.size() == 1 && depths[0] >= 0 && depths[0] < 0x1p40, "depth must be one positive number");
  const auto depth = static_cast<std::int64_t>(depths[0]);
  c.check(values.dims() == Dims{2}, "values must be [off, on]");
  const std::int64_t axis = c.axis(c.integer("axis", -1), given.rank() + 1);
  const Value indices = wrapped(b, b.convert(given, DType::kS64), depth);
  Dims dims = given.dims(), one = given.dims();
  dims.insert(dims.begin() + axis, depth);
  one.insert(one.begin() + axis, 1);
  const Value hot = b.compare(Comparison::kEq, b.reshape(indices, one), b.iota(DType::kS64, dims, axis));
  return {b.select(hot, at(b, values, 0, 1), at(b, values, 0, 0))};
}

/// The first of equal elements first. k is an attribute before operator set 10.
Values lower_top_k(NodeContext& c) {
  Builder& b = c.b;
  const Value& x = c.in(0);
  const std::int64_t k = c.version < 10 ? c.integer("k") : c.known_integer(1);
  const std::int64_t axis = c.axis(c.integer("axis", -1), x.rank());
  const bool largest = c.version < 11 || c.flag("largest", true);
  c.ignore("sorted");  // sorted results are one of the orders that sorted=0 admits
  c.check(k >= 0 && k <= x.dim(axis), fmt::format("k={} of {}", k, to_text(x.shape)));
  const Values sorted = b.sort(x, {b.iota(DType::kS64, x.dims(), axis)}, axis, largest);
  return {b.slice(sorted[0], axis, 0, k), b.slice(sorted[1], axis, 0, k)};
}

/// The first sequence_lens[i] elements of every batch row backwards.
Values lower_reverse_sequence(NodeContext& c) {
  Builder& b = c.b;
  const Value &x = c.in(0), &lengths = c.in(1);
  const std::int64_t batch_axis = c.integer("batch_axis", 1), time_axis = c.integer("time_axis", 0);
  c.check(x.rank() >= 2 && batch_axis + time_axis == 1 && batch_axis * time_axis == 0,
          "batch_axis and time_axis must be 0 and 1");
  const std::int64_t batch = x.dim(batch_axis), steps = x.dim(time_axis);
  c.check(lengths.dims() == Dims{batch}, "sequence_lens must have an element a batch row");
  const Dims grid{x.dim(0), x.dim(1)};
  const Value step = b.iota(lengths.dtype(), grid, time_axis);
  const Value length = b.broadcast_in(lengths, grid, {batch_axis});
  const Value places =
      b.select(b.compare(Comparison::kLt, step, length), b.sub(b.sub(length, 1), step), step);
  Values columns{places, places};
  columns[static_cast<std::size_t>(batch_axis)] = b.iota(lengths.dtype(), grid, batch_axis);
  GatherDims dims;
  dims.collapsed_slice_dims = dims.start_index_map = {0, 1};
  dims.offset_dims = counted(2, x.rank() - 2);
  dims.index_vector_dim = 2;
  dims.slice_sizes = joined({1, 1}, Dims(x.dims().begin() + 2, x.dims().end()));
  if (batch * steps == 0) return {x};
  return {b.gather(x, stack(b, columns, 2), dims)};
}

// --- Shapes that depend on elements: only of known inputs.

Values lower_non_zero(NodeContext& c) {
  const Literal& x = c.known(0);
  std::vector<Dims> places(x.shape.dims.size());
  Dims index(x.shape.dims.size(), 0);
  for (std::int64_t i = 0; i < x.shape.elements_count(); ++i) {
    if (x.get_double(i) != 0)
      for (std::size_t d = 0; d < index.size(); ++d) places[d].push_back(index[d]);
    advance(index, x.shape.dims);
  }
  const auto count = places.empty() ? std::int64_t{0} : static_cast<std::int64_t>(places[0].size());
  Dims all;
  for (const Dims& row : places) all = joined(std::move(all), row);
  return {c.b.reshape(Builder::integers(all), {static_cast<std::int64_t>(places.size()), count})};
}

/// Slices of x whose condition holds; without an axis x is flat. The condition must be known.
Values lower_compress(NodeContext& c) {
  const Literal& condition = c.known(1);
  const bool flat = !c.given("axis");
  const Value x = flat ? c.b.reshape(c.in(0), {product(c.in(0).dims())}) : c.in(0);
  const std::int64_t axis = flat ? 0 : c.axis(c.integer("axis"), x.rank());
  c.check(condition.shape.rank() == 1 && condition.shape.dims[0] <= x.dim(axis),
          fmt::format("condition {} for {}", to_text(condition.shape), to_text(x.shape)));
  Dims kept;
  for (std::int64_t i = 0; i < condition.shape.dims[0]; ++i)
    if (condition.get_int(i) != 0) kept.push_back(i);
  return {take(c.b, x, axis, kept)};
}

/// Different slices of x along an axis (without one: elements), where they first are, which one each slice of
/// x is, and how often they occur.
Values lower_unique(NodeContext& c) {
  const Literal& given = c.known(0);
  const bool flat = !c.given("axis"), sorted = c.flag("sorted", true);
  const Value x = flat ? c.b.reshape(c.in(0), {product(c.in(0).dims())}) : c.in(0);
  const std::int64_t axis = flat ? 0 : c.axis(c.integer("axis"), x.rank());
  const std::int64_t count = x.dim(axis);
  const std::int64_t inner = product(Dims(x.dims().begin() + axis + 1, x.dims().end()));
  const std::int64_t outer = product(Dims(x.dims().begin(), x.dims().begin() + axis));
  const auto element = [&](std::int64_t slice, std::int64_t i) {
    return (i / inner * count + slice) * inner + i % inner;
  };
  const auto less = [&](std::int64_t a, std::int64_t b) {
    return with_storage(given.shape.dtype, [&](auto tag) {
      using S = decltype(tag);
      const auto* data = given.data<typename S::Stored>();
      for (std::int64_t i = 0; i < outer * inner; ++i) {
        const auto left = S::widen(data[element(a, i)]), right = S::widen(data[element(b, i)]);
        if (left < right || right < left) return left < right;
      }
      return false;
    });
  };
  Dims order = counted(0, count);
  std::ranges::stable_sort(order, less);
  Dims group(static_cast<std::size_t>(count)), first, counts;  // groups in sorted order
  for (std::size_t i = 0; i < order.size(); ++i) {
    if (i == 0 || less(order[i - 1], order[i])) {
      first.push_back(order[i]);
      counts.push_back(0);
    }
    group[static_cast<std::size_t>(order[i])] = static_cast<std::int64_t>(first.size()) - 1;
    ++counts.back();
  }
  Dims rank = counted(0, static_cast<std::int64_t>(first.size()));  // groups in the order of the result
  if (!sorted)
    std::ranges::sort(rank, {}, [&](std::int64_t g) { return first[static_cast<std::size_t>(g)]; });
  Dims place(rank.size()), firsts, inverse, occurrences;
  for (std::size_t i = 0; i < rank.size(); ++i) {
    place[static_cast<std::size_t>(rank[i])] = static_cast<std::int64_t>(i);
    firsts.push_back(first[static_cast<std::size_t>(rank[i])]);
    occurrences.push_back(counts[static_cast<std::size_t>(rank[i])]);
  }
  for (const std::int64_t g : group) inverse.push_back(place[static_cast<std::size_t>(g)]);
  return {take(c.b, x, axis, firsts), Builder::integers(firsts), Builder::integers(inverse),
          Builder::integers(occurrences)};
}

constexpr std::array kIndexRows = {
    OperatorRow{"Compress", 9, lower_compress},
    OperatorRow{"Gather", 7, lower_gather},
    OperatorRow{"GatherElements", 11, lower_gather_elements},
    OperatorRow{"GatherND", 11, lower_gather_nd},
    OperatorRow{"NonZero", 9, lower_non_zero},
    OperatorRow{"OneHot", 9, lower_one_hot},
    OperatorRow{"ReverseSequence", 10, lower_reverse_sequence},
    OperatorRow{"Scatter", 9, lower_scatter_elements},
    OperatorRow{"ScatterElements", 11, lower_scatter_elements},
    OperatorRow{"ScatterND", 11, lower_scatter_nd},
    OperatorRow{"TensorScatter", 24, lower_tensor_scatter},
    OperatorRow{"TopK", 7, lower_top_k},
    OperatorRow{"Unique", 11, lower_unique},
};

}  // namespace

std::span<const OperatorRow> index_operators() { return kIndexRows; }

}  // namespace stitchwork::onnx_reader
