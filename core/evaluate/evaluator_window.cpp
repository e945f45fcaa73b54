// Windows: every window element is one pass over all window positions.
#include <algorithm>
#include <optional>

#include "core/evaluate/accumulator.h"
#include "core/evaluate/evaluator_ops.h"
#include "core/evaluate/scalar_ops.h"
#include "core/graph/dtype_dispatch.h"
#include "core/graph/window.h"
#include "core/index/strided.h"

namespace stitchwork {
namespace {

using Dims = std::vector<std::int64_t>;

/// Window position (linear in the output) and the input element (linear) under it.
struct Pair {
  std::int64_t output = 0, input = 0;
};

/// All positions whose window element `tap` lies inside the input, in row-major order of the positions.
std::vector<Pair> pairs_under(const Dims& tap, const std::vector<WindowDim>& window, const Dims& input,
                              const Dims& output) {
  std::vector<Pair> pairs{{0, 0}};
  for (std::size_t d = 0; d < input.size(); ++d) {
    std::vector<Pair> next;
    for (const Pair& pair : pairs)
      for (std::int64_t o = 0; o < output[d]; ++o)
        if (const std::int64_t i = window_input_index(o, tap[d], input[d], window[d]); i >= 0)
          next.push_back({pair.output * output[d] + o, pair.input * input[d] + i});
    pairs = std::move(next);
  }
  return pairs;
}

template <typename F>
void for_each_tap(const std::vector<WindowDim>& window, F&& f) {
  Dims sizes;
  for (const WindowDim& dim : window) sizes.push_back(dim.size);
  Dims tap(sizes.size(), 0);
  do {
    f(tap);
  } while (advance(tap, sizes));
}

/// Elements source[where(pair)] as a vector.
template <typename Where>
Literal picked(const Literal& source, const std::vector<Pair>& pairs, Where&& where) {
  Literal result =
      Literal::zeros(Shape::array(source.shape.dtype, {static_cast<std::int64_t>(pairs.size())}));
  with_width(source.shape.dtype, [&](auto tag) {
    using T = decltype(tag);
    for (std::size_t i = 0; i < pairs.size(); ++i) result.data<T>()[i] = source.data<T>()[where(pairs[i])];
  });
  return result;
}

void put(const Literal& values, const std::vector<Pair>& pairs, Literal& destination) {
  with_width(values.shape.dtype, [&](auto tag) {
    using T = decltype(tag);
    for (std::size_t i = 0; i < pairs.size(); ++i)
      destination.data<T>()[pairs[i].output] = values.data<T>()[i];
  });
}

Literal reduce_window_simply(Op op, const Node& node, const Literal& input, const Literal& init) {
  const std::vector<WindowDim> window = window_of(node, input.shape.rank());
  Literal result = Literal::zeros(node.shape);
  with_storage(input.shape.dtype, [&](auto tag) {
    using S = decltype(tag);
    using T = typename S::Value;
    const auto* data = input.data<typename S::Stored>();
    const Accumulator<T> start(S::widen(init.data<typename S::Stored>()[0]));
    std::vector<Accumulator<T>> totals(static_cast<std::size_t>(result.shape.elements_count()), start);
    for_each_tap(window, [&](const Dims& at) {
      for (const Pair& pair : pairs_under(at, window, input.shape.dims, result.shape.dims)) {
        totals[static_cast<std::size_t>(pair.output)].fold(op, S::widen(data[pair.input]));
      }
    });
    auto* out = result.data<typename S::Stored>();
    for (std::size_t i = 0; i < totals.size(); ++i) out[i] = S::narrow(totals[i].value());
  });
  return result;
}

Literal reduce_window_generally(const Graph& graph, const Node& node, Values operands) {
  const std::size_t inputs = operands.size() / 2;
  const Shape& out = node.shape.is_tuple ? node.shape.elements[0] : node.shape;
  const std::vector<WindowDim> window = window_of(node, out.rank());
  std::vector<Literal> totals;
  for (std::size_t i = 0; i < inputs; ++i) {
    Node spread;
    spread.op = Op::kBroadcast;
    spread.shape = Shape::array(operands[inputs + i]->shape.dtype, out.dims);
    totals.push_back(evaluate_layout(spread, operands.subspan(inputs + i, 1)));
  }
  for_each_tap(window, [&](const Dims& tap) {
    const std::vector<Pair> pairs = pairs_under(tap, window, operands[0]->shape.dims, out.dims);
    std::vector<Literal> step;
    for (const Literal& total : totals)
      step.push_back(picked(total, pairs, [](const Pair& p) { return p.output; }));
    for (std::size_t i = 0; i < inputs; ++i)
      step.push_back(picked(*operands[i], pairs, [](const Pair& p) { return p.input; }));
    std::vector<const Literal*> arguments;
    for (const Literal& value : step) arguments.push_back(&value);
    const std::vector<Literal> next =
        apply_to_vectors(graph, applied(node), arguments, static_cast<std::int64_t>(pairs.size()));
    for (std::size_t i = 0; i < inputs; ++i) put(next[i], pairs, totals[i]);
  });
  if (!node.shape.is_tuple) return std::move(totals[0]);
  Literal result;
  result.shape = node.shape;
  result.elements = std::move(totals);
  return result;
}

}  // namespace

Literal evaluate_reduce_window(const Graph& graph, const Node& node, Values given) {
  std::vector<Literal> converted;
  const std::vector<const Literal*> operands = reducer_operands(graph, node, given, converted);
  const std::optional<Op> op = simple_reducer(graph, applied(node));
  if (op && operands.size() == 2 && operands[0]->shape.dtype == operands[1]->shape.dtype)
    return reduce_window_simply(*op, node, *operands[0], *operands[1]);
  return reduce_window_generally(graph, node, operands);
}

/// Every window chooses one of its elements by `select` (a window keeps its first element until select
/// refuses it); the source's value is combined into that element by `scatter`, in row-major order of the
/// windows.
Literal evaluate_select_and_scatter(const Graph& graph, const Node& node, Values operands) {
  const Literal& input = *operands[0];
  const Literal& source = *operands[1];
  const std::vector<WindowDim> window = window_of(node, input.shape.rank());
  std::vector<std::int64_t> chosen(static_cast<std::size_t>(source.shape.elements_count()), -1);
  for_each_tap(window, [&](const Dims& tap) {
    std::vector<Pair> contested, old;
    for (const Pair& pair : pairs_under(tap, window, input.shape.dims, source.shape.dims)) {
      std::int64_t& choice = chosen[static_cast<std::size_t>(pair.output)];
      if (choice < 0) {
        choice = pair.input;
      } else {
        contested.push_back(pair);
        old.push_back({pair.output, choice});
      }
    }
    const auto from_input = [](const Pair& p) { return p.input; };
    const Literal kept = picked(input, old, from_input), rival = picked(input, contested, from_input);
    const std::array<const Literal*, 2> arguments = {&kept, &rival};
    const std::vector<Literal> keep = apply_to_vectors(graph, node.attrs.computations.at(0), arguments,
                                                       static_cast<std::int64_t>(contested.size()));
    for (std::size_t i = 0; i < contested.size(); ++i)
      if (keep[0].get_int(static_cast<std::int64_t>(i)) == 0)
        chosen[static_cast<std::size_t>(contested[i].output)] = contested[i].input;
  });
  Node spread;
  spread.op = Op::kBroadcast;
  spread.shape = node.shape;
  Literal result = evaluate_layout(spread, operands.subspan(2, 1));
  for (std::size_t i = 0; i < chosen.size(); ++i) {
    if (chosen[i] < 0) continue;
    const Literal now = picked(result, {{0, chosen[i]}}, [](const Pair& p) { return p.input; });
    const Literal added =
        picked(source, {{0, static_cast<std::int64_t>(i)}}, [](const Pair& p) { return p.input; });
    const std::array<const Literal*, 2> arguments = {&now, &added};
    put(apply_to_vectors(graph, node.attrs.computations.at(1), arguments, 1)[0], {{chosen[i], 0}}, result);
  }
  return result;
}

}  // namespace stitchwork
