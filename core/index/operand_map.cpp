#include <algorithm>
#include <boost/container_hash/hash.hpp>
#include <mutex>
#include <numeric>
#include <unordered_map>

#include "core/base/error.h"
#include "core/graph/window.h"
#include "core/index/index_map.h"

namespace stitchwork {
namespace {

using Dims = std::vector<std::int64_t>;

struct Edge {
  const Computation& computation;
  const Node& node;
  int operand;
  const Dims& out;         ///< of the (first) output
  const Dims& in;          ///< of the operand
  std::int64_t begin = 0;  ///< concatenate: where the operand begins
};

IndexMap over(const Dims& dims) {
  IndexMap map;
  map.dims = dims;
  return map;
}

IndexExpr dim(std::size_t i) { return IndexExpr::dim(static_cast<int>(i)); }

bool contains(const Dims& list, std::int64_t value) { return std::ranges::find(list, value) != list.end(); }

/// Every output element reads the one element of a scalar.
IndexMap scalar(const Dims& out) { return over(out); }

IndexMap elementwise(const Edge& e) {
  return e.in.empty() && !e.out.empty() ? scalar(e.out) : IndexMap::identity(e.out);
}

IndexMap broadcast(const Edge& e) {
  IndexMap map = over(e.out);
  for (std::size_t i = 0; i < e.in.size(); ++i)
    map.results.push_back(e.in[i] == 1 ? IndexExpr::value(0)
                                       : dim(static_cast<std::size_t>(e.node.attrs.dimensions[i])));
  return map;
}

/// Row-major reinterpretation. Runs of dims with equal products are handled apart, so that what does not
/// change stays plain.
IndexMap reshape(const Dims& out, const Dims& in) {
  IndexMap map = over(out);
  const auto count = [](const Dims& d) {
    return std::accumulate(d.begin(), d.end(), std::int64_t{1}, std::multiplies<>());
  };
  if (count(out) == 0) {
    map.results.resize(in.size());
    return map;
  }
  std::size_t o = 0, i = 0;
  while (o < out.size() || i < in.size()) {
    const std::size_t first_out = o, first_in = i;
    std::int64_t out_product = o < out.size() ? out[o++] : 1;
    std::int64_t in_product = i < in.size() ? in[i++] : 1;
    while (out_product != in_product)
      if (out_product < in_product)
        out_product *= out[o++];
      else
        in_product *= in[i++];
    std::vector<IndexExpr> index;
    for (std::size_t k = first_out; k < o; ++k) index.push_back(dim(k));
    const std::span<const std::int64_t> out_run(out.data() + first_out, o - first_out);
    const std::span<const std::int64_t> in_run(in.data() + first_in, i - first_in);
    std::ranges::move(delinearize(linearize(index, out_run), in_run), std::back_inserter(map.results));
  }
  return simplify(std::move(map));
}

/// The same bytes in the same order: a reshape of the physical dims. nullopt where elements change size.
std::optional<IndexMap> bitcast(const Shape& out, const Shape& in) {
  if (out.elements_count() != in.elements_count()) return std::nullopt;
  if (out.has_default_layout() && in.has_default_layout()) return reshape(out.dims, in.dims);
  const Dims out_order = physical_order(out), in_order = physical_order(in);
  IndexMap to_physical = over(out.dims), from_physical;
  Dims physical_out, physical_in;
  for (const std::int64_t d : out_order) {
    to_physical.results.push_back(dim(static_cast<std::size_t>(d)));
    physical_out.push_back(out.dims[static_cast<std::size_t>(d)]);
  }
  for (const std::int64_t d : in_order) physical_in.push_back(in.dims[static_cast<std::size_t>(d)]);
  from_physical.dims = physical_in;
  from_physical.results.resize(in_order.size());
  for (std::size_t i = 0; i < in_order.size(); ++i)
    from_physical.results[static_cast<std::size_t>(in_order[i])] = dim(i);
  return compose(compose(simplify(to_physical), reshape(physical_out, physical_in)), from_physical);
}

IndexMap transpose(const Edge& e) {
  IndexMap map = over(e.out);
  map.results.resize(e.in.size());
  for (std::size_t i = 0; i < e.out.size(); ++i)
    map.results[static_cast<std::size_t>(e.node.attrs.dimensions[i])] = dim(i);
  return map;
}

IndexMap slice(const Edge& e) {
  IndexMap map = over(e.out);
  for (std::size_t i = 0; i < e.in.size(); ++i)
    map.results.push_back(dim(i) * e.node.attrs.slice[i].stride +
                          IndexExpr::value(e.node.attrs.slice[i].start));
  return map;
}

IndexMap reverse(const Edge& e) {
  IndexMap map = IndexMap::identity(e.out);
  for (const std::int64_t d : e.node.attrs.dimensions) {
    const auto i = static_cast<std::size_t>(d);
    map.results[i] = IndexExpr::value(e.in[i] - 1) - map.results[i];
  }
  return map;
}

IndexMap concatenate(const Edge& e) {
  const auto axis = static_cast<std::size_t>(e.node.attrs.dimensions[0]);
  IndexMap map = IndexMap::identity(e.out);
  map.constraints.push_back({dim(axis), {e.begin, e.begin + e.in[axis] - 1}});
  map.results[axis] = dim(axis) - IndexExpr::value(e.begin);
  return map;
}

/// Position `at` of an operand dimension spread out by `dilation` (1: dense): in bounds, on a real element.
void add_dilated(IndexMap& map, const IndexExpr& at, std::int64_t extent, std::int64_t dilation) {
  map.constraints.push_back({at, {0, (extent - 1) * dilation}});
  if (dilation > 1) map.constraints.push_back({mod(at, dilation), {0, 0}});
  map.results.push_back(floordiv(at, dilation));
}

IndexMap pad(const Edge& e) {
  if (e.operand == 1) return scalar(e.out);
  IndexMap map = over(e.out);
  for (std::size_t i = 0; i < e.in.size(); ++i) {
    const PadSpec& spec = e.node.attrs.padding[i];
    add_dilated(map, dim(i) - IndexExpr::value(spec.low), e.in[i], spec.interior + 1);
  }
  return map;
}

IndexMap reduce(const Edge& e) {
  const auto inputs = static_cast<int>(e.node.operands.size() / 2);
  if (e.operand >= inputs) return scalar(e.out);
  IndexMap map = over(e.out);
  std::size_t next = 0;
  for (std::size_t i = 0; i < e.in.size(); ++i) {
    if (contains(e.node.attrs.dimensions, static_cast<std::int64_t>(i))) {
      map.results.push_back(IndexExpr::symbol(static_cast<int>(map.symbols.size())));
      map.symbols.push_back(e.in[i]);
    } else {
      map.results.push_back(dim(next++));
    }
  }
  return map;
}

IndexMap reduce_window(const Edge& e) {
  const auto inputs = static_cast<int>(e.node.operands.size() / 2);
  if (e.operand >= inputs) return scalar(e.out);
  const std::vector<WindowDim> window = window_of(e.node, static_cast<int>(e.in.size()));
  IndexMap map = over(e.out);
  for (std::size_t i = 0; i < e.in.size(); ++i) {
    const WindowDim& w = window[i];
    IndexExpr at = dim(i) * w.stride - IndexExpr::value(w.pad_low);
    if (w.size > 1) {
      const IndexExpr offset = IndexExpr::symbol(static_cast<int>(map.symbols.size()));
      map.symbols.push_back(w.size);
      at = at + (w.reversed ? IndexExpr::value(w.size - 1) - offset : offset) * w.window_dilation;
    }
    add_dilated(map, at, e.in[i], w.base_dilation);
  }
  return map;
}

IndexMap dot(const Edge& e) {
  const DotDims& dims = *e.node.attrs.dot;
  const bool lhs = e.operand == 0;
  const Dims& batch = lhs ? dims.lhs_batch : dims.rhs_batch;
  const Dims& contracting = lhs ? dims.lhs_contracting : dims.rhs_contracting;
  IndexMap map = over(e.out);
  map.results.resize(e.in.size());
  for (std::size_t i = 0; i < batch.size(); ++i) map.results[static_cast<std::size_t>(batch[i])] = dim(i);
  for (const std::int64_t d : contracting) {
    map.results[static_cast<std::size_t>(d)] = IndexExpr::symbol(static_cast<int>(map.symbols.size()));
    map.symbols.push_back(e.in[static_cast<std::size_t>(d)]);
  }
  // The output is batch dims, then the left operand's own, then the right operand's own.
  std::size_t next = batch.size();
  if (!lhs) next = e.out.size() - (e.in.size() - batch.size() - contracting.size());
  for (std::size_t i = 0; i < e.in.size(); ++i) {
    const auto d = static_cast<std::int64_t>(i);
    if (!contains(batch, d) && !contains(contracting, d)) map.results[i] = dim(next++);
  }
  return map;
}

/// The start index of a slice of `size` within `extent`, read at run time and clamped so that it fits.
IndexExpr start_index(IndexMap& map, NodeId op, std::vector<IndexExpr> index, std::int64_t extent,
                      std::int64_t size) {
  if (extent == size) return IndexExpr::value(0);
  map.runtime.push_back({op, std::move(index), {0, extent - size}});
  return IndexExpr::runtime(static_cast<int>(map.runtime.size()) - 1);
}

IndexMap gather(const Edge& e) {
  const GatherDims& dims = *e.node.attrs.gather;
  const Node& indices = e.computation.node(e.node.operands[1]);
  // The output's dims that are not offset dims run over the indices, index_vector_dim left out.
  std::vector<IndexExpr> batch;
  for (std::size_t i = 0; i < e.out.size(); ++i)
    if (!contains(dims.offset_dims, static_cast<std::int64_t>(i))) batch.push_back(dim(i));
  const auto vector_dim = static_cast<std::size_t>(dims.index_vector_dim);
  const bool has_vector = vector_dim < indices.shape.dims.size();
  IndexMap map = over(e.out);
  const auto indices_index = [&](const IndexExpr& component) {
    std::vector<IndexExpr> index = batch;
    if (has_vector) index.insert(index.begin() + static_cast<std::ptrdiff_t>(vector_dim), component);
    return index;
  };
  if (e.operand == 1) {
    if (has_vector) map.symbols.push_back(indices.shape.dims[vector_dim]);
    map.results = indices_index(IndexExpr::symbol(0));
    return map;
  }
  map.results.resize(e.in.size());
  for (std::size_t k = 0; k < dims.start_index_map.size(); ++k) {
    const auto d = static_cast<std::size_t>(dims.start_index_map[k]);
    map.results[d] =
        start_index(map, indices.id, indices_index(IndexExpr::value(static_cast<std::int64_t>(k))), e.in[d],
                    dims.slice_sizes[d]);
  }
  for (std::size_t k = 0; k < dims.operand_batching_dims.size(); ++k) {
    auto at = static_cast<std::size_t>(dims.start_indices_batching_dims[k]);
    if (has_vector && at > vector_dim) --at;
    map.results[static_cast<std::size_t>(dims.operand_batching_dims[k])] = batch[at];
  }
  std::size_t next = 0;
  for (std::size_t d = 0; d < e.in.size(); ++d) {
    const auto number = static_cast<std::int64_t>(d);
    if (contains(dims.collapsed_slice_dims, number) || contains(dims.operand_batching_dims, number)) continue;
    map.results[d] = map.results[d] + dim(static_cast<std::size_t>(dims.offset_dims[next++]));
  }
  return map;
}

/// Start indices are scalars, one a dimension, or (older HLO) one vector.
IndexExpr slice_start(const Edge& e, IndexMap& map, std::size_t first, std::size_t d, std::int64_t extent,
                      std::int64_t size) {
  const bool vector = e.computation.node(e.node.operands[first]).shape.dims.size() == 1;
  const NodeId op = e.node.operands[vector ? first : first + d];
  std::vector<IndexExpr> index;
  if (vector) index.push_back(IndexExpr::value(static_cast<std::int64_t>(d)));
  return start_index(map, op, std::move(index), extent, size);
}

/// Every output element depends on every start index.
IndexMap start_operand(const Edge& e) {
  IndexMap map = over(e.out);
  for (std::size_t i = 0; i < e.in.size(); ++i) {
    map.results.push_back(IndexExpr::symbol(static_cast<int>(i)));
    map.symbols.push_back(e.in[i]);
  }
  return map;
}

IndexMap dynamic_slice(const Edge& e) {
  if (e.operand > 0) return start_operand(e);
  IndexMap map = over(e.out);
  for (std::size_t d = 0; d < e.in.size(); ++d) {
    const IndexExpr start = slice_start(e, map, 1, d, e.in[d], e.out[d]);
    map.results.push_back(dim(d) + start);
  }
  return map;
}

/// Of an update in place: where its elements lie in the array.
IndexMap in_updated(const Edge& e) {
  const std::vector<std::int64_t>& whole = e.node.attrs.updated->shape.dims;
  IndexMap map = over(e.out);
  for (std::size_t d = 0; d < whole.size(); ++d)
    map.results.push_back(dim(d) + slice_start(e, map, 1, d, whole[d], e.out[d]));
  return map;
}

IndexMap dynamic_update_slice(const Edge& e) {
  if (e.operand == 0) return IndexMap::identity(e.out);
  if (e.operand > 1) return start_operand(e);
  IndexMap map = over(e.out);
  for (std::size_t d = 0; d < e.in.size(); ++d) {
    const IndexExpr at = dim(d) - slice_start(e, map, 2, d, e.out[d], e.in[d]);
    map.constraints.push_back({at, {0, e.in[d] - 1}});
    map.results.push_back(at);
  }
  return map;
}

std::optional<IndexMap> map_of(const Edge& e, const Shape& in_shape) {
  if (is_elementwise(e.node.op)) {
    // bitcast-convert to another element size adds or drops a dimension: not element by element.
    if (!e.in.empty() && e.in != e.out) return std::nullopt;
    return elementwise(e);
  }
  switch (e.node.op) {
    case Op::kBroadcast:
      return broadcast(e);
    case Op::kReshape:
      return reshape(e.out, e.in);
    case Op::kBitcast:
      return bitcast(e.node.shape, in_shape);
    case Op::kTranspose:
      return transpose(e);
    case Op::kSlice:
      return slice(e);
    case Op::kReverse:
      return reverse(e);
    case Op::kConcatenate:
      return concatenate(e);
    case Op::kPad:
      return pad(e);
    case Op::kGather:
      return gather(e);
    case Op::kDynamicSlice:
      return dynamic_slice(e);
    case Op::kDynamicUpdateSlice:
      return dynamic_update_slice(e);
    case Op::kUpdateInPlace:
      return e.operand == 0 ? elementwise(e) : start_operand(e);
    case Op::kReduce:
      return reduce(e);
    case Op::kReduceWindow:
      return reduce_window(e);
    case Op::kDot:
      return dot(e);
    case Op::kRng:
      return scalar(e.out);
    case Op::kOptimizationBarrier:
    case Op::kAddDependency:
      return e.operand == 0 ? std::optional(elementwise(e)) : std::nullopt;
    default:
      return std::nullopt;
  }
}

/// `begin`: Edge::begin.
std::optional<IndexMap> derive(const Computation& computation, NodeId id, int operand, std::int64_t begin) {
  const Node& node = computation.node(id);
  SW_CHECK(operand >= 0 && static_cast<std::size_t>(operand) < node.operands.size(), "operand {} of {}",
           operand, node.name);
  const Shape& in = computation.node(node.operands[static_cast<std::size_t>(operand)]).shape;
  const bool reduces = node.op == Op::kReduce || node.op == Op::kReduceWindow;
  if (in.is_tuple || in.dtype == DType::kToken || (node.shape.is_tuple && !reduces)) return std::nullopt;
  // A reduction of several arrays gives a tuple; its elements have the same dims.
  const Shape& out = node.shape.is_tuple ? node.shape.elements.front() : node.shape;
  const Edge edge{computation, node, operand, out.dims, in.dims, begin};
  std::optional<IndexMap> map = map_of(edge, in);
  if (map) *map = simplify(std::move(*map));
  return map;
}

/// The maps of a computation's edges, each derived when it is first asked for.
class EdgeMaps {
 public:
  const std::optional<IndexMap>& get(const Computation& computation, NodeId id, int operand) {
    const std::lock_guard lock(mutex_);
    const auto [at, fresh] = known_.try_emplace(std::pair(id, operand));
    if (fresh) {
      try {
        at->second = derive(computation, id, operand, begin_of(computation, id, operand));
      } catch (...) {
        known_.erase(at);
        throw;
      }
    }
    return at->second;
  }

 private:
  /// A concatenate of n operands would have n sums of up to n extents.
  std::int64_t begin_of(const Computation& computation, NodeId id, int operand) {
    const Node& node = computation.node(id);
    if (node.op != Op::kConcatenate) return 0;
    std::vector<std::int64_t>& begins = begins_[id];
    if (begins.empty()) {
      const auto axis = static_cast<std::size_t>(node.attrs.dimensions[0]);
      std::int64_t begin = 0;
      for (const NodeId part : node.operands) {
        begins.push_back(begin);
        begin += computation.node(part).shape.dims[axis];
      }
    }
    return begins.at(static_cast<std::size_t>(operand));
  }

  std::mutex mutex_;
  std::unordered_map<NodeId, std::vector<std::int64_t>> begins_;  ///< of the operands of concatenates
  std::unordered_map<std::pair<NodeId, int>, std::optional<IndexMap>, boost::hash<std::pair<NodeId, int>>>
      known_;
};

}  // namespace

IndexMap updated_map(const Computation& computation, const Node& node) {
  return simplify(in_updated({computation, node, 0, node.shape.dims, node.shape.dims, 0}));
}

const std::optional<IndexMap>& operand_map(const Computation& computation, NodeId id, int operand) {
  return computation.derived.get<EdgeMaps>().get(computation, id, operand);
}

}  // namespace stitchwork
