// Shapes, and moving elements by shapes that are known: reshape, slice, pad, tile, ...
#include <algorithm>
#include <array>
#include <cmath>

#include "core/onnx/moves.h"
#include "core/onnx/operators.h"

namespace stitchwork::onnx_reader {
namespace {

using Values = std::vector<Value>;

/// Longest list of indices made while reading.
constexpr std::int64_t kLongestList = std::int64_t{1} << 24;

// --- Constants and shapes.

Values lower_constant(NodeContext& c) {
  const std::vector<std::string> names = c.given_attributes();
  c.check(names.size() == 1, "exactly one attribute is needed");
  const std::string& name = names[0];
  if (name == "value") return {c.tensor("value")};
  if (name == "value_int") return {Builder::integer(c.any_integer(name, 0))};
  if (name == "value_ints") return {Builder::integers(c.integers(name))};
  if (name == "value_float") return {Builder::scalar(DType::kF32, c.number(name, 0))};
  if (name == "value_floats") {
    const std::vector<double> numbers = c.numbers(name);
    Literal literal = Literal::zeros(Shape::array(DType::kF32, {static_cast<std::int64_t>(numbers.size())}));
    for (std::size_t i = 0; i < numbers.size(); ++i)
      literal.set_double(static_cast<std::int64_t>(i), numbers[i]);
    return {Builder::known(std::move(literal))};
  }
  c.refuse(fmt::format("attribute {} is not supported", name));
}

Values lower_constant_of_shape(NodeContext& c) {
  const Dims dims = c.known_integers(0);
  c.check_range("the shape", dims, 0, kMaxElements);
  const Value value = c.given("value") ? c.tensor("value") : Builder::scalar(DType::kF32, 0);
  c.check(product(value.dims()) == 1, "value must have one element");
  return {c.b.full(c.b.reshape(value, {}), dims)};
}

Values lower_shape(NodeContext& c) {
  const Dims& dims = c.in(0).dims();
  const auto rank = static_cast<std::int64_t>(dims.size());
  std::int64_t start = c.any_integer("start", 0), end = c.any_integer("end", rank);
  if (start < 0) start += rank;
  if (end < 0) end += rank;
  start = std::clamp<std::int64_t>(start, 0, rank);
  end = std::clamp<std::int64_t>(end, start, rank);
  return {Builder::integers(Dims(dims.begin() + start, dims.begin() + end))};
}

Values lower_size(NodeContext& c) { return {Builder::integer(product(c.in(0).dims()))}; }

/// start, start + delta, ... before limit; the length must be known.
Values lower_range(NodeContext& c) {
  Builder& b = c.b;
  for (const int i : {0, 1, 2})
    c.check(product(c.in(i).dims()) == 1, fmt::format("input {} must be a scalar", i));
  const DType type = c.in(0).dtype();
  c.check(c.in(1).dtype() == type && c.in(2).dtype() == type, "inputs have different types");
  const double start = c.known_numbers(0)[0], limit = c.known_numbers(1)[0], delta = c.known_numbers(2)[0];
  c.check(delta != 0, "delta is 0");
  double count = std::ceil((limit - start) / delta);
  if (is_integral(type)) {  // 64-bit integers are more than doubles hold
    using Wide = __int128;
    const Wide step = c.known(2).get_int(0);
    const Wide reach = Wide{c.known(1).get_int(0)} - c.known(0).get_int(0);
    const Wide whole = reach / step + (reach % step != 0 && (reach < 0) == (step < 0) ? 1 : 0);
    count = static_cast<double>(whole);
  }
  c.check(count <= static_cast<double>(kMaxElements), fmt::format("it has {} elements", count));
  const std::int64_t length = count > 0 ? static_cast<std::int64_t>(count) : 0;
  const Value steps = b.mul(b.iota(type, {length}, 0), b.reshape(c.in(2), {}));
  return {b.add(steps, b.reshape(c.in(0), {}))};
}

Values lower_eye_like(NodeContext& c) {
  Builder& b = c.b;
  const Value& x = c.in(0);
  c.check(x.rank() == 2, "the input must have rank 2");
  const std::int64_t k = c.integer("k", 0);
  c.check_range("k", {k}, -kMaxElements, kMaxElements);
  const Value diagonal = b.sub(b.iota(DType::kS64, x.dims(), 1), b.iota(DType::kS64, x.dims(), 0));
  return {b.convert(b.compare(Comparison::kEq, diagonal, Builder::integer(k)), c.dtype("dtype", x.dtype()))};
}

Values lower_trilu(NodeContext& c) {
  Builder& b = c.b;
  const Value& x = c.in(0);
  c.check(x.rank() >= 2, "the input must have rank 2 or more");
  const Value k = c.has(1) ? b.reshape(c.in(1), {}) : Builder::integer(0);
  const Dims square(x.dims().end() - 2, x.dims().end());
  const Value diagonal = b.sub(b.iota(DType::kS64, square, 1), b.iota(DType::kS64, square, 0));
  const Value kept = b.compare(c.flag("upper", true) ? Comparison::kGe : Comparison::kLe, diagonal, k);
  return {b.select(kept, x, Builder::scalar_int(x.dtype(), 0))};
}

// --- Reshapes.

Values lower_reshape(NodeContext& c) {
  const Value& x = c.in(0);
  Dims dims = c.known_integers(1);
  const bool zero_is_zero = c.flag("allowzero", false);
  c.check_range("the shape", dims, -1, kMaxElements);
  std::int64_t open = -1;
  for (std::size_t i = 0; i < dims.size(); ++i) {
    if (dims[i] == 0 && !zero_is_zero) {
      c.check(static_cast<int>(i) < x.rank(),
              fmt::format("0 in place {} copies no dimension of the input", i));
      dims[i] = x.dims()[i];
    }
    if (dims[i] != -1) continue;
    c.check(open < 0, "the shape has -1 twice");
    open = static_cast<std::int64_t>(i);
  }
  std::int64_t others = 1;
  for (const std::int64_t extent : dims) {
    if (extent != -1) c.check(extent == 0 || others <= kMaxElements / extent, "the shape is too large");
    if (extent != -1) others *= extent;
  }
  const std::int64_t all = product(x.dims());
  if (open >= 0) {
    c.check(others != 0 && all % others == 0,
            fmt::format("{} cannot become [{}]", to_text(x.shape), fmt::join(dims, ",")));
    dims[static_cast<std::size_t>(open)] = all / others;
  }
  return {c.b.reshape(x, dims)};
}

Values lower_flatten(NodeContext& c) {
  const Value& x = c.in(0);
  const std::int64_t given = c.integer("axis", 1);
  const std::int64_t axis = given == x.rank() ? given : c.axis(given, x.rank());
  const Dims first(x.dims().begin(), x.dims().begin() + axis), rest(x.dims().begin() + axis, x.dims().end());
  return {c.b.reshape(x, {product(first), product(rest)})};
}

/// An attribute before operator set 13, then an input.
Dims axes_of(NodeContext& c) {
  if (c.version < 13) return c.integers("axes");
  return c.has(1) ? c.known_integers(1) : Dims{};
}

Values lower_squeeze(NodeContext& c) {
  const Value& x = c.in(0);
  const Dims axes = c.axes(axes_of(c), x.rank());
  Dims dims;
  for (int d = 0; d < x.rank(); ++d) {
    const bool named = std::ranges::count(axes, d) != 0;
    c.check(!named || x.dim(d) == 1, fmt::format("dimension {} of {} is not 1", d, to_text(x.shape)));
    if (!named && !(axes.empty() && x.dim(d) == 1)) dims.push_back(x.dim(d));
  }
  return {c.b.reshape(x, dims)};
}

Values lower_unsqueeze(NodeContext& c) {
  const Value& x = c.in(0);
  const Dims given = axes_of(c);
  c.check(given.size() <= 64, "too many axes");
  const int rank = x.rank() + static_cast<int>(given.size());
  const Dims axes = c.axes(given, rank);
  Dims dims;
  auto next = x.dims().begin();
  for (int d = 0; d < rank; ++d) dims.push_back(std::ranges::count(axes, d) != 0 ? 1 : *next++);
  return {c.b.reshape(x, dims)};
}

Values lower_expand(NodeContext& c) {
  const Dims dims = c.known_integers(1);
  c.check_range("the shape", dims, 0, kMaxElements);
  return {c.b.broadcast(c.in(0), broadcast_dims(c.in(0).dims(), dims))};
}

Values lower_tile(NodeContext& c) {
  const Value& x = c.in(0);
  const Dims repeats = c.known_integers(1);
  c.check(repeats.size() == x.dims().size(),
          fmt::format("{} repeats for {}", repeats.size(), to_text(x.shape)));
  c.check_range("repeats", repeats, 0, kMaxElements);
  // Every repeated dimension gets one before it, [r, d], which become r * d.
  Dims spread, where, dims;
  for (std::size_t i = 0; i < repeats.size(); ++i) {
    if (repeats[i] != 1) spread.push_back(repeats[i]);
    where.push_back(static_cast<std::int64_t>(spread.size()));
    spread.push_back(x.dims()[i]);
  }
  if (spread == x.dims()) return {x};
  const Value repeated = c.b.broadcast_in(x, spread, where);
  for (std::size_t i = 0; i < repeats.size(); ++i) dims.push_back(repeats[i] * x.dims()[i]);
  return {c.b.reshape(repeated, dims)};
}

Values lower_transpose(NodeContext& c) {
  const Value& x = c.in(0);
  Dims permutation;
  for (std::int64_t d = x.rank(); d-- > 0;) permutation.push_back(d);
  permutation = c.axes(c.integers("perm", permutation), x.rank(), "perm");
  c.check(static_cast<int>(permutation.size()) == x.rank(), "perm does not name every dimension");
  return {c.b.transpose(x, permutation)};
}

/// blocks of b x b elements between space and channels; DCR: depth, column, row.
Values lower_depth_to_space(NodeContext& c) {
  const Value& x = c.in(0);
  const std::int64_t size = c.integer("blocksize");
  const std::string mode = c.text("mode", "DCR");
  c.check_range("blocksize", {size}, 1, 1024);
  c.check(x.rank() == 4, "the input must have rank 4");
  c.check(mode == "DCR" || mode == "CRD", fmt::format("mode is '{}', DCR or CRD is needed", mode));
  const std::int64_t n = x.dim(0), depth = x.dim(1), h = x.dim(2), w = x.dim(3);
  c.check(depth % (size * size) == 0, fmt::format("{} channels are no multiple of {}^2", depth, size));
  const std::int64_t channels = depth / (size * size);
  const bool depth_first = mode == "DCR";
  const Value split =
      c.b.reshape(x, depth_first ? Dims{n, size, size, channels, h, w} : Dims{n, channels, size, size, h, w});
  const Value moved = c.b.transpose(split, depth_first ? Dims{0, 3, 4, 1, 5, 2} : Dims{0, 1, 4, 2, 5, 3});
  return {c.b.reshape(moved, {n, channels, h * size, w * size})};
}

Values lower_space_to_depth(NodeContext& c) {
  const Value& x = c.in(0);
  const std::int64_t size = c.integer("blocksize");
  c.check_range("blocksize", {size}, 1, 1024);
  c.check(x.rank() == 4, "the input must have rank 4");
  const std::int64_t n = x.dim(0), channels = x.dim(1), h = x.dim(2), w = x.dim(3);
  c.check(h % size == 0 && w % size == 0,
          fmt::format("{} is no multiple of blocksize {}", to_text(x.shape), size));
  const Value split = c.b.reshape(x, {n, channels, h / size, size, w / size, size});
  const Value moved = c.b.transpose(split, {0, 3, 5, 1, 2, 4});
  return {c.b.reshape(moved, {n, channels * size * size, h / size, w / size})};
}

// --- Cutting and joining.

Values lower_concat(NodeContext& c) {
  const std::vector<Value> parts = c.all_inputs();
  c.check(!parts.empty(), "it has no inputs");
  return {c.b.concatenate(parts, c.axis(c.integer("axis"), parts[0].rank()))};
}

/// Sizes are an attribute before operator set 13, then an input; none means equal parts, the last may be
/// less.
Values lower_split(NodeContext& c) {
  const Value& x = c.in(0);
  const std::int64_t axis = c.axis(c.integer("axis", 0), x.rank()), extent = x.dim(axis);
  Dims sizes = c.version < 13 ? c.integers("split") : c.has(1) ? c.known_integers(1) : Dims{};
  const std::int64_t count = c.version < 18 ? c.outputs() : c.integer("num_outputs", c.outputs());
  c.check(count >= 1 && count == c.outputs(), fmt::format("{} parts for {} outputs", count, c.outputs()));
  if (sizes.empty()) {
    c.check(c.version >= 18 || extent % count == 0,
            fmt::format("{} is no multiple of {} parts", extent, count));
    const std::int64_t part = (extent + count - 1) / count;
    for (std::int64_t i = 0; i < count; ++i)
      sizes.push_back(std::clamp<std::int64_t>(extent - i * part, 0, part));
  }
  c.check_range("split", sizes, 0, kMaxElements);
  c.check(static_cast<std::int64_t>(sizes.size()) == count,
          fmt::format("{} sizes for {} outputs", sizes.size(), count));
  Values parts;
  std::int64_t at = 0;
  for (const std::int64_t size : sizes) {
    c.check(at + size <= extent, fmt::format("the parts exceed dimension {} of {}", axis, to_text(x.shape)));
    parts.push_back(c.b.slice(x, axis, at, at + size));
    at += size;
  }
  c.check(at == extent, fmt::format("the parts cover {} of {} elements", at, extent));
  return parts;
}

/// Attributes before operator set 10, then inputs. Ends beyond the array are cut, as in NumPy.
Values lower_slice(NodeContext& c) {
  const Value& x = c.in(0);
  const bool inputs = c.version >= 10;
  const Dims starts = inputs ? c.known_integers(1) : c.integers("starts");
  const Dims ends = inputs ? c.known_integers(2) : c.integers("ends");
  Dims axes = inputs ? (c.has(3) ? c.known_integers(3) : Dims{}) : c.integers("axes");
  const Dims steps = inputs && c.has(4) ? c.known_integers(4) : Dims(starts.size(), 1);
  if (axes.empty())
    for (std::size_t i = 0; i < starts.size(); ++i) axes.push_back(static_cast<std::int64_t>(i));
  axes = c.axes(axes, x.rank());
  c.check(ends.size() == starts.size() && axes.size() == starts.size() && steps.size() == starts.size(),
          "starts, ends, axes and steps differ in length");
  std::vector<SliceSpec> ranges;
  for (const std::int64_t extent : x.dims()) ranges.push_back({0, extent, 1});
  Dims reversed;
  for (std::size_t i = 0; i < starts.size(); ++i) {
    const std::int64_t extent = x.dim(axes[i]);
    c.check(steps[i] != 0, "a step is 0");
    const std::int64_t step = std::clamp(steps[i], -kMaxElements, kMaxElements);
    const auto from_start = [&](std::int64_t at) { return at < 0 ? at + extent : at; };
    std::int64_t start = from_start(starts[i]), end = from_start(ends[i]);
    if (step < 0) {  // the same counted from the other end of the reversed dimension
      start = extent - 1 - std::min(std::max<std::int64_t>(start, 0), extent - 1);
      end = extent - 1 - std::max<std::int64_t>(end, -1);
      reversed.push_back(axes[i]);
    }
    start = std::clamp<std::int64_t>(start, 0, extent);
    end = std::clamp<std::int64_t>(end, start, extent);
    ranges[static_cast<std::size_t>(axes[i])] = {start, end, std::abs(step)};
  }
  return {c.b.slice(c.b.reverse(x, reversed), ranges)};
}

/// Index under place `at` of a padded dimension.
std::int64_t padded_index(std::string_view mode, std::int64_t at, std::int64_t extent) {
  if (mode == "edge") return std::clamp<std::int64_t>(at, 0, extent - 1);
  const std::int64_t period = mode == "wrap" ? extent : std::max<std::int64_t>(2 * (extent - 1), 1);
  const std::int64_t inside = ((at % period) + period) % period;
  return inside < extent ? inside : period - inside;
}

Values lower_pad(NodeContext& c) {
  const Value& x = c.in(0);
  const std::string mode = c.text("mode", "constant");
  const Dims pads = c.version < 11 ? c.integers("pads") : c.known_integers(1);
  Value value = Builder::scalar_int(x.dtype(), 0);
  if (c.version < 11) value = Builder::scalar(x.dtype(), c.number("value", 0));
  if (c.version >= 11 && c.has(2)) {
    value = c.in(2);
    c.check(product(value.dims()) == 1, "constant_value must have one element");
    value = c.b.reshape(value, {});
  }
  Dims axes;
  for (int d = 0; d < x.rank(); ++d) axes.push_back(d);
  if (c.version >= 18 && c.has(3)) axes = c.axes(c.known_integers(3), x.rank());
  c.check(pads.size() == 2 * axes.size(), fmt::format("{} pads for {} dimensions", pads.size(), axes.size()));
  c.check_range("pads", pads, -kMaxElements, kMaxElements);
  std::vector<PadSpec> padding(x.dims().size());
  for (std::size_t i = 0; i < axes.size(); ++i)
    padding[static_cast<std::size_t>(axes[i])] = {pads[i], pads[i + axes.size()], 0};
  if (mode == "constant") return {c.b.pad(x, value, padding)};
  c.check(mode == "edge" || mode == "reflect" || (mode == "wrap" && c.version >= 19),
          fmt::format("mode '{}' is not supported in operator set {}", mode, c.version));
  Value result = x;
  for (std::size_t d = 0; d < padding.size(); ++d) {
    const auto [low, high, interior] = padding[d];
    const std::int64_t extent = x.dims()[d];
    if (low == 0 && high == 0) continue;
    c.check(extent + low + high <= kLongestList, fmt::format("padding of dimension {} is too large", d));
    c.check(extent > 0, fmt::format("dimension {} is empty: there is nothing to pad with", d));
    Dims indices;
    for (std::int64_t at = -low; at < extent + high; ++at) indices.push_back(padded_index(mode, at, extent));
    result = take(c.b, result, static_cast<std::int64_t>(d), indices);
  }
  return {result};
}

constexpr std::array kShapeRows = {
    OperatorRow{"Concat", 7, lower_concat},
    OperatorRow{"Constant", 7, lower_constant},
    OperatorRow{"ConstantOfShape", 9, lower_constant_of_shape},
    OperatorRow{"DepthToSpace", 7, lower_depth_to_space},
    OperatorRow{"Expand", 8, lower_expand},
    OperatorRow{"EyeLike", 9, lower_eye_like},
    OperatorRow{"Flatten", 7, lower_flatten},
    OperatorRow{"Pad", 7, lower_pad},
    OperatorRow{"Range", 11, lower_range},
    OperatorRow{"Reshape", 7, lower_reshape},
    OperatorRow{"Shape", 7, lower_shape},
    OperatorRow{"Size", 7, lower_size},
    OperatorRow{"Slice", 7, lower_slice},
    OperatorRow{"SpaceToDepth", 7, lower_space_to_depth},
    OperatorRow{"Split", 7, lower_split},
    OperatorRow{"Squeeze", 7, lower_squeeze},
    OperatorRow{"Tile", 7, lower_tile},
    OperatorRow{"Transpose", 7, lower_transpose},
    OperatorRow{"Trilu", 14, lower_trilu},
    OperatorRow{"Unsqueeze", 7, lower_unsqueeze},
};

}  // namespace

std::span<const OperatorRow> shape_operators() { return kShapeRows; }

}  // namespace stitchwork::onnx_reader
