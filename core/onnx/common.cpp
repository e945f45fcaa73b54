#include "core/onnx/common.h"

namespace stitchwork::onnx_reader {
namespace {

Value element(Builder& b, const Value& sequence, const Value& place) {
  std::vector<Value> starts(sequence.dims().size(), Builder::integer(0));
  starts[0] = place;
  Dims sizes = sequence.dims();
  sizes[0] = 1;
  return b.reshape(b.dynamic_slice(sequence, starts, sizes), Dims(sizes.begin() + 1, sizes.end()));
}

Value with_element(Builder& b, const Value& sequence, const Value& place, const Value& part) {
  std::vector<Value> starts(sequence.dims().size(), Builder::integer(0));
  starts[0] = place;
  return b.dynamic_update_slice(sequence, b.reshape(part, joined({1}, part.dims())), starts);
}

/// Steps 1 to count - 1 as a while loop over (step, state, outputs so far); the first is made before it,
/// which shows what the outputs are.
Recurrence looped(Builder& b, std::int64_t count, const Recurrence& first,
                  const std::vector<Value>& sequences, const Step& step, bool backwards) {
  const auto place = [&](const Value& i) { return backwards ? b.sub(Builder::integer(count - 1), i) : i; };
  std::vector<Value> all{Builder::integer(1)};
  all.insert(all.end(), first.state.begin(), first.state.end());
  for (const Value& part : first.outputs) {
    const Value empty = b.full(Builder::scalar_int(part.dtype(), 0), joined({count}, part.dims()));
    all.push_back(with_element(b, empty, place(Builder::integer(0)), part));
  }
  const std::size_t states = first.state.size();
  const std::vector<Value> last = b.while_loop(
      all,
      [&](const std::vector<Value>& p) { return b.compare(Comparison::kLt, p[0], Builder::integer(count)); },
      [&](const std::vector<Value>& p) {
        std::vector<Value> elements;
        for (const Value& sequence : sequences) elements.push_back(element(b, sequence, place(p[0])));
        const Recurrence next =
            step({p.begin() + 1, p.begin() + 1 + static_cast<std::ptrdiff_t>(states)}, elements);
        std::vector<Value> results{b.add(p[0], Builder::integer(1))};
        results.insert(results.end(), next.state.begin(), next.state.end());
        for (std::size_t o = 0; o < next.outputs.size(); ++o)
          results.push_back(with_element(b, p[1 + states + o], place(p[0]), next.outputs[o]));
        return results;
      });
  const auto split = last.begin() + 1 + static_cast<std::ptrdiff_t>(states);
  return {{last.begin() + 1, split}, {split, last.end()}};
}

}  // namespace

Dims counted(std::int64_t first, std::int64_t count) {
  Dims dims;
  for (std::int64_t i = 0; i < count; ++i) dims.push_back(first + i);
  return dims;
}

Dims joined(Dims first, const Dims& second) {
  first.insert(first.end(), second.begin(), second.end());
  return first;
}

Value zero(const Value& x) { return Builder::scalar_int(x.dtype(), 0); }

Value softmax(Builder& b, const Value& x, const Dims& dims) {
  const Value e = b.unary(Op::kExp, b.sub(x, b.reduce(Op::kMaximum, x, dims, true)));
  return b.div(e, b.reduce(Op::kAdd, e, dims, true));
}

Value swish(Builder& b, const Value& x, double alpha) {
  return b.mul(x, b.unary(Op::kLogistic, alpha == 1 ? x : b.mul(x, alpha)));
}

Value matmul(Builder& b, const Value& left, const Value& right, std::optional<DType> type) {
  if (left.rank() == 0 || right.rank() == 0) throw Error("a scalar has no matrix product");
  const bool left_vector = left.rank() == 1, right_vector = right.rank() == 1;
  Value x = left_vector ? b.reshape(left, {1, left.dim(0)}) : left;
  Value y = right_vector ? b.reshape(right, {right.dim(0), 1}) : right;
  if (x.dims().back() != y.dim(y.rank() - 2))
    throw Error(fmt::format("shapes {} and {} do not multiply", to_text(left.shape), to_text(right.shape)));
  DotDims dims;
  if (y.rank() == 2) {
    dims.lhs_contracting = {x.rank() - 1};
    dims.rhs_contracting = {0};
  } else {
    const Dims x_batch(x.dims().begin(), x.dims().end() - 2), y_batch(y.dims().begin(), y.dims().end() - 2);
    const Dims batch = broadcast_dims(x_batch, y_batch);
    x = b.broadcast(x, joined(batch, Dims(x.dims().end() - 2, x.dims().end())));
    y = b.broadcast(y, joined(batch, Dims(y.dims().end() - 2, y.dims().end())));
    const auto count = static_cast<std::int64_t>(batch.size());
    dims.lhs_batch = dims.rhs_batch = counted(0, count);
    dims.lhs_contracting = {count + 1};
    dims.rhs_contracting = {count};
  }
  const Value result = b.dot(x, y, dims, type);
  Dims shape = result.dims();
  if (right_vector) shape.pop_back();
  if (left_vector) shape.erase(shape.end() - (right_vector ? 1 : 2));
  return b.reshape(result, shape);
}

Value mean(Builder& b, const Value& x, const Dims& dims) {
  double count = 1;
  for (const std::int64_t d : dims) count *= static_cast<double>(x.dim(d));
  return b.div(b.reduce(Op::kAdd, x, dims, true), count);
}

Value wrapped(Builder& b, const Value& indices, std::int64_t extent) {
  const Value size = Builder::scalar_int(indices.dtype(), extent);
  if (!is_signed_integer(indices.dtype())) return indices;
  return b.select(b.compare(Comparison::kLt, indices, 0), b.add(indices, size), indices);
}

Value at(Builder& b, const Value& x, std::int64_t dim, std::int64_t index) {
  Dims dims = x.dims();
  dims.erase(dims.begin() + dim);
  return b.reshape(b.slice(x, dim, index, index + 1), dims);
}

Value stack(Builder& b, const std::vector<Value>& parts, std::int64_t dim) {
  std::vector<Value> slices;
  for (const Value& part : parts) {
    Dims dims = part.dims();
    dims.insert(dims.begin() + dim, 1);
    slices.push_back(b.reshape(part, dims));
  }
  return b.concatenate(slices, dim);
}

Recurrence recur(Builder& b, std::int64_t count, std::vector<Value> state,
                 const std::vector<Value>& sequences, const Step& step, bool backwards) {
  const auto run = [&](std::int64_t t) {
    std::vector<Value> elements;
    for (const Value& sequence : sequences) elements.push_back(at(b, sequence, 0, t));
    return step(state, elements);
  };
  if (count > kUnrolled) return looped(b, count, run(backwards ? count - 1 : 0), sequences, step, backwards);
  std::vector<std::vector<Value>> parts;
  for (std::int64_t i = 0; i < count; ++i) {
    Recurrence next = run(backwards ? count - 1 - i : i);
    state = std::move(next.state);
    parts.resize(next.outputs.size());
    for (std::size_t o = 0; o < parts.size(); ++o) {
      if (backwards)
        parts[o].insert(parts[o].begin(), next.outputs[o]);
      else
        parts[o].push_back(next.outputs[o]);
    }
  }
  Recurrence result{std::move(state), {}};
  for (const std::vector<Value>& part : parts) result.outputs.push_back(stack(b, part, 0));
  return result;
}

}  // namespace stitchwork::onnx_reader
